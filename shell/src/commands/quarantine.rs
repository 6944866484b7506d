//! `asof quarantine`.

use super::{Manner, print, print_json};
use crate::args::{IngestArgs, QuarantineArgs, QuarantineCommand, StoreAnd, StoreArg, from_environment};
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::escape::visible;
use crate::store;
use asofdb::count;
use asofdb::{IntakeReport, QuarantineEntry};
use std::fmt::Write;
use std::path::Path;

/// Runs the subcommand.
pub fn run(args: &QuarantineArgs, manner: Manner) -> Outcome {
    let Some(command) = &args.command else {
        let store = StoreArg { store: args.store.clone().or_else(from_environment) };
        let path = store.path()?;
        is_no_slip(path)?;
        return list(path, args.all, manner);
    };
    match command {
        QuarantineCommand::List { store, all } => list(store.path()?, *all, manner),
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

/// A word that is no directory may have been meant as a command.
fn is_no_slip(path: &Path) -> Outcome {
    let names = ["list", "show", "replay"];
    match path.to_str().filter(|_| !path.exists()).and_then(|word| asofdb::near::nearest(word, names)) {
        Some(near) => {
            Err(Failure::usage(format!("there is no store {}", visible(&path.display().to_string())))
                .hint(format!("did you mean asof quarantine {near} STORE?")))
        }
        None => Ok(()),
    }
}

fn messages(path: &Path) -> Outcome<Vec<QuarantineEntry>> {
    store::reader(path)?.quarantine().map_err(|e| store::failure(&e))
}

fn list(path: &Path, all: bool, manner: Manner) -> Outcome {
    let mut entries = messages(path)?;
    let settled = entries.iter().filter(|e| e.resolved_by.is_some()).count();
    entries.retain(|e| all || e.resolved_by.is_none());
    if manner.json {
        return print_json(&entries.iter().map(json).collect::<Vec<_>>().into());
    }
    let mut out = String::new();
    for QuarantineEntry { number, commit, message: m, resolved_by } in &entries {
        let table = m.table.as_deref().map(|t| format!(" table {t}:")).unwrap_or_default();
        let after = resolved_by.map(|c| format!("  (settled by commit {c})")).unwrap_or_default();
        let _ = writeln!(
            out,
            "{number:>4}  commit {commit}  {}:{} {}{after}",
            visible(&store::place_of(m)),
            visible(&table),
            visible(&m.reason)
        );
    }
    let path = path.display();
    match (entries.is_empty(), settled) {
        (true, 0) => manner.say("the quarantine is empty"),
        (true, n) => manner.say(&format!(
            "nothing waits in the quarantine; {n} were settled: asof quarantine list {path} --all"
        )),
        (false, _) => manner.say(&format!(
            "asof quarantine show {path} NUMBER shows a message as it came, \
             asof quarantine replay {path} tries them again"
        )),
    }
    print(&out)
}

fn json(entry: &QuarantineEntry) -> serde_json::Value {
    let mut value = serde_json::to_value(&entry.message).unwrap_or_default();
    value["number"] = entry.number.into();
    value["commit"] = entry.commit.0.into();
    value["resolved_by"] = entry.resolved_by.map(|c| c.0).into();
    value
}

fn show(path: &Path, number: &str, manner: Manner) -> Outcome {
    let messages = messages(path)?;
    let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let Some(entry) = index.and_then(|i| messages.get(i)) else {
        let have = messages.len();
        return Err(Failure::new(Exit::Failed, format!("there is no message {number}")).hint(if have == 0 {
            "the quarantine is empty".into()
        } else {
            format!("they go from 1 to {have}")
        }));
    };
    if manner.json {
        return print_json(&json(entry));
    }
    let QuarantineEntry { number: _, commit, message: m, resolved_by } = entry;
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
    if let Some(by) = resolved_by {
        let _ = writeln!(out, "settled  by commit {by}");
    }
    let kept = if (m.raw.len() as u64) < m.length {
        format!(", the first {} of them kept", m.raw.len())
    } else {
        String::new()
    };
    let _ = writeln!(out, "length   {}{kept}\n", count::of(m.length, "byte"));
    let text = String::from_utf8_lossy(&m.raw);
    out.extend(text.lines().map(|l| format!("{}\n", visible(l))));
    print(&out)
}

/// Takes messages again; the totals are those of an intake.
fn replay(args: &IngestArgs, manner: Manner) -> Outcome {
    let places = StoreAnd::here(&args.places, 0)?;
    let number = |text: &String| {
        text.parse::<u64>().map_err(|_| {
            Failure::usage(format!("{text} is not the number of a message"))
                .hint("asof quarantine list STORE has the numbers; without numbers all are tried")
        })
    };
    let numbers = places.rest.iter().map(number).collect::<Outcome<Vec<u64>>>()?;
    if args.rounds.export_to.is_some() {
        return Err(Failure::usage("--export-to goes with asof ingest")
            .hint("asof export STORE TABLE DEST exports what the replay has stored"));
    }
    let options = super::ingest::options(args)?;
    let store = store::upkeep(&places.store)?;
    let report = store.replay_quarantine(&numbers, &options).map_err(|e| store::failure(&e))?;
    let closed = store::close(store);
    if manner.json {
        print_json(&serde_json::to_value(&report).unwrap_or_default())?;
    } else {
        print(&totals(&report, &places.store))?;
    }
    closed
}

fn totals(report: &IntakeReport, path: &Path) -> String {
    if report.delivered == 0 {
        return "nothing waits in the quarantine\n".to_owned();
    }
    super::ingest::totals(report, path).replacen(" delivered = ", " tried = ", 1).replacen(
        " quarantined\n",
        " still quarantined\n",
        1,
    )
}
