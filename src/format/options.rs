//! What a user declares about a source: the intake options, as data.

use super::avro::{Framing, SchemaSource};
use super::expr::Expr;
use asofdb_storage::event::Op;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Messages longer than this are quarantined, unless [`FormatOptions::message_bytes_max`] says
/// otherwise.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Everything about decoding that a user can declare. A column is named as the source spells it;
/// `a.b` reaches into objects where no column is called that. The envelope's fields are
/// `_operation`, `_commit_time`, `_connector_time`, `_broker_time`, `_position`, `_db`, `_table`
/// and `_transaction_id`.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// Column of the operation (plain formats).
    pub op: Option<String>,
    /// What its values mean, before the default words.
    pub op_map: Vec<(String, OpWord)>,
    /// The operation where the column is missing or NULL, or none is declared.
    pub default_op: Op,
    /// Declared valid time.
    pub valid: Option<TimeColumn>,
    /// Own valid end of bounded facts.
    pub valid_end: Option<TimeColumn>,
    /// Declared system time.
    pub system: Option<TimeColumn>,
    /// Columns that break ties of valid time.
    pub tie_break: Vec<String>,
    /// Column of the operation id.
    pub operation_id: Option<String>,
    /// What a column that is not sent means; `None` = NULL, or what the format says.
    pub absent: Option<Absent>,
    /// Columns whose NULLs are not written (IGNORE NULL UPDATES).
    pub ignore_null: Option<ColumnChoice>,
    /// Column that lists the columns an event writes (COLUMNS TO UPDATE).
    pub columns_to_update: Option<String>,
    /// Messages for which this is true are deletes.
    pub delete_when: Option<Expr>,
    /// Messages for which this is true are truncates.
    pub truncate_when: Option<Expr>,
    /// The columns to keep.
    pub columns: ColumnChoice,
    /// Zone of times without one; `None` = UTC.
    pub zone: Option<chrono_tz::Tz>,
    /// Text that means NULL in CSV, beside the unquoted empty field.
    pub null_text: Option<String>,
    /// CSV: field separator.
    pub delimiter: u8,
    /// CSV: names of the columns where the file has no header.
    pub header: Option<Vec<String>>,
    /// Avro: how the id of a schema goes with a message.
    pub framing: Framing,
    /// Avro: where the schemas of ids are.
    pub schemas: Option<Arc<dyn SchemaSource>>,
    /// Longest message, in bytes.
    pub message_bytes_max: usize,
}

impl Default for FormatOptions {
    fn default() -> FormatOptions {
        FormatOptions {
            op: None,
            op_map: Vec::new(),
            default_op: Op::Upsert,
            valid: None,
            valid_end: None,
            system: None,
            tie_break: Vec::new(),
            operation_id: None,
            absent: None,
            ignore_null: None,
            columns_to_update: None,
            delete_when: None,
            truncate_when: None,
            columns: ColumnChoice::All,
            zone: None,
            null_text: None,
            delimiter: b',',
            header: None,
            framing: Framing::default(),
            schemas: None,
            message_bytes_max: MESSAGE_BYTES_MAX,
        }
    }
}

/// A column that holds a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeColumn {
    /// Its name.
    pub column: String,
    /// What its numbers count; `None` = numbers are an axis of plain integers (rule A2).
    pub unit: Option<TimeUnit>,
}

impl std::str::FromStr for TimeColumn {
    type Err = String;

    /// Reads `COL` or `COL:unit`.
    fn from_str(text: &str) -> Result<TimeColumn, String> {
        let column = |column: &str, unit| TimeColumn { column: column.to_owned(), unit };
        match text.rsplit_once(':') {
            None if !text.is_empty() => Ok(column(text, None)),
            Some((name, unit)) if !name.is_empty() => match TimeUnit::from_word(unit) {
                Some(unit) => Ok(column(name, Some(unit))),
                None => Err(format!("`{unit}` is not a unit of time; the units are s, ms, us and ns")),
            },
            _ => Err("the name of a column is missing".to_owned()),
        }
    }
}

/// What the numbers of a time column count, since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds; rounded down to the microseconds an axis counts.
    Ns,
}

impl TimeUnit {
    /// The unit of that word.
    pub fn from_word(word: &str) -> Option<TimeUnit> {
        Some(match word {
            "s" => TimeUnit::S,
            "ms" => TimeUnit::Ms,
            "us" => TimeUnit::Us,
            "ns" => TimeUnit::Ns,
            _ => return None,
        })
    }

