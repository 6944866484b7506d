//! From a question to streams: which columns to load, how to divide the keys, which fold to run.

use super::batches::Batches;
use super::counted::Counted;
use super::counts::ScanCounts;
use super::divide::{divide, rows_within};
use super::fold::{FoldScan, Input, Piece, Pieces, can_gather};
use super::gather::Gather;
use super::group::{Groups, MergeOrder};
use super::intervals::IntervalScan;
use super::keys::KeyWalk;
use super::lineage::Histories;
use super::prune::{Pruned, Reach, opened, stretches};
use super::rows::{Qualifier, RowsScan};
use super::source::{SortedSource, Traits};
use super::tape::{Follower, SOURCES_MAX};
use crate::engine::error::{Error, ErrorKind};
use crate::engine::request::{Bounds, KeyFilter, ScanKind, ScanRequest, ScanStream};
use crate::engine::view::{TableView, View};
use crate::event::columns::meta_fields;
use crate::event::image_column_name;
use crate::id::{ColumnId, TableId};
use crate::schema::{TableMeta, TableSchema};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Keys that are looked up one by one; more are found by passing over the keys between them.
const SINGLE_KEYS_MAX: usize = 64;

/// What a history of a key reads beside images.
pub(crate) const HISTORY_COLUMNS: [&str; 17] = [
    "key",
    "key_no",
    "valid_from",
    "valid_to",
    "system",
    "commit",
    "op",
    "origin",
    "position",
    "ordinal",
    "mask",
    "mask_rest",
    "unknown",
    "ties",
    "source",
    "token",
    "previous",
];

/// Walking over keys takes so many times as long as following an order that is known.
const WALKED_SHARE: usize = 4;

/// Row ranges per source, and which of the keys in them to visit.
type Part = (Vec<Range<usize>>, KeyFilter);

/// What merging the events of one key from several sources reads.
const MERGE_COLUMNS: [&str; 7] = ["key", "valid_from", "ties", "system", "origin", "position", "ordinal"];

/// A table of a view, ready to be asked.
#[derive(Clone)]
pub(crate) struct TableScan {
    pub meta: Arc<TableMeta>,
    pub parts: Arc<TableView>,
    pub sources: Vec<Arc<dyn SortedSource>>,
    /// The sources to find out how they interleave, where what is read of either is counted apart.
    pub order_sources: Option<Vec<Arc<dyn SortedSource>>>,
    pub order: MergeOrder,
    pub names: Arc<super::lineage::Names>,
}

impl TableScan {
    pub fn new(view: &View, table: TableId) -> Result<TableScan, Error> {
        let meta = view.catalog.tables.get(&table).cloned();
        let meta =
            meta.ok_or_else(|| Error::new(ErrorKind::Invalid, format!("there is no table {}", table.0)))?;
        let parts = view.tables.get(&table).cloned().unwrap_or_default();
        let sources = parts.sources()?.into_iter().filter(|s| s.rows() > 0).collect();
        let order =
            MergeOrder { ranks: view.ranks.for_table(&meta).clone(), system_declared: meta.system_declared };
        Ok(TableScan { meta, parts, sources, order_sources: None, order, names: view.ranks.names.clone() })
    }

    /// The same, counting what is read.
    pub fn counted(mut self, counts: &Arc<ScanCounts>) -> TableScan {
        counts.begin(&self.sources);
        self.order_sources = Some(Counted::all(&self.sources, counts, false));
        self.sources = Counted::all(&self.sources, counts, true);
        self
    }

    pub fn traits(&self) -> Vec<Traits> {
        self.sources.iter().map(|s| s.traits()).collect()
    }

    /// Whether some key needs more than the plain fold.
    pub fn needs_histories(&self) -> bool {
        self.meta.schema().key.is_empty()
            || !self.parts.truncates.is_empty()
            || self.sources.iter().any(|s| s.traits().moves || s.traits().leaves)
    }

    /// Histories that load `columns` for old keys.
    pub fn histories(&self, columns: &[String], schema: &Arc<TableSchema>) -> Histories {
        Histories {
            sources: self.sources.clone(),
            columns: columns.to_vec(),
            schema: schema.clone(),
            system_declared: self.meta.system_declared,
            truncates: self.parts.truncates.clone(),
            names: self.names.clone(),
        }
    }

