//! From rows of bytes to Arrow columns.

use super::columns::{META_COLUMNS, OP_FULL, OP_LEAVES, OP_PREVIOUS_DELETED, event_schema};
use super::head::Op;
use super::marks::Marks;
use super::row::{RowError, RowView};
use super::sparse::{Sparse, Uniform};
use super::twins::shared;
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
    /// Place in the key by column; [`NO_KEY`] for columns that are not in it. None if the key has more than
    /// [`KEY_COLUMNS_MAX`] columns or there is none.
    key_places: Vec<u8>,
    key: BinaryBuilder,
    key_scratch: Vec<u8>,
    cells_scratch: Vec<(ColumnId, Cell<'static>)>,
    valid_from: Vec<i64>,
    valid_to: Uniform<i64>,
    system: Vec<i64>,
    commit: Uniform<u64>,
    op: Vec<u8>,
    origin: Uniform<u32>,
    position: Vec<u64>,
    ordinal: Uniform<u32>,
    mask: Vec<u64>,
    mask_rest: Sparse<BinaryBuilder>,
    unknown: Sparse<BinaryBuilder>,
    ties: Sparse<BinaryBuilder>,
    event_time: Int64Builder,
    time_source: Uniform<u8>,
    source: Uniform<u32>,
    token: Sparse<BinaryBuilder>,
    token_ordinal: Uniform<u32>,
    operation_id: Sparse<BinaryBuilder>,
    transaction_id: Sparse<StringBuilder>,
    previous: Sparse<BinaryBuilder>,
    raw: Sparse<BinaryBuilder>,
    content: Sparse<UInt64Builder>,
    images: Vec<ImageBuilder>,
}

/// Key columns that are taken on the way through the cells of a row.
const KEY_COLUMNS_MAX: usize = 8;
/// Stands for no place in the key.
const NO_KEY: u8 = u8::MAX;

fn key_places(schema: &TableSchema) -> Vec<u8> {
    if schema.key.is_empty() || schema.key.len() > KEY_COLUMNS_MAX {
        return Vec::new();
    }
    let mut places = vec![NO_KEY; schema.columns.len()];
    for (place, id) in schema.key.iter().enumerate() {
        if let Some(at) = places.get_mut(id.0 as usize) {
            *at = place as u8;
        }
    }
    places
}

