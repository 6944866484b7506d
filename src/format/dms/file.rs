//! Rows of the CSV and Parquet files that DMS writes to S3: the file's path says what table they are of and
//! whether they are of the full load, their first column what happened.

use crate::change::{Change, Column, Decoded, Message, Sink, SourceRef, Times, Token};
use crate::format::declare::{self, Envelope, View};
use crate::format::fields::{Reject, find};
use crate::format::options::FormatOptions;
use crate::format::scratch::Scratch;
use crate::format::shaped::Shape;
use crate::format::time_text::{self, TimeText};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;

/// The column of the operation, the first one if there is one.
pub const OPERATION: &str = "Op";
/// The usual name of the column of times (`TimestampColumnName`).
pub const TIMESTAMP: &str = "dmsTimestamp";

/// What the path of a file says of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DmsFile {
    full_load: bool,
    schema: Option<String>,
    name: Option<String>,
    table: Option<String>,
}

/// Columns of a row as they are put together.
#[derive(Debug, Default)]
pub struct Parts<'a> {
    /// All columns of the file.
    pub columns: Vec<Column<'a>>,
    /// Those of the table that are written.
    pub image: Vec<Column<'a>>,
    /// The old row.
    pub before: Vec<Column<'a>>,
    /// See [`crate::change::Declared::ties`].
    pub ties: Vec<Cell<'a>>,
    /// When the row ends by itself, and the position of that.
    pub until: Option<(i64, Token<'a>)>,
}

impl<'a> Parts<'a> {
    /// None, with the allocations of `self`.
    pub fn recycled<'b>(self) -> Parts<'b> {
        Parts {
            columns: recycle(self.columns),
            image: recycle(self.image),
            before: recycle(self.before),
            ties: recycle(self.ties),
            until: None,
        }
    }

    /// The change that the columns are, of a file of DMS, a row of some shape or a plain one; the flag says whether its image is
    /// `image` rather than all columns. `None` for an image before an update.
    ///
    /// # Errors
    /// If the operation is unknown or a declared time cannot be read.
    pub fn change(
        &mut self,
        dms: Option<&'a DmsFile>,
        shape: Option<Shape>,
        options: &FormatOptions,
        message: &Message<'a>,
        scratch: &mut Scratch<'a>,
    ) -> Result<Option<(Change<'a>, bool)>, Reject> {
        match (dms, shape) {
            (Some(file), _) => Ok(file.change(options, message, self, scratch)?.map(|change| (change, true))),
            (_, Some(shape)) => {
                Ok(shape.change(options, message, self, scratch)?.map(|change| (change, true)))
            }
            (None, None) => {
                let Parts { columns, image, ties, .. } = self;
                declare::plain_change(options, message, columns, image, ties, scratch)
            }
        }
    }

    /// Hands a change with its columns to `sink`.
    pub fn hand_out<'c>(&'c self, change: Option<(Change<'c>, bool)>, sink: &mut Sink<'_>) {
        let Some((mut change, filtered)) = change else { return sink(Decoded::Changes(&[])) };
        change.declared.ties = &self.ties;
        change.fields = &self.columns;
        change.image = if filtered { &self.image } else { &self.columns };
        change.before = &self.before;
        let Some((end, token)) = self.until else { return sink(Decoded::Changes(&[change])) };
        let mut ended = change;
        (ended.op, ended.full, ended.token) = (Op::Delete, true, Some(token));
        ended.times.source = Some(end);
        // What begins where this ends comes behind it.
        ended.declared.ties = &[Cell::Int(0)];
        (ended.image, ended.before) = (&self.image, &self.image);
        sink(Decoded::Changes(&[change, ended]));
    }
}

