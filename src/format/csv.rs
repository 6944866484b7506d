//! CSV by RFC 4180: one record a message. Quotes say nothing about types, but an unquoted empty
//! field is NULL and a quoted one is empty text.

use super::dms::{DmsFile, Parts};
use super::fields::Reject;
use super::infer::text_cell;
use super::options::FormatOptions;
use super::scratch::{Scratch, ScratchBuffer};
use super::shaped::Shape;
use crate::change::{Column, Decoded, Message, Sink};
use asofdb_storage::value::Cell;

/// Where the record at the start of some bytes ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEnd {
    /// After this many bytes, its line break included.
    At(usize),
    /// There is no line break yet.
    Open {
        /// A quote is open.
        quoted: bool,
    },
}

/// Finds the end of the first record. A quote opens a field only at the field's start.
pub fn record_end(bytes: &[u8], delimiter: u8) -> RecordEnd {
    let (mut quoted, mut field_start, mut at) = (false, true, 0);
    while at < bytes.len() {
        let b = bytes[at];
        if quoted {
            match memchr::memchr(b'"', &bytes[at..]) {
                None => return RecordEnd::Open { quoted: true },
                Some(n) => at += n,
            }
            quoted = bytes.get(at + 1) == Some(&b'"');
            at += if quoted { 2 } else { 1 };
            continue;
        }
        if b == b'\n' {
            return RecordEnd::At(at + 1);
        }
        quoted = field_start && b == b'"';
        field_start = b == delimiter;
        at += 1;
    }
    RecordEnd::Open { quoted }
}

/// Decodes the records of one file.
#[derive(Debug)]
pub struct Csv {
    header: Vec<String>,
    scratch: ScratchBuffer,
    parts: Parts<'static>,
    dms: Option<DmsFile>,
    shape: Option<Shape>,
}

impl Csv {
    /// A decoder for records with these columns.
    pub fn new(header: Vec<String>) -> Csv {
        Csv { header, scratch: ScratchBuffer::default(), parts: Parts::default(), dms: None, shape: None }
    }

    /// The same for records of a file that AWS DMS wrote.
    pub fn of_dms(self, path: &str) -> Csv {
        Csv { dms: Some(DmsFile::of_path(path)), ..self }
    }

    /// The same for records with columns about themselves.
    pub fn shaped(self, shape: Option<Shape>) -> Csv {
        Csv { shape, ..self }
    }

