//! What stands for pulls in a build without them.

use super::PullOptions;
use crate::error::{Error, Result};
use crate::intake::driver::{Messages, Step, Take};
use crate::intake::report::Progress;
use crate::options::IntakeOptions;
use asofdb_storage::engine::Snapshot;

/// Rows of a table of a database; there are none in this build.
pub enum PullMessages {}

impl PullMessages {
    /// Says that this build cannot do it.
    ///
    /// # Errors
    /// Always.
    pub fn open(
        pull: &PullOptions,
        intake: &IntakeOptions,
        _stored: Option<Snapshot>,
    ) -> Result<PullMessages> {
        pull.plan(intake)?;
        Err(Error::usage("this build cannot read databases: it has no feature `pull`")
            .hint("cargo install --path shell --features pull"))
    }
}

impl Messages for PullMessages {
    fn read(&mut self, _: usize, _: &mut Take<'_>) -> Result<Step> {
        match *self {}
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        match *self {}
    }

    fn progress(&self, _: &mut Progress) {
        match *self {}
    }

    fn notices(&mut self) -> Vec<String> {
        match *self {}
    }
}
