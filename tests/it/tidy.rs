//! The rules of the house: which crate may know which, sizes, bans, and documents that keep step.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file, at most.
const FILE_LINES_MAX: usize = 600;
/// Files that are longer, with their length. It only shrinks.
const LONG_FILES: &[(&str, usize)] = &[];

/// Lines of a function, at most.
const FUNCTION_LINES_MAX: usize = 70;
/// Functions that are longer, with their length. It only shrinks.
const LONG_FUNCTIONS: &[(&str, &str, usize)] =
    &[("src/format/parquet/cells.rs", "cell", 75), ("src/intake/emit.rs", "emit", 71)];

/// Crates and the only places that may name them.
const FENCES: &[(&str, &[&str])] = &[
    ("redb", &["storage/src/index/"]),
    ("crc32fast", &["storage/src/log/"]),
    ("parquet", &["storage/src/run/", "src/export/", "src/format/"]),
    ("datafusion", &["src/sql/", "src/export/", "src/lib.rs"]),
    ("ureq", &["src/source/registry.rs"]),
    ("rdkafka", &["src/source/kafka/", "benches/workload/kafka.rs"]),
    ("sqlx", &["src/source/pull/"]),
    ("rustyline", &["shell/"]),
    ("clap", &["shell/"]),
    ("asofdb_shell", &["shell/"]),
];

/// Crates that a manifest must not ask for.
const FOREIGN: &[(&str, &[&str])] = &[
    (
        "storage/Cargo.toml",
        &["asofdb", "asofdb-shell", "datafusion", "tokio", "clap", "rustyline", "futures", "rdkafka", "sqlx"],
    ),
    ("Cargo.toml", &["asofdb-shell", "clap", "rustyline", "redb", "crc32fast"]),
    ("tests/support/Cargo.toml", &["asofdb", "asofdb-storage", "asofdb-shell"]),
];

/// The rules of `docs/semantics.md`: letter and how many.
const RULES: [(char, u32); 4] = [('A', 5), ('B', 15), ('C', 4), ('D', 6)];

/// Faults that `docs/testing.md` must have a test for.
const FAULTS: &str = "S0 S1 S2 S4 S5 D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D12 D13 D14 D15 D17 D18 D20 D21 D24 \
                      H1 H3 H4 H6 H7 H9 H10 H11 H14 H16 H17 A12 A13";

/// Wishes that `docs/testing.md` must have a test for.
const WISHES: usize = 18;

/// This file names what it bans.
const SELF: &str = "tests/it/tidy.rs";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file with one of the endings, by its path from the root.
fn files(endings: &[&str]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open: Vec<PathBuf> = vec![root().to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                let skipped = ["target", ".git", "fixtures"].contains(&&*name) || name.ends_with(".asof");
                if !skipped {
                    open.push(path);
                }
            } else if endings.iter().any(|e| name.ends_with(e)) {
                let short = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
                found.insert(short, fs::read_to_string(&path).unwrap());
            }
        }
    }
    assert!(!found.is_empty(), "no file ends with {endings:?}");
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where `word` stands by itself in `text`.
fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
    text.match_indices(word)
        .map(|(at, found)| (at, at + found.len()))
        .filter(|(start, end)| !text[..*start].ends_with(is_word) && !text[*end..].starts_with(is_word))
}

/// A line without its comment. (A `//` inside a text ends the line too early, which hides little.)
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or("")
}

/// Whether a line of code names the crate itself, not a module of ours with that name.
fn names_crate(line: &str, name: &str) -> bool {
    let line = code(line);
    words(line, name).any(|(start, end)| {
        let before = &line[..start];
        let outer = !before.ends_with("::") || before.trim_start() == "::" || before.ends_with(" ::");
        let used =
            line[end..].starts_with("::") || before.trim_end().ends_with("use") || before.ends_with("crate ");
        outer && used
    })
}

/// The lines of a library file that are no test, with their numbers from 1.
fn library_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines
        .windows(2)
        .position(|w| w[0] == "#[cfg(test)]" && w[1].starts_with("mod ") && w[1].ends_with('{'))
        .unwrap_or(lines.len());
    lines.into_iter().take(end).enumerate().map(|(i, line)| (i + 1, line))
}

fn is_library(path: &str) -> bool {
    let test = path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs");
    (path.starts_with("src/") || path.starts_with("storage/src/")) && !test
}

fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

