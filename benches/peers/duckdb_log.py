"""The workload in DuckDB, as somebody who knows it would: an append-only log of the messages, the
current state folded from it once, AS OF by one pass of aggregates over the log.

    python duckdb_log.py PHASE --db FILE [--parts DIR] [--probes FILE] [--labels FILE] [--reads N]

One line of JSON on stdout. Phases: version, intake, ask, first, keys, labels.
"""
import argparse
import glob
import json
import os
import resource
import sys
import threading
import time

try:
    import duckdb
except ImportError:
    sys.exit("the package duckdb is not here")

MESSAGE = {
    "o": "VARCHAR", "key1": "INTEGER", "key2": "VARCHAR", "key3": "INTEGER", "value1": "BIGINT",
    "value2": "DECIMAL(12, 2)", "value3": "VARCHAR", "operation_id": "BIGINT", "valid_time": "BIGINT",
    "system_time": "BIGINT",
}
LABEL = {"label": "BIGINT", "key1": "INTEGER", "key2": "VARCHAR", "key3": "INTEGER", "valid_at": "BIGINT",
         "known_at": "BIGINT"}
KEY = "key1, key2, key3"
# The newest event says whether there is a row; a value counts where nothing reset the row after it.
LIVE = "arg_max(o <> 'd', valid_time) AS live"
RESET = "max(valid_time) FILTER (WHERE o <> 'u') AS reset_at"
COLUMNS = ("value1", "value2", "value3")


def newest(column):
    # arg_max passes over rows without a value.
    return (f"arg_max({column}, valid_time) AS {column}, "
            f"max(valid_time) FILTER (WHERE {column} IS NOT NULL) AS {column}_at")


def value(column):
    return f"CASE WHEN reset_at IS NULL OR {column}_at >= reset_at THEN {column} END"


def fold(columns, source="log", where=""):
    parts = [KEY, LIVE] + ([RESET] if columns else []) + [newest(c) for c in columns]
    return f"SELECT {', '.join(parts)} FROM {source} {where} GROUP BY {KEY}"


def json_lines(path, columns):
    types = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    return f"read_json('{path}', format = 'newline_delimited', columns = {{{types}}})"


def connect(file):
    connection = duckdb.connect(file)
    connection.execute("SET preserve_insertion_order = false")
    return connection


