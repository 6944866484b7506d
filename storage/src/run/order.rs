//! The order of rows in runs: key ascending, then rule B3 descending, without touching key bytes
//! where a 16-byte prefix tells rows apart.

use super::RunError;
use super::packing::KeyPacking;
use crate::event::columns::OP_MASK;
use crate::event::{EventColumns, Op};
use arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Int64Type, UInt8Type, UInt32Type, UInt64Type};
use std::cmp::Ordering;

/// Numbers of the columns of valid and system time, whose values others may share.
pub(crate) const TIMES: [usize; 2] = [1, 3];

/// What the order of rule B3 needs to know of a table beside its events.
#[derive(Clone, Copy, Debug)]
pub struct EventOrder<'a> {
    /// Rank of each origin by its number. Ranks may be recomputed when origins are added, as long
    /// as the order of any two stays the same.
    pub ranks: &'a [u32],
    /// System time is declared and therefore part of the order.
    pub system_declared: bool,
}

/// The columns that decide the order, taken out of a batch once.
pub(crate) struct OrderColumns {
    pub key: BinaryArray,
    pub valid_from: ScalarBuffer<i64>,
    ties: Option<BinaryArray>,
    system: ScalarBuffer<i64>,
    origin: ScalarBuffer<u32>,
    position: ScalarBuffer<u64>,
    ordinal: ScalarBuffer<u32>,
    pub commit: ScalarBuffer<u64>,
    op: ScalarBuffer<u8>,
}

impl OrderColumns {
    /// Checks that `batch` has the physical schema and that every origin has a rank.
    pub fn new(batch: &RecordBatch, order: EventOrder<'_>) -> Result<OrderColumns, RunError> {
        let events = EventColumns::new(batch.clone()).map_err(RunError::NotEvents)?;
        let origin = events.origin().values().clone();
        if let Some(origin) = origin.iter().find(|o| **o as usize >= order.ranks.len()) {
            return Err(RunError::NotEvents(format!(
                "origin {origin} has no rank, only {} are given",
                order.ranks.len()
            )));
        }
        let ties = batch.column(12).as_binary::<i32>();
        Ok(OrderColumns {
            key: events.key().clone(),
            valid_from: batch.column(1).as_primitive::<Int64Type>().values().clone(),
            ties: (ties.null_count() < ties.len()).then(|| ties.clone()),
            system: batch.column(3).as_primitive::<Int64Type>().values().clone(),
            commit: batch.column(4).as_primitive::<UInt64Type>().values().clone(),
            op: batch.column(5).as_primitive::<UInt8Type>().values().clone(),
            origin,
            position: batch.column(7).as_primitive::<UInt64Type>().values().clone(),
            ordinal: batch.column(8).as_primitive::<UInt32Type>().values().clone(),
        })
    }

    pub fn len(&self) -> usize {
        self.valid_from.len()
    }

    /// Length of the key of row `i`.
    pub fn key_len(&self, i: usize) -> usize {
        self.key.value_length(i) as usize
    }

    fn ties(&self, i: usize) -> &[u8] {
        match &self.ties {
            Some(t) if t.is_valid(i) => t.value(i),
            _ => &[],
        }
    }

    /// The side of a key change that reads the old key comes first in time (rule B8), so that a
    /// change of a key to itself ends with a row.
    fn side(&self, i: usize) -> bool {
        self.op[i] & OP_MASK != Op::MovedAway as u8
    }

    /// Compares rule B3 after the valid time, then commit and side. Ascending in time.
    pub fn compare_after_valid(
        &self,
        i: usize,
        other: &OrderColumns,
        j: usize,
        order: EventOrder<'_>,
    ) -> Ordering {
        let rank = |o: u32| order.ranks[o as usize];
        let system =
            || if order.system_declared { self.system[i].cmp(&other.system[j]) } else { Ordering::Equal };
        self.ties(i)
            .cmp(other.ties(j))
            .then_with(system)
            .then_with(|| rank(self.origin[i]).cmp(&rank(other.origin[j])))
            .then_with(|| self.position[i].cmp(&other.position[j]))
            .then_with(|| self.ordinal[i].cmp(&other.ordinal[j]))
            .then_with(|| self.commit[i].cmp(&other.commit[j]))
            .then_with(|| self.side(i).cmp(&other.side(j)))
    }
}

/// A row reduced to what nearly always decides: its key packed into 16 bytes, the length of the key, its
/// valid time and its number.
#[derive(Clone, Copy)]
pub(crate) struct SortRow {
    pub prefix: u128,
    pub valid_from: i64,
    pub key_len: u32,
    pub row: u32,
}

impl SortRow {
    pub fn new(columns: &OrderColumns, row: usize, packing: &KeyPacking) -> SortRow {
        SortRow {
            prefix: packing.pack(columns.key.value(row)),
            valid_from: columns.valid_from[row],
            key_len: columns.key_len(row) as u32,
            row: row as u32,
        }
    }

    /// Compares the keys of two rows that were packed alike.
    #[inline]
    pub fn compare_key(
        &self,
        a: &OrderColumns,
        other: &SortRow,
        b: &OrderColumns,
        packing: &KeyPacking,
    ) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| {
            if self.key_len.max(other.key_len) as usize <= packing.whole {
                // Both are padded with zeros to the same prefix: the shorter one is a prefix.
                return self.key_len.cmp(&other.key_len);
            }
            a.key.value(self.row as usize).cmp(b.key.value(other.row as usize))
        })
    }

    /// Compares two rows in the order of runs.
    #[inline]
    pub fn compare(
        &self,
        a: &OrderColumns,
        other: &SortRow,
        b: &OrderColumns,
        packing: &KeyPacking,
        order: EventOrder<'_>,
    ) -> Ordering {
        self.compare_key(a, other, b, packing)
            .then_with(|| other.valid_from.cmp(&self.valid_from))
            .then_with(|| b.compare_after_valid(other.row as usize, a, self.row as usize, order))
    }
}
