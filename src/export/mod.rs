//! Results and tables as files that any engine can read.

mod parquet_file;

pub use parquet_file::ParquetFile;