#[test]
fn crates_are_named_only_behind_their_fences() {
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let product = ["src/", "storage/src/", "shell/src/"].iter().any(|d| path.starts_with(d));
        for (name, places) in FENCES.iter().filter(|_| product) {
            if places.iter().any(|p| path.starts_with(p)) {
                continue;
            }
            let lines = text.lines().enumerate().filter(|(_, line)| names_crate(line, name));
            faults.extend(lines.map(|(i, _)| format!("{path}:{}: {name} belongs into {places:?}", i + 1)));
        }
    }
    assert_none("a crate outside of its fence", &faults);
}

#[test]
fn fences_see_crates_and_not_modules() {
    for line in [
        "use redb::Database;",
        "    redb::open()",
        "use redb;",
        "fn f(d: &redb::Database)",
        "pub use ::redb::X;",
    ] {
        assert!(names_crate(line, "redb"), "{line}");
    }
    for line in
        ["use crate::redb::X;", "\"index.redb\"", "// redb::open", "my_redb::open()", "super::redb::open()"]
    {
        assert!(!names_crate(line, "redb"), "{line}");
    }
}

#[test]
fn manifests_keep_the_direction() {
    let mut faults = Vec::new();
    for (path, foreign) in FOREIGN {
        let text = fs::read_to_string(root().join(path)).unwrap();
        let mut section = "";
        for (i, line) in text.lines().enumerate() {
            if line.starts_with('[') {
                section = line;
            }
            let asked = section.starts_with("[dependencies") || section.starts_with("[build-dependencies");
            let name = line.split(['=', '.', ' ']).next().unwrap_or("");
            let named = section.strip_prefix("[dependencies.").map(|s| s.trim_end_matches(']'));
            if asked && (foreign.contains(&name) || named.is_some_and(|n| foreign.contains(&n))) {
                faults.push(format!("{path}:{}: {line}", i + 1));
            }
        }
    }
    assert_none("a dependency against the direction", &faults);
}

#[test]
fn files_are_short() {
    let mut faults = Vec::new();
    let files = files(&[".rs"]);
    for (path, text) in &files {
        let lines = text.lines().count();
        let allowed = LONG_FILES.iter().find(|(p, _)| p == path).map_or(FILE_LINES_MAX, |(_, n)| *n);
        if lines > allowed {
            faults.push(format!("{path} has {lines} lines, {allowed} are allowed"));
        }
    }
    for (path, n) in LONG_FILES {
        match files.get(*path).map(|text| text.lines().count()) {
            Some(lines) if lines > FILE_LINES_MAX => {}
            other => faults.push(format!("the exception {path} ({n}) is needed no longer: {other:?} lines")),
        }
    }
    assert_none("long files", &faults);
}

/// Functions of a formatted file: name, first line from 1, lines.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(at) = words(code(line), "fn").next().map(|(start, _)| start) else { continue };
        let before = line[..at].trim_start();
        let plain = ["pub", "async", "const", "unsafe", "extern"];
        let head =
            before.split_whitespace().all(|w| plain.iter().any(|p| w.starts_with(p)) || w.ends_with(')'));
        let name: String = line[at + 2..].trim_start().chars().take_while(|c| is_word(*c)).collect();
        if !head || name.is_empty() || line.trim_end().ends_with('}') {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = lines[i..].iter().position(|l| l.len() == indent + 1 && l.trim_start() == "}");
        let semicolon = lines[i..].iter().position(|l| l.trim_end().ends_with(';') || l.ends_with('{'));
        let body = semicolon.is_some_and(|s| lines[i + s].ends_with('{'));
        if let (Some(end), true) = (end, body) {
            found.push((name, i + 1, end + 1));
        }
    }
    found
}

#[test]
fn functions_are_short() {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    let mut seen = 0;
    for (path, text) in files(&[".rs"]) {
        for (name, line, lines) in functions(&text) {
            seen += 1;
            let exception = LONG_FUNCTIONS.iter().find(|(p, f, _)| *p == path && *f == name);
            if lines > exception.map_or(FUNCTION_LINES_MAX, |(_, _, n)| *n) {
                faults.push(format!("{path}:{line}: {name} has {lines} lines"));
            }
            used.extend(exception.filter(|_| lines > FUNCTION_LINES_MAX).map(|(p, f, _)| (*p, *f)));
        }
    }
    let stale = LONG_FUNCTIONS.iter().filter(|(p, f, _)| !used.contains(&(*p, *f)));
    faults.extend(stale.map(|(p, f, n)| format!("the exception {p} {f} ({n}) is needed no longer")));
    assert!(seen > 1000, "only {seen} functions were recognised");
    assert_none("long functions", &faults);
}

