//! The row coding of an event: self-describing bytes, independent of schema and frame.
//!
//! Layout, all integers as LEB128 varints (signed ones zigzag-coded) unless said: flags; valid_from
//! (8 bytes LE); valid_to (8 bytes LE); event_time minus valid_from; system minus valid_from (or 8
//! bytes LE where there is no valid_from); ties; position; origin; ordinal; source; token and its
//! ordinal; operation id; transaction id; previous key; raw; then the cells. Each optional field
//! stands only if its flag is set. `docs/on-disk-format.md` has the table of flags and tags.

use super::head::{EventHead, Op, TimeSource};
use super::varint::{put_varint, short_varint};
use crate::id::{ColumnId, OriginId, SourceId};
use crate::time::FOREVER;
use crate::value::Cell;
use std::borrow::Borrow;

pub(crate) mod flag {
    pub const OP: u32 = 0b111;
    pub const FULL: u32 = 1 << 3;
    pub const VALID_FROM: u32 = 1 << 4;
    pub const VALID_TO: u32 = 1 << 5;
    pub const EVENT_TIME: u32 = 1 << 6;
    pub const EVENT_TIME_SAME: u32 = 1 << 7;
    pub const SYSTEM: u32 = 1 << 8;
    pub const TIES: u32 = 1 << 9;
    pub const ORDINAL: u32 = 1 << 10;
    pub const SOURCE: u32 = 1 << 11;
    pub const TOKEN: u32 = 1 << 12;
    pub const OPERATION_ID: u32 = 1 << 13;
    pub const TRANSACTION_ID: u32 = 1 << 14;
    pub const PREVIOUS: u32 = 1 << 15;
    pub const PREVIOUS_DELETED: u32 = 1 << 16;
    pub const RAW: u32 = 1 << 17;
    pub const DENSE: u32 = 1 << 18;
    pub const TIME_SOURCE_SHIFT: u32 = 19;
    pub const KNOWN: u32 = (1 << 22) - 1;
}

mod tag {
    pub const NULL: u8 = 0;
    pub const UNKNOWN: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const TRUE: u8 = 3;
    pub const INT: u8 = 4;
    pub const DECIMAL: u8 = 5;
    pub const FLOAT: u8 = 6;
    pub const DATE: u8 = 7;
    pub const TIMESTAMP: u8 = 8;
    pub const TIMESTAMP_NS: u8 = 9;
    pub const INSTANT: u8 = 10;
    pub const TEXT: u8 = 11;
    pub const BYTES: u8 = 12;
    pub const JSON: u8 = 13;
    pub const LEAVES: u8 = 14;
    // Values that are times of the head.
    pub const INT_VALID: u8 = 15;
    pub const INT_SYSTEM: u8 = 16;
    pub const TIMESTAMP_VALID: u8 = 17;
    pub const TIMESTAMP_SYSTEM: u8 = 18;
    pub const INSTANT_VALID: u8 = 19;
    pub const INSTANT_SYSTEM: u8 = 20;
}

/// The times of a head that its cells may repeat.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadTimes {
    valid_from: Option<i64>,
    system: Option<i64>,
}

impl HeadTimes {
    /// None for events whose content is compared as bytes (rule C1): the same content must be the same bytes.
    pub(crate) fn of(head: &EventHead<'_>) -> HeadTimes {
        if !head.token.is_empty() || head.operation_id.is_some() {
            return HeadTimes::default();
        }
        HeadTimes { valid_from: head.valid_from, system: head.system }
    }
}

/// Appends a cell of a row whose head has these times.
#[inline]
pub(crate) fn put_cell_of(out: &mut Vec<u8>, cell: &Cell<'_>, times: HeadTimes) {
    let (value, of_valid, of_system) = match *cell {
        Cell::Int(v) => (v, tag::INT_VALID, tag::INT_SYSTEM),
        Cell::Timestamp(v) => (v, tag::TIMESTAMP_VALID, tag::TIMESTAMP_SYSTEM),
        Cell::Instant(v) => (v, tag::INSTANT_VALID, tag::INSTANT_SYSTEM),
        _ => return put_cell(out, cell),
    };
    if times.valid_from == Some(value) {
        out.push(of_valid);
    } else if times.system == Some(value) {
        out.push(of_system);
    } else {
        put_cell(out, cell);
    }
}

