//! The neutral change that every format maps to, and what one message decodes to.
//!
//! A change borrows from the message it was decoded from and from the decoder's scratch space: it
//! lives for one call of the sink that receives it. The four states of a column (rule B6) are the
//! states of [`Cell`]; a column that is not listed is [`Cell::Unchanged`], unless
//! [`Change::full`] says that absent columns are NULL.

pub use asofdb_storage::event::Op;
use asofdb_storage::time::AxisType;
use asofdb_storage::value::Cell;

/// A named cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column<'a> {
    /// The column's name as the source spells it.
    pub name: &'a str,
    /// Its state.
    pub cell: Cell<'a>,
}

/// One change of one row.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The table the envelope names (`schema.table`, or `db.table` where the source has no
    /// schemas); `None` where it names none.
    pub table: Option<&'a str>,
    /// The table name was guessed from the topic, as for a tombstone.
    pub table_guessed: bool,
    /// The kind of change.
    pub op: Op,
    /// Columns that are not in `image` are NULL rather than unchanged (rule B5). Always true of
    /// deletes and truncates.
    pub full: bool,
    /// Key columns as the message or its Kafka key gives them, in the order given; empty = none.
    pub key: &'a [Column<'a>],
    /// All columns of the message, also those that the options keep out of the image: declared key
    /// columns are looked up here.
    pub fields: &'a [Column<'a>],
    /// The image after the change, without duplicates. For deletes: what the source sends of the
    /// old row where the format has no separate before-image.
    pub image: &'a [Column<'a>],
    /// Numbers of the names of `image`, so that nobody need look names up that were seen before.
    pub numbered: Numbered<'a>,
    /// The image before the change as far as it was sent. In a key-only before-image the other
    /// columns are NULL without meaning it; it serves keys and tables without a key only.
    pub before: &'a [Column<'a>],
    /// The key this row had before, where the event changes it (rule B8).
    pub previous: Option<Previous<'a>>,
    /// The candidate valid times (rule A4).
    pub times: Times,
    /// Times and marks that the intake options declare.
    pub declared: Declared<'a>,
    /// The source marks the event as read by a snapshot (rule A4).
    pub snapshot: bool,
    /// A message without a value: a delete by its key, unless the key's predecessor ended the row
    /// already (rule A4).
    pub tombstone: bool,
    /// Where the event stands in the log of its source; `None` if there is none that is usable.
    pub token: Option<Token<'a>>,
    /// At that position the source has at most one event of a key and an operation, so that a second one is
    /// a repeat wherever it stands.
    pub one_per_key: bool,
    /// The source's transaction.
    pub transaction_id: Option<&'a str>,
    /// What the envelope says of the source.
    pub source: SourceRef<'a>,
    /// Kafka headers of the message.
    pub headers: &'a [Header<'a>],
}

impl<'a> Change<'a> {
    /// A change of which nothing but the operation is known.
    pub fn new(op: Op) -> Change<'a> {
        Change {
            table: None,
            table_guessed: false,
            op,
            full: true,
            key: &[],
            fields: &[],
            image: &[],
            numbered: Numbered::default(),
            before: &[],
            previous: None,
            times: Times::default(),
            declared: Declared::default(),
            snapshot: false,
            tombstone: false,
            token: None,
            one_per_key: false,
            transaction_id: None,
            source: SourceRef::default(),
            headers: &[],
        }
    }
}

/// Numbers that a decoder gave to the names of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbered<'a> {
    /// The decoder's dictionary; a name has one number in it. No other decoder of the process has the same.
    pub dictionary: u32,
    /// The number of each column in its place; empty = not numbered.
    pub numbers: &'a [u16],
}

/// The former key of a row whose key changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Previous<'a> {
    /// Its columns, in the order given.
    pub key: &'a [Column<'a>],
    /// The source sends a delete of the former key of its own (rule B8, `__debezium.oldkey`).
    pub deletes_sent: bool,
}

/// The times a message carries, microseconds since 1970-01-01T00:00:00Z; 0 or missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// When the source committed the change.
    pub source: Option<i64>,
    /// When the connector processed it.
    pub connector: Option<i64>,
    /// When the broker took it.
    pub broker: Option<i64>,
}

/// A value on an axis: microseconds since 1970-01-01T00:00:00Z, or a plain integer (rule A2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisValue {
    /// The number.
    pub value: i64,
    /// What it counts.
    pub axis: AxisType,
}

/// What the intake options make of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Declared<'a> {
    /// Declared valid time; always present where one is declared, but for tombstones, which have
    /// no columns: they have one only where it is declared as a field of the envelope.
    pub valid_from: Option<AxisValue>,
    /// Own valid end, exclusive (rule B13); `None` = open.
    pub valid_to: Option<AxisValue>,
    /// Declared system time; present like the valid time.
    pub system: Option<AxisValue>,
    /// Tie-breaks in their declared order; a missing one is NULL and sorts first.
    pub ties: &'a [Cell<'a>],
    /// Operation id.
    pub operation_id: Option<Cell<'a>>,
}

/// A position in the log of a source. Positions of one server compare as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The log: positions of different servers do not compare.
    pub server: &'a str,
    /// The position.
    pub position: &'a [u8],
}

/// Where an event comes from, as its envelope says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceRef<'a> {
    /// The connector's logical server name.
    pub server: Option<&'a str>,
    /// Database.
    pub db: Option<&'a str>,
    /// Schema.
    pub schema: Option<&'a str>,
    /// Table.
    pub table: Option<&'a str>,
}

impl<'a> SourceRef<'a> {
    /// A table by its name within `schema.`, or `database.schema.`, or neither.
    pub(crate) fn of_dotted(table: &'a str) -> SourceRef<'a> {
        let (space, name) = table.rsplit_once('.').map_or((None, table), |(s, t)| (Some(s), t));
        let (db, schema) = match space.and_then(|s| s.split_once('.')) {
            Some((db, schema)) => (Some(db), Some(schema)),
            None => (None, space),
        };
        SourceRef { server: None, db, schema, table: Some(name) }
    }
}

/// A header of a Kafka record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Name.
    pub name: &'a str,
    /// Value.
    pub value: &'a [u8],
}

/// A message as a source delivers it: a record of Kafka, or a line of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// Record key; `None` = null, or there are no keys here.
    pub key: Option<&'a [u8]>,
    /// Record value; `None` = null, a tombstone.
    pub value: Option<&'a [u8]>,
    /// Headers.
    pub headers: &'a [Header<'a>],
    /// The broker's time, microseconds since 1970-01-01T00:00:00Z.
    pub broker_time: Option<i64>,
    /// Topic.
    pub topic: Option<&'a str>,
    /// Offset, or row within the file, counted from 0.
    pub position: u64,
}

/// What one message decodes to.
#[derive(Clone, Copy, Debug)]
pub enum Decoded<'a> {
    /// Row events, in their order within the message.
    Changes(&'a [Change<'a>]),
    /// A row that the source was asked for again and that says nothing new, with the kind of repeat; it
    /// takes no position in the stream.
    Repeat(&'static str),
    /// Not a row event: a tombstone without a key, a heartbeat, a side message. Counted by kind.
    Ignored(&'static str),
    /// Cannot be taken (rule C2).
    Quarantine(Fault<'a>),
}

/// Why a message cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault<'a> {
    /// What is wrong, in words for people.
    pub reason: &'a str,
    /// What may help; empty = nothing to say.
    pub hint: &'a str,
    /// Byte of the message at which it was found, counted from 0.
    pub offset: u64,
}

/// Receives what messages decode to.
pub type Sink<'s> = dyn FnMut(Decoded<'_>) + 's;
