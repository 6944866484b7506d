//! `\at`: moves the session clock and says where it stands.

use crate::backend::{Backend, Clocks};
use crate::outcome::{Exit, Failure, Outcome};
use crate::text::when::{self, When};
use asofdb::time::format_instant;

/// What a move comes down to.
#[derive(Debug, PartialEq, Eq)]
pub struct Move {
    /// The statements that make it.
    pub statements: Vec<String>,
    /// What to tell.
    pub echo: String,
}

const HINT: &str = "\\at system yesterday 18:00, \\at valid 2026-11-01, \\at commit 12, \\at now";

/// Reads the arguments of `\at`. A time without an axis moves valid and system time; `now` alone
/// resets all clocks.
pub fn plan(arguments: &str, now_us: i64, backend: &dyn Backend) -> Outcome<Move> {
    let (axis, text) = split_axis(arguments);
    let wrong = |e: String| {
        Failure::new(Exit::Failed, e).hint(format!("times are written {}", when::FORMS)).hint(HINT)
    };
    let when = when::parse(text, now_us).map_err(wrong)?;
    match axis {
        "commit" => commit(when, backend),
        "" if when == When::Now => {
            Ok(reset(&["valid_time", "system_time", "commit"], "all clocks run again"))
        }
        "" => {
            let both = [instant("valid", when, text, backend), instant("system", when, text, backend)];
            let lines: Vec<&str> = both.iter().map(|m| m.echo.as_str()).collect();
            let echo = lines.join("\n");
            Ok(Move { statements: both.iter().flat_map(|m| m.statements.clone()).collect(), echo })
        }
        axis if when == When::Now => {
            Ok(reset(&[&format!("{axis}_time")], &format!("{axis} time is the running clock again")))
        }
        axis => Ok(instant(axis, when, text, backend)),
    }
}

