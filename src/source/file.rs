//! One open file: its container, its decoder, and how far it was read.

use super::avro_file::AvroFile;
use super::blocks::{Blocks, Line, digest};
use super::compression::uncompressed;
use super::detect::{Container, detect};
use super::kdump::Kdump;
use super::kept::Reading;
use super::position::{HEAD_BYTES, Place, SourceError, SourcePosition, place_number};
use crate::change::{Decoded, Fault, Message};
use crate::format::avro::Unready;
use crate::format::dms;
use crate::format::json;
use crate::format::parquet::ParquetRows;
use crate::format::{Csv, CsvDecoder, Decoder, Format, FormatOptions, RecordEnd, record_end};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Receives messages with their places.
pub type PlacedSink<'s> = dyn FnMut(&Place<'_>, Decoded<'_>) + 's;

/// Once a quote was found open to the end of what may be read, later ones are looked for this far.
const QUOTE_BYTES_MAX: usize = 64 << 10;

/// What matters of a file that may be written to while it is read.
#[derive(Default)]
pub struct Growth {
    /// Its path.
    pub path: PathBuf,
    /// Whether it may be written to just now; `None` = it is whole.
    pub growing: Option<Box<dyn Fn() -> bool + Send>>,
    /// Its end was left for later, because it may be a part of a message.
    pub left: bool,
}

/// A file being read.
pub(super) struct OpenFile {
    /// See [`Place::number`].
    number: u64,
    pub position: SourcePosition,
    pub shown: String,
    pub format: Format,
    blocks: Blocks,
    body: Body,
    options: FormatOptions,
    /// Offsets of topic partitions, by stream: the next one to be delivered.
    pub partitions: BTreeMap<String, u64>,
    /// How standard input begins.
    head: Vec<u8>,
    touched: bool,
    pub growth: Growth,
}

enum Body {
    Lines(Decoder),
    Kdump(Decoder, Kdump),
    Array(Decoder),
    Csv(CsvDecoder, usize),
    Parquet(Box<ParquetRows>),
    Avro(Box<AvroFile>),
}

/// What is common to the places of one file.
struct At<'p> {
    number: u64,
    position: &'p SourcePosition,
    file: &'p str,
    line: u64,
    byte: u64,
}

impl At<'_> {
    fn place<'x>(&'x self, raw: &'x [u8]) -> Place<'x> {
        Place {
            number: self.number,
            stream: &self.position.stream,
            stream_generation: self.position.stream_generation,
            origin: &self.position.origin,
            origin_generation: self.position.origin_generation,
            position: self.position.next,
            file: self.file,
            line: self.line,
            byte: self.byte,
            raw,
            record: None,
        }
    }
}

/// The first bytes that `blocks` has read.
fn head_of(blocks: &Blocks, bytes: usize) -> Vec<u8> {
    blocks.window()[..blocks.window().len().min(bytes)].to_vec()
}

