"""Compares an export of interval rows, read by others, with what the store itself answers.

    read_export.py ASOF STORE TABLE DIR COLUMNS [POINTS]

DIR is the table's directory, COLUMNS a list such as "id, name". Times are instants. Asks at POINTS pairs of
(valid, system) times that stand in the files, by plain filters on the four time columns, through every one of
DuckDB and pyarrow that is installed.
"""
import importlib.util, json, random, subprocess, sys

asof, store, table, directory, columns = sys.argv[1:6]
points = int(sys.argv[6]) if len(sys.argv) > 6 else 20
names = [c.strip() for c in columns.split(",")]
AXES = (("VALID_TIME", "__START_AT", "__END_AT"), ("SYSTEM_TIME", "__SYSTEM_START_AT", "__SYSTEM_END_AT"))


def ours(point):
    clauses = "".join(f" FOR {a[0]} AS OF to_timestamp_micros({t})" for a, t in zip(AXES, point) if t is not None)
    done = subprocess.run([asof, "sql", store, f"SELECT {columns} FROM {table}{clauses}", "-o", "ndjson"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True)
    return [tuple(json.loads(line)[n] for n in names) for line in done.stdout.splitlines()]


def duckdb_reader():
    import duckdb
    connection = duckdb.connect()
    files = f"read_parquet('{directory}/**/*.parquet')"

    def ask(point):
        def holds(axis, t):
            _, start, end = axis
            if t is None:
                return f"{end} IS NULL"
            at = f"make_timestamptz({t})"
            return f"({start} IS NULL OR {start} <= {at}) AND ({end} IS NULL OR {end} > {at})"
        where = " AND ".join(holds(a, t) for a, t in zip(AXES, point))
        return connection.execute(f"SELECT {columns} FROM {files} WHERE {where}").fetchall()

    times = connection.execute(
        " UNION ".join(f"SELECT epoch_us({c}) FROM {files}" for a in AXES for c in a[1:])).fetchall()
    return ask, [t for (t,) in times if t is not None]


def pyarrow_reader():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    rows = pq.read_table(directory, ignore_prefixes=["."])

    def ask(point):
        mask = pa.chunked_array([[True] * rows.num_rows])
        for (_, start, end), t in zip(AXES, point):
            if t is None:
                mask = pc.and_(mask, pc.is_null(rows[end]))
                continue
            at = pa.scalar(t, pa.timestamp("us", "UTC"))
            mask = pc.and_(mask, pc.or_kleene(pc.is_null(rows[start]), pc.less_equal(rows[start], at)))
            mask = pc.and_(mask, pc.or_kleene(pc.is_null(rows[end]), pc.greater(rows[end], at)))
        return [tuple(r[n] for n in names) for r in rows.filter(mask).select(names).to_pylist()]

    times = {t.value for a in AXES for c in a[1:] for t in pc.unique(rows[c]) if t.is_valid}
    return ask, sorted(times)


readers = {name: make() for name, make in (("duckdb", duckdb_reader), ("pyarrow", pyarrow_reader))
           if importlib.util.find_spec(name)}
if not readers:
    print("neither duckdb nor pyarrow is here: skipped")
    sys.exit(0)
times = sorted(next(iter(readers.values()))[1])
dice = random.Random(1)
pick = lambda: None if dice.random() < 0.2 else dice.choice(times) - dice.randrange(2)
wrong, answered = [], 0
for point in [(None, None)] + [(pick(), pick()) for _ in range(points - 1)]:
    right = sorted(ours(point), key=repr)
    answered += bool(right)
    for name, (ask, _) in readers.items():
        found = sorted(ask(point), key=repr)
        if found != right:
            wrong.append(f"{name} at {point}: {found[:5]}, not {right[:5]}")
print(f"{points} points, {answered} with rows, read by {' and '.join(readers)}: {len(wrong)} wrong")
sys.exit("\n".join(wrong[:10]) if wrong or not answered else 0)
