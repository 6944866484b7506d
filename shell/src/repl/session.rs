//! What the shell does with a line: meta commands, statements, answers and their footers.

use super::editor::Assistant;
use super::meta::{self, Action};
use super::output::Kept;
use super::{clock, footer};
use crate::args::duration;
use crate::backend::Clocks;
use crate::outcome::{Exit, Failure, Outcome, Place};
use crate::render::{Mode, Sink};
use crate::runner::{Report, Runner};
use crate::text::lex;
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
    /// Lines of the terminal, asked for each answer; `None` = answers are never paged.
    pub lines: Box<dyn Fn() -> Option<usize> + Send>,
    /// The command line of the pager.
    pub pager: Option<String>,
    /// Whether each answer has its rows, time and clocks under it.
    pub footers: bool,
    /// Whether colours may be used.
    pub colour: bool,
    /// The clock, microseconds since 1970.
    pub now: Box<dyn Fn() -> i64 + Send>,
}

/// How deep files may include files.
const INCLUDES_MAX: usize = 16;

/// The state of the shell.
pub struct Shell {
    pub(super) runner: Runner,
    pub(super) screen: Screen,
    name: String,
    pub(super) mode: Mode,
    pub(super) expanded: bool,
    timing: bool,
    pub(super) null: Option<String>,
    pub(super) file: Option<PathBuf>,
    pub(super) paged: bool,
    pub(super) rows_max: Option<usize>,
    pub(super) width: Option<usize>,
    /// The last answer, for `\\last`.
    pub(super) last: Kept,
    /// Steps of the tour that were shown.
    pub(super) tour: usize,
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
            paged: true,
            rows_max: None,
            width: None,
            last: Kept::default(),
            tour: 0,
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

    pub(super) fn statement(&mut self, text: &str) -> Outcome {
        self.asked(text).map(|_| ())
    }

    /// Runs a statement and shows its answer with what is said under it.
    pub(super) fn asked(&mut self, text: &str) -> Outcome<Report> {
        let report = self.answer(text)?;
        let told =
            |line: &&String| self.screen.footers || line.starts_with("note:") || line.starts_with("empty:");
        let lines = footer::lines(&report, self.timing);
        let lines: Vec<&String> = lines.iter().filter(told).collect();
        lines.into_iter().for_each(|line| (self.screen.remarks)(line));
        Ok(report)
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
            Action::Diff => self.diff(rest)?,
            Action::Why => self.why(rest)?,
            Action::Tour => self.tour(rest)?,
            Action::Last => self.show_last()?,
            Action::Pager => self.pager(rest)?,
            Action::MaxRows => self.max_rows(rest)?,
            Action::Width => self.set_width(rest)?,
        }
        Ok(Step::Go)
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
            self.runner.run(statement, &mut super::output::Collect::default())?;
        }
        (self.screen.remarks)(&moved.echo);
        Ok(())
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