impl OpenFile {
    /// Opens what `blocks` reads from its start, and passes over what `position` says was read.
    pub fn open(
        mut blocks: Blocks,
        position: SourcePosition,
        shown: String,
        declared: Option<Format>,
        options: &FormatOptions,
        parquet: impl FnOnce() -> std::io::Result<std::fs::File>,
    ) -> Result<OpenFile, SourceError> {
        let failed = |e: &dyn ToString| SourceError::new(&shown, e.to_string());
        while blocks.window().len() < 64 << 10 && !blocks.at_end {
            blocks.fill().map_err(|e| failed(&e))?;
        }
        blocks.digest_like(&position.digest);
        let (container, format) = detect(&shown, blocks.window(), declared, options);
        let stdin = shown == "-";
        let head = head_of(&blocks, if stdin { HEAD_BYTES } else { 0 });
        let options = delimited(options, container, &shown);
        let state = position.state.as_ref();
        let decoder = || message_decoder(&shown, container, format, &options, state);
        let (mut lines, mut header_bytes) = (position.lines, 0);
        if container != Container::Parquet && blocks.window().starts_with(b"\xef\xbb\xbf") {
            header_bytes = 3;
            blocks.consume(3);
        }
        let mut shaped = format;
        let body = match container {
            Container::Lines => Body::Lines(decoder()?),
            Container::Kdump => Body::Kdump(decoder()?, Kdump::default()),
            Container::Array => Body::Array(decoder()?),
            Container::Csv => {
                let (header, bytes, header_lines) =
                    csv_header(&mut blocks, format, &options).map_err(|e| failed(&e))?;
                header_bytes += bytes;
                lines = lines.max(header_lines);
                Body::Csv(CsvDecoder::new(format, header, &shown), options.message_bytes_max)
            }
            Container::AvroFile => {
                let (file, bytes) = AvroFile::open(&mut blocks, format, &options).map_err(|e| failed(&e))?;
                header_bytes += bytes;
                Body::Avro(Box::new(file))
            }
            Container::Parquet => {
                let file = parquet().map_err(|e| failed(&e))?;
                let rows = rows(file, position.next, declared, &shown).map_err(|e| failed(&e))?;
                shaped = rows.1;
                Body::Parquet(Box::new(rows.0))
            }
        };
        let ahead = position.bytes.saturating_sub(header_bytes as u64);
        let there = blocks.skip(ahead).map_err(|e| failed(&e))?;
        if stdin && position.bytes > 0 && !(there && blocks.digest() == position.digest) {
            let reason =
                format!("begins like what was read as {} before, and goes on otherwise", position.stream);
            return Err(SourceError::new("-", reason).hint("give another --source-name"));
        }
        let position = SourcePosition { lines, ..position };
        Ok(OpenFile {
            number: place_number(),
            position,
            shown,
            format: shaped,
            blocks,
            body,
            options,
            partitions: BTreeMap::new(),
            head,
            touched: false,
            growth: Growth::default(),
        })
    }

    /// Reads up to `messages_max` messages; how many there were. Fewer means the file is at its end.
    pub fn read(&mut self, messages_max: u64, sink: &mut PlacedSink<'_>) -> Result<u64, SourceError> {
        let mut count = 0;
        while count < messages_max {
            let more = match &mut self.body {
                Body::Parquet(_) => self.rows(messages_max - count, sink).map_err(Unready::from),
                Body::Array(_) => self.array(sink),
                Body::Avro(_) => self.avro(sink).map_err(Unready::from),
                Body::Csv(..) => self.record(sink).map_err(Unready::from),
                Body::Lines(_) | Body::Kdump(..) => self.line(sink),
            };
            match more.map_err(|e| SourceError::new(&self.shown, e.reason).hint(e.hint))? {
                0 => break,
                n => count += n,
            }
        }
        self.touched |= count > 0;
        Ok(count)
    }

    /// How far the file was read: itself, then the topic partitions in it.
    pub fn positions(&mut self) -> Vec<SourcePosition> {
        self.position.bytes = self.blocks.bytes;
        self.position.digest = self.blocks.digest();
        self.position.reading = Some(self.reading());
        self.position.state = self.state();
        if !self.head.is_empty() {
            let bytes = self.head.len().min(self.position.bytes as usize);
            self.position.head = digest(&self.head[..bytes]);
        }
        let mut out = vec![self.position.clone()];
        out.extend(self.partitions.iter().map(|(stream, next)| SourcePosition {
            stream: stream.clone(),
            stream_generation: self.position.stream_generation,
            origin: String::new(),
            origin_generation: 0,
            next: *next,
            bytes: 0,
            digest: String::new(),
            lines: 0,
            head: String::new(),
            reading: self.position.reading.clone(),
            state: None,
            end: None,
        }));
        out
    }

    fn state(&self) -> Option<serde_json::Value> {
        match &self.body {
            Body::Lines(decoder) | Body::Array(decoder) => decoder.state(),
            Body::Kdump(..) | Body::Csv(..) | Body::Parquet(_) | Body::Avro(_) => None,
        }
    }

    fn reading(&self) -> Reading {
        let (records, header) = match &self.body {
            Body::Kdump(..) => (true, None),
            Body::Csv(csv, _) => (false, Some(csv.columns().to_vec())),
            Body::Lines(_) | Body::Array(_) | Body::Parquet(_) | Body::Avro(_) => (false, None),
        };
        let delimiter = header.is_some().then_some(self.options.delimiter as char);
        // Rows of Parquet are none that could be read again, whoever wrote them.
        let rows = matches!(self.body, Body::Parquet(_));
        let format = if rows { Format::Parquet } else { self.format };
        Reading { format, records, header, delimiter }
    }

