//! A batch of physical rows with typed access to whatever columns were loaded.

use crate::engine::error::{Error, ErrorKind};
use crate::event::Op;
use crate::event::columns::{OP_FULL, OP_LEAVES, OP_MASK, OP_PREVIOUS_DELETED, bit, image_column_name};
use crate::id::ColumnId;
use crate::time::FOREVER;
use arrow::array::*;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::*;

/// Typed columns of one batch. Columns that were not loaded answer with what they hold when the
/// source has nothing special: no end, no ties, everything authored.
#[derive(Debug)]
pub(crate) struct Loaded {
    batch: RecordBatch,
    key_no: ScalarBuffer<u32>,
    key: Option<BinaryArray>,
    valid_from: Option<ScalarBuffer<i64>>,
    valid_to: Option<ScalarBuffer<i64>>,
    system: Option<ScalarBuffer<i64>>,
    commit: Option<ScalarBuffer<u64>>,
    op: Option<ScalarBuffer<u8>>,
    origin: Option<ScalarBuffer<u32>>,
    position: Option<ScalarBuffer<u64>>,
    ordinal: Option<ScalarBuffer<u32>>,
    mask: Option<ScalarBuffer<u64>>,
    mask_rest: Option<BinaryArray>,
    unknown: Option<BinaryArray>,
    ties: Option<BinaryArray>,
    source: Option<ScalarBuffer<u32>>,
    token: Option<BinaryArray>,
    token_ordinal: Option<ScalarBuffer<u32>>,
    operation_id: Option<BinaryArray>,
    content: Option<UInt64Array>,
    previous: Option<BinaryArray>,
}

fn values<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<ScalarBuffer<T::Native>> {
    array.as_primitive_opt::<T>().map(|a| a.values().clone())
}

/// A binary column; `None` also where every value is NULL.
fn binary(array: &ArrayRef) -> Option<BinaryArray> {
    array.as_binary_opt::<i32>().filter(|a| a.null_count() < a.len() || a.is_empty()).cloned()
}

fn sparse(column: &Option<BinaryArray>, row: usize) -> Option<&[u8]> {
    column.as_ref().and_then(|a| a.is_valid(row).then(|| a.value(row)))
}

impl Loaded {
    pub fn new(batch: RecordBatch) -> Result<Loaded, Error> {
        if batch.column_by_name("key_no").is_none_or(|a| a.as_primitive_opt::<UInt32Type>().is_none()) {
            return Err(Error::new(ErrorKind::Damaged, "a sorted batch has no key numbers"));
        }
        Loaded::without_keys(batch)
    }

    /// A batch whose key numbers nobody asks for.
    pub fn without_keys(batch: RecordBatch) -> Result<Loaded, Error> {
        let schema = batch.schema();
        let mut loaded = Loaded::empty(batch);
        for (i, field) in schema.fields().iter().enumerate() {
            loaded.take(field.name(), i);
        }
        let last = loaded.op.iter().flat_map(|o| o.iter()).fold(0, |last, o| last.max(o & OP_MASK));
        if last > Op::MovedAway as u8 {
            return Err(Error::new(ErrorKind::Damaged, "a sorted batch holds an unknown operation"));
        }
        Ok(loaded)
    }

    fn empty(batch: RecordBatch) -> Loaded {
        Loaded {
            batch,
            key_no: Vec::new().into(),
            key: None,
            valid_from: None,
            valid_to: None,
            system: None,
            commit: None,
            op: None,
            origin: None,
            position: None,
            ordinal: None,
            mask: None,
            mask_rest: None,
            unknown: None,
            ties: None,
            source: None,
            token: None,
            token_ordinal: None,
            operation_id: None,
            content: None,
            previous: None,
        }
    }

    /// Keeps column `i` for typed access.
    fn take(&mut self, name: &str, i: usize) {
        let array = self.batch.column(i);
        match name {
            "key_no" => self.key_no = values::<UInt32Type>(array).unwrap_or_default(),
            "key" => self.key = array.as_binary_opt::<i32>().cloned(),
            "valid_from" => self.valid_from = values::<Int64Type>(array),
            "valid_to" => self.valid_to = values::<Int64Type>(array),
            "system" => self.system = values::<Int64Type>(array),
            "commit" => self.commit = values::<UInt64Type>(array),
            "op" => self.op = values::<UInt8Type>(array),
            "origin" => self.origin = values::<UInt32Type>(array),
            "position" => self.position = values::<UInt64Type>(array),
            "ordinal" => self.ordinal = values::<UInt32Type>(array),
            "mask" => self.mask = values::<UInt64Type>(array),
            "mask_rest" => self.mask_rest = binary(array),
            "unknown" => self.unknown = binary(array),
            "ties" => self.ties = binary(array),
            "source" => self.source = values::<UInt32Type>(array),
            "token" => self.token = binary(array),
            "token_ordinal" => self.token_ordinal = values::<UInt32Type>(array),
            "operation_id" => self.operation_id = binary(array),
            "content" => self.content = array.as_primitive_opt::<UInt64Type>().cloned(),
            "previous" => self.previous = binary(array),
            _ => {}
        }
    }

    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    pub fn key_numbers(&self) -> &[u32] {
        &self.key_no
    }

