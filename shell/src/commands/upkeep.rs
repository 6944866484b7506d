//! `asof status`, `compact`, `verify` and `rebuild`.

use super::{Manner, print, print_json};
use crate::args::{AcceptGapArgs, CompactArgs, RebuildArgs, StatusArgs, StoreAnd, VerifyArgs};
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::escape::visible;
use crate::store as library;
use asofdb::count;
use asofdb::intake::{SourceState, sources};
use asofdb::time::format_instant;
use asofdb_storage::engine::{Salvaged, Status, VerifyReport};
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Instant;

/// Shows what the store holds.
pub fn status(args: &StatusArgs, manner: Manner) -> Outcome {
    let path = args.store.path()?;
    let store = library::reader(path)?;
    let status = store.engine().status().map_err(library::engine_failure)?;
    let taken = Taken::of(&store)?;
    if manner.json {
        let mut value = serde_json::to_value(&status).unwrap_or_default();
        value["sources"] = serde_json::to_value(sources(&store.catalog())).unwrap_or_default();
        value["taken"] = taken.json();
        return print_json(&value);
    }
    let mut text = status_text(&path.display().to_string(), &status);
    text.push_str(&taken.text());
    text.push_str(&source_text(&sources(&store.catalog())));
    print(&text)
}

/// What all intakes together counted.
#[derive(Debug, Default)]
struct Taken {
    repeated: u64,
    ignored: u64,
    late: u64,
    raised: u64,
    lowered: u64,
}

impl Taken {
    fn of(store: &asofdb::Store) -> Outcome<Taken> {
        let mut taken = Taken::default();
        for commit in store.commits().map_err(|e| library::failure(&e))? {
            let count = |name: &str| match &commit.note[name] {
                serde_json::Value::Object(kinds) => kinds.values().filter_map(|n| n.as_u64()).sum(),
                n => n.as_u64().unwrap_or(0),
            };
            taken.repeated += count("repeats");
            taken.ignored += count("ignored");
            taken.late += count("late");
            taken.raised += count("raised");
            taken.lowered += count("lowered");
        }
        Ok(taken)
    }

    fn json(&self) -> serde_json::Value {
        let Taken { repeated, ignored, late, raised, lowered } = self;
        json!({"repeated": repeated, "ignored": ignored, "late": late, "raised": raised, "lowered": lowered})
    }

    fn text(&self) -> String {
        let Taken { repeated, ignored, late, raised, lowered } = self;
        format!(
            "messages     {repeated} repeated, {ignored} ignored\nvalid times  {late} late, {raised} raised, {lowered} lowered\n"
        )
    }
}

/// Streams that are listed at most.
const STREAMS_MAX: usize = 20;

/// How far each stream was read, in messages.
fn source_text(all: &[SourceState]) -> String {
    let mut streams: Vec<(&str, u64, u64)> = Vec::new();
    for source in all {
        let read = source.position.unwrap_or(0);
        match streams.iter_mut().find(|(name, ..)| *name == source.stream) {
            Some((_, parts, sum)) => (*parts, *sum) = (*parts + 1, *sum + read),
            None => streams.push((&source.stream, 1, read)),
        }
    }
    let ends: HashMap<&str, u64> =
        all.iter().filter_map(|s| s.end.map(|end| (s.stream.as_str(), end))).collect();
    let mut out = String::new();
    let width = streams.iter().take(STREAMS_MAX).map(|(name, ..)| name.len()).max().unwrap_or(0);
    for (name, parts, read) in streams.iter().take(STREAMS_MAX) {
        let behind = match ends.get(name) {
            Some(end) if end > read => format!(", {} behind when it was last committed", end - read),
            _ => String::new(),
        };
        let files = if *parts > 1 { format!(" in {}", count::of(*parts, "file")) } else { String::new() };
        let _ = writeln!(out, "source       {:<width$}  read up to {read}{files}{behind}", visible(name));
    }
    if streams.len() > STREAMS_MAX {
        let _ = writeln!(out, "             {} more: SELECT * FROM sources()", streams.len() - STREAMS_MAX);
    }
    out
}

