//! Instants as people write them: strict forms, and a small guarded set of friendly words. A vague
//! word is an error, and so is nothing at all.

use chrono::{DateTime, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

/// A point that a person named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// `now`: back to the running clock.
    Now,
    /// Microseconds since 1970-01-01T00:00:00Z.
    Instant(i64),
    /// A plain integer: a commit number, or a point on an integer axis.
    Integer(i64),
}

/// The forms that [`parse`] takes, for messages.
pub const FORMS: &str = "2026-11-29, 2026-11-29 18:00, 2026-11-29T18:00:00+01:00, now, today, \
     yesterday 18:00, monday 9:30, 3 hours ago";

/// Reads `text`; `now_us` is the running clock in microseconds since 1970. A time without a zone is
/// UTC.
pub fn parse(text: &str, now_us: i64) -> Result<When, String> {
    let text = text.trim();
    let text = unquote(text).trim();
    if text.is_empty() {
        return Err("no time is given".into());
    }
    if text.eq_ignore_ascii_case("now") {
        return Ok(When::Now);
    }
    if let Ok(n) = text.parse::<i64>() {
        return Ok(When::Integer(n));
    }
    if let Some(us) = strict(text)? {
        return Ok(When::Instant(us));
    }
    match friendly(&text.to_lowercase(), now_us)? {
        Some(us) => Ok(When::Instant(us)),
        None => Err(format!("'{text}' is not a time this shell understands")),
    }
}

fn unquote(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).unwrap_or(text)
}

/// RFC 3339, or a date with or without a time of day, in UTC.
fn strict(text: &str) -> Result<Option<i64>, String> {
    let starts_like_a_date = text.len() >= 8 && text.as_bytes()[..4].iter().all(u8::is_ascii_digit);
    if !starts_like_a_date {
        return Ok(None);
    }
    let spaced = text.replacen(' ', "T", 1);
    if let Ok(t) = DateTime::parse_from_rfc3339(&spaced) {
        return exact(t.timestamp_micros(), t.timestamp_subsec_nanos()).map(Some);
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"] {
        if let Ok(t) = DateTime::parse_from_str(&spaced.replace('Z', "+00"), form) {
            return exact(t.timestamp_micros(), t.timestamp_subsec_nanos()).map(Some);
        }
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"] {
        if let Ok(t) = NaiveDateTime::parse_from_str(&spaced, form) {
            let t = t.and_utc();
            return exact(t.timestamp_micros(), t.timestamp_subsec_nanos()).map(Some);
        }
    }
    match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        Ok(d) => Ok(Some(d.and_time(NaiveTime::MIN).and_utc().timestamp_micros())),
        Err(_) => Err(format!("'{text}' is not a date and time of the calendar")),
    }
}

fn exact(us: i64, nanos: u32) -> Result<i64, String> {
    if nanos.is_multiple_of(1000) {
        Ok(us)
    } else {
        Err("instants are kept to the microsecond; leave the digits beyond it out".into())
    }
}

fn friendly(text: &str, now_us: i64) -> Result<Option<i64>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let now = DateTime::from_timestamp_micros(now_us).ok_or("the clock is beyond the calendar")?;
    if let [amount, unit, "ago"] = words[..] {
        let amount: u32 = match amount {
            "a" | "an" | "one" => 1,
            n => n.parse().map_err(|_| format!("'{n}' is not a whole number"))?,
        };
        return back(now, amount, unit).map(|t| Some(t.timestamp_micros()));
    }
    let (day, time) = match words[..] {
        [day] => (day, NaiveTime::MIN),
        [day, time] | [day, "at", time] => (day, time_of_day(time)?),
        _ => return Ok(None),
    };
    let today = now.date_naive();
    let date = match day {
        "today" => Some(today),
        "yesterday" => today.pred_opt(),
        "tomorrow" => today.succ_opt(),
        name => weekday(name).and_then(|w| last(w, today)),
    };
    Ok(date.map(|d| d.and_time(time).and_utc().timestamp_micros()))
}

