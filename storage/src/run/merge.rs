//! Merging sorted inputs of one table into one run.
//!
//! Rows are compared by an inline key prefix and the valid time first; whole keys, tie-breaks and
//! positions are only read where those are equal. A stretch that comes from one batch of one input is
//! sliced, not copied.

use super::error::RunError;
use super::input::{MergeInput, Prepared};
use super::meta::{Constants, RunFormat, RunMeta};
use super::order::{EventOrder, TIMES};
use super::packing::KeyPacking;
use super::read::constant_array;
use super::write::{RunSpec, RunWriter, remove_unfinished};
use crate::disk::Disk;
use crate::event::{are_twins, event_schema, twin_of};
use crate::schema::TableSchema;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Rows of the batches that a merge gives.
const OUT_ROWS: usize = 65_536;
/// Bytes that the rows of such a batch may have, by estimate, so that long values do not fill memory.
const OUT_BYTES: usize = 64 << 20;
/// Batches that wait between the merge and the encoder.
const BATCHES_AHEAD: usize = 2;

/// Merges sorted inputs into a new run of `schema`, and writes it. Events that are equal in key, order
/// and commit are one event and are written once.
///
/// # Errors
/// [`RunError::NeedsReplay`] where stored values cannot follow the schema; [`RunError::NotEvents`] where
/// an input is not sorted; the errors of reading and writing. No file has its final name then.
pub fn merge_runs(
    disk: &dyn Disk,
    dir: &Path,
    spec: RunSpec,
    schema: &TableSchema,
    order: EventOrder<'_>,
    mut inputs: Vec<MergeInput>,
) -> Result<RunMeta, RunError> {
    let constants = shared_constants(&inputs, &event_schema(schema));
    let write = || {
        if inputs.len() == 1
            && spec.format == RunFormat::Ipc
            && let Some(only) = inputs.pop()
        {
            let mut writer = RunWriter::new(disk, dir, spec, schema, constants)?;
            pass(only, schema, order, |batch| writer.write(batch).map(|()| true))?;
            return writer.finish();
        }
        let merge = Merge::new(inputs, schema, constants.clone(), order)?;
        let mut writer = RunWriter::new(disk, dir, spec, schema, constants)?;
        if spec.format == RunFormat::Parquet {
            return encode_beside(merge, writer);
        }
        merge.all(|batch| writer.write(batch).map(|()| true))?;
        writer.finish()
    };
    write().inspect_err(|_| remove_unfinished(disk, dir, spec))
}

/// Encodes and writes on a thread of its own: that is the larger half of the work for Parquet.
fn encode_beside(merge: Merge<'_>, mut writer: RunWriter<'_>) -> Result<RunMeta, RunError> {
    std::thread::scope(|scope| {
        let (sender, batches) = sync_channel::<RecordBatch>(BATCHES_AHEAD);
        let encode = move || {
            for batch in batches {
                writer.write(batch)?;
            }
            Ok::<_, RunError>(writer)
        };
        let encoder = std::thread::Builder::new().name("asofdb-encoder".into()).spawn_scoped(scope, encode);
        let encoder = encoder.map_err(|e| RunError::Encoder(format!("no thread: {e}")))?;
        // An encoder that stopped has an error, which is what joining it gives.
        let merged = merge.all(|batch| Ok(sender.send(batch).is_ok()));
        drop(sender);
        let encoded = encoder.join().map_err(|_| RunError::Encoder("the thread panicked".into()))?;
        merged?;
        encoded?.finish()
    })
}

fn packing_of(inputs: &[MergeInput]) -> KeyPacking {
    KeyPacking::between(inputs.iter().flat_map(|i| [i.key_min.as_slice(), i.key_max.as_slice()]))
}

