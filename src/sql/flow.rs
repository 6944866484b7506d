//! Statements about flows: CREATE, ALTER, DROP, DESCRIBE and SHOW, from their tokens.

use super::error::{SqlError, SqlErrorKind};
use super::flow_clauses::{of_library, read_clauses};
use super::flow_cursor::Cursor;
use super::token::Place;
use crate::flow::{Flow, FlowClauses, FlowSource, FlowTable, SourceKind, Target, check_place, check_setting};
use crate::near::near_names_hint;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeMap;

/// A statement about flows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FlowStatement {
    /// `CREATE [OR REPLACE] FLOW [IF NOT EXISTS] name ...`
    Create { flow: Box<Flow>, replace: bool, if_not_exists: bool },
    /// `ALTER FLOW name SET ...`
    Alter { name: String, source: Option<FlowSource>, clauses: Box<FlowClauses> },
    /// `DROP FLOW [IF EXISTS] name`
    Drop { name: String, if_exists: bool },
    /// `DESCRIBE FLOW name`
    Describe(String),
    /// `SHOW CREATE FLOW name`
    ShowCreate(String),
    /// `SHOW FLOWS`
    Show,
}

/// Reads a statement about flows, with the place of the flow's name; `None` for other statements.
pub(crate) fn read_flow(
    tokens: &[TokenWithSpan],
) -> Result<Option<(FlowStatement, Option<Place>)>, SqlError> {
    let mut cursor = Cursor::new(tokens);
    let c = &mut cursor;
    if c.takes(&["CREATE", "FLOW"]) {
        return create(c, false).map(Some);
    }
    if c.takes(&["CREATE", "OR", "REPLACE", "FLOW"]) {
        return create(c, true).map(Some);
    }
    if c.takes(&["ALTER", "FLOW"]) {
        return alter(c).map(Some);
    }
    if c.takes(&["DROP", "FLOW"]) {
        let if_exists = c.takes(&["IF", "EXISTS"]);
        return named(c, |name| FlowStatement::Drop { name, if_exists }).map(Some);
    }
    if c.takes(&["SHOW", "FLOWS"]) {
        c.end()?;
        return Ok(Some((FlowStatement::Show, None)));
    }
    if c.takes(&["SHOW", "CREATE", "FLOW"]) {
        return named(c, FlowStatement::ShowCreate).map(Some);
    }
    // A table may be called flow.
    let describes = c.takes(&["DESCRIBE", "FLOW"]) || c.takes(&["DESC", "FLOW"]);
    if describes && matches!(c.token(), Some(Token::Word(_))) {
        return named(c, FlowStatement::Describe).map(Some);
    }
    Ok(None)
}

fn named(
    c: &mut Cursor<'_>,
    statement: impl FnOnce(String) -> FlowStatement,
) -> Result<(FlowStatement, Option<Place>), SqlError> {
    let place = c.place();
    let name = c.name("the name of a flow")?;
    c.end()?;
    Ok((statement(name), place))
}

fn create(c: &mut Cursor<'_>, replace: bool) -> Result<(FlowStatement, Option<Place>), SqlError> {
    let if_not_exists = c.takes(&["IF", "NOT", "EXISTS"]);
    let place = c.place();
    let name = c.name("the name of a flow")?;
    if c.sees(&["AS", "APPLY", "CHANGES"]) {
        return Err(c
            .error("APPLY CHANGES INTO is the older name of AUTO CDC INTO")
            .hint("write AS AUTO CDC INTO"));
    }
    c.words(&["AS", "AUTO", "CDC"])?;
    if c.sees(&["ONCE"]) {
        return Err(unsupported(c, "AUTO CDC ONCE is not supported")
            .hint("asof run --once takes what there is and ends"));
    }
    c.words(&["INTO"])?;
    let several = c.token() == Some(&Token::LParen);
    let target = if several { Ok(tables(c)?) } else { Err(c.name("the name of a table")?) };
    c.words(&["FROM"])?;
    c.takes(&["STREAM"]);
    let source = source(c)?;
    let target = match target {
        Ok(tables) => Target::Several(tables),
        Err(name) => {
            c.words(&["KEYS"])?;
            Target::One(FlowTable { name, key: c.names("the name of a key column")? })
        }
    };
    let clauses = read_clauses(c)?;
    let flow = Flow { name, source, target, clauses };
    flow.options().map_err(|e| at(of_library(&e), place))?;
    Ok((FlowStatement::Create { flow: Box::new(flow), replace, if_not_exists }, place))
}