    /// The records that follow are of the file at `path`.
    pub fn set_path(&mut self, path: &str) {
        if let Some(dms) = &mut self.dms {
            *dms = DmsFile::of_path(path);
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.header
    }

    /// The names in a header record. Columns without a name are called `column1`, `column2`, …
    ///
    /// # Errors
    /// In words, if it is not UTF-8, not CSV, or names a column twice.
    pub fn header(record: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
        let mut names: Vec<String> = Vec::new();
        for (i, name) in Csv::fields(record, delimiter)?.into_iter().enumerate() {
            let name = if name.is_empty() { format!("column{}", i + 1) } else { name };
            if names.contains(&name) {
                return Err(format!("the header names the column `{name}` twice"));
            }
            names.push(name);
        }
        Ok(names)
    }

    /// The texts of a record's fields.
    ///
    /// # Errors
    /// In words, if it is not UTF-8 or not CSV.
    pub fn fields(record: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
        let text = std::str::from_utf8(record).map_err(|_| "the header is not UTF-8".to_owned())?;
        let fields = Fields::new(trimmed(text), delimiter);
        fields.map(|field| field.map(|f| f.unquoted()).map_err(|r| r.reason)).collect()
    }

    /// Decodes one record, with or without its line break, and hands it to `sink`, exactly once.
    pub fn decode(&mut self, options: &FormatOptions, message: &Message<'_>, sink: &mut Sink<'_>) {
        let Csv { header, scratch, parts, dms, shape } = self;
        let record = message.value.unwrap_or(&[]);
        // Positions of rows with columns about themselves are put there too.
        let mut scratch = scratch.scratch(record.len() * 2 + 64);
        let mut p = std::mem::take(parts).recycled();
        let row = row(options, header, record, &mut scratch, &mut p.columns);
        let change = row.and_then(|()| p.change(dms.as_ref(), *shape, options, message, &mut scratch));
        match change {
            Ok(change) => p.hand_out(change, sink),
            Err(reject) => sink(Decoded::Quarantine(reject.fault())),
        }
        *parts = p.recycled();
    }
}

/// A record without its line break.
pub(super) fn trimmed(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn row<'a>(
    options: &FormatOptions,
    header: &'a [String],
    record: &'a [u8],
    scratch: &mut Scratch<'a>,
    columns: &mut Vec<Column<'a>>,
) -> Result<(), Reject> {
    let text = std::str::from_utf8(record)
        .map_err(|e| Reject::new("the record is not UTF-8").at(e.valid_up_to()))?;
    let mut count = 0;
    for field in Fields::new(trimmed(text), options.delimiter) {
        let field = field?;
        if let Some(name) = header.get(count) {
            let (text, quoted) = field.resolve(scratch);
            let null = !quoted && (text.is_empty() || options.null_text.as_deref() == Some(text));
            columns.push(Column { name, cell: if null { Cell::Null } else { text_cell(text) } });
        }
        count += 1;
    }
    if count != header.len() {
        return Err(Reject::new(format!(
            "the record has {}, the header {}",
            crate::count::of(count, "field"),
            crate::count::of(header.len(), "column")
        )));
    }
    Ok(())
}

/// A field as it stands in the record.
pub(super) struct Field<'a> {
    text: &'a str,
    quoted: bool,
}

impl<'a> Field<'a> {
    fn unquoted(&self) -> String {
        if self.quoted { self.text.replace("\"\"", "\"") } else { self.text.to_owned() }
    }

    /// Its text, and whether it was quoted.
    pub fn resolve(&self, scratch: &mut Scratch<'a>) -> (&'a str, bool) {
        if self.quoted && self.text.contains('"') {
            return (scratch.put_str(|out| out.push_str(&self.text.replace("\"\"", "\""))), true);
        }
        (self.text, self.quoted)
    }
}

/// The fields of a record.
pub(super) struct Fields<'a> {
    rest: Option<&'a str>,
    at: usize,
    delimiter: u8,
}

impl<'a> Fields<'a> {
    /// Those of a record without its line break.
    pub fn new(text: &'a str, delimiter: u8) -> Fields<'a> {
        Fields { rest: Some(text), at: 0, delimiter }
    }

    fn quoted(&mut self, text: &'a str) -> Result<Field<'a>, Reject> {
        let bytes = text.as_bytes();
        let mut end = 1;
        loop {
            match memchr::memchr(b'"', &bytes[end..]) {
                None => return Err(Reject::new("a quote is not closed").at(self.at)),
                Some(n) if bytes.get(end + n + 1) == Some(&b'"') => end += n + 2,
                Some(n) => {
                    end += n;
                    break;
                }
            }
        }
        match bytes.get(end + 1) {
            None => self.rest = None,
            Some(b) if *b == self.delimiter => self.rest = Some(&text[end + 2..]),
            Some(_) => {
                return Err(Reject::new("there is text after a closing quote")
                    .hint("a quote within a quoted field is written twice")
                    .at(self.at + end + 1));
            }
        }
        self.at += end + 2;
        Ok(Field { text: &text[1..end], quoted: true })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest.take()?;
        if text.starts_with('"') {
            return Some(self.quoted(text));
        }
        let end = memchr::memchr(self.delimiter, text.as_bytes());
        let field = &text[..end.unwrap_or(text.len())];
        self.rest = end.map(|e| &text[e + 1..]);
        self.at += field.len() + 1;
        Some(Ok(Field { text: field, quoted: false }))
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
