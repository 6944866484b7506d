//! The wall clock and the source of randomness, as components that are handed in.

use sha2::{Digest, Sha256};
use std::fmt::Debug;
use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A wall clock.
pub trait Clock: Send + Sync + Debug {
    /// Now, in microseconds since 1970-01-01T00:00:00Z. May stand still and may step back.
    fn now_us(&self) -> i64;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    // The one place of the library that reads the wall clock.
    #[allow(clippy::disallowed_methods)]
    fn now_us(&self) -> i64 {
        let clamp = |us: u128| i64::try_from(us).unwrap_or(i64::MAX);
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => clamp(after.as_micros()),
            Err(before) => -clamp(before.duration().as_micros()),
        }
    }
}

/// A clock that moves only when it is told to, for tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_us: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now_us`.
    pub fn new(now_us: i64) -> ManualClock {
        ManualClock { now_us: AtomicI64::new(now_us) }
    }

    /// Sets the clock, forwards or back.
    pub fn set(&self, now_us: i64) {
        self.now_us.store(now_us, Ordering::SeqCst);
    }

    /// Moves the clock by `by_us`, which may be negative; the ends of the range hold it.
    pub fn advance(&self, by_us: i64) {
        self.set(self.now_us().saturating_add(by_us));
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> i64 {
        self.now_us.load(Ordering::SeqCst)
    }
}

/// The instant of the next commit: the clock's, but always later than the one before (rule A3).
/// `None` once the axis is used up.
pub fn next_instant(previous_us: i64, now_us: i64) -> Option<i64> {
    Some(now_us.max(previous_us.checked_add(1)?))
}

/// A source of random bytes.
pub trait Entropy: Send + Sync + Debug {
    /// Fills `out` with bytes that nobody can guess.
    ///
    /// # Errors
    /// If the source gives none.
    fn fill(&self, out: &mut [u8]) -> io::Result<()>;
}

/// The random bytes of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&self, out: &mut [u8]) -> io::Result<()> {
        std::fs::File::open("/dev/urandom")?.read_exact(out)
    }
}

/// Repeatable bytes, for tests only: everything they protect can be guessed.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    block: AtomicU64,
    // Serialises callers so that one run gives the same bytes in the same order.
    turn: Mutex<()>,
}

impl SeededEntropy {
    /// The sequence of bytes that belongs to `seed`.
    pub fn new(seed: u64) -> SeededEntropy {
        SeededEntropy { seed, block: AtomicU64::new(0), turn: Mutex::new(()) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, out: &mut [u8]) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for part in out.chunks_mut(32) {
            let block = self.block.fetch_add(1, Ordering::SeqCst);
            let digest = Sha256::new()
                .chain_update(self.seed.to_le_bytes())
                .chain_update(block.to_le_bytes())
                .finalize();
            part.copy_from_slice(&digest[..part.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_grow_whatever_the_clock_does() {
        let clock = ManualClock::new(1_000);
        let mut last = i64::MIN;
        for step in [0, 5, -3_600_000_000, -315_360_000_000_000, 315_360_000_000_000, 0, 0, i64::MIN] {
            clock.advance(step);
            let next = next_instant(last, clock.now_us()).expect("the axis has room");
            assert!(next > last, "step {step}: {next} after {last}");
            last = next;
        }
        assert_eq!(next_instant(i64::MAX, 0), None);
        assert_eq!(next_instant(10, 500), Some(500));
    }

    #[test]
    fn the_system_clock_is_in_this_century() {
        let now = SystemClock.now_us();
        assert!((1_577_836_800_000_000..4_102_444_800_000_000).contains(&now), "{now}");
    }

    #[test]
    fn seeded_bytes_repeat_and_others_do_not() {
        let draw = |e: &dyn Entropy| {
            let mut b = [0; 48];
            e.fill(&mut b).expect("bytes");
            b
        };
        assert_eq!(draw(&SeededEntropy::new(7)), draw(&SeededEntropy::new(7)));
        assert_ne!(draw(&SeededEntropy::new(7)), draw(&SeededEntropy::new(8)));
        assert_ne!(draw(&OsEntropy), draw(&OsEntropy));
    }
}
