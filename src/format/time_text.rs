//! Times as text: ISO 8601 and RFC 3339, and the canonical spellings of times of day.

use chrono::NaiveDate;
use std::fmt::Write;

/// A time as its text says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeText {
    /// Days since 1970-01-01.
    Date(i32),
    /// A wall-clock time without a zone.
    Local(Micros),
    /// An instant.
    Instant(Micros),
}

/// Microseconds since 1970-01-01T00:00:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Micros {
    /// The number, rounded down.
    pub us: i64,
    /// Nothing was lost by rounding.
    pub exact: bool,
}

fn digits(bytes: &[u8], from: usize, n: usize) -> Option<u32> {
    let part = bytes.get(from..from + n)?;
    part.iter().all(u8::is_ascii_digit).then(|| part.iter().fold(0, |v, b| v * 10 + (b - b'0') as u32))
}

/// Reads `YYYY-MM-DD`, or `YYYY-MM-DDThh:mm[:ss[.f]][Z|+hh[[:]mm]]` with `T`, `t` or one space.
pub fn parse(text: &str) -> Option<TimeText> {
    let b = text.as_bytes();
    if b.get(4) != Some(&b'-') || b.get(7) != Some(&b'-') {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(digits(b, 0, 4)? as i32, digits(b, 5, 2)?, digits(b, 8, 2)?)?;
    let days = date.signed_duration_since(NaiveDate::default()).num_days();
    if b.len() == 10 {
        return Some(TimeText::Date(days as i32));
    }
    if !matches!(b.get(10), Some(b'T' | b't' | b' ')) || b.get(13) != Some(&b':') {
        return None;
    }
    let (hour, minute) = (digits(b, 11, 2)?, digits(b, 14, 2)?);
    let (mut at, mut second, mut sub, mut exact) = (16, 0, 0i64, true);
    if b.get(at) == Some(&b':') {
        second = digits(b, at + 1, 2)?;
        at += 3;
        if b.get(at) == Some(&b'.') {
            (at, sub, exact) = fraction(b, at + 1)?;
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let us = days * 86_400_000_000 + (hour * 3600 + minute * 60 + second) as i64 * 1_000_000 + sub;
    if at == b.len() {
        return Some(TimeText::Local(Micros { us, exact }));
    }
    let us = us - offset_seconds(&b[at..])? * 1_000_000;
    Some(TimeText::Instant(Micros { us, exact }))
}

fn fraction(b: &[u8], from: usize) -> Option<(usize, i64, bool)> {
    let (mut at, mut us, mut unit, mut exact) = (from, 0i64, 100_000, true);
    while let Some(d @ b'0'..=b'9') = b.get(at) {
        us += (d - b'0') as i64 * unit;
        exact &= unit > 0 || *d == b'0';
        unit /= 10;
        at += 1;
    }
    (at > from).then_some((at, us, exact))
}

fn offset_seconds(b: &[u8]) -> Option<i64> {
    let sign = match b {
        b"Z" | b"z" => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    let hours = digits(b, 1, 2)?;
    let (minutes, seconds) = match b.len() {
        3 => (0, 0),
        5 => (digits(b, 3, 2)?, 0),
        6 if b[3] == b':' => (digits(b, 4, 2)?, 0),
        // Local mean time, as PostgreSQL writes it of years before there were zones.
        9 if b[3] == b':' && b[6] == b':' => (digits(b, 4, 2)?, digits(b, 7, 2)?),
        _ => return None,
    };
    let fits = hours < 24 && minutes < 60 && seconds < 60;
    fits.then_some(sign * (hours as i64 * 3600 + minutes as i64 * 60 + seconds as i64))
}

/// Appends a time of day, or a span of one, as `[-]hh:mm:ss[.f]` without trailing zeros.
pub fn write_time_of_day(out: &mut String, units: i64, units_per_second: u32) {
    let size = units.unsigned_abs();
    let (seconds, sub) = (size / units_per_second as u64, size % units_per_second as u64);
    let sign = if units < 0 { "-" } else { "" };
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut written = write!(out, "{sign}{h:02}:{m:02}:{s:02}");
    if sub != 0 {
        let width = units_per_second.ilog10() as usize;
        let digits = format!("{sub:0width$}");
        written = written.and(write!(out, ".{}", digits.trim_end_matches('0')));
    }
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}
