//! The right answers that the generator wrote down.

use crate::Outcome;
use serde_json::Value as Json;
use std::path::Path;

/// A point of time on both axes; `None` = no bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub valid: Option<i64>,
    pub system: Option<i64>,
}

impl Point {
    fn of(probe: &Json) -> Point {
        Point { valid: probe["valid_time"].as_i64(), system: probe["system_time"].as_i64() }
    }

    /// The clauses that ask for it.
    pub fn clauses(&self) -> String {
        let clause = |axis: &str, at: Option<i64>| {
            at.map_or(String::new(), |t| format!(" FOR {axis} AS OF to_timestamp_micros({t})"))
        };
        clause("VALID_TIME", self.valid) + &clause("SYSTEM_TIME", self.system)
    }
}

/// What a key is at a point: no row, or its three values as text; empty = NULL.
pub struct KeyProbe {
    pub at: Point,
    pub key: (i64, String, i64),
    pub row: Option<[String; 3]>,
}

/// What the whole table is at a point.
pub struct TableProbe {
    pub at: Point,
    /// Rows, then count and sum of the values as text; sums of money in cents.
    pub totals: Vec<String>,
    /// Value of key3, rows, sum of value1.
    pub groups: Vec<Vec<String>>,
    pub checksum: u64,
}

/// All of them.
pub struct Probes {
    pub keys: Vec<KeyProbe>,
    pub tables: Vec<TableProbe>,
}

fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(s) => s.clone(),
        Json::Number(n) if n.is_f64() => format!("{:.2}", n.as_f64().unwrap_or(f64::NAN)),
        other => other.to_string(),
    }
}

fn key_probe(probe: &Json) -> Outcome<KeyProbe> {
    let number = |name: &str| probe[name].as_i64().ok_or_else(|| format!("a probe without {name}"));
    let row = probe["found"].as_bool().ok_or("a probe without found")?.then(|| {
        // A whole amount is written with its two places all the same.
        let money = probe["value2"].as_f64().map_or(String::new(), |v| format!("{v:.2}"));
        [text(&probe["value1"]), money, text(&probe["value3"])]
    });
    Ok(KeyProbe { at: Point::of(probe), key: (number("key1")?, text(&probe["key2"]), number("key3")?), row })
}

fn table_probe(probe: &Json) -> Outcome<TableProbe> {
    let totals = ["count", "count_value1", "sum_value1", "count_value2", "sum_value2_cents", "count_value3"];
    let groups = probe["by_key3"].as_array().ok_or("a probe without by_key3")?;
    let group = |g: &Json| g.as_array().map(|g| g.iter().map(text).collect()).unwrap_or_default();
    Ok(TableProbe {
        at: Point::of(probe),
        totals: totals.iter().map(|t| text(&probe[*t])).collect(),
        groups: groups.iter().map(group).collect(),
        checksum: u64::from_str_radix(probe["checksum"].as_str().unwrap_or(""), 16)?,
    })
}

impl Probes {
    /// Reads the file; one without answers of either kind is an error.
    pub fn read(file: &Path) -> Outcome<Probes> {
        let content = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut probes = Probes { keys: Vec::new(), tables: Vec::new() };
        for line in content.lines() {
            let probe: Json = serde_json::from_str(line)?;
            match probe["kind"].as_str() {
                Some("point") => probes.keys.push(key_probe(&probe)?),
                Some("table") => probes.tables.push(table_probe(&probe)?),
                other => return Err(format!("a probe of the unknown kind {other:?}").into()),
            }
        }
        match probes.keys.is_empty() || probes.tables.is_empty() {
            true => Err(format!("{} has no answers to check", file.display()).into()),
            false => Ok(probes),
        }
    }

    /// A point with bounds on both axes if there is one.
    pub fn bounds_for_timing(&self) -> Point {
        let both = self.tables.iter().find(|t| t.at.valid.is_some() && t.at.system.is_some());
        both.unwrap_or(&self.tables[0]).at
    }
}
