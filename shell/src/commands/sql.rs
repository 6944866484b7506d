//! `asof sql`.

use super::Manner;
use super::script::{self, Writing};
use crate::args::{SqlArgs, StoreAnd};
use crate::interrupt;
use crate::outcome::{Failure, Outcome};
use crate::render::{Mode, Options, Sink};
use crate::runner::{Runner, default_mode};
use crate::store;
use crate::terminal;
use std::io::{BufWriter, IsTerminal, Read};

/// Where statements come from.
struct Source {
    text: String,
    file: Option<String>,
}

/// Runs the statements.
pub fn run(args: &SqlArgs, manner: Manner) -> Outcome {
    let given = args.command.len() + args.file.len() > 0;
    let mut places = StoreAnd::here(&args.places, 0)?;
    let here = crate::args::from_environment().is_some();
    if !given && here && args.places.len() == 1 && !crate::args::is_store(args.places[0].as_ref()) {
        places = StoreAnd::here(&args.places, 1)?;
    }
    let sources = sources(args, places.rest)?;
    let mode = mode(args, manner)?;
    interrupt::install();
    let first = sources.iter().find_map(|s| crate::text::lex::statements(&s.text).into_iter().next());
    let _made = store::made_for(&places.store, first.as_ref().map_or("", |s| s.text))?;
    let mut runner = Runner::new(store::session(&places.store, &args.param, false)?)?;
    runner.timeout = args.timeout;
    runner.progress = terminal::stderr_is_terminal() && !manner.quiet;
    let options = Options {
        null: args.null.clone(),
        header: !args.no_header,
        width: terminal::width().filter(|_| mode == Mode::Table),
        ..Options::default()
    };
    let sink = || -> Sink { Box::new(BufWriter::with_capacity(1 << 16, std::io::stdout())) };
    let writing = Writing { mode, options, sink: &sink };
    for source in &sources {
        script::run(&runner, &source.text, source.file.as_deref(), &writing, &mut |report| {
            let lines = crate::repl::footer_lines(report);
            let on_terminal = terminal::width().is_some() && mode == Mode::Table;
            lines.iter().filter(|l| on_terminal || l.starts_with("note:")).for_each(|l| manner.say(l));
        })?;
    }
    Ok(())
}

fn sources(args: &SqlArgs, mut rest: Vec<String>) -> Outcome<Vec<Source>> {
    let mut found: Vec<Source> = Vec::new();
    if rest.len() > 1 {
        return Err(Failure::usage("one text of SQL is enough")
            .hint("put it into quotes: asof sql STORE \"SELECT 1\""));
    }
    let by_option = args.command.len() + args.file.len() > 0;
    match rest.pop() {
        Some(_) if by_option => {
            return Err(
                Failure::usage("SQL is given twice").hint("either behind the store, or with -c or -f")
            );
        }
        Some(text) => found.push(Source { text, file: None }),
        None if !by_option => found.push(Source { text: standard_input()?, file: None }),
        None => {}
    }
    found.extend(args.command.iter().map(|text| Source { text: text.clone(), file: None }));
    for file in &args.file {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| {
            let mut failure = Failure::io(&format!("cannot read {name}"), &e);
            failure.exit = crate::outcome::Exit::Usage;
            failure
        })?;
        found.push(Source { text, file: Some(name) });
    }
    Ok(found)
}

fn standard_input() -> Outcome<String> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage("no SQL is given")
            .hint("asof sql STORE \"SELECT ...\"")
            .hint("asof STORE opens the shell"));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| Failure::io("cannot read standard input", &e))?;
    Ok(text)
}

fn mode(args: &SqlArgs, manner: Manner) -> Outcome<Mode> {
    let terminal = terminal::stdout_is_terminal();
    let mode = match args.output {
        Some(mode) => mode,
        None if manner.json => Mode::Json,
        None => default_mode(terminal),
    };
    if mode.is_binary() && terminal {
        return Err(Failure::usage("these bytes would spoil the terminal")
            .hint("write them to a file: ... > out.parquet"));
    }
    Ok(mode)
}
