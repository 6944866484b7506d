//! Intake options: what a person says about events that their format does not say itself. They
//! mean the same on the command line, in flows and in library calls.

use crate::error::{Error, Result};
pub use crate::format::avro::Framing;
use crate::format::expr::Expr;
use crate::format::options as format;
pub use crate::format::options::{Absent, ColumnChoice, TimeColumn, TimeUnit};
use crate::near::near_names_hint;
pub use crate::source::Registry;
use crate::source::schemas;
use asofdb_storage::engine::Catalog;
use asofdb_storage::event::Op;
use asofdb_storage::value::ColumnType;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Events of one batch, unless [`IntakeOptions::batch`] says otherwise.
pub const BATCH_MESSAGES: usize = 200_000;
/// Bytes of rows after which a batch is committed although it has fewer messages.
pub const BATCH_BYTES: usize = 64 << 20;

/// Everything that can be said about an intake. The default takes a known format as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntakeOptions {
    /// Name of the format; `None` = found out from the first messages.
    pub format: Option<String>,
    /// Table of all events; `None` = the one their envelope names.
    pub table: Option<String>,
    /// Tables whose events are taken; those of others are counted and passed over. Empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Keys; they win over those of envelopes and Kafka keys.
    pub keys: Vec<KeySpec>,
    /// Column with the operation.
    pub op: Option<String>,
    /// Words of the operation column, beside those understood anyway.
    pub op_map: Vec<OpWord>,
    /// Operation of events that name none.
    pub default_op: Option<OpName>,
    /// Column with the valid time (rule A4).
    pub valid: Option<TimeColumn>,
    /// Column with the exclusive end of valid time (rule B13).
    pub valid_end: Option<TimeColumn>,
    /// Columns that order events of one valid time.
    pub tie_break: Vec<String>,
    /// Column with the system time (rule A3).
    pub system: Option<TimeColumn>,
    /// Column with an id that is unique per operation (rule C1).
    pub operation_id: Option<String>,
    /// What a column means that an event of a plain format does not have.
    pub absent: Option<Absent>,
    /// Columns whose NULLs mean "unchanged" (rule B5).
    pub ignore_null_updates: Option<ColumnChoice>,
    /// Column that lists the columns an event authors (rule B5).
    pub columns_to_update: Option<String>,
    /// Condition that makes an event a delete.
    pub delete_when: Option<String>,
    /// Condition that makes an event a truncate.
    pub truncate_when: Option<String>,
    /// Columns to take, some of them with a declared type.
    pub columns: Option<Columns>,
    /// Columns whose change begins a new interval row (rule B9); `None` = as the table has it, all at
    /// first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_history: Option<ColumnChoice>,
    /// Zone of times that have none: an IANA name such as Europe/Berlin; `None` = UTC.
    pub zone: Option<String>,
    /// Text that means NULL in CSV files.
    pub null_text: Option<String>,
    /// Names of the columns of CSV files without a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Vec<String>>,
    /// Files with the schemas that messages name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<String>,
    /// The registry that is asked for schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<Registry>,
    /// How the id of a schema goes with a message; `None` = as Confluent does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
    /// Name of the stream; gives standard input an identity (rule C1).
    pub source_name: Option<String>,
    /// Keep each message as it came in the history.
    pub keep_raw: bool,
    /// Stop at the first message that would be quarantined.
    pub strict: bool,
    /// Messages per commit; `None` = [`BATCH_MESSAGES`].
    pub batch: Option<usize>,
}

/// The key of one table, or of every table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySpec {
    /// The table; `None` = every table without a spec of its own.
    pub table: Option<String>,
    /// Key columns in key order.
    pub columns: Vec<String>,
}

/// A word of the operation column and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpWord {
    /// The word, compared exactly.
    pub word: String,
    /// Its meaning.
    pub op: OpName,
}

/// An operation by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpName {
    /// A new row.
    Insert,
    /// A change of a row.
    Update,
    /// A new row or a change.
    Upsert,
    /// A row read by a snapshot.
    Read,
    /// The end of a row.
    Delete,
    /// The end of every row.
    Truncate,
}

/// Which columns to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Columns {
    /// Every column but these.
    Except(Vec<String>),
    /// These and no others.
    List(Vec<DeclaredColumn>),
}

/// A column that is taken, with its type if one is declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredColumn {
    /// Its name.
    pub name: String,
    /// Its type; values that do not fit are quarantined. `None` = inferred.
    pub ty: Option<ColumnType>,
}

impl OpName {
    /// The operation as events hold it.
    pub fn op(self) -> Op {
        match self {
            OpName::Insert => Op::Insert,
            OpName::Update => Op::Update,
            OpName::Upsert => Op::Upsert,
            OpName::Read => Op::Read,
            OpName::Delete => Op::Delete,
            OpName::Truncate => Op::Truncate,
        }
    }
}

