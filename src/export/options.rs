//! What to export, and in which form.

use crate::error::{Error, Result};
use crate::near::near_names_hint;
use crate::sql::Point;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use std::fmt;
use std::str::FromStr;

/// What the files of an export hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportLayout {
    /// Every event, as `history('t')` shows it.
    History,
    /// The interval rows of all beliefs with the four time columns, as `intervals('t')` shows them.
    #[default]
    Intervals,
    /// The rows at a point: the table's own columns.
    Current,
}

impl ExportLayout {
    const ALL: [(&str, ExportLayout); 3] = [
        ("history", ExportLayout::History),
        ("intervals", ExportLayout::Intervals),
        ("current", ExportLayout::Current),
    ];
}

impl fmt::Display for ExportLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExportLayout::History => "history",
            ExportLayout::Intervals => "intervals",
            ExportLayout::Current => "current",
        })
    }
}

impl FromStr for ExportLayout {
    type Err = Error;

    fn from_str(text: &str) -> Result<ExportLayout> {
        named("a layout", text, &ExportLayout::ALL)
    }
}

/// How pages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportCompression {
    /// Small and fast to read.
    #[default]
    Zstd,
    /// What older readers expect.
    Snappy,
    /// What every reader knows.
    Gzip,
    /// Not at all.
    None,
}

impl ExportCompression {
    const ALL: [(&str, ExportCompression); 4] = [
        ("zstd", ExportCompression::Zstd),
        ("snappy", ExportCompression::Snappy),
        ("gzip", ExportCompression::Gzip),
        ("none", ExportCompression::None),
    ];

    pub(crate) fn codec(self) -> Compression {
        match self {
            ExportCompression::Zstd => Compression::ZSTD(ZstdLevel::default()),
            ExportCompression::Snappy => Compression::SNAPPY,
            ExportCompression::Gzip => Compression::GZIP(GzipLevel::default()),
            ExportCompression::None => Compression::UNCOMPRESSED,
        }
    }
}

impl FromStr for ExportCompression {
    type Err = Error;

    fn from_str(text: &str) -> Result<ExportCompression> {
        named("a compression", text, &ExportCompression::ALL)
    }
}

/// The order of rows within a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportOrder {
    /// By key, then as the engine yields them: nothing has to be sorted, and a key is found by the
    /// statistics of the row groups.
    #[default]
    Key,
    /// By time, the latest first: a question about a past point skips row groups by their statistics
    /// on the time columns. Interval rows only. Sorts, on disk where memory does not suffice.
    Time,
}

impl ExportOrder {
    const ALL: [(&str, ExportOrder); 2] = [("key", ExportOrder::Key), ("time", ExportOrder::Time)];
}

impl FromStr for ExportOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<ExportOrder> {
        named("an order", text, &ExportOrder::ALL)
    }
}

fn named<T: Copy>(what: &str, text: &str, all: &[(&str, T)]) -> Result<T> {
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        Error::usage(format!("'{text}' is not {what}"))
            .hint(near_names_hint(text, all.iter().map(|(name, _)| *name)))
    })
}

/// What to export, and in which form. The default is every interval row of the newest commit.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportOptions {
    /// What the files hold.
    pub layout: ExportLayout,
    /// Valid time of the rows: those that hold then; `None` = the latest state in `Current`, all rows
    /// in `Intervals`. Not in `History`.
    pub valid: Option<Point>,
    /// System time of the rows; `None` as for `valid`.
    pub system: Option<Point>,
    /// The commit, by number or by an instant at or after it; `None` = the newest.
    pub commit: Option<Point>,
    /// An SQL condition over the columns of the layout.
    pub filter: Option<String>,
    /// Partition directories, as a list of SQL expressions with or without a name (`region`,
    /// `amount > 100 AS big`), and the words `processed_date`, `valid_date`, `year_month` and `none`.
    /// `None` = `processed_date` in `History`, and no directories else.
    pub partition_by: Option<String>,
    /// Separate directories for each operation. `History` only.
    pub by_operation: bool,
    /// Compression of the pages.
    pub compression: ExportCompression,
    /// Order of rows within a file.
    pub order: ExportOrder,
    /// What `now()` means, microseconds since 1970; `None` = the instant of the exported commit.
    pub now: Option<i64>,
    /// Rows of a row group, at most.
    pub row_group_rows_max: usize,
    /// Bytes after which a file is closed and another begun.
    pub file_bytes_max: u64,
    /// Memory for rows that are sorted or wait to be written, bytes.
    pub memory_bytes_max: usize,
    /// Partitions of one table, at most: more are taken for a slip.
    pub partitions_max: usize,
}

impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions {
            layout: ExportLayout::default(),
            valid: None,
            system: None,
            commit: None,
            filter: None,
            partition_by: None,
            by_operation: false,
            compression: ExportCompression::default(),
            order: ExportOrder::default(),
            now: None,
            row_group_rows_max: 262_144,
            file_bytes_max: 1 << 30,
            memory_bytes_max: 256 << 20,
            partitions_max: 10_000,
        }
    }
}

impl ExportOptions {
    /// Checks what can be checked without a store.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Usage`].
    pub fn validate(&self) -> Result<()> {
        let layout = self.layout;
        if layout == ExportLayout::History && (self.valid.is_some() || self.system.is_some()) {
            return Err(Error::usage("the history is of all times")
                .hint("bound it by a commit, or by a condition such as \"__START_AT\" < '2026-11-01'"));
        }
        if self.by_operation && layout != ExportLayout::History {
            return Err(Error::usage(format!("rows of the layout {layout} have no operation"))
                .hint("only the layout history can be split by operation"));
        }
        if self.order == ExportOrder::Time && layout != ExportLayout::Intervals {
            return Err(Error::usage(format!("the layout {layout} is in order of keys"))
                .hint("only interval rows can be ordered by time"));
        }
        if self.row_group_rows_max == 0 || self.partitions_max == 0 {
            return Err(Error::usage("a row group has at least one row, and a table one partition"));
        }
        super::question::check(self)
    }
}
