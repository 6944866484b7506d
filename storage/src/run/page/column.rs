//! Rows of one column of a row group.

use super::arrays::array_of;
use super::bytes::{find_plain, find_with_fronts};
use super::header::{DATA, DATA_V2, DICTIONARY, Header};
use super::hybrid::Hybrid;
use super::values::{DELTA_BYTE_ARRAY, PLAIN, Physical, Values, is_known, read};
use super::{PageError, SHORT};
use crate::run::check::CheckedFile;
use crate::run::error::RunError;
use crate::run::meta::SPARSE_ROWS;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of dictionaries that are kept of a file.
const DICTIONARY_BYTES_MAX: usize = 32 << 20;

/// What reading pages uses again and again.
#[derive(Default)]
struct Scratch {
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
    buffer: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Decoded dictionaries of a file, by row group and column.
#[derive(Debug, Default)]
pub(crate) struct Dictionaries {
    state: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    values: HashMap<(u32, u32), Arc<Values>>,
}

impl Dictionaries {
    fn get(&self, key: (u32, u32)) -> Option<Arc<Values>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).values.get(&key).cloned()
    }

    fn put(&self, key: (u32, u32), values: Arc<Values>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = values.memory_bytes();
        if state.bytes + bytes > DICTIONARY_BYTES_MAX {
            *state = Kept::default();
        }
        state.bytes += bytes;
        state.values.insert(key, values);
    }
}

/// A column of a row group whose pages can be read by themselves.
pub(crate) struct PageColumn<'a> {
    file: &'a CheckedFile,
    chunk: &'a ColumnChunkMetaData,
    pages: &'a [PageLocation],
    rows: usize,
    place: (u32, u32),
    physical: Physical,
    nullable: bool,
}

/// An uncompressed page.
struct Page<'a> {
    /// One bit a row: whether it has a value. `None` where all have.
    levels: Option<&'a [u8]>,
    rows: usize,
    encoding: i64,
    values: &'a [u8],
}

