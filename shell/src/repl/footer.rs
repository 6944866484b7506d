//! The lines under an answer.

use crate::runner::Report;
use asofdb::count;
use std::time::Duration;

/// What is said under an answer: rows, time, clocks, notices, and why it is empty.
pub fn lines(report: &Report, timing: bool) -> Vec<String> {
    let mut first: Vec<String> = Vec::new();
    match report.rows {
        Some(n) => first.push(count::of(n, "row")),
        None => first.push("done".into()),
    }
    if timing {
        first.push(took(report.took));
    }
    let mut applied = report.summary.applied.clone();
    if applied.len() == 1 {
        first.append(&mut applied);
    }
    let mut lines = vec![first.join(" \u{b7} ")];
    lines.append(&mut applied);
    lines.extend(report.notes.iter().map(|n| format!("note: {n}")));
    lines.extend(report.summary.notices.iter().map(|n| format!("note: {n}")));
    if report.rows == Some(0) {
        lines.extend(report.summary.why_empty.iter().map(|w| format!("empty: {w}")));
    }
    lines
}

/// What is said of an answer that is shown in words: notices, and why it is empty.
pub fn notes(report: &Report) -> Vec<String> {
    let word = if report.rows == Some(0) { "empty" } else { "note" };
    report.summary.notices.iter().map(|n| format!("{word}: {n}")).collect()
}

fn took(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.010 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.2} s"),
        s => format!("{s:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Summary;

    #[test]
    fn an_empty_answer_says_why() {
        let summary = Summary {
            applied: vec!["orders: valid latest, system latest, commit 4".into()],
            notices: vec!["2 rows start in the future".into()],
            why_empty: Some("key 42 first holds at 2026-10-05".into()),
        };
        let mut report = Report { rows: Some(0), took: Duration::from_millis(12), summary, notes: vec![] };
        assert_eq!(
            lines(&report, true),
            [
                "0 rows \u{b7} 12 ms \u{b7} orders: valid latest, system latest, commit 4",
                "note: 2 rows start in the future",
                "empty: key 42 first holds at 2026-10-05"
            ]
        );
        report.rows = Some(1);
        assert_eq!(lines(&report, false)[0], "1 row \u{b7} orders: valid latest, system latest, commit 4");
        assert_eq!(lines(&report, false).len(), 2);
    }

    #[test]
    fn times_read_well() {
        let of = |ms| took(Duration::from_micros(ms));
        assert_eq!(
            [of(1_234), of(123_456), of(1_234_567), of(123_456_789)],
            ["1.2 ms", "123 ms", "1.23 s", "123 s"]
        );
    }
}
