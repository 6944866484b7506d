//! The history file: in the state directory of XDG, for its owner only, without secrets.

use std::path::{Path, PathBuf};

/// Words that keep a line out of the history.
const SECRETS: [&str; 6] = ["password", "passwd", "secret", "token", "api_key", "credential"];

/// Where the history is: `ASOF_HISTORY`, or `asof/history` in `XDG_STATE_HOME` or `~/.local/state`.
/// `None` = nowhere.
pub fn path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(file) = variable("ASOF_HISTORY") {
        return (!file.as_os_str().is_empty()).then_some(file);
    }
    Some(state_directory(variable)?.join("history"))
}

/// `asof` in `XDG_STATE_HOME` or `~/.local/state`; `None` where neither is known.
pub fn state_directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/state")))?;
    Some(state.join("asof"))
}

/// Whether a line may be kept.
pub fn may_keep(line: &str) -> bool {
    let lower = line.to_lowercase();
    !line.trim().is_empty() && !line.starts_with(' ') && !SECRETS.iter().any(|s| lower.contains(s))
}

/// Makes the file, readable and writable for its owner only, whoever made it before.
///
/// # Errors
/// As the file system has it.
pub fn prepare(file: &Path) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(file)?;
    #[cfg(unix)]
    opened.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(opened);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_goes_to_the_state_directory() {
        let with = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, PathBuf)> =
                pairs.iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            path(|name| pairs.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
        };
        assert_eq!(with(&[("HOME", "/h")]), Some("/h/.local/state/asof/history".into()));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]), Some("/s/asof/history".into()));
        assert_eq!(
            with(&[("HOME", "/h"), ("XDG_STATE_HOME", "relative")]),
            Some("/h/.local/state/asof/history".into())
        );
        assert_eq!(with(&[("HOME", "/h"), ("ASOF_HISTORY", "")]), None);
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn secrets_and_lines_with_a_leading_blank_are_not_kept() {
        assert!(may_keep("select 1;"));
        for line in [" select 1;", "set x.Password = 'a'", "-- client_SECRET", "", "  "] {
            assert!(!may_keep(line), "{line:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("asof/history");
        prepare(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        prepare(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
