"""Faults of file systems: real ones in images, small ones, and ones that lie (D3, D12, D15, S4)."""

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import time

from common import Skip, Workload, expect, limits, log_bytes, need, need_root, row, temporary_files, until_commit
from processes import beside_the_paper

# ioctl of ext4 and XFS that ends all input and output; 2: without writing the journal first.
SHUTDOWN, NO_FLUSH = 0x8004587D, 2

LIAR = """
int fsync(int fd) { return 0; }
int fdatasync(int fd) { return 0; }
int syncfs(int fd) { return 0; }
int sync_file_range(int fd, long long o, long long n, unsigned f) { return 0; }
"""


def sh(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


class Mounted:
    """An ext4 image, or a tmpfs, that is mounted for a while."""

    def __init__(self, case, name, megabytes, kind="ext4", image=None):
        need_root()
        need("mount")
        self.at, self.image = case.path(name), image
        os.makedirs(self.at, exist_ok=True)
        self.kind, self.megabytes = kind, megabytes
        if kind == "ext4" and image is None:
            need("mkfs.ext4")
            self.image = case.path(name + ".img")
            with open(self.image, "wb") as file:
                file.truncate(megabytes << 20)
            code, said = sh("mkfs.ext4", "-q", "-F", "-m", "0", self.image)
            expect(code == 0, said)
        self.mount()

    def mount(self):
        if self.kind == "ext4":
            code, said = sh("mount", "-o", "loop", self.image, self.at)
        else:
            code, said = sh("mount", "-t", "tmpfs", "-o", f"size={self.megabytes}m", "tmpfs", self.at)
        if code != 0:
            raise Skip(f"mounting is not permitted: {said}")

    def again(self, options):
        code, said = sh("mount", "-o", "remount," + options, self.at)
        expect(code == 0, said)

    def shut_down(self):
        fd = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, ctypes.c_uint32(NO_FLUSH))
        except OSError as e:
            raise Skip(f"the file system cannot be shut down: {e}") from None
        finally:
            os.close(fd)

    def unmount(self, lazy=False):
        for _ in range(50):
            code, said = sh("umount", *(["-l"] if lazy else []), self.at)
            if code == 0 or "not mounted" in said:
                return
            time.sleep(0.1)
        sh("umount", "-l", self.at)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unmount()


