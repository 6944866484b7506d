//! Exports tables of one snapshot: asks, splits, writes, publishes.

use super::generation::{Generation, Target};
use super::hive::file_stem;
use super::manifest::{self, DATA, ExportedFile, Manifest};
use super::options::{ExportLayout, ExportOptions, ExportOrder};
use super::parquet_file::FileForm;
use super::place::Place;
use super::question::{Question, as_exported};
use super::split::{Files, Form};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{
    Params, Point, Reader, ReaderSource, Session, SessionClocks, Settings, SqlError, SqlErrorKind,
};
use arrow::array::RecordBatch;
use asofdb_storage::engine::{self, Catalog, Snapshot};
use asofdb_storage::schema::TableMeta;
use asofdb_storage::time::{CommitSeq, format_instant};
use futures::StreamExt;
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a wait for rows lets the caller stop it.
const POLL: Duration = Duration::from_millis(50);
/// Name of the directory where rows are sorted that memory does not hold.
const SORTING: &str = "sorting";
/// Memory that sorting cannot do without.
const SORT_BYTES_MIN: usize = 64 << 20;
/// Rows of a sorted batch: merging holds one of every sorted part.
const SORTED_BATCH_ROWS: usize = 1_024;
/// Stack of the threads that answer; deep expressions need it.
const STACK_BYTES: usize = 8 << 20;

/// How far an export is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportProgress {
    /// The table that is being written.
    pub table: String,
    /// Rows of it so far.
    pub rows: u64,
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// The commit it is of.
    pub commit: u64,
    /// Its tables.
    pub tables: Vec<ExportedTable>,
    /// What the caller should know.
    pub notices: Vec<String>,
}

/// An exported table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportedTable {
    /// Its name.
    pub table: String,
    /// The directory to read.
    pub path: PathBuf,
    /// Rows in it.
    pub rows: u64,
    /// Files in it.
    pub files: usize,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Asked about every 50 ms; `Break` ends the export, which then leaves nothing.
pub(crate) type Watch<'w> = dyn FnMut(&ExportProgress) -> ControlFlow<()> + Send + 'w;

/// The snapshot as the one thing that every question of an export sees.
#[derive(Debug)]
struct Pinned(Snapshot);

impl ReaderSource for Pinned {
    fn pin(&self) -> std::result::Result<Arc<dyn Reader>, engine::Error> {
        Ok(Arc::new(self.0.clone()))
    }
}

/// Exports one table to `dest` in place of an earlier export of it.
pub(crate) fn export(
    snapshot: &Snapshot,
    table: &str,
    dest: &Path,
    options: &ExportOptions,
    watch: &mut Watch<'_>,
) -> Result<ExportReport> {
    export_at(Place::default(), snapshot, table, dest, options, watch)
}

pub(crate) fn export_at(
    place: Place,
    snapshot: &Snapshot,
    table: &str,
    dest: &Path,
    options: &ExportOptions,
    watch: &mut Watch<'_>,
) -> Result<ExportReport> {
    options.validate()?;
    // Nothing is made for an export that cannot be.
    let commit = commit(snapshot, options)?;
    let meta = found(snapshot.catalog(), table)?;
    Question::new(options, meta, meta.schema_at(commit))?;
    let target = Target::open(place, dest, &format!("table-{}", file_stem(table)), 0)?;
    export_set(snapshot, &[table], &target, options, watch)
}

/// Exports tables to a locked destination, all at one commit, and publishes them in one step.
pub(crate) fn export_set(
    snapshot: &Snapshot,
    tables: &[&str],
    target: &Target,
    options: &ExportOptions,
    watch: &mut Watch<'_>,
) -> Result<ExportReport> {
    let stems: Vec<String> = tables.iter().map(|t| file_stem(t)).collect();
    for stem in &stems {
        target.check(stem)?;
        same_layout(&target.table(stem), options.layout)?;
    }
    let generation = target.begin()?;
    let commit = commit(snapshot, options)?;
    let mut export = Export { snapshot, options, commit, generation: &generation, watch };
    let (mut report, paths) = (ExportReport { commit: commit.0, ..ExportReport::default() }, &stems);
    // A runtime of its own on a thread of its own: the caller may be inside of another.
    std::thread::scope(|scope| {
        let work = || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_name("asof-export")
                .thread_stack_size(STACK_BYTES)
                .enable_time()
                .build()
                .map_err(|e| Error::failed(format!("cannot start threads for the export: {e}")))?;
            for (table, stem) in tables.iter().zip(paths) {
                let manifest = runtime.block_on(export.table(table, stem, &mut report.notices))?;
                report.tables.push(ExportedTable {
                    table: manifest.table,
                    path: target.table(stem),
                    rows: manifest.rows,
                    files: manifest.files.len(),
                    bytes: manifest.bytes,
                });
            }
            Ok(())
        };
        match scope.spawn(work).join() {
            Ok(done) => done,
            Err(_) => Err(Error::failed("the export failed: a fault of asofdb")
                .hint("please report it; the store and earlier exports are not affected")),
        }
    })?;
    generation.publish(&stems)?;
    Ok(report)
}

