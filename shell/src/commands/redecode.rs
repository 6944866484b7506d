//! `asof redecode`.

use super::{Manner, print, print_json};
use crate::args::{IngestArgs, StoreAnd};
use crate::outcome::{Failure, Outcome};
use crate::progress::Progress;
use crate::{interrupt, store};
use std::ops::ControlFlow;

/// Decodes kept messages into another table; the totals are those of an intake.
pub fn run(args: &IngestArgs, manner: Manner) -> Outcome {
    let places = StoreAnd::here(&args.places, 2)?;
    let [table, into] = places.rest.as_slice() else {
        return Err(Failure::usage("two tables are needed: the one that has the messages, and a new one")
            .hint("asof redecode STORE TABLE INTO --key ..."));
    };
    if args.table.is_some() || args.rounds.export_to.is_some() {
        return Err(Failure::usage("--table and --export-to do not go with asof redecode")
            .hint("the new table is named behind the store and the old one"));
    }
    let mut options = super::ingest::options(args)?;
    options.table = Some(into.clone());
    interrupt::install();
    let store = store::upkeep(&places.store)?;
    let mut bar = Progress::new(!manner.quiet);
    let watch = interrupt::leave_at_second_signal();
    let report = store.redecode(table, &options, &mut |progress| {
        bar.show(progress);
        if interrupt::count() > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(watch);
    bar.clear();
    let report = report.map_err(|e| store::failure(&e))?;
    let closed = store::close(store);
    if manner.json {
        print_json(&serde_json::to_value(&report).unwrap_or_default())?;
    } else {
        print(&super::ingest::totals(&report, &places.store))?;
    }
    closed
}