    /// Names of the columns that rows at a point are made of; `checked` are those that say whether an
    /// event counts.
    pub fn row_columns(
        &self,
        projection: &[ColumnId],
        checked: impl Iterator<Item = &'static str>,
        keys: bool,
    ) -> Vec<String> {
        let mut names: BTreeSet<&str> = ["key_no", "op"].into();
        names.extend(checked);
        if self.sources.len() > 1 {
            names.extend(MERGE_COLUMNS);
        }
        if keys {
            names.insert("key");
        }
        if !projection.is_empty() && self.sources.iter().any(|s| s.traits().partial) {
            names.extend(["mask", "mask_rest", "unknown"]);
        }
        if self.needs_histories() {
            names.extend(HISTORY_COLUMNS);
        }
        with_images(names, projection)
    }

    /// Up to `n - 1` ascending keys that divide all rows into about equal parts.
    pub fn split_keys(&self, n: usize) -> Result<Vec<Vec<u8>>, Error> {
        let largest = self.sources.iter().max_by_key(|s| s.rows());
        largest.map_or(Ok(Vec::new()), |s| s.split_keys(n))
    }

    /// The rows of each source that hold one key.
    fn key_ranges(&self, key: &[u8]) -> Result<Vec<Range<usize>>, Error> {
        self.sources.iter().map(|s| s.find_key(key)).collect()
    }

    /// The parts of a scan: row ranges per source, and which of the keys in them to visit.
    fn parts(&self, request: &ScanRequest) -> Result<Vec<Part>, Error> {
        match &request.keys {
            KeyFilter::Keys(_) => self.key_parts(&request.keys),
            filter => {
                let parts = divide(&self.sources, filter, request.partitions)?;
                Ok(parts.into_iter().map(|p| (p, KeyFilter::All)).collect())
            }
        }
    }

