//! Rows without envelopes, as `ExtractNewRecordState` writes them: the columns of the row, and what the
//! envelope said in columns or headers whose names begin with two underscores.

use super::decode::{Reader, typed};
use super::parts::Parts;
use super::schema::Fields;
use crate::change::{Change, Column, Header, SourceRef};
use crate::format::block::{Block, table_name};
use crate::format::debezium::Topics;
use crate::format::debezium::envelope::{self, Operation, Step};
use crate::format::fields::{Reject, columns, shortened};
use crate::format::json::{self, Member, Raw, RawText};
use crate::format::scratch::Scratch;
use asofdb_storage::event::Op;

/// What names of metadata begin with (`add.fields.prefix`, `add.headers.prefix`).
const PREFIX: &str = "__";
/// Metadata that an envelope has beside its source.
const OUTER: [&str; 8] = [
    "op",
    "deleted",
    "ts_ms",
    "ts_us",
    "ts_ns",
    "transaction_id",
    "transaction_total_order",
    "transaction_data_collection_order",
];
const CODES: [&str; 6] = ["c", "r", "u", "d", "t", "m"];
/// Metadata that no table would have by chance beside an operation.
const USUAL: [&str; 18] = [
    "__op",
    "__deleted",
    "__table",
    "__source_table",
    "__schema",
    "__source_schema",
    "__db",
    "__source_db",
    "__lsn",
    "__source_lsn",
    "__source_ts_ms",
    "__source_ts_us",
    "__source_ts_ns",
    "__ts_ms",
    "__file",
    "__pos",
    "__connector",
    "__txId",
];

/// Whether a message is a row with metadata of Debezium, wrapped or not.
pub fn looks_like(text: &str) -> bool {
    let inner = match json::member(text, "payload") {
        Some(Raw::Nested { text, .. }) if text.starts_with('{') => text,
        _ => text,
    };
    let mut members = Vec::new();
    if !inner.contains("\"__") || json::members(inner, &mut members).is_err() {
        return false;
    }
    let block = Block(&members);
    let op = matches!(block.raw("__op"), Some(Raw::Text(t)) if CODES.contains(&t.text));
    let deleted = block.raw("__deleted").is_some_and(|raw| deleted(Some(raw)).is_ok());
    let usual = members.iter().filter(|m| USUAL.contains(&m.name.text)).count();
    (op || deleted) && usual > 1
}

/// Metadata as the envelope that the row was taken out of had it.
#[derive(Default)]
struct Metadata<'a> {
    outer: Vec<Member<'a>>,
    source: Vec<Member<'a>>,
}

impl<'a> Metadata<'a> {
    /// That of the columns, then that of headers.
    fn read(members: &[Member<'a>], headers: &[Header<'a>], topic: Option<&'a str>) -> Metadata<'a> {
        let mut all = Metadata::default();
        members.iter().for_each(|m| all.add(m.name.text, m.value));
        for header in headers.iter().filter(|h| h.name.starts_with(PREFIX)) {
            if let Some(value) = header_value(header.value) {
                all.add(header.name, value);
            }
        }
        let has = |name: &str| all.source.iter().any(|m| m.name.text == name);
        let connector = match () {
            _ if has("connector") => None,
            _ if has("file") && has("pos") => Some("mysql"),
            _ if has("commit_lsn") => Some("sqlserver"),
            _ if has("lsn") => Some("postgresql"),
            _ if has("scn") => Some("oracle"),
            _ => None,
        };
        // Positions compare within one server; without its name the topic stands for it.
        let name = topic.filter(|_| !has("name"));
        for (name, text) in [("connector", connector), ("name", name)] {
            if let Some(text) = text {
                all.add_source(name, Raw::Text(RawText { text, escaped: false }));
            }
        }
        all
    }

    fn add(&mut self, name: &'a str, value: Raw<'a>) {
        let Some(name) = name.strip_prefix(PREFIX) else { return };
        if OUTER.contains(&name) {
            self.outer.push(member(name, value));
        } else {
            self.add_source(name.strip_prefix("source_").unwrap_or(name), value);
        }
    }

    fn add_source(&mut self, name: &'a str, value: Raw<'a>) {
        self.source.push(member(name, value));
    }
}

fn member<'a>(name: &'a str, value: Raw<'a>) -> Member<'a> {
    Member { name: RawText { text: name, escaped: false }, value, at: 0 }
}

/// A header's value as JSON, wrapped or not, or as bare text.
fn header_value(bytes: &[u8]) -> Option<Raw<'_>> {
    let text = std::str::from_utf8(bytes).ok()?;
    match json::single(text) {
        Ok(raw @ Raw::Nested { text, .. }) => Some(json::member(text, "payload").unwrap_or(raw)),
        Ok(raw) => Some(raw),
        Err(_) => Some(Raw::Text(RawText { text, escaped: false })),
    }
}

