//! Tables as a program asks them.

use crate::error::{Error, ErrorKind, Result};
use crate::near::near_names_hint;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use asofdb_storage::engine::{self, Bounds, KeyFilter, ScanKind, ScanRequest, Snapshot};
use asofdb_storage::id::ColumnId;
use asofdb_storage::key::key_bytes;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::{FOREVER, SystemTime, ValidTime};
use asofdb_storage::value::Value;
use std::sync::{Arc, OnceLock};

/// Interval rows that one key may have in an answer.
const ROWS_PER_KEY_MAX: usize = 1_000_000;

/// A table at one commit.
#[derive(Clone, Debug)]
pub struct Table {
    snapshot: Snapshot,
    meta: Arc<TableMeta>,
    /// Prepared by the first [`Table::get`].
    rows: Arc<OnceLock<engine::KeyLookUp>>,
}

impl Table {
    pub(crate) fn new(snapshot: Snapshot, meta: Arc<TableMeta>) -> Table {
        Table { snapshot, meta, rows: Arc::default() }
    }

    /// What the catalog knows of it.
    pub fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// The schema at the commit of the handle.
    pub fn schema(&self) -> &TableSchema {
        self.meta.schema_at(self.snapshot.commit())
    }

    /// The Arrow schema of rows: every column, nullable, in order of first appearance.
    pub fn arrow_schema(&self) -> Arc<Schema> {
        let field = |c: &asofdb_storage::schema::Column| Field::new(&c.name, c.ty.arrow(), true);
        Arc::new(Schema::new(self.schema().columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// The rows that hold at `valid` as believed at `system`; `None` = the latest of each (rules B2,
    /// D1). Batches of [`Table::arrow_schema`].
    ///
    /// # Errors
    /// Those of the store.
    pub fn as_of(&self, valid: Option<ValidTime>, system: Option<SystemTime>) -> Result<Vec<RecordBatch>> {
        let kind =
            ScanKind::Rows { valid: valid.map_or(FOREVER, |v| v.0), system: system.map_or(FOREVER, |s| s.0) };
        let schema = self.arrow_schema();
        self.scan(kind, KeyFilter::All)?.into_iter().map(|b| with_schema(b, &schema)).collect()
    }

    /// The row of a key that holds at `valid` as believed at `system`, as a batch of one row. `key`
    /// has the values of the key columns in key order.
    ///
    /// # Errors
    /// `Usage` if the key has another number of columns; else those of the store.
    pub fn get(
        &self,
        key: &[Value],
        valid: Option<ValidTime>,
        system: Option<SystemTime>,
    ) -> Result<Option<RecordBatch>> {
        let rows = match self.rows.get() {
            Some(rows) => rows,
            None => {
                let all: Vec<ColumnId> = self.schema().columns.iter().map(|c| c.id).collect();
                let rows = self.snapshot.look_up(self.meta.id, &all)?;
                self.rows.get_or_init(|| rows)
            }
        };
        Ok(rows.get(&self.key(key)?, self.bounds(valid, system))?)
    }

    /// Prepares looking up some columns of rows by key: each look-up then reads no more than they need.
    ///
    /// # Errors
    /// `Failed` if there is no such column, naming near ones; else those of the store.
    pub fn look_up(&self, columns: &[&str]) -> Result<KeyLookUp> {
        let schema = self.schema();
        let id = |name: &&str| match schema.column(name) {
            Some(column) => Ok(column.id),
            None => Err(Error::failed(format!("{} has no column {name}", self.meta.name))
                .hint(near_names_hint(name, schema.columns.iter().map(|c| c.name.as_str())))),
        };
        let columns = columns.iter().map(id).collect::<Result<Vec<_>>>()?;
        Ok(KeyLookUp { rows: self.snapshot.look_up(self.meta.id, &columns)?, table: self.clone() })
    }

    fn bounds(&self, valid: Option<ValidTime>, system: Option<SystemTime>) -> Bounds {
        Bounds {
            valid: valid.map_or(FOREVER, |v| v.0),
            system: system.map_or(FOREVER, |s| s.0),
            commit: self.snapshot.commit(),
        }
    }

    /// Every event, or those of one key, in key order and then the order of rule B3: the columns of
    /// [`asofdb_storage::event::columns`], the row after the event, and whether there is one.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn history(&self, key: Option<&[Value]>) -> Result<Vec<RecordBatch>> {
        let keys = match key {
            Some(key) => KeyFilter::Keys(vec![self.key(key)?]),
            None => KeyFilter::All,
        };
        self.scan(ScanKind::History, keys)
    }

    fn key(&self, key: &[Value]) -> Result<Vec<u8>> {
        let columns = self.schema().key.len();
        if columns != key.len() || columns == 0 {
            return Err(Error::usage(format!(
                "the key of {} has {}, and {} given",
                self.meta.name,
                crate::count::of(columns, "column"),
                match key.len() {
                    1 => "1 value was".to_owned(),
                    n => format!("{n} values were"),
                }
            )));
        }
        let cells: Vec<_> = key.iter().map(Value::as_cell).collect();
        Ok(key_bytes(&cells))
    }

    fn scan(&self, kind: ScanKind, keys: KeyFilter) -> Result<Vec<RecordBatch>> {
        let schema = Arc::new(self.schema().clone());
        let request = ScanRequest {
            table: self.meta.id,
            kind,
            commit: self.snapshot.commit(),
            projection: schema.columns.iter().map(|c| c.id).collect::<Vec<ColumnId>>(),
            schema,
            keys,
            partitions: 1,
            rows_per_key_max: ROWS_PER_KEY_MAX,
        };
        let mut out = Vec::new();
        for stream in self.snapshot.scan(&request)? {
            for batch in stream {
                out.push(batch.map_err(engine_error)?);
            }
        }
        Ok(out)
    }
}

/// A look-up by key that [`Table::look_up`] prepared. It may be asked from several threads at once.
#[derive(Debug)]
pub struct KeyLookUp {
    table: Table,
    rows: engine::KeyLookUp,
}

impl KeyLookUp {
    /// The columns that were asked for, in that order.
    pub fn arrow_schema(&self) -> &Arc<Schema> {
        self.rows.schema()
    }

    /// As [`Table::get`], with the columns of [`KeyLookUp::arrow_schema`].
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get(
        &self,
        key: &[Value],
        valid: Option<ValidTime>,
        system: Option<SystemTime>,
    ) -> Result<Option<RecordBatch>> {
        Ok(self.rows.get(&self.table.key(key)?, self.table.bounds(valid, system))?)
    }
}

fn engine_error(e: engine::Error) -> Error {
    e.into()
}

/// The same columns under the names that people use.
fn with_schema(batch: RecordBatch, schema: &Arc<Schema>) -> Result<RecordBatch> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(|e| Error::new(ErrorKind::Failed, format!("the store answered with other columns: {e}")))
}
