//! From what a clause says to numbers on an axis, and what an answer tells of it.

use super::clause::{Axis, Spec};
use super::error::SqlError;
use asofdb_storage::engine::RangeSpec;
use asofdb_storage::time::{AxisType, FOREVER, format_instant};
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::common::ScalarValue;
use std::fmt;

/// A constant bound before it meets the axis of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The running clock, read once per statement.
    Now,
    /// Microseconds since 1970-01-01T00:00:00Z.
    Instant(i64),
    /// A plain integer.
    Integer(i64),
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Now => f.write_str("now"),
            Point::Instant(us) => f.write_str(&format_instant(*us)),
            Point::Integer(n) => write!(f, "{n}"),
        }
    }
}

/// Reads a text as a point: `now`, an instant (zone-less is UTC, a date is its midnight, digits
/// beyond microseconds are cut), or an integer.
pub fn parse_point(text: &str) -> Option<Point> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("now") {
        return Some(Point::Now);
    }
    if let Ok(n) = text.parse::<i64>() {
        return Some(Point::Integer(n));
    }
    let at = string_to_datetime(&chrono::Utc, text).ok()?;
    Some(Point::Instant(at.timestamp_micros()))
}

/// A constant as a point; `None` for NULL.
pub(crate) fn point_of_scalar(value: &ScalarValue) -> Result<Option<Point>, SqlError> {
    use ScalarValue::*;
    if value.is_null() {
        return Ok(None);
    }
    let integer = |n: i64| Ok(Some(Point::Integer(n)));
    let instant = |us: Option<i64>| match us {
        Some(us) => Ok(Some(Point::Instant(us))),
        None => Err(SqlError::invalid(format!("{value} lies outside of the calendar"))),
    };
    match value {
        Utf8(Some(s)) | LargeUtf8(Some(s)) | Utf8View(Some(s)) => match parse_point(s) {
            Some(point) => Ok(Some(point)),
            None => Err(SqlError::invalid(format!("'{s}' is no time"))
                .hint("write it like 2024-05-01, 2024-05-01 12:30:00 or 2024-05-01T12:30:00.123456Z")),
        },
        Int8(Some(n)) => integer(*n as i64),
        Int16(Some(n)) => integer(*n as i64),
        Int32(Some(n)) => integer(*n as i64),
        Int64(Some(n)) => integer(*n),
        UInt8(Some(n)) => integer(*n as i64),
        UInt16(Some(n)) => integer(*n as i64),
        UInt32(Some(n)) => integer(*n as i64),
        UInt64(Some(n)) => match i64::try_from(*n) {
            Ok(n) => integer(n),
            Err(_) => Err(SqlError::invalid(format!("{n} does not fit in 64 bits with a sign"))),
        },
        TimestampSecond(Some(t), _) => instant(t.checked_mul(1_000_000)),
        TimestampMillisecond(Some(t), _) => instant(t.checked_mul(1_000)),
        TimestampMicrosecond(Some(t), _) => instant(Some(*t)),
        TimestampNanosecond(Some(t), _) => instant(Some(t.div_euclid(1_000))),
        Date32(Some(d)) => instant(Some(*d as i64 * 86_400_000_000)),
        Date64(Some(ms)) => instant(ms.checked_mul(1_000)),
        other => Err(SqlError::invalid(format!("a bound cannot be of type {}", other.data_type()))
            .hint("a bound is a timestamp, a date, a text that is one, or an integer on an integer axis")),
    }
}

/// The point on an axis of type `ty` (rule A2).
pub(crate) fn point_on_axis(
    point: Point,
    axis: Axis,
    ty: AxisType,
    table: &str,
    now: i64,
) -> Result<i64, SqlError> {
    match (point, ty) {
        (Point::Now, AxisType::Instant) => Ok(now),
        (Point::Instant(us), AxisType::Instant) => Ok(us),
        (Point::Integer(n), AxisType::Integer) => Ok(n),
        (Point::Integer(n), AxisType::Instant) => Err(SqlError::invalid(format!(
            "{n} is an integer, but {} of {table} is an instant",
            axis.word()
        ))
        .hint(
            "write TIMESTAMP '2024-05-01 12:30:00', or to_timestamp_micros(n) for microseconds since 1970",
        )),
        (Point::Now | Point::Instant(_), AxisType::Integer) => Err(SqlError::invalid(format!(
            "{point} is an instant, but {} of {table} is an integer",
            axis.word()
        ))
        .hint("write a whole number: the axis counts versions or log positions, not time")),
    }
}

/// The end of an axis of integers is the latest.
pub(crate) fn as_of(at: i64) -> RangeSpec {
    if at == FOREVER { RangeSpec::Latest } else { RangeSpec::AsOf(at) }
}