/// The mark of deletes is a text; transforms of users make it a boolean.
fn deleted(mark: Option<Raw<'_>>) -> Result<bool, Reject> {
    match mark {
        None | Some(Raw::Null) => Ok(false),
        Some(Raw::Bool(v)) => Ok(v),
        Some(Raw::Text(t)) if t.text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Raw::Text(t)) if t.text.is_empty() || t.text.eq_ignore_ascii_case("false") => Ok(false),
        Some(Raw::Text(RawText { text, .. }) | Raw::Number(text)) => {
            Err(Reject::new(format!("`__deleted` is `{}`, neither true nor false", shortened(text))))
        }
        Some(Raw::Nested { .. }) => Err(Reject::new("`__deleted` is neither true nor false")),
    }
}

impl<'a> Reader<'_, 'a> {
    /// Reads the row whose members are those of the envelope.
    pub(super) fn flattened(
        &mut self,
        p: &mut Parts<'a>,
        topics: &mut Topics,
        at: usize,
        fields: Option<&Fields>,
    ) -> Result<Step<'a>, Reject> {
        columns(&p.envelope, at, self.scratch, &mut p.rows.row, |i, name, m, scratch| {
            typed(fields, i, name, m, scratch)
        })?;
        let metadata = Metadata::read(&p.envelope, self.message.headers, self.message.topic);
        let outer = Block(&metadata.outer);
        let (code, op) = match outer.raw("op") {
            None | Some(Raw::Null) => (self.options.default_op.word(), self.options.default_op),
            Some(_) => match envelope::operation(&outer)? {
                Operation::Change(code, op) => (code, op),
                Operation::Ignored(kind) => return Ok(Step::Ignored(kind)),
            },
        };
        let op = if deleted(outer.raw("deleted"))? { Op::Delete } else { op };
        if op != Op::Truncate && p.rows.key.is_empty() && !p.rows.row.iter().any(is_data) {
            return Err(Reject::new("the row has no columns"));
        }
        let change = self.head(op, &metadata, topics);
        let step = envelope::declared(self.options, self.message, change, code, &mut p.rows, self.scratch)?;
        // Options may name metadata; columns of the table they are not.
        p.rows.row.retain(is_data);
        p.rows.image.retain(is_data);
        Ok(step)
    }

    /// What the metadata say of the change.
    fn head(&mut self, op: Op, metadata: &Metadata<'a>, topics: &mut Topics) -> Change<'a> {
        let (outer, source) = (Block(&metadata.outer), Block(&metadata.source));
        let mut change = envelope::change(op, &outer, &metadata.source, self.message, self.scratch);
        if let Some(id) = outer.text("transaction_id", self.scratch) {
            change.transaction_id = Some(id);
        }
        if change.source.server == self.message.topic {
            change.source.server = None;
        }
        let binlog = source.raw("file").is_some() && source.raw("pos").is_some();
        change.table = table(&change.source, binlog, self.scratch);
        if let Some(topic) = self.message.topic {
            match change.table {
                Some(table) => topics.learn(topic, table),
                None => (change.table, change.table_guessed) = (topics.guess(topic, self.scratch), true),
            }
        }
        change
    }
}

fn is_data(column: &Column<'_>) -> bool {
    !column.name.starts_with(PREFIX)
}

/// `schema.table`; a database stands before the table where it is known to have no schemas.
fn table<'a>(source: &SourceRef<'a>, binlog: bool, scratch: &mut Scratch<'a>) -> Option<&'a str> {
    table_name(&SourceRef { db: source.db.filter(|_| binlog), ..*source }, scratch)
}
