"""Faults of whole processes: kills, signals, limits (S0, S1, S2, S5, D17, D24, H16)."""

import os
import shutil
import signal
import time

from common import Skip, Workload, Wrong, expect, limits, log_bytes, need, row, spread, temporary_files, until_commit

# Recovery times of the paper, seconds: full rewrite, merge by key.
PAPER = {"S1": (94, 51), "S2": (38, 27), "S4": (116, 83), "S5": (128, 91)}


def beside_the_paper(name, seconds):
    whole, merge = PAPER[name]
    text = spread(seconds) if seconds else "no fault hit a running intake"
    return f"from the fault to the first committed batch: {text} (the paper: {whole} s / {merge} s)"


@row("S0", "no fault: the reference, and its spread")
def control(case):
    work = Workload(case)
    merge, whole = [], []
    for n in range(10 if case.long else 3):
        store = case.path(f"s0-{n}")
        done = work.take(store)
        expect(done.code == 0, str(done))
        merge.append(done.seconds)
        if n == 0:
            work.check(store)
        whole.append(case.ok("compact", store).seconds)
        work.check(store, again=False)
        shutil.rmtree(store)
    rates = f"{work.n / (sum(merge) / len(merge)):,.0f} messages a second"
    return f"{work.n} messages; intake: {spread(merge)}, {rates}; compaction: {spread(whole)}; all digests equal"


