//! `asof export`: a table as one Parquet file, through a question.

use super::Manner;
use crate::args::{ExportArgs, Layout, StoreAnd};
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::{Mode, Options, Sink, renderer};
use crate::runner::Runner;
use crate::text::when::{self, When};
use crate::{interrupt, store, terminal};
use asofdb::time::format_instant;
use std::fs::File;
use std::path::Path;

/// Writes the table.
pub fn run(args: &ExportArgs, manner: Manner) -> Outcome {
    let places = StoreAnd::here(&args.places, 2)?;
    let [table, destination] = &places.rest[..] else {
        return Err(
            Failure::usage("the table or the destination is missing").hint("asof export STORE TABLE DEST")
        );
    };
    for (given, option) in
        [(args.partition_by.is_some(), "--partition-by"), (args.by_operation, "--by-operation")]
    {
        if given {
            return Err(Failure::usage(format!("{option} is not supported yet"))
                .hint("one export per part serves until then: --where \"...\""));
        }
    }
    if args.compression != "zstd" {
        return Err(Failure::usage(format!("--compression {} is not supported yet", args.compression))
            .hint("zstd is"));
    }
    interrupt::install();
    let backend = store::session(&places.store, &[], false)?;
    if backend.names().tables.iter().all(|t| t.name != *table) {
        let names = backend.names();
        let failure = Failure::new(Exit::Failed, format!("there is no table {table}"));
        return Err(match asofdb::near::nearest(table, names.tables.iter().map(|t| t.name.as_str())) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure.hint("asof status lists the tables"),
        });
    }
    let runner = Runner::new(backend)?;
    let directory = Path::new(destination);
    let file = directory.join(format!("{}.parquet", file_stem(table)));
    let partial = directory.join(format!(".{}.parquet.partial", file_stem(table)));
    let cannot = |e: std::io::Error| Failure::io(&format!("cannot write {}", file.display()), &e);
    std::fs::create_dir_all(directory).map_err(cannot)?;
    let sink: Sink = Box::new(File::create(&partial).map_err(cannot)?);
    let mut writer = renderer(Mode::Parquet, sink, &Options::default());
    let done = runner.run(&question(args, table)?, writer.as_mut());
    drop(writer);
    let finished = done.and_then(|report| {
        File::open(&partial).and_then(|f| f.sync_all()).map_err(cannot)?;
        std::fs::rename(&partial, &file).map_err(cannot)?;
        Ok(report)
    });
    let report = finished.inspect_err(|_| drop(std::fs::remove_file(&partial)))?;
    let rows = report.rows.unwrap_or(0);
    if manner.json {
        return super::print_json(&serde_json::json!({"file": file.display().to_string(), "rows": rows}));
    }
    manner.say(&format!("{rows} rows in {} ({:.1} s)", file.display(), report.took.as_secs_f64()));
    if terminal::stderr_is_terminal() {
        report.summary.applied.iter().for_each(|line| manner.say(line));
    }
    Ok(())
}

/// Names of tables may hold anything; names of files may not.
fn file_stem(table: &str) -> String {
    let keep = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let stem: String =
        table.chars().map(|c| if keep(c) { c.to_string() } else { format!("%{:x}", c as u32) }).collect();
    match stem.strip_prefix('.') {
        Some(rest) => format!("%2e{rest}"),
        None => stem,
    }
}

/// The question whose answer is the export.
fn question(args: &ExportArgs, table: &str) -> Outcome<String> {
    let quoted = format!("\"{}\"", table.replace('"', "\"\""));
    let valid = clause("VALID_TIME", &args.valid)?;
    let system = clause("SYSTEM_TIME", &args.system)?;
    let commit = clause("COMMIT", &args.commit)?;
    let from = match args.layout {
        Layout::Current => format!("{quoted}{valid}{system}{commit}"),
        Layout::Intervals => {
            let all =
                |clause: String, axis| if clause.is_empty() { format!(" FOR {axis} ALL") } else { clause };
            format!("{quoted}{}{}{commit}", all(valid, "VALID_TIME"), all(system, "SYSTEM_TIME"))
        }
        Layout::History if (valid + &system + &commit).is_empty() => {
            format!("history('{}')", table.replace('\'', "''"))
        }
        Layout::History => {
            return Err(Failure::usage("the history is of all times")
                .hint("bound it with --where, for example --where '\"__COMMIT_SEQ\" <= 12'"));
        }
    };
    let filter = args.filter.as_ref().map(|f| format!(" WHERE {f}")).unwrap_or_default();
    Ok(format!("SELECT * FROM {from}{filter}"))
}

fn clause(axis: &str, time: &Option<String>) -> Outcome<String> {
    let Some(text) = time else { return Ok(String::new()) };
    let wrong = |e| Failure::usage(format!("{axis}: {e}")).hint(format!("times are written {}", when::FORMS));
    Ok(match when::parse(text, store::now()).map_err(wrong)? {
        When::Now => String::new(),
        When::Integer(n) => format!(" FOR {axis} AS OF {n}"),
        When::Instant(us) => format!(" FOR {axis} AS OF '{}'", format_instant(us)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn asked(line: &str) -> Result<String, String> {
        let words = ["asof", "export", "s", "orders", "out"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Some(Command::Export(args)) => question(&args, "orders").map_err(|f| f.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn layouts_and_clocks_become_a_question() {
        assert_eq!(asked("").unwrap(), "SELECT * FROM \"orders\" FOR VALID_TIME ALL FOR SYSTEM_TIME ALL");
        assert_eq!(
            asked("--layout current --valid 2026-11-01 --commit 3 --where a=1").unwrap(),
            "SELECT * FROM \"orders\" FOR VALID_TIME AS OF '2026-11-01T00:00:00Z' FOR COMMIT AS OF 3 WHERE a=1"
        );
        assert_eq!(asked("--layout history").unwrap(), "SELECT * FROM history('orders')");
        assert!(asked("--layout history --valid 2026-11-01").is_err() && asked("--valid soon").is_err());
    }

    #[test]
    fn file_names_are_safe() {
        assert_eq!(file_stem("../x/y z"), "%2e.%2fx%2fy%20z");
        assert_eq!(file_stem("orders"), "orders");
    }
}
