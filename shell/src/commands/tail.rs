//! `asof tail`: the change feed of a table, one JSON object a line.

use super::Manner;
use crate::args::{StoreAnd, TailArgs};
use crate::outcome::{Failure, Outcome};
use crate::render::{Mode, Options, Sink, renderer};
use crate::runner::Runner;
use crate::{interrupt, store};
use std::io::BufWriter;
use std::time::Duration;

/// Between two looks for new commits.
const LOOK: Duration = Duration::from_millis(250);
/// Between two looks for signals.
const NAP: Duration = Duration::from_millis(25);

/// Writes what the commits changed, and with `--follow` what further ones do until a signal comes.
pub fn run(args: &TailArgs, manner: Manner) -> Outcome {
    let places = StoreAnd::here(&args.places, 1)?;
    let [table] = &places.rest[..] else {
        return Err(Failure::usage("no table is named").hint("asof tail STORE TABLE"));
    };
    interrupt::install();
    let mut from = match &args.from {
        None => "1".to_owned(),
        Some(text) if text.parse::<u64>().is_ok() => text.clone(),
        Some(text) => quoted(text, '\''),
    };
    let runner = Runner::new(store::session(&places.store, &[], false)?)?;
    let last = || runner.backend().last_commit().map_or(0, |(commit, _)| commit);
    loop {
        let to = last();
        let beyond = from.parse::<u64>().is_ok_and(|from| from > to);
        match (beyond, args.follow) {
            // There is nothing yet.
            (true, true) => {}
            // The library says whether that is the next commit or a wrong number.
            (true, false) => feed(&runner, table, &from)?,
            (false, _) => {
                feed(&runner, table, &format!("{from}, {to}"))?;
                from = (to + 1).to_string();
            }
        }
        if !args.follow || !grown(&|| last() > to) {
            break;
        }
    }
    if args.follow {
        manner.say("stopped");
    }
    Ok(())
}

/// Writes the changes of some commits.
fn feed(runner: &Runner, table: &str, commits: &str) -> Outcome {
    let names = runner.backend().names();
    let key = names.table(table).map(|t| t.key()).unwrap_or_default();
    let key: String = key.iter().map(|c| format!("{}, ", quoted(&c.name, '"'))).collect();
    let statement = format!(
        "SELECT * FROM changes({}, {commits}) ORDER BY \"_commit_version\", {key}\"_change_type\" DESC",
        quoted(table, '\'')
    );
    let sink: Sink = Box::new(BufWriter::with_capacity(1 << 16, std::io::stdout()));
    let mut out = renderer(Mode::Ndjson, sink, &Options::default());
    runner.run(&statement, out.as_mut()).map(drop).map_err(plain)
}

/// The caller has not seen the statement.
fn plain(failure: Failure) -> Failure {
    let message = failure.message.strip_prefix("changes(): ").unwrap_or(&failure.message).to_owned();
    Failure { place: None, message, ..failure }
}

fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}

/// Waits until there are further commits; false if a signal came first.
fn grown(more: &dyn Fn() -> bool) -> bool {
    loop {
        let mut waited = Duration::ZERO;
        while waited < LOOK {
            if interrupt::count() > 0 {
                return false;
            }
            std::thread::sleep(NAP);
            waited += NAP;
        }
        if more() {
            return true;
        }
    }
}
