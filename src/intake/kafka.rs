//! Topics as messages.

use super::driver::{Messages, Step, Take};
use super::files::{declared_format, position_key, source_error};
use super::gap::{self, StreamStart};
use super::numbers::Numbers;
use super::report::Progress;
use crate::error::Result;
use crate::format::avro::SchemaSource;
use crate::options::IntakeOptions;
use crate::source::SourcePosition;
use crate::source::kafka::{KafkaOptions, Reach, Resume, TopicReader};
use asofdb_storage::engine::Catalog;
use std::sync::Arc;

/// The messages of topics, from where the store is.
pub struct KafkaMessages {
    reader: TopicReader,
    topics: String,
    /// What the check of gaps was told and is to be told again by the intake.
    starts: Vec<StreamStart>,
    notices: Vec<String>,
    schemas: Option<Arc<dyn SchemaSource>>,
}

impl KafkaMessages {
    /// Connects to the brokers and finds where to go on. After an error in reading it is to be opened again:
    /// what was read and not committed comes again then. Otherwise it can be run several times
    /// ([`super::run`]), and keeps its connections.
    ///
    /// # Errors
    /// `Usage` for options that make no sense; `Source` if the brokers are not there in time, refuse us or know
    /// no such topic, and for a gap that was not accepted.
    pub fn open(kafka: KafkaOptions, options: &IntakeOptions, catalog: &Catalog) -> Result<KafkaMessages> {
        let numbers = Numbers::of_catalog(catalog, None);
        let resume = |stream: &str| {
            let taken = gap::taken(catalog, &numbers, stream, None);
            let stored = catalog.positions.get(&position_key(stream, taken.generation, "", 0));
            let stored = stored.and_then(|v| serde_json::from_value::<SourcePosition>(v.clone()).ok());
            let stored = stored.filter(|p| Some(p.next) == taken.next).unwrap_or_default();
            Resume {
                next: taken.next,
                digest: stored.digest,
                state: stored.state,
                format: stored.reading.map(|r| r.format),
                generation: taken.generation,
            }
        };
        let topics = kafka.topics.join(", ");
        let declared = declared_format(options)?;
        let name = options.source_name.as_deref();
        let decoding = options.decoding(catalog)?;
        let schemas = decoding.schemas.clone();
        let mut reader = TopicReader::open(kafka, name, declared, decoding, &resume)?;
        let starts = reader.starts();
        let checked = gap::check(catalog, &starts)?;
        reader.go_to(&|stream| {
            let taken = gap::taken(catalog, &numbers, stream, Some(&checked));
            (taken.next, taken.generation)
        })?;
        Ok(KafkaMessages { reader, topics, starts, notices: Vec::new(), schemas })
    }

    /// See [`TopicReader::look_now`].
    #[cfg(all(test, feature = "kafka"))]
    pub(crate) fn look_now(&mut self) {
        self.reader.look_now();
    }

    /// Messages that the topics have and that were not read yet, as far as that is known.
    pub fn lag(&self) -> u64 {
        self.reader.lag()
    }
}

impl Messages for KafkaMessages {
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step> {
        let mut failed = None;
        let reach = self.reader.read(room.max(1), &mut |place, decoded| {
            if failed.is_none()
                && let Err(e) = take(place, decoded)
            {
                failed = Some(e);
            }
        });
        if let Some(e) = failed {
            return Err(e);
        }
        for (topic, format) in self.reader.formats_found() {
            self.notices.push(format!("{topic}: read as {format}"));
        }
        Ok(match reach.map_err(source_error)? {
            Reach::More => Step::More,
            Reach::Idle => Step::Idle,
            Reach::End => Step::End,
        })
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        let key =
            |p: &SourcePosition| position_key(&p.stream, p.stream_generation, &p.origin, p.origin_generation);
        self.reader.positions().iter().map(|p| (key(p), serde_json::json!(p))).collect()
    }

    fn starts(&mut self) -> Result<Vec<StreamStart>> {
        match std::mem::take(&mut self.starts) {
            first if !first.is_empty() => Ok(first),
            _ => Ok(self.reader.starts()),
        }
    }

    fn schemas(&self) -> Option<Arc<dyn SchemaSource>> {
        self.schemas.clone()
    }

    fn progress(&self, progress: &mut Progress) {
        progress.source.clone_from(&self.topics);
        progress.lag = Some(self.reader.lag());
        progress.away = self.reader.away();
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}
