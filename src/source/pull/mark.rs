//! Watermarks: how far a table was read, and from where it is read the next time.

use crate::error::{Error, Result};
use crate::format::options::TimeUnit;
use crate::format::time_text::{self, TimeText};
use std::str::FromStr;

/// Overlap of times where none is given, microseconds: transactions that commit late.
const OVERLAP_DEFAULT: i64 = 5 * 60 * 1_000_000;
/// Characters of a time as text up to its minute.
const MINUTE: usize = 16;

/// What a watermark column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// Times with a zone.
    Instant,
    /// Times without one.
    Local,
    Date,
    /// Whole numbers, of times if there is a unit.
    Number(Option<TimeUnit>),
    /// Times as text, compared as text.
    Text,
}

/// How far behind the highest watermark a pull begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    Micros(i64),
    Number(i128),
}

impl FromStr for Overlap {
    type Err = Error;

    /// `5m`, `5 minutes`, `1h`, or a plain number for watermarks that are numbers.
    fn from_str(text: &str) -> Result<Overlap> {
        let wrong = |what: &str| {
            Error::usage(format!("--overlap {text}: {what}")).hint("write 5m, '5 minutes', 90s, 1h or 2d")
        };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: i64 = number.parse().map_err(|_| wrong("begins with no number"))?;
        let micros = match unit.trim() {
            "" => return Ok(Overlap::Number(number as i128)),
            "ms" | "millisecond" | "milliseconds" => 1_000,
            "s" | "sec" | "second" | "seconds" => 1_000_000,
            "m" | "min" | "minute" | "minutes" => 60_000_000,
            "h" | "hour" | "hours" => 3_600_000_000,
            "d" | "day" | "days" => 86_400_000_000,
            _ => return Err(wrong("that is not a unit of time")),
        };
        number.checked_mul(micros).map(Overlap::Micros).ok_or_else(|| wrong("too long"))
    }
}

/// The watermark of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub column: String,
    pub kind: MarkKind,
}

impl Mark {
    /// Whether `new` lies above `old`. What is no value of the kind, such as `infinity`, lies above
    /// nothing: a pull that began there would find nothing ever after.
    pub fn is_above(&self, new: &str, old: Option<&str>) -> bool {
        let Some(old) = old else { return self.kind == MarkKind::Text || self.number(new).is_some() };
        match self.kind {
            MarkKind::Text => new > old,
            _ => self.number(new).is_some_and(|n| self.number(old).is_none_or(|o| n > o)),
        }
    }

    fn number(&self, text: &str) -> Option<i128> {
        match self.kind {
            MarkKind::Number(_) => text.parse().ok(),
            _ => micros(text).map(i128::from),
        }
    }

    /// The watermark at which a pull begins that follows `high`.
    ///
    /// # Errors
    /// `Usage` if the overlap is of another kind than the column.
    pub fn from(&self, high: &str, overlap: Option<Overlap>) -> Result<String> {
        match (self.kind, overlap) {
            (MarkKind::Number(unit), _) => self.number_from(high, unit, overlap),
            (MarkKind::Text, None) if micros(high).is_none() => Ok(high.to_owned()),
            (MarkKind::Text, _) if micros(high).is_none() => Err(Error::usage(format!(
                "{} holds text that is no time, such as `{high}`: there is nothing to count the overlap from",
                self.column
            ))
            .hint("leave --overlap out, or name a column with times or numbers")),
            (_, Some(Overlap::Number(0))) => Ok(high.to_owned()),
            (_, Some(Overlap::Number(n))) => {
                Err(Error::usage(format!("--overlap {n} of what? {} holds times", self.column))
                    .hint(format!("write {n}s, {n}m or {n}h")))
            }
            (_, Some(Overlap::Micros(us))) => Ok(self.time_from(high, us)),
            (_, None) => Ok(self.time_from(high, OVERLAP_DEFAULT)),
        }
    }

    fn number_from(&self, high: &str, unit: Option<TimeUnit>, overlap: Option<Overlap>) -> Result<String> {
        let overlap = match (overlap, unit) {
            (None, None) => 0,
            (Some(Overlap::Number(n)), _) => n,
            (None, Some(unit)) => units(OVERLAP_DEFAULT, unit),
            (Some(Overlap::Micros(us)), Some(unit)) => units(us, unit),
            (Some(Overlap::Micros(_)), None) => {
                return Err(Error::usage(format!(
                    "{} holds plain numbers, and --overlap is a time",
                    self.column
                ))
                .hint(format!("--watermark {}:ms says that they are times", self.column)));
            }
        };
        // A number that cannot be read was never stored as the highest.
        let high: i128 = high.parse().unwrap_or(i128::MIN);
        Ok(high.saturating_sub(overlap).max(i64::MIN as i128).to_string())
    }

