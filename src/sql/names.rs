//! Names: case-preserving, matched without regard to case where that is unambiguous.

use super::token::bare_word;
use asofdb_storage::schema::TableSchema;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::{HashMap, HashSet};

/// The first few names of a list.
pub(crate) fn some_of(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", ...");
    }
    text
}

/// The schema with columns that are named like one of `added`, which an answer has beside them, under
/// a name of their own: `__START_AT` is shown as `__START_AT_1`.
pub(crate) fn set_apart(schema: &TableSchema, added: &[&str]) -> TableSchema {
    let mut schema = schema.clone();
    for i in 0..schema.columns.len() {
        let name = schema.columns[i].name.clone();
        if added.contains(&name.as_str()) {
            let free = |n: &String| !added.contains(&n.as_str()) && schema.column(n).is_none();
            let other = (1..).map(|n: u32| format!("{name}_{n}")).find(free);
            schema.columns[i].name = other.unwrap_or(name);
        }
    }
    schema
}

/// What people should know of columns that [`set_apart`] renamed.
pub(crate) fn set_apart_notices(table: &str, from: &TableSchema, to: &TableSchema) -> Vec<String> {
    let renamed = from.columns.iter().zip(&to.columns).filter(|(a, b)| a.name != b.name);
    renamed
        .map(|(a, b)| {
            format!(
                "column {} of {table} is shown as {}: the answer has one of that name beside it",
                a.name, b.name
            )
        })
        .collect()
}

/// Gives the unquoted names of a statement one spelling each: that of the catalog where exactly one
/// name of the catalog is equal but for case, else that of a quoted name of the statement, else the
/// first one typed. Quoted names stay as they are and so do names typed exactly.
pub(crate) fn unify_spelling<'c>(tokens: &mut [TokenWithSpan], catalog: impl IntoIterator<Item = &'c str>) {
    let mut spellings: HashMap<String, HashSet<String>> = HashMap::new();
    for name in catalog {
        spellings.entry(name.to_lowercase()).or_default().insert(name.to_owned());
    }
    for t in tokens.iter() {
        if let Token::Word(w) = &t.token
            && w.quote_style == Some('"')
        {
            spellings.entry(w.value.to_lowercase()).or_insert_with(|| HashSet::from([w.value.clone()]));
        }
    }
    for t in tokens {
        if bare_word(&t.token).is_none() {
            continue;
        }
        let Token::Word(word) = &mut t.token else { continue };
        let known =
            spellings.entry(word.value.to_lowercase()).or_insert_with(|| HashSet::from([word.value.clone()]));
        if known.len() == 1
            && let Some(spelling) = known.iter().next()
        {
            word.value.clone_from(spelling);
        }
    }
}

/// The unquoted and quoted words of a statement in lower case: what it may refer to.
pub(crate) fn words(tokens: &[TokenWithSpan]) -> HashSet<String> {
    let word = |t: &TokenWithSpan| match &t.token {
        Token::Word(w) => Some(w.value.to_lowercase()),
        Token::SingleQuotedString(s) => Some(s.to_lowercase()),
        _ => None,
    };
    tokens.iter().filter_map(word).collect()
}
