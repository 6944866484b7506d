//! Settings of a session, and the statements that change them: SET, RESET, SHOW.

use super::bound::{Evaluation, exact_dates};
use super::clause::Axis;
use super::clock::{Point, parse_point, point_of_scalar};
use super::context::SessionClocks;
use super::error::{SqlError, SqlErrorKind, from_datafusion, from_parser};
use super::token::{DIALECT, Place, StatementLimits, bare_word, is_word};
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::ast::ExprWithAlias;
use datafusion::logical_expr::sqlparser::parser::Parser;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Reads the wall clock: microseconds since 1970-01-01T00:00:00Z. Handed in by the caller.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Memory that all queries of the session may use together, bytes.
    pub memory_bytes_max: usize,
    /// Where sorts, joins and groupings may spill; `None` = they may not.
    pub spill_directory: Option<PathBuf>,
    /// Bytes that may be spilled.
    pub spill_bytes_max: u64,
    /// Time one statement may take, planning and reading included.
    pub timeout: Option<Duration>,
    /// Streams that a scan is split into.
    pub partitions: usize,
    /// Rows in a batch.
    pub batch_rows: usize,
    /// Most interval rows of one key (rule B10).
    pub rows_per_key_max: usize,
    /// Rows of the left side of a join by point in time that are answered at once, by each stream.
    pub label_rows_max: usize,
    /// Keys of so many rows that are looked up one by one in any case.
    pub label_single_keys: usize,
    /// Refuse statements that change the catalog, such as `CREATE FLOW`.
    pub read_only: bool,
    /// Caps on statements.
    pub limits: StatementLimits,
    /// Stack of the thread that plans, bytes.
    pub stack_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            memory_bytes_max: 384 << 20,
            spill_directory: None,
            spill_bytes_max: 16 << 30,
            timeout: None,
            partitions: 2,
            batch_rows: 8_192,
            rows_per_key_max: 1_000_000,
            label_rows_max: 16_384,
            label_single_keys: 64,
            read_only: false,
            limits: StatementLimits::default(),
            stack_bytes: 256 << 20,
        }
    }
}

/// Names that SET knows.
const NAMES: [&str; 5] =
    ["asof.valid_time", "asof.system_time", "asof.commit", "asof.snapshot", "asof.timeout"];

/// A statement about settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SettingStatement {
    /// `SET name = expression`: the tokens of the expression.
    Set(String, Vec<TokenWithSpan>),
    /// `RESET name`, `RESET ALL`.
    Reset(Option<String>),
    /// `SHOW asof.name`, `SHOW ALL`.
    Show(Option<String>),
}

/// Reads a statement that begins with SET, RESET or SHOW of a setting; `None` for others.
pub(crate) fn read_setting(tokens: &[TokenWithSpan]) -> Result<Option<SettingStatement>, SqlError> {
    let mut tokens: Vec<&TokenWithSpan> =
        tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF)).collect();
    while tokens.last().is_some_and(|t| t.token == Token::SemiColon) {
        tokens.pop();
    }
    let Some(first) = tokens.first() else { return Ok(None) };
    let verb = ["SET", "RESET", "SHOW"].into_iter().find(|w| is_word(Some(&first.token), w));
    let Some(verb) = verb else { return Ok(None) };
    let rest = &tokens[1..];
    let all = rest.len() == 1 && is_word(Some(&rest[0].token), "ALL");
    if all && verb == "RESET" {
        return Ok(Some(SettingStatement::Reset(None)));
    }
    if all && verb == "SHOW" {
        return Ok(Some(SettingStatement::Show(None)));
    }
    let (name, used) = dotted_name(rest);
    if verb == "SHOW" && !name.starts_with("asof.") {
        return Ok(None);
    }
    let place = rest.first().and_then(|t| Place::of(t.span));
    let at = |e: SqlError| place.map_or(e.clone(), |p| e.at(p));
    if !NAMES.contains(&name.as_str()) {
        return Err(at(unknown_setting(&name)));
    }
    if name == "asof.snapshot" && verb != "RESET" {
        return Err(at(SqlError::unsupported("snapshots are not supported yet")
            .hint("SET asof.valid_time, asof.system_time and asof.commit")));
    }
    match verb {
        "SET" => {
            let value = &rest[used..];
            let assigns = |t: &&TokenWithSpan| t.token == Token::Eq || is_word(Some(&t.token), "TO");
            if !value.first().is_some_and(assigns) || value.len() < 2 {
                return Err(at(SqlError::new(SqlErrorKind::Syntax, format!("expected {name} = value"))));
            }
            let value = value[1..].iter().map(|t| (*t).clone()).collect();
            Ok(Some(SettingStatement::Set(name, value)))
        }
        _ if used < rest.len() => {
            Err(at(SqlError::new(SqlErrorKind::Syntax, format!("text after {verb} {name}"))))
        }
        "RESET" => Ok(Some(SettingStatement::Reset(Some(name)))),
        _ => Ok(Some(SettingStatement::Show(Some(name)))),
    }
}

