//! What may come next: keywords, the forms of temporal clauses, tables, columns, functions, meta
//! commands. Works on a snapshot of the catalog and never waits.

use super::highlight::KEYWORDS;
use super::meta::{self, Takes};
use crate::backend::{Names, TableNames};
use crate::render::Mode;
use crate::text::lex::{Kind, tokens};

/// Temporal clauses as they are offered after FOR.
const CLAUSES: [&str; 11] = [
    "VALID_TIME AS OF ",
    "VALID_TIME FROM ",
    "VALID_TIME BETWEEN ",
    "VALID_TIME CONTAINED IN (",
    "VALID_TIME ALL ",
    "SYSTEM_TIME AS OF ",
    "SYSTEM_TIME FROM ",
    "SYSTEM_TIME BETWEEN ",
    "SYSTEM_TIME CONTAINED IN (",
    "SYSTEM_TIME ALL ",
    "COMMIT AS OF ",
];
/// What follows the name of an axis.
const SPECS: [&str; 5] = ["AS OF ", "FROM ", "BETWEEN ", "CONTAINED IN (", "ALL "];
/// Words and forms that a clock may be set to.
const TIMES: [&str; 4] = ["now", "yesterday 18:00", "1 hour ago", "today"];

/// Words and forms that a moment may be.
const MOMENTS: [&str; 4] = ["yesterday ", "now", "today", "commit:"];

/// Where the completed word begins (a byte offset) and what it may become, best first.
pub fn complete(line: &str, names: &Names) -> (usize, Vec<String>) {
    if meta::is_meta(line) && line.trim_start().starts_with(['\\', '.']) {
        return complete_meta(line, names);
    }
    let tokens = tokens(line);
    let word = tokens.last().filter(|t| t.kind == Kind::Word);
    if tokens.last().is_some_and(|t| !t.closed || t.kind == Kind::Comment) {
        return (line.len(), Vec::new());
    }
    let start = word.map_or(line.len(), |t| t.start);
    let typed = &line[start..];
    let before: Vec<String> = tokens
        .iter()
        .filter(|t| !matches!(t.kind, Kind::Space | Kind::Comment) && t.start < start)
        .map(|t| line[t.start..t.end].to_uppercase())
        .collect();
    let last = before.last().map_or("", String::as_str);
    let candidates = match last {
        "WHERE" | "ON" | "AND" | "OR" | "BY" => keys_first(&before, names),
        "FOR" => CLAUSES.map(str::to_owned).to_vec(),
        "VALID_TIME" | "SYSTEM_TIME" | "BUSINESS_TIME" | "APPLICATION_TIME" => {
            SPECS.map(str::to_owned).to_vec()
        }
        "FROM" | "JOIN" | "TABLE" | "DESCRIBE" => tables_and_functions(names),
        "." => columns_of(&before, names),
        _ => general(&before, names),
    };
    (start, matching(typed, candidates))
}

fn matching(typed: &str, candidates: Vec<String>) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut found: Vec<String> = Vec::new();
    for candidate in candidates {
        if candidate.to_lowercase().starts_with(&typed) && !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found
}

/// A name as SQL needs it.
fn quoted(name: &str) -> String {
    let plain = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn tables_and_functions(names: &Names) -> Vec<String> {
    let tables = names.tables.iter().map(|t| quoted(&t.name));
    tables.chain(names.table_functions.iter().cloned()).collect()
}

/// The columns of the table or alias before the dot; of all tables where it is not known.
fn columns_of(before: &[String], names: &Names) -> Vec<String> {
    let qualifier = before.len().checked_sub(2).map_or("", |i| before[i].as_str());
    let table = names.table(qualifier).or_else(|| aliased(before, qualifier, names));
    let tables = table.map_or(names.tables.iter().collect::<Vec<_>>(), |t| vec![t]);
    tables.into_iter().flat_map(|t| &t.columns).map(|c| quoted(&c.name)).collect()
}

/// The table that an alias stands for: it stands behind the table, maybe with AS between.
fn aliased<'n>(before: &[String], alias: &str, names: &'n Names) -> Option<&'n TableNames> {
    // The last two are the alias and the dot.
    let uses = before[..before.len().saturating_sub(2)].iter().enumerate().filter(|(_, word)| *word == alias);
    let table_at = |i: usize| i.checked_sub(1).and_then(|i| names.table(&before[i]));
    uses.filter_map(|(i, _)| match i.checked_sub(1).map(|i| before[i].as_str()) {
        Some("AS") => table_at(i - 1),
        _ => table_at(i),
    })
    .next()
}

/// The key columns of the tables that the statement names come first, then as [`general`].
fn keys_first(before: &[String], names: &Names) -> Vec<String> {
    let named = names.tables.iter().filter(|t| before.contains(&t.name.to_uppercase()));
    let mut found: Vec<String> = named.flat_map(TableNames::key).map(|c| quoted(&c.name)).collect();
    found.extend(general(before, names));
    found
}

/// Columns of the tables that the statement names come first, then everything else.
fn general(before: &[String], names: &Names) -> Vec<String> {
    let named = names.tables.iter().filter(|t| before.contains(&t.name.to_uppercase()));
    let mut found: Vec<String> = named.flat_map(|t| &t.columns).map(|c| quoted(&c.name)).collect();
    found.extend(KEYWORDS.map(str::to_owned));
    found.extend(names.tables.iter().map(|t| quoted(&t.name)));
    found.extend(names.tables.iter().flat_map(|t| &t.columns).map(|c| quoted(&c.name)));
    found.extend(names.functions.iter().map(|f| format!("{f}(")));
    found
}

