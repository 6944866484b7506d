"""Plays a session on a terminal of its own, for the tests in wishes.rs.

Reads a play from standard input: {"argv", "env", "cwd", "rows", "columns", "steps"}, a step being ["send", text],
["expect", text, seconds] or ["end", seconds]. Writes what came of it: {"seen", "seconds", "failed", "code"}, with all
that the terminal was sent, the time of each step, the number of the first step that failed and how the program
ended.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time


class Terminal:
    def __init__(self, play):
        self.seen, self.at, self.code = b"", 0, None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(play["cwd"])
            size = struct.pack("HHHH", play["rows"], play["columns"], 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.execve(play["argv"][0], play["argv"], {"TERM": "xterm", **play["env"]})

    def read(self, seconds):
        """Takes what comes; False when the program has closed its terminal."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            part = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += part
        return bool(part)

    def expect(self, text, seconds):
        """Waits until `text` comes behind what was expected last."""
        text, until = text.encode(), time.monotonic() + seconds
        while True:
            found = self.seen.find(text, self.at)
            if found >= 0:
                self.at = found + len(text)
                return True
            left = until - time.monotonic()
            if left <= 0 or not self.read(min(left, 0.05)):
                found = self.seen.find(text, self.at)
                return found >= 0

    def end(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                return True
        return False


def main():
    play = json.load(sys.stdin)
    terminal, seconds, failed = Terminal(play), [], None
    for number, (what, *arguments) in enumerate(play["steps"]):
        begun = time.monotonic()
        if what == "send":
            os.write(terminal.fd, arguments[0].encode())
            held = True
        else:
            held = getattr(terminal, what)(*arguments)
        seconds.append(time.monotonic() - begun)
        if not held:
            failed = number
            break
    if terminal.code is None:
        os.kill(terminal.pid, signal.SIGKILL)
        os.waitpid(terminal.pid, 0)
    seen = terminal.seen.decode(errors="replace")
    json.dump({"seen": seen, "seconds": seconds, "failed": failed, "code": terminal.code}, sys.stdout)


main()