/// Bytes that are not the row of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an event row: {what} at byte {at}")]
pub struct RowError {
    /// What is wrong.
    pub what: &'static str,
    /// Offset within the row.
    pub at: usize,
}

fn put_signed(out: &mut Vec<u8>, n: i64) {
    put_varint(out, ((n << 1) ^ (n >> 63)) as u64);
}

fn put_wide(out: &mut Vec<u8>, n: i128) {
    let mut z = ((n << 1) ^ (n >> 127)) as u128;
    if let Ok(narrow) = u64::try_from(z) {
        return put_varint(out, narrow);
    }
    while z >= 0x80 {
        out.push(z as u8 | 0x80);
        z >>= 7;
    }
    out.push(z as u8);
}

fn put_bytes(out: &mut Vec<u8>, b: &[u8]) {
    put_varint(out, b.len() as u64);
    out.extend_from_slice(b);
}

#[inline]
pub(crate) fn put_cell(out: &mut Vec<u8>, cell: &Cell<'_>) {
    match *cell {
        Cell::Null | Cell::Unchanged => out.push(tag::NULL),
        Cell::Unknown => out.push(tag::UNKNOWN),
        Cell::Bool(false) => out.push(tag::FALSE),
        Cell::Bool(true) => out.push(tag::TRUE),
        Cell::Int(v) => {
            out.push(tag::INT);
            put_signed(out, v);
        }
        Cell::Decimal { unscaled, scale } => {
            out.push(tag::DECIMAL);
            out.push(scale);
            put_wide(out, unscaled);
        }
        Cell::Float(v) => {
            out.push(tag::FLOAT);
            out.extend_from_slice(&v.to_bits().to_le_bytes());
        }
        Cell::Date(v) => {
            out.push(tag::DATE);
            put_signed(out, v as i64);
        }
        Cell::Timestamp(v) => fixed(out, tag::TIMESTAMP, v),
        Cell::TimestampNs(v) => fixed(out, tag::TIMESTAMP_NS, v),
        Cell::Instant(v) => fixed(out, tag::INSTANT, v),
        Cell::Text(v) => {
            out.push(tag::TEXT);
            put_bytes(out, v.as_bytes());
        }
        Cell::Bytes(v) => {
            out.push(tag::BYTES);
            put_bytes(out, v);
        }
        Cell::Json(v) => {
            out.push(tag::JSON);
            put_bytes(out, v.as_bytes());
        }
        Cell::Leaves(v) => {
            out.push(tag::LEAVES);
            put_bytes(out, v.as_bytes());
        }
    }
}

fn fixed(out: &mut Vec<u8>, tag: u8, v: i64) {
    out.push(tag);
    out.extend_from_slice(&v.to_le_bytes());
}

/// Appends the row of an event to `out`. `cells` holds the authored cells by ascending column;
/// cells that are [`Cell::Unchanged`] are left out. Deletes give at least their key columns.
///
/// # Panics
/// In debug builds, if the columns do not ascend.
pub fn encode_row<'a, C>(out: &mut Vec<u8>, head: &EventHead<'_>, cells: &[(ColumnId, C)])
where
    C: Borrow<Cell<'a>>,
{
    debug_assert!(cells.windows(2).all(|w| w[0].0 < w[1].0), "columns must ascend");
    let dense = cells.iter().enumerate().all(|(i, (id, c))| id.0 as usize == i && is_sent(c.borrow()));
    put_head(out, head, dense);
    put_cells(out, cells, dense, HeadTimes::of(head));
}

/// The part of a row before its cells.
pub(crate) fn put_head(out: &mut Vec<u8>, head: &EventHead<'_>, dense: bool) {
    put_varint(out, flags_of(head, dense) as u64);
    let base = head.valid_from.unwrap_or(0);
    if let Some(v) = head.valid_from {
        out.extend_from_slice(&v.to_le_bytes());
    }
    if head.valid_to != FOREVER {
        out.extend_from_slice(&head.valid_to.to_le_bytes());
    }
    if let Some(t) = head.event_time
        && head.event_time != head.valid_from
    {
        put_signed(out, t.wrapping_sub(base));
    }
    if let Some(s) = head.system {
        put_signed(out, s.wrapping_sub(base));
    }
    if !head.ties.is_empty() {
        put_bytes(out, head.ties);
    }
    put_varint(out, head.position);
    put_varint(out, head.origin.0 as u64);
    if head.ordinal != 0 {
        put_varint(out, head.ordinal as u64);
    }
    if head.source.0 != 0 {
        put_varint(out, head.source.0 as u64);
    }
    if !head.token.is_empty() {
        put_bytes(out, head.token);
        put_varint(out, head.token_ordinal as u64);
    }
    if let Some(id) = head.operation_id {
        put_bytes(out, id);
    }
    if let Some(tx) = head.transaction_id {
        put_bytes(out, tx.as_bytes());
    }
    if let Some(previous) = head.previous {
        put_varint(out, previous.len() as u64);
        previous.iter().for_each(|c| put_cell(out, c));
    }
    if let Some(raw) = head.raw {
        put_bytes(out, raw);
    }
}

