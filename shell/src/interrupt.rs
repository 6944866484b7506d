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

/// While it lives, the second signal ends the process with 130.
pub struct Impatience(std::sync::Arc<std::sync::atomic::AtomicBool>);

/// Lets the second signal end the process: what is committed stays, what is not is taken again by the
/// next run.
pub fn leave_at_second_signal() -> Impatience {
    let alive = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let watched = alive.clone();
    std::thread::spawn(move || {
        while watched.load(Ordering::SeqCst) {
            if count() >= 2 {
                std::process::exit(crate::outcome::Exit::Cancelled as i32);
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    Impatience(alive)
}

impl Drop for Impatience {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
