//! The interactive shell.

mod clock;
mod complete;
mod editor;
mod explain;
mod footer;
mod highlight;
pub mod history;
mod inspect;
pub mod meta;
mod moments;
mod output;
pub mod pager;
mod rectangles;
mod session;
#[cfg(test)]
mod session_tests;
pub mod timeline;
mod tour;

pub use session::{Screen, Shell, Step, move_place};

use crate::interrupt;
use crate::outcome::{Failure, Outcome};
use crate::terminal;
use editor::Line;
use std::io::IsTerminal;

/// Reads and runs until Ctrl-D or `\q`. Errors are shown and never end the shell.
pub fn run(mut shell: Shell, title: Option<&str>) -> Outcome {
    interrupt::install();
    let mut editor = editor::open(shell.helper())?;
    if let Some(title) = title {
        terminal::err(&format!("{title}\n"));
    }
    loop {
        interrupt::clear();
        editor.refresh(shell.helper());
        match editor.read(&shell.prompt())? {
            Line::Text(text) => {
                interrupt::clear();
                match shell.handle(&text) {
                    Ok(Step::Go) => {}
                    Ok(Step::Quit) => break,
                    // The pager was left before the end.
                    Err(failure) if failure.closed_pipe => {}
                    Err(failure) => show(&failure),
                }
            }
            Line::Cleared => {}
            Line::End => break,
        }
    }
    Ok(())
}

/// The lines under an answer, with its time.
pub fn footer_lines(report: &crate::runner::Report) -> Vec<String> {
    footer::lines(report, true)
}

fn show(failure: &Failure) {
    terminal::err(&failure.text(colour()));
}

/// Whether stderr takes colours.
pub fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