fn flags_of(head: &EventHead<'_>, dense: bool) -> u32 {
    let mut f = head.op as u32 | (head.time_source as u32) << flag::TIME_SOURCE_SHIFT;
    let mut set = |on: bool, bit: u32| {
        if on {
            f |= bit;
        }
    };
    set(head.full, flag::FULL);
    set(head.valid_from.is_some(), flag::VALID_FROM);
    set(head.valid_to != FOREVER, flag::VALID_TO);
    let same = head.event_time.is_some() && head.event_time == head.valid_from;
    set(same, flag::EVENT_TIME_SAME);
    set(head.event_time.is_some() && !same, flag::EVENT_TIME);
    set(head.system.is_some(), flag::SYSTEM);
    set(!head.ties.is_empty(), flag::TIES);
    set(head.ordinal != 0, flag::ORDINAL);
    set(head.source.0 != 0, flag::SOURCE);
    set(!head.token.is_empty(), flag::TOKEN);
    set(head.operation_id.is_some(), flag::OPERATION_ID);
    set(head.transaction_id.is_some(), flag::TRANSACTION_ID);
    set(head.previous.is_some(), flag::PREVIOUS);
    set(head.previous_deleted, flag::PREVIOUS_DELETED);
    set(head.raw.is_some(), flag::RAW);
    set(dense, flag::DENSE);
    f
}

fn is_sent(cell: &Cell<'_>) -> bool {
    !matches!(cell, Cell::Unchanged)
}

fn put_cells<'a, C>(out: &mut Vec<u8>, cells: &[(ColumnId, C)], dense: bool, times: HeadTimes)
where
    C: Borrow<Cell<'a>>,
{
    let sent = || cells.iter().map(|(id, c)| (id, c.borrow())).filter(|(_, c)| is_sent(c));
    put_varint(out, sent().count() as u64);
    let mut next = 0;
    for (id, cell) in sent() {
        if !dense {
            put_varint(out, (id.0 - next) as u64);
            next = id.0 + 1;
        }
        put_cell_of(out, cell, times);
    }
}

/// A row of bytes, parsed. Borrows from the bytes.
#[derive(Clone, Debug)]
pub struct RowView<'a> {
    /// The head; `previous` is always `None` here, see [`RowView::previous`].
    pub head: EventHead<'a>,
    /// Cells of the previous key.
    pub previous: Option<Vec<Cell<'a>>>,
    cells: CellReader<'a>,
    cell_count: usize,
    dense: bool,
}

