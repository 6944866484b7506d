//! Medians, ratios and shares, and what a peer's line of figures says. Pure, so that tests can see to them.

use serde_json::Value as Json;
use std::time::Duration;

/// The middle of some numbers, of two middles the mean; `None` of none.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted[low] + sorted[high]) / 2.0)
}

/// The time that `percent` of all times do not pass; zero of none.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// How many times `a` is `b`; `None` where that says nothing.
pub fn ratio(a: f64, b: f64) -> Option<f64> {
    let r = a / b;
    (b > 0.0 && r.is_finite()).then_some(r)
}

/// A number with the digits that mean something.
pub fn digits(number: f64) -> String {
    match number.abs() {
        n if n >= 100.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        n if n >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}

/// Milliseconds with the digits that mean something.
pub fn millis(time: Duration) -> String {
    digits(time.as_secs_f64() * 1e3)
}

/// The median with the least and the greatest, where there is more than one.
pub fn spread(numbers: &[f64]) -> String {
    let Some(middle) = median(numbers) else { return "-".into() };
    let (least, most) = numbers.iter().fold((f64::MAX, f64::MIN), |(l, m), n| (l.min(*n), m.max(*n)));
    match numbers.len() {
        1 => digits(middle),
        n => format!("{} ({} to {}, {n} rounds)", digits(middle), digits(least), digits(most)),
    }
}

/// The line of JSON that a peer ends with; lines before it are ignored.
///
/// # Errors
/// What is wrong with the line, or that there is none.
pub fn peer_answer(output: &str) -> Result<Json, String> {
    let line = output.lines().rfind(|l| !l.trim().is_empty()).ok_or("it printed nothing")?;
    match serde_json::from_str(line) {
        Ok(Json::Object(fields)) => Ok(Json::Object(fields)),
        _ => Err(format!("its last line is no object: {line}")),
    }
}

/// A number of a peer's answer, by the path to it.
///
/// # Errors
/// Names the path where there is no number.
pub fn peer_number(answer: &Json, path: &[&str]) -> Result<f64, String> {
    let found = path.iter().try_fold(answer, |at, name| at.get(name));
    found.and_then(Json::as_f64).ok_or_else(|| format!("it says no {}", path.join(".")))
}

/// Kilobytes behind a name in the text of `/proc/PID/status`, in megabytes; 0 where it is not there.
pub fn status_megabytes(status: &str, name: &str) -> f64 {
    let line = status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0 / 1e6
}
