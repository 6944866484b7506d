//! Schemas as a list of types that refer to each other by number.

use super::flat::{self, Flat};
use super::source::SchemaText;
use crate::format::debezium::Encoding;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Types of one schema, at most.
const TYPES_MAX: usize = 100_000;

/// Whose names of types win where a type has two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Avro's `logicalType`.
    #[default]
    Avro,
    /// The `connect.name` that Debezium gives.
    Debezium,
}

/// A schema that messages are read with.
#[derive(Debug)]
pub struct Schema {
    types: Vec<Type>,
    /// The type of the message.
    pub root: usize,
}

/// A type.
#[derive(Debug)]
pub struct Type {
    /// How it is written.
    pub kind: Kind,
    /// What it means.
    pub encoding: Encoding,
}

/// How a type is written.
#[derive(Debug)]
#[allow(missing_docs, reason = "Avro's own words")]
pub enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    Record(Record),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
}

/// The fields of a record, in their order.
#[derive(Debug, Default)]
pub struct Record {
    /// Its fields.
    pub fields: Vec<Field>,
    /// Numbers of their names; empty = not numbered.
    pub numbers: Vec<u16>,
    /// What its fields are, if all of them are simple; else empty.
    pub flat: Vec<Flat>,
}

/// A field.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: usize,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// In words, if it is none.
    pub fn parse(text: &SchemaText, dialect: Dialect) -> Result<Schema, String> {
        let mut parser = Parser { types: Vec::new(), names: HashMap::new(), dialect };
        let mut one = |text: &str| {
            // A primitive type may be registered by its bare name.
            let value = serde_json::from_str(text).or_else(|e| match text.trim() {
                name if primitive(name).is_some() => Ok(Value::String(name.to_owned())),
                _ => Err(format!("it is no JSON: {e}")),
            })?;
            parser.ty(&value, "")
        };
        text.references.iter().try_for_each(|t| one(t).map(|_| ()))?;
        let root = one(&text.schema)?;
        let mut schema = Schema { types: parser.types, root };
        // Only records that are whole messages are read that way.
        let flat = match &schema.ty(root).kind {
            Kind::Record(record) => flat::fields(&schema, record),
            _ => Vec::new(),
        };
        if let Kind::Record(record) = &mut schema.types[root].kind {
            record.flat = flat;
        }
        Ok(schema)
    }

    /// A type by its number.
    pub fn ty(&self, number: usize) -> &Type {
        &self.types[number]
    }

    /// The record that the type is, or one branch of it.
    pub fn record(&self, number: usize) -> Option<&Record> {
        match &self.ty(number).kind {
            Kind::Record(record) => Some(record),
            Kind::Union(branches) => branches.iter().find_map(|b| match &self.ty(*b).kind {
                Kind::Record(record) => Some(record),
                _ => None,
            }),
            _ => None,
        }
    }

    /// All records, to be numbered.
    pub fn records_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.types.iter_mut().filter_map(|t| match &mut t.kind {
            Kind::Record(record) => Some(record),
            _ => None,
        })
    }
}

struct Parser {
    types: Vec<Type>,
    names: HashMap<String, usize>,
    dialect: Dialect,
}

fn primitive(name: &str) -> Option<Kind> {
    Some(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::String,
        _ => return None,
    })
}

impl Parser {
    fn add(&mut self, kind: Kind, encoding: Encoding) -> Result<usize, String> {
        if self.types.len() >= TYPES_MAX {
            return Err(format!("it has more than {TYPES_MAX} types"));
        }
        self.types.push(Type { kind, encoding });
        Ok(self.types.len() - 1)
    }

    /// The recursion is bounded by that of the parser of JSON.
    fn ty(&mut self, value: &Value, space: &str) -> Result<usize, String> {
        match value {
            Value::String(name) => match primitive(name) {
                Some(kind) => self.add(kind, Encoding::Untyped),
                None => self.named(name, space),
            },
            Value::Array(branches) => {
                let branches = branches.iter().map(|b| self.ty(b, space)).collect::<Result<Vec<_>, _>>()?;
                self.add(Kind::Union(branches), Encoding::Untyped)
            }
            Value::Object(object) => self.object(object, space),
            other => Err(format!("{other} is no type")),
        }
    }

    fn named(&self, name: &str, space: &str) -> Result<usize, String> {
        let found = self.names.get(&full_name(name, space)).or_else(|| self.names.get(name));
        found.copied().ok_or_else(|| format!("it refers to a type {name}, which is not there"))
    }

