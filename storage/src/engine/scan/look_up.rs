//! One key at a point, prepared once for many look-ups.
//!
//! Of a key, first only is read what decides which events count; then, of the event that each wanted column
//! comes from, that column. Of a key with many events a part is read at a time, newest first.

use super::gather::{NULL_SLOT, internal, projected_fields};
use super::loaded::Loaded;
use super::plan::TableScan;
use super::rows::Qualifier;
use super::source::{RowReader, Traits};
use crate::engine::error::Error;
use crate::engine::request::Bounds;
use crate::event::image_column_name;
use crate::id::ColumnId;
use crate::key::key_parts;
use crate::run::column_of_part;
use crate::schema::TableSchema;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::{Int64Type, Schema, SchemaRef};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// Events of a key that are read at first, and at most at a time.
const EVENTS_FIRST: usize = 512;
const EVENTS_MAX: usize = 4096;

/// Readers that are kept; ever other sets of columns come from ever other events.
const READERS_MAX: usize = 4096;

/// Columns that a look-up may ask for, one bit each; more are read otherwise.
const COLUMNS_MAX: usize = 64;

/// Bytes of the column that a row that was found may keep alive.
const ROW_BYTES_MAX: usize = 64 << 10;

/// What rule B3 compares beside valid time.
const MERGE_COLUMNS: [&str; 6] = ["valid_from", "ties", "system", "origin", "position", "ordinal"];

/// What a reader reads: source, what decides, and which columns of the projection; of that 0 means what decides.
type ReaderKey = (usize, u8, u64);

/// The bit of what decides that says that events of several sources are compared.
const MERGED: u8 = 1 << 4;
/// Instead of what decides: valid times only.
const VALID_TIMES: u8 = 1 << 5;

/// Answers questions about single keys of a table.
pub(crate) struct PointReader {
    scan: TableScan,
    schema: Arc<TableSchema>,
    projection: Vec<ColumnId>,
    images: Vec<String>,
    fields: SchemaRef,
    traits: Vec<Traits>,
    /// What the projected columns are where nobody wrote them.
    nulls: Vec<ArrayRef>,
    /// Whether the events of a key alone say what its row is.
    plain: bool,
    readers: RwLock<HashMap<ReaderKey, Arc<dyn RowReader>>>,
}

impl std::fmt::Debug for PointReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PointReader").field("images", &self.images).finish_non_exhaustive()
    }
}

/// Events of one source that were read.
struct Part {
    source: usize,
    /// Number of the first one in the source.
    first: usize,
    loaded: Loaded,
}

/// Where reading the events of one source stands.
struct Cursor {
    source: usize,
    /// Rows that were not read.
    rest: Range<usize>,
    /// Number of the part, and the next event in it.
    part: usize,
    at: usize,
    /// Events that are read next.
    ahead: usize,
}

/// Where a column comes from: part and row in it; [`NULL_SLOT`] for columns that nobody wrote.
type Pick = (u32, u32);

impl PointReader {
    pub fn new(
        scan: TableScan,
        projection: &[ColumnId],
        schema: &Arc<TableSchema>,
    ) -> Result<PointReader, Error> {
        let fields = projected_fields(schema, projection)?;
        let plain = !scan.needs_histories() && projection.len() <= COLUMNS_MAX;
        Ok(PointReader {
            nulls: fields.iter().map(|f| new_null_array(f.data_type(), 1)).collect(),
            fields: Arc::new(Schema::new(fields)),
            images: projection.iter().map(|id| image_column_name(*id)).collect(),
            projection: projection.to_vec(),
            schema: schema.clone(),
            traits: scan.traits(),
            plain,
            scan,
            readers: RwLock::default(),
        })
    }

    /// Schema of the rows.
    pub fn fields(&self) -> &SchemaRef {
        &self.fields
    }