/// Passes the rows of one input on as they are, unless an event comes twice.
fn pass(
    mut input: MergeInput,
    schema: &TableSchema,
    order: EventOrder<'_>,
    mut take: impl FnMut(RecordBatch) -> Result<bool, RunError>,
) -> Result<(), RunError> {
    let (target, packing) = (event_schema(schema), packing_of(std::slice::from_ref(&input)));
    let mut last: Option<Prepared> = None;
    while let Some(batch) = input.next(schema, &target, order, &packing)? {
        let n = batch.rows.len();
        let compare = |a: &Prepared, i: usize, j: usize| {
            a.rows[i].compare(&a.order, &batch.rows[j], &batch.order, &packing, order)
        };
        let before = |j: usize| match (j.checked_sub(1), &last) {
            (Some(i), _) => compare(&batch, i, j),
            (None, Some(last)) => compare(last, last.rows.len() - 1, j),
            (None, None) => Ordering::Less,
        };
        let mut start = 0;
        for row in 0..=n {
            let order = if row < n { before(row) } else { Ordering::Equal };
            match order {
                Ordering::Less => continue,
                Ordering::Greater => return Err(unsorted(0)),
                Ordering::Equal => {}
            }
            if row > start {
                let columns = batch.columns.iter().map(|c| c.slice(start, row - start)).collect();
                if !take(RecordBatch::try_new(target.clone(), columns)?)? {
                    return Ok(());
                }
            }
            start = row + 1;
        }
        last = Some(batch);
    }
    Ok(())
}

fn unsorted(input: usize) -> RunError {
    RunError::NotEvents(format!("input {input} of a merge is not in the order of runs"))
}

/// Columns that have the same one value in every input.
fn shared_constants(inputs: &[MergeInput], target: &SchemaRef) -> Constants {
    let mut shared = Constants::new();
    for (i, field) in target.fields().iter().enumerate() {
        let mut values = inputs.iter().map(|input| input.constant(i, field.name()));
        if let Some(Some(value)) = values.next()
            && values.all(|other| other == Some(value))
        {
            shared.insert(field.name().clone(), value);
        }
    }
    shared
}

/// A merge under way: gives batches of the target's physical schema.
pub(crate) struct Merge<'a> {
    inputs: Vec<MergeInput>,
    /// Where each input stands; `None` once it is used up.
    cursors: Vec<Option<Cursor>>,
    /// Packed key of the row at each cursor; the greatest there is for inputs that are used up.
    packed: Vec<u128>,
    schema: &'a TableSchema,
    target: SchemaRef,
    order: EventOrder<'a>,
    /// How keys are packed: all of them share what the least and greatest of the inputs share.
    packing: KeyPacking,
    /// For columns with one value: that value [`OUT_ROWS`] times.
    fixed: Vec<Option<ArrayRef>>,
    /// Batches that rows of the output under construction come from.
    batches: Vec<Arc<Prepared>>,
    picks: Vec<(usize, usize)>,
    picked_bytes: usize,
    last: Option<(Arc<Prepared>, usize)>,
}

struct Cursor {
    batch: Arc<Prepared>,
    row: usize,
    /// Number of the batch among those of the output under construction, once a row was picked.
    slot: Option<usize>,
}

