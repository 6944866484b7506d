"""Secrets and private files (A12, A13)."""

import http.server
import os
import stat
import threading

from common import expect, limits, row

CANARY = "hunter2-canary-secret"


def scan(directory):
    """Files below that hold the canary."""
    found = []
    for where, _, files in os.walk(directory):
        for name in files:
            path = os.path.join(where, name)
            if os.path.isfile(path) and CANARY.encode() in open(path, "rb").read():
                found.append(path)
    return found


class Refuses(http.server.BaseHTTPRequestHandler):
    """A registry that refuses everybody, and repeats what it was sent."""

    def do_GET(self):
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b'{"message":"no"}')

    def log_message(self, *_):
        pass


@row("A12", "secrets: in no output, no error, no file, no debug log")
def secrets(case):
    # Of schema 7, which only the registry knows.
    with open(case.path("one.kdump.jsonl"), "w", encoding="utf-8") as out:
        out.write('{"topic":"t","partition":0,"offset":0,"value_b64":"AAAAAAcCAg=="}\n')
    # What goes into quarantine keeps the options it came with.
    with open(case.path("m.ndjson"), "w", encoding="utf-8") as out:
        out.write('{"id":1,"v":"x"}\nnonsense\n')
    with open(case.path("auth"), "w", encoding="utf-8") as out:
        out.write(f"user:{CANARY}\n")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    said, tried, asked = [], 0, 0
    places = [f"127.0.0.1:{port}", "127.0.0.1:1", "no.such.host.invalid", "127.0.0.1:99999", "[::"]
    for number, place in enumerate(places):
        ways = (
            (["--registry", f"http://user:{CANARY}@{place}"], {}),
            (["--registry", f"http://{place}", "--registry-auth", case.path("auth")], {}),
            (["--registry", f"http://{place}"], {"ASOF_REGISTRY_AUTH": f"user:{CANARY}"}),
        )
        for source in ("m.ndjson", "one.kdump.jsonl"):
            # Where nobody answers, it is asked for seconds: one way of each.
            patient = number > 0 and source != "m.ndjson" and not case.long
            for options, env in ways[number % 3 :][:1] if patient else ways:
                for debug in ({"ASOF_LOG": "debug"},) if patient else ({}, {"ASOF_LOG": "debug"}):
                    tried += 1
                    store = case.path(f"s{tried % 3}")
                    args = ["ingest", store, case.path(source), "--table", "t", "--key", "id", *options]
                    if source != "m.ndjson":
                        args += ["--format", "avro"]
                    done = case.run(*args, env={**debug, **env}, timeout=120)
                    asked += "the registry" in done.err
                    said.append(done.out + done.err)
                    for more in (["status", store], ["quarantine", "list", store], ["sql", store, "SELECT * FROM commits()"]):
                        done = case.run(*more, env=debug)
                        said.append(done.out + done.err)
    server.shutdown()
    expect(asked >= 8, f"the registry was asked in {asked} of {tried} intakes")
    expect(not any(CANARY in s for s in said), "printed: " + next((s for s in said if CANARY in s), ""))
    os.remove(case.path("auth"))
    found = scan(case.work)
    expect(not found, f"stored: {found}")
    return f"{tried} intakes, of which {asked} asked a registry, with a password in the address, in a file, in the environment"


@row("A13", "files 0600 and directories 0700 under any umask; planted links are not followed")
def private(case):
    with open(case.path("m.ndjson"), "w", encoding="utf-8") as out:
        out.writelines(f'{{"id":{i},"v":"x"}}\n' for i in range(200))
    tried, canary = 0, case.path("canary")
    with open(canary, "w", encoding="utf-8") as out:
        out.write("untouched")
    for mask in (0o000, 0o022, 0o077):
        store = case.path(f"u{mask:03o}")
        take = ["ingest", store, case.path("m.ndjson"), "--table", "t", "--key", "id", "--quiet"]
        case.ok(*take, before=limits(umask=mask))
        case.ok("compact", store, before=limits(umask=mask))
        case.ok("rebuild", store, before=limits(umask=mask))
        for where, directories, files in os.walk(store):
            for name, wanted in [(d, 0o700) for d in directories] + [(f, 0o600) for f in files]:
                mode = stat.S_IMODE(os.lstat(os.path.join(where, name)).st_mode)
                tried += 1
                expect(mode == wanted, f"umask {mask:03o}: {where}/{name} has mode {mode:03o}")
        expect(stat.S_IMODE(os.stat(store).st_mode) == 0o700, f"{store}")
    planted = ["manifest.tmp", "manifest", "LOCK", "index.redb", "log", "runs", "commits-000000000001"]
    for name in planted:
        store = case.path("planted-" + name)
        case.ok("ingest", store, case.path("m.ndjson"), "--table", "t", "--key", "id", "--quiet")
        path = os.path.join(store, name)
        if os.path.isdir(path):
            os.rename(path, case.path("moved-" + name))
        elif os.path.exists(path):
            os.remove(path)
        os.symlink(canary, path)
        with open(case.path("n.ndjson"), "w", encoding="utf-8") as out:
            out.write('{"id":999,"v":"y"}\n')
        done = case.run("ingest", store, case.path("n.ndjson"), "--table", "t", "--key", "id", "--quiet")
        expect(done.code == 0 or "error:" in done.err, f"{name}: {done}")
        done = case.run("compact", store)
        expect(done.code == 0 or "error:" in done.err, f"{name}: {done}")
        with open(canary, encoding="utf-8") as file:
            expect(file.read() == "untouched", f"{name}: the link was followed")
    for directory in ("log", "runs"):
        store = case.path("inside-" + directory)
        case.ok("ingest", store, case.path("m.ndjson"), "--table", "t", "--key", "id", "--quiet")
        case.ok("compact", store)
        for name in sorted(os.listdir(os.path.join(store, directory))):
            path, outside = os.path.join(store, directory, name), case.path(f"outside-{name}")
            os.rename(path, outside)
            os.symlink(outside, path)
            planted.append(f"{directory}/{name}")
            with open(outside, "rb") as file:
                before = file.read()
            for args in (["ingest", store, case.path("n.ndjson"), "--table", "t", "--key", "id"], ["sql", store, "SELECT v FROM t"]):
                done = case.run(*args)
                expect(done.code != 0 and "symbolic link" in done.err, f"{path}: {args[0]}: {done}")
            with open(outside, "rb") as file:
                expect(file.read() == before, f"{path}: the link was followed")
            os.remove(path)
            os.rename(outside, path)
        case.ok("verify", store)
    return f"{tried} modes under 3 umasks; {len(planted)} links planted"