/// Whole names and their three-letter forms only, so that no slip becomes a day.
fn weekday(name: &str) -> Option<chrono::Weekday> {
    name.ends_with("day").then(|| name.parse().ok()).flatten()
}

/// The last such day before today.
fn last(day: chrono::Weekday, today: NaiveDate) -> Option<NaiveDate> {
    use chrono::Datelike;
    let behind = (today.weekday().num_days_from_monday() + 7 - day.num_days_from_monday()) % 7;
    today.checked_sub_days(Days::new(if behind == 0 { 7 } else { behind as u64 }))
}

fn time_of_day(text: &str) -> Result<NaiveTime, String> {
    ["%H:%M", "%H:%M:%S", "%H:%M:%S%.6f"]
        .iter()
        .find_map(|form| NaiveTime::parse_from_str(text, form).ok())
        .ok_or_else(|| format!("'{text}' is not a time of day; write 18:00 or 18:00:30"))
}

fn back(now: DateTime<chrono::Utc>, amount: u32, unit: &str) -> Result<DateTime<chrono::Utc>, String> {
    let seconds = |n: i64| now.checked_sub_signed(TimeDelta::seconds(amount as i64 * n));
    let then = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" | "sec" => seconds(1),
        "minute" | "min" => seconds(60),
        "hour" => seconds(3600),
        "day" => seconds(86_400),
        "week" => seconds(7 * 86_400),
        "month" => now.checked_sub_months(Months::new(amount)),
        "year" => amount.checked_mul(12).and_then(|n| now.checked_sub_months(Months::new(n))),
        _ => {
            return Err(format!(
                "'{unit}' is not a unit of time; say seconds, minutes, hours, days, weeks, months or years"
            ));
        }
    };
    then.ok_or_else(|| "that is before the calendar begins".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use asofdb::time::format_instant;

    /// Monday 2026-11-30T09:12:03.5Z.
    const NOW: i64 = 1_796_029_923_500_000;

    fn at(text: &str) -> String {
        match parse(text, NOW) {
            Ok(When::Instant(us)) => format_instant(us),
            Ok(other) => format!("{other:?}"),
            Err(e) => format!("error: {e}"),
        }
    }

    #[test]
    fn strict_forms() {
        assert_eq!(at("2026-11-29"), "2026-11-29T00:00:00Z");
        assert_eq!(at("2026-11-29 18:00"), "2026-11-29T18:00:00Z");
        assert_eq!(at("'2026-11-29T18:00:00.25'"), "2026-11-29T18:00:00.250Z");
        assert_eq!(at("2026-11-29T18:00:00+01:00"), "2026-11-29T17:00:00Z");
        assert_eq!(at("2026-11-29 18:00Z"), "2026-11-29T18:00:00Z");
        assert_eq!(at("now"), "Now");
        assert_eq!(at("4711"), "Integer(4711)");
    }

    #[test]
    fn friendly_forms() {
        assert_eq!(at("yesterday 18:00"), "2026-11-29T18:00:00Z");
        assert_eq!(at("Today"), "2026-11-30T00:00:00Z");
        assert_eq!(at("3 hours ago"), "2026-11-30T06:12:03.500Z");
        assert_eq!(at("an hour ago"), "2026-11-30T08:12:03.500Z");
        assert_eq!(at("1 month ago"), "2026-10-30T09:12:03.500Z");
        assert_eq!(at("monday"), "2026-11-23T00:00:00Z");
        assert_eq!(at("friday at 9:30"), "2026-11-27T09:30:00Z");
    }

    #[test]
    fn vague_or_wrong_is_an_error() {
        for text in [
            "",
            "  ",
            "''",
            "soon",
            "2026-13-01",
            "2026-02-30",
            "yesterday 25:00",
            "3 moons ago",
            "-1 days ago",
            "18:00",
            "sun",
            "2026-11-29T18:00:00.0000001Z",
            "99999999 years ago",
        ] {
            assert!(parse(text, NOW).is_err(), "{text:?} gave {}", at(text));
        }
    }
}
