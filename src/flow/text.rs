//! A flow as the statement that declares it.

use super::definition::{Flow, FlowClauses, FlowTable, StoredAs, Target};
use super::source::FlowSource;
use crate::format::options::{ColumnChoice, TimeColumn, TimeUnit};
use crate::options::Columns;
use std::fmt::{self, Display, Formatter, Write};

impl Display for Flow {
    /// The statement, a clause a line.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Flow { name, source, target, clauses } = self;
        match target {
            Target::One(table) => {
                let into = Name(&table.name);
                write!(f, "CREATE FLOW {} AS AUTO CDC INTO {into}\nFROM STREAM {source}", Name(name))?;
                write!(f, "\nKEYS ({})", names(&table.key))?;
            }
            Target::Several(tables) => {
                let into: Vec<String> = tables.iter().map(FlowTable::to_string).collect();
                let into = into.join(", ");
                write!(f, "CREATE FLOW {} AS AUTO CDC INTO ({into})\nFROM STREAM {source}", Name(name))?;
            }
        }
        clauses.fmt(f)
    }
}

impl Display for FlowTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} KEYS ({})", Name(&self.name), names(&self.key))
    }
}

impl Display for FlowSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let places = self.places.iter().map(|p| text(p));
        let settings = self.settings.iter().map(|(name, value)| format!("{name} => {}", text(value)));
        let arguments: Vec<String> = places.chain(settings).collect();
        write!(f, "{}({})", self.kind.name(), arguments.join(", "))
    }
}

impl Display for FlowClauses {
    /// The clauses, each behind a line feed.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(columns) = &self.ignore_null_updates {
            f.write_str("\nIGNORE NULL UPDATES")?;
            if *columns != ColumnChoice::All {
                write!(f, " ON {}", choice(columns))?;
            }
        }
        if let Some(column) = &self.columns_to_update {
            write!(f, "\nCOLUMNS TO UPDATE {}", Name(column))?;
        }
        for (what, when) in [("DELETE", &self.delete_when), ("TRUNCATE", &self.truncate_when)] {
            when.iter().try_for_each(|e| write!(f, "\nAPPLY AS {what} WHEN {e}"))?;
        }
        if let Some(column) = &self.sequence_by {
            match &self.tie_break[..] {
                [] => write!(f, "\nSEQUENCE BY {}", time(column))?,
                ties => write!(f, "\nSEQUENCE BY STRUCT({}, {})", time(column), names(ties))?,
            }
        }
        if let Some(column) = &self.valid_until {
            write!(f, "\nVALID UNTIL {}", time(column))?;
        }
        if let Some(column) = &self.system_sequence_by {
            write!(f, "\nSYSTEM SEQUENCE BY {}", time(column))?;
        }
        if let Some(columns) = &self.columns {
            write!(f, "\nCOLUMNS {}", taken(columns))?;
        }
        if let Some(stored_as) = self.stored_as {
            write!(f, "\nSTORED AS {stored_as}")?;
        }
        if let Some(columns) = &self.track_history {
            write!(f, "\nTRACK HISTORY ON {}", choice(columns))?;
        }
        Ok(())
    }
}

impl Display for StoredAs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoredAs::Bitemporal => "BITEMPORAL",
            StoredAs::ScdType1 => "SCD TYPE 1",
            StoredAs::ScdType2 => "SCD TYPE 2",
        })
    }
}

/// A name, in quotes where it is no plain word or path of words.
struct Name<'n>(&'n str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        match self.0.split('.').all(plain) {
            true => f.write_str(self.0),
            false => write!(f, "\"{}\"", self.0.replace('"', "\"\"")),
        }
    }
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn names(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|n| Name(n).to_string()).collect();
    list.join(", ")
}

fn time(column: &TimeColumn) -> String {
    let unit = match column.unit {
        None => "",
        Some(TimeUnit::S) => ":s",
        Some(TimeUnit::Ms) => ":ms",
        Some(TimeUnit::Us) => ":us",
        Some(TimeUnit::Ns) => ":ns",
    };
    format!("{}{unit}", Name(&column.column))
}

fn choice(columns: &ColumnChoice) -> String {
    match columns {
        ColumnChoice::All => "*".to_owned(),
        ColumnChoice::Only(list) => format!("({})", names(list)),
        ColumnChoice::Except(list) => format!("* EXCEPT ({})", names(list)),
    }
}

fn taken(columns: &Columns) -> String {
    match columns {
        Columns::Except(list) if list.is_empty() => "*".to_owned(),
        Columns::Except(list) => format!("* EXCEPT ({})", names(list)),
        Columns::List(list) => {
            let mut out = String::from("(");
            for (i, column) in list.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                let ty = column.ty.map(|ty| format!(" {}", ty.name())).unwrap_or_default();
                // Writing to a text cannot fail.
                let _ = write!(out, "{comma}{}{ty}", Name(&column.name));
            }
            out.push(')');
            out
        }
    }
}