fn dotted_name(tokens: &[&TokenWithSpan]) -> (String, usize) {
    let mut name = String::new();
    for (i, t) in tokens.iter().enumerate() {
        match (&t.token, i % 2) {
            (Token::Period, 1) => name.push('.'),
            (token, 0) => match bare_word(token) {
                Some(word) => name.push_str(&word.value.to_lowercase()),
                None => return (name, i),
            },
            _ => return (name, i),
        }
    }
    (name, tokens.len())
}

fn unknown_setting(name: &str) -> SqlError {
    let error = SqlError::unsupported(format!("there is no setting {name}"));
    match crate::near::nearest(name, NAMES) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(format!("there are: {}", NAMES.join(", "))),
    }
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Setting {
    Clock(Axis, Option<Point>),
    Timeout(Option<Duration>),
}

/// Works out the value of a SET.
pub(crate) fn setting_value(
    name: &str,
    tokens: &[TokenWithSpan],
    state: &SessionState,
    evaluation: &Evaluation,
) -> Result<Setting, SqlError> {
    let place = tokens.first().and_then(|t| Place::of(t.span));
    let at = |e: SqlError| place.map_or(e.clone(), |p| e.at(p));
    if name == "asof.timeout" {
        return timeout(tokens).map(Setting::Timeout).map_err(at);
    }
    let axis = match name {
        "asof.valid_time" => Axis::Valid,
        "asof.system_time" => Axis::System,
        _ => Axis::Commit,
    };
    let point = match tokens {
        [t] if is_word(Some(&t.token), "DEFAULT") => None,
        [t] if is_word(Some(&t.token), "now") => Some(Point::Now),
        [TokenWithSpan { token: Token::SingleQuotedString(s), .. }] => match parse_point(s) {
            Some(point) => Some(point),
            None => {
                return Err(at(SqlError::invalid(format!("'{s}' is no time"))
                    .hint("write it like 2024-05-01, 2024-05-01 12:30:00 or 2024-05-01T12:30:00.123456Z")));
            }
        },
        _ => Some(expression(tokens, state, evaluation).map_err(at)?),
    };
    // The commit itself is pinned when the setting is made: `now` would be no setting.
    let point = if axis == Axis::Commit && point == Some(Point::Now) { None } else { point };
    Ok(Setting::Clock(axis, point))
}

fn expression(
    tokens: &[TokenWithSpan],
    state: &SessionState,
    evaluation: &Evaluation,
) -> Result<Point, SqlError> {
    let mut parser = Parser::new(&DIALECT).with_tokens_with_locations(tokens.to_vec());
    let expr = parser.parse_expr().map_err(|e| from_parser(&e))?;
    if parser.index() < tokens.len() {
        return Err(SqlError::new(SqlErrorKind::Syntax, format!("expected the end after {expr}")));
    }
    let empty = DFSchema::empty();
    let shown = expr.to_string();
    let planned = state
        .create_logical_expr_from_sql_expr(ExprWithAlias { expr, alias: None }, &empty)
        .map_err(|e| from_datafusion(&e))?;
    let value = exact_dates(planned, &empty).and_then(|e| evaluation.argument(&e));
    let value = value.map_err(|e| from_datafusion(&e))?;
    let Some(value) = value else { return Err(SqlError::invalid(format!("{shown} is not constant"))) };
    point_of_scalar(&value)?.ok_or_else(|| SqlError::invalid(format!("{shown} is NULL")).hint("use RESET"))
}

/// `0`, `'30s'`, `'500ms'`, `'2m'`; a number alone is seconds; 0 is none.
fn timeout(tokens: &[TokenWithSpan]) -> Result<Option<Duration>, SqlError> {
    let text = match tokens {
        [TokenWithSpan { token: Token::SingleQuotedString(s) | Token::Number(s, _), .. }] => s.as_str(),
        _ => "",
    };
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor_ms = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let ms = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor_ms)).filter(|_| factor_ms > 0);
    match ms {
        Some(0) => Ok(None),
        Some(ms) => Ok(Some(Duration::from_millis(ms))),
        None => {
            Err(SqlError::invalid("this is no duration")
                .hint("write it like '30s', '500ms' or '2m'; 0 is none"))
        }
    }
}

/// What a session shows of its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub clocks: SessionClocks,
    pub timeout: Option<Duration>,
}

impl Shown {
    /// Names and values, all or one.
    pub fn rows(&self, name: Option<&str>) -> Vec<(String, String)> {
        let clock = |p: Option<Point>, default: &str| p.map_or(default.to_owned(), |p| p.to_string());
        let timeout = self.timeout.map_or("none".to_owned(), |t| DurationText(t).to_string());
        let all = [
            ("asof.valid_time", clock(self.clocks.valid, "latest")),
            ("asof.system_time", clock(self.clocks.system, "latest")),
            ("asof.commit", clock(self.clocks.commit, "newest")),
            ("asof.timeout", timeout),
        ];
        all.into_iter()
            .filter(|(n, _)| name.is_none_or(|wanted| wanted == *n))
            .map(|(n, v)| (n.to_owned(), v))
            .collect()
    }
}

struct DurationText(Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            ms if ms % 1_000 == 0 => write!(f, "{}s", ms / 1_000),
            ms => write!(f, "{ms}ms"),
        }
    }
}
