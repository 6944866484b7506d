"""Hostile questions and damage, as people meet them (D6, D9, H8, H9, H10, H14)."""

import glob
import os
import pty
import select
import signal
import stat
import time

from common import Skip, Workload, expect, limits, row
from disks import Mounted


def small_store(case, name="store"):
    store = case.path(name)
    with open(case.path("t.ndjson"), "w", encoding="utf-8") as out:
        out.writelines(f'{{"id":{i},"v":"value {i}"}}\n' for i in range(50))
    case.ok("ingest", store, case.path("t.ndjson"), "--table", "t", "--key", "id", "--quiet")
    return store


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x20]))


@row("D6", "a flipped bit in the middle of the log: code 4, its place, the file untouched")
def middle(case):
    work = Workload(case, messages=min(case.messages, 2000))
    store = case.path("store")
    # Small enough to stay in the log alone, so that each opening reads all of it.
    done = work.take(store, batch=work.n // 10)
    expect(done.code == 0, str(done))
    [log] = glob.glob(os.path.join(store, "log", "*"))
    size, tried = os.path.getsize(log), 0
    for _ in range(100 if case.long else 12):
        at = case.rng.randrange(0, size * 9 // 10)
        before = open(log, "rb").read()
        flip(log, at)
        damaged = open(log, "rb").read()
        done = case.run("verify", store)
        expect(done.code in (1, 4), f"byte {at}: {done}")
        said = done.out + done.err
        expect("segment" in said and any(c.isdigit() for c in said), f"byte {at}: {done}")
        asked = case.run("sql", store, "SELECT count(*) FROM w")
        expect(asked.code in (0, 4), f"byte {at}: {asked}")
        taken = work.take(store)
        expect(taken.code in (0, 4), f"byte {at}: {taken}")
        expect(open(log, "rb").read() == damaged or taken.code == 0, f"byte {at}: the log was changed")
        with open(log, "wb") as file:
            file.write(before)
        tried += 1
    work.check(store, again=False)
    done = case.run("rebuild", store, "--salvage")
    expect(done.code == 1 and "not damaged" in done.err, f"a whole store: {done}")
    listed, whole = work.commit_list(store), open(log, "rb").read()
    flip(log, size // 2)
    expect("--salvage" in case.run("sql", store, "SELECT count(*) FROM w").err, "the hint of an error")
    done = case.ok("rebuild", store, "--salvage")
    kept = work.commit_list(store)
    expect(kept[:-1] == listed[: len(kept) - 1] and len(kept) <= len(listed), f"{len(kept)} of {len(listed)} commits: {done}")
    expect(f"lost         commit {len(kept)} and all behind it" in done.out, str(done))
    [copy] = glob.glob(os.path.join(store, "salvaged-1", "*"))
    cut = open(copy, "rb").read()
    expect(len(cut) < len(whole) and whole.endswith(cut[-1000:]), "what was cut is not what was kept")
    # The source still has what was lost, and the store knows that it has not.
    done = work.take(store)
    expect(done.code == 0, str(done))
    work.check(store)
    return f"{tried} bits, each told with its segment and offset; cut on request, {len(listed) - len(kept) + 1} commits lost and taken again"


@row("D9", "damage to the runs of one table: its questions are refused by name, others are answered")
def other_tables(case):
    store = case.path("store")
    lines = {}
    for table in ("a", "b"):
        path = case.path(table + ".ndjson")
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(f'{{"id":{i},"v":{i * 7}}}\n' for i in range(5000))
        case.ok("ingest", store, path, "--table", table, "--key", "id", "--quiet")
        lines[table] = case.ask(store, f"SELECT count(*), sum(v) FROM {table}")
    case.ok("compact", store)
    runs = sorted(p for p in glob.glob(os.path.join(store, "runs", "*.parquet")))
    expect(len(runs) == 2, f"{runs}")
    refused = 0
    for run in runs:
        size = os.path.getsize(run)
        for at in [case.rng.randrange(size) for _ in range(20 if case.long else 4)] + [size - 5]:
            flip(run, at)
            answers = {t: case.run("sql", store, f"SELECT count(*), sum(v) FROM {t}", "-o", "csv", "--no-header") for t in "ab"}
            codes = [answers[t].code for t in "ab"]
            expect(all(c in (0, 4) for c in codes) and codes.count(4) < 2, f"byte {at} of {run}: {codes}")
            for t in "ab":
                if codes["ab".index(t)] == 4:
                    refused += 1
                    expect(os.path.basename(run) in answers[t].err, str(answers[t]))
                else:
                    expect(answers[t].out.strip().split(",") == lines[t][0], f"byte {at}: a wrong answer")
            expect(case.run("verify", store).code in (1, 4), f"byte {at} of {run}: verify saw nothing")
            flip(run, at)
    expect(refused > 2, f"{refused}")
    return f"{refused} questions refused with the name of the run, no wrong answer"


ENDLESS = (
    "SELECT count(*) FROM generate_series(1, 1000000000000)",
    "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT count(*) FROM r",
    "SELECT a.value, count(*) FROM generate_series(1, 10000000) a JOIN generate_series(1, 10000000) b "
    "ON a.value % 3 = b.value % 3 GROUP BY 1",
)


@row("H9", "endless questions: over soon after Ctrl-C, and at their timeout")
def endless(case):
    store, slowest = small_store(case), 0.0
    for sql in ENDLESS:
        child = case.start("sql", store, sql)
        time.sleep(0.7)
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        slowest = max(slowest, time.monotonic() - begun)
        expect(child.returncode == 130, f"{sql}: code {child.returncode}")
        done = case.run("sql", store, sql, "--timeout", "500ms", timeout=60)
        expect(done.code == 124, f"{sql}: {done}")
        slowest = max(slowest, done.seconds - 0.5)
    expect(slowest < 10, f"{slowest:.1f} s")
    return f"{len(ENDLESS)} questions, over within {slowest:.2f} s"


SPILLS = "SELECT count(*) FROM (SELECT repeat(CAST(value AS VARCHAR), 8) AS t FROM generate_series(1, 600000) GROUP BY 1)"


def spilled(state):
    """Files with rows that a question has put away."""
    return [os.path.join(d, f) for d, _, files in os.walk(state) for f in files if f != "LOCK"]


@row("H8", "a question killed while it spills, and no room to spill to: private files, which the next command removes")
def spills(case):
    store, state, temporary = small_store(case), case.path("state"), case.path("tmp")
    os.mkdir(temporary)
    env = {"XDG_STATE_HOME": state, "TMPDIR": temporary}
    ask = ["sql", store, SPILLS, "-o", "csv", "--memory", "64MB"]
    for _ in range(3 if case.long else 1):
        child = case.start(*ask, env=env, before=limits(umask=0))
        begun = time.monotonic()
        while not spilled(state):
            expect(child.poll() is None and time.monotonic() - begun < 60, "the question does not spill")
            time.sleep(0.01)
        for name in os.listdir(os.path.join(state, "asof", "spill")):
            mode = stat.S_IMODE(os.stat(os.path.join(state, "asof", "spill", name)).st_mode)
            expect(mode == 0o700, f"{name} has mode {mode:03o}: others could read what is in it")
        # Another question beside it leaves its files alone.
        case.ok("sql", store, "SELECT 1", env=env)
        child.kill()
        child.communicate()
        expect(spilled(state), "the kill left nothing to remove, or another question removed it")
        case.ok("sql", store, "SELECT 1", env=env)
        left = os.listdir(os.path.join(state, "asof", "spill"))
        expect(not left and not os.listdir(temporary), f"left: {left} {os.listdir(temporary)}")
    done = case.run(*ask, env=env)
    expect(done.code == 0 and done.out == "count(*)\n600000\n" and not os.listdir(os.path.join(state, "asof", "spill")), f"{done.code} {done.err}")
    try:
        disk = Mounted(case, "h8", 4, "tmpfs")
    except Skip as reason:
        return f"killed: nothing left; a full disk: skipped, {reason}"
    with disk:
        full = {**env, "XDG_STATE_HOME": disk.at}
        done = case.run(*ask, env=full)
        expect(done.code == 1 and "error:" in done.err, f"a full disk: {done}")
        left = os.listdir(os.path.join(disk.at, "asof", "spill"))
        expect(not left, f"a full disk: left {left}")
        case.ok("sql", store, "SELECT count(*) FROM t", env=full)
    return "killed while it spills: nothing is left; a full disk: an error, nothing is left"


@row("H10", "statements that kill parsers: refused before they are parsed, and the process lives")
def killers(case):
    store = small_store(case)
    statements = {
        "20,000 x 1+1": "SELECT " + "1+" * 20_000 + "1",
        "50,000 OR": "SELECT 1 WHERE " + "1 = 2 OR " * 50_000 + "true",
        "2,000 UNION ALL": "SELECT 1" + " UNION ALL SELECT 1" * 2_000,
        "100,000 parentheses": "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
        "a literal of 10 MB": "SELECT '" + "x" * (10 << 20) + "'",
        "lpad to 2,000,000,000": "SELECT length(lpad('x', 2000000000))",
        "repeat to 2,000,000,000": "SELECT length(repeat('ab', 1000000000))",
    }
    slowest = 0.0
    for what, sql in statements.items():
        path = case.path("statement.sql")
        with open(path, "w", encoding="utf-8") as out:
            out.write(sql)
        done = case.run("sql", store, "-f", path, timeout=60)
        expect(done.code == 1 and done.err.startswith("error:"), f"{what}: {done}")
        slowest = max(slowest, done.seconds)
    return f"{len(statements)} statements refused, the slowest in {slowest:.2f} s"


def on_a_terminal(case, *args):
    """What a command shows on a terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(case.asof, [case.asof, *args], {**case.environment, "TERM": "xterm"})
    shown, begun = b"", time.monotonic()
    while time.monotonic() - begun < 60:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                part = os.read(fd, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.waitpid(pid, 0)
    os.close(fd)
    return shown


@row("H14", "values that command terminals: shown as text; a pipe that closes: a quiet end")
def terminal(case):
    store = case.path("store")
    hostile = ["\x1b[2J\x1b[31mred", "\x1b]52;c;ZXZpbA==\x07", "a\rb", "\u202eevil", "\x9b2J", "\x00", "tab\tnewline\n"]
    with open(case.path("h.ndjson"), "w", encoding="utf-8") as out:
        import json

        out.writelines(json.dumps({"id": i, "v": v}) + "\n" for i, v in enumerate(hostile))
    case.ok("ingest", store, case.path("h.ndjson"), "--table", "t", "--key", "id", "--quiet")
    for mode in ("table", "vertical", "markdown"):
        shown = on_a_terminal(case, "sql", store, "SELECT * FROM t ORDER BY id", "-o", mode)
        expect(b"red" in shown, f"{mode}: {shown!r}")
        for bad in (b"\x1b[2J", b"\x1b[31m", b"\x1b]52", b"a\rb", "\u202e".encode(), "\x9b".encode(), b"\x00", b"\x07"):
            expect(bad not in shown, f"{mode}: {bad!r} reached the terminal")
    shown = on_a_terminal(case, "sql", store, 'SELECT "\x1b[2Jx" FROM t')
    expect(b"\x1b[2J" not in shown, f"an error showed it: {shown!r}")
    child = case.start("sql", store, "SELECT * FROM generate_series(1, 5000000)")
    child.stdout.readline()
    child.stdout.close()
    err = child.stderr.read()
    expect(child.wait(timeout=60) == 0 and not err, f"a closed pipe: {child.returncode} {err!r}")
    return f"{len(hostile)} values in 3 modes, and in an error"
