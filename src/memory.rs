//! One number that says how much memory an open store may use, divided among what uses it.

use crate::error::Error;
use asofdb_storage::engine::EngineOptions;
use std::str::FromStr;

/// The least that can be divided: below it every share would be too small to work with.
const BYTES_MIN: u64 = 64_000_000;

/// Bytes that an open store and the sessions over it may use. The default is 1 GB.
///
/// Of 64 parts, 24 are for decoded columns of runs, 24 for the operators of all queries of a session, which
/// spill or fail where it is not enough, and 4 for the keyed index. Events that no run holds are flushed when
/// they take 6 parts as they are logged: with what is being decoded, sorted and written beside them, an intake
/// comes to about 48 parts. A process that takes events in and asks at the same time may use the sum.
///
/// Not counted are mapped files, which the system takes back when it needs them, the program itself, the batch
/// that an intake decodes (its `batch` messages, at most 64 MB of rows), the events of one key while it is
/// folded, and answers that the caller holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget(u64);

impl Default for MemoryBudget {
    fn default() -> Self {
        MemoryBudget(1 << 30)
    }
}

impl MemoryBudget {
    /// A budget of so many bytes.
    ///
    /// # Errors
    /// `Usage` below 64 MB.
    pub fn new(bytes: u64) -> Result<MemoryBudget, Error> {
        match bytes < BYTES_MIN {
            true => {
                Err(Error::usage(format!("{bytes} bytes of memory are too few")).hint("64MB is the least"))
            }
            false => Ok(MemoryBudget(bytes)),
        }
    }

    /// All of it, in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    fn parts(self, parts: u64) -> usize {
        usize::try_from(self.0 / 64 * parts).unwrap_or(usize::MAX)
    }

    /// Memory for the operators of all queries of a session, bytes.
    pub fn query_bytes(self) -> usize {
        self.parts(24)
    }

    /// The settings of an engine that keeps to it.
    pub fn engine_options(self) -> EngineOptions {
        let usual = EngineOptions::default();
        let memory_bytes_max = self.parts(6);
        // What small events take beside their bytes is bounded by their number.
        let most = usual.memory_events_max as u64 * self.0 / MemoryBudget::default().0;
        EngineOptions {
            memory_events_max: usual.memory_events_max.min(usize::try_from(most).unwrap_or(usize::MAX)),
            memory_bytes_max,
            index_cache_bytes: self.parts(4),
            column_cache_bytes: self.parts(24),
            ..usual
        }
    }
}

impl FromStr for MemoryBudget {
    type Err = Error;

    /// Reads `1GB`, `512MB`, `2GiB`, `1.5GB` or a number of bytes.
    fn from_str(text: &str) -> Result<MemoryBudget, Error> {
        let wrong = || {
            Error::usage(format!("'{text}' is no size of memory"))
                .hint("write a number and a unit, such as 1GB or 512MB")
        };
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_')).unwrap_or(text.len());
        let number: f64 = text[..end].replace('_', "").parse().map_err(|_| wrong())?;
        let unit = match text[end..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "kb" | "k" => 1e3,
            "mb" | "m" => 1e6,
            "gb" | "g" => 1e9,
            "tb" | "t" => 1e12,
            "kib" => 1024.0,
            "mib" => 1024.0 * 1024.0,
            "gib" => 1024.0 * 1024.0 * 1024.0,
            "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return Err(wrong()),
        };
        MemoryBudget::new((number * unit) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<u64> {
        text.parse::<MemoryBudget>().ok().map(MemoryBudget::bytes)
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(bytes("1GB"), Some(1_000_000_000));
        assert_eq!(bytes(" 512 MiB"), Some(512 << 20));
        assert_eq!(bytes("1.5g"), Some(1_500_000_000));
        assert_eq!(bytes("64_000_000"), Some(64_000_000));
        for wrong in ["", "GB", "1 GX", "-1GB", "63MB", "1", "1GB1", "nan"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_default_budget_is_the_default_engine_and_no_share_outgrows_it() {
        let (usual, budget) = (EngineOptions::default(), MemoryBudget::default().engine_options());
        assert_eq!(budget.memory_bytes_max, usual.memory_bytes_max);
        assert_eq!(budget.memory_events_max, usual.memory_events_max);
        assert_eq!(budget.index_cache_bytes, usual.index_cache_bytes);
        assert_eq!(budget.column_cache_bytes, usual.column_cache_bytes);
        let small = MemoryBudget::new(256 << 20).unwrap();
        let options = small.engine_options();
        assert_eq!((options.memory_events_max, options.memory_bytes_max), (312_500, 24 << 20));
        let asking = options.index_cache_bytes + options.column_cache_bytes + small.query_bytes();
        assert!(asking < 256 << 20 && asking > 192 << 20, "{asking}");
        assert!(10 * options.memory_bytes_max < 256 << 20);
    }
}
