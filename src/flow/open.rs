//! From a declared flow to its messages: the one place where sources are opened.

use super::definition::{Flow, Target};
use super::source::SourceKind;
use crate::error::{Error, ErrorKind, Result};
use crate::intake::{FileMessages, KafkaMessages, Messages, PullMessages, PullOptions};
use crate::options::IntakeOptions;
use crate::source::{KafkaOptions, Live, LiveClock, Until};
use asofdb_storage::engine::Snapshot;
use std::sync::Arc;
use std::time::Duration;

/// How long a file must have been left alone, unless the flow says otherwise.
const QUIET: Duration = Duration::from_secs(2);

/// Gives the value of a variable of the environment.
pub type Variable = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What opening a source takes beside the flow.
pub struct Opening {
    /// The store, with the positions of earlier runs.
    pub snapshot: Snapshot,
    /// The wall clock.
    pub clock: LiveClock,
    /// The environment: passwords that the flow names no file for, and variables of files of properties.
    pub variable: Variable,
    /// When topics end.
    pub until: Until,
}

/// An open source.
pub struct Opened {
    /// Its messages.
    pub messages: Box<dyn Messages>,
    /// How they are taken.
    pub options: IntakeOptions,
    /// It can be read again once it ended, and gives what came since.
    pub goes_on: bool,
    /// It can be left at any message.
    pub divides: bool,
}

/// Opens the source of a flow.
///
/// # Errors
/// `Source` if it cannot be reached; `Usage` if it can never be: the flow must be declared anew.
pub fn open(flow: &Flow, opening: &Opening) -> Result<Opened> {
    check(flow)?;
    let options = with_secrets(flow, flow.options()?, opening)?;
    let source = &flow.source;
    let catalog = opening.snapshot.catalog();
    match source.kind {
        SourceKind::Files => {
            let quiet = source.quiet()?.unwrap_or(QUIET);
            let prefix = flow.source_name().map(|name| format!("flow {name}/")).unwrap_or_default();
            let live = Live { clock: opening.clock.clone(), quiet, prefix };
            let messages = Box::new(FileMessages::open_live(&source.places, &options, live, catalog)?);
            Ok(Opened { messages, options, goes_on: true, divides: true })
        }
        SourceKind::Kafka => {
            let mut kafka = topics(flow, Some(&opening.variable))?;
            kafka.until = opening.until;
            let messages = Box::new(KafkaMessages::open(kafka, &options, catalog)?);
            Ok(Opened { messages, options, goes_on: opening.until == Until::Stopped, divides: true })
        }
        SourceKind::Pull | SourceKind::Snapshot => {
            let pull = PullOptions { password: password(flow, opening)?, ..pulled(flow) };
            let messages = Box::new(PullMessages::open(&pull, &options, Some(opening.snapshot.clone()))?);
            Ok(Opened { messages, options, goes_on: false, divides: false })
        }
        SourceKind::Changes => Err(changes()),
    }
}

/// Whether the source of a flow makes sense, as far as that can be told without asking it.
///
/// # Errors
/// `Usage`.
pub(crate) fn check(flow: &Flow) -> Result<()> {
    let source = &flow.source;
    let set = |name: &str| source.settings.contains_key(name);
    match source.kind {
        SourceKind::Files => {}
        SourceKind::Kafka if !set("brokers") && !set("properties") => {
            return Err(Error::usage("kafka() names no broker")
                .hint("brokers => 'host:9092', or properties => 'FILE' with bootstrap.servers in it"));
        }
        SourceKind::Kafka => drop(topics(flow, None)?),
        SourceKind::Pull if !set("watermark") => {
            return Err(Error::usage("pull() names no watermark").hint(
                "watermark => 'updated_at' names a column that grows; snapshot('url', table) reads the whole table",
            ));
        }
        SourceKind::Pull | SourceKind::Snapshot => pulled(flow).check(&flow.options()?)?,
        SourceKind::Changes => return Err(changes()),
    }
    match (source.kind, &flow.target) {
        (SourceKind::Pull | SourceKind::Snapshot, Target::Several(_)) => {
            Err(Error::usage(format!("{}() reads one table, and INTO names several", source.kind.name()))
                .hint("declare a flow for each table"))
        }
        _ => Ok(()),
    }
}

fn changes() -> Error {
    Error::usage("changes() is not supported as a source of flows yet")
        .hint("asof tail writes the changes of a table to a file that files() reads")
}

/// The topics of a flow. Without the environment, files of properties are not read.
fn topics(flow: &Flow, variable: Option<&Variable>) -> Result<KafkaOptions> {
    let set = |name: &str| flow.source.settings.get(name);
    let mut kafka = KafkaOptions::default();
    kafka.topics.clone_from(&flow.source.places);
    if let Some(from) = set("from") {
        kafka.start = from.parse()?;
    }
    kafka.read_uncommitted = set("read_uncommitted").is_some_and(|v| v == "true");
    if let (Some(file), Some(variable)) = (set("properties"), variable) {
        let text = read_file("properties", file)?;
        kafka.set_all(file, &text, &|name| variable(name))?;
    }
    if let Some(brokers) = set("brokers") {
        kafka.set("bootstrap.servers", brokers, &|_| None)?;
    }
    if variable.is_some() {
        kafka.validate()?;
    }
    Ok(kafka)
}

/// What is pulled, without a password.
fn pulled(flow: &Flow) -> PullOptions {
    let source = &flow.source;
    let set = |name: &str| source.settings.get(name).cloned();
    let place = |i: usize| source.places.get(i).cloned().unwrap_or_default();
    PullOptions {
        url: place(0),
        table: place(1),
        watermark: set("watermark"),
        overlap: set("overlap"),
        snapshot: source.kind == SourceKind::Snapshot,
        password: None,
    }
}

/// The password of a database: that of a file, or of the environment.
fn password(flow: &Flow, opening: &Opening) -> Result<Option<String>> {
    if let Some(file) = flow.source.settings.get("password_file") {
        let text = read_file("password_file", file)?;
        return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
    }
    let postgres = flow.source.places.first().is_some_and(|url| url.starts_with("postgres"));
    Ok((opening.variable)(if postgres { "PGPASSWORD" } else { "MYSQL_PWD" }))
}

/// The options with what is not stored.
fn with_secrets(flow: &Flow, mut options: IntakeOptions, opening: &Opening) -> Result<IntakeOptions> {
    let Some(registry) = &mut options.registry else { return Ok(options) };
    registry.auth = match flow.source.settings.get("registry_auth") {
        None => (opening.variable)("ASOF_REGISTRY_AUTH"),
        Some(file) => Some(read_file("registry_auth", file)?.trim_end().to_owned()),
    };
    Ok(options)
}

/// The text of a file that a setting names.
fn read_file(setting: &str, file: &str) -> Result<String> {
    std::fs::read_to_string(file)
        .map_err(|e| Error::new(ErrorKind::Source, format!("{setting} => '{file}': {e}")))
}
