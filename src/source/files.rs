//! Files, globs, directories and standard input as one source.

use super::blocks::{Blocks, digest};
use super::compression::{Caps, decompressed};
use super::detect::looks_like_data;
use super::file::{OpenFile, PlacedSink};
use super::known::Known;
use super::live::{Live, Seen, Stamp};
use super::paths::{Input, expand};
use super::position::{HEAD_BYTES, Notice, SourceError, SourcePosition};
use crate::format::{Format, FormatOptions};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;

/// What to read, and as what.
#[derive(Default)]
pub struct FileOptions {
    /// The format; `None` = by content.
    pub format: Option<Format>,
    /// How it is read.
    pub options: FormatOptions,
    /// Name of the stream that standard input is. Without one it has no identity: every run is a new
    /// stream.
    pub stdin_name: Option<String>,
    /// Standard input, read for the path `-`.
    pub stdin: Option<Box<dyn Read + Send>>,
    /// Files come and grow while they are read: what may still be written to is left for the next scan
    /// ([`FileSource::rescan`]), and a glob may match nothing yet. `None` = everything is whole.
    pub live: Option<Live>,
}

/// Reads files from where an earlier run left off.
pub struct FileSource {
    inputs: Vec<String>,
    options: FileOptions,
    queue: VecDeque<Input>,
    current: Option<OpenFile>,
    fresh: bool,
    known: Known,
    /// Those that changed since they were last taken.
    positions: Known,
    notices: Vec<Notice>,
    seen: Seen,
    /// The stamp of the current file when it was opened.
    stamp: Option<Stamp>,
    /// Files that were left for the next scan.
    left: Vec<String>,
}

impl FileSource {
    /// A source of all files that `inputs` name: paths, globs, directories, `-`. `known` are the
    /// positions that earlier runs stored, of these and any other streams.
    ///
    /// # Errors
    /// If a path does not exist, is neither a file nor a directory, or a glob matches nothing.
    pub fn open(
        inputs: &[String],
        options: FileOptions,
        known: Vec<SourcePosition>,
    ) -> Result<FileSource, SourceError> {
        let mut source = FileSource {
            inputs: inputs.to_vec(),
            options,
            queue: VecDeque::new(),
            current: None,
            fresh: false,
            known: Known::new(known),
            positions: Known::default(),
            notices: Vec::new(),
            seen: Seen::default(),
            stamp: None,
            left: Vec::new(),
        };
        source.rescan()?;
        Ok(source)
    }

    /// Looks again which files there are, once all have been read; those that did not change since they were
    /// read are not opened again.
    ///
    /// # Errors
    /// As [`FileSource::open`].
    pub fn rescan(&mut self) -> Result<(), SourceError> {
        let mut queue = Vec::new();
        for name in &self.inputs {
            if name == "-" {
                let stream = self.options.stdin_name.clone().unwrap_or_else(|| "-".to_owned());
                queue.push(Input { stream, origin: String::new(), path: "-".into(), named: true });
                continue;
            }
            let live = self.options.live.as_ref();
            for mut input in expand(name, live.is_some(), &mut self.notices)? {
                input.stream.insert_str(0, live.map_or("", |live| &live.prefix));
                if input.named || self.options.format.is_some() || looks_like_data(&input.origin) {
                    queue.push(input);
                } else {
                    let reason = "its name is not that of a data file".to_owned();
                    self.notices.push(Notice::Skipped { file: input.shown(), reason });
                }
            }
        }
        self.seen.keep(&queue);
        queue.retain(|input| !self.seen.has(&input.path));
        self.queue = queue.into();
        self.left.clear();
        Ok(())
    }

    /// Files that were left for the next scan because they may still be written to.
    pub fn left(&self) -> &[String] {
        &self.left
    }

