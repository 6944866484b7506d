//! What the shell does with a line: meta commands, statements, answers and their footers.

use super::editor::Assistant;
use super::meta::{self, Action};
use super::rectangles::{self, Rectangles};
use super::timeline::{self, Canvas, Rectangle};
use super::{clock, footer};
use crate::args::duration;
use crate::backend::{Clocks, TableNames};
use crate::outcome::{Exit, Failure, Outcome, Place};
use crate::render::{Mode, Options, Renderer, Sink, renderer};
use crate::runner::Runner;
use crate::text::lex;
use asofdb::near::nearest;
use std::io::Write;
use std::path::PathBuf;

/// Whether the shell goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It does.
    Go,
    /// It does not.
    Quit,
}

/// Where answers and remarks go.
pub struct Screen {
    /// Opens stdout for one answer.
    pub answers: Box<dyn Fn() -> Sink + Send>,
    /// Footers, echoes and notes.
    pub remarks: Box<dyn FnMut(&str) + Send>,
    /// Columns of the terminal, asked for each answer; `None` = not a terminal.
    pub width: Box<dyn Fn() -> Option<usize> + Send>,
    /// Whether colours may be used.
    pub colour: bool,
    /// The clock, microseconds since 1970.
    pub now: Box<dyn Fn() -> i64 + Send>,
}

/// How deep files may include files.
const INCLUDES_MAX: usize = 16;

/// The state of the shell.
pub struct Shell {
    runner: Runner,
    screen: Screen,
    name: String,
    mode: Mode,
    expanded: bool,
    timing: bool,
    null: Option<String>,
    file: Option<PathBuf>,
    includes: usize,
}

impl Shell {
    /// A shell for the store called `name`.
    pub fn new(runner: Runner, screen: Screen, name: &str) -> Shell {
        let mode = crate::runner::default_mode((screen.width)().is_some());
        Shell {
            runner,
            screen,
            name: name.to_owned(),
            mode,
            expanded: false,
            timing: true,
            null: None,
            file: None,
            includes: 0,
        }
    }

    /// The prompt, with the clocks that are set.
    pub fn prompt(&self) -> String {
        format!("{}{}> ", self.name, clock::for_prompt(&self.runner.backend().clocks()))
    }

    /// What the editor needs to know.
    pub fn helper(&self) -> Assistant {
        Assistant {
            names: self.runner.backend().names(),
            colour: self.screen.colour,
            travelling: self.runner.backend().clocks() != Clocks::default(),
        }
    }

    /// Runs a line: a meta command, or any number of statements.
    ///
    /// # Errors
    /// The first failure; what stood before it has been done.
    pub fn handle(&mut self, line: &str) -> Outcome<Step> {
        match meta::split(line) {
            Some(typed) => self.meta(typed.name, typed.rest),
            None => self.part_of(line, 0, line.len(), None).map(|()| Step::Go),
        }
    }

    fn statement(&mut self, text: &str) -> Outcome {
        let out = self.sink()?;
        let on_screen = self.file.is_none();
        let mode = if self.expanded && on_screen { Mode::Vertical } else { self.mode };
        let options = self.options(on_screen);
        let report = self.runner.run(text, renderer(mode, out, &options).as_mut())?;
        for line in footer::lines(&report, self.timing) {
            (self.screen.remarks)(&line);
        }
        Ok(())
    }

    fn options(&self, on_screen: bool) -> Options {
        let width = if on_screen { (self.screen.width)() } else { None };
        Options { null: self.null.clone(), width, ..Options::default() }
    }

    /// Answers of text modes are appended, so that one file takes a session; Parquet and Arrow files
    /// hold one answer each, the last.
    fn sink(&self) -> Outcome<Sink> {
        let Some(file) = &self.file else { return Ok((self.screen.answers)()) };
        let mut open = std::fs::OpenOptions::new();
        match self.mode.is_binary() {
            true => open.write(true).create(true).truncate(true),
            false => open.append(true).create(true),
        };
        let opened =
            open.open(file).map_err(|e| Failure::io(&format!("cannot write {}", file.display()), &e))?;
        Ok(Box::new(std::io::BufWriter::new(opened)))
    }

    fn meta(&mut self, name: &str, rest: &str) -> Outcome<Step> {
        let found = meta::find(name)
            .map_err(|hint| Failure::new(Exit::Failed, format!("there is no command \\{name}")).hint(hint))?;
        match found.action {
            Action::Quit => return Ok(Step::Quit),
            Action::Help => self.print(&meta::help(rest))?,
            Action::Describe => self.describe(rest)?,
            Action::Expand => self.toggle(|s| &mut s.expanded, "one column a line"),
            Action::Timing => self.toggle(|s| &mut s.timing, "timing"),
            Action::Output => self.output(rest)?,
            Action::Null => self.null = (!rest.is_empty()).then(|| rest.trim_matches('\'').to_owned()),
            Action::Timeout => self.timeout(rest)?,
            Action::Include => self.include(rest)?,
            Action::At => self.at(rest)?,
            Action::History => self.history(rest)?,
            Action::Timeline => self.timeline(rest)?,
        }
        Ok(Step::Go)
    }

