//! Which store is meant: the one that is named, else `ASOF_STORE`.

use crate::outcome::{Failure, Outcome};
use std::path::{Path, PathBuf};

/// The environment variable with the store where none is named.
const STORE_VARIABLE: &str = "ASOF_STORE";

/// A command's only argument.
#[derive(Debug, clap::Args)]
pub struct StoreArg {
    /// The store, a directory
    #[arg(value_name = "STORE", env = STORE_VARIABLE)]
    pub store: Option<PathBuf>,
}

impl StoreArg {
    /// The store.
    pub fn path(&self) -> Outcome<&Path> {
        self.store.as_deref().filter(|s| !s.as_os_str().is_empty()).ok_or_else(no_store)
    }
}

/// The store that the environment names; an empty variable names none.
pub fn from_environment() -> Option<PathBuf> {
    std::env::var_os(STORE_VARIABLE).filter(|s| !s.is_empty()).map(PathBuf::from)
}

fn no_store() -> Failure {
    Failure::usage("no store is named").hint("name its directory, or set ASOF_STORE")
}

/// The store and what follows it.
#[derive(Debug, PartialEq, Eq)]
pub struct StoreAnd {
    /// The store.
    pub store: PathBuf,
    /// The other arguments.
    pub rest: Vec<String>,
}

impl StoreAnd {
    /// Splits `places`. The first is the store, unless the environment names one and the first is
    /// no store or leaves too little (`rest_min`) behind it.
    pub fn split(places: &[String], rest_min: usize, from_environment: Option<PathBuf>) -> Outcome<StoreAnd> {
        let first_is_store = |first: &String| is_store(Path::new(first)) && places.len() > rest_min;
        match (places.split_first(), from_environment) {
            (Some((first, rest)), None) => Ok(StoreAnd { store: first.into(), rest: rest.to_vec() }),
            (Some((first, rest)), Some(_)) if first_is_store(first) => {
                Ok(StoreAnd { store: first.into(), rest: rest.to_vec() })
            }
            (_, Some(store)) => Ok(StoreAnd { store, rest: places.to_vec() }),
            (None, None) => Err(no_store()),
        }
    }

    /// The same with the environment of this process.
    pub fn here(places: &[String], rest_min: usize) -> Outcome<StoreAnd> {
        StoreAnd::split(places, rest_min, from_environment())
    }
}

/// Whether a directory looks like a store.
pub fn is_store(path: &Path) -> bool {
    path.join("ASOF").is_file() || path.join("log").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(places: &[&str], rest_min: usize, env: Option<&str>) -> Option<(String, Vec<String>)> {
        let places: Vec<String> = places.iter().map(|p| p.to_string()).collect();
        let split = StoreAnd::split(&places, rest_min, env.map(PathBuf::from)).ok()?;
        Some((split.store.display().to_string(), split.rest))
    }

    #[test]
    fn named_store_wins_and_the_environment_fills_in() {
        let named = Some(("s".to_owned(), vec!["f".to_owned()]));
        assert_eq!(split(&["s", "f"], 1, None), named);
        assert_eq!(split(&["f"], 1, Some("s")), named);
        assert_eq!(split(&[], 1, None), None);
        assert_eq!(split(&["a", "b"], 1, Some("s")).unwrap().1, ["a", "b"]);
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("log")).unwrap();
        let path = dir.path().to_str().unwrap();
        assert_eq!(split(&[path, "f"], 1, Some("s")).unwrap(), (path.to_owned(), vec!["f".to_owned()]));
        assert_eq!(split(&[path], 1, Some("s")).unwrap().1, [path]);
    }
}