impl Columns {
    /// Which columns are taken, without their types.
    pub fn choice(&self) -> ColumnChoice {
        match self {
            Columns::Except(names) if names.is_empty() => ColumnChoice::All,
            Columns::Except(names) => ColumnChoice::Except(names.clone()),
            Columns::List(list) => ColumnChoice::Only(list.iter().map(|c| c.name.clone()).collect()),
        }
    }
}

impl IntakeOptions {
    /// The declared key of a table, if there is one.
    pub fn key_of(&self, table: &str) -> Option<&[String]> {
        let own = self.keys.iter().find(|k| k.table.as_deref() == Some(table));
        own.or_else(|| self.keys.iter().find(|k| k.table.is_none())).map(|k| k.columns.as_slice())
    }

    /// These options with everything that `other` says over them. How an intake runs (`strict`,
    /// `batch`) is what `other` says.
    pub fn overridden_by(&self, other: &IntakeOptions) -> IntakeOptions {
        fn first<T: Clone>(over: &Option<T>, under: &Option<T>) -> Option<T> {
            over.as_ref().or(under.as_ref()).cloned()
        }
        fn some<T: Clone>(over: &[T], under: &[T]) -> Vec<T> {
            if over.is_empty() { under.to_vec() } else { over.to_vec() }
        }
        let authorship = other.ignore_null_updates.is_some() || other.columns_to_update.is_some();
        let mine = if authorship { &IntakeOptions::default() } else { self };
        IntakeOptions {
            format: first(&other.format, &self.format),
            table: first(&other.table, &self.table),
            tables: some(&other.tables, &self.tables),
            keys: some(&other.keys, &self.keys),
            op: first(&other.op, &self.op),
            op_map: some(&other.op_map, &self.op_map),
            default_op: first(&other.default_op, &self.default_op),
            valid: first(&other.valid, &self.valid),
            valid_end: first(&other.valid_end, &self.valid_end),
            tie_break: some(&other.tie_break, &self.tie_break),
            system: first(&other.system, &self.system),
            operation_id: first(&other.operation_id, &self.operation_id),
            absent: first(&other.absent, &self.absent),
            ignore_null_updates: first(&other.ignore_null_updates, &mine.ignore_null_updates),
            columns_to_update: first(&other.columns_to_update, &mine.columns_to_update),
            delete_when: first(&other.delete_when, &self.delete_when),
            truncate_when: first(&other.truncate_when, &self.truncate_when),
            columns: first(&other.columns, &self.columns),
            track_history: first(&other.track_history, &self.track_history),
            zone: first(&other.zone, &self.zone),
            null_text: first(&other.null_text, &self.null_text),
            header: first(&other.header, &self.header),
            schemas: some(&other.schemas, &self.schemas),
            registry: first(&other.registry, &self.registry),
            framing: first(&other.framing, &self.framing),
            source_name: first(&other.source_name, &self.source_name),
            keep_raw: other.keep_raw || self.keep_raw,
            strict: other.strict,
            batch: other.batch,
        }
    }

    /// Checks what can be checked before the first message.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Usage`]; says which options contradict each other and what to do.
    pub fn validate(&self) -> Result<()> {
        if self.ignore_null_updates.is_some() && self.columns_to_update.is_some() {
            return Err(Error::usage("--ignore-null-updates and --columns-to-update cannot both be given")
                .hint("say with one of them which columns an event authors"));
        }
        if self.batch == Some(0) {
            return Err(Error::usage("--batch must be at least 1"));
        }
        if self.valid_end.is_some() && self.valid.is_none() {
            return Err(Error::usage("--valid-end needs --valid")
                .hint("name the column that holds the start of valid time with --valid"));
        }
        for (option, name) in [("--table", &self.table), ("--source-name", &self.source_name)] {
            if name.as_deref().is_some_and(|n| n.is_empty() || n.contains('\0')) {
                return Err(Error::usage(format!("{option} must not be empty or hold NUL")));
            }
        }
        self.validate_header()?;
        self.validate_keys()?;
        self.validate_op_words()?;
        self.format_options().map(|_| ())
    }