    /// The row of a key.
    pub fn row(&self, key: &[u8], bounds: Bounds) -> Result<Option<RecordBatch>, Error> {
        if !self.plain {
            let keys = [key.to_vec()];
            let mut rows = self.scan.gathered_rows(&keys, bounds, &self.projection, &self.schema)?;
            return rows.next().transpose();
        }
        let mut found: Vec<(usize, Range<usize>)> = Vec::with_capacity(self.traits.len());
        for (n, source) in self.scan.sources.iter().enumerate() {
            if !Qualifier::excludes(&bounds, &self.traits[n]) {
                let rows = source.find_key(key)?;
                found.extend((!rows.is_empty()).then_some((n, rows)));
            }
        }
        let some: Vec<Traits> = found.iter().map(|(n, _)| self.traits[*n]).collect();
        let qualifier = Qualifier::new(bounds, &some);
        let mut walk = Walk {
            reader: self,
            qualifier,
            decides: qualifier.bits() | if found.len() > 1 { MERGED } else { 0 },
            cursors: Vec::with_capacity(found.len()),
            parts: Vec::with_capacity(found.len()),
        };
        for (source, rows) in found {
            let rest = walk.counting(source, rows, bounds.valid)?;
            walk.cursors.push(Cursor { source, rest, part: 0, at: 0, ahead: EVENTS_FIRST });
        }
        for n in (0..walk.cursors.len()).rev() {
            walk.advance(n)?;
        }
        match walk.fold()? {
            Some(picks) => self.gather(key, &walk, &picks).map(Some),
            None => Ok(None),
        }
    }

    /// A row out of the columns of the events that wrote them.
    fn gather(&self, key: &[u8], walk: &Walk<'_>, picks: &[Pick]) -> Result<RecordBatch, Error> {
        let mut columns = self.nulls.clone();
        for (i, pick) in picks.iter().enumerate() {
            if pick.0 == NULL_SLOT || picks[..i].contains(pick) {
                continue;
            }
            let bits = picks.iter().enumerate().filter(|(_, p)| *p == pick).fold(0, |b, (n, _)| b | 1 << n);
            let (part, row) = (&walk.parts[pick.0 as usize], pick.1 as usize);
            let row_number = part.first + row;
            let bits = bits & !self.of_key(key, part.source, row_number, bits, &mut columns);
            if bits == 0 {
                continue;
            }
            let known = part.loaded.batch();
            let reader = self.reader((part.source, walk.decides, bits), Some(known))?;
            let batch = reader.rows(row_number..row_number + 1, Some(&known.slice(row, 1)))?;
            for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
                if let Some(n) = self.images.iter().position(|name| name == field.name()) {
                    columns[n] = one_row(array)?;
                }
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(self.fields.clone(), columns, &options).map_err(internal)
    }

    /// Makes those of the columns `wanted` out of the key that have its value in a row; which it did.
    fn of_key(&self, key: &[u8], source: usize, row: usize, wanted: u64, columns: &mut [ArrayRef]) -> u64 {
        let keyed = self.scan.sources[source].keyed(row, &self.schema);
        let mut made = 0;
        if keyed == 0 {
            return made;
        }
        for (part, id) in key_parts(key).zip(&self.schema.key) {
            let place = self.projection.iter().position(|c| c == id).filter(|n| wanted >> n & 1 == 1);
            if let Some(n) = place.filter(|_| id.0 < 64 && keyed >> id.0 & 1 == 1)
                && let Some(array) = column_of_part(&part, self.fields.field(n).data_type())
            {
                columns[n] = array;
                made |= 1 << n;
            }
        }
        made
    }

    fn reader(&self, key: ReaderKey, known: Option<&RecordBatch>) -> Result<Arc<dyn RowReader>, Error> {
        if let Some(reader) = self.readers.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(reader.clone());
        }
        let (source, decides, bits) = key;
        let columns: Vec<&str> = match (decides, bits) {
            (VALID_TIMES, _) => vec!["valid_from"],
            (decides, 0) => self.deciding(source, decides),
            (_, bits) => {
                let images = self.images.iter().enumerate();
                images.filter(|(n, _)| bits >> n & 1 == 1).map(|(_, name)| name.as_str()).collect()
            }
        };
        let known = known.map(RecordBatch::schema);
        let known: Vec<&str> =
            known.iter().flat_map(|k| k.fields()).map(|field| field.name().as_str()).collect();
        let reader = self.scan.sources[source].clone().row_reader(&columns, &known, &self.schema)?;
        let mut readers = self.readers.write().unwrap_or_else(PoisonError::into_inner);
        if readers.len() >= READERS_MAX {
            readers.clear();
        }
        readers.insert(key, reader.clone());
        Ok(reader)
    }