fn split_axis(arguments: &str) -> (&str, &str) {
    let (first, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    let axis = match first.to_ascii_lowercase().as_str() {
        "system" | "sys" | "system_time" => "system",
        "valid" | "valid_time" => "valid",
        "commit" => "commit",
        _ => return ("", arguments.trim()),
    };
    (axis, rest.trim())
}

fn reset(settings: &[&str], echo: &str) -> Move {
    let statements = settings.iter().map(|s| format!("RESET asof.{s}")).collect();
    Move { statements, echo: echo.to_owned() }
}

fn instant(axis: &str, when: When, text: &str, backend: &dyn Backend) -> Move {
    let (value, mut echo) = match when {
        When::Instant(us) => {
            let at = format_instant(us);
            let said = if text == at { String::new() } else { format!(" ({text}, UTC)") };
            (format!("'{at}'"), format!("{axis} time as of {at}{said}"))
        }
        When::Integer(n) => (n.to_string(), format!("{axis} time as of {n} (axes of integers)")),
        When::Now => ("now()".into(), String::new()),
    };
    if let (When::Instant(us), "system") = (when, axis) {
        echo.push_str("; ");
        echo.push_str(&commit_then(us, backend));
    }
    Move { statements: vec![format!("SET asof.{axis}_time = {value}")], echo }
}

fn commit_then(us: i64, backend: &dyn Backend) -> String {
    match backend.commit_at_or_before(us) {
        Some((seq, at)) => format!("this store was at commit {seq} ({}) then", format_instant(at)),
        None => "this store had no commit yet then".into(),
    }
}

fn commit(when: When, backend: &dyn Backend) -> Outcome<Move> {
    let found = match when {
        When::Now => return Ok(reset(&["commit"], "each question takes the newest commit again")),
        When::Integer(n) => {
            let seq = u64::try_from(n).ok();
            seq.and_then(|seq| Some((seq, backend.commit_instant(seq)?)))
        }
        When::Instant(us) => backend.commit_at_or_before(us),
    };
    let (seq, at) = found.ok_or_else(|| {
        let failure = Failure::new(Exit::Failed, "there is no such commit");
        match backend.last_commit() {
            Some((seq, at)) => failure.hint(format!("commits go from 1 to {seq} ({})", format_instant(at))),
            None => failure.hint("the store is empty"),
        }
    })?;
    Ok(Move {
        statements: vec![format!("SET asof.commit = {seq}")],
        echo: format!("as of commit {seq} ({})", format_instant(at)),
    })
}

/// The clocks that are set, in words.
pub fn describe(clocks: &Clocks) -> String {
    let Clocks { valid, system, commit } = clocks;
    let parts = [("valid time as of", valid), ("system time as of", system), ("as of commit", commit)];
    let set: Vec<String> = parts.iter().filter_map(|(w, c)| c.as_ref().map(|c| format!("{w} {c}"))).collect();
    if set.is_empty() { "all clocks run".into() } else { set.join("; ") }
}

/// What the prompt shows of the clocks, with a blank before each.
pub fn for_prompt(clocks: &Clocks) -> String {
    let Clocks { valid, system, commit } = clocks;
    let parts = [("valid", valid), ("sys", system), ("commit", commit)];
    let short = |c: &str| c.trim_end_matches("T00:00:00Z").to_owned();
    parts.iter().filter_map(|(w, c)| c.as_ref().map(|c| format!(" @{w} {}", short(c)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fake;

    const NOW: i64 = 1_796_029_923_500_000;

    fn at(arguments: &str) -> Result<(Vec<String>, String), String> {
        let moved = plan(arguments, NOW, &Fake::default()).map_err(|f| f.message)?;
        Ok((moved.statements, moved.echo))
    }

    #[test]
    fn the_resolved_instant_and_commit_are_told() {
        let (statements, echo) = at("system yesterday 18:00").unwrap();
        assert_eq!(statements, ["SET asof.system_time = '2026-11-29T18:00:00Z'"]);
        assert_eq!(
            echo,
            "system time as of 2026-11-29T18:00:00Z (yesterday 18:00, UTC); this store was at commit 1795975200 \
             (2026-11-29T18:00:00Z) then"
        );
        assert_eq!(
            at("valid 2026-10-01").unwrap().1,
            "valid time as of 2026-10-01T00:00:00Z (2026-10-01, UTC)"
        );
        assert_eq!(at("valid 7").unwrap().0, ["SET asof.valid_time = 7"]);
    }

    #[test]
    fn one_time_moves_both_axes_and_now_returns() {
        assert_eq!(at("2026-10-01").unwrap().0.len(), 2);
        assert_eq!(
            at("now").unwrap().0,
            ["RESET asof.valid_time", "RESET asof.system_time", "RESET asof.commit"]
        );
        assert_eq!(at("sys now").unwrap().0, ["RESET asof.system_time"]);
        assert_eq!(at("commit now").unwrap().0, ["RESET asof.commit"]);
    }

    #[test]
    fn commits_must_exist() {
        assert_eq!(
            at("commit 3").unwrap(),
            (vec!["SET asof.commit = 3".into()], "as of commit 3 (1970-01-01T00:00:03Z)".into())
        );
        assert!(at("commit -1").is_err() && at("commit 0").is_err() && at("commit 1970-01-01").is_err());
    }

    #[test]
    fn nothing_is_no_time() {
        for wrong in ["system", "system ''", "valid soon", "commit"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_prompt_carries_what_is_set() {
        let clocks =
            Clocks { system: Some("2026-11-01T00:00:00Z".into()), valid: None, commit: Some("4".into()) };
        assert_eq!(for_prompt(&clocks), " @sys 2026-11-01 @commit 4");
        assert_eq!(describe(&clocks), "system time as of 2026-11-01T00:00:00Z; as of commit 4");
        assert_eq!(
            (for_prompt(&Clocks::default()).as_str(), describe(&Clocks::default()).as_str()),
            ("", "all clocks run")
        );
    }
}
