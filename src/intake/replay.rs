//! Messages of the quarantine, taken again with other options (rule C2). What can be taken now goes
//! into a new commit under the position it always had; that commit also says which messages it
//! settled, so that none is taken twice. What still cannot be taken stays where it is.

use super::batch::{Batcher, options_key};
use super::driver::keep_schemas;
use super::files::{declared_format, position_key};
use super::report::IntakeReport;
use super::sink::Sink;
use crate::change::{Decoded, Fault};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, FormatOptions};
use crate::options::{BATCH_BYTES, BATCH_MESSAGES, IntakeOptions};
use crate::source::{KeptMessages, Place, Reading, SourcePosition};
use asofdb_storage::engine::{Catalog, CommitRequest, Quarantined, Resolved};
use asofdb_storage::id::OriginId;
use asofdb_storage::time::CommitSeq;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A message of the quarantine that was not settled yet.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The commit that put it aside.
    pub commit: CommitSeq,
    /// Its number within that commit, from 0.
    pub number: u64,
    /// The message.
    pub message: Quarantined,
}

/// Takes messages of the quarantine again, each with the options it was read with and `given` over
/// them. In the report `quarantined` counts those that stay.
///
/// # Errors
/// `Usage` if options contradict each other or the store, `Source` under `strict`, and those of the
/// store. Commits that were made stay.
pub fn replay(
    sink: &dyn Sink,
    waiting: &mut dyn Iterator<Item = Result<Waiting>>,
    given: &IntakeOptions,
) -> Result<IntakeReport> {
    given.validate()?;
    let messages_max = given.batch.unwrap_or(BATCH_MESSAGES);
    let catalog = sink.catalog();
    let mut known: HashMap<Option<OriginId>, IntakeOptions> = HashMap::new();
    let mut report = IntakeReport::default();
    let mut batch = Batch::default();
    for message in waiting {
        let message = message?;
        let origin = message.message.origin;
        let options = match known.get(&origin) {
            Some(options) => options.clone(),
            None => {
                let options = options_of(&catalog, origin)?.overridden_by(given);
                options.validate()?;
                known.entry(origin).or_insert(options).clone()
            }
        };
        let full = batch.messages.len() >= messages_max || batch.bytes >= BATCH_BYTES;
        if full || batch.options != options {
            batch.take(sink, &mut report)?;
            batch.options = options;
        }
        batch.bytes += message.message.raw.len();
        batch.messages.push(message);
    }
    batch.take(sink, &mut report)?;
    assert!(report.is_balanced(), "every message is counted once: {report}");
    Ok(report)
}

/// The options that an origin's messages were read with.
fn options_of(catalog: &Catalog, origin: Option<OriginId>) -> Result<IntakeOptions> {
    let stored = origin.and_then(|origin| catalog.positions.get(&options_key(origin)));
    let Some(stored) = stored else { return Ok(IntakeOptions::default()) };
    serde_json::from_value(stored.clone()).map_err(|e| {
        Error::new(ErrorKind::Damaged, format!("the stored options of a source cannot be read: {e}"))
    })
}

/// Messages with the same options.
#[derive(Default)]
struct Batch {
    options: IntakeOptions,
    messages: Vec<Waiting>,
    bytes: usize,
}

impl Batch {
    /// Takes the messages, in one commit if any of them can be taken.
    fn take(&mut self, sink: &dyn Sink, report: &mut IntakeReport) -> Result<()> {
        let messages = std::mem::take(&mut self.messages);
        self.bytes = 0;
        if messages.is_empty() {
            return Ok(());
        }
        let mut batcher = Batcher::again(sink, &self.options);
        let mut decoders = Decoders::new(sink, &self.options)?;
        for Waiting { message, .. } in &messages {
            let mut taken = Ok(());
            let (place, decoder) = decoders.place(&batcher, message);
            match decoder {
                Ok(decoder) => {
                    decoder.decode(&place, &mut |place, decoded| taken = batcher.take(place, decoded));
                }
                Err(reason) => {
                    let hint = "ingest the message from a file of its own";
                    let fault = Fault { reason: &reason, hint, offset: 0 };
                    taken = batcher.take(&place, Decoded::Quarantine(fault));
                }
            }
            taken?;
        }
        let (mut request, mut counts) = batcher.close()?;
        settle(&mut request, &messages);
        if let Some(schemas) = decoders.decoding.as_ref().ok().and_then(|options| options.schemas.as_ref()) {
            keep_schemas(&mut request, schemas.take_new());
        }
        if !request.resolved.is_empty() {
            let info = sink.commit(request)?;
            (report.last_commit, report.commits) = (Some(info.seq), report.commits + 1);
        }
        counts.notices.clear();
        report.add(counts);
        Ok(())
    }
}

