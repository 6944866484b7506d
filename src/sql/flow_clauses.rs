//! Reading the clauses of a flow, in any order, each once.

use super::error::{SqlError, SqlErrorKind};
use super::flow::at;
use super::flow_cursor::Cursor;
use crate::flow::{FlowClauses, StoredAs};
use crate::format::expr::Expr;
use crate::format::options::ColumnChoice;
use crate::options::{Columns, DeclaredColumn, column_type};
use datafusion::logical_expr::sqlparser::tokenizer::Token;

/// A clause, by the words it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    IgnoreNull,
    ColumnsToUpdate,
    DeleteWhen,
    TruncateWhen,
    SequenceBy,
    ValidUntil,
    SystemSequenceBy,
    Columns,
    StoredAs,
    TrackHistory,
}

/// Longer beginnings stand before those that they begin with.
const CLAUSES: [(&[&str], Clause); 10] = [
    (&["IGNORE", "NULL", "UPDATES"], Clause::IgnoreNull),
    (&["COLUMNS", "TO", "UPDATE"], Clause::ColumnsToUpdate),
    (&["APPLY", "AS", "DELETE", "WHEN"], Clause::DeleteWhen),
    (&["APPLY", "AS", "TRUNCATE", "WHEN"], Clause::TruncateWhen),
    (&["SEQUENCE", "BY"], Clause::SequenceBy),
    (&["VALID", "UNTIL"], Clause::ValidUntil),
    (&["SYSTEM", "SEQUENCE", "BY"], Clause::SystemSequenceBy),
    (&["COLUMNS"], Clause::Columns),
    (&["STORED", "AS"], Clause::StoredAs),
    (&["TRACK", "HISTORY", "ON"], Clause::TrackHistory),
];

fn clause_here(cursor: &Cursor<'_>) -> Option<(&'static [&'static str], Clause)> {
    CLAUSES.iter().find(|(words, _)| cursor.sees(words)).copied()
}

/// Reads clauses up to the end of the statement.
pub(crate) fn read_clauses(cursor: &mut Cursor<'_>) -> Result<FlowClauses, SqlError> {
    let mut clauses = FlowClauses::default();
    let mut seen: Vec<Clause> = Vec::new();
    while let Some(token) = cursor.token() {
        if *token == Token::SemiColon {
            break;
        }
        let Some((words, clause)) = clause_here(cursor) else { return Err(unknown(cursor)) };
        if seen.contains(&clause) {
            return Err(cursor.error(format!("{} stands twice", words.join(" "))));
        }
        seen.push(clause);
        cursor.words(words)?;
        read_clause(cursor, clause, &mut clauses)?;
    }
    cursor.end()?;
    Ok(clauses)
}

fn read_clause(cursor: &mut Cursor<'_>, clause: Clause, into: &mut FlowClauses) -> Result<(), SqlError> {
    match clause {
        Clause::IgnoreNull => {
            let on = cursor.takes(&["ON"]);
            into.ignore_null_updates = Some(if on { choice(cursor)? } else { ColumnChoice::All });
        }
        Clause::ColumnsToUpdate => into.columns_to_update = Some(cursor.name("the name of a column")?),
        Clause::DeleteWhen => into.delete_when = Some(condition(cursor)?),
        Clause::TruncateWhen => into.truncate_when = Some(condition(cursor)?),
        Clause::SequenceBy => sequence(cursor, into)?,
        Clause::ValidUntil => into.valid_until = Some(cursor.time()?),
        Clause::SystemSequenceBy => into.system_sequence_by = Some(cursor.time()?),
        Clause::Columns => into.columns = Some(columns(cursor)?),
        Clause::StoredAs => into.stored_as = Some(stored_as(cursor)?),
        Clause::TrackHistory => into.track_history = Some(choice(cursor)?),
    }
    Ok(())
}

fn unknown(cursor: &Cursor<'_>) -> SqlError {
    if cursor.sees(&["ALERT"]) {
        return SqlError { kind: SqlErrorKind::Unsupported, ..cursor.error("ALERT is not supported yet") }
            .hint("status and run show the lag; leave the clause out");
    }
    if cursor.sees(&["KEYS"]) {
        return cursor.error("KEYS stands twice");
    }
    let word = cursor.token().map(ToString::to_string).unwrap_or_default();
    let names: Vec<String> = CLAUSES.iter().map(|(words, _)| words.join(" ")).collect();
    let first = |name: &&String| {
        let own = name.split(' ').next().unwrap_or_default();
        crate::near::nearest(&word, [own]).is_some()
    };
    let error = cursor.error(format!("a flow has no clause that begins with {word}"));
    match names.iter().find(first) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(format!("there are: {}", names.join(", "))),
    }
}