impl DmsFile {
    /// What `path` says. The folders of a file are the table's and, outside of it, the schema's; folders of
    /// dates may stand within.
    pub fn of_path(path: &str) -> DmsFile {
        let mut folders = path.rsplit(['/', '\\']);
        let file = folders.next().unwrap_or("");
        let date = |folder: &str| folder.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'_'));
        let mut named =
            folders.skip_while(|folder| date(folder)).take_while(|f| !matches!(*f, "" | "." | ".."));
        let (name, schema) = (named.next(), named.next());
        let table = match (schema, name) {
            (Some(schema), Some(name)) => Some(format!("{schema}.{name}")),
            (_, name) => name.map(str::to_owned),
        };
        let full_load = asofdb_storage::timeline::full_load_number(file).is_some();
        DmsFile { full_load, schema: schema.map(str::to_owned), name: name.map(str::to_owned), table }
    }

    /// The change that a row is; its image is always `parts.image`. `None` for an image before an update.
    ///
    /// # Errors
    /// If the operation is unknown or a declared time cannot be read.
    pub fn change<'a>(
        &'a self,
        options: &FormatOptions,
        message: &Message<'a>,
        parts: &mut Parts<'a>,
        scratch: &mut Scratch<'a>,
    ) -> Result<Option<Change<'a>>, Reject> {
        let Parts { columns, image, before, ties, .. } = parts;
        let operation = match &options.op {
            Some(name) => find(columns, name),
            None => columns.first().filter(|c| c.name == OPERATION),
        };
        let operation = operation.copied();
        let Some(op) = self.operation(options, operation.as_ref())? else { return Ok(None) };
        let mut change = Change::new(op);
        let time = find(columns, TIMESTAMP).and_then(|c| time(&c.cell));
        // Of a full load it is the time of the transfer, which says nothing about the row.
        change.times = if self.full_load {
            Times { connector: time, ..Times::default() }
        } else {
            Times { source: time, ..Times::default() }
        };
        change.snapshot = self.full_load;
        change.table = self.table.as_deref();
        let (schema, table) = (self.schema.as_deref(), self.name.as_deref());
        change.source = SourceRef { schema, table, ..SourceRef::default() };
        let code = match operation.map(|c| c.cell) {
            Some(Cell::Text(code)) => code,
            _ => op.word(),
        };
        let envelope = Envelope {
            op: Some(code),
            times: change.times,
            position: message.position,
            source: change.source,
            table: change.table,
            transaction_id: None,
        };
        let mut view = View { columns, envelope: &envelope, scratch };
        change.op = declare::overridden(options, &mut view, op);
        change.declared = declare::declared(options, &mut view, ties)?;
        let (full, filtered) = declare::image(options, change.op, columns, image, None)?;
        change.full = full;
        let of_table = |c: &Column<'_>| {
            c.name != TIMESTAMP
                && operation.is_none_or(|o| o.name != c.name)
                && old_name(columns, c).is_none()
        };
        if filtered {
            image.retain(of_table);
        } else {
            image.extend(columns.iter().filter(|c| of_table(c)));
        }
        if matches!(change.op, Op::Update | Op::Delete) {
            let old = columns.iter().filter_map(|c| old_name(columns, c).map(|name| Column { name, ..*c }));
            before.extend(old);
        }
        Ok(Some(change))
    }

    fn operation(&self, options: &FormatOptions, column: Option<&Column<'_>>) -> Result<Option<Op>, Reject> {
        let sent = column.filter(|c| !declare::absent(&c.cell));
        let op = match sent {
            Some(c) => declare::operation_of(options, c.name, &c.cell)?,
            // Only inserts are written without one (`CdcInsertsOnly`).
            None => Some(Op::Insert),
        };
        Ok(op.map(|op| if self.full_load && op == Op::Insert { Op::Read } else { op }))
    }
}

/// The name of the column whose old value a column is: it has a prefix and stands beside it.
fn old_name<'a>(columns: &[Column<'a>], c: &Column<'a>) -> Option<&'a str> {
    let name = c.name.strip_prefix(super::OLD)?;
    columns.iter().any(|other| other.name == name).then_some(name)
}

/// The times of DMS are UTC.
fn time(cell: &Cell<'_>) -> Option<i64> {
    match *cell {
        Cell::Text(text) => match time_text::parse(text.trim())? {
            TimeText::Instant(t) | TimeText::Local(t) => Some(t.us),
            TimeText::Date(_) => None,
        },
        Cell::Instant(us) | Cell::Timestamp(us) => Some(us),
        Cell::TimestampNs(ns) => Some(ns.div_euclid(1_000)),
        _ => None,
    }
}

/// The names of the columns of a file that begins with a record of these fields. `None` = the record is they.
///
/// # Errors
/// In words, if there is no header and nothing else names the columns.
pub fn header(fields: &[String], names: Option<&[String]>) -> Result<Option<Vec<String>>, String> {
    let has = |name: &str| fields.iter().any(|f| f == name);
    let named = names.is_some_and(|names| names.iter().all(|name| has(name)));
    if fields.first().is_some_and(|f| f == OPERATION) || has(TIMESTAMP) || named {
        return Ok(None);
    }
    let operation = fields.first().is_some_and(|f| matches!(f.as_str(), "I" | "U" | "D"));
    let Some(names) = names else {
        return match operation {
            true => Err("the file has no header; --header a,b,... names the columns of its table".to_owned()),
            false => Ok(None),
        };
    };
    let before: &[&str] = match fields.len().checked_sub(names.len()) {
        Some(0) => &[],
        Some(1) if operation => &[OPERATION],
        Some(1) => &[TIMESTAMP],
        Some(2) if operation => &[OPERATION, TIMESTAMP],
        _ => {
            return Err(format!(
                "the file has no header, and {} in a record where --header names {}",
                crate::count::of(fields.len(), "field"),
                crate::count::of(names.len(), "column")
            ));
        }
    };
    Ok(Some(before.iter().map(|n| (*n).to_owned()).chain(names.iter().cloned()).collect()))
}