/// An export in another layout is another thing, and not replaced by accident.
fn same_layout(path: &Path, layout: ExportLayout) -> Result<()> {
    match Manifest::read(path) {
        Ok(old) if old.layout != layout => Err(Error::usage(format!(
            "{} is an export in the layout {}, and this would be {layout}",
            path.display(),
            old.layout
        ))
        .hint("export to another directory, or remove the old one")),
        _ => Ok(()),
    }
}

/// The table called `name`.
fn found<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<TableMeta>> {
    catalog.table(name).ok_or_else(|| {
        let names = catalog.tables.values().map(|t| t.name.as_str());
        Error::failed(format!("there is no table {name}")).hint(crate::near::near_names_hint(name, names))
    })
}

/// The commit that is exported.
fn commit(snapshot: &Snapshot, options: &ExportOptions) -> Result<CommitSeq> {
    let newest = snapshot.commit();
    match options.commit {
        None | Some(Point::Now) => Ok(newest),
        Some(Point::Instant(at)) => Ok(snapshot.commit_at_or_before(at)),
        Some(Point::Integer(n)) => match u64::try_from(n) {
            Ok(n) if n <= newest.0 => Ok(CommitSeq(n)),
            _ => Err(Error::usage(format!("there is no commit {n}"))
                .hint(format!("the newest commit is {newest}"))),
        },
    }
}

struct Export<'e> {
    snapshot: &'e Snapshot,
    options: &'e ExportOptions,
    commit: CommitSeq,
    generation: &'e Generation<'e>,
    watch: &'e mut Watch<'e>,
}

