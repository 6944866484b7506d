//! What scans at a point cost: `scan_rate STORE TABLE TIME [COLUMN...]`.
//!
//! Asks for the rows at TIME (microseconds, both axes; `now` for the latest ones) with the columns, once and
//! then twelve times more, each stream on a thread of its own, and prints the rows, the milliseconds of the
//! first time and of the median of the others, and (on Linux) what the processors had to do for each.

use asofdb_storage::engine::*;
use asofdb_storage::id::ColumnId;
use asofdb_storage::time::FOREVER;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Repeats after the first time.
const REPEATS: usize = 12;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, table, time, columns @ ..] = args.as_slice() else {
        return Err("usage: scan_rate STORE TABLE TIME [COLUMN...]".into());
    };
    let start = Instant::now();
    let engine = Engine::open(Path::new(dir), OpenMode::Read, EngineOptions::default())?;
    println!("opened in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let at = if time == "now" { FOREVER } else { time.parse()? };
    let snapshot = engine.pin();
    let request = request(&snapshot, table, at, columns)?;
    let (rows, first) = ask(&snapshot, &request)?;
    let busy_first = busy_ms();
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let (again, time) = ask(&snapshot, &request)?;
        assert_eq!(again, rows, "the same rows each time");
        times.push(time);
    }
    times.sort();
    let ms = |t: Duration| t.as_secs_f64() * 1e3;
    println!("{rows} rows, first {:.1} ms, then {:.1} ms", ms(first), ms(times[times.len() / 2]));
    if let (Some(first), Some(all)) = (busy_first, busy_ms()) {
        println!("processor: {first} ms until then, then {:.1} ms", (all - first) as f64 / REPEATS as f64);
    }
    Ok(())
}

fn request(snapshot: &Snapshot, table: &str, at: i64, columns: &[String]) -> Outcome<ScanRequest> {
    let mut tables = snapshot.catalog().tables.values();
    let meta = tables.find(|t| t.name == table).ok_or("there is no such table")?;
    let schema = meta.schema();
    let id = |name: &String| -> Outcome<ColumnId> {
        let column = schema.columns.iter().find(|c| c.name == *name);
        Ok(column.ok_or_else(|| format!("there is no column {name}"))?.id)
    };
    Ok(ScanRequest {
        table: meta.id,
        kind: ScanKind::Rows { valid: at, system: at },
        commit: snapshot.commit(),
        schema: Arc::new(schema.clone()),
        projection: columns.iter().map(id).collect::<Outcome<_>>()?,
        keys: KeyFilter::All,
        partitions: 2,
        rows_per_key_max: 1_000_000,
    })
}

/// Rows of an answer, and how long it took.
fn ask(snapshot: &Snapshot, request: &ScanRequest) -> Outcome<(usize, Duration)> {
    let start = Instant::now();
    let streams = snapshot.scan(request)?;
    let count = |stream: ScanStream| stream.map(|b| b.map(|b| b.num_rows())).sum::<Result<usize, Error>>();
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = streams.into_iter().map(|s| scope.spawn(move || count(s))).collect();
        threads.into_iter().map(|t| t.join().expect("no panic in a scan")).sum::<Result<usize, Error>>()
    })?;
    Ok((rows, start.elapsed()))
}

/// Processor time of this process so far, to the hundredth of a second.
fn busy_ms() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields = stat.rsplit(')').next()?.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().ok().map(|t| t * 10)).sum()
}