impl<'a> RowView<'a> {
    /// Parses the head of a row. Any bytes are accepted as input.
    ///
    /// # Errors
    /// [`RowError`] if the bytes are not a row.
    pub fn parse(bytes: &'a [u8]) -> Result<RowView<'a>, RowError> {
        let mut r = CellReader::new(bytes);
        let f = r.varint()?;
        if f > flag::KNOWN as u64 {
            return Err(r.error("unknown flags"));
        }
        let f = f as u32;
        let has = |bit: u32| f & bit != 0;
        let op = Op::from_u8((f & flag::OP) as u8).ok_or(r.error("unknown operation"))?;
        let mut head = EventHead::new(op, OriginId(0), 0);
        head.full = has(flag::FULL);
        head.time_source = TimeSource::from_u8((f >> flag::TIME_SOURCE_SHIFT) as u8)
            .ok_or(r.error("unknown time source"))?;
        head.previous_deleted = has(flag::PREVIOUS_DELETED);
        if has(flag::VALID_FROM) {
            head.valid_from = Some(r.fixed()?);
        }
        let base = head.valid_from.unwrap_or(0);
        if has(flag::VALID_TO) {
            head.valid_to = r.fixed()?;
        }
        if has(flag::EVENT_TIME_SAME) {
            head.event_time = head.valid_from;
        } else if has(flag::EVENT_TIME) {
            head.event_time = Some(r.signed()?.wrapping_add(base));
        }
        if has(flag::SYSTEM) {
            head.system = Some(r.signed()?.wrapping_add(base));
        }
        if has(flag::TIES) {
            head.ties = r.bytes()?;
        }
        head.position = r.varint()?;
        head.origin = OriginId(r.narrow()?);
        if has(flag::ORDINAL) {
            head.ordinal = r.narrow()?;
        }
        if has(flag::SOURCE) {
            head.source = SourceId(r.narrow()?);
        }
        if has(flag::TOKEN) {
            head.token = r.bytes()?;
            head.token_ordinal = r.narrow()?;
        }
        if has(flag::OPERATION_ID) {
            head.operation_id = Some(r.bytes()?);
        }
        if has(flag::TRANSACTION_ID) {
            head.transaction_id = Some(r.text()?);
        }
        let mut previous = None;
        if has(flag::PREVIOUS) {
            let n = r.count()?;
            let mut cells = Vec::with_capacity(n);
            for _ in 0..n {
                cells.push(r.cell()?);
            }
            previous = Some(cells);
        }
        if has(flag::RAW) {
            head.raw = Some(r.bytes()?);
        }
        let cell_count = r.count()?;
        r.times = HeadTimes { valid_from: head.valid_from, system: head.system };
        Ok(RowView { head, previous, cells: r, cell_count, dense: has(flag::DENSE) })
    }

    /// The authored cells by ascending column.
    pub fn cells(&self) -> impl Iterator<Item = Result<(ColumnId, Cell<'a>), RowError>> + use<'a> {
        let mut cells = self.read_cells();
        std::iter::from_fn(move || {
            let mut cell = Cell::Null;
            cells.next_into(&mut cell).map(|id| id.map(|id| (id, cell))).transpose()
        })
    }

    /// The same, for reading one after the other into one place.
    pub(crate) fn read_cells(&self) -> CellsReader<'a> {
        CellsReader { reader: self.cells, dense: self.dense, next: 0, left: self.cell_count }
    }

    /// The bytes of all cells, for comparing the content of two events.
    pub fn cell_bytes(&self) -> &'a [u8] {
        &self.cells.bytes[self.cells.at..]
    }
}

/// Reads the cells of a row. A cell is large, so it is read where it is wanted.
pub(crate) struct CellsReader<'a> {
    reader: CellReader<'a>,
    dense: bool,
    next: u32,
    left: usize,
}

impl<'a> CellsReader<'a> {
    /// Reads the next cell; its column, or `None` at the end.
    #[inline]
    pub(crate) fn next_into(&mut self, cell: &mut Cell<'a>) -> Result<Option<ColumnId>, RowError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let skip = if self.dense { 0 } else { self.reader.narrow()? };
        let id = self.next.checked_add(skip).ok_or(self.reader.error("column number too large"))?;
        self.next = id.checked_add(1).ok_or(self.reader.error("column number too large"))?;
        self.reader.cell_into(cell)?;
        Ok(Some(ColumnId(id)))
    }
}

/// Reads what `put_cell` and its like wrote; total on any bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellReader<'a> {
    bytes: &'a [u8],
    at: usize,
    times: HeadTimes,
}

impl<'a> CellReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> CellReader<'a> {
        CellReader { bytes, at: 0, times: HeadTimes::default() }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn error(&self, what: &'static str) -> RowError {
        RowError { what, at: self.at }
    }

