//! Sources of flows: which there are, where their events lie, and what can be set for each.

use crate::error::{Error, Result};
use crate::format::Format;
use crate::format::options::Absent;
use crate::near::near_names_hint;
use crate::options::{IntakeOptions, Registry};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// Where the events of a flow come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSource {
    /// What kind of place it is.
    pub kind: SourceKind,
    /// Paths, topics, addresses or tables, as they were written.
    pub places: Vec<String>,
    /// What was set for it, as text. No secrets: only names of files that hold them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// A kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// Files, globs and directories.
    Files,
    /// Topics of Kafka.
    Kafka,
    /// A table of a database, asked again and again.
    Pull,
    /// A table of a database, read as a whole again and again.
    Snapshot,
    /// What commits changed in a table of this store.
    Changes,
}

/// A setting and what it says, for people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Other names of it.
    also: &'static [&'static str],
}

const fn setting(name: &'static str) -> Setting {
    Setting { name, also: &[] }
}

/// Settings of sources of messages: how they are read.
const READING: [Setting; 17] = [
    setting("source_name"),
    setting("format"),
    setting("op"),
    setting("op_map"),
    setting("default_op"),
    setting("operation_id"),
    setting("absent"),
    setting("zone"),
    setting("null_text"),
    setting("header"),
    setting("schemas"),
    setting("registry"),
    setting("registry_auth"),
    setting("framing"),
    setting("keep_raw"),
    setting("strict"),
    setting("batch"),
];
const FILES: [Setting; 1] = [setting("quiet")];
const KAFKA: [Setting; 4] = [
    Setting { name: "brokers", also: &["bootstrap", "bootstrap_servers"] },
    setting("properties"),
    setting("from"),
    setting("read_uncommitted"),
];
const PULL: [Setting; 6] = [
    setting("watermark"),
    setting("overlap"),
    setting("password_file"),
    setting("zone"),
    setting("batch"),
    setting("source_name"),
];
const SNAPSHOT: [Setting; 4] =
    [setting("password_file"), setting("zone"), setting("batch"), setting("source_name")];
const CHANGES: [Setting; 2] = [setting("from"), setting("batch")];

impl SourceKind {
    /// All kinds, by the name of their function.
    pub(crate) const ALL: [(&'static str, SourceKind); 5] = [
        ("files", SourceKind::Files),
        ("kafka", SourceKind::Kafka),
        ("pull", SourceKind::Pull),
        ("snapshot", SourceKind::Snapshot),
        ("changes", SourceKind::Changes),
    ];

    /// The name of its function.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// How many places it is given, least and most, and what they are.
    pub(crate) fn places(self) -> (usize, usize, &'static str) {
        match self {
            SourceKind::Files => (1, usize::MAX, "files('dir or glob', ...)"),
            SourceKind::Kafka => (1, usize::MAX, "kafka('topic', ...)"),
            SourceKind::Pull => (2, 2, "pull('url', table, watermark => 'column')"),
            SourceKind::Snapshot => (2, 2, "snapshot('url', table)"),
            SourceKind::Changes => (1, 1, "changes('table')"),
        }
    }

    /// What can be set for it.
    fn settings(self) -> Vec<Setting> {
        match self {
            SourceKind::Files => READING.iter().chain(&FILES).copied().collect(),
            SourceKind::Kafka => READING.iter().chain(&KAFKA).copied().collect(),
            SourceKind::Pull => PULL.to_vec(),
            SourceKind::Snapshot => SNAPSHOT.to_vec(),
            SourceKind::Changes => CHANGES.to_vec(),
        }
    }

    /// The setting of that name.
    ///
    /// # Errors
    /// `Usage`; names near ones.
    pub(crate) fn setting(self, name: &str) -> Result<&'static str> {
        let all = self.settings();
        let found = all.iter().find(|s| s.name == name || s.also.contains(&name));
        found.map(|s| s.name).ok_or_else(|| {
            Error::usage(format!("{}() has no setting {name}", self.name()))
                .hint(near_names_hint(name, all.iter().map(|s| s.name)))
        })
    }
}

impl FlowSource {
    /// How long a file must have been left alone to be taken for whole.
    ///
    /// # Errors
    /// `Usage` if it is no duration.
    pub fn quiet(&self) -> Result<Option<Duration>> {
        self.settings.get("quiet").map(|text| duration("quiet", text)).transpose()
    }
}

