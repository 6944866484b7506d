//! Telling containers and formats by content.

use super::compression::uncompressed;
use super::kdump::{Kdump, Record};
use crate::format::avro::container::{Found, Header, MAGIC};
use crate::format::{Format, FormatOptions, avro};

/// How messages stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// One message a line.
    Lines,
    /// One record of Kafka a line.
    Kdump,
    /// One array of messages.
    Array,
    /// Records of CSV.
    Csv,
    /// Rows of Parquet.
    Parquet,
    /// Records of Avro behind their schema.
    AvroFile,
}

/// Lines that are looked at.
const LINES_MAX: usize = 100;

const PARQUET: &[u8] = b"PAR1";

/// Names of files that hold no data are passed over in directories, unless a format is named.
pub(super) fn looks_like_data(name: &str) -> bool {
    let name = uncompressed(name);
    let end = name.rsplit_once('.').map_or("", |(_, end)| end).to_ascii_lowercase();
    matches!(
        end.as_str(),
        "json" | "jsonl" | "ndjson" | "csv" | "tsv" | "parquet" | "txt" | "log" | "dump" | "avro" | ""
    )
}

/// What a file is, from its first bytes and, for lines that could be JSON or CSV, its name.
pub(super) fn detect(
    name: &str,
    head: &[u8],
    declared: Option<Format>,
    options: &FormatOptions,
) -> (Container, Format) {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    match declared {
        Some(format @ (Format::Csv | Format::TicdcCsv)) => return (Container::Csv, format),
        Some(Format::Parquet) => return (Container::Parquet, Format::Parquet),
        Some(format) if format.is_of_tables() && head.starts_with(PARQUET) => {
            return (Container::Parquet, format);
        }
        _ if head.starts_with(PARQUET) => return (Container::Parquet, Format::Parquet),
        _ if head.starts_with(MAGIC) => {
            let found = || match Header::read(head) {
                Ok(Found::Whole(header, _)) => avro::file_format(&header.schema),
                _ => Format::Avro,
            };
            return (Container::AvroFile, declared.unwrap_or_else(found));
        }
        _ => {}
    }
    let lines =
        || head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty()).take(LINES_MAX);
    let base = uncompressed(name).to_ascii_lowercase();
    let json_name = [".json", ".jsonl", ".ndjson"].iter().any(|e| base.ends_with(e));
    let first = lines().next().unwrap_or(b"");
    let json = first.starts_with(b"{") || first.starts_with(b"[") || first == b"null";
    if !json_name && !json {
        match declared {
            None => return (Container::Csv, std::str::from_utf8(first).map_or(Format::Csv, Format::of_csv)),
            Some(format) if format.is_of_tables() => return (Container::Csv, format),
            Some(_) => {}
        }
    }
    let dump =
        base.ends_with(".kdump.jsonl") || lines().any(|l| std::str::from_utf8(l).is_ok_and(Kdump::is_record));
    if dump {
        return (Container::Kdump, declared.unwrap_or_else(|| of_records(lines(), options)));
    }
    let container = if first.starts_with(b"[") { Container::Array } else { Container::Lines };
    let format = declared.unwrap_or_else(|| match container {
        Container::Array => Format::of_message(first_element(head)),
        _ => lines().map(Format::of_message).find(|f| *f != Format::Json).unwrap_or(Format::Json),
    });
    (container, format)
}

fn of_records<'a>(lines: impl Iterator<Item = &'a [u8]>, options: &FormatOptions) -> Format {
    let (mut format, mut dump) = (Format::Json, Kdump::default());
    for line in lines {
        dump.read(line, &mut |record| format = record.map_or(format, |record| of_record(&record, options)));
        if format != Format::Json {
            break;
        }
    }
    format
}

/// The format of a record of a topic.
pub(super) fn of_record(record: &Record<'_>, options: &FormatOptions) -> Format {
    match Format::of_record(record.key, record.value, record.headers) {
        // A zero byte at its start says less than what other envelopes show.
        Format::Json => avro::framed_format(options, &record.message()).unwrap_or(Format::Json),
        format => format,
    }
}

/// The first object of an array, if it ends within these bytes.
fn first_element(head: &[u8]) -> &[u8] {
    let (mut depth, mut quoted, mut escaped, mut from) = (0, false, false, None);
    for (at, b) in head.iter().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => {
                from = from.or(Some(at));
                depth += 1;
            }
            b'}' if !quoted => {
                depth -= 1;
                if let (0, Some(from)) = (depth, from) {
                    return &head[from..=at];
                }
            }
            _ => {}
        }
    }
    b""
}