    /// The parts that hold certain keys.
    pub fn key_parts(&self, filter: &KeyFilter) -> Result<Vec<Part>, Error> {
        let KeyFilter::Keys(keys) = filter else { return Ok(Vec::new()) };
        let mut keys = keys.clone();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() <= SINGLE_KEYS_MAX {
            return keys.iter().map(|k| Ok((self.key_ranges(k)?, KeyFilter::All))).collect();
        }
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return Ok(Vec::new()) };
        // The least key behind the last one; a source need not have that.
        let after = [last.as_slice(), &[0]].concat();
        let ranges = self
            .sources
            .iter()
            .map(|s| Ok(s.lower_bound(first)?..s.lower_bound(&after)?))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(vec![(ranges, KeyFilter::Keys(keys))])
    }

    /// Answers a question.
    pub fn scan(&self, request: &ScanRequest) -> Result<Vec<ScanStream>, Error> {
        match request.kind {
            ScanKind::Rows { valid, system } => {
                self.scan_rows(request, Bounds { valid, system, commit: request.commit })
            }
            _ => self
                .within(Reach { bounds: Bounds::latest(request.commit), point: false })
                .scan_histories(request),
        }
    }

    /// The same without events that are after any of the bounds.
    fn within(&self, reach: Reach) -> TableScan {
        TableScan { sources: Pruned::all(&self.sources, reach), ..self.clone() }
    }

    fn scan_rows(&self, request: &ScanRequest, bounds: Bounds) -> Result<Vec<ScanStream>, Error> {
        let plain = !matches!(request.keys, KeyFilter::Keys(_)) && !self.needs_histories();
        if plain
            && self.sources.len() <= SOURCES_MAX
            && can_gather(&request.projection)
            && let Some(rows) = self.fold_rows(request, bounds)?
        {
            return Ok(rows);
        }
        self.within(Reach { bounds, point: true }).walk_rows(request, bounds)
    }

    /// The rows at a point, key by key.
    fn walk_rows(&self, request: &ScanRequest, bounds: Bounds) -> Result<Vec<ScanStream>, Error> {
        if let KeyFilter::Keys(keys) = &request.keys
            && self.looks_up(keys.len())
        {
            let mut keys = keys.clone();
            keys.sort_unstable();
            keys.dedup();
            let rows = self.rows_of_keys(&keys, bounds, &request.projection, &request.schema)?;
            return Ok(vec![rows]);
        }
        let qualifier = Qualifier::new(bounds, &self.traits());
        let by_key = matches!(request.keys, KeyFilter::Keys(_));
        let columns = self.row_columns(&request.projection, qualifier.columns(), by_key);
        let mut streams: Vec<ScanStream> = Vec::new();
        for (ranges, keys) in self.parts(request)? {
            let groups = Groups::new(&self.sources, &ranges, &columns, &request.schema, self.order.clone())?;
            streams.push(Box::new(Batches::new(RowsScan {
                groups,
                walk: keys.into(),
                bounds,
                qualifier,
                projection: request.projection.clone(),
                histories: self.needs_histories().then(|| self.histories(&columns, &request.schema)),
                gather: Gather::new(&request.schema, &request.projection, &[])?,
                events: Vec::new(),
                picks: Vec::new(),
            })));
        }
        Ok(joined(streams, request))
    }

    /// The rows at a point of all keys or most, where the plain fold does; `None` where the keys are few and
    /// better walked over.
    fn fold_rows(&self, request: &ScanRequest, bounds: Bounds) -> Result<Option<Vec<ScanStream>>, Error> {
        let counts = |n: &usize| !Qualifier::excludes(&bounds, &self.sources[*n].traits());
        let live: Vec<usize> = (0..self.sources.len()).filter(counts).collect();
        let sources: Vec<_> = live.iter().map(|n| self.sources[*n].clone()).collect();
        let rows = sources.iter().map(|s| s.rows()).sum::<usize>();
        if live.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if live.len() == 1 {
            let parts = divide(&sources, &request.keys, request.partitions)?.into_iter();
            let stream = |ranges: Vec<_>| self.fold_part(request, bounds, &live, &ranges, None);
            let streams = parts.map(stream).collect::<Result<_, _>>()?;
            return Ok(Some(joined(streams, request)));
        }
        if let KeyFilter::Ranges(ranges) = &request.keys
            && rows_within(&sources, ranges)? * WALKED_SHARE < rows
        {
            return Ok(None);
        }
        let divide = || divide(&sources, &KeyFilter::All, request.partitions);
        let tape = self.parts.tapes.find(&live, rows, &self.order.ranks, request.partitions, divide)?;
        let order_sources = self.order_sources.as_ref().unwrap_or(&self.sources);
        let stream = |part: usize| {
            let follower = Follower::new(tape.clone(), part, order_sources, &request.schema, &self.order)?;
            self.fold_part(request, bounds, &tape.members, &tape.parts[part].ranges, Some(follower))
        };
        (0..tape.parts.len()).map(stream).collect::<Result<_, _>>().map(Some)
    }

    /// One part of it: the given rows of some sources.
    fn fold_part(
        &self,
        request: &ScanRequest,
        bounds: Bounds,
        members: &[usize],
        ranges: &[Range<usize>],
        follower: Option<Follower>,
    ) -> Result<ScanStream, Error> {
        let input = |(n, range): (&usize, &Range<usize>)| {
            let source = &self.sources[*n];
            let traits = source.traits();
            let mut names: BTreeSet<&'static str> = ["op"].into();
            if follower.is_none() {
                names.insert("key_no");
            }
            if traits.partial && !request.projection.is_empty() {
                names.insert("mask");
            }
            let counts = !Qualifier::excludes(&bounds, &traits);
            Input::new(counts.then(|| pieces(source, range.clone(), &bounds, names, request)))
        };
        let inputs = members.iter().zip(ranges).map(input).collect();
        let gather = Gather::new(&request.schema, &request.projection, &[])?;
        Ok(Box::new(FoldScan::new(inputs, follower, &request.projection, gather)))
    }

    fn scan_histories(&self, request: &ScanRequest) -> Result<Vec<ScanStream>, Error> {
        let mut names: BTreeSet<&str> = HISTORY_COLUMNS.into();
        let meta = meta_fields();
        if request.kind == ScanKind::History {
            names.extend(meta.iter().map(|f| f.name().as_str()));
        }
        let mut images: Vec<ColumnId> = request.projection.clone();
        if request.kind != ScanKind::History {
            images.extend(self.tracked(&request.schema).iter().flatten());
        }
        let columns = with_images(names, &images);
        let mut streams: Vec<ScanStream> = Vec::new();
        for (groups, walk) in self.walks(request, &columns)? {
            let histories = self.histories(&columns, &request.schema);
            let tracked = self.tracked(&request.schema);
            streams.push(match request.kind {
                ScanKind::History => {
                    Box::new(Batches::new(super::events::EventScan::new(groups, walk, histories, request)?))
                }
                _ => Box::new(Batches::new(IntervalScan::new(groups, walk, histories, tracked, request)?)),
            });
        }
        Ok(joined(streams, request))
    }

    /// The keys of a question about histories, in parts: few keys are looked up, others passed over.
    fn walks(&self, request: &ScanRequest, columns: &[String]) -> Result<Vec<(Groups, KeyWalk)>, Error> {
        if let KeyFilter::Keys(keys) = &request.keys
            && self.looks_up(keys.len())
        {
            let mut keys = keys.clone();
            keys.sort_unstable();
            keys.dedup();
            let walk = KeyWalk::LookedUp {
                keys: keys.into_iter(),
                sources: self.sources.clone(),
                columns: columns.to_vec(),
                schema: request.schema.clone(),
            };
            return Ok(vec![(Groups::empty(self.order.clone()), walk)]);
        }
        let part = |(ranges, keys): Part| {
            let groups = Groups::new(&self.sources, &ranges, columns, &request.schema, self.order.clone())?;
            Ok((groups, keys.into()))
        };
        self.parts(request)?.into_iter().map(part).collect()
    }

    /// Columns whose change makes a new interval row (rule B9).
    fn tracked(&self, schema: &TableSchema) -> Option<Vec<ColumnId>> {
        let names = self.meta.tracked.as_ref();
        let all = || schema.columns.iter().map(|c| c.id).collect();
        Some(names.map_or_else(all, |names| {
            schema.columns.iter().filter(|c| names.contains(&c.name)).map(|c| c.id).collect()
        }))
    }
}

