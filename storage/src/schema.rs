//! Table schemas: part of history (rule B14). A schema version belongs to the commit that made it.

use crate::id::{ColumnId, TableId};
use crate::time::{AxisType, CommitSeq};
use crate::value::ColumnType;
use serde::{Deserialize, Serialize};

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Number within the table; the position in [`TableSchema::columns`].
    pub id: ColumnId,
    /// Name as the source or the declaration gave it.
    pub name: String,
    /// Current type.
    pub ty: ColumnType,
    /// Declared columns quarantine what does not fit; inferred ones widen.
    pub declared: bool,
}

/// The columns and the key of a table at one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// 1, 2, 3, …; grows with every change of columns or types.
    pub version: u32,
    /// All columns ever seen, in order of their ids: `columns[i].id == ColumnId(i)`.
    pub columns: Vec<Column>,
    /// Key columns in key order; empty for a table without a key (rule B15).
    pub key: Vec<ColumnId>,
}

impl TableSchema {
    /// The column called `name`, compared exactly.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Words of 64 bits that a mask over all columns takes.
    pub fn mask_words(&self) -> usize {
        self.columns.len().div_ceil(64).max(1)
    }
}

/// What the catalog knows of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableMeta {
    /// The number of the table.
    pub id: TableId,
    /// The name people type.
    pub name: String,
    /// Schema versions with the commit that introduced each, oldest first; never empty.
    pub schemas: Vec<(u64, TableSchema)>,
    /// Valid time is declared by the source (rule A4) and not derived.
    pub valid_declared: bool,
    /// System time is a source column and not the commit instant.
    pub system_declared: bool,
    /// Meaning of valid times.
    pub valid_axis: AxisType,
    /// Meaning of system times; always instants where the store owns them.
    pub system_axis: AxisType,
    /// Names of the columns whose change makes a new interval row (rule B9); `None` = all.
    #[serde(default)]
    pub tracked: Option<Vec<String>>,
}

impl TableMeta {
    /// The schema in force at `commit`: the last version introduced at or before it, or the first
    /// version where the table is younger than `commit`.
    pub fn schema_at(&self, commit: CommitSeq) -> &TableSchema {
        let at = self.schemas.partition_point(|(seq, _)| *seq <= commit.0);
        &self.schemas[at.saturating_sub(1)].1
    }

    /// The latest schema.
    pub fn schema(&self) -> &TableSchema {
        &self.schemas[self.schemas.len() - 1].1
    }
}
