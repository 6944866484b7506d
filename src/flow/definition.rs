//! What a flow is: a source, the tables it fills, and how events become rows.

use super::source::{FlowSource, SourceKind, set_options};
use crate::error::{Error, Result};
use crate::format::options::{ColumnChoice, TimeColumn};
use crate::options::{Columns, IntakeOptions, KeySpec};
use serde::{Deserialize, Serialize};

/// Sequencing by this field is what derived valid time is (rule A4).
const COMMIT_TIME: &str = "_commit_time";

/// A declared flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Where its events come from.
    pub source: FlowSource,
    /// Where they go.
    pub target: Target,
    /// What its clauses say.
    #[serde(default)]
    pub clauses: FlowClauses,
}

/// The tables of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// `INTO t ... KEYS (k)`: all events go to one table, whatever their envelope names.
    One(FlowTable),
    /// `INTO (a KEYS (k), b KEYS (l))`: events go to the table that their envelope names; those of
    /// other tables are counted and passed over.
    Several(Vec<FlowTable>),
}

/// A table with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowTable {
    /// Its name.
    pub name: String,
    /// Its key columns in key order.
    pub key: Vec<String>,
}

/// What the clauses behind the keys say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowClauses {
    /// `IGNORE NULL UPDATES [ON ...]`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_null_updates: Option<ColumnChoice>,
    /// `COLUMNS TO UPDATE col`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns_to_update: Option<String>,
    /// `APPLY AS DELETE WHEN expr`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_when: Option<String>,
    /// `APPLY AS TRUNCATE WHEN expr`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate_when: Option<String>,
    /// `SEQUENCE BY col`: the column of valid time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_by: Option<TimeColumn>,
    /// `SEQUENCE BY STRUCT(col, tie, ...)`: what breaks ties.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tie_break: Vec<String>,
    /// `VALID UNTIL col`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<TimeColumn>,
    /// `SYSTEM SEQUENCE BY col`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_sequence_by: Option<TimeColumn>,
    /// `COLUMNS ...`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// `STORED AS ...`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_as: Option<StoredAs>,
    /// `TRACK HISTORY ON ...`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track_history: Option<ColumnChoice>,
}

/// The shape that a flow declares its tables for. All of them are views of the same stored events
/// (rule B11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredAs {
    /// All beliefs: the table as it is.
    #[default]
    Bitemporal,
    /// The latest state.
    ScdType1,
    /// The interval rows of the latest belief.
    ScdType2,
}

impl Target {
    /// The tables, in the order in which they were declared.
    pub fn tables(&self) -> &[FlowTable] {
        match self {
            Target::One(table) => std::slice::from_ref(table),
            Target::Several(tables) => tables,
        }
    }
}

impl Flow {
    /// The intake options that the flow stands for: settings of its source, then its clauses.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Usage`] for what cannot be read or contradicts itself.
    pub fn options(&self) -> Result<IntakeOptions> {
        let mut options = IntakeOptions::default();
        for (setting, value) in &self.source.settings {
            set_options(&mut options, setting, value)?;
        }
        if self.source.kind != SourceKind::Files {
            options.source_name = self.source_name().map(str::to_owned);
        }
        match &self.target {
            Target::One(table) => {
                options.table = Some(table.name.clone());
                options.keys = vec![KeySpec { table: None, columns: table.key.clone() }];
            }
            Target::Several(tables) => {
                options.tables = tables.iter().map(|t| t.name.clone()).collect();
                let key = |t: &FlowTable| KeySpec { table: Some(t.name.clone()), columns: t.key.clone() };
                options.keys = tables.iter().map(key).collect();
            }
        }
        self.clauses.set(&mut options);
        self.check()?;
        options.validate()?;
        Ok(options)
    }

    /// What the names of its streams begin with: two flows that read one source are two readers. The name of
    /// the flow, unless it says another; none where that is empty.
    pub fn source_name(&self) -> Option<&str> {
        let name = self.source.settings.get("source_name").map_or(&*self.name, |name| name);
        Some(name).filter(|name| !name.is_empty())
    }

    /// What contradicts itself, in the words of the statement.
    fn check(&self) -> Result<()> {
        let clauses = &self.clauses;
        if clauses.ignore_null_updates.is_some() && clauses.columns_to_update.is_some() {
            return Err(Error::usage("IGNORE NULL UPDATES and COLUMNS TO UPDATE cannot both be given")
                .hint("say with one of them which columns an event writes"));
        }
        if clauses.valid_until.is_some() && !clauses.declares_valid() {
            return Err(Error::usage("VALID UNTIL needs a SEQUENCE BY that names a column")
                .hint("SEQUENCE BY names the column that holds the start of valid time"));
        }
        for table in self.target.tables() {
            for key in &table.key {
                let left_out = match &clauses.columns {
                    Some(Columns::Except(names)) => names.contains(key),
                    Some(Columns::List(list)) => list.iter().all(|c| c.name != *key),
                    None => false,
                };
                if left_out {
                    return Err(Error::usage(format!(
                        "COLUMNS leaves out {key}, which is a key column of {}",
                        table.name
                    )));
                }
            }
        }
        Ok(())
    }
}

impl FlowClauses {
    /// Whether valid time is a column of the source, and not derived (rule A4).
    fn declares_valid(&self) -> bool {
        self.sequence_by.as_ref().is_some_and(|c| c.column != COMMIT_TIME)
    }

    fn set(&self, options: &mut IntakeOptions) {
        let FlowClauses {
            ignore_null_updates,
            columns_to_update,
            delete_when,
            truncate_when,
            sequence_by,
            tie_break,
            valid_until,
            system_sequence_by,
            columns,
            stored_as: _,
            track_history,
        } = self.clone();
        options.valid = sequence_by.filter(|c| c.column != COMMIT_TIME);
        options.tie_break = tie_break;
        options.valid_end = valid_until;
        options.system = system_sequence_by;
        options.ignore_null_updates = ignore_null_updates;
        options.columns_to_update = columns_to_update;
        options.delete_when = delete_when;
        options.truncate_when = truncate_when;
        options.columns = columns;
        options.track_history = track_history;
    }

    /// These clauses with those of `other` in the place of their like.
    pub fn replaced_by(&self, other: &FlowClauses) -> FlowClauses {
        fn first<T: Clone>(over: &Option<T>, under: &Option<T>) -> Option<T> {
            over.as_ref().or(under.as_ref()).cloned()
        }
        let sequence = if other.sequence_by.is_some() { other } else { self };
        let authorship = other.ignore_null_updates.is_some() || other.columns_to_update.is_some();
        let author = if authorship { other } else { self };
        FlowClauses {
            ignore_null_updates: author.ignore_null_updates.clone(),
            columns_to_update: author.columns_to_update.clone(),
            delete_when: first(&other.delete_when, &self.delete_when),
            truncate_when: first(&other.truncate_when, &self.truncate_when),
            sequence_by: sequence.sequence_by.clone(),
            tie_break: sequence.tie_break.clone(),
            valid_until: first(&other.valid_until, &self.valid_until),
            system_sequence_by: first(&other.system_sequence_by, &self.system_sequence_by),
            columns: first(&other.columns, &self.columns),
            stored_as: other.stored_as.or(self.stored_as),
            track_history: first(&other.track_history, &self.track_history),
        }
    }
}
