//! Events as Arrow columns: the physical schema of memory batches and runs.
//!
//! Columns of the table are named `c0`, `c1`, … by [`ColumnId`], so that no name of a user column
//! can meet one of ours. One event is one row, except that a key change is two: the old key's side
//! ([`Op::MovedAway`]) and the new key's.

use crate::event::Op;
use crate::id::ColumnId;
use crate::schema::TableSchema;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::array::{Int64Array, StringArray, UInt8Array, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// Bit of the `op` column: the event authors every column.
pub const OP_FULL: u8 = 1 << 3;
/// Bit of the `op` column: see [`crate::event::EventHead::previous_deleted`].
pub const OP_PREVIOUS_DELETED: u8 = 1 << 4;
/// Bit of the `op` column: the event writes some column leaf by leaf (see [`EventColumns::writes_leaves`]).
pub const OP_LEAVES: u8 = 1 << 5;
/// Bits of the `op` column that hold the [`Op`].
pub const OP_MASK: u8 = 0b111;

/// Number of columns before the image columns.
pub const META_COLUMNS: usize = 23;

/// Names and types of the columns before the image columns, in order.
pub fn meta_fields() -> [Field; META_COLUMNS] {
    use DataType::*;
    [
        Field::new("key", Binary, false),
        Field::new("valid_from", Int64, false),
        Field::new("valid_to", Int64, false),
        Field::new("system", Int64, false),
        Field::new("commit", UInt64, false),
        Field::new("op", UInt8, false),
        Field::new("origin", UInt32, false),
        Field::new("position", UInt64, false),
        Field::new("ordinal", UInt32, false),
        Field::new("mask", UInt64, false),
        Field::new("mask_rest", Binary, true),
        Field::new("unknown", Binary, true),
        Field::new("ties", Binary, true),
        Field::new("event_time", Int64, true),
        Field::new("time_source", UInt8, false),
        Field::new("source", UInt32, false),
        Field::new("token", Binary, true),
        Field::new("token_ordinal", UInt32, false),
        Field::new("operation_id", Binary, true),
        Field::new("transaction_id", Utf8, true),
        Field::new("previous", Binary, true),
        Field::new("raw", Binary, true),
        Field::new("content", UInt64, true),
    ]
}

/// The name of a table column in the physical schema.
pub fn image_column_name(id: ColumnId) -> String {
    format!("c{}", id.0)
}

/// The physical schema of the events of a table.
pub fn event_schema(schema: &TableSchema) -> SchemaRef {
    let mut fields = meta_fields().to_vec();
    fields.extend(schema.columns.iter().map(|c| Field::new(image_column_name(c.id), c.ty.arrow(), true)));
    Arc::new(Schema::new(fields))
}

/// Typed access to a batch of the physical schema. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EventColumns {
    batch: RecordBatch,
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $index:expr, $cast:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(&self) -> &$ty { self.batch.column($index).$cast() })*
    };
}

impl EventColumns {
    /// Wraps a batch that has the physical schema of some table.
    ///
    /// # Errors
    /// Says which column is missing or of another type.
    pub fn new(batch: RecordBatch) -> Result<EventColumns, String> {
        for (i, want) in meta_fields().iter().enumerate() {
            let schema = batch.schema_ref();
            let got = schema.fields().get(i).ok_or_else(|| format!("column {} is missing", want.name()))?;
            if got.name() != want.name() || got.data_type() != want.data_type() {
                return Err(format!("column {i} is {got:?}, not {want:?}"));
            }
        }
        Ok(EventColumns { batch })
    }

