//! Files, directories and standard input as messages.

use super::driver::{Messages, Step, Take};
use super::report::Progress;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Format;
use crate::format::avro::SchemaSource;
use crate::options::IntakeOptions;
use crate::source::{FileOptions, FileSource, Live, Notice, SourceError, SourcePosition};
use asofdb_storage::engine::Catalog;
use std::io::Read;
use std::sync::Arc;

/// Messages between two looks at the progress.
const MESSAGES_PER_STEP: u64 = 16_384;

/// Prefix of the catalog keys of source positions.
pub(super) const POSITION_PREFIX: &str = "source/";

/// Everything that a list of inputs names, from where earlier runs left off.
pub struct FileMessages {
    source: FileSource,
    current: String,
    bytes_total: Option<u64>,
    positions: Vec<SourcePosition>,
    schemas: Option<Arc<dyn SchemaSource>>,
    /// Everything was delivered, and what is read next is what came since.
    ended: bool,
    live: bool,
}

impl FileMessages {
    /// Opens `inputs`: paths, globs, directories, `-`. `catalog` has the positions of earlier runs.
    ///
    /// # Errors
    /// `Usage` for a format that is not known, `Source` for a path that is not there.
    pub fn open(
        inputs: &[String],
        options: &IntakeOptions,
        stdin: Option<Box<dyn Read + Send>>,
        catalog: &Catalog,
    ) -> Result<FileMessages> {
        FileMessages::open_with(inputs, options, stdin, None, catalog)
    }

    /// Opens `inputs` to read what comes: after [`Step::End`], reading goes on with files that came or grew
    /// since. What may still be written to is left for the next time.
    ///
    /// # Errors
    /// As [`FileMessages::open`], but a glob may match nothing yet.
    pub fn open_live(
        inputs: &[String],
        options: &IntakeOptions,
        live: Live,
        catalog: &Catalog,
    ) -> Result<FileMessages> {
        FileMessages::open_with(inputs, options, None, Some(live), catalog)
    }

    fn open_with(
        inputs: &[String],
        options: &IntakeOptions,
        stdin: Option<Box<dyn Read + Send>>,
        live: Option<Live>,
        catalog: &Catalog,
    ) -> Result<FileMessages> {
        let format = declared_format(options)?;
        let stored = catalog.positions.iter().filter(|(key, _)| key.starts_with(POSITION_PREFIX));
        let known = stored
            .map(|(key, value)| {
                serde_json::from_value(value.clone()).map_err(|e| {
                    Error::new(ErrorKind::Damaged, format!("the stored position {key} cannot be read: {e}"))
                })
            })
            .collect::<Result<Vec<SourcePosition>>>()?;
        let is_live = live.is_some();
        let files = FileOptions {
            format,
            options: options.decoding(catalog)?,
            stdin_name: options.source_name.clone(),
            stdin,
            live,
        };
        let schemas = files.options.schemas.clone();
        let source = FileSource::open(inputs, files, known).map_err(source_error)?;
        Ok(FileMessages {
            source,
            current: String::new(),
            bytes_total: bytes_of(inputs),
            positions: Vec::new(),
            schemas,
            ended: false,
            live: is_live,
        })
    }
}

/// The format that options name; `None` = it is to be found out.
pub(super) fn declared_format(options: &IntakeOptions) -> Result<Option<Format>> {
    Ok(match options.format.as_deref() {
        None | Some("auto") => None,
        Some(name) => Some(name.parse::<Format>().map_err(|e| Error::usage(e.to_string()).hint(e.hint))?),
    })
}

/// Bytes of the inputs, if all of them are plain files.
fn bytes_of(inputs: &[String]) -> Option<u64> {
    inputs.iter().map(|path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len())).sum()
}

pub(super) fn source_error(e: SourceError) -> Error {
    let error = Error::new(ErrorKind::Source, e.to_string());
    if e.hint.is_empty() { error } else { error.hint(e.hint) }
}

/// The catalog key of a position.
pub(super) fn position_key(
    stream: &str,
    stream_generation: u32,
    origin: &str,
    origin_generation: u32,
) -> String {
    format!("{POSITION_PREFIX}{stream}#{stream_generation}/{origin}#{origin_generation}")
}

impl Messages for FileMessages {
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step> {
        if std::mem::take(&mut self.ended) && self.live {
            self.source.rescan().map_err(source_error)?;
        }
        let mut failed = None;
        let current = &mut self.current;
        let more = self.source.read(MESSAGES_PER_STEP.min(room as u64).max(1), &mut |place, decoded| {
            if failed.is_some() {
                return;
            }
            if current != place.file {
                place.file.clone_into(current);
            }
            if let Err(e) = take(place, decoded) {
                failed = Some(e);
            }
        });
        if let Some(e) = failed {
            return Err(e);
        }
        let more = more.map_err(source_error)?;
        self.positions.extend(self.source.take_positions());
        self.ended = !more;
        Ok(if more { Step::More } else { Step::End })
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        let positions = std::mem::take(&mut self.positions);
        let key =
            |p: &SourcePosition| position_key(&p.stream, p.stream_generation, &p.origin, p.origin_generation);
        positions.iter().map(|p| (key(p), serde_json::json!(p))).collect()
    }

    fn schemas(&self) -> Option<Arc<dyn SchemaSource>> {
        self.schemas.clone()
    }

    fn progress(&self, progress: &mut Progress) {
        progress.source.clone_from(&self.current);
        progress.bytes_total = self.bytes_total;
    }

    fn left(&self) -> Vec<String> {
        self.source.left().to_vec()
    }

    fn notices(&mut self) -> Vec<String> {
        let text = |notice| match notice {
            Notice::Detected { file, format } => format!("{file}: read as {format}"),
            Notice::SameContent { file, other } => {
                format!("{file} has the content of {other}, which was taken before; both are kept")
            }
            Notice::OtherContent { file } => {
                format!("{file} came back with other content and is taken as a new stream")
            }
            Notice::Skipped { file, reason } => format!("{file} was passed over: {reason}"),
        };
        self.source.take_notices().into_iter().map(text).collect()
    }
}
