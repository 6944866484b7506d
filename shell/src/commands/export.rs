//! `asof export`: a table as Parquet that any engine can read.

use super::Manner;
use crate::args::{ExportArgs, StoreAnd};
use crate::outcome::{Failure, Outcome};
use crate::progress::Rows;
use crate::text::when::{self, When};
use crate::{interrupt, store};
use asofdb::ExportOptions;
use asofdb::count;
use asofdb::export::ExportedTable;
use asofdb::sql::Point;
use std::ops::ControlFlow;
use std::time::Instant;

/// Writes the table.
pub fn run(args: &ExportArgs, manner: Manner) -> Outcome {
    let places = StoreAnd::here(&args.places, 2)?;
    let [table, destination] = &places.rest[..] else {
        return Err(
            Failure::usage("the table or the destination is missing").hint("asof export STORE TABLE DEST")
        );
    };
    let options = options(args)?;
    interrupt::install();
    let started = Instant::now();
    let store = store::reader(&places.store)?;
    let mut bar = Rows::new(!manner.quiet && !manner.json);
    let report = store.export_watched(table, destination, &options, &mut |progress| {
        bar.show(progress.rows);
        if interrupt::count() > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.clear();
    let report = report.map_err(|e| store::failure(&e))?;
    if manner.json {
        return super::print_json(&serde_json::to_value(&report).unwrap_or_default());
    }
    for notice in &report.notices {
        manner.say(&format!("note: {notice}"));
    }
    for table in &report.tables {
        manner.say(&format!("{} ({:.1} s)", line(table, report.commit), started.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// What was written, in one line.
pub fn line(table: &ExportedTable, commit: u64) -> String {
    let ExportedTable { table: _, path, rows, files, bytes: _ } = table;
    let (rows, files) = (count::of(*rows, "row"), count::of(*files, "file"));
    format!("{rows} in {files} in {}, as of commit {commit}", path.display())
}

/// The options of the library.
fn options(args: &ExportArgs) -> Outcome<ExportOptions> {
    let ExportArgs {
        places: _,
        layout,
        partition_by,
        by_operation,
        compression,
        order,
        filter,
        valid,
        system,
        commit,
    } = args;
    let named = |option: &str, e: asofdb::Error| {
        let mut failure = store::failure(&e);
        failure.message = format!("{option}: {}", failure.message);
        failure
    };
    let options = ExportOptions {
        layout: (*layout).into(),
        valid: point("--valid", valid)?,
        system: point("--system", system)?,
        commit: point("--commit", commit)?,
        filter: filter.clone(),
        partition_by: partition_by.clone(),
        by_operation: *by_operation,
        compression: compression.parse().map_err(|e| named("--compression", e))?,
        order: order.parse().map_err(|e| named("--order", e))?,
        now: Some(store::now()),
        ..ExportOptions::default()
    };
    options.validate().map_err(|e| store::failure(&e))?;
    Ok(options)
}

/// `now` is no bound: the latest is exported.
fn point(option: &str, time: &Option<String>) -> Outcome<Option<Point>> {
    let Some(text) = time else { return Ok(None) };
    let wrong =
        |e| Failure::usage(format!("{option}: {e}")).hint(format!("times are written {}", when::FORMS));
    Ok(match when::parse(text, store::now()).map_err(wrong)? {
        When::Now => None,
        When::Integer(n) => Some(Point::Integer(n)),
        When::Instant(us) => Some(Point::Instant(us)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use asofdb::export::{ExportCompression, ExportLayout, ExportOrder};
    use clap::Parser;

    fn asked(line: &str) -> Result<ExportOptions, String> {
        let words = ["asof", "export", "s", "orders", "out"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Some(Command::Export(args)) => options(&args).map_err(|f| f.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_of_an_export_reach_the_library() {
        let options = asked(
            "--layout current --valid 2026-11-01 --system now --commit 3 --where a=1 --partition-by a,b \
             --compression none",
        )
        .unwrap();
        assert_eq!(options.layout, ExportLayout::Current);
        assert_eq!(options.valid, Some(Point::Instant(1_793_491_200_000_000)));
        assert_eq!((options.system, options.commit), (None, Some(Point::Integer(3))));
        assert_eq!((options.filter.as_deref(), options.partition_by.as_deref()), (Some("a=1"), Some("a,b")));
        assert_eq!(options.compression, ExportCompression::None);
        assert_eq!(asked("").unwrap().layout, ExportLayout::Intervals);
        assert_eq!(asked("--order time").unwrap().order, ExportOrder::Time);
    }

    #[test]
    fn wrong_options_of_an_export_are_named() {
        for (line, words) in [
            ("--layout history --valid 2026-11-01", "all times"),
            ("--valid soon", "--valid"),
            ("--compression lz77", "--compression"),
            ("--order size", "--order"),
            ("--by-operation", "no operation"),
            ("--where a=", "cannot be read"),
        ] {
            let message = asked(line).unwrap_err();
            assert!(message.contains(words), "{line}: {message}");
        }
    }
}
