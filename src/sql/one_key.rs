//! Why a question about one key has no row: what the shell says under an empty answer.

use super::reader::Reader;
use asofdb_storage::engine::{Bounds, Cause};
use asofdb_storage::event::EventColumns;
use asofdb_storage::id::ColumnId;
use asofdb_storage::schema::TableMeta;
use asofdb_storage::time::{AxisType, BEGINNING, FOREVER, format_instant};
use std::sync::Arc;

/// The one key of one table that a statement asks about, at a point.
#[derive(Clone, Debug)]
pub struct OneKey {
    pub(crate) reader: Arc<dyn Reader>,
    pub(crate) meta: Arc<TableMeta>,
    pub(crate) key: Vec<u8>,
    pub(crate) bounds: Bounds,
}

impl PartialEq for OneKey {
    fn eq(&self, other: &OneKey) -> bool {
        (self.meta.id, &self.key, self.bounds) == (other.meta.id, &other.key, other.bounds)
    }
}

impl OneKey {
    /// Why there is no row, in words; `None` if there is one, or it cannot be found out.
    pub fn why_absent(&self) -> Option<String> {
        let OneKey { reader, meta, key, bounds } = self;
        let schema = Arc::new(meta.schema().clone());
        let column = ColumnId(schema.key.first()?.0);
        let why = reader.why(meta.id, key, column, *bounds, &schema).ok()?;
        let name = format!("this key of {}", meta.name);
        let ended = |word: &str| {
            let events = EventColumns::new(why.events.slice(0, why.events.num_rows().min(1))).ok()?;
            let event = (!events.is_empty()).then_some(events)?;
            Some(format!(
                "the row of {name} was {word} at {}, known since {} (commit {})",
                shown(event.valid_from().value(0), meta.valid_axis),
                shown(event.system().value(0), meta.system_axis),
                event.commit().value(0)
            ))
        };
        match why.cause {
            Cause::Ended => ended("deleted"),
            Cause::Truncated => ended("truncated"),
            cause => reason(cause, &name, "", meta, bounds),
        }
    }
}

/// Why there is no event to name; `None` where there is.
pub(crate) fn reason(cause: Cause, key: &str, column: &str, meta: &TableMeta, at: &Bounds) -> Option<String> {
    let valid = |t: i64| shown(t, meta.valid_axis);
    let known = |t: i64| shown(t, meta.system_axis);
    Some(match cause {
        Cause::Set | Cause::Leaves | Cause::Ended | Cause::Truncated => return None,
        Cause::NeverWritten | Cause::OnlyPlaceholders if column.is_empty() => return None,
        Cause::UnknownKey => format!("there are no events of {key}"),
        Cause::NeverWritten => {
            format!("no event has set {column} since the row of {key} began: it was never sent")
        }
        Cause::OnlyPlaceholders => format!(
            "of {column} only placeholders were sent since the row of {key} began: its value is unknown"
        ),
        Cause::NoneHolds { first } if at.valid != FOREVER && first > at.valid => {
            format!("{key} first holds at {}: there was no row at {}", valid(first), valid(at.valid))
        }
        Cause::NoneHolds { .. } => format!("{key} has events, but none that holds then"),
        Cause::NotKnownYet { first: Some(first), .. } => {
            format!("{key} was first known at {}, not yet at {}", known(first), known(at.system))
        }
        Cause::NotKnownYet { first: None, commit } => {
            format!("{key} came with commit {commit}: commit {} does not know it", at.commit)
        }
    })
}

/// A time in words.
fn shown(t: i64, axis: AxisType) -> String {
    match axis {
        AxisType::Instant if t == BEGINNING => "the beginning".into(),
        AxisType::Instant => format_instant(t),
        AxisType::Integer => t.to_string(),
    }
}
