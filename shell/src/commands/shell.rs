//! `asof shell`, and `asof STORE`.

use super::Manner;
use crate::outcome::Outcome;
use crate::repl::{self, Screen, Shell, Step};
use crate::runner::Runner;
use crate::{interrupt, store, terminal};
use asofdb::time::format_instant;
use std::io::Read;
use std::path::Path;

/// Opens the shell; where standard input is no terminal it runs what comes in.
pub fn run(path: &Path, manner: Manner) -> Outcome {
    let backend = store::session(path, &[], true)?;
    let name = store_name(path);
    let title = match backend.last_commit() {
        Some((seq, at)) => format!(
            "asof {}: {}, commit {seq} ({})\n\\? lists the commands, Ctrl-D leaves",
            env!("CARGO_PKG_VERSION"),
            path.display(),
            format_instant(at)
        ),
        None => format!(
            "asof {}: {} is empty\n\\? lists the commands, Ctrl-D leaves",
            env!("CARGO_PKG_VERSION"),
            path.display()
        ),
    };
    let mut runner = Runner::new(backend)?;
    runner.progress = terminal::stderr_is_terminal() && !manner.quiet;
    let screen = Screen {
        answers: Box::new(|| Box::new(std::io::BufWriter::new(std::io::stdout()))),
        remarks: Box::new(move |line| manner.say(line)),
        width: Box::new(terminal::width),
        lines: Box::new(|| terminal::lines().filter(|_| terminal::stdin_is_terminal())),
        pager: repl::pager::command(|name| std::env::var(name).ok(), repl::pager::has_less),
        footers: terminal::stdout_is_terminal() || terminal::stdin_is_terminal(),
        colour: repl::colour() && terminal::stdout_is_terminal(),
        now: Box::new(store::now),
    };
    let mut shell = Shell::new(runner, screen, &name);
    if terminal::stdin_is_terminal() {
        return repl::run(shell, if manner.quiet { None } else { Some(&title) });
    }
    interrupt::install();
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| crate::outcome::Failure::io("cannot read standard input", &e))?;
    shell.lines_of(&text, None).map(|_: Step| ())
}

/// The name in the prompt: the directory without `.asof`.
fn store_name(path: &Path) -> String {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = full.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_else(|| "asof".into());
    crate::render::escape::visible(name.trim_end_matches(".asof")).into_owned()
}
