//! Numbers of streams, origins and sources, and what intake remembers of each stream.

use crate::change::{SourceRef, Token};
use crate::source::{Place, natural_order};
use asofdb_storage::engine::{Catalog, CatalogChange, Origin, SourceInfo, Stream};
use asofdb_storage::hex;
use asofdb_storage::id::{OriginId, SourceId, StreamId};
use asofdb_storage::time::BEGINNING;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// What is stored about a stream beside its catalog entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamState {
    /// Server whose log the stream carries.
    #[serde(default)]
    pub server: String,
    /// Greatest effective valid time per table number.
    #[serde(default)]
    pub high: BTreeMap<u32, i64>,
    /// Tables with an event that holds from its commit instant: the high-water mark is at least
    /// the instant of the commit that stored this state.
    #[serde(default)]
    pub commit_instant: Vec<u32>,
    /// The log position of the last event that had one, in hexadecimal digits.
    #[serde(default)]
    pub token: String,
    /// How many consecutive events had it.
    #[serde(default)]
    pub token_count: u32,
    /// Generation of a name that came back with other content.
    #[serde(default)]
    pub generation: u32,
}

/// A stream and what is remembered of it.
#[derive(Debug, Default)]
pub struct StreamEntry {
    /// Its state.
    pub state: StreamState,
    /// Changed since the last commit.
    pub dirty: bool,
    /// Raw form of `state.token`.
    pub token: Vec<u8>,
    /// Tables of which an event of this batch may hold from the instant of its commit.
    pub commit_instant_maybe: Vec<u32>,
    /// Tables with a truncate of this batch that does.
    pub commit_instant_sure: Vec<u32>,
    /// The last row event, if it ended a row: its table, whether it was a tombstone, its key.
    pub ended: Option<(usize, bool)>,
    /// Key of `ended`.
    pub ended_key: Vec<u8>,
    /// The last log position and its count, while messages of the quarantine are taken.
    left: Option<(Vec<u8>, u32)>,
}

impl StreamEntry {
    /// A message that stands anywhere in the stream follows: it is no neighbour of the one before.
    pub fn leave(&mut self) {
        self.left.get_or_insert_with(|| (self.token.clone(), self.state.token_count));
        self.ended = None;
    }

    /// The stream goes on from where it was left.
    pub fn come_back(&mut self) {
        if let Some((token, count)) = self.left.take() {
            (self.token, self.state.token_count) = (token, count);
        }
    }
}

/// An origin.
#[derive(Clone, Debug)]
pub struct OriginEntry {
    /// Its stream.
    pub stream: u32,
    /// Its name within the stream.
    pub name: String,
    /// Generation of a name that came back with other content.
    pub generation: u32,
    /// Lowest position that was not taken yet.
    pub next: u64,
    /// An origin of the stream that ranks above was taken from before this one.
    pub behind: bool,
}

/// Highest log position of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerState {
    /// In hexadecimal digits, so that it stays readable.
    pub token: String,
    /// Greatest ordinal seen with it.
    pub ordinal: u32,
}

/// All numbers that were given.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Streams by number.
    pub streams: Vec<StreamEntry>,
    /// Origins by number.
    pub origins: Vec<OriginEntry>,
    stream_ids: HashMap<(String, u32), u32>,
    origin_ids: HashMap<(u32, String, u32), u32>,
    sources: Vec<SourceInfo>,
    source_ids: HashMap<SourceInfo, SourceId>,
    last_source: SourceId,
    /// Highest position per server with its raw token.
    pub servers: HashMap<String, (Vec<u8>, u32, bool)>,
    /// New entries for the next commit.
    pub changes: Vec<CatalogChange>,
}

/// The bytes of hexadecimal digits; empty for anything else.
fn unhex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap_or_default()
}

/// Catalog key of what is remembered of a stream.
pub fn stream_key(id: u32) -> String {
    format!("intake/stream/{id}")
}

/// Catalog key of what is remembered of an origin.
pub fn origin_key(id: u32) -> String {
    format!("intake/origin/{id}")
}

/// Catalog key of what is remembered of a server.
pub fn server_key(name: &str) -> String {
    format!("intake/server/{name}")
}

#[derive(Serialize, Deserialize)]
struct OriginState {
    next: u64,
    #[serde(default)]
    generation: u32,
}

