//! How a command ends: exit codes, and errors as people see them.

use std::fmt::Write;
use std::io;

/// The exit codes of `asof`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// A statement failed, or contents differ.
    Failed = 1,
    /// The command line or a setting makes no sense.
    Usage = 2,
    /// Another process holds the store.
    Busy = 3,
    /// The store is damaged, or of a newer format.
    Damaged = 4,
    /// A source failed, or an event was quarantined under `--strict`.
    Source = 5,
    /// The time given by `--timeout` is over.
    Timeout = 124,
    /// Cancelled with Ctrl-C.
    Cancelled = 130,
}

/// A place in a statement or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, if the text came from one.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

impl Place {
    /// The place of byte `offset` in `script`.
    pub fn in_text(script: &str, offset: usize, file: Option<&str>) -> Place {
        let mut offset = offset.min(script.len());
        while !script.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = script[..offset].rfind('\n').map_or(0, |n| n + 1);
        let end = script[offset..].find('\n').map_or(script.len(), |n| offset + n);
        Place {
            file: file.map(str::to_owned),
            line: script[..start].matches('\n').count() + 1,
            column: script[start..offset].chars().count() + 1,
            text: script[start..end].trim_end_matches('\r').to_owned(),
        }
    }
}

/// An error that ends a command, or a statement in the REPL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What happened.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
    /// What to do.
    pub hints: Vec<String>,
    /// The reader of stdout has gone: end quietly with 0.
    pub closed_pipe: bool,
}

/// The result of most things here.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure without place or hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into(), place: None, hints: Vec::new(), closed_pipe: false }
    }

    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// The same failure with one more hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// The same failure at a place.
    #[cfg(test)]
    pub fn at(mut self, place: Place) -> Failure {
        self.place = Some(place);
        self
    }

    /// A file operation that failed.
    pub fn io(doing: &str, error: &io::Error) -> Failure {
        let mut failure = Failure::new(Exit::Failed, format!("{doing}: {error}"));
        failure.closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        failure
    }

    /// The text for stderr, with a line feed at its end. Control characters are escaped: messages
    /// quote what sources sent.
    pub fn text(&self, colour: bool) -> String {
        let (red, bold, off) = if colour { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
        let mut out = format!("{red}error:{off} {}\n", visible_lines(&self.message));
        if let Some(place) = &self.place {
            out.push_str(&caret(place, bold, off));
        }
        for hint in &self.hints {
            let _ = writeln!(out, "{bold}hint:{off} {}", visible_lines(hint));
        }
        out
    }
}

fn visible_lines(text: &str) -> String {
    text.lines().map(crate::render::escape::visible).collect::<Vec<_>>().join("\n")
}

/// Columns of the quoted line that are shown at most; long lines are cut around the place.
const QUOTE_COLUMNS_MAX: usize = 100;

fn caret(place: &Place, bold: &str, off: &str) -> String {
    let chars: Vec<char> = place.text.chars().collect();
    let at = (place.column - 1).min(chars.len());
    let first = if at < QUOTE_COLUMNS_MAX { 0 } else { at - QUOTE_COLUMNS_MAX / 2 };
    let shown: String = chars[first..].iter().take(QUOTE_COLUMNS_MAX).collect();
    let before: String = chars[first..at].iter().collect();
    let indent = " ".repeat(unicode_width::UnicodeWidthStr::width(one_line(&before).as_str()));
    let file = place.file.as_ref().map(|f| format!("{f}:")).unwrap_or_default();
    let number = place.line.to_string();
    let gutter = " ".repeat(number.len());
    format!(
        "{gutter}--> {file}{}:{}\n{gutter} |\n{number} | {}\n{gutter} | {indent}{bold}^{off}\n",
        place.line,
        place.column,
        one_line(&shown)
    )
}

fn one_line(text: &str) -> String {
    crate::render::escape::visible(&text.replace('\t', " ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_shows_place_with_caret_and_hints() {
        let script = "select 1;\nselect\tnme from t;";
        let place = Place::in_text(script, script.find("nme").unwrap(), Some("q.sql"));
        let text =
            Failure::new(Exit::Failed, "no column 'nme'").at(place).hint("did you mean 'name'?").text(false);
        assert_eq!(
            text,
            "error: no column 'nme'\n --> q.sql:2:8\n  |\n2 | select nme from t;\n  |        ^\nhint: did you mean 'name'?\n"
        );
    }

    #[test]
    fn places_outside_of_the_text_do_not_panic() {
        assert_eq!(Place::in_text("ab", 99, None).column, 3);
        assert_eq!(Place::in_text("\u{e4}b", 1, None).column, 1);
        assert_eq!(Place::in_text("", 0, None).line, 1);
        let far = Place { file: None, line: 1, column: 5000, text: "x".repeat(6000) };
        assert!(Failure::new(Exit::Failed, "m").at(far).text(false).lines().all(|l| l.len() < 120));
    }

    #[test]
    fn messages_cannot_drive_the_terminal() {
        let text = Failure::new(Exit::Failed, "bad \x1b]52;c;x\x07 value").text(false);
        assert_eq!(text, "error: bad \\x1b]52;c;x\\x07 value\n");
    }
}