fn status_text(name: &str, status: &Status) -> String {
    let mut out = String::new();
    let at = status.commit_at.map(|at| format!(" ({})", format_instant(at))).unwrap_or_default();
    let _ = writeln!(out, "store        {}", visible(name));
    let _ = writeln!(out, "last commit  {}{at}", status.commit);
    let _ = writeln!(out, "events       {} ({} not in runs yet)", status.events, status.memory_events);
    let quarantine = if status.quarantined > 0 {
        format!("  look: asof quarantine list {}", visible(name))
    } else {
        String::new()
    };
    let settled = match status.resolved {
        0 => String::new(),
        n => format!(", {n} more settled"),
    };
    let _ = writeln!(out, "quarantined  {}{settled}{quarantine}", status.quarantined);
    let _ = writeln!(
        out,
        "bytes        {} log, {} runs, {} index",
        bytes(status.log_bytes),
        bytes(status.run_bytes),
        bytes(status.index_bytes)
    );
    if status.log_events_shrunk > 0 {
        let _ = writeln!(
            out,
            "in runs only {} (the log was shrunk)",
            count::of(status.log_events_shrunk, "event")
        );
    }
    let abandoned = status.abandoned_by.as_deref().map_or(String::new(), |who| {
        format!("; the last one, {}, ended without closing the store", visible(who))
    });
    let writer = status.writer.as_deref().map_or("none".into(), visible);
    let _ = writeln!(out, "writer       {writer}{abandoned}");
    if let Some(head) = &status.head {
        let _ = writeln!(out, "head         {head}");
    }
    if let Some(dropped) = &status.recovered {
        let _ = writeln!(out, "log          {}", visible(dropped));
    }
    if let Some(error) = &status.background_error {
        let _ = writeln!(out, "background   failed: {}", visible(error));
    }
    let width = status.tables.iter().map(|t| t.name.len()).max().unwrap_or(0);
    for table in &status.tables {
        let _ = writeln!(
            out,
            "table        {:<width$}  {}, {}, key ({}), {} in {}",
            visible(&table.name),
            count::of(table.events, "event"),
            count::of(table.columns, "column"),
            visible(&table.key.join(", ")),
            bytes(table.run_bytes),
            count::of(table.runs, "run")
        );
    }
    out
}

/// Damage ends with 4. The library counts an unknown head as damage; to people it is another history.
fn judge(name: &str, args: &VerifyArgs, report: &VerifyReport) -> Outcome {
    let other_history = args.head.is_some() && report.head_at.is_none();
    match &report.damage[..] {
        [] => Ok(()),
        [only] if other_history => {
            Err(Failure::new(Exit::Failed, only.clone()).hint(format!("the head now is {}", report.head)))
        }
        damage => {
            let mut failure =
                Failure::new(Exit::Damaged, format!("{name}: {}", count::of(damage.len(), "damaged place")));
            failure.message.extend(damage.iter().take(20).map(|d| format!("\n  {d}")));
            Err(failure.hint("damaged runs: asof rebuild; a damaged log, or runs of a log that was shrunk: a copy of the store; a damaged log without a copy: asof rebuild --salvage"))
        }
    }
}

