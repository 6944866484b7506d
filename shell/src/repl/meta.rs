//! The meta commands: one table that drives parsing, help and completion.

use asofdb::near::nearest;

/// What a meta command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Help.
    Help,
    /// Leave.
    Quit,
    /// Tables, or one table.
    Describe,
    /// Vertical answers on and off.
    Expand,
    /// Timing on and off.
    Timing,
    /// Where and how answers go.
    Output,
    /// Run a file.
    Include,
    /// Move a clock.
    At,
    /// Draw the rectangles of a key.
    Timeline,
    /// List the events of a key.
    History,
    /// What changed between two moments.
    Diff,
    /// Which event gave a cell its value.
    Why,
    /// The demo, step by step.
    Tour,
    /// The last answer once more.
    Last,
    /// The pager on and off.
    Pager,
    /// Rows of a table.
    MaxRows,
    /// Columns of a table.
    Width,
    /// Text for NULL.
    Null,
    /// Time a statement may take.
    Timeout,
}

/// What the arguments of a meta command are, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing to complete.
    Nothing,
    /// A table first.
    Table,
    /// A file or an output mode.
    Mode,
    /// A clock and a time.
    Clock,
    /// A meta command.
    Command,
    /// A table, its key, a column, and when.
    Cell,
    /// A table and two moments.
    Moments,
}

/// One meta command.
#[derive(Debug)]
pub struct Meta {
    /// Its names, the short one first.
    pub names: &'static [&'static str],
    /// Its arguments.
    pub arguments: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What it does.
    pub action: Action,
    /// What its arguments are.
    pub takes: Takes,
}

macro_rules! meta {
    ($names:expr, $arguments:expr, $action:ident, $takes:ident, $help:expr) => {
        Meta {
            names: &$names,
            arguments: $arguments,
            help: $help,
            action: Action::$action,
            takes: Takes::$takes,
        }
    };
}

/// All of them, in the order of the help.
pub const TABLE: [Meta; 19] = [
    meta!(["?", "help", "h"], "[WORD]", Help, Command, "this list, or the commands that speak of WORD"),
    meta!(
        ["d", "tables", "schema"],
        "[TABLE]",
        Describe,
        Table,
        "the tables, or the columns and the key of one"
    ),
    meta!(
        ["at"],
        "[system|valid|commit] WHEN|now",
        At,
        Clock,
        "move the session clock: \\at system yesterday 18:00, \\at commit 12, \\at now"
    ),
    meta!(
        ["timeline"],
        "TABLE KEY...",
        Timeline,
        Table,
        "draw what was held true of a key, valid time by system time"
    ),
    meta!(["history"], "TABLE KEY...", History, Table, "every event of a key, in order"),
    meta!(
        ["why"],
        "TABLE KEY... COLUMN [at WHEN] [known WHEN]",
        Why,
        Cell,
        "which event gave this cell its value: \\why orders 17 status at 2026-11-01 known yesterday 18:00"
    ),
    meta!(
        ["diff"],
        "TABLE FROM [TO]",
        Diff,
        Moments,
        "what was held true at one system time and not at another: \\diff orders 'yesterday 18:00' now; of commits, \
         what each changed: \\diff orders commit:3 commit:5"
    ),
    meta!(["x", "expanded"], "", Expand, Nothing, "one column a line, on and off"),
    meta!(
        ["o", "output", "mode"],
        "[FILE|MODE]",
        Output,
        Mode,
        "answers go to FILE, or are written as MODE; nothing = back to the screen, as at first"
    ),
    meta!(["last"], "", Last, Nothing, "the last answer with all its rows and columns"),
    meta!(
        ["pager"],
        "[on|off|COMMAND]",
        Pager,
        Nothing,
        "whether answers that do not fit the screen go through a pager: $ASOF_PAGER, $PAGER or less"
    ),
    meta!(["maxrows"], "[N|all]", MaxRows, Nothing, "rows that a table on the screen shows; nothing = 40"),
    meta!(
        ["width"],
        "[N|all]",
        Width,
        Nothing,
        "columns that a table may have; nothing = those of the screen"
    ),
    meta!(["tour"], "[STEP]", Tour, Nothing, "the store of asof demo, step by step; again = the next step"),
    meta!(["null"], "[TEXT]", Null, Nothing, "text for NULL; nothing = the mode's own"),
    meta!(["t", "timing", "timer"], "", Timing, Nothing, "show how long statements take, on and off"),
    meta!(["timeout"], "[TIME]", Timeout, Nothing, "give up after TIME, such as 30s; nothing = never"),
    meta!(["i", "include", "read"], "FILE", Include, Nothing, "run the statements of FILE"),
    meta!(["q", "quit", "exit"], "", Quit, Nothing, "leave (also Ctrl-D)"),
];

/// A meta command as it was typed.
#[derive(Debug, PartialEq, Eq)]
pub struct Typed<'a> {
    /// Its name, without the backslash or dot.
    pub name: &'a str,
    /// Everything behind the name, without blanks around it.
    pub rest: &'a str,
}

/// Words that people type to leave or to be helped, as commands of their own.
const BARE: [&str; 3] = ["quit", "exit", "help"];

/// The word, if the line is nothing but one of [`BARE`].
fn bare(line: &str) -> Option<&'static str> {
    let line = line.trim().trim_end_matches(';').trim_end();
    BARE.into_iter().find(|word| line.eq_ignore_ascii_case(word))
}

/// Whether a line is a meta command.
pub fn is_meta(line: &str) -> bool {
    let line = line.trim_start();
    if bare(line).is_some() {
        return true;
    }
    line.starts_with('\\') || (line.starts_with('.') && !line[1..].starts_with(|c: char| c.is_ascii_digit()))
}

