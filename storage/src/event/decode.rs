//! From rows of bytes to Arrow columns.

use super::columns::{META_COLUMNS, OP_FULL, OP_LEAVES, OP_PREVIOUS_DELETED, event_schema};
use super::head::Op;
use super::row::{RowError, RowView};
use super::sparse::Sparse;
use crate::id::ColumnId;
use crate::key::put_key_cell;
use crate::recycle;
use crate::schema::TableSchema;
use crate::time::CommitSeq;
use crate::value::{Cell, ColumnType, write_json, write_text};
use arrow::array::*;
use arrow::datatypes::TimestampNanosecondType;
use arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType};
use std::sync::Arc;

/// What a row takes from the frame it stands in.
#[derive(Clone, Copy, Debug)]
pub struct FrameContext {
    /// Commit of the frame.
    pub commit: CommitSeq,
    /// Its instant, microseconds: system and valid time of rows that have none of their own.
    pub commit_at: i64,
}

/// Decodes rows into columns of the physical schema of `schema`, in the given order.
///
/// # Errors
/// The number of the row and what is wrong with it: bytes that are not a row, or a value that the
/// schema has no room for.
pub fn decode_rows<'a>(
    rows: impl ExactSizeIterator<Item = &'a [u8]>,
    schema: &TableSchema,
    context: FrameContext,
) -> Result<RecordBatch, (usize, RowError)> {
    let mut builder = Builder::new(schema, rows.len());
    for (i, row) in rows.enumerate() {
        RowView::parse(row).and_then(|view| builder.push(&view, context)).map_err(|e| (i, e))?;
    }
    Ok(builder.finish())
}

struct Builder<'s> {
    schema: &'s TableSchema,
    key: BinaryBuilder,
    key_scratch: Vec<u8>,
    cells_scratch: Vec<(ColumnId, Cell<'static>)>,
    valid_from: Vec<i64>,
    valid_to: Vec<i64>,
    system: Vec<i64>,
    commit: Vec<u64>,
    op: Vec<u8>,
    origin: Vec<u32>,
    position: Vec<u64>,
    ordinal: Vec<u32>,
    mask: Vec<u64>,
    mask_rest: Sparse<BinaryBuilder>,
    unknown: Sparse<BinaryBuilder>,
    ties: Sparse<BinaryBuilder>,
    event_time: Int64Builder,
    time_source: Vec<u8>,
    source: Vec<u32>,
    token: Sparse<BinaryBuilder>,
    token_ordinal: Vec<u32>,
    operation_id: Sparse<BinaryBuilder>,
    transaction_id: Sparse<StringBuilder>,
    previous: Sparse<BinaryBuilder>,
    raw: Sparse<BinaryBuilder>,
    content: Sparse<UInt64Builder>,
    images: Vec<ImageBuilder>,
}

/// Reserves one bit per column; words are little-endian.
fn set_bit(words: &mut Vec<u8>, i: usize) {
    if words.len() <= i / 8 {
        words.resize((i / 64 + 1) * 8, 0);
    }
    words[i / 8] |= 1 << (i % 8);
}