    /// The batch itself.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Number of physical rows.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    columns! {
        /// Key bytes (see [`crate::key`]); empty for truncates.
        key: BinaryArray = 0, as_binary;
        /// Effective valid time.
        valid_from: Int64Array = 1, as_primitive;
        /// Own valid end, or FOREVER.
        valid_to: Int64Array = 2, as_primitive;
        /// System time: declared, or the commit instant.
        system: Int64Array = 3, as_primitive;
        /// Commit number.
        commit: UInt64Array = 4, as_primitive;
        /// Operation and flag bits.
        op: UInt8Array = 5, as_primitive;
        /// Origin number.
        origin: UInt32Array = 6, as_primitive;
        /// Offset or row within the origin.
        position: UInt64Array = 7, as_primitive;
        /// Number within the message.
        ordinal: UInt32Array = 8, as_primitive;
        /// Authored columns 0 to 63, one bit each; all ones for full images and deletes.
        mask: UInt64Array = 9, as_primitive;
        /// Authored columns from 64 on, little-endian words; NULL = as full or not as `op` says.
        mask_rest: BinaryArray = 10, as_binary;
        /// Columns sent as placeholders, and of the authored columns those that are written leaf by
        /// leaf; little-endian words; NULL = none.
        unknown: BinaryArray = 11, as_binary;
        /// Sequence tie-breaks; NULL = none, which sorts first.
        ties: BinaryArray = 12, as_binary;
        /// The event's own time.
        event_time: Int64Array = 13, as_primitive;
        /// [`crate::event::TimeSource`] number.
        time_source: UInt8Array = 14, as_primitive;
        /// Source number.
        source: UInt32Array = 15, as_primitive;
        /// Usable log token.
        token: BinaryArray = 16, as_binary;
        /// Ordinal among consecutive events with this token.
        token_ordinal: UInt32Array = 17, as_primitive;
        /// Operation id.
        operation_id: BinaryArray = 18, as_binary;
        /// Transaction id.
        transaction_id: StringArray = 19, as_string;
        /// Key bytes of the previous key, on the new key's side of a key change.
        previous: BinaryArray = 20, as_binary;
        /// The message as it came.
        raw: BinaryArray = 21, as_binary;
        /// Hash of operation and cells, where a token or an operation id stands.
        content: UInt64Array = 22, as_primitive;
    }

    /// The operation of row `i`.
    ///
    /// # Panics
    /// If the column holds a number that is none; batches are checked when they are read.
    pub fn operation(&self, i: usize) -> Op {
        Op::from_u8(self.op().value(i) & OP_MASK).expect("operation was checked on reading")
    }

    /// Whether row `i` authors every column.
    pub fn is_full(&self, i: usize) -> bool {
        self.op().value(i) & OP_FULL != 0
    }

    /// Whether row `i` authors `column`: writes a value or NULL to it (placeholders do not).
    pub fn authors(&self, i: usize, column: ColumnId) -> bool {
        match column.0 {
            c @ 0..64 => self.mask().value(i) >> c & 1 == 1,
            _ if self.mask_rest().is_null(i) => self.is_full(i),
            c => bit(self.mask_rest().value(i), c as usize - 64).unwrap_or(self.is_full(i)),
        }
    }

    /// Whether row `i` holds a placeholder for `column`.
    pub fn is_unknown(&self, i: usize, column: ColumnId) -> bool {
        self.is_marked(i, column) && !self.authors(i, column)
    }

    /// Whether row `i` authors only leaves of `column`: those that its JSON object names.
    pub fn writes_leaves(&self, i: usize, column: ColumnId) -> bool {
        self.is_marked(i, column) && self.authors(i, column)
    }

    /// Whether `unknown` has a bit for `column`.
    pub(crate) fn is_marked(&self, i: usize, column: ColumnId) -> bool {
        !self.unknown().is_null(i) && bit(self.unknown().value(i), column.0 as usize).unwrap_or(false)
    }

    /// The values of a table column; `None` if the batch is older than the column.
    pub fn image(&self, column: ColumnId) -> Option<&ArrayRef> {
        let index = META_COLUMNS + column.0 as usize;
        self.batch.columns().get(index)
    }
}

/// Bit `i` of little-endian words; `None` beyond the end.
pub(crate) fn bit(words: &[u8], i: usize) -> Option<bool> {
    words.get(i / 8).map(|b| b >> (i % 8) & 1 == 1)
}
