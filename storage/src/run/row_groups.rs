//! A Parquet file written row group by row group, the columns of each encoded side by side.

use super::error::RunError;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Threads that encode columns of a row group at most, with the one that writes the file.
const ENCODERS_MAX: usize = 4;

/// See the module.
pub(crate) struct RowGroups<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    written: usize,
    encoders: usize,
}

impl<W: Write + Send> RowGroups<W> {
    pub fn new(sink: W, schema: SchemaRef, properties: WriterProperties) -> Result<RowGroups<W>, RunError> {
        let writer = ArrowWriter::try_new(sink, schema.clone(), Some(properties))?;
        let (writer, columns) = writer.into_serialized_writer()?;
        let encoders = std::thread::available_parallelism().map_or(1, usize::from).min(ENCODERS_MAX);
        Ok(RowGroups { writer, columns, schema, written: 0, encoders })
    }

    /// Writes a batch as a row group of its own.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), RunError> {
        let chunks = self.encode(batch)?;
        let mut group = self.writer.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.written += 1;
        Ok(())
    }

    fn encode(&self, batch: &RecordBatch) -> Result<Vec<ArrowColumnChunk>, RunError> {
        let writers = self.columns.create_column_writers(self.written)?;
        let waiting = Mutex::new(writers.into_iter().zip(batch.columns()).enumerate());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let fields = self.schema.fields();
        let encode = || {
            let mut done = Vec::new();
            while let Some((i, (writer, column))) = next() {
                done.push((i, encode_column(&fields[i], writer, column)?));
            }
            Ok::<_, RunError>(done)
        };
        let mut chunks = std::thread::scope(|scope| {
            let beside = (1..self.encoders).filter_map(|_| {
                let thread = std::thread::Builder::new().name("asofdb-columns".into());
                // Without a thread this one does the work alone.
                thread.spawn_scoped(scope, encode).ok()
            });
            let beside: Vec<_> = beside.collect();
            let mut chunks = encode();
            for thread in beside {
                let more = thread.join().map_err(|_| RunError::Encoder("the thread panicked".into()));
                chunks = chunks.and_then(|mut all| {
                    all.extend(more??);
                    Ok(all)
                });
            }
            chunks
        })?;
        chunks.sort_unstable_by_key(|(i, _)| *i);
        Ok(chunks.into_iter().map(|(_, chunk)| chunk).collect())
    }

    /// Writes bytes behind the row groups so far; returns where they begin.
    pub fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
        let at = self.writer.bytes_written() as u64;
        self.writer.write_all(bytes)?;
        Ok(at)
    }

    /// Writes the footer.
    pub fn into_inner(self) -> Result<W, RunError> {
        Ok(self.writer.into_inner()?)
    }
}

/// Columns of runs are flat: each is one leaf.
fn encode_column(
    field: &Field,
    mut writer: ArrowColumnWriter,
    column: &ArrayRef,
) -> Result<ArrowColumnChunk, RunError> {
    for leaf in compute_leaves(field, column)? {
        writer.write(&leaf)?;
    }
    Ok(writer.close()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::Schema;
    use std::sync::Arc;

    fn batch(second: ArrayRef) -> RecordBatch {
        let first: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let fields = [&first, &second]
            .map(|c| Arc::new(Field::new(c.data_type().to_string(), c.data_type().clone(), true)));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        RecordBatch::try_new(schema, vec![first, second]).expect("a batch")
    }

    fn written(encoders: usize, batches: &[RecordBatch]) -> Result<Vec<u8>, RunError> {
        let mut file = RowGroups::new(Vec::new(), batches[0].schema(), WriterProperties::new())?;
        file.encoders = encoders;
        batches.iter().try_for_each(|b| file.write(b))?;
        file.into_inner()
    }

    #[test]
    fn a_file_is_the_same_whoever_encodes_its_columns() {
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..1000).map(|i| format!("{}", i % 70))));
        let batches = [batch(texts.clone()), batch(texts).slice(100, 300)];
        let mut plain = ArrowWriter::try_new(Vec::new(), batches[0].schema(), None).expect("a writer");
        for b in &batches {
            plain.write(b).and_then(|()| plain.flush()).expect("a row group");
        }
        let plain = plain.into_inner().expect("a file");
        for encoders in [1, 2, 4] {
            assert!(written(encoders, &batches).expect("a file") == plain, "{encoders} encoders");
        }
    }

    #[test]
    fn a_column_that_cannot_be_encoded_is_an_error() {
        let texts = batch(Arc::new(StringArray::from(vec!["a"; 1000])));
        let numbers = batch(Arc::new(Int64Array::from(vec![1; 1000])));
        for encoders in [1, 2] {
            assert!(written(encoders, &[texts.clone(), numbers.clone()]).is_err());
        }
    }
}
