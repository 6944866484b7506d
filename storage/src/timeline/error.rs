//! What the core refuses to do.

/// Why a question about one key got no answer. None of these changes what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    /// The rows of the key are more than the limit.
    #[error(
        "more than {rows_max} interval rows for one key; bound the question in valid or system time, or \
         raise the limit"
    )]
    TooManyRows {
        /// The limit.
        rows_max: u64,
    },
    /// The key's history takes more work than the limit.
    #[error(
        "the interval rows of one key take more than {steps_max} steps; bound the question in system time, \
         or raise the limit"
    )]
    TooManySteps {
        /// The limit.
        steps_max: u64,
    },
    /// A row was moved from key to key too often while partial updates inherit across all the moves.
    #[error("a row inherits over more than {hops_max} key changes; send a full image of it")]
    ChainTooLong {
        /// The limit.
        hops_max: u32,
    },
}
