//! The messages and their right answers, generated where they are missing.

use crate::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the generator may be, best first.
fn generator() -> Option<PathBuf> {
    let shared = std::env::var_os("ASOF_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    [shared, Some(beside)].into_iter().flatten().map(|d| d.join("workload/asofgen.rs")).find(|f| f.is_file())
}

fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{:?} left with {status}", command.get_program()).into())
    }
}

/// Sees to it that `dir` holds `n` messages and the answers.
pub fn prepare(dir: &Path, n: u64) -> Outcome<()> {
    let meta = dir.join("meta.json");
    if !meta.is_file() {
        let source = generator().ok_or_else(|| {
            format!("{} holds no workload, and ASOF_SHARED names no generator", dir.display())
        })?;
        std::fs::create_dir_all(dir)?;
        let program = dir.join("asofgen");
        run(Command::new("rustc").args(["--edition", "2024", "-O", "-o"]).arg(&program).arg(&source))?;
        run(Command::new(&program).args(["-n", &n.to_string(), "--out"]).arg(dir))?;
    }
    let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&meta)?)?;
    match found["n"].as_u64() {
        Some(found) if found == n => Ok(()),
        found => Err(format!("{} holds {found:?} messages, not {n}", dir.display()).into()),
    }
}

/// Takes a store of an earlier run away.
pub fn clear(store: &Path) -> Outcome<()> {
    match std::fs::remove_dir_all(store) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {e}", store.display()).into()),
        _ => Ok(()),
    }
}