    /// Reads up to `messages_max` messages (an array file is one piece and may exceed it); whether
    /// there may be more. Every message is handed to `sink` once.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged as a whole. What was handed out before it counts.
    pub fn read(&mut self, messages_max: u64, sink: &mut PlacedSink<'_>) -> Result<bool, SourceError> {
        let mut left = messages_max;
        while left > 0 {
            let mut file = match self.current.take() {
                Some(file) => file,
                None => match self.queue.pop_front() {
                    Some(input) if self.is_gone(&input) => continue,
                    Some(input) if self.is_ripe(&input)? => self.start(input)?,
                    Some(_) => continue,
                    None => return Ok(false),
                },
            };
            let count = file.read(left, sink)?;
            for position in file.positions() {
                self.positions.put(position);
            }
            if count < left {
                self.finished(&mut file);
            } else {
                self.current = Some(file);
            }
            left = left.saturating_sub(count);
        }
        Ok(self.current.is_some() || !self.queue.is_empty())
    }

    /// Positions that changed since the last call; they belong into the commit of the messages read
    /// since then.
    pub fn take_positions(&mut self) -> Vec<SourcePosition> {
        self.positions.take()
    }

    /// What is to be said since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Whether a file that nobody named went away since the directory was listed.
    fn is_gone(&mut self, input: &Input) -> bool {
        let gone = !input.named && !input.path.exists();
        if gone {
            let reason = "it went away before it was read".to_owned();
            self.notices.push(Notice::Skipped { file: input.shown(), reason });
        }
        gone
    }

    /// Whether a file can be read now; notes those that are left for later.
    fn is_ripe(&mut self, input: &Input) -> Result<bool, SourceError> {
        self.stamp = None;
        let Some(live) = self.options.live.as_ref().filter(|_| input.path.as_os_str() != "-") else {
            return Ok(true);
        };
        let looked = input.path.metadata().and_then(|metadata| {
            let stamp = Stamp::of(&metadata);
            let (format, options) = (self.options.format, &self.options.options);
            Ok((stamp, live.is_unripe(input, stamp, format, options)?))
        });
        match looked {
            Ok((stamp, unripe)) => {
                self.stamp = Some(stamp).filter(|s| !live.is_fresh(*s));
                if unripe {
                    self.left.push(input.shown());
                }
                Ok(!unripe)
            }
            // It was taken away since the scan.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(SourceError::new(input.shown(), e)),
        }
    }

    fn start(&mut self, input: Input) -> Result<OpenFile, SourceError> {
        let (blocks, position) = self.resume(&input)?;
        let shown = input.shown();
        let parquet = || File::open(&input.path);
        let (stream, generation) = (position.stream.clone(), position.stream_generation);
        self.fresh = position.bytes == 0;
        let mut file = OpenFile::open(
            blocks,
            position,
            shown.clone(),
            self.options.format,
            &self.options.options,
            parquet,
        )?;
        let inside = match input.origin.as_str() {
            "" => format!("{stream}#"),
            origin => format!("{stream}/{origin}#"),
        };
        let partitions = self.known.inside().filter(|p| p.stream_generation == generation);
        let partitions = partitions.filter(|p| p.stream.starts_with(&inside));
        file.partitions.extend(partitions.map(|p| (p.stream.clone(), p.next)));
        if let Some(live) = self.options.live.clone().filter(|_| shown != "-") {
            let path = input.path.clone();
            file.growth.growing = Some(Box::new(move || live.is_growing(&path)));
        }
        file.growth.path = input.path.clone();
        if self.options.format.is_none() {
            self.notices.push(Notice::Detected { file: shown, format: file.format });
        }
        Ok(file)
    }

    /// Opens a file and finds the position whose content it begins with.
    fn resume(&mut self, input: &Input) -> Result<(Blocks, SourcePosition), SourceError> {
        let named = self.known.named(&input.stream, &input.origin);
        let mut before: Vec<SourcePosition> = named.filter(|p| !p.digest.is_empty()).cloned().collect();
        before.sort_by_key(|p| std::cmp::Reverse((p.stream_generation, p.origin_generation)));
        if input.path.as_os_str() == "-" {
            return self.resume_stdin(input, &before);
        }
        for position in &before {
            let mut blocks = self.blocks(input)?;
            blocks.digest_like(&position.digest);
            let failed = |e: std::io::Error| SourceError::new(input.shown(), e);
            let same = blocks.skip(position.bytes).map_err(failed)? && blocks.digest() == position.digest;
            if same {
                return Ok((self.blocks(input)?, position.clone()));
            }
        }
        if !before.is_empty() {
            self.notices.push(Notice::OtherContent { file: input.shown() });
        }
        Ok((self.blocks(input)?, fresh(input, before.first())))
    }