#[test]
fn nothing_is_unfinished_or_left_out() {
    let banned = ["todo!", "unimplemented!", "dbg!", "#[ignore"];
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs"]).into_iter().filter(|(path, _)| path != SELF) {
        for (i, line) in text.lines().enumerate() {
            let found = banned.iter().filter(|b| code(line).contains(**b));
            faults.extend(found.map(|b| format!("{path}:{}: {b}", i + 1)));
        }
    }
    assert_none("unfinished", &faults);
}

#[test]
fn no_text_holds_an_unfinished_merge() {
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs", ".md", ".toml", ".slt", ".py", ".sh", "run", "full", "databases"]) {
        for (i, line) in text.lines().enumerate() {
            let mark = ["<<<<<<<", ">>>>>>>"]
                .into_iter()
                .find(|m| line.strip_prefix(m).is_some_and(|r| r.starts_with(' ')));
            faults.extend(mark.map(|_| format!("{path}:{}: {line}", i + 1)));
        }
    }
    assert_none("marks of a merge", &faults);
}

#[test]
fn libraries_do_not_print_or_look_around() {
    const BANNED: [&str; 8] = [
        "println!",
        "eprintln!",
        "print!",
        "eprint!",
        ".unwrap()",
        "std::env",
        "SystemTime::now",
        "Utc::now",
    ];
    let clock = "storage/src/clock.rs";
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs"]).into_iter().filter(|(path, _)| is_library(path)) {
        for (line_number, line) in library_lines(&text) {
            for banned in BANNED.iter().filter(|b| code(line).contains(**b)) {
                if !(path == clock && *banned == "SystemTime::now") {
                    faults.push(format!("{path}:{line_number}: {banned}"));
                }
            }
        }
    }
    assert_none("libraries are handed their clock, disk and output", &faults);
}

/// Whether a text has a number of an issue, such as a hash sign and digits; `#1` in a link is one too.
fn issue_number(line: &str) -> bool {
    line.match_indices('#').any(|(at, _)| {
        let digits = line[at + 1..].chars().take_while(char::is_ascii_digit).count();
        let ends = !line[at + 1 + digits..].starts_with(is_word);
        digits > 0 && ends && !line[..at].ends_with(is_word) && !line[..at].ends_with('&')
    })
}

#[test]
fn the_repository_speaks_of_the_project_alone() {
    let everywhere = [concat!("/wo", "rk/"), concat!("/tmp", "/t-"), concat!("/w", "t/")];
    let mut faults = Vec::new();
    let texts = files(&[".rs", ".md", ".toml", ".slt", "/run", "/full", "run", "full"]);
    for (path, text) in texts.iter().filter(|(path, _)| *path != SELF) {
        let prose = path.ends_with(".md") || path.ends_with(".toml");
        for (i, line) in text.lines().enumerate() {
            let comment = if prose { line } else { line.split_once("//").map_or("", |(_, c)| c) };
            let mut fault = |what: &str| faults.push(format!("{path}:{}: {what}", i + 1));
            everywhere.iter().filter(|w| line.contains(**w)).for_each(|w| fault(w));
            let lower = comment.to_lowercase();
            if words(&lower, "helper").next().is_some() || words(&lower, "helpers").next().is_some() {
                fault("a word of the workplace");
            }
            if path.ends_with(".md") && issue_number(line) {
                fault("the number of an issue");
            }
        }
    }
    assert_none("words that belong elsewhere", &faults);
}

#[test]
fn numbers_of_issues_are_told_from_other_hashes() {
    assert!(issue_number("see #12") && issue_number("(#7)"));
    assert!(
        !issue_number("# Title") && !issue_number("a#1") && !issue_number("&#39;") && !issue_number("#1a")
    );
}

/// Names of all functions with a test attribute.
fn tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in files(&[".rs"]).into_values() {
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            let attribute = line.starts_with("#[") || line.starts_with("//");
            marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            if let Some((_, rest)) = line.split_once("fn ").filter(|_| marked && !attribute) {
                found.insert(rest.chars().take_while(|c| is_word(*c)).collect());
            }
            marked &= attribute;
        }
    }
    found
}

