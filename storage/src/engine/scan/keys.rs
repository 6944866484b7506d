//! Which keys a scan visits.

use super::group::{Event, Groups};
use super::loaded::Loaded;
use super::source::SortedSource;
use crate::engine::error::Error;
use crate::engine::request::KeyFilter;
use crate::schema::TableSchema;
use std::sync::Arc;

/// Walks over all keys, or over some in ascending order.
#[derive(Debug)]
pub(crate) enum KeyWalk {
    All,
    /// Ascending, without repeats; the sources hold other keys between.
    Some {
        keys: Vec<Vec<u8>>,
        next: usize,
    },
    /// As `Some`, of keys that are looked up one by one.
    LookedUp {
        keys: std::vec::IntoIter<Vec<u8>>,
        sources: Vec<Arc<dyn SortedSource>>,
        columns: Vec<String>,
        schema: Arc<TableSchema>,
    },
}

impl From<KeyFilter> for KeyWalk {
    fn from(keys: KeyFilter) -> KeyWalk {
        match keys {
            // Ranges of keys are ranges of rows.
            KeyFilter::All | KeyFilter::Ranges(_) => KeyWalk::All,
            KeyFilter::Keys(keys) => KeyWalk::Some { keys, next: 0 },
        }
    }
}

impl KeyWalk {
    /// The events of the next key to visit; false at the end.
    pub fn next(&mut self, groups: &mut Groups, events: &mut Vec<Event>) -> Result<bool, Error> {
        match self {
            KeyWalk::All => groups.next(events),
            KeyWalk::Some { keys, next } => {
                while let Some(key) = keys.get(*next) {
                    *next += 1;
                    if groups.seek(key, events)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            KeyWalk::LookedUp { keys, sources, columns, schema } => {
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                for key in keys {
                    let rows = |s: &Arc<dyn SortedSource>| s.rows_of_key(&key, &columns, schema).transpose();
                    let found = sources.iter().filter_map(rows).map(|batch| Loaded::new(batch?));
                    groups.add_key(found.collect::<Result<Vec<_>, Error>>()?, events)?;
                    if !events.is_empty() {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}
