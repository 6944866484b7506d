"""What the fault scripts share: rows, a workload with known answers, the checks, and what is skipped."""

import csv
import hashlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time

ROWS = []


class Skip(Exception):
    """A row that cannot be tried here, and why."""


class Wrong(Exception):
    """A row that does not hold."""


def row(name, what):
    """Registers a test under the name of its row in docs/testing.md."""

    def add(test):
        ROWS.append((name, what, test))
        return test

    return add


def expect(holds, what):
    if not holds:
        raise Wrong(what)


def need(program):
    if shutil.which(program) is None:
        raise Skip(f"{program} is not here")


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root may mount")


def limits(stack=None, memory=None, file_bytes=None, files=None, ignore_xfsz=False, umask=None):
    """What a child does before it becomes the program."""

    def set_all():
        if umask is not None:
            os.umask(umask)
        if ignore_xfsz:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        pairs = (
            (resource.RLIMIT_STACK, stack),
            (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_FSIZE, file_bytes),
            (resource.RLIMIT_NOFILE, files),
        )
        for what, value in pairs:
            if value is not None:
                resource.setrlimit(what, (value, value))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return set_all


class Done:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __str__(self):
        return f"code {self.code} after {self.seconds:.1f} s: {self.out[-300:]!r} {self.err[-500:]!r}"


class Case:
    """One row being tried: where, with what, how long, and with which seed."""

    def __init__(self, asof, work, seed, long, messages):
        self.asof, self.work, self.seed, self.long, self.messages = asof, work, seed, long, messages
        self.rng = random.Random(seed)
        self.environment = {k: v for k, v in os.environ.items() if k not in ("ASOF_STORE", "ASOF_LOG")}
        self.environment["NO_COLOR"] = "1"
        self.children = []

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def start(self, *args, stdin=subprocess.DEVNULL, env=None, cwd=None, before=None, wrap=()):
        child = subprocess.Popen(
            [*wrap, self.asof, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environment, **(env or {})},
            cwd=cwd or self.work,
            preexec_fn=before,
        )
        self.children = [c for c in self.children if c.poll() is None] + [child]
        return child

    def end(self):
        """Ends what a row that failed has left running."""
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()

    def run(self, *args, timeout=600, **how):
        begun = time.monotonic()
        child = self.start(*args, **how)
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Wrong(f"no end within {timeout} s: {args}") from None
        seconds = time.monotonic() - begun
        return Done(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"), seconds)

    def ok(self, *args, **how):
        done = self.run(*args, **how)
        expect(done.code == 0, f"{args}: {done}")
        return done

    def ask(self, store, sql, **how):
        """The rows of an answer as lists of texts."""
        done = self.ok("sql", store, sql, "-o", "csv", "--no-header", **how)
        return [r for r in csv.reader(io.StringIO(done.out))]


class Workload:
    """Messages: 30 % inserts, 50 % updates, 20 % deletes, every tenth late, and what must come of them."""

    def __init__(self, case, messages=None, name="w"):
        self.case = case
        self.n = messages or case.messages
        self.file = case.path(name + ".ndjson")
        rng, last, keys = random.Random(case.seed), {}, max(1, self.n * 3 // 10)
        with open(self.file, "w", encoding="utf-8") as out:
            for i in range(self.n):
                fate = rng.random()
                op = "insert" if fate < 0.3 else "update" if fate < 0.8 else "delete"
                key = rng.randrange(keys)
                valid = i * 1000 - (rng.randrange(1, 500_000) if i % 10 == 9 else 0)
                message = {"id": key, "op": op, "valid_at": valid, "known_at": i * 1000, "v": rng.randrange(10**9)}
                out.write(json.dumps(message) + "\n")
                if (valid, i) > last.get(key, ((-(10**18), 0), None))[0]:
                    last[key] = ((valid, i), None if op == "delete" else message["v"])
        self.latest = sorted([str(k), str(v)] for k, (_, v) in last.items() if v is not None)
        self.reference = None

    def options(self, batch=None):
        options = ["--table", "w", "--format", "json", "--key", "id", "--op", "op", "--valid", "valid_at:us"]
        options += ["--system", "known_at:us", "--strict", "--quiet"]
        return options + (["--batch", str(batch)] if batch else [])

    def take(self, store, batch=None, **how):
        return self.case.run("ingest", store, self.file, *self.options(batch), **how)

    def start(self, store, batch=None, **how):
        return self.case.start("ingest", store, self.file, *self.options(batch), **how)

    def parts(self, count):
        """The messages as so many files, for intakes one after the other."""
        with open(self.file, encoding="utf-8") as file:
            lines = file.readlines()
        size = -(-len(lines) // count)
        paths = []
        for i in range(count):
            paths.append(self.case.path(f"part-{i:03}.ndjson"))
            with open(paths[-1], "w", encoding="utf-8") as out:
                out.writelines(lines[i * size : (i + 1) * size])
        return paths, size

    def digest(self, store):
        lines = sorted(",".join(r) for r in self.case.ask(store, "SELECT * FROM intervals('w')"))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def check(self, store, again=True):
        """C1 to C7: each message once, the state of the model, the digest of the reference, a sound store."""
        events = self.case.ask(store, "SELECT count(*) FROM history('w')")[0][0]
        expect(events == str(self.n), f"{events} events of {self.n}")
        latest = sorted(self.case.ask(store, "SELECT id, v FROM w"))
        expect(latest == self.latest, "the latest rows are not those of the model")
        digest = self.digest(store)
        if self.reference is None:
            self.reference = digest
        expect(digest == self.reference, "the interval rows are not those of the reference")
        self.case.ok("verify", store, "--full")
        if again:
            done = self.case.ok("ingest", store, self.file, *[o for o in self.options() if o != "--quiet"])
            expect(done.out.startswith("0 delivered"), f"a second run took something: {done}")

    def commit_list(self, store):
        """Number, instant and events of all commits: of what was acknowledged, nothing may ever be another."""
        return self.case.ask(store, "SELECT __COMMIT_SEQ, __COMMIT_AT, events FROM commits()")

    def commits(self, store):
        return int(self.case.ask(store, "SELECT count(*) FROM commits()")[0][0])


def log_bytes(store):
    """Bytes of the log as they are now."""
    total = 0
    try:
        for entry in os.scandir(os.path.join(store, "log")):
            total += entry.stat().st_size
    except FileNotFoundError:
        pass
    return total


def until_commit(child, store, base, patience=120):
    """Seconds until the log has grown, which is the first committed batch; None if the child ended before."""
    begun = time.monotonic()
    while time.monotonic() - begun < patience:
        if log_bytes(store) > base:
            return time.monotonic() - begun
        if child.poll() is not None:
            return None
        time.sleep(0.002)
    raise Wrong(f"no commit within {patience} s")


def temporary_files(store):
    return [f for d, _, files in os.walk(store) for f in files if f.endswith(".tmp")]


def spread(seconds):
    """Mean, standard deviation, least, most, and the 95 % interval of the mean, as text."""
    n = len(seconds)
    mean = sum(seconds) / n
    sd = (sum((s - mean) ** 2 for s in seconds) / (n - 1)) ** 0.5 if n > 1 else 0.0
    # Student's t for 95 %, by degrees of freedom.
    t = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}.get(n - 1, 2.0)
    half = t * sd / n**0.5 if n > 1 else 0.0
    return (
        f"mean {mean:.2f} s, SD {sd:.2f}, min {min(seconds):.2f}, max {max(seconds):.2f}, "
        f"95 % CI {max(0.0, mean - half):.2f} to {mean + half:.2f}, {n} runs"
    )