/// The rules of a document with the tests that each names.
fn named_tests(document: &str) -> BTreeMap<String, Vec<String>> {
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    let mut rule = None;
    for line in document.lines() {
        if let Some(rest) = line.strip_prefix("- **") {
            rule = rest.split_once("** ").map(|(id, _)| id.to_owned());
        } else if line.is_empty() || line.starts_with('#') {
            rule = None;
        }
        if let Some(rule) = &rule {
            let text = rules.entry(rule.clone()).or_default();
            text.push_str(line);
            text.push('\n');
        }
    }
    let names = |text: String| {
        let tests = text.split_once("Tests: ").map_or("", |(_, tests)| tests);
        tests.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    rules.into_iter().map(|(rule, text)| (rule, names(text))).collect()
}

#[test]
fn every_rule_names_a_test_that_exists() {
    let document = fs::read_to_string(root().join("docs/semantics.md")).unwrap();
    let rules = named_tests(&document);
    let tests = tests();
    let mut faults = Vec::new();
    for (letter, count) in RULES {
        for rule in (1..=count).map(|n| format!("{letter}{n}")) {
            match rules.get(&rule) {
                None => faults.push(format!("rule {rule} is missing")),
                Some(named) if named.is_empty() => faults.push(format!("rule {rule} names no test")),
                Some(named) => {
                    let there = |n: &&String| match n.contains('/') {
                        true => root().join(n).is_file(),
                        false => tests.contains(*n),
                    };
                    let missing = named.iter().filter(|n| !there(n));
                    faults.extend(missing.map(|n| format!("rule {rule}: there is no test {n}")));
                }
            }
        }
    }
    assert_eq!(rules.len(), RULES.iter().map(|(_, n)| *n as usize).sum::<usize>(), "{:?}", rules.keys());
    assert_none("docs/semantics.md", &faults);
}

#[test]
fn every_fault_names_a_test_that_exists() {
    let document = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let section = document.split("\n## ").find(|s| s.starts_with("Faults\n")).expect("a section on faults");
    let rows: Vec<&str> = section.lines().filter(|l| l.starts_with("| ")).skip(1).collect();
    let (tests, mut faults, mut named_by_row) = (tests(), Vec::new(), BTreeMap::<&str, Vec<&str>>::new());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [ids, _, names, _] = cells[..] else { panic!("four cells: {row}") };
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let there = |n: &&&str| tests.contains(**n) || root().join(n).is_file();
        faults.extend(names.iter().filter(|n| !there(n)).map(|n| format!("there is no test {n}: {row}")));
        if names.is_empty() {
            faults.push(format!("no test: {row}"));
        }
        ids.split(',').for_each(|id| named_by_row.entry(id.trim()).or_default().extend(&names));
    }
    for id in FAULTS.split_whitespace() {
        // Scripts have rows in their text, tests in their names.
        let of_row = |n: &&str| {
            n.starts_with("fault_") && n.split('_').any(|part| part.eq_ignore_ascii_case(id))
                || n.contains('/')
                    && words(&fs::read_to_string(root().join(n)).unwrap_or_default(), id).next().is_some()
        };
        if !named_by_row.get(id).is_some_and(|names| names.iter().any(of_row)) {
            faults.push(format!("fault {id} has no test that is called after it"));
        }
    }
    assert_none("docs/testing.md", &faults);
}

#[test]
fn every_wish_names_a_test_that_exists() {
    let document = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let section = document.split("\n## ").find(|s| s.starts_with("Wishes\n")).expect("a section on wishes");
    let rows: Vec<&str> = section.lines().filter(|l| l.starts_with("| ")).skip(1).collect();
    let (tests, mut faults, mut wishes) = (tests(), Vec::new(), BTreeSet::new());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [wish, _, names, _] = cells[..] else { panic!("four cells: {row}") };
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let of_wish = |n: &&&str| n.starts_with(&format!("wish_{wish}_")) && tests.contains(**n);
        if names.is_empty() || !names.iter().all(|n| of_wish(&n)) {
            faults.push(format!("no test of wish {wish}, or one that is not there: {row}"));
        }
        wishes.insert(wish.to_owned());
    }
    faults.extend((1..=WISHES).map(|n| n.to_string()).filter(|n| !wishes.contains(n)));
    assert_none("wishes in docs/testing.md", &faults);
}