/// A clause with its expressions worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointSpec {
    AsOf(Point),
    FromTo(Point, Point),
    Between(Point, Point),
    ContainedIn(Point, Point),
    All,
}

impl PointSpec {
    /// Works out the expressions of a clause.
    pub fn of(
        spec: &Spec,
        mut point: impl FnMut(&datafusion::logical_expr::sqlparser::ast::Expr) -> Result<Point, SqlError>,
    ) -> Result<PointSpec, SqlError> {
        Ok(match spec {
            Spec::AsOf(e) => PointSpec::AsOf(point(e)?),
            Spec::FromTo(a, b) => PointSpec::FromTo(point(a)?, point(b)?),
            Spec::Between(a, b) => PointSpec::Between(point(a)?, point(b)?),
            Spec::ContainedIn(a, b) => PointSpec::ContainedIn(point(a)?, point(b)?),
            Spec::All => PointSpec::All,
        })
    }

    /// The rows wanted on an axis (rule D2).
    pub fn on_axis(self, axis: Axis, ty: AxisType, table: &str, now: i64) -> Result<RangeSpec, SqlError> {
        let at = |p| point_on_axis(p, axis, ty, table, now);
        let ordered = |a, b| {
            let (from, to) = (at(a)?, at(b)?);
            if from > to {
                let message = format!("FOR {}: {a} lies after {b}", axis.word());
                return Err(SqlError::invalid(message).hint("write the earlier bound first"));
            }
            Ok((from, to))
        };
        Ok(match self {
            PointSpec::AsOf(p) => as_of(at(p)?),
            PointSpec::FromTo(a, b) => ordered(a, b).map(|(a, b)| RangeSpec::FromTo(a, b))?,
            PointSpec::Between(a, b) => ordered(a, b).map(|(a, b)| RangeSpec::Between(a, b))?,
            PointSpec::ContainedIn(a, b) => ordered(a, b).map(|(a, b)| RangeSpec::ContainedIn(a, b))?,
            PointSpec::All => RangeSpec::All,
        })
    }
}

/// What was asked of one time axis of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliedTime {
    /// The same for every row.
    Fixed(RangeSpec),
    /// Another instant for every row of the left side (rule D5); the expression.
    PerRow(String),
}

/// What was asked of the commits of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliedCommit {
    /// Everything up to this commit.
    Fixed {
        /// Its number; 0 is the empty store.
        seq: u64,
        /// Its instant.
        at: Option<i64>,
    },
    /// Another commit for every row of the left side; the expression.
    PerRow(String),
}

/// The clocks that were applied to one table of a query, for the footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The table.
    pub table: String,
    /// Valid time.
    pub valid: AppliedTime,
    /// Meaning of its numbers.
    pub valid_axis: AxisType,
    /// System time.
    pub system: AppliedTime,
    /// Meaning of its numbers.
    pub system_axis: AxisType,
    /// Commit.
    pub commit: AppliedCommit,
}

fn point_text(n: i64, ty: AxisType) -> String {
    match ty {
        AxisType::Instant => format_instant(n),
        AxisType::Integer => n.to_string(),
    }
}

/// A range as words: `latest`, `as of 2024-05-01T00:00:00Z`, …
pub fn describe_range(spec: RangeSpec, ty: AxisType) -> String {
    let p = |n| point_text(n, ty);
    match spec {
        RangeSpec::Latest | RangeSpec::AsOf(FOREVER) => "latest".into(),
        RangeSpec::AsOf(t) => format!("as of {}", p(t)),
        RangeSpec::FromTo(a, b) => format!("from {} to {}", p(a), p(b)),
        RangeSpec::Between(a, b) => format!("between {} and {}", p(a), p(b)),
        RangeSpec::ContainedIn(a, b) => format!("contained in ({}, {})", p(a), p(b)),
        RangeSpec::All => "all".into(),
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |t: &AppliedTime, ty| match t {
            AppliedTime::Fixed(spec) => describe_range(*spec, ty),
            AppliedTime::PerRow(e) => format!("as of {e}"),
        };
        let Applied { table, valid, valid_axis, system, system_axis, commit } = self;
        write!(f, "{table}: valid {}, system {}, ", time(valid, *valid_axis), time(system, *system_axis))?;
        match commit {
            AppliedCommit::Fixed { seq, at: Some(at) } => write!(f, "commit {seq} ({})", format_instant(*at)),
            AppliedCommit::Fixed { seq, at: None } => write!(f, "commit {seq}"),
            AppliedCommit::PerRow(e) => write!(f, "commit as of {e}"),
        }
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