impl<'a> PageColumn<'a> {
    /// `None` if the column must be read otherwise.
    pub fn new(
        file: &'a CheckedFile,
        metadata: &'a ParquetMetaData,
        group: usize,
        column: usize,
    ) -> Option<PageColumn<'a>> {
        let row_group = metadata.row_groups().get(group)?;
        let chunk = row_group.columns().get(column)?;
        let pages = metadata.offset_index()?.get(group)?.get(column)?.page_locations();
        let descriptor = chunk.column_descr();
        let flat = descriptor.max_rep_level() == 0 && descriptor.max_def_level() <= 1;
        let packed = matches!(chunk.compression(), Compression::ZSTD(_) | Compression::UNCOMPRESSED);
        let physical = Physical::of(descriptor.physical_type(), descriptor.type_length())?;
        (flat && packed && !pages.is_empty()).then(|| PageColumn {
            file,
            chunk,
            pages,
            rows: row_group.num_rows() as usize,
            place: (group as u32, column as u32),
            physical,
            nullable: descriptor.max_def_level() == 1,
        })
    }

    /// The page that holds a row, and the rows of it.
    fn page_of(&self, row: usize) -> (usize, Range<usize>) {
        let first = |p: &PageLocation| p.first_row_index as usize;
        // Pages have the same number of rows nearly always.
        let guess = row / SPARSE_ROWS;
        let right = |page: usize| {
            self.pages.get(page).is_some_and(|p| first(p) <= row)
                && self.pages.get(page + 1).is_none_or(|p| first(p) > row)
        };
        let page = match right(guess) {
            true => guess,
            false => self.pages.partition_point(|p| first(p) <= row).saturating_sub(1),
        };
        (page, first(&self.pages[page])..self.pages.get(page + 1).map_or(self.rows, first))
    }

    /// Some byte of the page that holds a row, for nothing but to have it brought.
    pub fn touch(&self, row: usize) -> u8 {
        let start = self.pages[self.page_of(row).0].offset as usize;
        self.file.unchecked(start, 1).ok().and_then(|b| b.first().copied()).unwrap_or(0)
    }

    /// The rows `wanted` as an array of type `ty`; `None` if they must be read otherwise.
    pub fn read(
        &self,
        wanted: Range<usize>,
        ty: &DataType,
        dictionaries: &Dictionaries,
    ) -> Result<Option<ArrayRef>, RunError> {
        let mut values = Values::new(self.physical);
        let mut valid = Vec::new();
        let mut next = wanted.start;
        while next < wanted.end {
            let (page, rows) = self.page_of(next);
            let end = wanted.end.min(rows.end);
            if end <= next {
                return Err(self.file.damaged("has a page without rows"));
            }
            let within = next - rows.start..end - rows.start;
            let known = self.with_page(page, rows.len(), |page| {
                self.read_page(&page, within, dictionaries, &mut values, &mut valid)
            })?;
            if !known {
                return Ok(None);
            }
            next = end;
        }
        array_of(ty, &values, &valid).map_err(|e| self.file.damaged(e.to_string()))
    }

    fn read_page(
        &self,
        page: &Page<'_>,
        within: Range<usize>,
        dictionaries: &Dictionaries,
        values: &mut Values,
        valid: &mut Vec<bool>,
    ) -> Result<bool, Fault> {
        if !is_known(self.physical, page.encoding) {
            return Ok(false);
        }
        let dictionary = match self.chunk.dictionary_page_offset() {
            Some(_) => Some(self.dictionary(dictionaries)?),
            None => None,
        };
        let (count, ranks) = match page.levels {
            None => {
                valid.resize(valid.len() + within.len(), true);
                (page.rows, within)
            }
            Some(levels) => {
                let start = Hybrid::new(levels, 1)?.ones(within.start)?;
                let before = valid.len();
                Hybrid::new(levels, 1)?.read(within, |bit| valid.push(bit == 1))?;
                let n = valid[before..].iter().filter(|v| **v).count();
                // Only values that are split over the page need to know how many there are.
                let count = match page.encoding {
                    super::values::BYTE_STREAM_SPLIT => Hybrid::new(levels, 1)?.ones(page.rows)?,
                    _ => page.rows,
                };
                (count, start..start + n)
            }
        };
        if !ranks.is_empty() {
            let (physical, bytes) = (self.physical, page.values);
            read(physical, page.encoding, bytes, (count, ranks), dictionary.as_deref(), values)?;
        }
        Ok(true)
    }

    /// Which rows of the page with row `row` equal `key`, as rows of the row group; the values ascend and
    /// none is NULL. `None` if they must be found otherwise.
    pub fn find(&self, row: usize, key: &[u8]) -> Result<Option<Range<usize>>, RunError> {
        if self.physical != Physical::Bytes || self.nullable {
            return Ok(None);
        }
        let (page, rows) = self.page_of(row);
        let found = self.with_page(page, rows.len(), |page| {
            Ok(match page.encoding {
                PLAIN => Some(find_plain(page.values, page.rows, key)?),
                DELTA_BYTE_ARRAY => Some(find_with_fronts(page.values, page.rows, key)?),
                _ => None,
            })
        })?;
        Ok(found.map(|f| rows.start + f.start..rows.start + f.end))
    }

    /// The rows of the page that holds a row.
    pub fn page_rows(&self, row: usize) -> Range<usize> {
        self.page_of(row).1
    }

    fn dictionary(&self, dictionaries: &Dictionaries) -> Result<Arc<Values>, Fault> {
        if let Some(known) = dictionaries.get(self.place) {
            return Ok(known);
        }
        let start = self.chunk.dictionary_page_offset().unwrap_or(0) as usize;
        let end = self.pages[0].offset as usize;
        let bytes = self.file.slice(start, end.checked_sub(start).ok_or(SHORT)?)?;
        let (header, at) = Header::parse(&bytes)?;
        if header.kind != DICTIONARY {
            return Err(PageError("a page is not the dictionary it should be").into());
        }
        let body = bytes.get(at..at + header.compressed_bytes).ok_or(SHORT)?;
        let plain;
        let body = match self.chunk.compression() {
            Compression::UNCOMPRESSED => body,
            _ => {
                plain = zstd::bulk::decompress(body, header.uncompressed_bytes)
                    .map_err(|_| PageError("a dictionary cannot be decompressed"))?;
                &plain[..]
            }
        };
        let mut values = Values::new(self.physical);
        read(self.physical, PLAIN, body, (header.values, 0..header.values), None, &mut values)?;
        let values = Arc::new(values);
        dictionaries.put(self.place, values.clone());
        Ok(values)
    }

    /// Hands on a page, uncompressed.
    fn with_page<T>(
        &self,
        page: usize,
        rows: usize,
        f: impl FnOnce(Page<'_>) -> Result<T, Fault>,
    ) -> Result<T, RunError> {
        let location = &self.pages[page];
        let bytes = self.file.slice(location.offset as usize, location.compressed_page_size as usize)?;
        SCRATCH.with_borrow_mut(|scratch| {
            let read = self.open(&bytes, rows, scratch).and_then(f);
            read.map_err(|e| match e {
                Fault::Page(e) => self.file.damaged(e.0),
                Fault::Run(e) => e,
            })
        })
    }

    fn open<'b>(&self, bytes: &'b [u8], rows: usize, scratch: &'b mut Scratch) -> Result<Page<'b>, Fault> {
        let (header, at) = Header::parse(bytes)?;
        if header.values != rows {
            return Err(PageError("a page has another number of rows than the index of pages says").into());
        }
        let body = bytes.get(at..at + header.compressed_bytes).ok_or(SHORT)?;
        let (levels_bytes, in_body) = match header.kind {
            DATA => (0, true),
            DATA_V2 => (header.levels_bytes, false),
            _ => return Err(PageError("a page is not one of data").into()),
        };
        let (outer, body) = body.split_at_checked(levels_bytes).ok_or(SHORT)?;
        let packed = header.compressed && self.chunk.compression() != Compression::UNCOMPRESSED;
        // A page of NULLs only has no values, and nothing that could be compressed.
        let body = match packed && !body.is_empty() {
            false => body,
            true => {
                let length = header.uncompressed_bytes.checked_sub(levels_bytes).ok_or(SHORT)?;
                scratch.decompress(body, length)?
            }
        };
        let (levels, values) = match (self.nullable, in_body) {
            (false, _) => (None, body),
            (true, false) => (Some(outer), body),
            (true, true) => {
                let length = body.get(..4).ok_or(SHORT)?;
                let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
                let (levels, values) = body[4..].split_at_checked(length).ok_or(SHORT)?;
                (Some(levels), values)
            }
        };
        Ok(Page { levels, rows, encoding: header.encoding, values })
    }
}

/// What goes wrong within a page.
enum Fault {
    Page(PageError),
    Run(RunError),
}

impl From<PageError> for Fault {
    fn from(e: PageError) -> Fault {
        Fault::Page(e)
    }
}

impl From<RunError> for Fault {
    fn from(e: RunError) -> Fault {
        Fault::Run(e)
    }
}

impl Scratch {
    fn decompress(&mut self, body: &[u8], length: usize) -> Result<&[u8], PageError> {
        let wrong = PageError("a page cannot be decompressed");
        if self.decompressor.is_none() {
            self.decompressor = zstd::bulk::Decompressor::new().ok();
        }
        let decompressor = self.decompressor.as_mut().ok_or(PageError("no memory to decompress a page"))?;
        self.buffer.clear();
        self.buffer.reserve(length);
        match decompressor.decompress_to_buffer(body, &mut self.buffer) {
            Ok(n) if n == length => Ok(&self.buffer),
            _ => Err(wrong),
        }
    }
}
