//! The schemas that a decoder has met.

use super::container::record_bytes;
use super::framing::{Framed, Part};
use super::schema::{Dialect, Schema};
use super::source::{NoSchema, SchemaText};
use crate::change::Message;
use crate::format::fields::Reject;
use crate::format::layout;
use crate::format::options::FormatOptions;
use std::collections::HashMap;
use std::sync::Arc;

/// Schemas kept; past this the cache starts afresh.
const SCHEMAS_MAX: usize = 10_000;

const NO_SOURCE: &str = "the messages name the schemas they were written with by number, and nothing says \
                         where those are";
const NO_SOURCE_HINT: &str =
    "--schemas FILE names a file with the schemas of the registry, --registry URL asks the registry itself";
const CHANGED_HINT: &str = "a registry never gives an id to another schema: if it was set up anew, give it another \
                            address (a name or path of its own), or have --schemas name a file with the right schema";
const UNKNOWN_HINT: &str = "the message can be taken once the schema is known: asof quarantine replay";

/// Why decoding cannot go on although the messages may be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// What is wrong.
    pub reason: String,
    /// What may help.
    pub hint: &'static str,
}

impl From<String> for Unready {
    fn from(reason: String) -> Unready {
        Unready { reason, hint: "" }
    }
}

/// Why there is no schema of an id, and in which round of its source that was found out.
#[derive(Debug)]
struct Missing {
    reason: String,
    round: u64,
}

/// Schemas by id, and numbers for the names of their fields.
#[derive(Debug)]
pub(in crate::format) struct Known {
    dialect: Dialect,
    by_id: HashMap<u64, Result<Arc<Schema>, Missing>>,
    /// The last schema of each part of a message.
    last: [Option<(u64, Arc<Schema>)>; 3],
    names: HashMap<String, u16>,
    /// The names by number.
    listed: Vec<String>,
    /// The schema of all values, where they come from one file that holds it.
    pub fixed: Option<Arc<Schema>>,
    /// The numbers are those of this dictionary.
    pub dictionary: u32,
}

impl Known {
    pub fn new(dialect: Dialect) -> Known {
        let dictionary = layout::dictionary();
        Known {
            dialect,
            by_id: HashMap::new(),
            last: [None, None, None],
            names: HashMap::new(),
            listed: Vec::new(),
            fixed: None,
            dictionary,
        }
    }

    /// Finds the schemas of a message, if they are to be had.
    ///
    /// # Errors
    /// If it cannot be found out whether they are.
    pub fn ready(&mut self, options: &FormatOptions, message: &Message<'_>) -> Result<(), Unready> {
        if self.fixed.is_some() {
            return Ok(());
        }
        for part in Part::ALL {
            let Some(bytes) = part.of(message) else { continue };
            let Ok(framed) = options.framing.framed(bytes, message.headers, part) else { continue };
            if self.is_last(part, framed.id) || matches!(self.by_id.get(&framed.id), Some(Ok(_))) {
                continue;
            }
            let source = options.schemas.as_ref();
            // What was unknown is so for one round.
            let round = source.map_or(0, |s| s.round());
            if matches!(self.by_id.get(&framed.id), Some(Err(missing)) if missing.round == round) {
                continue;
            }
            let source =
                source.ok_or_else(|| Unready { reason: NO_SOURCE.to_owned(), hint: NO_SOURCE_HINT })?;
            let found = match source.schema(framed.id) {
                Ok(text) => Schema::parse(&text, self.dialect)
                    .map_err(|e| format!("the schema {} cannot be used: {e}", framed.id)),
                Err(NoSchema::Unknown(reason)) => Err(reason),
                Err(NoSchema::Unreachable(reason)) => {
                    return Err(Unready { reason, hint: "what was taken before stays; run it again later" });
                }
                Err(NoSchema::Changed(reason)) => return Err(Unready { reason, hint: CHANGED_HINT }),
            };
            let found = found.map(|schema| Arc::new(self.numbered(schema)));
            let found = found.map_err(|reason| Missing { reason, round });
            if self.by_id.len() >= SCHEMAS_MAX {
                self.by_id.clear();
            }
            self.by_id.insert(framed.id, found);
        }
        Ok(())
    }

    /// Has all values read with one schema.
    ///
    /// # Errors
    /// In words, if it is none.
    pub fn fix(&mut self, schema: &str) -> Result<(), String> {
        let text = SchemaText { schema: schema.to_owned(), references: Vec::new() };
        let schema =
            Schema::parse(&text, self.dialect).map_err(|e| format!("its schema cannot be used: {e}"))?;
        self.fixed = Some(Arc::new(self.numbered(schema)));
        Ok(())
    }

    /// How many bytes the record takes that `bytes` begin with, where all values have one schema.
    ///
    /// # Errors
    /// If there is no such schema, or the record does not end within them.
    pub fn record_bytes(&self, bytes: &[u8]) -> Result<usize, String> {
        let schema = self.fixed.as_ref().ok_or("there is no schema")?;
        record_bytes(schema, bytes).map_err(|e| e.reason)
    }

    fn is_last(&self, part: Part, id: u64) -> bool {
        self.last[part as usize].as_ref().is_some_and(|(last, _)| *last == id)
    }

    /// The schema of a part that [`Known::ready`] has seen.
    ///
    /// # Errors
    /// If there is none.
    pub fn schema(&mut self, part: Part, framed: &Framed<'_>) -> Result<Arc<Schema>, Reject> {
        if let Some((id, schema)) = &self.last[part as usize]
            && *id == framed.id
        {
            return Ok(schema.clone());
        }
        match self.by_id.get(&framed.id) {
            Some(Ok(schema)) => {
                self.last[part as usize] = Some((framed.id, schema.clone()));
                Ok(schema.clone())
            }
            Some(Err(missing)) => Err(Reject::new(missing.reason.clone()).hint(UNKNOWN_HINT)),
            None => Err(Reject::new(NO_SOURCE).hint(NO_SOURCE_HINT)),
        }
    }

    /// The names of fields by their numbers.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.listed.iter().map(String::as_bytes)
    }

    /// Gives the fields of records their numbers.
    fn numbered(&mut self, mut schema: Schema) -> Schema {
        for record in schema.records_mut() {
            let numbers = record.fields.iter().map(|f| {
                let next = u16::try_from(self.names.len()).ok();
                match self.names.get(&f.name) {
                    Some(number) => Some(*number),
                    None => next.inspect(|n| {
                        self.names.insert(f.name.clone(), *n);
                        self.listed.push(f.name.clone());
                    }),
                }
            });
            record.numbers = numbers.collect::<Option<Vec<_>>>().unwrap_or_default();
        }
        schema
    }
}
