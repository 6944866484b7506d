//! `asof quarantine`.

use super::{Manner, print, print_json};
use crate::args::{QuarantineCommand, StoreAnd};
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::escape::visible;
use crate::store;
use asofdb_storage::engine::Quarantined;
use asofdb_storage::time::CommitSeq;
use std::fmt::Write;
use std::path::Path;

/// Runs the subcommand.
pub fn run(command: &QuarantineCommand, manner: Manner) -> Outcome {
    match command {
        QuarantineCommand::List { store } => list(store.path()?, manner),
        QuarantineCommand::Show { places } => {
            let places = StoreAnd::here(places, 1)?;
            let number = places.rest.first().ok_or_else(|| {
                Failure::usage("no message is named")
                    .hint("asof quarantine show STORE 1; the list has the numbers")
            })?;
            show(&places.store, number, manner)
        }
        QuarantineCommand::Replay(args) => replay(args, manner),
    }
}

fn messages(path: &Path) -> Outcome<Vec<(CommitSeq, Quarantined)>> {
    store::reader(path)?.quarantine().map_err(|e| store::failure(&e))
}

fn list(path: &Path, manner: Manner) -> Outcome {
    let messages = messages(path)?;
    if manner.json {
        let all: Vec<_> = messages.iter().enumerate().map(|(i, (commit, m))| json(i, *commit, m)).collect();
        return print_json(&serde_json::Value::from(all));
    }
    let mut out = String::new();
    for (i, (commit, m)) in messages.iter().enumerate() {
        let table = m.table.as_deref().map(|t| format!(" table {t}:")).unwrap_or_default();
        let _ = writeln!(
            out,
            "{:>4}  commit {commit}  {}:{} {}",
            i + 1,
            visible(&store::place_of(m)),
            visible(&table),
            visible(&m.reason)
        );
    }
    match messages.is_empty() {
        true => manner.say("the quarantine is empty"),
        false => {
            manner.say(&format!("asof quarantine show {} NUMBER shows a message as it came", path.display()))
        }
    }
    print(&out)
}

fn json(i: usize, commit: CommitSeq, message: &Quarantined) -> serde_json::Value {
    let mut value = serde_json::to_value(message).unwrap_or_default();
    value["number"] = (i + 1).into();
    value["commit"] = commit.0.into();
    value
}

fn show(path: &Path, number: &str, manner: Manner) -> Outcome {
    let messages = messages(path)?;
    let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let Some((i, (commit, m))) = index.and_then(|i| Some((i, messages.get(i)?))) else {
        let have = messages.len();
        return Err(Failure::new(Exit::Failed, format!("there is no message {number}")).hint(if have == 0 {
            "the quarantine is empty".into()
        } else {
            format!("they go from 1 to {have}")
        }));
    };
    if manner.json {
        return print_json(&json(i, *commit, m));
    }
    let mut out = format!(
        "place    {}\ncommit   {commit}\nreason   {}\n",
        visible(&store::place_of(m)),
        visible(&m.reason)
    );
    if let Some(table) = &m.table {
        let _ = writeln!(out, "table    {}", visible(table));
    }
    if let Some(hint) = &m.hint {
        let _ = writeln!(out, "hint     {}", visible(hint));
    }
    let kept = if (m.raw.len() as u64) < m.length {
        format!(", the first {} are kept", m.raw.len())
    } else {
        String::new()
    };
    let _ = writeln!(out, "length   {} bytes{kept}\n", m.length);
    let text = String::from_utf8_lossy(&m.raw);
    out.extend(text.lines().map(|l| format!("{}\n", visible(l))));
    print(&out)
}

/// The library takes a message again when its source is ingested with other options.
fn replay(args: &crate::args::IngestArgs, _: Manner) -> Outcome {
    super::ingest::options(args)?;
    Err(Failure::usage("quarantine replay is not supported yet")
        .hint("instead: 'asof quarantine show STORE NUMBER', mend the message in a file of its own, and ingest that"))
}