fn complete_meta(line: &str, names: &Names) -> (usize, Vec<String>) {
    let lead = line.len() - line.trim_start().len();
    let body = &line[lead + 1..];
    let Some(blank) = body.find(char::is_whitespace) else {
        let all = meta::TABLE.iter().flat_map(|m| m.names).map(|n| n.to_string()).collect();
        return (lead + 1, matching(body, all));
    };
    let start = line.rfind(char::is_whitespace).map_or(line.len(), |i| i + 1);
    let arguments_before = body[blank..].split_whitespace().count() - usize::from(start < line.len());
    let Ok(command) = meta::find(&body[..blank]) else { return (line.len(), Vec::new()) };
    let candidates = match (command.takes, arguments_before) {
        (Takes::Cell, n) if n > 0 => cell(&body[blank..], n, names),
        (Takes::Moments, 1 | 2) => MOMENTS.map(str::to_owned).to_vec(),
        (Takes::Table | Takes::Cell | Takes::Moments, 0) => {
            names.tables.iter().map(|t| t.name.clone()).collect()
        }
        (Takes::Mode, 0) => Mode::NAMES.map(|(name, _)| name.to_owned()).to_vec(),
        (Takes::Clock, 0) => ["system ", "valid ", "commit ", "now"].map(str::to_owned).to_vec(),
        (Takes::Clock, 1) => TIMES.map(str::to_owned).to_vec(),
        (Takes::Command, 0) => meta::TABLE.iter().flat_map(|m| m.names).map(|n| n.to_string()).collect(),
        _ => Vec::new(),
    };
    (start, matching(&line[start..], candidates))
}

/// What follows a table and `n - 1` other words of `TABLE KEY... COLUMN [at WHEN] [known WHEN]`.
fn cell(arguments: &str, n: usize, names: &Names) -> Vec<String> {
    let Some(table) = arguments.split_whitespace().next().and_then(|t| names.table(t)) else {
        return Vec::new();
    };
    match n.cmp(&(table.key().len() + 1)) {
        std::cmp::Ordering::Less => Vec::new(),
        std::cmp::Ordering::Equal => table.columns.iter().map(|c| c.name.clone()).collect(),
        std::cmp::Ordering::Greater => {
            [&["at ", "known "][..], &TIMES].concat().into_iter().map(str::to_owned).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::testing::Fake;

    fn offered(line: &str) -> Vec<String> {
        complete(line, &Fake::default().names()).1
    }

    #[test]
    fn temporal_forms_follow_for() {
        assert_eq!(offered("select * from orders for v")[0], "VALID_TIME AS OF ");
        assert_eq!(offered("select * from orders FOR SYSTEM_TIME c"), ["CONTAINED IN ("]);
        assert_eq!(offered("select * from orders for com"), ["COMMIT AS OF "]);
    }

    #[test]
    fn tables_follow_from_and_columns_follow_dots() {
        assert_eq!(offered("select * from or"), ["orders"]);
        assert_eq!(offered("select * from his"), ["history('"]);
        assert_eq!(offered("select orders.st"), ["status"]);
        assert_eq!(offered("select * from orders where am"), ["amount"]);
        assert_eq!(offered("sel"), ["SELECT"]);
        assert_eq!(offered("select * from customers where ")[..2], ["code", "name"]);
        assert_eq!(offered("select * from orders o where o."), ["id", "status", "amount"]);
        assert_eq!(offered("select * from orders o join customers AS c on c."), ["code", "name"]);
    }

    #[test]
    fn functions_are_those_of_the_library() {
        assert_eq!(offered("select * from com"), ["commits()"]);
        assert!(offered("select * from scd").is_empty(), "a function that there is not");
        assert_eq!(offered("select cou"), ["count("]);
        assert!(offered("select * from orders for snap").is_empty(), "snapshots are not supported yet");
    }

    #[test]
    fn nothing_is_offered_inside_quotes_and_comments() {
        assert!(offered("select 'or").is_empty() && offered("select 1 -- or").is_empty());
        assert!(offered("select \"or").is_empty());
    }

    #[test]
    fn meta_commands_complete_names_and_arguments() {
        assert_eq!(offered("\\ti"), ["timeline", "timing", "timer", "timeout"]);
        assert_eq!(offered(".timeline cu"), ["customers"]);
        assert!(offered(".timeline customers cu").is_empty());
        assert_eq!(offered("\\why customers 7 n"), ["name"]);
        assert!(offered("\\why customers n").is_empty(), "that is the key");
        assert_eq!(offered("\\why customers 7 name k"), ["known "]);
        assert_eq!(offered("\\diff customers c"), ["commit:"]);
        assert_eq!(offered("\\at s"), ["system "]);
        assert_eq!(offered("\\at system y"), ["yesterday 18:00"]);
        assert_eq!(offered("\\o nd"), ["ndjson"]);
        assert_eq!(complete("\\o nd", &Names::default()).0, 3);
    }

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(quoted("Order Lines"), "\"Order Lines\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("orders_2"), "orders_2");
    }
}