    fn object(&mut self, object: &Map<String, Value>, space: &str) -> Result<usize, String> {
        let name = match object.get("type") {
            Some(Value::String(name)) => name.as_str(),
            // A type may be wrapped to carry attributes.
            Some(inner @ (Value::Object(_) | Value::Array(_))) => return self.ty(inner, space),
            _ => return Err("a type has no `type`".to_owned()),
        };
        let encoding = encoding(object, self.dialect);
        let child = |name: &str| object.get(name).ok_or_else(|| format!("a type has no `{name}`"));
        match name {
            "array" => {
                let items = self.ty(child("items")?, space)?;
                self.add(Kind::Array(items), encoding)
            }
            "map" => {
                let values = self.ty(child("values")?, space)?;
                self.add(Kind::Map(values), encoding)
            }
            "record" | "error" => self.record(object, encoding, space),
            "enum" => {
                let symbols = child("symbols")?.as_array().into_iter().flatten();
                let symbols = symbols.filter_map(Value::as_str).map(str::to_owned).collect();
                self.define(object, Kind::Enum(symbols), encoding, space).map(|(number, _)| number)
            }
            "fixed" => {
                let size = child("size")?.as_u64().and_then(|n| usize::try_from(n).ok());
                let size = size.ok_or("the size of a fixed type is no number")?;
                self.define(object, Kind::Fixed(size), encoding, space).map(|(number, _)| number)
            }
            _ => match primitive(name) {
                Some(kind) => self.add(kind, encoding),
                None => self.named(name, space),
            },
        }
    }

    /// Adds a type with a name; its number and its namespace.
    fn define(
        &mut self,
        object: &Map<String, Value>,
        kind: Kind,
        encoding: Encoding,
        space: &str,
    ) -> Result<(usize, String), String> {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let name = text("name").ok_or("a type has no name")?;
        let full = full_name(name, text("namespace").unwrap_or(space));
        let number = self.add(kind, encoding)?;
        let inner = full.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
        match self.names.insert(full, number) {
            None => Ok((number, inner)),
            Some(_) => Err(format!("it defines the type {name} twice")),
        }
    }

    fn record(
        &mut self,
        object: &Map<String, Value>,
        encoding: Encoding,
        space: &str,
    ) -> Result<usize, String> {
        // The record is known by its name within itself.
        let (number, space) = self.define(object, Kind::Null, encoding, space)?;
        let list = object.get("fields").and_then(Value::as_array).ok_or("a record has no fields")?;
        let mut record = Record::default();
        let mut seen = std::collections::HashSet::new();
        for field in list {
            let name = field["name"].as_str().ok_or("a field has no name")?.to_owned();
            let ty = field.get("type").ok_or_else(|| format!("the field {name} has no type"))?;
            let ty = self.ty(ty, &space)?;
            if !seen.insert(name.clone()) {
                return Err(format!("a record has two fields {name}"));
            }
            record.fields.push(Field { name, ty });
        }
        self.types[number].kind = Kind::Record(record);
        Ok(number)
    }
}

fn full_name(name: &str, space: &str) -> String {
    match name.contains('.') || space.is_empty() {
        true => name.to_owned(),
        false => format!("{space}.{name}"),
    }
}

fn encoding(object: &Map<String, Value>, dialect: Dialect) -> Encoding {
    let scale = || {
        let beside = object.get("connect.parameters").and_then(|p| p.get("scale"));
        let own = object.get("scale").and_then(Value::as_i64);
        own.or_else(|| beside?.as_str()?.parse().ok()).unwrap_or(0)
    };
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let connect = || Encoding::of_name(text("connect.name")?, scale);
    let logical = || {
        Some(match text("logicalType")? {
            "decimal" => Encoding::Decimal { scale: scale() },
            "date" => Encoding::Date,
            "time-millis" => Encoding::Time(1_000),
            "time-micros" => Encoding::Time(1_000_000),
            "timestamp-millis" => Encoding::Instant(1_000),
            "timestamp-micros" => Encoding::Instant(1_000_000),
            "timestamp-nanos" => Encoding::Instant(1_000_000_000),
            "local-timestamp-millis" => Encoding::Timestamp(1_000),
            "local-timestamp-micros" => Encoding::Timestamp(1_000_000),
            "local-timestamp-nanos" => Encoding::Timestamp(1_000_000_000),
            "uuid" => Encoding::Uuid,
            _ => return None,
        })
    };
    let found = match dialect {
        Dialect::Avro => logical().or_else(connect),
        Dialect::Debezium => connect().or_else(logical),
    };
    found.unwrap_or(Encoding::Untyped)
}