impl Numbers {
    /// Reads what the catalog knows. `commit_at` is the instant of its newest commit.
    pub fn of_catalog(catalog: &Catalog, commit_at: Option<i64>) -> Numbers {
        let mut n = Numbers::default();
        for s in &catalog.streams {
            let mut state: StreamState = read(catalog, &stream_key(s.id.0));
            for table in std::mem::take(&mut state.commit_instant) {
                let high = state.high.entry(table).or_insert(BEGINNING);
                *high = (*high).max(commit_at.unwrap_or(BEGINNING));
            }
            n.stream_ids.insert((s.name.clone(), state.generation), s.id.0);
            n.streams.push(StreamEntry { token: unhex(&state.token), state, ..StreamEntry::default() });
        }
        for o in &catalog.origins {
            let state: Option<OriginState> = catalog
                .positions
                .get(&origin_key(o.id.0))
                .and_then(|v| serde_json::from_value(v.clone()).ok());
            let (next, generation) = state.map_or((0, 0), |s| (s.next, s.generation));
            let name = o.file.clone().unwrap_or_default();
            n.origin_ids.insert((o.stream.0, name.clone(), generation), o.id.0);
            n.origins.push(OriginEntry { stream: o.stream.0, name, generation, next, behind: false });
        }
        n.sources = catalog.sources.clone();
        if n.sources.is_empty() {
            n.sources.push(SourceInfo::default());
        }
        for s in &n.sources {
            n.source_ids.insert(SourceInfo { id: SourceId(0), ..s.clone() }, s.id);
        }
        for (key, value) in &catalog.positions {
            if let Some(name) = key.strip_prefix("intake/server/")
                && let Ok(state) = serde_json::from_value::<ServerState>(value.clone())
            {
                n.servers.insert(name.to_owned(), (unhex(&state.token), state.ordinal, false));
            }
        }
        n
    }

    /// The number of the origin of a place; new ones are given numbers.
    pub fn origin(&mut self, place: &Place<'_>) -> OriginId {
        let stream = match self.stream_ids.get(&(place.stream.to_owned(), place.stream_generation)) {
            Some(id) => *id,
            None => self.new_stream(place),
        };
        let key = (stream, place.origin.to_owned(), place.origin_generation);
        if let Some(id) = self.origin_ids.get(&key) {
            return OriginId(*id);
        }
        let id = self.origins.len() as u32;
        let entry = OriginEntry {
            stream,
            name: place.origin.to_owned(),
            generation: place.origin_generation,
            next: 0,
            behind: false,
        };
        let above = |o: &OriginEntry| o.stream == stream && origin_order(&entry, o) == Ordering::Less;
        let behind = self.origins.iter().any(above);
        self.origins.push(OriginEntry { behind, ..entry });
        self.origin_ids.insert(key, id);
        let text = |t: &str| (!t.is_empty()).then(|| t.to_owned());
        self.changes.push(CatalogChange::Origin(Origin {
            id: OriginId(id),
            stream: StreamId(stream),
            file: text(place.origin),
            path: text(place.file),
        }));
        OriginId(id)
    }

    fn new_stream(&mut self, place: &Place<'_>) -> u32 {
        let id = self.streams.len() as u32;
        let state = StreamState { generation: place.stream_generation, ..StreamState::default() };
        self.streams.push(StreamEntry { state, dirty: true, ..StreamEntry::default() });
        self.stream_ids.insert((place.stream.to_owned(), place.stream_generation), id);
        self.changes.push(CatalogChange::Stream(Stream { id: StreamId(id), name: place.stream.to_owned() }));
        id
    }

    /// The number of what an envelope says of its source. Log positions compare within one server,
    /// so the server that a token names wins over the connector's name.
    pub fn source(&mut self, source: &SourceRef<'_>, token: Option<&Token<'_>>) -> SourceId {
        let server = token.map(|t| t.server).or(source.server);
        let last = &self.sources[self.last_source.0 as usize];
        let same = |a: &Option<String>, b: Option<&str>| a.as_deref() == b.filter(|t| !t.is_empty());
        if same(&last.server, server)
            && same(&last.database, source.db)
            && same(&last.schema, source.schema)
            && same(&last.table, source.table)
        {
            return last.id;
        }
        let id = self.find_source(server, source);
        self.last_source = id;
        id
    }

