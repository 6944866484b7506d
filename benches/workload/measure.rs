//! Time, processor time and memory of steps, and the table of them.

use crate::Outcome;
use std::io::Write;
use std::time::{Duration, Instant};

/// Ticks of a second in `/proc`; the same on every Linux.
const TICKS: f64 = 100.0;

/// One line of the table.
struct Line {
    step: String,
    state: String,
    figure: String,
    /// Wall seconds, processor seconds, peak megabytes.
    cost: Option<(f64, f64, f64)>,
}

/// The table.
#[derive(Default)]
pub struct Sheet(Vec<Line>);

/// Processor seconds of this process so far; 0 where there is no `/proc`.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program stands in parentheses and may hold blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

/// Peak resident memory since it was last reset, in megabytes; 0 where there is no `/proc`.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("");
    line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1000.0
}

fn reset_peak() {
    // Where it is refused the peak is that of all steps so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

impl Sheet {
    /// Runs a step and notes its figure and cost.
    pub fn step<T>(
        &mut self,
        step: &str,
        state: &str,
        f: impl FnOnce() -> Outcome<(T, String)>,
    ) -> Outcome<T> {
        reset_peak();
        let (from, cpu) = (Instant::now(), cpu_seconds());
        let (value, figure) = f()?;
        let cost = Some((from.elapsed().as_secs_f64(), cpu_seconds() - cpu, peak_megabytes()));
        self.0.push(Line { step: step.into(), state: state.into(), figure, cost });
        Ok(value)
    }

    /// Notes a figure.
    pub fn note(&mut self, step: &str, state: &str, figure: &str) {
        self.0.push(Line { step: step.into(), state: state.into(), figure: figure.into(), cost: None });
    }

    /// Prints the table.
    pub fn print(&self, messages: u64) -> Outcome<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{messages} messages, {} processors\n", std::thread::available_parallelism()?)?;
        writeln!(out, "| step | state | figure | wall s | CPU s | peak MB |")?;
        writeln!(out, "|---|---|---|---|---|---|")?;
        for Line { step, state, figure, cost } in &self.0 {
            let cost = match cost {
                Some((wall, cpu, peak)) => format!("{wall:.2} | {cpu:.2} | {peak:.0}"),
                None => " | | ".into(),
            };
            writeln!(out, "| {step} | {state} | {figure} | {cost} |")?;
        }
        Ok(())
    }
}

/// Milliseconds with the digits that mean something.
pub fn millis(t: Duration) -> String {
    let ms = t.as_secs_f64() * 1e3;
    if ms < 1.0 { format!("{ms:.4}") } else { format!("{ms:.1}") }
}

/// The time that `percent` of all times do not pass.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

/// Median, 99th percentile and the longest.
pub fn summary(times: &[Duration]) -> String {
    let of = |percent| millis(percentile(times, percent));
    format!("median {} ms, p99 {} ms, max {} ms, of {}", of(50), of(99), of(100), times.len())
}
