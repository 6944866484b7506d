"""A long run of everything at once: intakes, compaction, readers, stops and kills, every answer compared (soak).

One writer takes many small commits, with events late on both axes; between its intakes the store is compacted
or rebuilt, in them it flushes and merges by itself; it is stopped for moments, and killed now and then. Four
readers ask meanwhile: two with scripts of `asof sql`, one through the shell in a pipe, one with `asof tail
--follow`. Every row of every answer is compared with a model that replays the messages in this file, from
nothing but the rules of docs/semantics.md.
"""

import collections
import json
import os
import random
import signal
import subprocess
import threading
import time

from common import Wrong, expect, row

COLUMNS = ("a", "b", "pad")
# Of a long text its end and its length are asked for.
SHOWN = "id, a, b, right(pad, 8) AS pad, length(pad) AS n"
Event = collections.namedtuple("Event", "commit key op valid system cells seq")


def shown(key, image):
    pad = image["pad"]
    return (key, image["a"], image["b"], pad and pad[-8:], pad and len(pad))


class Model:
    """Every message with its commit, and what is to be believed of them: by replay, once for each answer."""

    def __init__(self):
        self.of_key = collections.defaultdict(list)
        self.of_commit = {}

    def add(self, event):
        self.of_key[event.key].append(event)
        self.of_commit.setdefault(event.commit, []).append(event)

    def keys(self, commit):
        return sorted(k for k, events in list(self.of_key.items()) if events[0].commit <= commit)

    def known(self, key, commit, system=None):
        """B3: valid time, system time, then the place in the streams."""
        events = [e for e in list(self.of_key[key]) if e.commit <= commit and (system is None or e.system <= system)]
        return sorted(events, key=lambda e: (e.valid, e.system, e.seq))

    @staticmethod
    def apply(image, event):
        """B4 and B5: an insert writes all columns, an update those it has, a delete ends the row."""
        if event.op == "delete":
            return None
        old = image if event.op == "update" and image else dict.fromkeys(COLUMNS)
        return {**old, **event.cells}

    def image(self, key, commit, valid=None, system=None):
        image = None
        for event in self.known(key, commit, system):
            if valid is None or event.valid <= valid:
                image = self.apply(image, event)
        return image

    def point(self, commit, valid=None, system=None):
        images = ((k, self.image(k, commit, valid, system)) for k in self.keys(commit))
        return sorted(shown(k, image) for k, image in images if image is not None)

    def versions(self, key, commit, system):
        """B9: the stretches of one belief, equal neighbours as one."""
        image, found = None, []
        events = self.known(key, commit, system)
        for i, event in enumerate(events):
            image = self.apply(image, event)
            if i + 1 < len(events) and events[i + 1].valid == event.valid:
                continue
            end = events[i + 1].valid if i + 1 < len(events) else None
            if image is None:
                continue
            if found and found[-1][1] == event.valid and found[-1][2] == shown(key, image):
                found[-1] = (found[-1][0], end, found[-1][2])
            else:
                found.append((event.valid, end, shown(key, image)))
        return found

    def intervals(self, key, commit):
        """B10: the longest system intervals in which a version is believed."""
        systems = sorted({e.system for e in self.known(key, commit)})
        open_since, rows = {}, []
        for system in systems:
            now = set(self.versions(key, commit, system))
            for version in [v for v in open_since if v not in now]:
                rows.append((*version[2], version[0], version[1], open_since.pop(version), system))
            for version in now:
                open_since.setdefault(version, system)
        rows += [(*v[2], v[0], v[1], since, None) for v, since in open_since.items()]
        return sorted(rows, key=repr)

    def history(self, key, commit):
        """Every event, with the row as it is after it in the order of B3."""
        image, rows = None, []
        for event in self.known(key, commit):
            image = self.apply(image, event)
            row_then = shown(key, image)[1:] if image else (None,) * 4
            rows.append((event.op, event.valid, event.commit, *row_then))
        return rows

    def changes(self, commit):
        """What a commit changed of the latest state."""
        rows = []
        for key in sorted({e.key for e in self.of_commit[commit]}):
            before, after = self.image(key, commit - 1), self.image(key, commit)
            if before == after:
                continue
            if before is not None:
                rows.append((shown(key, before), "delete" if after is None else "update_preimage"))
            if after is not None:
                rows.append((shown(key, after), "insert" if before is None else "update_postimage"))
        return sorted(rows, key=repr)