    fn byte(&mut self) -> Result<u8, RowError> {
        let b = *self.bytes.get(self.at).ok_or(self.error("ends too early"))?;
        self.at += 1;
        Ok(b)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, RowError> {
        let rest = &self.bytes[self.at..];
        if let Some(b) = rest.first().filter(|b| **b < 0x80) {
            self.at += 1;
            return Ok(*b as u64);
        }
        if let Some((n, bytes)) = short_varint(rest) {
            self.at += bytes;
            return Ok(n);
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, RowError> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            n |= ((b & 0x7f) as u64) << shift;
            if b < 0x80 {
                return if shift == 63 && b > 1 { Err(self.error("number too large")) } else { Ok(n) };
            }
        }
        Err(self.error("number too long"))
    }

    fn wide(&mut self) -> Result<i128, RowError> {
        let rest = &self.bytes[self.at..];
        if rest.iter().take(8).any(|b| *b < 0x80) {
            return self.signed().map(i128::from);
        }
        let mut n = 0u128;
        for shift in (0..128).step_by(7) {
            let b = self.byte()?;
            n |= ((b & 0x7f) as u128) << shift;
            if b < 0x80 {
                return Ok((n >> 1) as i128 ^ -((n & 1) as i128));
            }
        }
        Err(self.error("number too long"))
    }

    fn signed(&mut self) -> Result<i64, RowError> {
        let z = self.varint()?;
        Ok((z >> 1) as i64 ^ -((z & 1) as i64))
    }

    pub(crate) fn narrow(&mut self) -> Result<u32, RowError> {
        u32::try_from(self.varint()?).map_err(|_| self.error("number too large"))
    }

    /// A count of things of at least one byte each, so never more than the bytes that are left.
    pub(crate) fn count(&mut self) -> Result<usize, RowError> {
        let n = self.varint()?;
        if n > (self.bytes.len() - self.at) as u64 {
            return Err(self.error("count beyond the end"));
        }
        Ok(n as usize)
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], RowError> {
        let end =
            self.at.checked_add(n).filter(|e| *e <= self.bytes.len()).ok_or(self.error("ends too early"))?;
        let b = &self.bytes[self.at..end];
        self.at = end;
        Ok(b)
    }

    pub(crate) fn fixed(&mut self) -> Result<i64, RowError> {
        let mut b = [0; 8];
        b.copy_from_slice(self.take(8)?);
        Ok(i64::from_le_bytes(b))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], RowError> {
        let n = self.count()?;
        self.take(n)
    }

    fn time(&self, time: Option<i64>) -> Result<i64, RowError> {
        time.ok_or(self.error("a value is a time that the row does not have"))
    }

    fn text(&mut self) -> Result<&'a str, RowError> {
        let b = self.bytes()?;
        std::str::from_utf8(b).map_err(|_| self.error("text is not UTF-8"))
    }

    pub(crate) fn cell(&mut self) -> Result<Cell<'a>, RowError> {
        let mut cell = Cell::Null;
        self.cell_into(&mut cell)?;
        Ok(cell)
    }

    /// Reads a cell into its place.
    #[inline]
    pub(crate) fn cell_into(&mut self, cell: &mut Cell<'a>) -> Result<(), RowError> {
        *cell = match self.byte()? {
            tag::NULL => Cell::Null,
            tag::UNKNOWN => Cell::Unknown,
            tag::FALSE => Cell::Bool(false),
            tag::TRUE => Cell::Bool(true),
            tag::INT => Cell::Int(self.signed()?),
            tag::DECIMAL => {
                let scale = self.byte()?;
                if scale > crate::value::DECIMAL_DIGITS_MAX {
                    return Err(self.error("decimal scale too large"));
                }
                Cell::Decimal { unscaled: self.wide()?, scale }
            }
            tag::FLOAT => Cell::Float(f64::from_bits(self.fixed()? as u64)),
            tag::DATE => {
                let d = self.signed()?;
                Cell::Date(i32::try_from(d).map_err(|_| self.error("date out of range"))?)
            }
            tag::TIMESTAMP => Cell::Timestamp(self.fixed()?),
            tag::TIMESTAMP_NS => Cell::TimestampNs(self.fixed()?),
            tag::INSTANT => Cell::Instant(self.fixed()?),
            tag::TEXT => Cell::Text(self.text()?),
            tag::BYTES => Cell::Bytes(self.bytes()?),
            tag::JSON => Cell::Json(self.text()?),
            tag::LEAVES => Cell::Leaves(self.text()?),
            tag::INT_VALID => Cell::Int(self.time(self.times.valid_from)?),
            tag::INT_SYSTEM => Cell::Int(self.time(self.times.system)?),
            tag::TIMESTAMP_VALID => Cell::Timestamp(self.time(self.times.valid_from)?),
            tag::TIMESTAMP_SYSTEM => Cell::Timestamp(self.time(self.times.system)?),
            tag::INSTANT_VALID => Cell::Instant(self.time(self.times.valid_from)?),
            tag::INSTANT_SYSTEM => Cell::Instant(self.time(self.times.system)?),
            _ => return Err(self.error("unknown value tag")),
        };
        Ok(())
    }
}
