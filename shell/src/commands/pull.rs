//! A database as the source of `asof ingest`: its options, and where its password is.

use crate::args::{PullArgs, StoreAnd};
use crate::outcome::{Failure, Outcome};
use asofdb::intake::PullOptions;
use asofdb::source::is_database;

/// What is pulled, if the source is a database. Its address is in no message: it may hold a password.
pub fn options(args: &PullArgs, places: &StoreAnd, topics: bool) -> Outcome<Option<PullOptions>> {
    let sources = &places.rest;
    if places.store.to_str().is_some_and(is_database) {
        return Err(Failure::usage("a database stands where the store is to be named")
            .hint("write asof ingest STORE DATABASE"));
    }
    let Some(url) = sources.iter().find(|s| is_database(s)) else {
        return match &args.from_table {
            Some(_) => Err(Failure::usage("--from-table goes with a database, and the sources are files")
                .hint("the address of a database begins with postgres:, mysql: or sqlite:")),
            None => Ok(None),
        };
    };
    if topics || sources.len() > 1 {
        return Err(Failure::usage("a database comes alone, and other sources are named beside it")
            .hint("take them in one after the other"));
    }
    let Some(table) = &args.from_table else {
        return Err(Failure::usage("no table of the database is named").hint("--from-table names it"));
    };
    Ok(Some(PullOptions {
        url: url.clone(),
        table: table.clone(),
        watermark: args.watermark.clone(),
        overlap: args.overlap.clone(),
        snapshot: args.snapshot,
        password: password(args, url)?,
    }))
}

/// The password of a file; else that of the address, which the library reads; else of the environment.
fn password(args: &PullArgs, url: &str) -> Outcome<Option<String>> {
    if let Some(file) = &args.password_file {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("--password-file {}: {e}", file.display())))?;
        return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
    }
    // Everything before the last @ is the user, with the password behind a colon.
    let server = url.split_once("://").map_or("", |(_, rest)| rest);
    if server.rsplit_once('@').is_some_and(|(who, _)| who.contains(':')) {
        return Ok(None);
    }
    let variable = if url.starts_with("postgres") { "PGPASSWORD" } else { "MYSQL_PWD" };
    Ok(std::env::var(variable).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(table: Option<&str>, sources: &[&str]) -> Result<Option<PullOptions>, String> {
        in_store("s", table, sources)
    }

    fn in_store(store: &str, table: Option<&str>, sources: &[&str]) -> Result<Option<PullOptions>, String> {
        let args = PullArgs { from_table: table.map(str::to_owned), snapshot: true, ..PullArgs::default() };
        let rest = sources.iter().map(|s| (*s).to_owned()).collect();
        options(&args, &StoreAnd { store: store.into(), rest }, false).map_err(|f| f.message)
    }

    #[test]
    fn a_database_comes_alone_and_with_a_table() {
        assert_eq!(of(None, &["a.ndjson"]), Ok(None));
        assert!(of(Some("t"), &["a.ndjson"]).unwrap_err().contains("sources are files"));
        assert!(of(Some("t"), &["sqlite:a", "b"]).unwrap_err().contains("alone"));
        assert!(of(None, &["sqlite:a"]).unwrap_err().contains("no table"));
        assert_eq!(of(Some("t"), &["sqlite:a"]).unwrap().unwrap().url, "sqlite:a");
        let swapped = in_store("mysql://u:canary@h/d", Some("t"), &["s"]).unwrap_err();
        assert!(swapped.contains("where the store") && !swapped.contains("canary"), "{swapped}");
    }
}
