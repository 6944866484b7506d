//! Where answers go and how: the screen, through the pager or not, a file, a mode; and the last answer once more.

use super::pager::Paged;
use super::session::Shell;
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::{Mode, Options, Renderer, Sink, renderer};
use crate::runner::Report;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use asofdb::near::nearest;
use std::io::Write;
use std::path::PathBuf;

/// Bytes of the last answer that are kept.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Lines of the screen that an answer leaves to the prompt and the footer.
const LINES_BESIDE: usize = 3;

impl Shell {
    /// Runs a statement and shows its answer.
    pub(super) fn answer(&mut self, text: &str) -> Outcome<Report> {
        let on_screen = self.file.is_none();
        let mode = if self.expanded && on_screen { Mode::Vertical } else { self.mode };
        let options = self.options(on_screen);
        let mut kept = Kept::default();
        let mut shown = Keeping { shown: renderer(mode, self.sink()?, &options), kept: &mut kept };
        let report = self.runner.run(text, &mut shown);
        drop(shown);
        if kept.schema.is_some() {
            self.last = kept;
        }
        report
    }

    /// Whether answers are tables for people to look at.
    pub(super) fn is_for_people(&self) -> bool {
        self.file.is_none() && (self.mode == Mode::Table || self.expanded)
    }

    fn options(&self, on_screen: bool) -> Options {
        let screen = if on_screen { (self.screen.width)() } else { None };
        let width = screen.map(|columns| self.width.unwrap_or(columns));
        let usual = Options::default();
        Options { null: self.null.clone(), width, rows_max: self.rows_max.unwrap_or(usual.rows_max), ..usual }
    }

    /// Answers of text modes are appended, so that one file takes a session; Parquet and Arrow files
    /// hold one answer each, the last.
    fn sink(&self) -> Outcome<Sink> {
        let Some(file) = &self.file else { return Ok(self.screen_sink()) };
        let mut open = std::fs::OpenOptions::new();
        match self.mode.is_binary() {
            true => open.write(true).create(true).truncate(true),
            false => open.append(true).create(true),
        };
        let opened =
            open.open(file).map_err(|e| Failure::io(&format!("cannot write {}", file.display()), &e))?;
        Ok(Box::new(std::io::BufWriter::new(opened)))
    }

    /// The screen, with the pager for what does not fit.
    fn screen_sink(&self) -> Sink {
        let plain = (self.screen.answers)();
        match (&self.screen.pager, (self.screen.lines)().filter(|_| self.paged)) {
            (Some(command), Some(lines)) => {
                let columns = (self.screen.width)().unwrap_or(usize::MAX);
                let screen = (lines.saturating_sub(LINES_BESIDE).max(1), columns);
                Box::new(Paged::new(command, screen, plain))
            }
            _ => plain,
        }
    }

    pub(super) fn print(&mut self, text: &str) -> Outcome {
        let mut out = self.screen_sink();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(|e| Failure::io("cannot write", &e))
    }

    /// The last answer with all its rows and columns.
    pub(super) fn show_last(&mut self) -> Outcome {
        let Kept { schema: Some(schema), batches, cut, .. } = &self.last else {
            return Err(Failure::new(Exit::Failed, "there is no answer yet"));
        };
        let on_screen = self.file.is_none();
        let mode = if self.expanded && on_screen { Mode::Vertical } else { self.mode };
        let options = Options { null: self.null.clone(), ..Options::default() };
        let mut all = renderer(mode, self.sink()?, &options);
        let write = |e: std::io::Error| Failure::io("cannot write the answer", &e);
        all.begin(schema).map_err(write)?;
        batches.iter().try_for_each(|batch| all.batch(batch)).map_err(write)?;
        all.end().map_err(write)?;
        drop(all);
        if *cut {
            let note = "note: only the first 64 MiB of that answer were kept; \\o FILE, and ask again, takes all of it";
            (self.screen.remarks)(note);
        }
        Ok(())
    }

