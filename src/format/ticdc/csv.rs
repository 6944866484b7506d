//! TiCDC's CSV: no header, but operation, table, schema, commit timestamp and whether the row is half of
//! an update stand before the columns of each record, the last two where TiCDC is told to write them.

use crate::change::{Column, Decoded, Message, Sink, SourceRef, Times};
use crate::format::block::table_name;
use crate::format::csv::{Fields, trimmed};
use crate::format::fields::{Reject, shortened};
use crate::format::infer::text_cell;
use crate::format::options::FormatOptions;
use crate::format::row_buffer::{RowBuffer, RowHead};
use crate::format::scratch::{Scratch, ScratchBuffer};
use crate::format::tso::{Tso, tidb_token};
use asofdb_storage::event::Op;
use asofdb_storage::recycle;
use asofdb_storage::value::Cell;

/// Fields that always stand before the columns: operation, table, schema.
const LEADING: usize = 3;
/// Digits of a commit timestamp since 1976.
const TSO_DIGITS_MIN: usize = 17;
/// What stands for NULL without quotes.
const NULL: &str = "\\N";

/// Decodes the records of one file.
#[derive(Debug)]
pub struct TicdcCsv {
    header: Vec<String>,
    scratch: ScratchBuffer,
    fields: Vec<(&'static str, bool)>,
    rows: RowBuffer<'static>,
}

/// Whether a record is one of TiCDC's, with a commit timestamp.
pub fn looks_like_csv(record: &str) -> bool {
    let mut buffer = ScratchBuffer::default();
    let mut scratch = buffer.scratch(record.len());
    let mut fields = Vec::new();
    for field in Fields::new(trimmed(record), b',').take(LEADING + 2) {
        let Ok(field) = field else { return false };
        fields.push(field.resolve(&mut scratch));
    }
    let [(op, _), (table, _), (schema, _), (tso, _), _] = fields[..] else { return false };
    let digits = tso.len() >= TSO_DIGITS_MIN && tso.bytes().all(|b| b.is_ascii_digit());
    matches!(op, "I" | "U" | "D") && !table.is_empty() && !schema.is_empty() && digits
}

impl TicdcCsv {
    /// A decoder for records whose columns have these names; they may be those of all fields.
    pub fn new(header: Vec<String>) -> TicdcCsv {
        let scratch = ScratchBuffer::default();
        TicdcCsv { header, scratch, fields: Vec::new(), rows: RowBuffer::default() }
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.header
    }

    /// Decodes one record, with or without its line break, and hands it to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let TicdcCsv { header, scratch, fields, rows } = self;
        let record = message.value.unwrap_or(&[]);
        let mut scratch = scratch.scratch(record.len() * 2 + 4096);
        let mut f = recycle(std::mem::take(fields));
        let mut r = std::mem::take(rows).recycled();
        let read = read_fields(options, record, &mut scratch, &mut f)
            .and_then(|()| row(options, header, message, &f, &mut r, &mut scratch));
        match read {
            _ if scratch.overflowed() => {
                sink(Decoded::Quarantine(Reject::new("the message needs more room than it should").fault()));
            }
            Ok(()) => r.hand_out(message, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        (*fields, *rows) = (recycle(f), r.recycled());
    }
}

fn read_fields<'a>(
    options: &FormatOptions,
    record: &'a [u8],
    scratch: &mut Scratch<'a>,
    out: &mut Vec<(&'a str, bool)>,
) -> Result<(), Reject> {
    let text = std::str::from_utf8(record)
        .map_err(|e| Reject::new("the record is not UTF-8").at(e.valid_up_to()))?;
    for field in Fields::new(trimmed(text), options.delimiter) {
        out.push(field?.resolve(scratch));
    }
    Ok(())
}

/// Which fields stand before the columns of a record.
struct Leading {
    /// Their number.
    count: usize,
    commit_ts: bool,
}

/// Finds out from the names how a record with that many fields begins.
fn leading(header: &[String], fields: usize) -> Result<(Leading, &[String]), Reject> {
    if header.len() == fields && fields > LEADING {
        let role = |i: usize, word: &str| {
            header.get(i).is_some_and(|n| n.to_ascii_lowercase().replace(['_', '-'], "") == word)
        };
        let commit_ts = role(LEADING, "committs");
        let is_update = role(LEADING + commit_ts as usize, "isupdate");
        let count = LEADING + commit_ts as usize + is_update as usize;
        return Ok((Leading { count, commit_ts }, &header[count..]));
    }
    match fields.checked_sub(header.len()) {
        Some(count @ 3..=5) => Ok((Leading { count, commit_ts: count > LEADING }, header)),
        _ => Err(Reject::new(format!(
            "the record has {}, and {} named",
            crate::count::of(fields, "field"),
            if header.len() == 1 {
                "1 column is".to_owned()
            } else {
                format!("{} columns are", header.len())
            }
        ))
        .hint("3 to 5 fields stand before the columns; --header names the columns, or all fields")),
    }
}

fn row<'a>(
    options: &FormatOptions,
    header: &'a [String],
    message: &Message<'a>,
    fields: &[(&'a str, bool)],
    rows: &mut RowBuffer<'a>,
    scratch: &mut Scratch<'a>,
) -> Result<(), Reject> {
    let (leading, names) = leading(header, fields.len())?;
    let code = fields[0].0;
    let op = match code {
        "I" => Op::Insert,
        "U" => Op::Update,
        "D" => Op::Delete,
        other => {
            return Err(Reject::new(format!("unknown operation `{}`", shortened(other)))
                .hint("TiCDC's are I, U and D"));
        }
    };
    let mut tso = None;
    if leading.commit_ts {
        let text = fields[LEADING].0;
        tso = Tso::parse(text);
        if tso.is_none() {
            return Err(Reject::new(format!("`{}` is no commit timestamp", shortened(text)))
                .hint("--header names the columns, or all fields"));
        }
    }
    for (name, (text, quoted)) in names.iter().zip(&fields[leading.count..]) {
        let null = text.is_empty() || *text == NULL || options.null_text.as_deref() == Some(*text);
        let cell = match quoted {
            true => Cell::Text(text),
            false if null => Cell::Null,
            false => text_cell(text),
        };
        rows.row.push(Column { name, cell });
    }
    let source = SourceRef { db: Some(fields[2].0), table: Some(fields[1].0), ..SourceRef::default() };
    let head = RowHead {
        table: table_name(&source, scratch),
        source,
        times: Times { source: tso.map(Tso::micros), connector: None, broker: message.broker_time },
        token: tso.map(|tso| tidb_token(tso, scratch)),
        one_per_key: tso.is_some(),
        ..RowHead::new(op, code)
    };
    rows.close(options, message, &head, scratch)
}