    fn line(&mut self, sink: &mut PlacedSink<'_>) -> Result<u64, Unready> {
        loop {
            let at = At {
                number: self.number,
                position: &self.position,
                file: &self.shown,
                line: self.position.lines + 1,
                byte: self.blocks.bytes,
            };
            let (text, all) =
                match self.blocks.line(self.options.message_bytes_max).map_err(|e| e.to_string())? {
                    Line::None => return Ok(0),
                    Line::TooLong => {
                        too_long(&mut self.blocks, &at, self.options.message_bytes_max, sink)?;
                        self.position.lines += 1;
                        self.position.next += 1;
                        return Ok(1);
                    }
                    Line::Whole { text, all }
                        if text == all && self.growth.growing.as_ref().is_some_and(|growing| growing()) =>
                    {
                        self.growth.left = true;
                        return Ok(0);
                    }
                    Line::Whole { text, all } => (text, all),
                };
            let line = &self.blocks.window()[..text];
            if line.iter().all(u8::is_ascii_whitespace) {
                self.blocks.consume(all);
                self.position.lines += 1;
                continue;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match &mut self.body {
                Body::Kdump(decoder, dump) => {
                    kdump_line(decoder, dump, line, &at, &mut self.partitions, sink)?;
                }
                Body::Lines(decoder) => {
                    let message =
                        Message { value: Some(line), position: at.position.next, ..Message::default() };
                    decoder.decode(&message, &mut |decoded| sink(&at.place(line), decoded));
                }
                _ => {}
            }
            self.blocks.consume(all);
            self.position.lines += 1;
            self.position.next += 1;
            return Ok(1);
        }
    }

    fn record(&mut self, sink: &mut PlacedSink<'_>) -> Result<u64, String> {
        let Body::Csv(csv, quote_bytes_max) = &mut self.body else { return Ok(0) };
        loop {
            let at = At {
                number: self.number,
                position: &self.position,
                file: &self.shown,
                line: self.position.lines + 1,
                byte: self.blocks.bytes,
            };
            let left = &mut self.growth.left;
            let mut unfinished = || {
                *left = self.growth.growing.as_ref().is_some_and(|growing| growing());
                *left
            };
            let delimiter = self.options.delimiter;
            let Some(end) = csv_record(&mut self.blocks, delimiter, quote_bytes_max, &mut unfinished)? else {
                return Ok(0);
            };
            if end == 0 {
                too_long(&mut self.blocks, &at, self.options.message_bytes_max, sink)?;
                self.position.lines += 1;
                self.position.next += 1;
                return Ok(1);
            }
            let record = &self.blocks.window()[..end];
            let lines = memchr::memchr_iter(b'\n', record).count().max(1) as u64;
            let blank = matches!(record, b"\n" | b"\r\n" | b"\r");
            if !blank {
                let message =
                    Message { value: Some(record), position: at.position.next, ..Message::default() };
                let raw = record.strip_suffix(b"\n").unwrap_or(record);
                csv.decode(&self.options, &message, &mut |decoded| sink(&at.place(raw), decoded));
            }
            self.blocks.consume(end);
            self.position.lines += lines;
            if !blank {
                self.position.next += 1;
                return Ok(1);
            }
        }
    }

    /// An array is one value and read at once; its elements are the messages. What turns out to be
    /// none is read as lines.
    fn array(&mut self, sink: &mut PlacedSink<'_>) -> Result<u64, Unready> {
        let Body::Array(decoder) = &mut self.body else { return Ok(0) };
        while !self.blocks.at_end && self.blocks.window().len() <= self.options.message_bytes_max {
            self.blocks.fill().map_err(|e| e.to_string())?;
        }
        let window = self.blocks.window();
        let mut elements = Vec::new();
        let whole = self.blocks.at_end
            && std::str::from_utf8(window).is_ok_and(|text| json::elements(text, &mut elements).is_ok());
        if !whole {
            let decoder = Decoder::new(self.format, self.options.clone())
                .ok_or_else(|| "is no file of messages".to_owned())?;
            self.body = Body::Lines(decoder);
            return self.line(sink);
        }
        let done = self.position.next;
        let mut count = 0;
        for (i, element) in elements.iter().enumerate().skip(done as usize) {
            let end = elements.get(i + 1).map_or(window.len(), |next| next.at);
            let raw = window[element.at..end].trim_ascii();
            let raw = if i + 1 == elements.len() { raw.strip_suffix(b"]") } else { raw.strip_suffix(b",") };
            let raw = raw.unwrap_or(b"").trim_ascii();
            let line = memchr::memchr_iter(b'\n', &window[..element.at]).count() as u64 + 1;
            let (position, number) = (&self.position, self.number);
            let at = At { number, position, file: &self.shown, line, byte: element.at as u64 };
            let message = Message { value: Some(raw), position: at.position.next, ..Message::default() };
            decoder.decode(&message, &mut |decoded| sink(&at.place(raw), decoded));
            self.position.next += 1;
            count += 1;
        }
        let all = window.len();
        self.blocks.consume(all);
        Ok(count)
    }

    /// A block is read at once; its records are the messages.
    fn avro(&mut self, sink: &mut PlacedSink<'_>) -> Result<u64, String> {
        let Body::Avro(file) = &mut self.body else { return Ok(0) };
        loop {
            let Some((block, bytes)) = file.block(&mut self.blocks)? else { return Ok(0) };
            let records = file.records(&block)?;
            for (from, to) in &records {
                let (position, number, byte) = (&self.position, self.number, self.blocks.bytes);
                let at = At { number, position, file: &self.shown, line: position.next + 1, byte };
                let value = Some(&block.data[*from..*to]);
                let message = Message { value, position: position.next, ..Message::default() };
                file.decoder.decode(&message, &mut |decoded| sink(&at.place(&[]), decoded));
                self.position.next += 1;
            }
            self.blocks.consume(bytes);
            if !records.is_empty() {
                return Ok(records.len() as u64);
            }
        }
    }

    fn rows(&mut self, messages_max: u64, sink: &mut PlacedSink<'_>) -> Result<u64, String> {
        let Body::Parquet(rows) = &mut self.body else { return Ok(0) };
        // The digest of the whole file is its identity.
        while !self.blocks.at_end || !self.blocks.window().is_empty() {
            let n = self.blocks.window().len();
            self.blocks.consume(n);
            self.blocks.fill().map_err(|e| e.to_string())?;
        }
        let (position, file, number) = (&mut self.position, &self.shown, self.number);
        rows.read(&self.options, messages_max, &mut |row, decoded| {
            position.next = row;
            let at = At { number, position, file, line: row + 1, byte: 0 };
            sink(&at.place(&[]), decoded);
            position.next = row + 1;
        })
    }
}

/// Quarantines the line at the start of the window without holding it, and goes past it.
fn too_long(blocks: &mut Blocks, at: &At<'_>, max: usize, sink: &mut PlacedSink<'_>) -> Result<(), String> {
    let head = blocks.window()[..blocks.window().len().min(1024)].to_vec();
    let bytes = blocks.skip_line().map_err(|e| e.to_string())?;
    let reason = format!("the message has {bytes} bytes, more than the {max} allowed");
    let hint = "the limit on the size of a message can be raised";
    sink(&at.place(&head), Decoded::Quarantine(Fault { reason: &reason, hint, offset: 0 }));
    Ok(())
}

fn kdump_line(
    decoder: &mut Decoder,
    dump: &mut Kdump,
    line: &[u8],
    at: &At<'_>,
    partitions: &mut BTreeMap<String, u64>,
    sink: &mut PlacedSink<'_>,
) -> Result<(), Unready> {
    let mut ready = Ok(());
    dump.read(line, &mut |record| match record {
        Err(reject) => {
            sink(&at.place(line), Decoded::Quarantine(reject.fault()));
        }
        Ok(record) => {
            let At { position, .. } = at;
            let origin =
                if position.origin.is_empty() { String::new() } else { format!("/{}", position.origin) };
            let stream = format!("{}{origin}#{}/{}", position.stream, record.topic, record.partition);
            let next = partitions.entry(stream.clone()).or_insert(0);
            let place = Place {
                number: 0,
                stream: &stream,
                origin: "",
                origin_generation: 0,
                position: record.offset,
                ..at.place(line)
            };
            if record.offset < *next {
                return sink(&place, Decoded::Ignored("repeated_offset"));
            }
            let message = record.message();
            ready = decoder.ready(&message);
            if ready.is_ok() {
                *next = record.offset.saturating_add(1);
                decoder.decode(&message, &mut |decoded| sink(&place, decoded));
            }
        }
    });
    ready
}

/// The options of a file; tabs separate the fields of one whose name says so.
fn delimited(options: &FormatOptions, container: Container, shown: &str) -> FormatOptions {
    let mut options = options.clone();
    if container == Container::Csv && uncompressed(shown).ends_with(".tsv") && options.delimiter == b',' {
        options.delimiter = b'\t';
    }
    options
}

fn message_decoder(
    shown: &str,
    container: Container,
    format: Format,
    options: &FormatOptions,
    state: Option<&serde_json::Value>,
) -> Result<Decoder, SourceError> {
    // Messages whose schemas a registry has are bytes, and bytes do not stand in lines.
    if container != Container::Kdump && format.is_framed() {
        let reason = format!("holds no messages of {format}: it is no dump of Kafka records");
        let hint =
            r#"a dump has one record a line: {"topic":"t","partition":0,"offset":0,"value_b64":"AAAAAAE="}"#;
        return Err(SourceError::new(shown, reason).hint(hint));
    }
    let decoder = Decoder::resumed(format, options.clone(), state);
    decoder.ok_or_else(|| SourceError::new(shown, "is no file of messages"))
}

/// The rows of a file, and the format that they are found to have where none is declared.
fn rows(
    file: std::fs::File,
    next: u64,
    declared: Option<Format>,
    path: &str,
) -> Result<(ParquetRows, Format), String> {
    let mut rows = ParquetRows::open(file, next)?;
    let format = match declared {
        Some(Format::Dms) => {
            rows.set_dms(path);
            Format::Dms
        }
        Some(format) if !format.is_of_tables() => Format::Parquet,
        declared => rows.set_shape(declared),
    };
    Ok((rows, format))
}

/// The names of the columns, and how many bytes and lines they took.
fn csv_header(
    blocks: &mut Blocks,
    format: Format,
    options: &FormatOptions,
) -> Result<(Vec<String>, usize, u64), String> {
    if let Some(names) = options.header.as_ref().filter(|_| format != Format::Dms) {
        return Ok((names.clone(), 0, 0));
    }
    if format == Format::TicdcCsv {
        return Err(
            "TiCDC's CSV has no header: --header names the columns, as in --header id,name".to_owned()
        );
    }
    let mut limit = options.message_bytes_max;
    let end = csv_record(blocks, options.delimiter, &mut limit, &mut || false)?.unwrap_or(0);
    let record = &blocks.window()[..end];
    let given = options.header.as_deref();
    if format == Format::Dms
        && end > 0
        && let Some(names) = dms::header(&Csv::fields(record, options.delimiter)?, given)?
    {
        return Ok((names, 0, 0));
    }
    let lines = memchr::memchr_iter(b'\n', record).count() as u64;
    let names = if end == 0 { Vec::new() } else { Csv::header(record, options.delimiter)? };
    blocks.consume(end);
    Ok((names, end, lines))
}

/// The length of the record at the start of the window; `None` at the end, 0 if it is too long. A
/// quote that stays open to the limit makes a record of its first line alone. What is open at the end of
/// an `unfinished` file is no record yet.
fn csv_record(
    blocks: &mut Blocks,
    delimiter: u8,
    bytes_max: &mut usize,
    unfinished: &mut dyn FnMut() -> bool,
) -> Result<Option<usize>, String> {
    let mut look_at = 0;
    loop {
        let window = blocks.window();
        // A record that is still open is looked at again only when there is twice as much of it.
        if window.len() >= look_at || blocks.at_end {
            let open = match record_end(window, delimiter) {
                RecordEnd::At(end) => return Ok(Some(end)),
                RecordEnd::Open { quoted } => quoted,
            };
            let ends = blocks.at_end || window.len() > *bytes_max;
            if ends && (window.is_empty() || blocks.at_end && unfinished()) {
                return Ok(None);
            }
            if ends && open {
                *bytes_max = (*bytes_max).min(QUOTE_BYTES_MAX);
                return Ok(Some(memchr::memchr(b'\n', window).map_or(window.len(), |n| n + 1)));
            }
            if ends {
                return Ok(Some(if blocks.at_end { window.len() } else { 0 }));
            }
            look_at = window.len() * 2;
        }
        blocks.fill().map_err(|e| e.to_string())?;
    }
}
