//! Which files are meant: paths, globs and directories.

use super::natural_order;
use super::position::{Notice, SourceError};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

/// A file to read, and the stream it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub stream: String,
    pub origin: String,
    pub path: PathBuf,
    /// Named by a person rather than found in a directory.
    pub named: bool,
}

impl Input {
    fn single(name: &str) -> Input {
        let stream = name.strip_prefix("./").unwrap_or(name).to_owned();
        Input { stream, origin: String::new(), path: PathBuf::from(name), named: true }
    }

    /// As shown to people.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// The files of one argument, in their order. A glob that matches nothing is an error, unless files may
/// come `later`.
pub(super) fn expand(name: &str, later: bool, notices: &mut Vec<Notice>) -> Result<Vec<Input>, SourceError> {
    match fs::metadata(name) {
        Ok(m) if m.is_dir() => directory(name, notices),
        Ok(m) if m.is_file() => Ok(vec![Input::single(name)]),
        Ok(_) => Err(SourceError::new(name, "is a pipe, socket or device, not a file")
            .hint(format!("give its content as standard input: asof ingest STORE - < {name}"))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && name.contains(['*', '?', '[', '{']) => {
            glob(name, later, notices)
        }
        Err(e) => Err(SourceError::new(name, e)),
    }
}

/// A directory is one stream, its files are ranked in natural order.
fn directory(name: &str, notices: &mut Vec<Notice>) -> Result<Vec<Input>, SourceError> {
    let stream = name.strip_prefix("./").unwrap_or(name);
    let stream = if stream.len() > 1 { stream.trim_end_matches('/') } else { stream };
    let mut files: Vec<Input> = walk(Path::new(name), notices)?
        .into_iter()
        .map(|path| {
            let inside = path.strip_prefix(name).unwrap_or(&path);
            let origin = inside.to_string_lossy().into_owned();
            Input { stream: stream.to_owned(), origin, path, named: false }
        })
        .collect();
    files.sort_by(|a, b| natural_order(&a.origin, &b.origin));
    Ok(files)
}

/// Every file that a glob matches is a stream of its own, as if it had been named.
fn glob(pattern: &str, later: bool, notices: &mut Vec<Notice>) -> Result<Vec<Input>, SourceError> {
    let matcher = globset::GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|e| SourceError::new(pattern, e.kind()))?
        .compile_matcher();
    let fixed = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let root = pattern[..fixed].rfind('/').map_or("", |at| &pattern[..=at]);
    let mut skipped = Vec::new();
    let walked = walk(Path::new(if root.is_empty() { "." } else { root }), &mut skipped)?;
    let named = |path: &Path| match root {
        "" => path.strip_prefix(".").unwrap_or(path).to_string_lossy().into_owned(),
        _ => path.to_string_lossy().into_owned(),
    };
    let names = walked.iter().map(|path| named(path));
    let mut names: Vec<String> = names.filter(|n| matcher.is_match(n)).collect();
    // What the pattern does not mean was not passed over.
    notices.extend(skipped.into_iter().filter(|notice| match notice {
        Notice::Skipped { file, .. } => matcher.is_match(named(Path::new(file))),
        _ => true,
    }));
    if names.is_empty() && !later {
        return Err(SourceError::new(pattern, "no file matches"));
    }
    names.sort_by(|a, b| natural_order(a, b));
    Ok(names.iter().map(|n| Input::single(n)).collect())
}

/// The regular files below a directory that are neither hidden nor unfinished. Links are followed
/// only to files that lie below the directory too.
fn walk(root: &Path, notices: &mut Vec<Notice>) -> Result<Vec<PathBuf>, SourceError> {
    let shown = root.display().to_string();
    let inside = root.canonicalize().map_err(|e| SourceError::new(&shown, e))?;
    let mut seen = BTreeSet::new();
    let mut entries = walkdir::WalkDir::new(root).follow_root_links(true).into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // It was taken away between the look at its directory and the look at itself.
            Err(e) if e.depth() > 0 && e.io_error().is_some_and(|e| e.kind() == NotFound) => continue,
            Err(e) => return Err(SourceError::new(&shown, e)),
        };
        let (path, kind) = (entry.path(), entry.file_type());
        let name = entry.file_name().to_string_lossy();
        if entry.depth() > 0
            && let Some(reason) = passed_over(&name)
        {
            if kind.is_dir() {
                entries.skip_current_dir();
            }
            notices.push(Notice::Skipped { file: path.display().to_string(), reason: reason.to_owned() });
            continue;
        }
        let mut skip = |reason: &str| {
            notices.push(Notice::Skipped { file: path.display().to_string(), reason: reason.to_owned() });
        };
        if kind.is_file() {
            seen.insert(path.to_owned());
        } else if kind.is_symlink() {
            match path.canonicalize() {
                Ok(target) if !target.starts_with(&inside) => skip("the link leads out of the directory"),
                Ok(target) if target.is_file() => {
                    seen.insert(path.to_owned());
                }
                _ => skip("the link leads to no file"),
            }
        } else if !kind.is_dir() {
            skip("it is a pipe, socket or device");
        }
    }
    Ok(seen.into_iter().collect())
}

/// Why a name is passed over: hidden files, marks of other tools, and files that are still being written.
fn passed_over(name: &str) -> Option<&'static str> {
    const UNFINISHED: [&str; 7] = ["~", ".tmp", ".temp", ".part", ".partial", ".swp", ".inprogress"];
    match () {
        () if name.starts_with('.') => Some("it is hidden"),
        () if name.starts_with('_') => Some("its name begins with _"),
        () if UNFINISHED.iter().any(|end| name.ends_with(end)) => {
            Some("its name is that of a file that is still being written")
        }
        () => None,
    }
}