impl<'s> Builder<'s> {
    fn new(schema: &'s TableSchema, rows: usize) -> Builder<'s> {
        Builder {
            schema,
            key: BinaryBuilder::with_capacity(rows, rows * 24),
            key_scratch: Vec::new(),
            cells_scratch: Vec::new(),
            valid_from: Vec::with_capacity(rows),
            valid_to: Vec::with_capacity(rows),
            system: Vec::with_capacity(rows),
            commit: Vec::with_capacity(rows),
            op: Vec::with_capacity(rows),
            origin: Vec::with_capacity(rows),
            position: Vec::with_capacity(rows),
            ordinal: Vec::with_capacity(rows),
            mask: Vec::with_capacity(rows),
            mask_rest: Sparse::default(),
            unknown: Sparse::default(),
            ties: Sparse::default(),
            event_time: Int64Builder::with_capacity(rows),
            time_source: Vec::with_capacity(rows),
            source: Vec::with_capacity(rows),
            token: Sparse::default(),
            token_ordinal: Vec::with_capacity(rows),
            operation_id: Sparse::default(),
            transaction_id: Sparse::default(),
            previous: Sparse::default(),
            raw: Sparse::default(),
            content: Sparse::default(),
            images: schema.columns.iter().map(|c| ImageBuilder::new(c.ty, rows)).collect(),
        }
    }

    fn push(&mut self, row: &RowView<'_>, context: FrameContext) -> Result<(), RowError> {
        let keyless = self.schema.key.is_empty();
        if let Some(previous) = &row.previous {
            let columns: Vec<ColumnId> = if keyless {
                self.schema.columns.iter().map(|c| c.id).collect()
            } else {
                self.schema.key.clone()
            };
            let cells: Vec<_> = columns.into_iter().zip(previous.iter().copied()).collect();
            let ending = if keyless && row.head.op == Op::Delete { Op::Delete } else { Op::MovedAway };
            self.push_one(row, context, ending, &cells)?;
            if ending == Op::Delete {
                return Ok(());
            }
        }
        let mut cells = recycle(std::mem::take(&mut self.cells_scratch));
        for cell in row.cells() {
            cells.push(cell?);
        }
        self.push_one(row, context, row.head.op, &cells)?;
        self.cells_scratch = recycle(cells);
        Ok(())
    }

    fn push_one(
        &mut self,
        row: &RowView<'_>,
        context: FrameContext,
        op: Op,
        cells: &[(ColumnId, Cell<'_>)],
    ) -> Result<(), RowError> {
        let head = &row.head;
        let full = head.full || op.ends_row();
        self.push_key(op, cells);
        self.valid_from.push(head.valid_from.unwrap_or(context.commit_at));
        self.valid_to.push(head.valid_to);
        self.system.push(head.system.unwrap_or(context.commit_at));
        self.commit.push(context.commit.0);
        let mut bits = op as u8;
        bits |= if full { OP_FULL } else { 0 };
        bits |= if head.previous_deleted { OP_PREVIOUS_DELETED } else { 0 };
        let leaves = !full && cells.iter().any(|(_, c)| matches!(c, Cell::Leaves(_)));
        bits |= if leaves { OP_LEAVES } else { 0 };
        self.op.push(bits);
        self.origin.push(head.origin.0);
        self.position.push(head.position);
        self.ordinal.push(head.ordinal);
        self.event_time.append_option(head.event_time);
        self.time_source.push(head.time_source as u8);
        self.source.push(head.source.0);
        self.ties.append((!head.ties.is_empty()).then_some(head.ties));
        self.token.append((!head.token.is_empty()).then_some(head.token));
        self.token_ordinal.push(head.token_ordinal);
        self.operation_id.append(head.operation_id);
        self.transaction_id.append(head.transaction_id);
        self.raw.append(if op == Op::MovedAway { None } else { head.raw });
        let identified = !head.token.is_empty() || head.operation_id.is_some();
        self.content.append(identified.then(|| content_hash(head.op, row.cell_bytes())));
        self.push_previous(row, op);
        self.push_cells(cells, full)
    }

    fn push_key(&mut self, op: Op, cells: &[(ColumnId, Cell<'_>)]) {
        self.key_scratch.clear();
        if op != Op::Truncate {
            let find =
                |id: ColumnId| cells.iter().find(|(c, _)| *c == id).map_or(Cell::Null, |(_, cell)| *cell);
            if self.schema.key.is_empty() {
                for (id, cell) in cells.iter().filter(|(_, c)| *c != Cell::Null) {
                    self.key_scratch.extend_from_slice(&id.0.to_be_bytes());
                    put_key_cell(&mut self.key_scratch, cell);
                }
                if self.key_scratch.is_empty() {
                    put_key_cell(&mut self.key_scratch, &Cell::Null);
                }
            } else {
                self.schema.key.iter().for_each(|id| put_key_cell(&mut self.key_scratch, &find(*id)));
            }
        }
        self.key.append_value(&self.key_scratch);
    }

    fn push_previous(&mut self, row: &RowView<'_>, op: Op) {
        match &row.previous {
            Some(cells) if op != Op::MovedAway && !self.schema.key.is_empty() => {
                self.key_scratch.clear();
                cells.iter().for_each(|c| put_key_cell(&mut self.key_scratch, c));
                self.previous.append(Some(&self.key_scratch));
            }
            _ => self.previous.append(None),
        }
    }

    fn push_cells(&mut self, cells: &[(ColumnId, Cell<'_>)], full: bool) -> Result<(), RowError> {
        let (mut mask, mut rest, mut unknown) = (if full { u64::MAX } else { 0 }, Vec::new(), Vec::new());
        let mut next = 0;
        for (id, cell) in cells {
            let at = id.0 as usize;
            let Some(image) = self.images.get_mut(at) else {
                return Err(RowError { what: "column beyond the schema", at });
            };
            image.append(cell)?;
            self.images[next..at].iter_mut().for_each(ImageBuilder::append_null);
            next = at + 1;
            if !full && matches!(cell, Cell::Leaves(_)) {
                set_bit(&mut unknown, at);
            }
            match (cell, at) {
                (Cell::Unknown, 0..64) => {
                    mask &= !(1 << at);
                    set_bit(&mut unknown, at);
                }
                (Cell::Unknown, _) => set_bit(&mut unknown, at),
                (_, 0..64) => mask |= 1 << at,
                _ => set_bit(&mut rest, at - 64),
            }
        }
        self.images[next..].iter_mut().for_each(ImageBuilder::append_null);
        if full
            && self.schema.columns.len() > 64
            && cells.iter().any(|(id, c)| *c == Cell::Unknown && id.0 >= 64)
        {
            rest = vec![0xff; (self.schema.mask_words() - 1) * 8];
            for (id, _) in cells.iter().filter(|(id, c)| *c == Cell::Unknown && id.0 >= 64) {
                rest[(id.0 as usize - 64) / 8] &= !(1 << (id.0 % 8));
            }
        } else if full {
            rest.clear();
        }
        self.mask.push(mask);
        self.mask_rest.append((!rest.is_empty()).then_some(&rest));
        self.unknown.append((!unknown.is_empty()).then_some(&unknown));
        Ok(())
    }

    fn finish(mut self) -> RecordBatch {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.key.finish()),
            Arc::new(Int64Array::from(self.valid_from)),
            Arc::new(Int64Array::from(self.valid_to)),
            Arc::new(Int64Array::from(self.system)),
            Arc::new(UInt64Array::from(self.commit)),
            Arc::new(UInt8Array::from(self.op)),
            Arc::new(UInt32Array::from(self.origin)),
            Arc::new(UInt64Array::from(self.position)),
            Arc::new(UInt32Array::from(self.ordinal)),
            Arc::new(UInt64Array::from(self.mask)),
            self.mask_rest.finish(),
            self.unknown.finish(),
            self.ties.finish(),
            Arc::new(self.event_time.finish()),
            Arc::new(UInt8Array::from(self.time_source)),
            Arc::new(UInt32Array::from(self.source)),
            self.token.finish(),
            Arc::new(UInt32Array::from(self.token_ordinal)),
            self.operation_id.finish(),
            self.transaction_id.finish(),
            self.previous.finish(),
            self.raw.finish(),
            self.content.finish(),
        ];
        debug_assert_eq!(columns.len(), META_COLUMNS);
        columns.extend(self.images.into_iter().map(ImageBuilder::finish));
        RecordBatch::try_new(event_schema(self.schema), columns).expect("columns follow the physical schema")
    }
}

/// Hash by which two deliveries of one event are recognised; see rule C1.
pub fn content_hash(op: Op, cell_bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(cell_bytes, op as u64)
}

/// Bytes of a text that a column has room for at first.
const TEXT_BYTES: usize = 12;

enum ImageBuilder {
    Bool(BooleanBuilder),
    Int64(PrimitiveBuilder<Int64Type>),
    Decimal(PrimitiveBuilder<Decimal128Type>, u8),
    Float64(PrimitiveBuilder<Float64Type>),
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    TimestampNs(PrimitiveBuilder<TimestampNanosecondType>),
    Instant(PrimitiveBuilder<TimestampMicrosecondType>),
    Text(StringBuilder, String),
    Json(StringBuilder, String),
    Bytes(BinaryBuilder),
}

impl ImageBuilder {
    fn new(ty: ColumnType, rows: usize) -> ImageBuilder {
        match ty {
            ColumnType::Bool => ImageBuilder::Bool(BooleanBuilder::with_capacity(rows)),
            ColumnType::Int64 => ImageBuilder::Int64(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Decimal { scale, .. } => {
                ImageBuilder::Decimal(PrimitiveBuilder::with_capacity(rows).with_data_type(ty.arrow()), scale)
            }
            ColumnType::Float64 => ImageBuilder::Float64(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Date => ImageBuilder::Date(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Timestamp => ImageBuilder::Timestamp(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::TimestampNs => ImageBuilder::TimestampNs(PrimitiveBuilder::with_capacity(rows)),
            ColumnType::Instant => {
                ImageBuilder::Instant(PrimitiveBuilder::with_capacity(rows).with_data_type(ty.arrow()))
            }
            ColumnType::Null | ColumnType::Text => {
                ImageBuilder::Text(StringBuilder::with_capacity(rows, rows * TEXT_BYTES), String::new())
            }
            ColumnType::Json => ImageBuilder::Json(StringBuilder::new(), String::new()),
            ColumnType::Bytes => ImageBuilder::Bytes(BinaryBuilder::new()),
        }
    }

    fn append_null(&mut self) {
        match self {
            ImageBuilder::Bool(b) => b.append_null(),
            ImageBuilder::Int64(b) => b.append_null(),
            ImageBuilder::Decimal(b, _) => b.append_null(),
            ImageBuilder::Float64(b) => b.append_null(),
            ImageBuilder::Date(b) => b.append_null(),
            ImageBuilder::Timestamp(b) | ImageBuilder::Instant(b) => b.append_null(),
            ImageBuilder::TimestampNs(b) => b.append_null(),
            ImageBuilder::Text(b, _) | ImageBuilder::Json(b, _) => b.append_null(),
            ImageBuilder::Bytes(b) => b.append_null(),
        }
    }

    fn append(&mut self, cell: &Cell<'_>) -> Result<(), RowError> {
        use ImageBuilder as B;
        match (&mut *self, cell) {
            (_, Cell::Null | Cell::Unknown | Cell::Unchanged) => self.append_null(),
            (B::Bool(b), Cell::Bool(v)) => b.append_value(*v),
            (B::Int64(b), Cell::Int(v)) => b.append_value(*v),
            (B::Decimal(b, scale), Cell::Int(v)) => b.append_value(rescale(*v as i128, 0, *scale)?),
            (B::Decimal(b, scale), Cell::Decimal { unscaled, scale: own }) => {
                b.append_value(rescale(*unscaled, *own, *scale)?)
            }
            (B::Float64(b), Cell::Float(v)) => b.append_value(*v),
            (B::Date(b), Cell::Date(v)) => b.append_value(*v),
            (B::Timestamp(b), Cell::Timestamp(v)) => b.append_value(*v),
            (B::Timestamp(b) | B::Instant(b), Cell::Date(v)) => b.append_value(*v as i64 * 86_400_000_000),
            (B::Instant(b), Cell::Instant(v)) => b.append_value(*v),
            (B::TimestampNs(b), Cell::TimestampNs(v)) => b.append_value(*v),
            (B::Bytes(b), Cell::Bytes(v)) => b.append_value(v),
            (B::Text(b, _), Cell::Text(v)) | (B::Json(b, _), Cell::Json(v) | Cell::Leaves(v)) => {
                b.append_value(v)
            }
            (B::Text(b, scratch), cell) => {
                scratch.clear();
                write_text(scratch, cell);
                b.append_value(scratch);
            }
            (B::Json(b, scratch), cell) => {
                scratch.clear();
                write_json(scratch, cell);
                b.append_value(scratch);
            }
            _ => return Err(RowError { what: "value does not fit the type of its column", at: 0 }),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            ImageBuilder::Bool(mut b) => Arc::new(b.finish()),
            ImageBuilder::Int64(mut b) => Arc::new(b.finish()),
            ImageBuilder::Decimal(mut b, _) => Arc::new(b.finish()),
            ImageBuilder::Float64(mut b) => Arc::new(b.finish()),
            ImageBuilder::Date(mut b) => Arc::new(b.finish()),
            ImageBuilder::Timestamp(mut b) | ImageBuilder::Instant(mut b) => Arc::new(b.finish()),
            ImageBuilder::TimestampNs(mut b) => Arc::new(b.finish()),
            ImageBuilder::Text(mut b, _) | ImageBuilder::Json(mut b, _) => Arc::new(b.finish()),
            ImageBuilder::Bytes(mut b) => Arc::new(b.finish()),
        }
    }
}

/// The image column of type `ty` that holds `cells`.
pub(crate) fn image_column<'a>(
    ty: ColumnType,
    cells: impl ExactSizeIterator<Item = Cell<'a>>,
) -> Result<ArrayRef, RowError> {
    let mut image = ImageBuilder::new(ty, cells.len());
    for cell in cells {
        image.append(&cell)?;
    }
    Ok(image.finish())
}

fn rescale(unscaled: i128, from: u8, to: u8) -> Result<i128, RowError> {
    let room = RowError { what: "decimal does not fit the scale of its column", at: 0 };
    let steps = to.checked_sub(from).ok_or(room)?;
    10i128.checked_pow(steps as u32).and_then(|f| unscaled.checked_mul(f)).ok_or(room)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
