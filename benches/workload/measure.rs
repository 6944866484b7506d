//! Time, processor time, memory and written bytes of steps, and the table of them.

use crate::Outcome;
use crate::figures::{millis, percentile, status_megabytes};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Ticks of a second in `/proc`; the same on every Linux.
const TICKS: f64 = 100.0;

/// Time between two looks at the memory.
const LOOK: Duration = Duration::from_millis(10);

/// What a step took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub wall_s: f64,
    pub cpu_s: f64,
    /// Peak of resident memory, megabytes.
    pub peak_mb: f64,
    /// Greatest part of it that is the process's own; what it maps of files is no cost to others.
    pub own_mb: f64,
    /// Greatest part of it that is mapped files.
    pub mapped_mb: f64,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    pub step: String,
    pub state: String,
    pub figure: String,
    pub cost: Option<Cost>,
}

impl Line {
    /// A line without a cost.
    pub fn note(step: &str, state: &str, figure: impl Into<String>) -> Line {
        Line { step: step.into(), state: state.into(), figure: figure.into(), cost: None }
    }

    /// As one process says it to another.
    pub fn to_json(&self) -> Json {
        let cost = self.cost.map(|c| [c.wall_s, c.cpu_s, c.peak_mb, c.own_mb, c.mapped_mb]);
        json!({"step": self.step, "state": self.state, "figure": self.figure, "cost": cost})
    }

    /// What [`Line::to_json`] said.
    pub fn from_json(said: &Json) -> Option<Line> {
        let text = |name: &str| said.get(name)?.as_str().map(str::to_owned);
        let costs: Vec<f64> =
            said["cost"].as_array().into_iter().flatten().filter_map(Json::as_f64).collect();
        let cost = match costs[..] {
            [wall_s, cpu_s, peak_mb, own_mb, mapped_mb] => {
                Some(Cost { wall_s, cpu_s, peak_mb, own_mb, mapped_mb })
            }
            _ => None,
        };
        Some(Line { step: text("step")?, state: text("state")?, figure: text("figure")?, cost })
    }
}

fn proc_file(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default()
}

/// Processor seconds of this process so far; 0 where there is no `/proc`.
fn cpu_seconds() -> f64 {
    let stat = proc_file("stat");
    // The name of the program stands in parentheses and may hold blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

/// Bytes that this process gave to write calls so far; 0 where there is no `/proc`.
pub fn written_bytes() -> u64 {
    let line = proc_file("io");
    let found = line.lines().find_map(|l| l.strip_prefix("wchar: "));
    found.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Looks at the memory of this process again and again: the kernel keeps the peak of the sum only.
struct Watch {
    stop: Arc<AtomicBool>,
    own: Arc<AtomicU64>,
    mapped: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn start() -> Watch {
        // Where it is refused the peak is that of the process so far.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (stop, own, mapped) = (Arc::<AtomicBool>::default(), Arc::default(), Arc::default());
        let (ends, a, f) = (stop.clone(), Arc::clone(&own), Arc::clone(&mapped));
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let status = proc_file("status");
                let kilobytes = |name| (status_megabytes(&status, name) * 1e3) as u64;
                AtomicU64::fetch_max(&a, kilobytes("RssAnon"), Ordering::Relaxed);
                AtomicU64::fetch_max(&f, kilobytes("RssFile"), Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        });
        Watch { stop, own, mapped, thread: Some(thread) }
    }

    /// Peak, own and mapped megabytes.
    fn end(mut self) -> (f64, f64, f64) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that only looks has nothing to tell where it failed.
            let _ = thread.join();
        }
        let seen = |kilobytes: &AtomicU64| kilobytes.load(Ordering::Relaxed) as f64 / 1e3;
        (status_megabytes(&proc_file("status"), "VmHWM"), seen(&self.own), seen(&self.mapped))
    }
}

/// Runs a step; what it gave, its figure and its cost as a line.
pub fn step<T>(step: &str, state: &str, f: impl FnOnce() -> Outcome<(T, String)>) -> Outcome<(T, Line)> {
    let watch = Watch::start();
    let (from, cpu) = (Instant::now(), cpu_seconds());
    let done = f();
    let (wall_s, cpu_s) = (from.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let (peak_mb, own_mb, mapped_mb) = watch.end();
    let (value, figure) = done?;
    let cost = Some(Cost { wall_s, cpu_s, peak_mb, own_mb, mapped_mb });
    Ok((value, Line { cost, ..Line::note(step, state, figure) }))
}

/// Prints the head of the table.
pub fn print_head() -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "| step | state | figure | wall s | CPU s | peak MB | own MB | mapped MB |")?;
    Ok(writeln!(out, "|---|---|---|---|---|---|---|---|")?)
}

/// Prints a line of the table.
pub fn print(line: &Line) -> Outcome<()> {
    let cost = match line.cost {
        Some(c) => format!(
            "{:.2} | {:.2} | {:.0} | {:.0} | {:.0}",
            c.wall_s, c.cpu_s, c.peak_mb, c.own_mb, c.mapped_mb
        ),
        None => " | | | | ".into(),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "| {} | {} | {} | {cost} |", line.step, line.state, line.figure)?;
    Ok(out.flush()?)
}

/// Median, 99th percentile and the longest.
pub fn summary(times: &[Duration]) -> String {
    let of = |percent| millis(percentile(times, percent));
    format!("median {} ms, p99 {} ms, max {} ms, of {}", of(50), of(99), of(100), times.len())
}
