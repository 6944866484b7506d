//! Which keys a scan visits.

use super::group::{Event, Groups};
use crate::engine::error::Error;
use crate::engine::request::KeyFilter;

/// Walks over all keys, or over some in ascending order.
#[derive(Debug)]
pub(crate) enum KeyWalk {
    All,
    /// Ascending, without repeats; the sources hold other keys between.
    Some {
        keys: Vec<Vec<u8>>,
        next: usize,
    },
}

impl From<KeyFilter> for KeyWalk {
    fn from(keys: KeyFilter) -> KeyWalk {
        match keys {
            KeyFilter::All => KeyWalk::All,
            KeyFilter::Keys(keys) => KeyWalk::Some { keys, next: 0 },
        }
    }
}

impl KeyWalk {
    /// The events of the next key to visit; false at the end.
    pub fn next(&mut self, groups: &mut Groups, events: &mut Vec<Event>) -> Result<bool, Error> {
        let KeyWalk::Some { keys, next } = self else { return groups.next(events) };
        while let Some(key) = keys.get(*next) {
            *next += 1;
            if groups.seek(key, events)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
