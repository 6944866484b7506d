//! How far an intake is: a line on stderr, on a terminal only, and only where it takes a while.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Shorter intakes show no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress of one intake.
pub struct Progress {
    started: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress that shows itself if `wanted` and stderr is a terminal.
    pub fn new(wanted: bool) -> Progress {
        Progress {
            started: Instant::now(),
            wanted: wanted && crate::terminal::stderr_is_terminal(),
            bar: None,
        }
    }

    /// Shows where the intake stands.
    pub fn show(&mut self, progress: &asofdb::Progress) {
        let elapsed = self.started.elapsed();
        if !self.wanted || elapsed < PATIENCE {
            return;
        }
        let total = progress.bytes_total;
        let bar = self.bar.get_or_insert_with(|| new_bar(total));
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(progress.bytes);
        let rate = progress.messages as f64 / elapsed.as_secs_f64();
        let set_aside = match progress.quarantined {
            0 => String::new(),
            n => format!(", {n} quarantined"),
        };
        let lag = progress.lag.map(|n| format!(", {n} behind")).unwrap_or_default();
        let away = match &progress.away {
            Some((since, reason)) => {
                let reason = crate::render::clip(&crate::render::escape::visible(reason), 60);
                format!("  no broker for {} s: {reason}", since.as_secs())
            }
            None => String::new(),
        };
        let source = crate::render::clip(&crate::render::escape::visible(&progress.source), 30);
        bar.set_message(format!(
            "{} messages, {rate:.0}/s{lag}{set_aside}  {source}{away}",
            progress.messages
        ));
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Rows that were written so far, where it takes a while.
pub struct Rows(Progress);

impl Rows {
    /// Rows that show themselves as [`Progress`] does.
    pub fn new(wanted: bool) -> Rows {
        Rows(Progress::new(wanted))
    }

    /// Shows how many there are.
    pub fn show(&mut self, rows: u64) {
        let elapsed = self.0.started.elapsed();
        if self.0.wanted && elapsed >= PATIENCE {
            let bar = self.0.bar.get_or_insert_with(|| new_bar(None));
            bar.set_message(format!("{rows} rows, {:.0}/s", rows as f64 / elapsed.as_secs_f64()));
            bar.tick();
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

fn new_bar(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let form = match total {
        Some(_) => "{bar:20} {bytes}/{total_bytes} {eta}  {wide_msg}",
        None => "{spinner} {bytes}  {wide_msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar
}