    fn time_from(&self, high: &str, overlap: i64) -> String {
        let Some(us) = wall_clock(self.kind, high) else { return high.to_owned() };
        let from = chrono::DateTime::from_timestamp_micros(us.saturating_sub(overlap)).unwrap_or_default();
        match self.kind {
            MarkKind::Instant => format!("{}+00", from.format("%Y-%m-%d %H:%M:%S%.6f")),
            MarkKind::Date => from.format("%Y-%m-%d").to_string(),
            MarkKind::Text if high.len() < MINUTE => from.format("%Y-%m-%d").to_string(),
            // Up to the minute a text lies below all longer spellings of times in it.
            MarkKind::Text => {
                let text = from.format("%Y-%m-%d %H:%M").to_string();
                text.replacen(' ', &high[10..11], 1)
            }
            _ => from.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
        }
    }
}

fn units(us: i64, unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::S => us.div_euclid(1_000_000) as i128 + i128::from(us % 1_000_000 != 0),
        TimeUnit::Ms => us.div_euclid(1_000) as i128 + i128::from(us % 1_000 != 0),
        TimeUnit::Us => us as i128,
        TimeUnit::Ns => us as i128 * 1_000,
    }
}

/// Microseconds since 1970 of a time as text.
fn micros(text: &str) -> Option<i64> {
    Some(match time_text::parse(text)? {
        TimeText::Date(days) => days as i64 * 86_400_000_000,
        TimeText::Local(t) | TimeText::Instant(t) => t.us,
    })
}

/// The same; of text as it stands there, whatever the zone behind it.
fn wall_clock(kind: MarkKind, text: &str) -> Option<i64> {
    micros(if kind == MarkKind::Text { text.get(..MINUTE).unwrap_or(text) } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(kind: MarkKind) -> Mark {
        Mark { column: "at".into(), kind }
    }

    #[test]
    fn overlaps_are_read_as_people_write_them() {
        let minutes = |n: i64| Overlap::Micros(n * 60_000_000);
        assert_eq!("5 minutes".parse::<Overlap>().unwrap(), minutes(5));
        assert_eq!("5m".parse::<Overlap>().unwrap(), minutes(5));
        assert_eq!("1h".parse::<Overlap>().unwrap(), minutes(60));
        assert_eq!("100".parse::<Overlap>().unwrap(), Overlap::Number(100));
        assert!("m".parse::<Overlap>().is_err());
        assert!("5 moons".parse::<Overlap>().is_err());
        assert!("9223372036854775807d".parse::<Overlap>().is_err());
    }

    #[test]
    fn a_pull_begins_as_far_behind_as_is_said() {
        let from = |kind, high, overlap: Option<&str>| {
            mark(kind).from(high, overlap.map(|o| o.parse().unwrap())).map_err(|e| e.message().to_owned())
        };
        let (instant, text) = (MarkKind::Instant, MarkKind::Text);
        assert_eq!(
            from(instant, "2026-03-01 00:01:00.5+00", Some("2m")).unwrap(),
            "2026-02-28 23:59:00.500000+00"
        );
        assert_eq!(from(MarkKind::Local, "2026-03-01 00:06:00", None).unwrap(), "2026-03-01 00:01:00.000000");
        assert_eq!(from(MarkKind::Date, "2026-03-01", None).unwrap(), "2026-02-28");
        assert_eq!(from(text, "2026-03-01T00:06:30Z", Some("1m")).unwrap(), "2026-03-01T00:05");
        assert_eq!(from(text, "2026-03-01 00:06:30.25", Some("1m")).unwrap(), "2026-03-01 00:05");
        assert_eq!(from(text, "2026-03-01", Some("1m")).unwrap(), "2026-02-28");
        assert_eq!(from(text, "v17", None).unwrap(), "v17");
        assert!(from(text, "v17", Some("1m")).is_err());
        assert_eq!(from(MarkKind::Number(None), "17", None).unwrap(), "17");
        assert_eq!(from(MarkKind::Number(None), "17", Some("10")).unwrap(), "7");
        assert_eq!(from(MarkKind::Number(Some(TimeUnit::Ms)), "60000", Some("1m")).unwrap(), "0");
        assert!(from(MarkKind::Number(None), "17", Some("1m")).is_err());
        assert!(from(instant, "2026-03-01 00:01:00+00", Some("10")).is_err());
    }

    #[test]
    fn what_is_no_time_is_no_highest_one() {
        let instant = mark(MarkKind::Instant);
        assert!(!instant.is_above("infinity", Some("2026-03-01 00:00:00+00")));
        assert!(!instant.is_above("infinity", None));
        assert!(instant.is_above("2026-03-01 00:00:00.1+00", Some("2026-03-01 00:00:00+00")));
        assert!(!instant.is_above("2026-03-01 00:00:00+00", Some("2026-03-01 00:00:00+00")));
        assert!(mark(MarkKind::Number(None)).is_above("10", Some("9")));
    }
}
