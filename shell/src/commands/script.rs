//! Runs scripts: statements one after the other, up to the first failure.

use crate::outcome::{Failure, Outcome};
use crate::render::{Mode, Options, Sink, renderer};
use crate::repl::move_place;
use crate::runner::{Report, Runner};
use crate::text::lex;

/// How a script's answers are written.
pub struct Writing<'a> {
    /// The mode.
    pub mode: Mode,
    /// Its options.
    pub options: Options,
    /// Opens the output for one answer.
    pub sink: &'a dyn Fn() -> Sink,
}

/// Runs all statements of `text`; `done` hears of each.
pub fn run(
    runner: &Runner,
    text: &str,
    file: Option<&str>,
    writing: &Writing<'_>,
    done: &mut dyn FnMut(&Report),
) -> Outcome {
    let statements = lex::statements(text);
    if writing.mode.is_binary() && statements.len() > 1 {
        return Err(Failure::usage("a parquet or arrow file holds the answer of one statement")
            .hint("run one statement at a time"));
    }
    for statement in statements {
        let mut renderer = renderer(writing.mode, (writing.sink)(), &writing.options);
        let report = runner
            .run(statement.text, renderer.as_mut())
            .map_err(|f| move_place(f, text, statement.start, file))?;
        done(&report);
    }
    Ok(())
}