    /// The part of the options that decoding needs.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Usage`] if a condition cannot be read or a zone is unknown.
    pub fn format_options(&self) -> Result<format::FormatOptions> {
        let condition = |option: &str, text: &Option<String>| -> Result<Option<Expr>> {
            let parse = |t: &String| {
                t.parse::<Expr>().map_err(|e| {
                    Error::usage(format!("{option}: {e}")).hint("a condition looks like: deleted = true")
                })
            };
            text.as_ref().map(parse).transpose()
        };
        let zone = |name: &String| {
            name.parse::<chrono_tz::Tz>().map_err(|_| {
                let names = chrono_tz::TZ_VARIANTS.iter().map(|z| z.name());
                Error::usage(format!("--zone: there is no zone {name}")).hint(near_names_hint(name, names))
            })
        };
        let defaults = format::FormatOptions::default();
        Ok(format::FormatOptions {
            op: self.op.clone(),
            op_map: self.op_map.iter().map(|w| (w.word.clone(), format::OpWord::Op(w.op.op()))).collect(),
            default_op: self.default_op.map_or(defaults.default_op, OpName::op),
            valid: self.valid.clone(),
            valid_end: self.valid_end.clone(),
            system: self.system.clone(),
            tie_break: self.tie_break.clone(),
            operation_id: self.operation_id.clone(),
            absent: self.absent,
            ignore_null: self.ignore_null_updates.clone(),
            columns_to_update: self.columns_to_update.clone(),
            delete_when: condition("--delete-when", &self.delete_when)?,
            truncate_when: condition("--truncate-when", &self.truncate_when)?,
            columns: self.columns.as_ref().map_or(ColumnChoice::All, Columns::choice),
            zone: self.zone.as_ref().map(zone).transpose()?,
            null_text: self.null_text.clone(),
            header: self.header.clone(),
            framing: self.framing.unwrap_or_default(),
            ..defaults
        })
    }

    fn validate_header(&self) -> Result<()> {
        let names = self.header.as_deref().unwrap_or(&[]);
        for (i, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(Error::usage("--header has an empty column name"));
            }
            if names[..i].contains(name) {
                return Err(Error::usage(format!("--header names column {name} twice")));
            }
        }
        Ok(())
    }

    /// The same as [`IntakeOptions::format_options`], with the places of schemas opened: those that options
    /// name, and `catalog`.
    ///
    /// # Errors
    /// As there; `Source` if a file of schemas cannot be read.
    pub(crate) fn decoding(&self, catalog: &Catalog) -> Result<format::FormatOptions> {
        let mut options = self.format_options()?;
        options.schemas = schemas::places(self, catalog)?;
        Ok(options)
    }

    /// The same without asking anybody: schemas are those of files, and those that `catalog` keeps.
    ///
    /// # Errors
    /// As there; `Usage` if the store keeps schemas of several registries and none of them is named.
    pub(crate) fn decoding_kept(&self, catalog: &Catalog) -> Result<format::FormatOptions> {
        let mut options = self.format_options()?;
        options.schemas = schemas::kept_places(self, catalog)?;
        Ok(options)
    }

    fn validate_keys(&self) -> Result<()> {
        for (i, spec) in self.keys.iter().enumerate() {
            let table = spec.table.as_deref().unwrap_or("every table");
            if spec.columns.is_empty() || spec.columns.iter().any(String::is_empty) {
                return Err(Error::usage(format!("the key of {table} has an empty column name")));
            }
            if let Some(twice) = repeated(&spec.columns) {
                return Err(Error::usage(format!("the key of {table} names column {twice} twice")));
            }
            if self.keys[..i].iter().any(|k| k.table == spec.table) {
                return Err(Error::usage(format!("the key of {table} is given twice"))
                    .hint("name all columns of a key in one --key, separated by commas"));
            }
            if let Some(Columns::Except(names)) = &self.columns
                && let Some(key) = spec.columns.iter().find(|c| names.contains(c))
            {
                return Err(Error::usage(format!("--columns leaves out {key}, which is a key column")));
            }
        }
        Ok(())
    }

    fn validate_op_words(&self) -> Result<()> {
        for (i, w) in self.op_map.iter().enumerate() {
            if self.op_map[..i].iter().any(|o| o.word == w.word && o.op != w.op) {
                return Err(Error::usage(format!("--op-map gives {} two meanings", w.word)));
            }
        }
        Ok(())
    }
}

fn repeated(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(i, n)| names[..*i].contains(n)).map(|(_, n)| n)
}

fn names(text: &str) -> Vec<String> {
    text.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect()
}

impl FromStr for KeySpec {
    type Err = Error;

    /// `a,b` or `table:a,b`.
    fn from_str(text: &str) -> Result<KeySpec> {
        let (table, columns) = match text.rsplit_once(':') {
            Some((table, columns)) => (Some(table.to_owned()), columns),
            None => (None, text),
        };
        let columns = names(columns);
        if columns.is_empty() || table.as_deref() == Some("") {
            return Err(Error::usage(format!("'{text}' is not a key"))
                .hint("write columns separated by commas, or table:columns"));
        }
        Ok(KeySpec { table, columns })
    }
}

impl FromStr for OpName {
    type Err = Error;