class Soak:
    def __init__(self, case, seconds):
        self.case, self.store, self.model = case, case.path("soak.asof"), Model()
        self.keys = 400 if case.long else 40
        self.until = time.monotonic() + seconds
        self.lock = threading.Lock()
        # When it was known that all commits up to some are acknowledged.
        self.floors = [(0.0, 0)]
        # All commits up to `planned` are in the model, all up to `floor` are acknowledged.
        self.planned, self.floor, self.files, self.seq = 0, 0, 0, 0
        self.failed = threading.Event()
        self.wrong = None
        self.counts = collections.Counter()

    def over(self):
        return self.failed.is_set() or time.monotonic() > self.until

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] += n

    def guarded(self, body, *args):
        try:
            body(*args)
        except Exception as e:
            with self.lock:
                self.wrong = self.wrong or (e if isinstance(e, Wrong) else Wrong(f"{body.__name__}{args}: {e!r}"))
            self.failed.set()

    # The writer.

    def message(self, rng, earlier):
        """The next message: a third late in valid time, a fifth in system time, some at the very times of another."""
        i, op = self.seq, rng.choices(("insert", "update", "delete"), (30, 50, 20))[0]
        key = rng.randrange(self.keys)
        valid, system = i * 1000, i * 1000
        if rng.random() < 0.33:
            valid -= rng.randrange(1, 400_000)
        if rng.random() < 0.2:
            system -= rng.randrange(1, 400_000)
        if earlier and rng.random() < 0.08:
            twin = rng.choice(earlier)
            key, valid, system = twin.key, twin.valid, rng.choice((system, twin.system, twin.system - 1))
        cells = {}
        if op != "delete":
            for name in ("a", "b"):
                if rng.random() < 0.6:
                    cells[name] = rng.choice((None, rng.randrange(4), rng.randrange(4)))
            if op == "insert" and rng.random() < 0.7:
                cells["pad"] = f"{rng.randrange(1 << 32):08x}" * rng.randrange(1, 1200)
        return key, op, valid, system, cells

    def next_file(self, rng):
        """Messages of another file, put into the model before anybody may see them."""
        batch, commits = rng.randrange(1, 30), rng.randrange(20, 160)
        path = self.case.path(f"soak-{self.files:05}.ndjson")
        self.files += 1
        last, events = self.planned, []
        with open(path, "w", encoding="utf-8") as out:
            for n in range(batch * commits):
                key, op, valid, system, cells = self.message(rng, events[-200:])
                event = Event(last + 1 + n // batch, key, op, valid, system, cells, self.seq)
                self.seq += 1
                events.append(event)
                out.write(json.dumps({"id": key, "op": op, "valid_at": valid, "known_at": system, **cells}) + "\n")
        for event in events:
            self.model.add(event)
        self.planned = last + commits
        return path, batch

    def take(self, rng, path, batch):
        """Takes a file in, with stops, and kills after which the same command goes on."""
        args = ["ingest", self.store, path, "--table", "w", "--format", "json", "--key", "id", "--op", "op", "--valid"]
        args += ["valid_at:us", "--system", "known_at:us", "--columns", "* except (op, valid_at, known_at)"]
        args += ["--absent", "unchanged", "--strict", "--quiet", "--batch", str(batch), "--memory", "64MB"]
        kills = rng.choice((0, 0, 0, 1, 2))
        while True:
            child = self.case.start(*args)
            begun, life = time.monotonic(), rng.uniform(0.05, 1.0)
            while child.poll() is None:
                time.sleep(rng.uniform(0.001, 0.01))
                if kills and time.monotonic() - begun > life:
                    child.kill()
                    break
                if not self.over():
                    # Slow enough for the readers to see most commits as the newest one.
                    child.send_signal(signal.SIGSTOP)
                    time.sleep(rng.uniform(0.02, 0.08))
                    child.send_signal(signal.SIGCONT)
            _, err = child.communicate(timeout=120)
            if child.returncode == 0:
                break
            expect(kills and child.returncode == -signal.SIGKILL, f"{path}: code {child.returncode}: {err[-400:]!r}")
            kills -= 1
            self.count("kills")
        with self.lock:
            self.floor = self.planned
            self.floors.append((time.time(), self.floor))
        os.remove(path)

    def writer(self):
        rng = random.Random(f"{self.case.seed} writer")
        while not self.over():
            path, batch = self.next_file(rng)
            self.take(rng, path, batch)
            self.count("intakes")
            what = rng.choice(("compact", "compact", "rebuild", None))
            if what:
                self.case.ok(what, self.store)
                self.count({"compact": "compactions", "rebuild": "rebuilds"}[what])

    # The readers.

    def newest(self, seen, name, least):
        expect(least <= seen <= self.planned, f"{name}: the newest commit is {seen}; {least} were seen, {self.planned} sent")
        return seen

    def questions(self, rng, newest, count):
        """Statements with what they must answer; both are made of the same random points."""
        asked = []
        for _ in range(count):
            n = rng.randrange(max(1, newest - 50), newest + 1) if rng.random() < 0.7 else rng.randrange(1, newest + 1)
            some = rng.choice(self.model.of_commit[n])
            clauses, valid, system = f" FOR COMMIT AS OF {n}", None, None
            if rng.random() < 0.7:
                valid = some.valid + rng.randrange(-1, 2)
                clauses += f" FOR VALID_TIME AS OF to_timestamp_micros({valid})"
            if rng.random() < 0.7:
                system = some.system + rng.randrange(-1, 2)
                clauses += f" FOR SYSTEM_TIME AS OF to_timestamp_micros({system})"
            kind = rng.choice(("point", "point", "point", "intervals", "history", "changes"))
            if kind == "point":
                asked.append((f"SELECT {SHOWN} FROM w{clauses}", lambda n=n, v=valid, s=system: self.model.point(n, v, s)))
            elif kind == "intervals":
                times = ", ".join(f"CAST({t} AS BIGINT) AS t{i}" for i, t in enumerate(AXES))
                sql = f"SELECT {SHOWN}, {times} FROM w FOR VALID_TIME ALL FOR SYSTEM_TIME ALL FOR COMMIT AS OF {n} WHERE id = {some.key}"
                asked.append((sql, lambda n=n, k=some.key: self.model.intervals(k, n)))
            elif kind == "history":
                sql = (
                    f"SET asof.commit = {n};\nSELECT _operation, CAST(__START_AT AS BIGINT) AS t, __COMMIT_SEQ AS c, {SHOWN[4:]} "
                    f"FROM history('w') WHERE id = {some.key};\nRESET asof.commit"
                )
                asked.append((sql, lambda n=n, k=some.key: self.model.history(k, n)))
            else:
                sql = f"SELECT {SHOWN}, _change_type FROM changes('w', {n}, {n})"
                asked.append((sql, lambda n=n: sorted(((*r, t) for r, t in self.model.changes(n)), key=repr)))
        return asked

    def compare(self, name, sql, rows, wanted):
        rows = sorted((tuple(r.values()) for r in rows), key=repr)
        wanted = sorted(wanted, key=repr)
        if rows != wanted:
            missing, extra = [r for r in wanted if r not in rows], [r for r in rows if r not in wanted]
            raise Wrong(f"{name}: {sql}\n  {len(rows)} rows, {len(wanted)} wanted; missing {missing[:3]}, not wanted {extra[:3]}")
        self.count("answers")
        self.count("rows", len(rows))

    def answers(self, name, out):
        """The answers of a script, which stand behind lines that number them."""
        parts, current = [], None
        for line in out.splitlines():
            value = json.loads(line)
            if "mark" in value:
                current = []
                parts.append(current)
            else:
                expect(current is not None, f"{name}: {line}")
                current.append(value)
        return parts

    def script(self, rng, name, newest):
        """Statements, and what compares their answers. The newest state says itself at which commit it stands."""
        now = f"SELECT c.c AS at, CAST(now() AS BIGINT) AS clock, {SHOWN} FROM (SELECT max(__COMMIT_SEQ) AS c FROM commits()) c LEFT JOIN w ON true"
        asked = [(now, None)]
        for question in self.questions(rng, newest, rng.randrange(30, 60) if name == "sql 2" else rng.randrange(2, 6)) if newest else []:
            asked += [question, (now, None)]
        text = "".join(f"SELECT {i} AS mark;\n{sql};\n" for i, (sql, _) in enumerate(asked))
        return asked, text

    def check(self, name, asked, out, newest, floor):
        parts = self.answers(name, out)
        expect(len(parts) == len(asked), f"{name}: {len(parts)} answers to {len(asked)} questions")
        for (sql, wanted), rows in zip(asked, parts):
            if wanted is not None:
                self.compare(name, sql, rows, wanted())
                continue
            expect(rows and len({r["at"] for r in rows}) == 1, f"{name}: {sql}: {rows[:3]}")
            told = [f for t, f in self.floors if t + SLACK < rows[0]["clock"] / CLOCK_UNIT]
            newest = self.newest(rows[0]["at"] or 0, name, max(newest, floor, *told))
            found = [{k: v for k, v in r.items() if k not in ("at", "clock")} for r in rows if r["id"] is not None]
            self.compare(name, f"{sql} at {newest}", found, self.model.point(newest))
        return newest

    def asking(self, name, shell):
        rng, newest = random.Random(f"{self.case.seed} {name}"), 0
        while not os.path.isdir(self.store) or self.floor == 0:
            if self.over():
                return
            time.sleep(0.05)
        while not self.over():
            with self.lock:
                floor = self.floor
            asked, text = self.script(rng, name, max(newest, floor))
            if shell:
                child = self.case.start("shell", self.store, "--quiet", stdin=subprocess.PIPE)
                out, err = child.communicate(("\\o ndjson\n" + text).encode(), timeout=300)
                done = (child.returncode, out.decode(), err.decode())
            else:
                path = self.case.path(f"{name}.sql")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                done = self.case.run("sql", self.store, "-f", path, "-o", "ndjson")
                done = (done.code, done.out, done.err)
            expect(done[0] == 0, f"{name}: code {done[0]}: {done[2][-500:]}\n{text}")
            newest = self.check(name, asked, done[1], newest, floor)

    def follows(self):
        """`asof tail --follow`: each commit that changed something, whole, once and in order; killed now and then."""
        at = 0
        while self.floor == 0 and not self.over():
            time.sleep(0.05)
        while not self.over():
            at = self.follow(at)
        if not self.failed.is_set():
            self.drained.wait(300)
            at = self.follow(at, self.planned)
            expect(self.unchanged(at, self.planned), f"tail: ended at {at} of {self.planned}")

    def unchanged(self, at, upto):
        """Whether the commits behind `at` changed nothing."""
        return not any(self.model.changes(n) for n in range(at + 1, upto + 1))

    def follow(self, at, last=None):
        """The last commit that was compared. Ends when commits were that came after it began, or, with `last`, when
        all there is up to that one was written."""
        args = ["tail", self.store, "w", "--from", str(at + 1)] + ([] if last else ["--follow"])
        with self.lock:
            begun, planned = time.monotonic(), self.planned
        child = self.case.start(*args)
        commit, rows, state = None, [], {"at": at}
        if not last:
            threading.Thread(target=self.stop_follower, args=(child, begun, planned, state)).start()

        def whole():
            if commit is None:
                return at
            expect(self.unchanged(at, commit - 1), f"tail: commits between {at} and {commit} are missing")
            self.compare("tail", f"changes of commit {commit}", rows, [(*r, t) for r, t in self.model.changes(commit)])
            return commit

        for line in child.stdout:
            if not line.endswith(b"\n"):
                break
            value = json.loads(line)
            if value["_commit_version"] != commit:
                at, commit, rows = whole(), value["_commit_version"], []
                state["at"] = at
                expect(at < commit <= self.planned, f"tail: commit {commit} after {at}")
            pad = value["pad"]
            shown_row = {"id": value["id"], "a": value["a"], "b": value["b"], "pad": pad and pad[-8:], "n": pad and len(pad)}
            rows.append({**shown_row, "type": value["_change_type"]})
        _, err = child.communicate(timeout=60)
        if last:
            expect(child.returncode == 0, f"tail: {child.returncode} {err!r}")
            return whole()
        expect("late" not in state, f"tail --follow: {state}, {self.floor} commits are acknowledged")
        expect(child.returncode == -signal.SIGKILL, f"tail: {child.returncode} {err!r}")
        return at

    def stop_follower(self, child, begun, planned, state):
        """Kills a follower that has come to commits behind `planned`, or that never does."""
        while state["at"] <= planned and not self.over() and child.poll() is None:
            if time.monotonic() - begun > PATIENCE and self.floor > planned:
                state["late"] = f"after {PATIENCE} s"
                break
            time.sleep(0.1)
        child.kill()

    def run(self):
        self.drained = threading.Event()
        threads = [
            threading.Thread(target=self.guarded, args=(self.asking, "sql 1", False)),
            threading.Thread(target=self.guarded, args=(self.asking, "sql 2", False)),
            threading.Thread(target=self.guarded, args=(self.asking, "shell", True)),
            threading.Thread(target=self.guarded, args=(self.follows,)),
        ]
        for thread in threads:
            thread.start()
        self.guarded(self.writer)
        self.drained.set()
        for thread in threads:
            thread.join()
        if self.wrong:
            raise self.wrong

    def end(self):
        """What is left: all commits with their events, all rows, a sound store, and the same from the log anew."""
        commits = [(int(n), int(e)) for n, e in self.case.ask(self.store, "SELECT __COMMIT_SEQ, events FROM commits()")]
        expect(commits == [(n, len(self.model.of_commit[n])) for n in range(1, self.planned + 1)], "the commits are not those sent")
        for again in (None, "rebuild", "compact"):
            if again:
                self.case.ok(again, self.store)
            times = ", ".join(f"CAST({t} AS BIGINT) AS t{i}" for i, t in enumerate(AXES))
            sql = f"SELECT {SHOWN}, {times} FROM intervals('w')"
            done = self.case.ok("sql", self.store, sql, "-o", "ndjson")
            rows = [json.loads(line) for line in done.out.splitlines()]
            self.compare(f"the end, {again}", sql, rows, [r for k in self.model.keys(self.planned) for r in self.model.intervals(k, self.planned)])
        self.case.ok("verify", self.store, "--full")


# Seconds after which a follower must show what others were told is stored.
PATIENCE = 60
# Seconds by which a statement's clock may be ahead of what it sees; units of that clock in a second.
SLACK, CLOCK_UNIT = 0.5, 1e9

AXES = ("__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT")


@row("soak", "4 readers, 1 writer, compaction, stops and kills at once: every answer is the model's at its commit")
def soak(case):
    seconds = float(os.environ.get("ASOF_SOAK_SECONDS") or (3600 if case.long else 15))
    soak = Soak(case, seconds)
    soak.run()
    soak.end()
    expect(soak.counts["answers"] > 20 and soak.counts["intakes"] > 1, f"too little was tried: {dict(soak.counts)}")
    told = ", ".join(f"{n:,} {what}" for what, n in soak.counts.items())
    return f"{seconds:.0f} s, {soak.planned:,} commits of {soak.seq:,} events; {told}"