    pub(super) fn pager(&mut self, rest: &str) -> Outcome {
        match rest {
            "on" | "off" => self.paged = rest == "on",
            "" => self.paged = !self.paged,
            command => {
                self.screen.pager = Some(command.trim_matches('\'').to_owned());
                self.paged = true;
            }
        }
        let state = match (&self.screen.pager, self.paged) {
            (_, false) => "the pager is off".to_owned(),
            (Some(command), true) => format!("answers that do not fit go through: {command}"),
            (None, true) => "there is no pager: \\pager COMMAND names one".to_owned(),
        };
        (self.screen.remarks)(&state);
        Ok(())
    }

    pub(super) fn max_rows(&mut self, rest: &str) -> Outcome {
        self.rows_max = number(rest, "\\maxrows 100, \\maxrows all")?;
        (self.screen.remarks)(&match self.rows_max {
            None => format!("tables show up to {} rows", Options::default().rows_max),
            Some(usize::MAX) => "tables show all rows".to_owned(),
            Some(n) => format!("tables show up to {n} rows"),
        });
        Ok(())
    }

    pub(super) fn set_width(&mut self, rest: &str) -> Outcome {
        self.width = number(rest, "\\width 200, \\width all")?;
        (self.screen.remarks)(&match self.width {
            None => "tables are as wide as the screen".to_owned(),
            Some(usize::MAX) => "tables are as wide as they are".to_owned(),
            Some(n) => format!("tables are up to {n} columns wide"),
        });
        Ok(())
    }

    pub(super) fn output(&mut self, rest: &str) -> Outcome {
        if rest.is_empty() {
            self.file = None;
            self.mode = crate::runner::default_mode((self.screen.width)().is_some());
            (self.screen.remarks)("answers go to the screen, as at first");
        } else if let Some(mode) = Mode::named(rest) {
            if mode.is_binary() && self.file.is_none() {
                return Err(Failure::new(Exit::Failed, format!("{rest} would spoil the screen"))
                    .hint(format!("first \\o FILE, then \\o {rest}")));
            }
            self.mode = mode;
            (self.screen.remarks)(&format!("answers are written as {rest}"));
        } else {
            if !rest.contains(['.', '/'])
                && let Some(near) = nearest(rest, Mode::NAMES.iter().map(|(name, _)| *name))
            {
                return Err(Failure::new(Exit::Failed, format!("there is no mode {rest}"))
                    .hint(format!("did you mean \\o {near}? a file of that name is \\o ./{rest}")));
            }
            self.file = Some(PathBuf::from(rest.trim_matches('\'')));
            self.sink()?;
            (self.screen.remarks)(&format!("answers go to {rest}; \\o alone brings them back"));
        }
        Ok(())
    }
}

/// A number of rows or columns; nothing is the usual one.
fn number(text: &str, example: &str) -> Outcome<Option<usize>> {
    match text {
        "" => Ok(None),
        "all" | "0" => Ok(Some(usize::MAX)),
        text => text.parse().map(Some).map_err(|_| {
            Failure::new(Exit::Failed, format!("'{text}' is not a number"))
                .hint(format!("for example {example}"))
        }),
    }
}

/// Keeps an answer in memory.
#[derive(Default)]
pub struct Collect(pub Vec<RecordBatch>);

impl Renderer for Collect {
    fn begin(&mut self, _: &SchemaRef) -> std::io::Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> std::io::Result<()> {
        self.0.push(batch.clone());
        Ok(())
    }

    fn end(&mut self) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// An answer that was shown.
#[derive(Default)]
pub struct Kept {
    schema: Option<SchemaRef>,
    batches: Vec<RecordBatch>,
    bytes: usize,
    cut: bool,
}

/// Shows an answer and keeps it.
struct Keeping<'a> {
    shown: Box<dyn Renderer>,
    kept: &'a mut Kept,
}

impl Renderer for Keeping<'_> {
    fn begin(&mut self, schema: &SchemaRef) -> std::io::Result<()> {
        self.kept.schema = Some(schema.clone());
        self.shown.begin(schema)
    }

    fn batch(&mut self, batch: &RecordBatch) -> std::io::Result<()> {
        let bytes = batch.get_array_memory_size();
        self.kept.cut |= self.kept.bytes + bytes > KEPT_BYTES_MAX;
        if !self.kept.cut {
            self.kept.bytes += bytes;
            self.kept.batches.push(batch.clone());
        }
        self.shown.batch(batch)
    }

    fn end(&mut self) -> std::io::Result<Vec<String>> {
        self.shown.end()
    }
}
