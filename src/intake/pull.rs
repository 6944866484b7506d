//! Tables of SQL databases as messages: a pull by a watermark, or a snapshot of the whole table that
//! finds deletes (`docs/pull.md`).

#[cfg(feature = "pull")]
mod messages;
#[cfg(feature = "pull")]
mod stored;
#[cfg(not(feature = "pull"))]
mod without;

#[cfg(feature = "pull")]
pub use messages::PullMessages;
#[cfg(not(feature = "pull"))]
pub use without::PullMessages;

use crate::error::{Error, Result};
use crate::format::options::TimeColumn;
use crate::options::IntakeOptions;
use crate::source::pull::{Address, Overlap};
use std::fmt;

/// What is pulled, from where. The URL may hold a password, so neither is ever shown or stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PullOptions {
    /// `postgres://user@host/database`, `mysql://user@host/database` or `sqlite:path`.
    pub url: String,
    /// The table of the source, with its schema if need be.
    pub table: String,
    /// The column that grows with every change: `COL`, or `COL:unit` for numbers that are times.
    pub watermark: Option<String>,
    /// How far behind the highest watermark a pull begins: `5 minutes`, or a number for watermarks that
    /// are plain numbers; `None` = 5 minutes for times, nothing for numbers.
    pub overlap: Option<String>,
    /// Read the whole table, and end the rows that are not in it any more.
    pub snapshot: bool,
    /// The password; wins over the one in the URL.
    pub password: Option<String>,
}

impl fmt::Debug for PullOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullOptions")
            .field("table", &self.table)
            .field("watermark", &self.watermark)
            .field("overlap", &self.overlap)
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}

/// The options as they are meant.
#[cfg_attr(not(feature = "pull"), allow(dead_code, reason = "read by what the feature adds"))]
struct Plan {
    address: Address,
    table: String,
    watermark: Option<TimeColumn>,
    overlap: Option<Overlap>,
    snapshot: bool,
}

impl PullOptions {
    /// Whether the options make sense.
    ///
    /// # Errors
    /// `Usage`.
    pub(crate) fn check(&self, intake: &IntakeOptions) -> Result<()> {
        self.plan(intake).map(drop)
    }

    fn plan(&self, intake: &IntakeOptions) -> Result<Plan> {
        let address = Address::parse(&self.url, self.password.as_deref())?;
        if self.table.is_empty() {
            return Err(Error::usage("no table of the source is named").hint("--from-table names it"));
        }
        if intake.format.as_deref().is_some_and(|f| f != "auto") {
            return Err(Error::usage("rows of a database have no format").hint("leave --format out"));
        }
        let watermark = self.watermark.as_deref().map(str::parse::<TimeColumn>).transpose();
        let watermark = watermark.map_err(|e| Error::usage(format!("--watermark: {e}")))?;
        let overlap = self.overlap.as_deref().map(str::parse).transpose()?;
        match (&watermark, overlap, self.snapshot) {
            (None, _, false) => Err(Error::usage("neither a watermark nor a snapshot is asked for").hint(
                "--watermark COL reads what changed since the last pull; --snapshot reads the whole table and finds deletes",
            )),
            (_, Some(_), true) => Err(Error::usage("a snapshot reads everything: it has no --overlap")),
            _ => Ok(Plan {
                address,
                table: self.table.clone(),
                watermark,
                overlap,
                snapshot: self.snapshot,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(pull: PullOptions) -> String {
        match pull.plan(&IntakeOptions::default()) {
            Ok(_) => "none".to_owned(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let good = PullOptions {
            url: "sqlite:a.db".into(),
            table: "t".into(),
            watermark: Some("at".into()),
            ..PullOptions::default()
        };
        assert_eq!(fault(good.clone()), "none");
        assert!(fault(PullOptions { table: String::new(), ..good.clone() }).contains("no table"));
        assert!(fault(PullOptions { watermark: None, ..good.clone() }).contains("neither"));
        let both = PullOptions { snapshot: true, overlap: Some("5m".into()), ..good.clone() };
        assert!(fault(both).contains("no --overlap"));
        assert!(fault(PullOptions { watermark: Some("at:weeks".into()), ..good.clone() }).contains("weeks"));
        assert!(fault(PullOptions { url: "http://x".into(), ..good }).contains("no address"));
    }

    #[test]
    fn the_password_is_not_shown() {
        let pull = PullOptions {
            url: "postgres://u:canary@h/d".into(),
            password: Some("canary".into()),
            ..PullOptions::default()
        };
        assert!(!format!("{pull:?}").contains("canary"));
    }
}
