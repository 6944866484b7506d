//! Run files in Parquet.

use super::check::CheckedFile;
use super::error::RunError;
use super::read::RunBatches;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use parquet::file::metadata::PageIndexPolicy;
use std::ops::Range;

/// Rows of the batches that are read.
const BATCH_ROWS: usize = 32_768;

/// The decoded footer of a file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFile {
    metadata: ArrowReaderMetadata,
}

impl ParquetFile {
    pub fn open(file: &CheckedFile, chunks: usize) -> Result<ParquetFile, RunError> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(file, options).map_err(|e| file.decoding(&e))?;
        if metadata.metadata().num_row_groups() != chunks {
            return Err(file.damaged("has another number of row groups than its sidecar"));
        }
        Ok(ParquetFile { metadata })
    }

    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Batches of some rows of a row group with the columns `wanted`, in file order.
    pub fn batches(
        &self,
        file: &CheckedFile,
        wanted: &[usize],
        group: usize,
        rows: Range<usize>,
    ) -> RunBatches {
        match self.reader(file, wanted, group, rows) {
            Ok(reader) => {
                let file = file.clone();
                Box::new(reader.map(move |batch| batch.map_err(|e| file.decoding(&e))))
            }
            Err(e) => Box::new(std::iter::once(Err(e))),
        }
    }

    fn reader(
        &self,
        file: &CheckedFile,
        wanted: &[usize],
        group: usize,
        rows: Range<usize>,
    ) -> Result<ParquetRecordBatchReader, RunError> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), wanted.iter().copied());
        let whole = self.metadata.metadata().row_group(group).num_rows() as usize == rows.len();
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS.min(rows.len().max(1)));
        let builder = match whole {
            true => builder,
            false => builder.with_row_selection(RowSelection::from(vec![
                RowSelector::skip(rows.start),
                RowSelector::select(rows.len()),
            ])),
        };
        builder.build().map_err(|e| file.decoding(&e))
    }
}