    fn find_source(&mut self, server: Option<&str>, source: &SourceRef<'_>) -> SourceId {
        let own = |t: Option<&str>| t.filter(|t| !t.is_empty()).map(str::to_owned);
        let info = SourceInfo {
            id: SourceId(0),
            server: own(server),
            database: own(source.db),
            schema: own(source.schema),
            table: own(source.table),
        };
        if let Some(id) = self.source_ids.get(&info) {
            return *id;
        }
        let id = SourceId(self.sources.len() as u32);
        self.source_ids.insert(info.clone(), id);
        let info = SourceInfo { id, ..info };
        self.sources.push(info.clone());
        self.changes.push(CatalogChange::Source(info));
        id
    }

    /// The number of an origin, if it has one.
    pub fn known_origin(
        &self,
        stream: &str,
        stream_generation: u32,
        name: &str,
        generation: u32,
    ) -> Option<OriginId> {
        let stream = self.stream_ids.get(&(stream.to_owned(), stream_generation))?;
        self.origin_ids.get(&(*stream, name.to_owned(), generation)).map(|id| OriginId(*id))
    }

    /// Where an origin stands: generation of its stream, its name there, its own generation.
    pub fn place_of(&self, origin: OriginId) -> Option<(u32, &str, u32)> {
        let o = self.origins.get(origin.0 as usize)?;
        let stream = self.streams.get(o.stream as usize)?;
        Some((stream.state.generation, &o.name, o.generation))
    }

    /// Compares two places of one stream (rule B3): origin, then position and ordinal.
    pub fn compare(&self, a: (OriginId, u64, u32), b: (OriginId, u64, u32)) -> Ordering {
        let origins = match a.0 == b.0 {
            true => Ordering::Equal,
            false => origin_order(&self.origins[a.0.0 as usize], &self.origins[b.0.0 as usize])
                .then(a.0.0.cmp(&b.0.0)),
        };
        origins.then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
    }

    /// The batch is settled: what holds from the instant of its commit is known.
    pub fn settled(&mut self) {
        for s in &mut self.streams {
            s.commit_instant_maybe.clear();
            for table in std::mem::take(&mut s.commit_instant_sure) {
                if !s.state.commit_instant.contains(&table) {
                    s.state.commit_instant.push(table);
                    s.dirty = true;
                }
            }
        }
    }

    /// Takes note that a commit was made: what held from its instant is known now.
    pub fn committed(&mut self, at: i64) {
        for s in self.streams.iter_mut().filter(|s| !s.state.commit_instant.is_empty()) {
            for table in std::mem::take(&mut s.state.commit_instant) {
                let high = s.state.high.entry(table).or_insert(BEGINNING);
                *high = (*high).max(at);
            }
            s.dirty = true;
        }
    }

    /// What changed since the last call, as positions of the catalog. `origins` were read from.
    pub fn positions(&mut self, origins: &[u32]) -> Vec<(String, serde_json::Value)> {
        let mut out = Vec::new();
        for (id, s) in self.streams.iter_mut().enumerate().filter(|(_, s)| s.dirty) {
            s.dirty = false;
            s.state.token = hex::encode(&s.token);
            out.push((stream_key(id as u32), serde_json::json!(s.state)));
        }
        for id in origins {
            let o = &self.origins[*id as usize];
            out.push((
                origin_key(*id),
                serde_json::json!(OriginState { next: o.next, generation: o.generation }),
            ));
        }
        for (name, (token, ordinal, dirty)) in self.servers.iter_mut().filter(|(_, s)| s.2) {
            *dirty = false;
            out.push((
                server_key(name),
                serde_json::json!(ServerState { token: hex::encode(token), ordinal: *ordinal }),
            ));
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        out
    }
}

fn origin_order(a: &OriginEntry, b: &OriginEntry) -> Ordering {
    natural_order(&a.name, &b.name).then(a.generation.cmp(&b.generation))
}

fn read<T: Default + serde::de::DeserializeOwned>(catalog: &Catalog, key: &str) -> T {
    catalog.positions.get(key).and_then(|v| serde_json::from_value(v.clone()).ok()).unwrap_or_default()
}
