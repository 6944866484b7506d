//! How each column of a Parquet run is encoded: what takes the fewest bytes in a sample of the first chunk,
//! where what is slow to read must gain more.

use super::error::RunError;
use super::meta::SPARSE_ROWS;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// Bytes of distinct values of a chunk up to which a column has a dictionary.
const DICTIONARY_BYTES_MAX: usize = 32 << 10;
/// What a compressed page may have at most of its bytes without compression, else it is not compressed.
const COMPRESSION_RATIO_MAX: f64 = 0.9;
/// Rows of the sample.
const SAMPLE_ROWS: usize = 8192;

/// One way to encode a column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Coding {
    dictionary: bool,
    /// What values have that are in no dictionary.
    encoding: Encoding,
    zstd: bool,
    /// What the bytes count, in percent: more where reading takes longer.
    weight: u64,
}

const fn coding(dictionary: bool, encoding: Encoding, zstd: bool, weight: u64) -> Coding {
    Coding { dictionary, encoding, zstd, weight }
}

const KEYS: Coding = coding(false, Encoding::DELTA_BYTE_ARRAY, true, 100);
const NUMBERS: [Coding; 4] = [
    coding(false, Encoding::DELTA_BINARY_PACKED, false, 100),
    coding(true, Encoding::DELTA_BINARY_PACKED, true, 104),
    coding(false, Encoding::DELTA_BINARY_PACKED, true, 106),
    coding(false, Encoding::BYTE_STREAM_SPLIT, true, 112),
];
const FLOATS: [Coding; 3] = [
    coding(true, Encoding::PLAIN, true, 100),
    coding(false, Encoding::BYTE_STREAM_SPLIT, true, 102),
    coding(false, Encoding::PLAIN, false, 90),
];
const TEXTS: [Coding; 4] = [
    coding(true, Encoding::PLAIN, true, 100),
    coding(false, Encoding::DELTA_LENGTH_BYTE_ARRAY, true, 100),
    coding(false, Encoding::DELTA_BYTE_ARRAY, true, 106),
    coding(false, Encoding::DELTA_LENGTH_BYTE_ARRAY, false, 97),
];
const OTHERS: [Coding; 1] = [coding(true, Encoding::PLAIN, true, 100)];

fn codings(name: &str, ty: &DataType) -> &'static [Coding] {
    use DataType as T;
    match ty {
        _ if name == "key" => std::slice::from_ref(&KEYS),
        T::Int64 | T::UInt64 | T::Int32 | T::UInt32 | T::Timestamp(_, _) | T::Date32 => &NUMBERS,
        T::Float64 | T::Decimal128(_, _) => &FLOATS,
        T::Utf8 | T::Binary => &TEXTS,
        _ => &OTHERS,
    }
}

/// Properties for a file that begins with `first`.
pub(crate) fn properties(first: Option<&RecordBatch>) -> Result<WriterProperties, RunError> {
    let mut builder = basis();
    let Some(first) = first else { return Ok(builder.build()) };
    for (field, column) in first.schema_ref().fields().iter().zip(first.columns()) {
        let choice = choose(field.name(), column)?;
        builder = with(builder, field.name(), choice);
    }
    Ok(builder.build())
}

fn basis() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(usize::MAX))
        .set_data_page_row_count_limit(SPARSE_ROWS)
        .set_write_batch_size(SPARSE_ROWS)
        // Pages of the second version stay as they are where compression gains too little for its time.
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_data_page_v2_compression_ratio_threshold(COMPRESSION_RATIO_MAX)
        // A look-up of one key decodes the whole dictionary of each column it reads.
        .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
        .set_statistics_enabled(EnabledStatistics::None)
}

fn with(builder: WriterPropertiesBuilder, name: &str, coding: Coding) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(name);
    let compression = match coding.zstd {
        true => Compression::ZSTD(ZstdLevel::default()),
        false => Compression::UNCOMPRESSED,
    };
    builder
        .set_column_compression(path.clone(), compression)
        .set_column_encoding(path.clone(), coding.encoding)
        .set_column_dictionary_enabled(path, coding.dictionary)
}

fn choose(name: &str, column: &ArrayRef) -> Result<Coding, RunError> {
    let all = codings(name, column.data_type());
    if all.len() == 1 || column.null_count() == column.len() {
        return Ok(all[0]);
    }
    let start = column.len().saturating_sub(SAMPLE_ROWS) / 2;
    let sample = column.slice(start, column.len().min(SAMPLE_ROWS));
    let mut best: Option<(u64, Coding)> = None;
    for coding in all {
        let weighed = bytes_of(name, &sample, *coding)? * coding.weight;
        if best.is_none_or(|(least, _)| weighed < least) {
            best = Some((weighed, *coding));
        }
    }
    Ok(best.map_or(all[0], |(_, coding)| coding))
}

/// Bytes of a file with nothing but that column.
fn bytes_of(name: &str, column: &ArrayRef, coding: Coding) -> Result<u64, RunError> {
    let field = arrow::datatypes::Field::new(name, column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let properties = with(basis().set_offset_index_disabled(true), name, coding).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties))?;
    writer.write(&RecordBatch::try_new(schema, vec![column.clone()])?)?;
    writer.flush()?;
    let bytes = writer.flushed_row_groups().iter().map(|g| g.compressed_size() as u64).sum();
    Ok(bytes)
}
