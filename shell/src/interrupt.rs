//! SIGINT and SIGTERM as a counter that loops look at.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static SIGNALS: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// Counts signals from now on, instead of dying of them.
pub fn install() {
    INSTALLED.get_or_init(|| {
        let watch =
            signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
        if let Ok(mut signals) = watch {
            std::thread::spawn(move || {
                for _ in signals.forever() {
                    SIGNALS.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
}

/// Forgets the signals so far.
pub fn clear() {
    SIGNALS.store(0, Ordering::SeqCst);
}

/// How many signals have come since.
pub fn count() -> usize {
    SIGNALS.load(Ordering::SeqCst)
}