impl Export<'_> {
    /// Writes the files and the manifest of one table.
    async fn table(&mut self, name: &str, stem: &str, notices: &mut Vec<String>) -> Result<Manifest> {
        let catalog = self.snapshot.catalog().clone();
        let meta = found(&catalog, name)?;
        let schema = meta.schema_at(self.commit);
        let question = Question::new(self.options, meta, schema)?;
        let dir = self.generation.table_dir(stem);
        let session = self.session(&dir)?;
        let mut answer = session.run(&question.text, &Params::none()).await.map_err(sql_error)?;
        notices.append(&mut answer.notices);
        let form = self.form(&dir, meta, question);
        let parts: Vec<String> = form.parts.iter().map(|p| p.name.clone()).collect();
        let mut files = Files::new(self.generation.place().clone(), form, &answer.schema)?;
        let columns =
            files.schema().fields().iter().map(|f| (f.name().clone(), f.data_type().to_string())).collect();
        let mut progress = ExportProgress { table: name.to_owned(), rows: 0 };
        while let Some(batch) = self.next(&mut answer.stream, &progress).await? {
            progress.rows += batch.num_rows() as u64;
            files.write(&batch)?;
        }
        // The answer holds what is sorted on disk.
        drop(answer);
        if self.options.order == ExportOrder::Time {
            self.generation.place().remove_tree(&dir.join(SORTING))?;
        }
        let manifest = self.manifest(meta, parts, columns, files.finish()?);
        self.write_manifest(&dir, &manifest)?;
        Ok(manifest)
    }

    /// The next batch; meanwhile the caller may stop the export.
    async fn next(
        &mut self,
        stream: &mut crate::sql::AnswerStream,
        progress: &ExportProgress,
    ) -> Result<Option<RecordBatch>> {
        loop {
            if (self.watch)(progress).is_break() {
                return Err(Error::new(ErrorKind::Cancelled, "the export was stopped; nothing was changed"));
            }
            if let Ok(next) = tokio::time::timeout(POLL, stream.next()).await {
                return next.transpose().map_err(sql_error);
            }
        }
    }

    fn session(&self, dir: &Path) -> Result<Session> {
        let sorted = self.options.order == ExportOrder::Time;
        let settings = Settings {
            memory_bytes_max: self.options.memory_bytes_max.max(SORT_BYTES_MIN),
            // Beside the data, and swept with it.
            spill_directory: sorted.then(|| dir.join(SORTING)),
            spill_bytes_max: u64::MAX,
            partitions: 1,
            batch_rows: if sorted { SORTED_BATCH_ROWS } else { Settings::default().batch_rows },
            ..Settings::default()
        };
        if let Some(dir) = &settings.spill_directory {
            self.generation.place().create_dirs(dir)?;
        }
        let now = self.options.now.or(self.commit_at()).unwrap_or_default();
        let session = Session::new(Arc::new(Pinned(self.snapshot.clone())), settings, Arc::new(move || now))
            .map_err(sql_error)?;
        let commit = Some(Point::Integer(self.commit.0 as i64));
        session.set_clocks(SessionClocks { commit, ..SessionClocks::default() });
        Ok(session)
    }

    fn commit_at(&self) -> Option<i64> {
        let commits = self.snapshot.commits().ok()?;
        commits.iter().find(|c| c.seq == self.commit.0).map(|c| c.at)
    }

    fn form(&self, dir: &Path, meta: &TableMeta, question: Question) -> Form {
        let o = self.options;
        let mut notes = vec![
            ("asof.table".to_owned(), meta.name.clone()),
            ("asof.layout".to_owned(), o.layout.to_string()),
            ("asof.commit".to_owned(), self.commit.to_string()),
        ];
        notes.extend(self.commit_at().map(|at| ("asof.commit_at".to_owned(), format_instant(at))));
        if o.layout != ExportLayout::Current {
            notes.push(("asof.intervals".to_owned(), "[start, end), NULL = open".to_owned()));
        }
        Form {
            dir: dir.join(DATA),
            generation: self.generation.number,
            file: FileForm { compression: o.compression, row_group_rows_max: o.row_group_rows_max, notes },
            parts: question.parts,
            intervals: o.layout == ExportLayout::Intervals,
            file_bytes_max: o.file_bytes_max,
            memory_bytes_max: o.memory_bytes_max,
            partitions_max: o.partitions_max,
        }
    }

    fn manifest(
        &self,
        meta: &TableMeta,
        partition_by: Vec<String>,
        columns: Vec<(String, String)>,
        files: Vec<ExportedFile>,
    ) -> Manifest {
        let schema = as_exported(meta.schema_at(self.commit), self.options.layout);
        let name = |id: &asofdb_storage::id::ColumnId| {
            schema.columns.get(id.0 as usize).map(|c| c.name.clone()).unwrap_or_default()
        };
        Manifest {
            asof_export: manifest::FORM,
            table: meta.name.clone(),
            layout: self.options.layout,
            commit: self.commit.0,
            commit_at: self.commit_at().map(format_instant),
            valid: self.options.valid.map(|p| p.to_string()),
            system: self.options.system.map(|p| p.to_string()),
            filter: self.options.filter.clone(),
            key: schema.key.iter().map(name).collect(),
            columns,
            partition_by,
            rows: files.iter().map(|f| f.rows).sum(),
            bytes: files.iter().map(|f| f.bytes).sum(),
            files,
        }
    }

    fn write_manifest(&self, dir: &Path, manifest: &Manifest) -> Result<()> {
        let path = dir.join(manifest::NAME);
        let text = serde_json::to_string_pretty(manifest)
            .map_err(|e| Error::failed(format!("cannot write {}: {e}", path.display())))?;
        let mut out = self.generation.place().create(&path)?;
        out.write_all(text.as_bytes())
            .and_then(|()| out.write_all(b"\n"))
            .map_err(|e| super::place::failed(super::place::Step::Write, &path, &e))?;
        out.close().map(|_| ())
    }
}

/// An error of the question. Its place is one in a text that the caller has not seen.
fn sql_error(e: SqlError) -> Error {
    let SqlError { kind, message, place: _, hint } = e;
    let error = match kind {
        SqlErrorKind::Storage(kind) => {
            Error::from(engine::Error { hint: None, ..engine::Error::new(kind, message) })
        }
        SqlErrorKind::Timeout => Error::new(ErrorKind::Timeout, message),
        SqlErrorKind::Syntax | SqlErrorKind::Invalid | SqlErrorKind::Unsupported => Error::usage(message),
        SqlErrorKind::Limit | SqlErrorKind::Execution | SqlErrorKind::Internal => Error::failed(message),
    };
    hint.into_iter().fold(error, Error::hint)
}