def seconds(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def probes(args, kind):
    with open(args.probes) as lines:
        return [p for p in map(json.loads, lines) if p["kind"] == kind]


def timing_point(args):
    """The bounds that the bench asks for its timed questions: the first table probe bound on both axes."""
    both = [p for p in probes(args, "table") if p["valid_time"] is not None and p["system_time"] is not None]
    return both[0]


def version(args):
    return {"version": duckdb.__version__}


def intake(args):
    parts = sorted(glob.glob(os.path.join(args.parts, "*.ndjson")))
    if not parts:
        sys.exit(f"{args.parts} holds no parts")
    begun = time.perf_counter()
    connection = connect(args.db)
    table = ", ".join(f"{name} {kind}" for name, kind in MESSAGE.items())
    connection.execute(f"CREATE TABLE log ({table})")
    for part in parts:
        connection.execute(f"INSERT INTO log BY NAME SELECT * FROM {json_lines(part, MESSAGE)}")
    connection.execute("CHECKPOINT")
    log_s = time.perf_counter() - begun
    log_bytes = os.path.getsize(args.db)

    def close():
        connection.execute("CREATE TABLE state AS " + fold(COLUMNS))
        connection.execute("CHECKPOINT")

    fold_s = seconds(close)
    rows, events = connection.execute(
        "SELECT (SELECT count(*) FROM state WHERE live), (SELECT count(*) FROM log)").fetchone()
    connection.close()
    return {"log_s": log_s, "fold_s": fold_s, "log_bytes": log_bytes, "bytes": os.path.getsize(args.db),
            "rows": rows, "events": events}


def questions():
    at = "WHERE valid_time <= $valid AND system_time <= $system"
    plain, one = fold([], where=at), fold(["value1"], where=at)
    v = value("value1")
    return {
        "count": f"SELECT count(*) FROM ({plain}) WHERE live",
        "sum": f"SELECT sum({v}) FROM ({one}) WHERE live",
        "count+sum": f"SELECT count(*), sum({v}) FROM ({one}) WHERE live",
        "group by": f"SELECT key3, count(*), sum({v}) FROM ({one}) WHERE live GROUP BY key3 ORDER BY key3",
    }


def right(name, rows, probe):
    count, total = probe["count"], probe["sum_value1"]
    expected = {"count": [(count,)], "sum": [(total,)], "count+sum": [(count, total)]}
    if name in expected:
        return rows == expected[name]
    return [(k, n, int(s or 0)) for k, n, s in rows] == [tuple(g) for g in probe["by_key3"] if g[1] > 0]


def ask(args):
    connection, point = connect(args.db), timing_point(args)
    bounds = {"valid": point["valid_time"], "system": point["system_time"]}
    figures, wrong = {}, 0
    for name, sql in questions().items():
        wrong += not right(name, connection.execute(sql, bounds).fetchall(), point)
        figures[name] = 1e3 * median(
            [seconds(lambda: connection.execute(sql, bounds).fetchall()) for _ in range(5)])
    return {"ms": figures, "wrong": wrong}


def first(args):
    point = timing_point(args)
    bounds = {"valid": point["valid_time"], "system": point["system_time"]}
    name = args.question
    begun = time.perf_counter()
    rows = connect(args.db).execute(questions()[name], bounds).fetchall()
    return {"ms": 1e3 * (time.perf_counter() - begun), "wrong": int(not right(name, rows, point))}


def keys(args):
    connection, wrong, took = connect(args.db), 0, []
    at = ("WHERE key1 = $key1 AND key2 = $key2 AND key3 = $key3 "
          "AND valid_time <= coalesce($valid, 9223372036854775807) "
          "AND system_time <= coalesce($system, 9223372036854775807)")
    sql = f"SELECT {', '.join(map(value, COLUMNS))} FROM ({fold(COLUMNS, where=at)}) WHERE live"
    for p in probes(args, "point")[:args.reads]:
        parameters = {"key1": p["key1"], "key2": p["key2"], "key3": p["key3"], "valid": p["valid_time"],
                      "system": p["system_time"]}
        begun = time.perf_counter()
        found = connection.execute(sql, parameters).fetchone()
        took.append(time.perf_counter() - begun)
        expected = None
        if p["found"]:
            expected = (p["value1"], p["value2"], p["value3"])
            found = found and (found[0], None if found[1] is None else float(found[1]), found[2])
        wrong += found != expected
    took.sort()
    return {"ms": 1e3 * median(took), "p99_ms": 1e3 * took[len(took) * 99 // 100], "reads": len(took),
            "wrong": wrong}


def labels(args):
    connection = connect(args.db)
    connection.execute(f"CREATE TABLE labels AS SELECT * FROM {json_lines(args.labels, LABEL)}")
    v = value("value1")
    joined = (f"SELECT label, {LIVE}, {RESET}, {newest('value1')} FROM labels l JOIN log USING ({KEY}) "
              "WHERE valid_time <= l.valid_at AND system_time <= l.known_at GROUP BY label")
    sql = f"SELECT count(*), count({v}), coalesce(sum({v}), 0) FROM ({joined}) WHERE live"
    answer, took = None, []
    for _ in range(2):
        begun = time.perf_counter()
        answer = connection.execute(sql).fetchone()
        took.append(time.perf_counter() - begun)
    connection.execute("DROP TABLE labels")
    return {"s": min(took), "answer": [int(a) for a in answer]}


class Watch:
    """Looks at the memory of this process: its own, and mapped files."""

    def __init__(self):
        self.own, self.mapped = 0, 0
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        while True:
            try:
                with open("/proc/self/status") as status:
                    sizes = dict(line.split(":", 1) for line in status)
            except OSError:
                return
            self.own = max(self.own, int(sizes["RssAnon"].split()[0]))
            self.mapped = max(self.mapped, int(sizes["RssFile"].split()[0]))
            time.sleep(0.01)

    def peaks(self):
        return {"own_mb": self.own * 1024 / 1e6, "mapped_mb": self.mapped * 1024 / 1e6}


PHASES = {f.__name__: f for f in (version, intake, ask, first, keys, labels)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("phase", choices=PHASES)
    parser.add_argument("--db")
    parser.add_argument("--parts")
    parser.add_argument("--probes")
    parser.add_argument("--labels")
    parser.add_argument("--question", default="count")
    parser.add_argument("--reads", type=int, default=200)
    args = parser.parse_args()
    watch = Watch()
    answer = PHASES[args.phase](args)
    used = resource.getrusage(resource.RUSAGE_SELF)
    answer["peak_mb"] = used.ru_maxrss * 1024 / 1e6
    answer["cpu_s"] = used.ru_utime + used.ru_stime
    answer.update(watch.peaks())
    print(json.dumps(answer))


main()