    fn from_str(text: &str) -> Result<OpName> {
        const WORDS: [(&str, OpName); 6] = [
            ("insert", OpName::Insert),
            ("update", OpName::Update),
            ("upsert", OpName::Upsert),
            ("read", OpName::Read),
            ("delete", OpName::Delete),
            ("truncate", OpName::Truncate),
        ];
        WORDS.iter().find(|(word, _)| *word == text).map(|(_, op)| *op).ok_or_else(|| {
            Error::usage(format!("'{text}' is not an operation"))
                .hint(near_names_hint(text, WORDS.map(|(word, _)| word)))
        })
    }
}

impl FromStr for OpWord {
    type Err = Error;

    /// `word=operation`.
    fn from_str(text: &str) -> Result<OpWord> {
        let (word, op) = text.split_once('=').ok_or_else(|| {
            Error::usage(format!("'{text}' maps no word to an operation"))
                .hint("for example: i=insert,u=update")
        })?;
        Ok(OpWord { word: word.to_owned(), op: op.parse()? })
    }
}

/// What follows `* except`, in parentheses or not.
fn except(text: &str) -> Option<Vec<String>> {
    let rest = text.trim().strip_prefix('*')?.trim();
    let word = rest.get(..6).filter(|w| w.eq_ignore_ascii_case("except"))?;
    let list = rest[word.len()..].trim();
    Some(names(list.strip_prefix('(').and_then(|l| l.strip_suffix(')')).unwrap_or(list)))
}

impl FromStr for Columns {
    type Err = Error;

    /// `a, b bigint, c decimal(10,2)` or `* except a,b`.
    fn from_str(text: &str) -> Result<Columns> {
        if let Some(names) = except(text) {
            return Ok(Columns::Except(names));
        }
        if text.trim() == "*" {
            return Ok(Columns::Except(Vec::new()));
        }
        let columns = split_outside_parentheses(text)
            .map(|part| {
                let part = part.trim();
                let (name, ty) = match part.split_once(char::is_whitespace) {
                    Some((name, ty)) => (name, Some(column_type(ty.trim())?)),
                    None => (part, None),
                };
                if name.is_empty() {
                    return Err(Error::usage(format!("'{text}' has an empty column name")));
                }
                Ok(DeclaredColumn { name: name.to_owned(), ty })
            })
            .collect::<Result<Vec<_>>>()?;
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        match repeated(&names) {
            Some(twice) => Err(Error::usage(format!("--columns names {twice} twice"))),
            None => Ok(Columns::List(columns)),
        }
    }
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    })
}

/// A column type by its name in SQL; the names that [`ColumnType::name`] gives are among them.
///
/// # Errors
/// [`crate::ErrorKind::Usage`]; names near matches.
pub fn column_type(text: &str) -> Result<ColumnType> {
    const NAMES: [(&str, ColumnType); 20] = [
        ("boolean", ColumnType::Bool),
        ("bool", ColumnType::Bool),
        ("bigint", ColumnType::Int64),
        ("int", ColumnType::Int64),
        ("integer", ColumnType::Int64),
        ("smallint", ColumnType::Int64),
        ("long", ColumnType::Int64),
        ("double", ColumnType::Float64),
        ("float", ColumnType::Float64),
        ("real", ColumnType::Float64),
        ("date", ColumnType::Date),
        ("timestamp", ColumnType::Timestamp),
        ("timestamp_ns", ColumnType::TimestampNs),
        ("timestamptz", ColumnType::Instant),
        ("text", ColumnType::Text),
        ("string", ColumnType::Text),
        ("varchar", ColumnType::Text),
        ("bytes", ColumnType::Bytes),
        ("binary", ColumnType::Bytes),
        ("json", ColumnType::Json),
    ];
    let lower = text.to_ascii_lowercase();
    if let Some((_, ty)) = NAMES.iter().find(|(name, _)| *name == lower) {
        return Ok(*ty);
    }
    let unknown = || {
        Error::usage(format!("'{text}' is not a column type"))
            .hint(near_names_hint(text, NAMES.iter().map(|(name, _)| *name).chain(["decimal(p,s)"])))
    };
    let arguments = lower
        .strip_prefix("decimal")
        .or_else(|| lower.strip_prefix("numeric"))
        .and_then(|r| r.trim().strip_prefix('(')?.strip_suffix(')'))
        .ok_or_else(unknown)?;
    let mut numbers = arguments.split(',').map(|n| n.trim().parse::<u8>());
    let precision = numbers.next().and_then(|n| n.ok()).ok_or_else(unknown)?;
    let scale = numbers.next().map_or(Some(0), |n| n.ok()).ok_or_else(unknown)?;
    if precision == 0 || precision > 38 || scale > precision || numbers.next().is_some() {
        return Err(Error::usage(format!("'{text}' is not a decimal type"))
            .hint("decimal(p,s) has 1 to 38 digits, s of them after the point"));
    }
    Ok(ColumnType::Decimal { integer: precision - scale, scale })
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