impl<'s> Builder<'s> {
    fn new(schema: &'s TableSchema, rows: usize) -> Builder<'s> {
        Builder {
            schema,
            key_places: key_places(schema),
            key: BinaryBuilder::with_capacity(rows, rows * 24),
            key_scratch: Vec::new(),
            cells_scratch: Vec::new(),
            valid_from: Vec::with_capacity(rows),
            valid_to: Uniform::default(),
            system: Vec::with_capacity(rows),
            commit: Uniform::default(),
            op: Vec::with_capacity(rows),
            origin: Uniform::default(),
            position: Vec::with_capacity(rows),
            ordinal: Uniform::default(),
            mask: Vec::with_capacity(rows),
            mask_rest: Sparse::default(),
            unknown: Sparse::default(),
            ties: Sparse::default(),
            event_time: Int64Builder::with_capacity(rows),
            time_source: Uniform::default(),
            source: Uniform::default(),
            token: Sparse::default(),
            token_ordinal: Uniform::default(),
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
        if !self.key_places.is_empty() && row.head.op != Op::Truncate {
            return self.push_passing(row, context);
        }
        let mut cells = recycle(std::mem::take(&mut self.cells_scratch));
        for cell in row.cells() {
            cells.push(cell?);
        }
        self.push_one(row, context, row.head.op, &cells)?;
        self.cells_scratch = recycle(cells);
        Ok(())
    }

    /// Takes the cells of a row of a table with a key as they come.
    fn push_passing(&mut self, row: &RowView<'_>, context: FrameContext) -> Result<(), RowError> {
        let op = row.head.op;
        let full = row.head.full || op.ends_row();
        let (mut key, mut marks, mut next) = ([Cell::Null; KEY_COLUMNS_MAX], Marks::new(full), 0);
        let key_columns = self.schema.key.len();
        self.key_scratch.clear();
        // Key columns whose bytes are there, as long as they come in the order of the key.
        let mut keys = 0;
        let (mut cells, mut cell) = (row.read_cells(), Cell::Null);
        while let Some(id) = cells.next_into(&mut cell)? {
            let at = id.0 as usize;
            self.push_image(next, at, &cell)?;
            next = at + 1;
            marks.add(at, &cell, full);
            let place = self.key_places[at];
            if place as usize == keys {
                put_key_cell(&mut self.key_scratch, &cell);
                keys += 1;
            } else if place != NO_KEY {
                key[place as usize] = cell;
            }
        }
        self.images[next..].iter_mut().for_each(ImageBuilder::append_null);
        key[keys..key_columns].iter().for_each(|cell| put_key_cell(&mut self.key_scratch, cell));
        self.key.append_value(&self.key_scratch);
        self.push_head(row, context, op, full, marks.leaves);
        self.push_marks(marks, full);
        Ok(())
    }

    fn push_one(
        &mut self,
        row: &RowView<'_>,
        context: FrameContext,
        op: Op,
        cells: &[(ColumnId, Cell<'_>)],
    ) -> Result<(), RowError> {
        let full = row.head.full || op.ends_row();
        self.push_key(op, cells);
        let (mut marks, mut next) = (Marks::new(full), 0);
        for (id, cell) in cells {
            let at = id.0 as usize;
            self.push_image(next, at, cell)?;
            next = at + 1;
            marks.add(at, cell, full);
        }
        self.images[next..].iter_mut().for_each(ImageBuilder::append_null);
        self.push_head(row, context, op, full, marks.leaves);
        self.push_marks(marks, full);
        Ok(())
    }

    /// Appends a cell to column `at`, and NULL to those from `next` up to it.
    #[inline]
    fn push_image(&mut self, next: usize, at: usize, cell: &Cell<'_>) -> Result<(), RowError> {
        let Some(image) = self.images.get_mut(at) else {
            return Err(RowError { what: "column beyond the schema", at });
        };
        image.append(cell)?;
        self.images[next..at].iter_mut().for_each(ImageBuilder::append_null);
        Ok(())
    }

    fn push_head(&mut self, row: &RowView<'_>, context: FrameContext, op: Op, full: bool, leaves: bool) {
        let head = &row.head;
        self.valid_from.push(head.valid_from.unwrap_or(context.commit_at));
        self.valid_to.push(head.valid_to);
        self.system.push(head.system.unwrap_or(context.commit_at));
        self.commit.push(context.commit.0);
        let mut bits = op as u8;
        bits |= if full { OP_FULL } else { 0 };
        bits |= if head.previous_deleted { OP_PREVIOUS_DELETED } else { 0 };
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
    }

    fn push_marks(&mut self, mut marks: Marks, full: bool) {
        if full {
            marks.full_rest(self.schema.mask_words());
        }
        self.mask.push(marks.mask);
        self.mask_rest.append((!marks.rest.is_empty()).then_some(&marks.rest));
        self.unknown.append((!marks.unknown.is_empty()).then_some(&marks.unknown));
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

    fn finish(mut self) -> RecordBatch {
        let valid_from: ArrayRef = Arc::new(Int64Array::from(self.valid_from));
        let system = shared(Arc::new(Int64Array::from(self.system)), &[&valid_from]);
        let times = [&valid_from, &system];
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.key.finish()),
            valid_from.clone(),
            Arc::new(Int64Array::new(self.valid_to.finish(), None)),
            system.clone(),
            Arc::new(UInt64Array::new(self.commit.finish(), None)),
            Arc::new(UInt8Array::from(self.op)),
            Arc::new(UInt32Array::new(self.origin.finish(), None)),
            Arc::new(UInt64Array::from(self.position)),
            Arc::new(UInt32Array::new(self.ordinal.finish(), None)),
            Arc::new(UInt64Array::from(self.mask)),
            self.mask_rest.finish(),
            self.unknown.finish(),
            self.ties.finish(),
            shared(Arc::new(self.event_time.finish()), &times),
            Arc::new(UInt8Array::new(self.time_source.finish(), None)),
            Arc::new(UInt32Array::new(self.source.finish(), None)),
            self.token.finish(),
            Arc::new(UInt32Array::new(self.token_ordinal.finish(), None)),
            self.operation_id.finish(),
            self.transaction_id.finish(),
            self.previous.finish(),
            self.raw.finish(),
            self.content.finish(),
        ];
        debug_assert_eq!(columns.len(), META_COLUMNS);
        columns.extend(self.images.into_iter().map(|image| shared(image.finish(), &times)));
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
    if from == to {
        return Ok(unscaled);
    }
    let room = RowError { what: "decimal does not fit the scale of its column", at: 0 };
    let steps = to.checked_sub(from).ok_or(room)?;
    10i128.checked_pow(steps as u32).and_then(|f| unscaled.checked_mul(f)).ok_or(room)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