    fn print(&mut self, text: &str) -> Outcome {
        let mut out = (self.screen.answers)();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(|e| Failure::io("cannot write", &e))
    }

    fn toggle(&mut self, which: impl Fn(&mut Shell) -> &mut bool, what: &str) {
        let setting = which(self);
        *setting = !*setting;
        let state = if *setting { "on" } else { "off" };
        (self.screen.remarks)(&format!("{what} is {state}"));
    }

    fn timeout(&mut self, rest: &str) -> Outcome {
        let wrong = |e| Failure::new(Exit::Failed, e).hint("\\timeout 30s");
        self.runner.timeout = if rest.is_empty() { None } else { Some(duration(rest).map_err(wrong)?) };
        (self.screen.remarks)(&match rest {
            "" => "statements may take as long as they need".to_owned(),
            time => format!("statements end after {time}"),
        });
        Ok(())
    }

    fn output(&mut self, rest: &str) -> Outcome {
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

    fn include(&mut self, rest: &str) -> Outcome {
        let file = rest.trim_matches('\'');
        if file.is_empty() {
            return Err(Failure::new(Exit::Failed, "no file is named").hint("\\i report.sql"));
        }
        if self.includes == INCLUDES_MAX {
            return Err(Failure::new(Exit::Failed, format!("{file}: files include each other too deeply")));
        }
        let text =
            std::fs::read_to_string(file).map_err(|e| Failure::io(&format!("cannot read {file}"), &e))?;
        self.includes += 1;
        let done = self.lines_of(&text, Some(file)).map(|_| ());
        self.includes -= 1;
        done
    }

    /// A file may hold meta commands too, each on a line of its own between statements.
    pub fn lines_of(&mut self, text: &str, file: Option<&str>) -> Outcome<Step> {
        let mut from = 0;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let between = lex::is_complete(&text[from..at]);
            if between && let Some(typed) = meta::split(line) {
                self.part_of(text, from, at, file)?;
                if self.meta(typed.name, typed.rest)? == Step::Quit {
                    return Ok(Step::Quit);
                }
                from = at + line.len();
            }
            at += line.len();
        }
        self.part_of(text, from, text.len(), file).map(|()| Step::Go)
    }

    fn part_of(&mut self, text: &str, from: usize, to: usize, file: Option<&str>) -> Outcome {
        for statement in lex::statements(&text[from..to]) {
            self.statement(statement.text).map_err(|f| move_place(f, text, from + statement.start, file))?;
        }
        Ok(())
    }

    fn at(&mut self, rest: &str) -> Outcome {
        if rest.is_empty() {
            let clocks = clock::describe(&self.runner.backend().clocks());
            (self.screen.remarks)(&clocks);
            return Ok(());
        }
        let moved = clock::plan(rest, (self.screen.now)(), self.runner.backend().as_ref())?;
        for statement in &moved.statements {
            self.runner.run(statement, &mut Collect::default())?;
        }
        (self.screen.remarks)(&moved.echo);
        Ok(())
    }

    fn describe(&mut self, rest: &str) -> Outcome {
        let names = self.runner.backend().names();
        let mut text = String::new();
        if rest.is_empty() {
            for table in &names.tables {
                let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
                text.push_str(&format!("{}  ({})\n", table.name, columns.join(", ")));
            }
            if names.tables.is_empty() {
                text.push_str("no tables yet; take events in with: asof ingest STORE SOURCE\n");
            }
        } else {
            let table = self.table(rest.trim_matches('"'))?;
            text.push_str(&format!("{}: {}\n", table.name, table.axes));
            let width = table.columns.iter().map(|c| c.name.len()).max().unwrap_or(0);
            for column in &table.columns {
                let key = column.key.map(|n| format!("  key {n}")).unwrap_or_default();
                text.push_str(&format!("  {:<width$}  {}{key}\n", column.name, column.ty));
            }
        }
        let shown: String =
            text.lines().map(|l| crate::render::escape::visible(l).into_owned() + "\n").collect();
        self.print(&shown)
    }

