//! Column names in options that no message knows: a misspelt name must not pass for a choice.

use crate::change::Column;
use crate::error::{Error, Result};
use crate::near::near_names_hint;
use crate::options::{ColumnChoice, Columns, IntakeOptions};
use asofdb_storage::engine::Catalog;
use std::collections::BTreeSet;

/// Quarantined messages that are searched for names.
const LOOKED_INTO_MAX: usize = 100;

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
            Some(Columns::Except(names)) => names.iter().for_each(|c| add("--columns", c)),
            Some(Columns::List(list)) => list.iter().for_each(|c| add("--columns", &c.name)),
            None => {}
        }
        Wanted { missing, ..Wanted::default() }
    }

    /// Crosses off the names of a message.
    #[inline]
    pub fn look_at(&mut self, fields: &[Column<'_>]) {
        if !self.missing.is_empty() {
            self.cross_off(fields.iter().map(|c| c.name));
        }
    }

    fn cross_off<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.messages += 1;
        for name in names {
            self.missing.retain(|(_, wanted)| wanted != name);
            if self.seen.len() < 1000 && !self.seen.contains(name) {
                self.seen.insert(name.to_owned());
            }
        }
    }

    /// Crosses off the names of a message that could not be taken, as far as it is JSON.
    pub fn look_into(&mut self, raw: &[u8]) {
        if self.missing.is_empty() || self.looked_into >= LOOKED_INTO_MAX {
            return;
        }
        self.looked_into += 1;
        if let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(raw) {
            self.cross_off(object.keys().map(String::as_str));
            for inner in ["after", "payload", "data"].iter().filter_map(|n| object.get(*n)?.as_object()) {
                self.cross_off(inner.keys().map(String::as_str));
            }
        }
    }

    /// Looks at what is missing after the first batch; later calls do nothing.
    ///
    /// # Errors
    /// `Usage`, if a name is missing that the store does not know either.
    pub fn check(&mut self, catalog: &Catalog) -> Result<()> {
        let missing = std::mem::take(&mut self.missing);
        if self.messages == 0 {
            self.missing = missing;
            return Ok(());
        }
        let stored = |name: &str| {
            catalog.tables.values().any(|t| t.schemas.iter().any(|(_, s)| s.column(name).is_some()))
        };
        match missing.iter().find(|(_, name)| !stored(name)) {
            None => Ok(()),
            Some((option, name)) => Err(Error::usage(format!(
                "{option} names the column {name}, which no message has; nothing was committed"
            ))
            .hint(near_names_hint(name, self.seen.iter().map(String::as_str)))),
        }
    }
}