    pub fn key(&self, row: usize) -> &[u8] {
        self.key.as_ref().map_or(&[], |a| a.value(row))
    }

    pub fn valid_from(&self, row: usize) -> i64 {
        self.valid_from.as_ref().map_or(0, |a| a[row])
    }

    pub fn valid_to(&self, row: usize) -> i64 {
        self.valid_to.as_ref().map_or(FOREVER, |a| a[row])
    }

    pub fn system(&self, row: usize) -> i64 {
        self.system.as_ref().map_or(0, |a| a[row])
    }

    pub fn commit(&self, row: usize) -> u64 {
        self.commit.as_ref().map_or(0, |a| a[row])
    }

    /// See [`Loaded::valid_from`]; `None` if they were not loaded.
    pub fn valid_times(&self) -> Option<&[i64]> {
        self.valid_from.as_deref()
    }

    /// See [`Loaded::system`].
    pub fn system_times(&self) -> Option<&[i64]> {
        self.system.as_deref()
    }

    /// See [`Loaded::commit`].
    pub fn commits(&self) -> Option<&[u64]> {
        self.commit.as_deref()
    }

    /// Operations with their bits; `None` if they were not loaded.
    pub fn ops(&self) -> Option<&[u8]> {
        self.op.as_deref()
    }

    /// See [`Loaded::mask`].
    pub fn masks(&self) -> Option<&ScalarBuffer<u64>> {
        self.mask.as_ref()
    }

    pub fn op(&self, row: usize) -> Op {
        let bits = self.op.as_ref().map_or(0, |a| a[row]);
        Op::from_u8(bits & OP_MASK).expect("operations were checked when the batch was loaded")
    }

    pub fn is_full(&self, row: usize) -> bool {
        self.op.as_ref().is_some_and(|a| a[row] & OP_FULL != 0)
    }

    pub fn previous_deleted(&self, row: usize) -> bool {
        self.op.as_ref().is_some_and(|a| a[row] & OP_PREVIOUS_DELETED != 0)
    }

    /// Whether the event writes some column leaf by leaf.
    pub fn writes_leaves(&self, row: usize) -> bool {
        self.op.as_ref().is_some_and(|a| a[row] & OP_LEAVES != 0)
    }

    pub fn origin(&self, row: usize) -> u32 {
        self.origin.as_ref().map_or(0, |a| a[row])
    }

    pub fn position(&self, row: usize) -> u64 {
        self.position.as_ref().map_or(0, |a| a[row])
    }

    pub fn ordinal(&self, row: usize) -> u32 {
        self.ordinal.as_ref().map_or(0, |a| a[row])
    }

    pub fn ties(&self, row: usize) -> Option<&[u8]> {
        sparse(&self.ties, row)
    }

    pub fn source(&self, row: usize) -> u32 {
        self.source.as_ref().map_or(0, |a| a[row])
    }

    pub fn mask_rest(&self, row: usize) -> Option<&[u8]> {
        sparse(&self.mask_rest, row)
    }

    /// Bits of the columns sent as placeholders or written leaf by leaf.
    pub fn unknown(&self, row: usize) -> &[u8] {
        sparse(&self.unknown, row).unwrap_or(&[])
    }

    pub fn token(&self, row: usize) -> Option<&[u8]> {
        sparse(&self.token, row)
    }

    pub fn token_ordinal(&self, row: usize) -> u32 {
        self.token_ordinal.as_ref().map_or(0, |a| a[row])
    }

    pub fn operation_id(&self, row: usize) -> Option<&[u8]> {
        sparse(&self.operation_id, row)
    }

    /// Hash of operation and cells.
    pub fn content(&self, row: usize) -> Option<u64> {
        self.content.as_ref().and_then(|a| a.is_valid(row).then(|| a.value(row)))
    }

    pub fn previous(&self, row: usize) -> Option<&[u8]> {
        sparse(&self.previous, row)
    }

    /// Authored columns 0 to 63.
    pub fn mask(&self, row: usize) -> u64 {
        self.mask.as_ref().map_or(u64::MAX, |a| a[row])
    }

    /// Whether the event writes `column`.
    pub fn authors(&self, row: usize, column: ColumnId) -> bool {
        match column.0 {
            c @ 0..64 => self.mask(row) >> c & 1 == 1,
            c => sparse(&self.mask_rest, row)
                .and_then(|words| bit(words, c as usize - 64))
                .unwrap_or_else(|| self.is_full(row) && !self.is_unknown(row, column)),
        }
    }

    pub fn is_unknown(&self, row: usize, column: ColumnId) -> bool {
        sparse(&self.unknown, row).and_then(|words| bit(words, column.0 as usize)).unwrap_or(false)
    }

    /// Values of a table column; `None` if the source is older than the column.
    pub fn image(&self, column: ColumnId) -> Option<&ArrayRef> {
        self.batch.column_by_name(&image_column_name(column))
    }
}
