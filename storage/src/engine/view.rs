//! What readers see: an immutable view per commit.

use super::catalog::Catalog;
use super::commits::CommitRecord;
use super::error::Error;
use super::memory::MemoryBatch;
use super::scan::{Names, SortedSource, StoredTruncate, Tapes};
use crate::id::TableId;
use crate::schema::TableMeta;
use crate::time::CommitSeq;
use crate::timeline::{Origin, origin_ranks};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

/// Commits by number; only ever grows, so views of older commits share it.
pub(crate) type CommitList = Arc<RwLock<Vec<CommitRecord>>>;

/// The store at one commit.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub commit: CommitSeq,
    pub commit_at: Option<i64>,
    pub catalog: Arc<Catalog>,
    pub ranks: Arc<Ranks>,
    pub tables: BTreeMap<TableId, Arc<TableView>>,
    pub commits: CommitList,
}

/// The parts of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableView {
    /// Oldest first.
    pub runs: Vec<Arc<super::runs::RunSource>>,
    /// Oldest first.
    pub memory: Vec<Arc<MemoryBatch>>,
    pub truncates: Arc<Vec<StoredTruncate>>,
    /// How the sources interleave, once it was found out.
    pub tapes: Tapes,
}

impl TableView {
    /// All sorted sources, oldest first.
    pub fn sources(&self) -> Result<Vec<Arc<dyn SortedSource>>, Error> {
        let mut sources: Vec<Arc<dyn SortedSource>> = Vec::with_capacity(self.runs.len() + self.memory.len());
        sources.extend(self.runs.iter().map(|r| r.clone() as Arc<dyn SortedSource>));
        for batch in &self.memory {
            sources.push(batch.sorted()?);
        }
        Ok(sources)
    }
}

/// Ranks of origins (rule B3) and what else is looked up by origin or source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranks {
    /// Where system time is declared.
    pub declared: Arc<[u32]>,
    /// Where it is the store's own.
    pub owned: Arc<[u32]>,
    pub names: Arc<Names>,
}

impl Ranks {
    pub fn of(catalog: &Catalog) -> Ranks {
        let origins: Vec<Origin<'_>> = catalog
            .origins
            .iter()
            .map(|o| Origin {
                stream_name: catalog.streams.get(o.stream.0 as usize).map_or("", |s| s.name.as_str()),
                stream: o.stream.0,
                path: o.file.as_deref().unwrap_or(""),
            })
            .collect();
        let mut servers: Vec<&str> = Vec::new();
        let server_numbers = catalog
            .sources
            .iter()
            .map(|s| match s.server.as_deref() {
                None => 0,
                Some(name) => match servers.iter().position(|known| *known == name) {
                    Some(at) => at as u32 + 1,
                    None => {
                        servers.push(name);
                        servers.len() as u32
                    }
                },
            })
            .collect();
        Ranks {
            declared: origin_ranks(&origins, true).into(),
            owned: origin_ranks(&origins, false).into(),
            names: Arc::new(Names {
                streams: catalog.origins.iter().map(|o| o.stream.0).collect(),
                servers: server_numbers,
            }),
        }
    }

    pub fn for_table(&self, table: &TableMeta) -> &Arc<[u32]> {
        if table.system_declared { &self.declared } else { &self.owned }
    }
}