    /// Standard input is known again by how it begins; [`OpenFile::open`] checks the rest on its way.
    fn resume_stdin(
        &mut self,
        input: &Input,
        before: &[SourcePosition],
    ) -> Result<(Blocks, SourcePosition), SourceError> {
        let mut blocks = self.blocks(input)?;
        if self.options.stdin_name.is_none() {
            return Ok((blocks, fresh(input, before.first())));
        }
        while blocks.window().len() < HEAD_BYTES && !blocks.at_end {
            blocks.fill().map_err(|e| SourceError::new("-", e))?;
        }
        let begins_like = |p: &&SourcePosition| {
            let head = blocks.window().get(..HEAD_BYTES.min(p.bytes as usize));
            head.is_some_and(|head| digest(head) == p.head)
        };
        let position = before.iter().find(begins_like).cloned();
        if position.is_none() && !before.is_empty() {
            self.notices.push(Notice::OtherContent { file: format!("{} (standard input)", input.stream) });
        }
        Ok((blocks, position.unwrap_or_else(|| fresh(input, before.first()))))
    }

    fn blocks(&mut self, input: &Input) -> Result<Blocks, SourceError> {
        let shown = input.shown();
        let opened: Box<dyn Read + Send> = if shown == "-" {
            let stdin = self.options.stdin.take();
            stdin.ok_or_else(|| SourceError::new("-", "standard input is not at hand"))?
        } else {
            Box::new(open_regular(input)?)
        };
        Ok(Blocks::new(decompressed(opened, &shown, Caps::default())?))
    }

    fn finished(&mut self, file: &mut OpenFile) {
        let now = file.position.clone();
        if file.growth.left {
            self.left.push(file.shown.clone());
        } else if let Some(stamp) = self.stamp.take()
            && file.growth.path.metadata().is_ok_and(|m| Stamp::of(&m) == stamp)
        {
            self.seen.put(file.growth.path.clone(), stamp);
        }
        if self.fresh
            && now.bytes > 0
            && let Some(twin) = self.known.twin(&now)
        {
            let other = match twin.origin.as_str() {
                "" => twin.stream.clone(),
                origin => format!("{}/{origin}", twin.stream),
            };
            self.notices.push(Notice::SameContent { file: file.shown.clone(), other });
        }
        self.known.put(now);
    }
}

/// Opens a file that was one when it was looked for: waiting for what a pipe may send one day is no reading.
fn open_regular(input: &Input) -> Result<File, SourceError> {
    let failed = |e: std::io::Error| SourceError::new(input.shown(), e);
    if !std::fs::metadata(&input.path).map_err(failed)?.is_file() {
        return Err(SourceError::new(input.shown(), "is no file any more"));
    }
    File::open(&input.path).map_err(failed)
}

/// The start of a file nobody has read, or that comes with other content: a new stream, or within a
/// directory a new origin.
fn fresh(input: &Input, last: Option<&SourcePosition>) -> SourcePosition {
    let next = |generation: fn(&SourcePosition) -> u32| last.map_or(0, |p| generation(p) + 1);
    let inside = !input.origin.is_empty();
    SourcePosition {
        stream: input.stream.clone(),
        stream_generation: if inside { 0 } else { next(|p| p.stream_generation) },
        origin: input.origin.clone(),
        origin_generation: if inside { next(|p| p.origin_generation) } else { 0 },
        next: 0,
        bytes: 0,
        digest: String::new(),
        lines: 0,
        head: String::new(),
        reading: None,
        state: None,
        end: None,
    }
}