/// Whether a value can be set, and is no secret.
///
/// # Errors
/// `Usage`.
pub(crate) fn check(setting: &str, value: &str) -> Result<()> {
    if setting == "quiet" {
        duration(setting, value)?;
    }
    if setting == "read_uncommitted" {
        read::<bool>(setting, value, "true or false")?;
    }
    set_options(&mut IntakeOptions::default(), setting, value)
}

/// Refuses a place that holds a password: what is declared is stored for ever.
///
/// # Errors
/// `Usage`.
pub(crate) fn check_place(place: &str) -> Result<()> {
    let authority = place.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next());
    let user = authority.and_then(|a| a.rsplit_once('@')).map(|(user, _)| user);
    let lower = place.to_ascii_lowercase();
    let query = lower.split_once('?').map_or("", |(_, query)| query);
    if user.is_some_and(|u| u.contains(':')) || query.contains("password=") {
        return Err(Error::usage("an address with a password cannot be part of a flow: it would be stored")
            .hint("name the user alone; passwords come from files and the environment"));
    }
    Ok(())
}

/// Sets what a setting says about reading; other settings change nothing.
pub(super) fn set_options(options: &mut IntakeOptions, setting: &str, value: &str) -> Result<()> {
    let list = || value.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    match setting {
        "format" if value == "auto" => options.format = None,
        "format" => {
            value.parse::<Format>().map_err(|e| Error::usage(e.to_string()).hint(e.hint))?;
            options.format = Some(value.to_owned());
        }
        "op" => options.op = Some(value.to_owned()),
        "op_map" => {
            let words: Vec<String> = list();
            options.op_map = words.iter().map(|w| w.parse()).collect::<Result<_>>()?;
        }
        "default_op" => options.default_op = Some(value.parse()?),
        "operation_id" => options.operation_id = Some(value.to_owned()),
        "absent" => options.absent = Some(absent(value)?),
        "zone" => {
            options.zone = Some(value.to_owned());
            options.format_options()?;
        }
        "null_text" => options.null_text = Some(value.to_owned()),
        "header" => options.header = Some(list()),
        "schemas" => options.schemas = list(),
        "registry" => options.registry = Some(registry(value)?),
        "framing" => options.framing = Some(value.parse().map_err(|e| word(setting, value, e))?),
        "keep_raw" => options.keep_raw = read(setting, value, "true or false")?,
        "strict" => options.strict = read(setting, value, "true or false")?,
        "batch" => options.batch = Some(read(setting, value, "a whole number")?),
        _ => {}
    }
    Ok(())
}

fn word(setting: &str, value: &str, e: impl ToString) -> Error {
    Error::usage(format!("{setting} => '{value}': {}", e.to_string()))
}

fn read<T: FromStr>(setting: &str, value: &str, what: &str) -> Result<T> {
    value.parse().map_err(|_| Error::usage(format!("{setting} => '{value}': this is not {what}")))
}

fn absent(value: &str) -> Result<Absent> {
    match value {
        "null" => Ok(Absent::Null),
        "unchanged" => Ok(Absent::Unchanged),
        _ => Err(Error::usage(format!("absent => '{value}': write null or unchanged"))),
    }
}

/// The address of a registry; who may ask it stands elsewhere.
fn registry(value: &str) -> Result<Registry> {
    let registry: Registry = value.parse()?;
    if registry.auth.is_some() {
        return Err(Error::usage(
            "name and password of a registry cannot be part of a flow: they would be stored",
        )
        .hint("registry_auth => 'FILE' names a file with NAME:PASSWORD"));
    }
    Ok(registry)
}

/// Reads `500ms`, `2s`, `5 minutes`, `1h`; a number alone is seconds.
pub(crate) fn duration(setting: &str, value: &str) -> Result<Duration> {
    let text = value.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor_ms = match unit.trim() {
        "ms" | "milliseconds" => 1,
        "" | "s" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => 0u64,
    };
    let ms = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor_ms)).filter(|_| factor_ms > 0);
    ms.map(Duration::from_millis).ok_or_else(|| {
        Error::usage(format!("{setting} => '{value}': this is no duration"))
            .hint("write it like 500ms, 2s or 5 minutes")
    })
}
