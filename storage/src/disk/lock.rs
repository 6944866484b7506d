//! Who holds a store.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The process that holds a lock, as it describes itself in the lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Name of the machine.
    pub host: String,
    /// Command line, or whatever names the program to people.
    pub command: String,
}

impl LockHolder {
    /// This process; `command` is what the program wants to be known as.
    pub fn this_process(command: impl Into<String>) -> LockHolder {
        let host = ["/proc/sys/kernel/hostname", "/etc/hostname"]
            .iter()
            .find_map(|file| std::fs::read_to_string(file).ok())
            .map(|name| name.trim().to_string())
            .filter(|name| !name.is_empty());
        LockHolder {
            pid: std::process::id(),
            host: host.unwrap_or_else(|| "localhost".into()),
            command: command.into(),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("strings and a number are always JSON");
        line.push(b'\n');
        line
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<LockHolder> {
        serde_json::from_slice(bytes).ok()
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {} ({})", self.pid, self.host, self.command)
    }
}

/// What a lock file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockState {
    /// Nobody has the lock.
    Free,
    /// Somebody has it; who, if it can be told.
    Held(Option<LockHolder>),
    /// Nobody has it, but the last holder never gave it back: its process was killed, or the machine
    /// lost power.
    Abandoned(LockHolder),
}

/// The words of a refused lock.
pub(super) fn refusal(holder: Option<LockHolder>) -> std::io::Error {
    let who = holder.map_or_else(|| "another process".to_string(), |h| h.to_string());
    std::io::Error::new(
        std::io::ErrorKind::WouldBlock,
        format!("{who} has it; wait for that process or end it"),
    )
}
