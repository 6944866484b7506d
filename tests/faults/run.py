#!/usr/bin/env python3
"""Faults with real processes, file systems and terminals: rows of docs/testing.md.

    tests/faults/run.py --asof PROGRAM [--long] [--messages N] [--seed N] [--work DIR] [ROW...]

Prints a line a row: what was tried, with which seed, and what came of it; leaves with 1 if one does not
hold. What the machine does not permit is skipped with its reason. Python alone is needed.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import common  # noqa: E402
import disks  # noqa: E402, F401
import processes  # noqa: E402, F401
import questions  # noqa: E402, F401
import secrets_kept  # noqa: E402, F401
import soak  # noqa: E402, F401


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asof", required=True)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--messages", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--work")
    parser.add_argument("rows", nargs="*")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    messages = options.messages or (1_000_000 if options.long else 20_000)
    work = options.work or tempfile.mkdtemp(prefix="asof-faults-")
    os.makedirs(work, exist_ok=True)
    unknown = set(options.rows) - {name for name, _, _ in common.ROWS}
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}")
    failed = []
    print(f"seed {seed}, {messages} messages, {'long' if options.long else 'short'}", flush=True)
    for name, what, test in common.ROWS:
        if options.rows and name not in options.rows:
            continue
        directory = tempfile.mkdtemp(prefix=f"{name}-", dir=work)
        case = common.Case(os.path.realpath(options.asof), directory, seed, options.long, messages)
        begun = time.monotonic()
        try:
            result = test(case)
            print(f"{name} holds ({time.monotonic() - begun:.1f} s): {what}: {result}", flush=True)
        except common.Skip as reason:
            print(f"{name} is skipped: {what}: {reason}", flush=True)
        except Exception as e:
            failed.append(name)
            if not isinstance(e, common.Wrong):
                traceback.print_exc()
            print(f"{name} FAILED (--seed {seed}): {what}: {e}", flush=True)
        case.end()
        shutil.rmtree(directory, ignore_errors=True)
    if not options.work:
        shutil.rmtree(work, ignore_errors=True)
    if failed:
        sys.exit(f"failed, seed {seed}: {' '.join(failed)}")


if __name__ == "__main__":
    main()