/// Bytes as people read them.
fn bytes(n: u64) -> String {
    match n {
        0..1_024 => format!("{n} B"),
        1_024..1_048_576 => format!("{:.1} KiB", n as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// Merges runs.
pub fn compact(args: &CompactArgs, manner: Manner) -> Outcome {
    let started = Instant::now();
    let store = library::upkeep_keeping(args.store.path()?, args.keep_log)?;
    let before = store.engine().status().map_err(library::engine_failure)?;
    let merges = store.engine().compact().map_err(library::engine_failure)?;
    let after = store.engine().status().map_err(library::engine_failure)?;
    library::close(store)?;
    if manner.json {
        return print_json(&json!({
            "merges": merges,
            "run_bytes_before": before.run_bytes,
            "run_bytes_after": after.run_bytes,
            "log_bytes_before": before.log_bytes,
            "log_bytes_after": after.log_bytes,
        }));
    }
    let mut done = Vec::new();
    if merges > 0 {
        let (from, to) = (bytes(before.run_bytes), bytes(after.run_bytes));
        done.push(format!("{}, runs went from {from} to {to}", count::of(merges, "merge")));
    }
    if after.log_events_shrunk > before.log_events_shrunk {
        done.push(format!("the log from {} to {}", bytes(before.log_bytes), bytes(after.log_bytes)));
    }
    match &done[..] {
        [] => manner.say("nothing to do"),
        done => {
            manner.say(&format!("{} in {:.1} s", done.join(", "), started.elapsed().as_secs_f64()));
        }
    }
    Ok(())
}

/// Makes the derived files anew.
pub fn rebuild(args: &RebuildArgs, manner: Manner) -> Outcome {
    let started = Instant::now();
    let path = args.store.path()?;
    let (store, salvaged) = match args.salvage {
        true => library::salvage(path).map(|(store, salvaged)| (store, Some(salvaged)))?,
        false => (library::upkeep(path)?, None),
    };
    if let Some(salvaged) = salvaged.as_ref().filter(|_| !manner.json) {
        print(&salvaged_text(salvaged))?;
    }
    store.engine().rebuild().map_err(library::engine_failure)?;
    let events = store.engine().status().map_err(library::engine_failure)?.events;
    library::close(store)?;
    if manner.json {
        let salvaged = salvaged.as_ref().map(salvaged_json);
        return print_json(&match salvaged {
            Some(salvaged) => json!({"events": events, "salvaged": salvaged}),
            None => json!({"events": events}),
        });
    }
    manner.say(&format!(
        "runs of {} made anew from the log in {:.1} s",
        count::of(events, "event"),
        started.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// What a salvage gave up.
fn salvaged_text(salvaged: &Salvaged) -> String {
    let Salvaged { cut, copies, commit } = salvaged;
    let readable = match &cut.readable[..] {
        [] => "none of them can be read".to_owned(),
        [one] => format!("commit {one} can be read, but not be joined to the history"),
        [first, .., last] => format!(
            "{} between {first} and {last} can be read, but not be joined to the history",
            count::of(cut.readable.len(), "commit")
        ),
    };
    let mut out = String::new();
    let _ = writeln!(out, "damage       {}", visible(&cut.damage.to_string()));
    let _ = writeln!(out, "kept         commits up to {}", cut.last);
    let _ = writeln!(out, "lost         commit {} and all behind it: {readable}", cut.last.0 + 1);
    for copy in copies {
        let _ = writeln!(out, "cut off      {}", visible(&copy.display().to_string()));
    }
    let _ =
        writeln!(out, "recorded     as commit {commit}; an intake takes again what its sources still have");
    out
}

fn salvaged_json(salvaged: &Salvaged) -> serde_json::Value {
    let Salvaged { cut, copies, commit } = salvaged;
    json!({
        "segment": cut.damage.segment,
        "byte": cut.damage.offset,
        "damage": cut.damage.what,
        "last_commit_kept": cut.last.0,
        "commits_seen_behind": cut.readable.iter().map(|c| c.0).collect::<Vec<_>>(),
        "bytes_cut": cut.bytes,
        "copies": copies,
        "commit": commit.0,
    })
}

/// Records that a gap is accepted.
pub fn accept_gap(args: &AcceptGapArgs, manner: Manner) -> Outcome {
    let places = StoreAnd::here(&args.places, 1)?;
    let [stream] = &places.rest[..] else {
        return Err(Failure::usage("no stream is named").hint("asof accept-gap STORE STREAM"));
    };
    let store = library::upkeep(&places.store)?;
    let commit = store.accept_gap(stream).map_err(|e| library::failure(&e))?.map(|info| info.seq);
    library::close(store)?;
    if manner.json {
        return print_json(&json!({"stream": stream, "commit": commit}));
    }
    manner.say(&match commit {
        Some(commit) => format!("the gap of {} is accepted, commit {commit}", visible(stream)),
        None => format!("the gap of {} was accepted before", visible(stream)),
    });
    Ok(())
}

/// A writer that is at work, or that was killed, may leave an unfinished commit at the end of the log;
/// one that has closed the store has not.
fn judge_tail(status: &Status, damage: &mut Vec<String>, manner: Manner) {
    let Some(dropped) = &status.recovered else { return };
    match (&status.writer, &status.abandoned_by) {
        (None, None) => damage.push(format!("{dropped}; but the store was closed in order")),
        _ => manner.say(&format!("note: {}", visible(dropped))),
    }
}

/// Checks the store; differences end with 1, damage with 4.
pub fn verify(args: &VerifyArgs, manner: Manner) -> Outcome {
    let path = args.store.path()?;
    if let Some(head) =
        args.head.as_ref().filter(|h| h.len() != 64 || asofdb_storage::hex::decode(h).is_none())
    {
        return Err(Failure::usage(format!("--head {head} is no head: a head is 64 hexadecimal digits"))
            .hint("asof verify STORE says the head of now"));
    }
    let store = library::reader(path)?;
    let mut report = store.engine().verify(args.head.as_deref()).map_err(library::engine_failure)?;
    // What is derived is compared with the log only where the log is as it was written.
    let full = match args.full && report.damage.is_empty() {
        true => Some(store.engine().verify_full().map_err(library::engine_failure)?),
        false => None,
    };
    report.damage.extend(full.iter().flat_map(|f| f.damage.clone()));
    judge_tail(&store.engine().status().map_err(library::engine_failure)?, &mut report.damage, manner);
    if manner.json {
        let head_at = report.head_at.map(|c| c.0);
        let events = full.as_ref().map(|f| f.events);
        print_json(
            &json!({"frames": report.frames, "runs": report.runs, "events": events, "head": report.head, "head_at": head_at, "damage": report.damage}),
        )?;
    }
    judge(&path.display().to_string(), args, &report)?;
    if !manner.json {
        let mut text = format!(
            "good: {}, {}\nhead {}\n",
            count::of(report.frames, "frame"),
            count::of(report.runs, "run"),
            report.head
        );
        if let Some(full) = &full {
            let _ = writeln!(
                text,
                "{} in runs and in memory, the catalog and {}: all as the log says",
                count::of(full.events, "event"),
                count::of(full.commits, "commit")
            );
        }
        if let Some(commit) = report.head_at {
            let _ = writeln!(text, "history up to commit {commit} is the history that was");
        }
        print(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_read_well() {
        assert_eq!(
            [bytes(0), bytes(1023), bytes(1536), bytes(5 << 20), bytes(3 << 30)],
            ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3.0 GiB"]
        );
    }
}
