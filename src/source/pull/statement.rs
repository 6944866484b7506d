//! The statements that a pull makes. Names are quoted, values are bound.

use super::value::Kind;

/// A column of the source.
#[derive(Clone, Debug)]
pub(super) struct SourceColumn {
    pub name: String,
    pub kind: Kind,
    /// Its type as the database names it.
    pub type_name: String,
    /// How its value is asked for.
    pub select: String,
}

/// A table of the source.
#[derive(Clone, Debug)]
pub(super) struct SourceTable {
    /// Schema, where there are any, and name.
    pub path: Vec<String>,
    pub columns: Vec<SourceColumn>,
    /// Primary key.
    pub key: Vec<String>,
}

impl SourceTable {
    pub fn shown(&self) -> String {
        self.path.join(".")
    }
}

/// A name in quotes.
pub(super) fn quoted(name: &str, quote: char) -> String {
    let doubled = format!("{quote}{quote}");
    format!("{quote}{}{quote}", name.replace(quote, &doubled))
}

/// Parts of a statement that differ by dialect, for the watermark column.
pub(super) struct MarkParts {
    /// The column as it is compared and ordered.
    pub compared: String,
    /// Its value as text.
    pub text: String,
    /// The placeholder of the bound value.
    pub bound: String,
}

/// `SELECT` of all columns and the watermark as the last one.
pub(super) fn select(
    table: &SourceTable,
    quote: char,
    mark: Option<&MarkParts>,
    bounded: bool,
    ordered: bool,
    key: &[String],
) -> String {
    let mut columns: Vec<&str> = table.columns.iter().map(|c| c.select.as_str()).collect();
    columns.extend(mark.map(|m| m.text.as_str()));
    let path: Vec<String> = table.path.iter().map(|p| quoted(p, quote)).collect();
    let mut sql = format!("SELECT {} FROM {}", columns.join(", "), path.join("."));
    if let Some(MarkParts { compared, bound, .. }) = mark.filter(|_| bounded) {
        sql.push_str(&format!(" WHERE {compared} >= {bound} OR {compared} IS NULL"));
    }
    if ordered {
        let key = key.iter().map(|c| quoted(c, quote));
        let order: Vec<String> = mark.iter().map(|m| m.compared.clone()).chain(key).collect();
        sql.push_str(&format!(" ORDER BY {}", order.join(", ")));
    }
    sql
}
