//! Image columns of one schema version in the types of another.

use super::gather::internal;
use crate::engine::error::{Error, ErrorKind};
use crate::event::event_schema;
use crate::event::image_column_name;
use crate::run::widen_column;
use crate::schema::TableSchema;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{Field, Schema};
use std::sync::Arc;

/// The batch with its image columns in the types of `to`; columns that `to` lacks or the batch lacks
/// stay as they are. `to` may be older than `from`: then only values that fit are in the batch's
/// events that a question at that version sees, and the others become NULL.
pub(crate) fn cast_batch(
    batch: &RecordBatch,
    from: &TableSchema,
    to: &TableSchema,
) -> Result<RecordBatch, Error> {
    if from.version == to.version {
        return Ok(batch.clone());
    }
    let schema = batch.schema();
    let mut fields = schema.fields().to_vec();
    let mut columns = batch.columns().to_vec();
    let mut changed = false;
    for (old, new) in from.columns.iter().zip(&to.columns).filter(|(a, b)| a.ty != b.ty) {
        let name = image_column_name(old.id);
        let Ok(at) = schema.index_of(&name) else { continue };
        columns[at] = cast_column(&columns[at], &name, old.ty, new.ty, from.version > to.version)?;
        fields[at] = Arc::new(Field::new(name, new.ty.arrow(), true));
        changed = true;
    }
    if !changed {
        return Ok(batch.clone());
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(internal)
}

fn cast_column(
    array: &ArrayRef,
    name: &str,
    from: crate::value::ColumnType,
    to: crate::value::ColumnType,
    narrowing: bool,
) -> Result<ArrayRef, Error> {
    if from.arrow() == to.arrow() {
        return Ok(array.clone());
    }
    if narrowing {
        let options = CastOptions { safe: true, ..Default::default() };
        return cast_with_options(array, &to.arrow(), &options).map_err(internal);
    }
    widen_column(array, name, from, to).map_err(|e| {
        Error::new(ErrorKind::Damaged, e.to_string())
            .hint("run `asof rebuild` to derive it from the log again")
    })
}

/// A batch of the physical schema of `from` as one of the physical schema of `to`, a later version.
pub(crate) fn extend_batch(
    batch: &RecordBatch,
    from: &TableSchema,
    to: &TableSchema,
) -> Result<RecordBatch, Error> {
    let cast = cast_batch(batch, from, to)?;
    let schema = event_schema(to);
    let mut columns = cast.columns().to_vec();
    for field in &schema.fields()[columns.len()..] {
        columns.push(new_null_array(field.data_type(), cast.num_rows()));
    }
    RecordBatch::try_new(schema, columns).map_err(internal)
}
