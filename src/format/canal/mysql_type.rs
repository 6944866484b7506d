//! Types of columns as `mysqlType` spells them: `bigint(20) unsigned`, `ENUM('a','b')`.

use crate::format::fields::Reject;
use crate::format::json::{self, Raw};
use crate::format::scratch::ScratchBuffer;
use std::collections::HashMap;
use std::sync::Arc;

/// Descriptions of tables that are kept; past this they are parsed afresh.
const TABLES_MAX: usize = 256;
/// Longer descriptions are parsed for every message.
const TABLE_BYTES_MAX: usize = 1 << 20;

/// How the text of a column is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MysqlType {
    /// Nothing is known, or it is text.
    Text,
    /// Integers, also bits, booleans and years.
    Integer,
    /// Single and double precision.
    Float,
    /// Exact numbers.
    Decimal {
        /// Digits after the point, where the type says so.
        scale: Option<u8>,
    },
    /// Days.
    Date,
    /// Bytes, each as a character of latin-1.
    Bytes,
    /// JSON documents.
    Json,
    /// One of these labels, by its number from 1; 0 is the empty text of an invalid value.
    Enum(Vec<String>),
    /// Some of these labels, by a mask of bits.
    Set(Vec<String>),
}

impl MysqlType {
    /// The type of that spelling.
    pub fn parse(spelling: &str) -> MysqlType {
        let text = spelling.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let inside = rest.trim_start().strip_prefix('(');
        match word.to_ascii_lowercase().as_str() {
            "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "serial" | "bool"
            | "boolean" | "bit" | "year" => MysqlType::Integer,
            "float" | "double" | "real" => MysqlType::Float,
            "decimal" | "numeric" | "fixed" | "dec" | "number" => {
                let scale = inside.and_then(|i| i.split(')').next()?.split(',').nth(1)?.trim().parse().ok());
                MysqlType::Decimal { scale }
            }
            "date" => MysqlType::Date,
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "geometry"
            | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
            | "geometrycollection" | "geomcollection" => MysqlType::Bytes,
            "json" => MysqlType::Json,
            "enum" => inside.map_or(MysqlType::Text, |i| MysqlType::Enum(labels(i))),
            "set" => inside.map_or(MysqlType::Text, |i| MysqlType::Set(labels(i))),
            _ => MysqlType::Text,
        }
    }
}

/// The quoted labels up to the closing parenthesis. A quote within one is written twice or escaped.
fn labels(inside: &str) -> Vec<String> {
    let (mut out, mut chars) = (Vec::new(), inside.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            ')' => break,
            '\'' => {
                let mut label = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '\'' if chars.peek() == Some(&'\'') => label.extend(chars.next()),
                        '\'' => break,
                        '\\' => label.extend(chars.next()),
                        c => label.push(c),
                    }
                }
                out.push(label);
            }
            _ => {}
        }
    }
    out
}

/// The types of the columns of a table.
#[derive(Debug, Default)]
pub struct Types {
    by_place: Vec<(String, MysqlType)>,
    by_name: HashMap<String, usize>,
}

impl Types {
    /// The type of the column that is the `place`-th of its row.
    pub fn of(&self, place: usize, name: &str) -> &MysqlType {
        let here = self.by_place.get(place).filter(|(n, _)| n == name);
        let found = here.or_else(|| self.by_place.get(*self.by_name.get(name)?));
        found.map_or(&MysqlType::Text, |(_, ty)| ty)
    }

    /// Bytes that all labels of the columns that are sets have.
    pub fn set_bytes(&self) -> usize {
        let of = |(_, ty): &(String, MysqlType)| match ty {
            MysqlType::Set(labels) => labels.iter().map(|l| l.len() + 1).sum(),
            _ => 0,
        };
        self.by_place.iter().map(of).sum()
    }

    fn parse(text: &str) -> Result<Types, Reject> {
        let (mut members, mut buffer) = (Vec::new(), ScratchBuffer::default());
        json::members(text, &mut members)?;
        let mut scratch = buffer.scratch(text.len() * 2);
        let mut types = Types::default();
        for m in &members {
            let name = m.name.resolve(&mut scratch).to_owned();
            let ty = match m.value {
                Raw::Text(t) => MysqlType::parse(t.resolve(&mut scratch)),
                _ => MysqlType::Text,
            };
            types.by_name.insert(name.clone(), types.by_place.len());
            types.by_place.push((name, ty));
        }
        Ok(types)
    }
}

/// Types by the text that describes them.
#[derive(Debug, Default)]
pub struct TypeCache {
    known: HashMap<String, Arc<Types>>,
    none: Arc<Types>,
}

impl TypeCache {
    /// The types that a member `mysqlType` describes.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn get(&mut self, described: Option<Raw<'_>>) -> Result<Arc<Types>, Reject> {
        let Some(Raw::Nested { text, .. }) = described.filter(is_object) else {
            return Ok(self.none.clone());
        };
        if let Some(types) = self.known.get(text) {
            return Ok(types.clone());
        }
        let types = Arc::new(Types::parse(text)?);
        if text.len() <= TABLE_BYTES_MAX {
            if self.known.len() >= TABLES_MAX {
                self.known.clear();
            }
            self.known.insert(text.to_owned(), types.clone());
        }
        Ok(types)
    }
}

fn is_object(raw: &Raw<'_>) -> bool {
    matches!(raw, Raw::Nested { text, .. } if text.starts_with('{'))
}
