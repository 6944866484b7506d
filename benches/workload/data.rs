//! The messages and their right answers, generated where they are missing.

use crate::Outcome;
use crate::plan::BATCH;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where the generator may be, best first.
fn generator() -> Option<PathBuf> {
    let shared = std::env::var_os("ASOF_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    [shared, Some(beside)].into_iter().flatten().map(|d| d.join("workload/asofgen.rs")).find(|f| f.is_file())
}

/// Runs a program to its good end.
pub fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{:?} left with {status}", command.get_program()).into())
    }
}

/// The generator as a program in `dir`.
fn built(dir: &Path) -> Outcome<PathBuf> {
    let program = dir.join("asofgen");
    if !program.is_file() {
        let source = generator().ok_or_else(|| {
            format!("{} holds no workload, and ASOF_SHARED names no generator", dir.display())
        })?;
        std::fs::create_dir_all(dir)?;
        run(Command::new("rustc").args(["--edition", "2024", "-O", "-o"]).arg(&program).arg(&source))?;
    }
    Ok(program)
}

/// Sees to it that `dir` holds `n` messages and the answers.
pub fn prepare(dir: &Path, n: u64, format: &str) -> Outcome<()> {
    let meta = dir.join("meta.json");
    if !meta.is_file() {
        let program = built(dir)?;
        let mut command = Command::new(&program);
        run(command.args(["-n", &n.to_string(), "--formats", format, "--out"]).arg(dir))?;
    }
    let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&meta)?)?;
    match found["n"].as_u64() {
        Some(found) if found == n => Ok(()),
        found => Err(format!("{} holds {found:?} messages, not {n}", dir.display()).into()),
    }
}

/// The generator, writing `n` messages to its standard output, and answers into `dir`.
pub fn stream(programs: &Path, dir: &Path, n: u64) -> Outcome<Child> {
    let program = built(programs)?;
    clear(dir)?;
    std::fs::create_dir_all(dir)?;
    // What it takes for a file is the pipe.
    std::os::unix::fs::symlink("/dev/stdout", dir.join("messages.ndjson"))?;
    let mut command = Command::new(&program);
    command.args(["-n", &n.to_string(), "--probes", "200", "--aggs", "3", "--out"]).arg(dir);
    Ok(command.stdout(Stdio::piped()).spawn().map_err(|e| format!("{}: {e}", program.display()))?)
}

/// The messages in files of a batch each, for who takes files only; where they are.
pub fn parts(dir: &Path) -> Outcome<PathBuf> {
    let parts = dir.join("parts");
    clear(&parts)?;
    std::fs::create_dir_all(&parts)?;
    let mut command = Command::new("split");
    command.args(["-d", "-a", "5", "--additional-suffix=.ndjson", "-l", &BATCH.to_string()]);
    run(command.arg(dir.join("messages.ndjson")).arg(parts.join("m")))?;
    Ok(parts)
}

/// Takes a file or directory of an earlier run away.
pub fn clear(path: &Path) -> Outcome<()> {
    let gone = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match gone {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {e}", path.display()).into()),
        _ => Ok(()),
    }
}

/// Every file below a path, with its bytes.
fn files(path: &Path) -> Outcome<Vec<(PathBuf, u64)>> {
    if !path.is_dir() {
        return Ok(vec![(path.to_owned(), std::fs::metadata(path)?.len())]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        found.extend(files(&entry?.path())?);
    }
    Ok(found)
}

/// Bytes of all files below a path.
pub fn bytes(path: &Path) -> Outcome<u64> {
    Ok(files(path)?.iter().map(|(_, bytes)| bytes).sum())
}

/// Advises the files below a path out of the page cache; whether that could be done.
pub fn cool(path: &Path) -> Outcome<bool> {
    for (file, _) in files(path)? {
        let mut input = std::ffi::OsString::from("if=");
        input.push(&file);
        // What was never written to the disk cannot leave the cache.
        let synced = Command::new("sync").arg(&file).stderr(Stdio::null()).status();
        let mut advise = Command::new("dd");
        let dropped = advise.arg(input).args(["iflag=nocache", "count=0", "status=none"]).status();
        if ![synced, dropped].into_iter().all(|s| s.is_ok_and(|s| s.success())) {
            return Ok(false);
        }
    }
    Ok(true)
}
