//! Column names in options that no message knows: a misspelt name must not pass for a choice.

use crate::change::Change;
use crate::count;
use crate::error::{Error, Result};
use crate::near::near_names_hint;
use crate::options::{ColumnChoice, Columns, IntakeOptions};
use asofdb_storage::engine::Catalog;
use asofdb_storage::event::Op;
use std::collections::BTreeSet;

/// Quarantined messages that are searched for names.
const LOOKED_INTO_MAX: usize = 100;
/// Objects inside objects of such a message that are searched for names.
const LEVELS_MAX: usize = 3;
/// Columns that are left out.
const LEFT_OUT: &str = "--columns * except";

/// Names that options use and no message had so far.
#[derive(Debug, Default)]
pub struct Wanted {
    missing: Vec<(&'static str, String)>,
    /// Names that messages had, for hints.
    seen: BTreeSet<String>,
    looked_into: usize,
    messages: u64,
}

impl Wanted {
    /// The columns that `options` name. Fields of the envelope and paths into objects are not
    /// looked for.
    pub fn new(options: &IntakeOptions) -> Wanted {
        let mut missing = Vec::new();
        let mut add = |option: &'static str, name: &str| {
            if !name.starts_with('_') && !name.contains('.') {
                missing.push((option, name.to_owned()));
            }
        };
        let times =
            [("--valid", &options.valid), ("--valid-end", &options.valid_end), ("--system", &options.system)];
        times.iter().for_each(|(o, c)| c.iter().for_each(|c| add(o, &c.column)));
        options.tie_break.iter().for_each(|c| add("--tie-break", c));
        for (option, name) in [
            ("--op", &options.op),
            ("--operation-id", &options.operation_id),
            ("--columns-to-update", &options.columns_to_update),
        ] {
            name.iter().for_each(|c| add(option, c));
        }
        for key in options.keys.iter().filter(|k| k.table.is_none()) {
            key.columns.iter().for_each(|c| add("--key", c));
        }
        if let Some(set) = &options.ignore_null_updates {
            match set {
                ColumnChoice::All => {}
                ColumnChoice::Only(names) | ColumnChoice::Except(names) => {
                    names.iter().for_each(|c| add("--ignore-null-updates", c));
                }
            }
        }
        match &options.columns {
            Some(Columns::Except(names)) => names.iter().for_each(|c| add(LEFT_OUT, c)),
            Some(Columns::List(list)) => list.iter().for_each(|c| add("--columns", &c.name)),
            None => {}
        }
        Wanted { missing, ..Wanted::default() }
    }

    /// Crosses off the names of a message. Deletes and truncates may leave columns out, and so they
    /// are no sign that a column is missing.
    #[inline]
    pub fn look_at(&mut self, change: &Change<'_>) {
        if !self.missing.is_empty() {
            self.messages += u64::from(!matches!(change.op, Op::Delete | Op::Truncate));
            self.cross_off(change.fields.iter().map(|c| c.name));
        }
    }

    fn cross_off<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        for name in names {
            self.missing.retain(|(_, wanted)| wanted != name);
            if self.seen.len() < 1000 && !self.seen.contains(name) {
                self.seen.insert(name.to_owned());
            }
        }
    }

    /// Crosses off the names of a message that could not be taken, as far as it is JSON. It is a sign
    /// that a column is missing only where it has a row.
    pub fn look_into(&mut self, raw: &[u8]) {
        if self.missing.is_empty() || self.looked_into >= LOOKED_INTO_MAX {
            return;
        }
        self.looked_into += 1;
        if let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(raw) {
            self.messages += u64::from(has_row(&object));
            self.cross_off_object(&object, LEVELS_MAX);
        }
    }

    /// Envelopes wrap rows in objects: `payload.after.id`.
    fn cross_off_object(&mut self, object: &serde_json::Map<String, serde_json::Value>, levels: usize) {
        self.cross_off(object.keys().map(String::as_str));
        if levels > 0 {
            for inner in object.values().filter_map(|v| v.as_object()) {
                self.cross_off_object(inner, levels - 1);
            }
        }
    }

    /// Looks at what is missing after the first batch with messages that could have had it; later
    /// calls do nothing. `commits` were made before.
    ///
    /// # Errors
    /// `Usage`, if a name is missing that the store does not know either.
    pub fn check(&mut self, catalog: &Catalog, commits: u64) -> Result<()> {
        if self.messages == 0 || self.missing.is_empty() {
            return Ok(());
        }
        let missing = std::mem::take(&mut self.missing);
        // What is left out is never stored: a later run may do without messages that have it.
        let known = |(option, name): &(&str, String)| {
            let mut schemas = catalog.tables.values().flat_map(|t| &t.schemas);
            schemas.any(|(_, s)| s.column(name).is_some())
                || *option == LEFT_OUT && !catalog.tables.is_empty()
        };
        let Some((option, name)) = missing.iter().find(|m| !known(m)) else { return Ok(()) };
        let made = match commits {
            0 => "nothing was committed".to_owned(),
            n => format!("{} {} made before", count::of(n, "commit"), if n == 1 { "was" } else { "were" }),
        };
        let option = if *option == LEFT_OUT { "--columns" } else { option };
        Err(Error::usage(format!("{option} names the column {name}, which no message has; {made}"))
            .hint(near_names_hint(name, self.seen.iter().map(String::as_str))))
    }
}

/// Whether a message has columns: itself, or in the `after` of an envelope.
fn has_row(message: &serde_json::Map<String, serde_json::Value>) -> bool {
    let inner = |o: &serde_json::Map<String, serde_json::Value>, name: &str| {
        o.get(name).map(|v| v.as_object().cloned().unwrap_or_default())
    };
    let payload = inner(message, "payload");
    let envelope = payload.as_ref().unwrap_or(message);
    let row = ["after", "before", "data"].iter().find_map(|name| inner(envelope, name));
    !row.as_ref().unwrap_or(envelope).is_empty()
}