fn alter(c: &mut Cursor<'_>) -> Result<(FlowStatement, Option<Place>), SqlError> {
    let place = c.place();
    let name = c.name("the name of a flow")?;
    c.words(&["SET"])?;
    let mut from = None;
    if c.takes(&["FROM"]) {
        c.takes(&["STREAM"]);
        from = Some(source(c)?);
    }
    if from.is_none() && matches!(c.token(), None | Some(Token::SemiColon)) {
        return Err(c.expected("FROM STREAM source(...) or clauses"));
    }
    if c.sees(&["KEYS"]) {
        return Err(unsupported(c, "KEYS of a flow cannot be altered")
            .hint("CREATE OR REPLACE FLOW declares it again, for another table"));
    }
    let clauses = Box::new(read_clauses(c)?);
    Ok((FlowStatement::Alter { name, source: from, clauses }, place))
}

/// `(a KEYS (id), b KEYS (x, y))`
fn tables(c: &mut Cursor<'_>) -> Result<Vec<FlowTable>, SqlError> {
    c.sign(&Token::LParen)?;
    let mut tables: Vec<FlowTable> = Vec::new();
    loop {
        let place = c.place();
        let name = c.name("the name of a table")?;
        if tables.iter().any(|t| t.name == name) {
            let error = SqlError::new(SqlErrorKind::Syntax, format!("table {name} stands twice"));
            return Err(at(error, place));
        }
        c.words(&["KEYS"])?;
        tables.push(FlowTable { name, key: c.names("the name of a key column")? });
        if !c.takes_sign(&Token::Comma) {
            break;
        }
    }
    c.sign(&Token::RParen)?;
    Ok(tables)
}

/// `kind(place, ..., setting => value, ...)`
fn source(c: &mut Cursor<'_>) -> Result<FlowSource, SqlError> {
    let place = c.place();
    let word = c.name("a source such as files('dir')")?;
    let found = SourceKind::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
    let Some((_, kind)) = found.copied() else {
        let names = SourceKind::ALL.iter().map(|(name, _)| *name);
        let error = SqlError::invalid(format!("there is no source {word}()"));
        return Err(at(error.hint(near_names_hint(&word, names)), place));
    };
    c.sign(&Token::LParen)?;
    let mut source = FlowSource { kind, places: Vec::new(), settings: BTreeMap::new() };
    while c.token() != Some(&Token::RParen) {
        argument(c, &mut source)?;
        if !c.takes_sign(&Token::Comma) {
            break;
        }
    }
    let (least, most, usage) = kind.places();
    if !(least..=most).contains(&source.places.len()) {
        let error = SqlError::invalid(format!(
            "{}() was given {}",
            kind.name(),
            crate::count::of(source.places.len(), "place")
        ));
        return Err(at(error.hint(format!("write {usage}")), place));
    }
    c.sign(&Token::RParen)?;
    Ok(source)
}

fn argument(c: &mut Cursor<'_>, source: &mut FlowSource) -> Result<(), SqlError> {
    let place = c.place();
    let is_word = matches!(c.token(), Some(Token::Word(_)));
    let first = if is_word { c.name("a text or a setting")? } else { c.value()? };
    if !(is_word && c.takes_sign(&Token::RArrow)) {
        let is_table =
            matches!(source.kind, SourceKind::Pull | SourceKind::Snapshot) && source.places.len() == 1;
        if is_word && !is_table {
            let error = SqlError::invalid(format!("{first} is neither a text nor a setting"));
            return Err(at(error.hint(format!("write '{first}' or {first} => value")), place));
        }
        check_place(&first).map_err(|e| at(of_library(&e), place))?;
        source.places.push(first);
        return Ok(());
    }
    let setting = source.kind.setting(&first.to_lowercase()).map_err(|e| at(of_library(&e), place))?;
    let value_place = c.place();
    let value = c.value()?;
    check_setting(setting, &value).map_err(|e| at(of_library(&e), value_place))?;
    match source.settings.insert(setting.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(at(SqlError::new(SqlErrorKind::Syntax, format!("{setting} is set twice")), place)),
    }
}

fn unsupported(c: &Cursor<'_>, message: &str) -> SqlError {
    SqlError { kind: SqlErrorKind::Unsupported, ..c.error(message) }
}

pub(crate) fn at(error: SqlError, place: Option<Place>) -> SqlError {
    match place {
        Some(place) => error.at(place),
        None => error,
    }
}