/// The rows `rows` of a source with the columns `names` and those that are to be checked, stretch by stretch.
fn pieces(
    source: &Arc<dyn SortedSource>,
    rows: Range<usize>,
    bounds: &Bounds,
    names: BTreeSet<&'static str>,
    request: &ScanRequest,
) -> Pieces {
    let stretches = stretches(source.as_ref(), rows, &Reach { bounds: *bounds, point: true }).into_iter();
    let (source, projection, schema) = (source.clone(), request.projection.clone(), request.schema.clone());
    Box::new(stretches.flat_map(move |stretch| -> Pieces {
        let Some(qualifier) = stretch.qualifier else {
            return Box::new(std::iter::once(Ok(Piece::Pruned(stretch.rows.len()))));
        };
        let mut names: BTreeSet<&str> = names.clone();
        names.extend(qualifier.columns());
        let batches = opened(source.scan(&with_images(names, &projection), stretch.rows, &schema));
        Box::new(batches.map(move |batch| Ok(Piece::Loaded(batch?, qualifier))))
    }))
}

/// Single keys make one stream, not one each, and ranges no more streams than are asked for.
fn joined(streams: Vec<ScanStream>, request: &ScanRequest) -> Vec<ScanStream> {
    let n = if matches!(request.keys, KeyFilter::Keys(_)) { 1 } else { request.partitions.max(1) };
    if streams.len() <= n {
        return streams;
    }
    let mut joined: Vec<Vec<ScanStream>> = (0..n).map(|_| Vec::new()).collect();
    streams.into_iter().enumerate().for_each(|(i, stream)| joined[i % n].push(stream));
    joined.into_iter().map(|s| Box::new(s.into_iter().flatten()) as ScanStream).collect()
}

fn with_images(names: BTreeSet<&str>, images: &[ColumnId]) -> Vec<String> {
    let mut names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    names.extend(images.iter().map(|id| image_column_name(*id)));
    names.into_iter().collect()
}