/// Splits a meta command; `None` if the line is none. A `;` at its end is forgiven.
pub fn split(line: &str) -> Option<Typed<'_>> {
    if !is_meta(line) {
        return None;
    }
    if let Some(name) = bare(line) {
        return Some(Typed { name, rest: "" });
    }
    let body = line.trim().trim_end_matches(';').trim_end();
    let body = &body[1..];
    let end = body.find(char::is_whitespace).unwrap_or(body.len());
    Some(Typed { name: &body[..end], rest: body[end..].trim() })
}

/// The meta command of that name; else an error text with the nearest.
pub fn find(name: &str) -> Result<&'static Meta, String> {
    if let Some(meta) = TABLE.iter().find(|m| m.names.contains(&name)) {
        return Ok(meta);
    }
    let long = TABLE.iter().flat_map(|m| m.names).copied().filter(|n| n.len() > 2);
    match nearest(name, long) {
        Some(near) => Err(format!("did you mean \\{near}?")),
        None => Err("\\? lists the commands".into()),
    }
}

/// Splits arguments at blanks; quotes keep them together and are doubled to stand for themselves.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
            continue;
        }
        let mut word = String::new();
        if c == '\'' || c == '"' {
            chars.next();
            loop {
                match chars.next() {
                    Some(d) if d == c && chars.peek() == Some(&c) => word.extend(chars.next()),
                    Some(d) if d == c => break,
                    Some(d) => word.push(d),
                    None => return Err(format!("the quote {c} is not closed")),
                }
            }
        } else {
            while let Some(d) = chars.next_if(|d| !d.is_whitespace()) {
                word.push(d);
            }
        }
        found.push(word);
    }
    Ok(found)
}

/// Columns of the help.
const HELP_COLUMNS: usize = 79;
/// Columns of the left side of the help.
const USAGE_COLUMNS: usize = 38;

/// Breaks a text into lines of at most `width` columns.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            let blank = if lines[last].is_empty() { "" } else { " " };
            lines[last] += &format!("{blank}{word}");
        }
    }
    lines
}

/// The help: all commands, or those that speak of `word`.
pub fn help(word: &str) -> String {
    let word = word.trim_start_matches(['\\', '.']).to_lowercase();
    let line = |m: &Meta| {
        let usage = format!("\\{} {}", m.names[0], m.arguments);
        let also: Vec<String> = m.names[1..].iter().map(|n| format!("\\{n}")).collect();
        let text = if also.is_empty() {
            m.help.to_owned()
        } else {
            format!("{} (also {})", m.help, also.join(", "))
        };
        let lines = wrap(&text, HELP_COLUMNS - USAGE_COLUMNS).into_iter();
        let text: String = lines.map(|l| format!("{:USAGE_COLUMNS$}{l}\n", "")).collect();
        // A long usage has a line for itself.
        match usage.len() < USAGE_COLUMNS - 2 {
            true => format!("  {usage:<width$}{}", &text[USAGE_COLUMNS..], width = USAGE_COLUMNS - 2),
            false => format!("  {usage}\n{text}"),
        }
    };
    let about = |m: &&Meta| {
        word.is_empty() || m.names.contains(&word.as_str()) || m.help.to_lowercase().contains(&word)
    };
    let lines: String = TABLE.iter().filter(about).map(line).collect();
    match lines.is_empty() {
        true => format!("no command speaks of '{word}'; \\? lists them all\n"),
        false => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslash_and_dot_begin_a_command_and_numbers_do_not() {
        assert_eq!(
            split(" \\at system 3 hours ago; "),
            Some(Typed { name: "at", rest: "system 3 hours ago" })
        );
        assert_eq!(split(".d orders"), Some(Typed { name: "d", rest: "orders" }));
        assert_eq!(split("\\"), Some(Typed { name: "", rest: "" }));
        assert_eq!(split(" Quit;"), Some(Typed { name: "quit", rest: "" }));
        assert_eq!(split("exit\n").map(|t| t.name), Some("exit"));
        assert!(split("help me").is_none() && split("quitter").is_none());
        assert!(split("select 1").is_none() && split(".5 + 1").is_none() && split("").is_none());
    }

    #[test]
    fn names_are_unique_and_near_ones_are_suggested() {
        let all: Vec<&str> = TABLE.iter().flat_map(|m| m.names).copied().collect();
        let mut unique = all.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
        assert_eq!(find("quit").unwrap().action, Action::Quit);
        assert_eq!(find("timelnie").unwrap_err(), "did you mean \\timeline?");
        assert_eq!(find("frobnicate").unwrap_err(), "\\? lists the commands");
    }

    #[test]
    fn every_command_is_in_the_help() {
        for meta in &TABLE {
            assert!(help("").contains(&format!("\\{} ", meta.names[0])), "{meta:?}");
            let usage = format!("  \\{} {}", meta.names[0], meta.arguments);
            let at = help("").find(&usage).unwrap_or_else(|| panic!("no {usage}")) + usage.len();
            assert!(
                help("")[at..].starts_with(['\n', ' ']) || usage.ends_with(' '),
                "{usage} runs into its text"
            );
        }
        assert!(help("").lines().all(|l| l.len() < 80), "{}", help(""));
        assert!(help("timeline").starts_with("  \\timeline") && help("zzz").starts_with("no command"));
    }

    #[test]
    fn arguments_keep_quoted_blanks() {
        assert_eq!(words("orders 'a b' \"it\"\"s\" 7").unwrap(), ["orders", "a b", "it\"s", "7"]);
        assert!(words("orders 'a").is_err());
    }
}