    /// Microseconds, rounded down; `None` beyond 64 bits.
    pub fn micros(self, n: i64) -> Option<i64> {
        match self {
            TimeUnit::S => n.checked_mul(1_000_000),
            TimeUnit::Ms => n.checked_mul(1_000),
            TimeUnit::Us => Some(n),
            TimeUnit::Ns => Some(n.div_euclid(1_000)),
        }
    }
}

/// What a column that a message does not send means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    /// It keeps its value (except in inserts, which are whole rows); so does a leaf that an object does
    /// not name (rule B5).
    Unchanged,
    /// It is NULL.
    Null,
}

/// A choice of columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnChoice {
    /// All.
    All,
    /// Those named.
    Only(Vec<String>),
    /// All but those named.
    Except(Vec<String>),
}

impl ColumnChoice {
    /// Whether the column is chosen.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            ColumnChoice::All => true,
            ColumnChoice::Only(names) => names.iter().any(|n| n == name),
            ColumnChoice::Except(names) => !names.iter().any(|n| n == name),
        }
    }
}

impl std::str::FromStr for ColumnChoice {
    type Err = String;

    /// Reads `all`, `*`, `a,b`, or `* except a,b` (also with parentheses).
    fn from_str(text: &str) -> Result<ColumnChoice, String> {
        let text = text.trim();
        if text == "*" || text.eq_ignore_ascii_case("all") {
            return Ok(ColumnChoice::All);
        }
        let (rest, except) = match text.strip_prefix('*').map(str::trim_start) {
            Some(rest) if rest.len() > 6 && rest.as_bytes()[..6].eq_ignore_ascii_case(b"except") => {
                (&rest[6..], true)
            }
            Some(_) => return Err("after `*` only `except a,b` can follow".to_owned()),
            None => (text, false),
        };
        let rest = rest.trim();
        let rest = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(rest);
        let names: Vec<String> = rest.split(',').map(|n| n.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err("the name of a column is missing".to_owned());
        }
        Ok(if except { ColumnChoice::Except(names) } else { ColumnChoice::Only(names) })
    }
}

/// What a value of the operation column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpWord {
    /// A change of this kind.
    Op(Op),
    /// The image before an update that follows: accepted, no row event.
    PreImage,
}

impl OpWord {
    /// The default words, in any case: i c insert create +I, u update +U, upsert, d delete -D,
    /// r read, t truncate, -U.
    pub fn from_word(word: &str) -> Option<OpWord> {
        const WORDS: &[(&str, OpWord)] = &[
            ("i", OpWord::Op(Op::Insert)),
            ("u", OpWord::Op(Op::Update)),
            ("d", OpWord::Op(Op::Delete)),
            ("c", OpWord::Op(Op::Insert)),
            ("r", OpWord::Op(Op::Read)),
            ("t", OpWord::Op(Op::Truncate)),
            ("insert", OpWord::Op(Op::Insert)),
            ("update", OpWord::Op(Op::Update)),
            ("delete", OpWord::Op(Op::Delete)),
            ("upsert", OpWord::Op(Op::Upsert)),
            ("truncate", OpWord::Op(Op::Truncate)),
            ("read", OpWord::Op(Op::Read)),
            ("create", OpWord::Op(Op::Insert)),
            ("+i", OpWord::Op(Op::Insert)),
            ("-u", OpWord::PreImage),
            ("+u", OpWord::Op(Op::Update)),
            ("-d", OpWord::Op(Op::Delete)),
        ];
        WORDS.iter().find(|(w, _)| w.eq_ignore_ascii_case(word)).map(|(_, op)| *op)
    }
}

/// Reads an operation map: `i=insert,u=update,…`.
///
/// # Errors
/// A message for people if a part is not `value=word`.
pub fn parse_op_map(text: &str) -> Result<Vec<(String, OpWord)>, String> {
    let pair = |part: &str| {
        let (value, word) = part.split_once('=').ok_or(format!("`{part}` is not value=operation"))?;
        let op = OpWord::from_word(word.trim()).ok_or(format!(
            "`{word}` is not an operation; they are insert, update, upsert, delete, read and truncate"
        ))?;
        Ok((value.trim().to_owned(), op))
    };
    text.split(',').map(pair).collect()
}
