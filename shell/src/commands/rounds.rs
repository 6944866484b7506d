//! Exports at an interval beside an intake: `asof ingest --export-to DIR --export-every 30s`.

use super::Manner;
use super::export::line;
use crate::args::RoundsArgs;
use crate::outcome::{Exit, Failure, Outcome};
use crate::store;
use asofdb::export::PeriodicExport;
use asofdb::{ExportOptions, ExportReport, Store};
use std::path::PathBuf;
use std::time::Duration;

/// What was asked for, and the export that is under way.
pub struct Rounds {
    wanted: Option<(PathBuf, Duration, ExportOptions)>,
    running: Option<PeriodicExport>,
    manner: Manner,
}

impl Rounds {
    /// Reads the options; starts nothing yet.
    pub fn new(args: &RoundsArgs, manner: Manner) -> Outcome<Rounds> {
        let options = ExportOptions {
            layout: args.export_layout.into(),
            now: Some(store::now()),
            ..ExportOptions::default()
        };
        let wanted = args.export_to.clone().zip(args.export_every).map(|(to, every)| (to, every, options));
        Ok(Rounds { wanted, running: None, manner })
    }

    /// Begins to export the store.
    pub fn start(&mut self, store: &Store) -> Outcome {
        let Some((to, every, options)) = self.wanted.take() else { return Ok(()) };
        let manner = self.manner;
        let hear = move |result: &asofdb::Result<ExportReport>| match result {
            Ok(report) => crate::log::info(|| format!("exported commit {}", report.commit)),
            Err(e) => manner.say(&format!("note: an export failed, the intake goes on: {e}")),
        };
        self.running = Some(store.export_every(to, options, every, hear).map_err(|e| store::failure(&e))?);
        Ok(())
    }

    /// Exports what came last. What was taken in is stored, whether or not that works.
    pub fn finish(&mut self) -> Outcome {
        let Some(running) = self.running.take() else { return Ok(()) };
        match running.finish() {
            Ok(Some(report)) => {
                for table in report.tables.iter().filter(|_| !self.manner.json) {
                    self.manner.say(&line(table, report.commit));
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(e) => {
                let failure = store::failure(&e);
                let message = format!("the last export failed: {}", failure.message);
                Err(Failure { exit: Exit::Failed, message, ..failure }
                    .hint("every event is stored; 'asof export' tries again"))
            }
        }
    }
}
