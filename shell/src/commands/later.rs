//! Commands that are not supported yet: what to use instead.

use crate::args::Command;
use crate::outcome::{Failure, Outcome};

/// Says that a command is not supported yet, and what serves until it is.
pub fn refuse(command: &Command) -> Outcome {
    let (name, instead) = match command {
        Command::Snapshot(_) => (
            "snapshot",
            "note a commit and ask FOR COMMIT AS OF it; 'asof verify --head' proves the history up to a head",
        ),
        Command::Import(_) => ("import", "asof ingest STORE FILES --valid COL --system COL"),
        Command::Erase(_) => {
            ("erase", "make a new store without the rows: ingest the sources again with --delete-when")
        }
        Command::Retention(_) => {
            ("retention", "'asof compact' gives back what merging can; nothing is ever cut yet")
        }
        Command::Doctor(_) => ("doctor", "asof status and asof verify"),
        _ => ("this command", "asof --help"),
    };
    Err(Failure::usage(format!("{name} is not supported yet")).hint(format!("instead: {instead}")))
}
