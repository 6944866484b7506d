//! Tables of topics.

use crate::format::scratch::Scratch;
use std::collections::HashMap;

/// Topics whose table is remembered.
const TOPICS_MAX: usize = 10_000;

/// Which table the messages of a topic belong to, for messages that do not say: tombstones. Learned
/// from the topic's events; before those, the last two parts of the topic's name.
#[derive(Debug, Default)]
pub struct Topics {
    tables: HashMap<String, Option<String>>,
    last: Option<(String, String)>,
}

impl Topics {
    /// An event of `topic` belongs to `table`.
    pub fn learn(&mut self, topic: &str, table: &str) {
        if self.last.as_ref().is_some_and(|(t, n)| t == topic && n == table) {
            return;
        }
        if self.tables.len() < TOPICS_MAX {
            let entry = self.tables.entry(topic.to_owned()).or_insert_with(|| Some(table.to_owned()));
            if entry.as_deref() != Some(table) {
                *entry = None;
            }
        }
        self.last = Some((topic.to_owned(), table.to_owned()));
    }

    /// The table of a message that names none; `None` where the topic carries several tables or its
    /// name says nothing.
    pub fn guess<'a>(&self, topic: &'a str, scratch: &mut Scratch<'a>) -> Option<&'a str> {
        match self.tables.get(topic) {
            Some(Some(table)) => Some(scratch.put_str(|out| out.push_str(table))),
            Some(None) => None,
            None => {
                let last_dot = topic.rfind('.')?;
                Some(topic[..last_dot].rfind('.').map_or(topic, |at| &topic[at + 1..]))
            }
        }
    }
}