    /// Columns of a source that decide which of its events count, and what they write.
    fn deciding(&self, source: usize, decides: u8) -> Vec<&'static str> {
        let mut names = vec!["op"];
        names.extend(Qualifier::columns_of(decides));
        if decides & MERGED != 0 {
            names.extend(MERGE_COLUMNS);
        }
        if !self.projection.is_empty() && self.traits[source].partial {
            names.extend(["mask", "mask_rest", "unknown"]);
        }
        names
    }
}

/// A column of one row that does not keep a large one alive.
fn one_row(array: &ArrayRef) -> Result<ArrayRef, Error> {
    match array.get_buffer_memory_size() <= ROW_BYTES_MAX {
        true => Ok(array.clone()),
        false => interleave(&[array.as_ref()], &[(0, 0)]).map_err(internal),
    }
}

/// Passes over the events of a key, newest first.
struct Walk<'a> {
    reader: &'a PointReader,
    qualifier: Qualifier,
    decides: u8,
    cursors: Vec<Cursor>,
    parts: Vec<Part>,
}

impl Walk<'_> {
    /// The rows of a source behind those that are valid too late; all of them where they are few.
    fn counting(&self, source: usize, rows: Range<usize>, valid: i64) -> Result<Range<usize>, Error> {
        if rows.len() <= EVENTS_FIRST || !self.qualifier.is_by_valid() {
            return Ok(rows);
        }
        let reader = self.reader.reader((source, VALID_TIMES, 0), None)?;
        let (mut low, mut high) = (rows.start, rows.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let time = reader.rows(middle..middle + 1, None)?;
            let time = time.columns().first().and_then(|a| a.as_primitive_opt::<Int64Type>());
            match time.is_some_and(|t| t.value(0) > valid) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low..rows.end)
    }

    /// Brings cursor `n` to an event, or takes it away at the end of its source.
    fn advance(&mut self, n: usize) -> Result<(), Error> {
        let cursor = &mut self.cursors[n];
        if self
            .parts
            .get(cursor.part)
            .is_some_and(|p| p.source == cursor.source && cursor.at < p.loaded.len())
        {
            return Ok(());
        }
        if cursor.rest.is_empty() {
            self.cursors.swap_remove(n);
            return Ok(());
        }
        let rows = cursor.rest.start..cursor.rest.end.min(cursor.rest.start + cursor.ahead);
        cursor.rest.start = rows.end;
        cursor.ahead = (cursor.ahead * 2).min(EVENTS_MAX);
        (cursor.part, cursor.at) = (self.parts.len(), 0);
        let reader = self.reader.reader((cursor.source, self.decides, 0), None)?;
        let loaded = Loaded::without_keys(reader.rows(rows.clone(), None)?)?;
        self.parts.push(Part { source: cursor.source, first: rows.start, loaded });
        Ok(())
    }

    /// The cursor at the newest event.
    fn newest(&self) -> Option<usize> {
        let event = |c: &Cursor| (&self.parts[c.part].loaded, c.at);
        let mut best = 0;
        for n in 1..self.cursors.len() {
            let (a, b) = (event(&self.cursors[n]), event(&self.cursors[best]));
            if self.reader.scan.order.compare(a, b) == Ordering::Greater {
                best = n;
            }
        }
        (!self.cursors.is_empty()).then_some(best)
    }

    /// Where the columns of the row come from; `None` if there is no row.
    fn fold(&mut self) -> Result<Option<Vec<Pick>>, Error> {
        let projection = &self.reader.projection;
        let mut picks: Option<Vec<Pick>> = None;
        let mut left = projection.len();
        while let Some(n) = self.newest() {
            let cursor = &mut self.cursors[n];
            let (part, row) = (cursor.part, cursor.at);
            cursor.at += 1;
            let batch = &self.parts[part].loaded;
            if self.qualifier.counts(batch, row) {
                if batch.op(row).ends_row() {
                    break;
                }
                let picks = picks.get_or_insert_with(|| vec![(NULL_SLOT, 0); projection.len()]);
                for (pick, id) in picks.iter_mut().zip(projection) {
                    if pick.0 == NULL_SLOT && batch.authors(row, *id) {
                        *pick = (part as u32, row as u32);
                        left -= 1;
                    }
                }
                if left == 0 {
                    break;
                }
            }
            self.advance(n)?;
        }
        Ok(picks)
    }
}
