//! The end of a statement's time.
//!
//! A thread keeps it, not the runtime: timers of a runtime stand still while all its threads compute,
//! which is just when a statement takes too long.

use super::error::{SqlError, SqlErrorKind};
use futures::future::{Either, select};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// A deadline that has begun. Its thread ends with it.
pub(crate) struct Deadline {
    timeout: Duration,
    passed: oneshot::Receiver<()>,
    _kept: Sender<()>,
}

impl Deadline {
    /// A deadline `timeout` from now.
    pub fn after(timeout: Duration) -> Result<Deadline, SqlError> {
        let (kept, dropped) = channel::<()>();
        let (pass, passed) = oneshot::channel();
        let keep = move || {
            if dropped.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                // Nobody waits any more if the statement has just ended.
                let _ = pass.send(());
            }
        };
        std::thread::Builder::new()
            .name("asof-deadline".into())
            .spawn(keep)
            .map_err(|e| SqlError::new(SqlErrorKind::Limit, format!("no thread to keep the time: {e}")))?;
        Ok(Deadline { timeout, passed, _kept: kept })
    }

    /// What `work` gives, or an error if the deadline passes before.
    pub async fn bound<F: Future>(&mut self, work: F) -> Result<F::Output, SqlError> {
        match select(&mut self.passed, pin!(work)).await {
            Either::Left(_) => Err(timed_out(self.timeout)),
            Either::Right((done, _)) => Ok(done),
        }
    }
}

fn timed_out(timeout: Duration) -> SqlError {
    SqlError::new(SqlErrorKind::Timeout, format!("the statement took longer than {timeout:?}"))
        .hint("narrow it, or raise the limit: SET asof.timeout = '5m'")
}