impl<'a> Merge<'a> {
    pub fn new(
        inputs: Vec<MergeInput>,
        schema: &'a TableSchema,
        constants: Constants,
        order: EventOrder<'a>,
    ) -> Result<Merge<'a>, RunError> {
        let target = event_schema(schema);
        let fixed = target.fields().iter().map(|f| match constants.get(f.name()) {
            Some(value) => constant_array(f.data_type(), *value, OUT_ROWS).map(Some),
            None => Ok(None),
        });
        let mut merge = Merge {
            packing: packing_of(&inputs),
            cursors: inputs.iter().map(|_| None).collect(),
            packed: vec![u128::MAX; inputs.len()],
            inputs,
            schema,
            order,
            fixed: fixed.collect::<Result<_, _>>()?,
            target,
            batches: Vec::new(),
            picks: Vec::with_capacity(OUT_ROWS),
            picked_bytes: 0,
            last: None,
        };
        (0..merge.inputs.len()).try_for_each(|i| merge.load(i))?;
        Ok(merge)
    }

    /// Puts the cursor of input `i` before its next row that is not in the current batch.
    fn load(&mut self, i: usize) -> Result<(), RunError> {
        let next = self.inputs[i].next(self.schema, &self.target, self.order, &self.packing)?;
        self.packed[i] = next.as_ref().map_or(u128::MAX, |batch| batch.rows[0].prefix);
        self.cursors[i] = next.map(|batch| Cursor { batch: Arc::new(batch), row: 0, slot: None });
        Ok(())
    }

    /// Gives all batches to `take`, until it says false.
    fn all(mut self, mut take: impl FnMut(RecordBatch) -> Result<bool, RunError>) -> Result<(), RunError> {
        while let Some(batch) = self.next()? {
            if !take(batch)? {
                break;
            }
        }
        Ok(())
    }

    /// The next rows; `None` at the end.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, RunError> {
        while self.picks.len() < OUT_ROWS && self.picked_bytes < OUT_BYTES {
            let Some(i) = self.least() else { break };
            self.pick(i)?;
        }
        if self.picks.is_empty() {
            return Ok(None);
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.target.fields().len());
        for column in 0..self.target.fields().len() {
            let twin =
                self.twin(column).and_then(|of| twin_of(&columns[of], self.target.field(column).data_type()));
            columns.push(match twin {
                Some(twin) => twin,
                None => self.gather(column)?,
            });
        }
        self.batches.clear();
        self.picks.clear();
        self.picked_bytes = 0;
        self.cursors.iter_mut().flatten().for_each(|c| c.slot = None);
        Ok(Some(RecordBatch::try_new(self.target.clone(), columns)?))
    }

    /// The input whose next row comes first; the first of several that have the same event.
    fn least(&self) -> Option<usize> {
        let least = self.packed.iter().fold(u128::MAX, |least, packed| least.min(*packed));
        let mut best: Option<(usize, &Cursor)> = None;
        for (i, cursor) in self.cursors.iter().enumerate().filter(|(i, _)| self.packed[*i] == least) {
            let Some(c) = cursor else { continue };
            let first = match best {
                None => true,
                Some((_, b)) => self.compare((&c.batch, c.row), (&b.batch, b.row)) == Ordering::Less,
            };
            if first {
                best = Some((i, c));
            }
        }
        best.map(|(i, _)| i)
    }

    fn compare(&self, (a, i): (&Prepared, usize), (b, j): (&Prepared, usize)) -> Ordering {
        a.rows[i].compare(&a.order, &b.rows[j], &b.order, &self.packing, self.order)
    }

    /// Takes the next row of input `i` into the output, unless it is the event before once more.
    fn pick(&mut self, i: usize) -> Result<(), RunError> {
        let Some(mut cursor) = self.cursors[i].take() else { return Ok(()) };
        let order = match &self.last {
            Some((last, at)) => self.compare((last, *at), (&cursor.batch, cursor.row)),
            None => Ordering::Less,
        };
        match order {
            Ordering::Greater => {
                return Err(unsorted(i));
            }
            Ordering::Equal => {}
            Ordering::Less => self.add(&mut cursor),
        }
        cursor.row += 1;
        if cursor.row == cursor.batch.rows.len() {
            return self.load(i);
        }
        self.packed[i] = cursor.batch.rows[cursor.row].prefix;
        self.cursors[i] = Some(cursor);
        Ok(())
    }

    fn add(&mut self, cursor: &mut Cursor) {
        let slot = *cursor.slot.get_or_insert(self.batches.len());
        if slot == self.batches.len() {
            self.batches.push(cursor.batch.clone());
        }
        self.picks.push((slot, cursor.row));
        self.picked_bytes += cursor.batch.row_bytes;
        match &mut self.last {
            Some((last, at)) if Arc::ptr_eq(last, &cursor.batch) => *at = cursor.row,
            last => *last = Some((cursor.batch.clone(), cursor.row)),
        }
    }

    /// The column of times before this one that has its values in all batches.
    fn twin(&self, column: usize) -> Option<usize> {
        let same = |of: usize| self.batches.iter().all(|b| are_twins(&b.columns[column], &b.columns[of]));
        TIMES.into_iter().find(|of| *of < column && self.fixed[column].is_none() && same(*of))
    }

    fn gather(&self, column: usize) -> Result<ArrayRef, RunError> {
        let rows = self.picks.len();
        if let Some(array) = &self.fixed[column] {
            return Ok(array.slice(0, rows));
        }
        if let [only] = self.batches.as_slice()
            && let (first, last) = (self.picks[0].1, self.picks[rows - 1].1)
            && last - first + 1 == rows
        {
            return Ok(only.columns[column].slice(first, rows));
        }
        let arrays: Vec<&dyn Array> = self.batches.iter().map(|b| b.columns[column].as_ref()).collect();
        Ok(interleave(&arrays, &self.picks)?)
    }
}