/// `*`, `* EXCEPT (a, b)`, `(a, b)`, or `a, b`.
fn choice(cursor: &mut Cursor<'_>) -> Result<ColumnChoice, SqlError> {
    if !cursor.takes_sign(&Token::Mul) {
        return Ok(ColumnChoice::Only(cursor.names("the name of a column")?));
    }
    match cursor.takes(&["EXCEPT"]) {
        true => Ok(ColumnChoice::Except(cursor.names("the name of a column")?)),
        false => Ok(ColumnChoice::All),
    }
}

/// A condition, up to the next clause.
fn condition(cursor: &mut Cursor<'_>) -> Result<String, SqlError> {
    let place = cursor.place();
    let text = cursor.text_until(|c| clause_here(c).is_some())?;
    match text.parse::<Expr>() {
        Ok(_) => Ok(text),
        Err(e) => {
            Err(at(SqlError::new(SqlErrorKind::Syntax, format!("the condition cannot be read: {e}")), place)
                .hint("a condition looks like: deleted = true OR _operation = 'd'"))
        }
    }
}

fn sequence(cursor: &mut Cursor<'_>, into: &mut FlowClauses) -> Result<(), SqlError> {
    let structured = cursor.takes(&["STRUCT"]);
    if !structured {
        into.sequence_by = Some(cursor.time()?);
        return Ok(());
    }
    cursor.sign(&Token::LParen)?;
    let first = cursor.time()?;
    while cursor.takes_sign(&Token::Comma) {
        let place = cursor.place();
        let name = cursor.name("the name of a column")?;
        if name == first.column || into.tie_break.contains(&name) {
            return Err(at(
                SqlError::new(SqlErrorKind::Syntax, format!("{name} stands twice in STRUCT")),
                place,
            ));
        }
        into.tie_break.push(name);
    }
    cursor.sign(&Token::RParen)?;
    into.sequence_by = Some(first);
    Ok(())
}

/// `*`, `* EXCEPT (a)`, or columns with or without types, in parentheses or not.
fn columns(cursor: &mut Cursor<'_>) -> Result<Columns, SqlError> {
    if cursor.token() == Some(&Token::Mul) {
        return Ok(match choice(cursor)? {
            ColumnChoice::Except(names) => Columns::Except(names),
            _ => Columns::Except(Vec::new()),
        });
    }
    let inside = cursor.takes_sign(&Token::LParen);
    let mut list: Vec<DeclaredColumn> = Vec::new();
    loop {
        let place = cursor.place();
        let name = cursor.name("the name of a column")?;
        if list.iter().any(|c| c.name == name) {
            return Err(at(
                SqlError::new(SqlErrorKind::Syntax, format!("COLUMNS names {name} twice")),
                place,
            ));
        }
        let place = cursor.place();
        let ends = |c: &Cursor<'_>| {
            matches!(c.token(), Some(Token::Comma | Token::RParen)) || clause_here(c).is_some()
        };
        let text = cursor.text_until(ends)?;
        let ty = (!text.is_empty()).then(|| column_type(&text)).transpose();
        list.push(DeclaredColumn { name, ty: ty.map_err(|e| at(of_library(&e), place))? });
        if !cursor.takes_sign(&Token::Comma) {
            break;
        }
    }
    if inside {
        cursor.sign(&Token::RParen)?;
    }
    Ok(Columns::List(list))
}

fn stored_as(cursor: &mut Cursor<'_>) -> Result<StoredAs, SqlError> {
    if cursor.takes(&["BITEMPORAL"]) {
        return Ok(StoredAs::Bitemporal);
    }
    let scd = cursor.takes(&["SCD", "TYPE"]);
    let shape = match cursor.token() {
        Some(Token::Number(n, _)) if scd && n == "1" => StoredAs::ScdType1,
        Some(Token::Number(n, _)) if scd && n == "2" => StoredAs::ScdType2,
        _ => return Err(cursor.expected("BITEMPORAL, SCD TYPE 1 or SCD TYPE 2")),
    };
    cursor.step();
    Ok(shape)
}

/// An error of the library, to be told at a place of the statement.
pub(crate) fn of_library(e: &crate::Error) -> SqlError {
    let error = SqlError::invalid(e.message());
    match e.hints().is_empty() {
        true => error,
        false => error.hint(e.hints().join("; ")),
    }
}