/// Says in a request which messages it settles: all but those that would go to the quarantine again.
fn settle(request: &mut CommitRequest, messages: &[Waiting]) {
    let stay: HashSet<(Option<OriginId>, u64)> =
        std::mem::take(&mut request.quarantine).iter().map(|q| (q.origin, q.position)).collect();
    let mut settled: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for w in messages.iter().filter(|w| !stay.contains(&(w.message.origin, w.message.position))) {
        settled.entry(w.commit.0).or_default().push(w.number);
    }
    request.resolved = settled.into_iter().flat_map(|(commit, n)| Resolved::ranges(commit, n)).collect();
    request.note["kind"] = "quarantine-replay".into();
    if let Some(quarantined) = request.note.as_object_mut().and_then(|note| note.remove("quarantined")) {
        request.note["remaining"] = quarantined;
    }
}

/// A decoder for every origin.
struct Decoders {
    catalog: std::sync::Arc<Catalog>,
    decoding: Result<FormatOptions, String>,
    format: Option<Format>,
    by_origin: HashMap<OriginId, Result<KeptMessages, String>>,
}

impl Decoders {
    fn new(sink: &dyn Sink, options: &IntakeOptions) -> Result<Decoders> {
        let format = declared_format(options)?;
        let catalog = sink.catalog();
        let decoding = options.decoding(&catalog).map_err(|e| e.message().to_owned());
        Ok(Decoders { catalog, decoding, format, by_origin: HashMap::new() })
    }

    /// The place that a message has, with its decoder or why it has none.
    fn place<'m>(
        &'m mut self,
        batcher: &Batcher<'_>,
        message: &'m Quarantined,
    ) -> (Place<'m>, Result<&'m mut KeptMessages, String>) {
        let mut place = Place {
            number: 0,
            stream: &message.stream,
            stream_generation: 0,
            origin: "",
            origin_generation: 0,
            position: message.position,
            file: message.file.as_deref().unwrap_or(""),
            line: message.line.unwrap_or(0),
            byte: 0,
            raw: &message.raw,
            record: None,
        };
        let Some(origin) = message.origin else {
            return (place, Err("the store does not know the source of the message".into()));
        };
        let Some((stream_generation, name, origin_generation)) = batcher.numbers.place_of(origin) else {
            return (place, Err("the store does not know the source of the message".into()));
        };
        let stored = self.catalog.origins.get(origin.0 as usize).and_then(|o| o.file.as_deref());
        place.origin = stored.filter(|file| *file == name).unwrap_or("");
        (place.stream_generation, place.origin_generation) = (stream_generation, origin_generation);
        if message.raw.len() as u64 != message.length {
            return (place, Err(format!("only the first {} bytes were kept", message.raw.len())));
        }
        if message.raw.is_empty() {
            return (place, Err("the message was not kept as it came".into()));
        }
        let decoder = match self.by_origin.entry(origin) {
            std::collections::hash_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::hash_map::Entry::Vacant(room) => {
                let reading = reading_of(&self.catalog, &place);
                let options = self.decoding.as_ref().map_err(|e| e.clone());
                room.insert(options.and_then(|options| {
                    KeptMessages::new(reading.as_ref(), self.format, options, &message.raw)
                }))
            }
        };
        (place, decoder.as_mut().map_err(|reason| reason.clone()))
    }
}

/// How the file of a place was read, as its stored position says.
pub(super) fn reading_of(catalog: &Catalog, place: &Place<'_>) -> Option<Reading> {
    let stored = catalog.positions.get(&position_key(
        place.stream,
        place.stream_generation,
        place.origin,
        place.origin_generation,
    ))?;
    serde_json::from_value::<SourcePosition>(stored.clone()).ok()?.reading
}