def cut(case, work, name, environment=None):
    """An intake of parts on ext4, stopped in one of them, and the image copied as a power cut leaves it: parts
    that were acknowledged, the image, and whether a bystander survived whose bytes nobody synced."""
    parts, size = work.parts(8)
    with Mounted(case, name, 512) as disk:
        os.sync()
        store, bystander, acknowledged = os.path.join(disk.at, "store"), os.path.join(disk.at, "bystander"), 0
        stop_in = case.rng.randrange(1, len(parts))
        for n, part in enumerate(parts):
            child = case.start("ingest", store, part, *work.options(batch=max(1, size // 4)), env=environment)
            if n == stop_in:
                until_commit(child, store, log_bytes(store))
                time.sleep(case.rng.uniform(0, 0.05))
                with open(bystander, "wb") as file:
                    file.write(b"x" * 100_000)
                child.send_signal(signal.SIGSTOP)
                break
            out, err = child.communicate(timeout=300)
            expect(child.returncode == 0, f"{out!r} {err!r}")
            acknowledged += 1
        copy = case.path(name + "-copy.img")
        code, said = sh("cp", "--sparse=always", disk.image, copy)
        child.kill()
        child.communicate()
        expect(code == 0, said)
    os.remove(disk.image)
    with Mounted(case, name + "-copy", 512, image=copy) as disk:
        bystander = os.path.join(disk.at, "bystander")
        alive = os.path.exists(bystander) and open(bystander, "rb").read() == b"x" * 100_000
        after(case, work, disk, parts, size, acknowledged, strict=environment is None)
        left = acknowledged_lost(case, disk, size, acknowledged)
    os.remove(copy)
    return left, alive


def acknowledged_lost(case, disk, size, acknowledged):
    done = case.run("sql", os.path.join(disk.at, "store"), "SELECT count(*) FROM history('w')", "-o", "csv", "--no-header")
    return done.code != 0 or int(done.out) < acknowledged * size


def after(case, work, disk, parts, size, acknowledged, strict):
    """What is there after a cut is sound, whole commits, and goes on; on a lying disk it may be refused."""
    store = os.path.join(disk.at, "store")
    if not strict:
        done = case.run("verify", store, "--full")
        expect(done.code == 0 or done.err or done.out, str(done))
        return
    case.ok("verify", store, "--full")
    events = int(case.ask(store, "SELECT count(*) FROM history('w')")[0][0])
    batch = max(1, size // 4)
    expect(events >= acknowledged * size, f"{acknowledged} parts of {size} were acknowledged, {events} events are there")
    whole = {acknowledged * size + min(k * batch, size) for k in range(6)}
    expect(events in whole, f"{events} events are no whole commits")
    kept = case.path("kept")
    # A process that was cut off left its socket, which is no file.
    shutil.copytree(store, kept, ignore=shutil.ignore_patterns("socket"))
    for part in parts:
        case.ok("ingest", kept, part, *work.options(batch=batch))
    work.check(kept, again=False)
    shutil.rmtree(kept)


@row("D3", "power cut on real ext4 in the middle of an intake")
def power_cut(case):
    work = Workload(case)
    rounds = 25 if case.long else 3
    bystanders = 0
    for n in range(rounds):
        lost, alive = cut(case, work, f"d3-{n}")
        expect(not lost, f"round {n}: acknowledged commits are gone")
        bystanders += alive
    expect(bystanders < rounds, "no bystander was lost: the cut does not bite")
    return f"{rounds} cuts, nothing acknowledged lost; an unsynced bystander was lost {rounds - bystanders} times"


@row("D12", "the same on a disk that lies about syncs: the loss must be seen")
def lying(case):
    need_root()
    need("cc")
    source, library = case.path("liar.c"), case.path("liar.so")
    with open(source, "w", encoding="ascii") as file:
        file.write(LIAR)
    code, said = sh("cc", "-shared", "-fPIC", "-o", library, source)
    if code != 0:
        raise Skip(f"no library can be built: {said}")
    work = Workload(case)
    rounds = 15 if case.long else 4
    lost = sum(cut(case, work, f"d12-{n}", {"LD_PRELOAD": library})[0] for n in range(rounds))
    expect(lost > 0, f"of {rounds} cuts on a lying disk none lost anything: D3 proves nothing")
    return f"{lost} of {rounds} cuts lost acknowledged commits or the store: the harness sees it"


def resumes(case, work, store, batch, fault, seconds):
    base = log_bytes(store)
    child = work.start(store, batch=batch)
    waited = until_commit(child, store, base)
    if waited is not None:
        seconds.append(time.monotonic() - fault)
    out, err = child.communicate(timeout=600)
    expect(child.returncode == 0, f"{out[-300:]!r} {err[-300:]!r}")
    work.check(store)
    expect(not temporary_files(store), f"left: {temporary_files(store)}")


@row("S4", "storage away in the middle of an intake: read-only, unmounted, input and output shut down; then back")
def away(case):
    work = Workload(case)
    batch, told, seconds = max(1, work.n // 40), [], []
    with Mounted(case, "s4-ro", 512) as disk:
        store = os.path.join(disk.at, "store")
        child = work.start(store, batch=batch)
        until_commit(child, store, 0)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=120)
        disk.again("ro")
        done = work.take(store, batch=batch)
        expect(done.code not in (0, -signal.SIGKILL) and "error:" in done.err, str(done))
        case.ask(store, "SELECT count(*) FROM w")
        disk.again("rw")
        fault = time.monotonic()
        resumes(case, work, store, batch, fault, seconds)
        told.append(f"read-only: code {done.code}, reads go on")
    for what in ("shut down", "unmounted"):
        with Mounted(case, "s4-" + what.split()[0], 512) as disk:
            store = os.path.join(disk.at, "store")
            child = work.start(store, batch=batch)
            expect(until_commit(child, store, 0) is not None, "the intake was over before the fault")
            if what == "shut down":
                disk.shut_down()
            else:
                disk.unmount(lazy=True)
            out, err = child.communicate(timeout=300)
            if what == "shut down":
                expect(child.returncode != 0 and b"error:" in err, f"{child.returncode} {out!r} {err!r}")
                disk.unmount()
            else:
                done = case.run("sql", store, "SELECT 1")
                expect(done.code == 2 and "error:" in done.err, str(done))
            time.sleep(0.2)
            disk.mount()
            fault = time.monotonic()
            resumes(case, work, store, batch, fault, seconds)
            told.append(f"{what}: code {child.returncode}")
    return f"{'; '.join(told)}; {beside_the_paper('S4', seconds)}"


@row("D15", "no space: a small tmpfs, a small ext4, a limit of file sizes; then room again")
def full(case):
    work = Workload(case)
    told = []
    batch = max(1, work.n // 40)
    for name, limit in (("ignored", True), ("fatal", False)):
        store = case.path("d15-" + name)
        most = max(200_000, os.path.getsize(work.file) // 6)
        done = work.take(store, batch=batch, before=limits(file_bytes=most, ignore_xfsz=limit))
        expect(done.code not in (0, None), str(done))
        expect(not limit or "error:" in done.err, str(done))
        resumes(case, work, store, batch, time.monotonic(), [])
        told.append(f"limit of {most} bytes, signal {name}: code {done.code}")
    whole = case.path("d15-whole")
    expect(work.take(whole, batch=batch).code == 0, "the whole store")
    # What is flushed at the end is derived: a disk that has no room for it refuses no commit.
    needed = log_bytes(whole)
    for kind in ("tmpfs", "ext4"):
        try:
            disk = Mounted(case, "d15-" + kind, max(16, needed >> 19), kind)
        except Skip as reason:
            told.append(f"{kind}: skipped, {reason}")
            continue
        with disk:
            fill = os.path.join(disk.at, "fill")
            store = os.path.join(disk.at, "store")
            left = os.statvfs(disk.at)
            with open(fill, "wb") as file:
                file.write(b"x" * max(0, left.f_bavail * left.f_frsize - needed // 2))
            done = work.take(store, batch=batch)
            expect(done.code != 0 and "error:" in done.err, f"{kind}: {done}")
            if log_bytes(store):
                commits = work.commits(store)
                events = int(case.ask(store, "SELECT count(*) FROM history('w')")[0][0])
                expect(events == commits * batch, f"{kind}: {events} events in {commits} commits")
            os.remove(fill)
            resumes(case, work, store, batch, time.monotonic(), [])
            told.append(f"{kind}: code {done.code}")
        told.append(f"{kind} at closing: code {full_at_closing(case, work, kind, needed)}")
    return "; ".join(told)


def full_at_closing(case, work, kind, needed):
    """Room for the log and for nothing that is made of it: all is stored, and what was not done is told."""
    # So many that closing flushes them.
    work = work if work.n >= 20_000 else Workload(case, messages=20_000, name="closing")
    with Mounted(case, "closing-" + kind, max(16, needed >> 19), kind) as disk:
        store, fill = os.path.join(disk.at, "store"), os.path.join(disk.at, "fill")
        left = os.statvfs(disk.at)
        with open(fill, "wb") as file:
            file.write(b"x" * max(0, left.f_bavail * left.f_frsize - needed - (128 << 10)))
        done = work.take(store, batch=max(1, work.n // 40))
        expect(done.code == 1 and "closing the store failed" in done.err and "No space" in done.err, f"{kind}: {done}")
        events = int(case.ask(store, "SELECT count(*) FROM history('w')")[0][0])
        expect(events == work.n, f"{kind}: {events} events of {work.n}")
        os.remove(fill)
        case.ok("compact", store)
        work.check(store)
        return done.code
