//! From filters to the commits and valid times of the events that they may let through.

use crate::sql::keys::value_of;
use asofdb_storage::time::{AxisType, CommitSeq, format_instant};
use asofdb_storage::value::Value;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use std::ops::RangeInclusive;

/// Bounds of events. NULL, which an event from the beginning has as its start, is let through by no comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventSpans {
    pub commits: RangeInclusive<u64>,
    pub valid: RangeInclusive<i64>,
}

const COMMIT: &str = "__COMMIT_SEQ";
const START: &str = "__START_AT";

impl EventSpans {
    /// What the filters leave of the events up to a commit.
    pub fn of(filters: &[Expr], commit: CommitSeq) -> EventSpans {
        let mut commits = i64::MIN..=i64::try_from(commit.0).unwrap_or(i64::MAX);
        let mut valid = i64::MIN..=i64::MAX;
        for filter in filters.iter().flat_map(split_conjunction) {
            narrow(&mut commits, filter, COMMIT);
            narrow(&mut valid, filter, START);
        }
        let number = |n: &i64| u64::try_from(*n).unwrap_or(0);
        // There is no commit 0.
        EventSpans { commits: number(commits.start())..=number(commits.end()), valid }
    }

    /// Whether every event is within.
    pub fn hold_all(&self) -> bool {
        *self.commits.start() <= 1 && self.valid == (i64::MIN..=i64::MAX)
    }

    /// As words for EXPLAIN; nothing if every event is within.
    pub fn describe(&self, axis: AxisType) -> String {
        let mut words = String::new();
        if *self.commits.start() > 1 {
            words.push_str(&format!(", commits={} to {}", self.commits.start(), self.commits.end()));
        }
        if self.valid != (i64::MIN..=i64::MAX) {
            let time = |t: &i64| match axis {
                _ if matches!(*t, i64::MIN | i64::MAX) => "any".to_owned(),
                AxisType::Instant => format_instant(*t),
                AxisType::Integer => t.to_string(),
            };
            let (start, end) = (time(self.valid.start()), time(self.valid.end()));
            words.push_str(&format!(", starts={start} to {end}"));
        }
        words
    }
}

/// Narrows a span by a comparison of `column` with a constant, both ends included.
fn narrow(span: &mut RangeInclusive<i64>, filter: &Expr, column: &str) {
    let is_column = |e: &Expr| matches!(e, Expr::Column(c) if c.name == column);
    let number = |e: &Expr| match e {
        Expr::Literal(value, _) => number_of(value),
        _ => None,
    };
    let (low, high) = match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (op, value) = match (number(left), number(right)) {
                (None, Some(n)) if is_column(left) => (Some(*op), n),
                (Some(n), None) if is_column(right) => (op.swap(), n),
                _ => return,
            };
            match op {
                Some(Operator::Eq) => (Some(value), Some(value)),
                Some(Operator::Lt | Operator::LtEq) => (None, Some(value)),
                Some(Operator::Gt | Operator::GtEq) => (Some(value), None),
                _ => return,
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) if is_column(expr) => {
            (number(low), number(high))
        }
        _ => return,
    };
    let start = low.unwrap_or(i64::MIN).max(*span.start());
    let end = high.unwrap_or(i64::MAX).min(*span.end());
    *span = start..=end;
}

/// A number of an axis or a commit: whole numbers and instants in microseconds.
fn number_of(value: &ScalarValue) -> Option<i64> {
    match value_of(value)? {
        Value::Int(n) | Value::Instant(n) => Some(n),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::{ident, lit};

    fn spans(filters: &[Expr]) -> (RangeInclusive<u64>, RangeInclusive<i64>) {
        let spans = EventSpans::of(filters, CommitSeq(9));
        (spans.commits, spans.valid)
    }

    #[test]
    fn comparisons_with_constants_narrow() {
        let all = i64::MIN..=i64::MAX;
        assert_eq!(spans(&[]), (0..=9, all.clone()));
        assert_eq!(spans(&[ident(COMMIT).gt(lit(3i64))]), (3..=9, all.clone()));
        assert_eq!(spans(&[lit(3i64).gt(ident(COMMIT))]), (0..=3, all.clone()));
        let both = ident(COMMIT).gt_eq(lit(2i64)).and(ident(COMMIT).lt(lit(4i64)));
        assert_eq!(spans(&[both]), (2..=4, all.clone()));
        assert_eq!(spans(&[ident(COMMIT).between(lit(2i64), lit(40i64))]), (2..=9, all.clone()));
        assert_eq!(spans(&[ident(COMMIT).lt(lit(-1i64))]).0, 0..=0);
        let at = |us| lit(ScalarValue::TimestampMicrosecond(Some(us), Some("UTC".into())));
        assert_eq!(spans(&[ident(START).eq(at(7))]), (0..=9, 7..=7));
        let either = ident(COMMIT).eq(lit(2i64)).or(ident(START).eq(at(7)));
        assert_eq!(spans(&[either, ident("other").gt(lit(3i64))]), (0..=9, all));
    }
}