    fn table(&self, name: &str) -> Outcome<TableNames> {
        let names = self.runner.backend().names();
        names.table(name).cloned().ok_or_else(|| {
            let failure = Failure::new(Exit::Failed, format!("there is no table {name}"));
            match nearest(name, names.tables.iter().map(|t| t.name.as_str())) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint("\\d lists the tables"),
            }
        })
    }

    /// The table and the condition of `TABLE KEY...`.
    fn key(&self, rest: &str, command: &str) -> Outcome<(TableNames, Vec<String>, String)> {
        let wrong = |e| {
            Failure::new(Exit::Failed, e)
                .hint(format!("\\{command} TABLE KEY..., for example \\{command} orders 17"))
        };
        let mut words = meta::words(rest).map_err(wrong)?;
        if words.is_empty() {
            return Err(wrong("no table is named".into()));
        }
        let table = self.table(&words.remove(0))?;
        let key = table.key();
        if key.is_empty() {
            return Err(Failure::new(Exit::Failed, format!("table {} has no key", table.name)));
        }
        if key.len() != words.len() {
            let columns: Vec<&str> = key.iter().map(|c| c.name.as_str()).collect();
            return Err(wrong(format!(
                "the key of {} is ({}): {} wanted",
                table.name,
                columns.join(", "),
                key.len()
            )));
        }
        let parts: Vec<String> = key
            .iter()
            .zip(&words)
            .map(|(c, word)| format!("{} = {}", identifier(&c.name), literal(&c.ty, word)))
            .collect();
        let condition = parts.join(" AND ");
        Ok((table, words, condition))
    }

    fn history(&mut self, rest: &str) -> Outcome {
        let (table, _, condition) = self.key(rest, "history")?;
        let name = table.name.replace('\'', "''");
        let columns: Vec<String> = table.columns.iter().map(|c| identifier(&c.name)).collect();
        self.statement(&format!(
            "SELECT \"_operation\", \"__START_AT\", {}, \"__COMMIT_SEQ\" FROM history('{name}') WHERE {condition}",
            columns.join(", ")
        ))
    }

    fn timeline(&mut self, rest: &str) -> Outcome {
        let (table, key, condition) = self.key(rest, "timeline")?;
        let statement = format!(
            "SELECT * FROM {} FOR VALID_TIME ALL FOR SYSTEM_TIME ALL WHERE {condition} \
             ORDER BY \"__START_AT\" NULLS FIRST, \"__SYSTEM_START_AT\" NULLS FIRST",
            identifier(&table.name)
        );
        let mut rows = Collect::default();
        let report = self.runner.run(&statement, &mut rows)?;
        let found = rectangles::of(&rows.0, &table)?;
        let text = self.drawing(&found.list, &found);
        self.print(&format!("{} {}\n{text}", table.name, crate::render::escape::visible(&key.join(" "))))?;
        if found.list.is_empty() {
            (self.screen.remarks)(report.summary.why_empty.as_deref().unwrap_or("this key was never seen"));
        }
        Ok(())
    }

    fn drawing(&self, list: &[Rectangle], axes: &Rectangles) -> String {
        let of = |ends: fn(&Rectangle) -> (i64, i64)| list.iter().map(ends).collect::<Vec<_>>();
        let valid = Rectangles::label(&of(|r| r.valid), axes.valid_is_instant);
        let system = Rectangles::label(&of(|r| r.system), axes.system_is_instant);
        let width = (self.screen.width)().unwrap_or(80).max(40);
        timeline::draw(
            list,
            &Canvas { width, colour: self.screen.colour, valid_label: &valid, system_label: &system },
        )
    }
}

/// A name in SQL.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A key value in SQL: a bare number where the column holds numbers.
fn literal(ty: &str, word: &str) -> String {
    let is_number = word.parse::<f64>().is_ok_and(f64::is_finite)
        && word.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'.');
    match is_number && (ty == "bigint" || ty == "double" || ty.starts_with("decimal")) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "''")),
    }
}

/// Places count from the statement; people count from the script.
pub fn move_place(mut failure: Failure, script: &str, start: usize, file: Option<&str>) -> Failure {
    if let Some(place) = &mut failure.place {
        let base = Place::in_text(script, start, file);
        if place.line == 1 {
            place.column += base.column - 1;
        }
        place.line += base.line - 1;
        place.text = script.lines().nth(place.line - 1).unwrap_or_default().to_owned();
        place.file = file.map(str::to_owned);
    } else if let Some(file) = file {
        failure.place = Some(Place::in_text(script, start, Some(file)));
    }
    failure
}

/// Keeps an answer in memory.
#[derive(Default)]
pub struct Collect(pub Vec<arrow::array::RecordBatch>);

impl Renderer for Collect {
    fn begin(&mut self, _: &arrow::datatypes::SchemaRef) -> std::io::Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &arrow::array::RecordBatch) -> std::io::Result<()> {
        self.0.push(batch.clone());
        Ok(())
    }

    fn end(&mut self) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}