def whole_time(work):
    store = work.case.path("timed")
    done = work.take(store, batch=max(1, work.n // 20))
    expect(done.code == 0, str(done))
    work.check(store, again=False)
    shutil.rmtree(store)
    return done.seconds


@row("S1", "kill -9, TERM and INT of an intake at any time: it goes on where it was, by itself")
def killed(case):
    work = Workload(case)
    batch, seconds, store = max(1, work.n // 20), whole_time(work), case.path("s1")
    recovery, hits, before = [], 0, []
    for n in range(50 if case.long else 6):
        child = work.start(store, batch=batch)
        time.sleep(case.rng.uniform(0.02, max(0.1, seconds)))
        child.kill()
        child.communicate()
        if child.returncode == 0:
            expect(work.commit_list(store)[: len(before)] == before, f"round {n}: commits were lost and taken again")
            work.check(store)
            shutil.rmtree(store)
            before = []
            continue
        expect(child.returncode == -signal.SIGKILL, f"round {n}: code {child.returncode}")
        base, listed = log_bytes(store), []
        if os.path.isdir(os.path.join(store, "log")) and case.run("status", store).code == 0:
            listed = work.commit_list(store)
            commits = len(listed)
            if commits:
                events = int(case.ask(store, "SELECT count(*) FROM history('w')")[0][0])
                expect(events == min(commits * batch, work.n), f"round {n}: {events} events in {commits} commits of {batch}")
                case.ok("verify", store)
        # What was lost and taken again has another instant.
        expect(listed[: len(before)] == before, f"round {n}: {len(before)} commits, then {len(listed)}, not the same")
        hits += len(listed) > len(before)
        before = listed
        again = work.start(store, batch=batch)
        waited = until_commit(again, store, base)
        again.kill()
        again.communicate()
        if waited is not None:
            recovery.append(waited)
    for name in (signal.SIGTERM, signal.SIGINT):
        child = work.start(store, batch=batch)
        time.sleep(seconds / 4)
        child.send_signal(name)
        _, err = child.communicate(timeout=120)
        expect(child.returncode == 0, f"{name.name}: code {child.returncode}: {err[-300:]!r}")
    done = work.take(store, batch=batch)
    expect(done.code == 0, str(done))
    expect(work.commit_list(store)[: len(before)] == before, "commits were lost and taken again")
    work.check(store)
    expect(not temporary_files(store), f"left: {temporary_files(store)}")
    return f"{hits} kills after a commit of their round; {beside_the_paper('S1', recovery)}"


@row("S2", "the memory of the decoding process ends: a code that is not 0, and the next run goes on")
def starved(case):
    work = Workload(case)
    batch, seconds, codes, store = max(1, work.n // 20), [], [], case.path("s2")
    for megabytes in (96, 128, 160, 200, 240, 280, 320, 360, 400, 500):
        done = work.take(store, batch=batch, before=limits(memory=megabytes << 20))
        if done.code == 0:
            work.check(store, again=False)
            break
        codes.append(done.code)
        expect(done.code in (1, 2, 5, 101, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL, 127), str(done))
        fault, base = time.monotonic(), log_bytes(store)
        again = work.start(store, batch=batch)
        waited = until_commit(again, store, base)
        if waited is not None:
            seconds.append(time.monotonic() - fault)
        again.kill()
        again.communicate()
    expect(codes, "no limit was small enough")
    done = work.take(store, batch=batch)
    expect(done.code == 0, str(done))
    work.check(store)
    return f"codes {sorted(set(codes))} under {len(codes)} limits; {beside_the_paper('S2', seconds)}"


STEPS = "fdatasync,fsync,rename,renameat,renameat2,unlink,unlinkat,ftruncate"


def traced(name, calls, n):
    return ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={n}")


def can_trace(case):
    need("strace")
    done = case.run("--version", wrap=("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=close"))
    if done.code != 0:
        raise Skip(f"strace may not trace here: {done.err[-100:]}")


@row("S5", "killed at every step of a commit and of a compaction: old or new, whole or absent")
def at_every_step(case):
    can_trace(case)
    work = Workload(case, messages=min(case.messages, 60_000))
    parts, size = work.parts(6)
    template = case.path("template")
    for part in parts[:-1]:
        case.ok("ingest", template, part, *work.options(batch=size))
    seconds, killed = {}, {}
    jobs = {
        "commit": (["ingest", None, parts[-1], *work.options(batch=max(1, size // 3))], "pwrite64," + STEPS),
        "compaction": (["compact", None], STEPS),
    }
    for what, (args, calls) in jobs.items():
        seconds[what], killed[what], n = [], 0, 1
        while True:
            store = case.path(f"s5-{what}")
            shutil.copytree(template, store)
            command = [store if a is None else a for a in args]
            done = case.run(*command, wrap=traced(what, calls, n))
            expect(done.code in (0, -signal.SIGKILL, 137), f"step {n} of {what}: {done}")
            if done.code == 0:
                shutil.rmtree(store)
                break
            killed[what] += 1
            fault = time.monotonic()
            events = int(case.ask(store, "SELECT count(*) FROM history('w')")[0][0])
            whole = {size * 5 + k * max(1, size // 3) for k in range(4)} | {work.n}
            expect(events in whole or (what == "compaction" and events == size * 5), f"step {n} of {what}: {events} events")
            base = log_bytes(store)
            again = case.start("ingest", store, parts[-1], *work.options(batch=size))
            waited = until_commit(again, store, base)
            if waited is not None:
                seconds[what].append(time.monotonic() - fault)
            again.communicate()
            expect(again.returncode == 0, f"step {n} of {what}: the next intake left with {again.returncode}")
            case.ok("compact", store)
            work.check(store, again=False)
            expect(not temporary_files(store), f"step {n} of {what} left {temporary_files(store)}")
            shutil.rmtree(store)
            n += 1 if case.long else case.rng.randrange(1, 4)
    counts = ", ".join(f"{n} steps of a {what}" for what, n in killed.items())
    expect(all(n > 3 for n in killed.values()), f"too few kills: {counts}")
    return f"{counts}; {beside_the_paper('S5', [s for each in seconds.values() for s in each])}"


@row("D17", "few files may be open: an error or an answer, and no commit lost")
def few_files(case):
    work = Workload(case, messages=min(case.messages, 30_000))
    parts, _ = work.parts(12)
    store = case.path("d17")
    codes = []
    for n, part in enumerate(parts):
        done = case.run("ingest", store, part, *work.options(), before=limits(files=5 + n))
        codes.append(done.code)
        expect(done.code in (0, 1, 2, 4, 5), str(done))
        expect(done.code == 0 or "error:" in done.err, str(done))
    options = [o for o in work.options() if o != "--quiet"]
    for part, code in zip(parts, codes):
        again = case.ok("ingest", store, part, *options)
        # Who was told that it is stored finds it stored.
        expect(code != 0 or again.out.startswith("0 delivered"), f"{part} was not stored: {again}")
    asked = case.run("sql", store, "SELECT count(*) FROM w", before=limits(files=9))
    expect(asked.code == 0 or "error:" in asked.err, str(asked))
    work.check(store, again=False)
    expect(0 in codes and any(codes), f"codes {codes}: the limits did not meet the faults")
    return f"codes {codes} with 5 to {5 + 11} files"


@row("D24", "the time to open a store that was killed")
def reopened(case):
    work = Workload(case)
    store = case.path("d24")
    child = work.start(store, batch=max(1, work.n // 20))
    begun = time.monotonic()
    while work_left(child) and log_bytes(store) < os.path.getsize(work.file) / 3 and time.monotonic() - begun < 600:
        time.sleep(0.002)
    child.kill()
    child.communicate()
    taken = time.monotonic() - begun
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(store) for f in files)
    asked = case.ok("sql", store, "SELECT count(*) FROM w")
    expect(asked.seconds < 5 + taken, f"{asked.seconds:.1f} s to the first answer after {taken:.1f} s of intake")
    opened = case.ok("ingest", store, work.file, *work.options())
    work.check(store)
    return f"{size >> 20} MB: {asked.seconds:.2f} s to the first answer, {opened.seconds:.2f} s to the end of the intake"


def work_left(child):
    return child.poll() is None


@row("H16", "little memory, a small stack: an error or a crash, and the store is whole")
def small(case):
    work = Workload(case, messages=min(case.messages, 30_000))
    told = []
    for name, limit in (
        ("300 MB", limits(memory=300 << 20)),
        ("150 MB", limits(memory=150 << 20)),
        ("a stack of 256 KB", limits(stack=256 << 10)),
    ):
        store = case.path("h16-" + name.replace(" ", ""))
        done = work.take(store, batch=max(1, work.n // 10), before=limit)
        expect(done.code >= -31 and (done.code <= 0 or "error" in done.err or "panicked" in done.err or done.err), str(done))
        again = work.take(store)
        expect(again.code == 0, str(again))
        work.check(store, again=False)
        asked = case.run("sql", store, "SELECT count(*), sum(v) FROM w", before=limit)
        expect(asked.code == 0 or asked.err or asked.code < 0, str(asked))
        told.append(f"{name}: intake {done.code}, question {asked.code}")
    return "; ".join(told)
