//! The line editor: rustyline with our validator, completer and colours.

use super::{complete, highlight, history, meta};
use crate::backend::Names;
use crate::outcome::{Failure, Outcome};
use crate::text::lex;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper, Hinter};
use std::borrow::Cow;
use std::path::PathBuf;

/// What the editor knows while a line is typed.
#[derive(Clone, Default, Helper, Hinter)]
pub struct Assistant {
    /// The catalog as of the last prompt.
    pub names: Names,
    /// Whether to use colours.
    pub colour: bool,
    /// Whether a clock is moved.
    pub travelling: bool,
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete::complete(&line[..pos], &self.names))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        Ok(match meta::is_meta(input) || lex::is_complete(input) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        match self.colour {
            true => highlight::paint(line).into(),
            false => line.into(),
        }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        match (self.colour, self.travelling) {
            (false, _) => prompt.into(),
            (true, false) => format!("\x1b[1m{prompt}\x1b[0m").into(),
            (true, true) => format!("\x1b[1;35m{prompt}\x1b[0m").into(),
        }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        self.colour && kind != CmdKind::MoveCursor
    }
}

/// What the editor read.
pub enum Line {
    /// Something to run.
    Text(String),
    /// Ctrl-C: the line is gone, the shell stays.
    Cleared,
    /// Ctrl-D.
    End,
}

/// An open editor.
pub struct Terminal {
    editor: Editor<Assistant, DefaultHistory>,
    file: Option<PathBuf>,
}

/// Opens the editor with the history of earlier sessions.
pub fn open(assistant: Assistant) -> Outcome<Terminal> {
    let failed = |e: ReadlineError| Failure::usage(format!("cannot edit lines here: {e}"));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(false)
        .history_ignore_space(true)
        .max_history_size(10_000)
        .map_err(failed)?
        .bracketed_paste(true)
        .build();
    let mut editor = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(assistant));
    let file = history::path(|name| std::env::var_os(name).map(PathBuf::from));
    let file = file.filter(|f| match history::prepare(f).and_then(|()| std::fs::metadata(f)) {
        Ok(_) => true,
        Err(e) => {
            crate::terminal::err(&format!("note: no history: {}: {e}\n", f.display()));
            false
        }
    });
    if let Some(file) = &file {
        // An empty or foreign file is no reason not to start.
        let _ = editor.load_history(file);
    }
    Ok(Terminal { editor, file })
}

impl Terminal {
    /// Takes the catalog and the clocks of now.
    pub fn refresh(&mut self, assistant: Assistant) {
        self.editor.set_helper(Some(assistant));
    }

    /// Reads one meta command, or statements up to a `;`.
    pub fn read(&mut self, prompt: &str) -> Outcome<Line> {
        match self.editor.readline(prompt) {
            Ok(text) => {
                self.remember(&text);
                Ok(Line::Text(text))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Line::Cleared),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(e) => Err(Failure::usage(format!("cannot read the terminal: {e}"))),
        }
    }

    fn remember(&mut self, text: &str) {
        if !history::may_keep(text) || !matches!(self.editor.add_history_entry(text), Ok(true)) {
            return;
        }
        if let Some(file) = &self.file
            && self.editor.append_history(file).is_err()
        {
            self.file = None;
        }
    }
}
