//! The store as a program uses it: open, take events, ask.

use crate::error::{Error, Result};
use crate::export::{self, ExportOptions, ExportProgress, ExportReport, PeriodicExport};
use crate::intake::{
    FileMessages, IntakeReport, Messages, Progress, RawMessages, RowMessages, accept, replay, run,
};
use crate::intake::{PullMessages, PullOptions};
use crate::memory::MemoryBudget;
use crate::near::near_names_hint;
use crate::options::IntakeOptions;
use crate::quarantine::{QuarantineEntry, WaitingMessages};
use crate::sql::{Following, Owner, Params, ReaderSource, Rows, Session, Settings};
use crate::table::Table;
use arrow::array::RecordBatch;
use asofdb_storage::engine::{Catalog, CommitInfo, Components, Engine, EngineOptions, OpenMode, Salvaged};
use asofdb_storage::time::{CommitSeq, ValidTime};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An open store. Cheap to clone; all clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    engine: Engine,
    path: PathBuf,
    /// Another process writes to it: sessions see its commits as they come.
    following: Option<Arc<Following>>,
    memory: MemoryBudget,
}

impl Store {
    /// Opens the store in directory `path` as its one writer.
    ///
    /// # Errors
    /// `Failed` if there is no store, `Busy` if another process writes to it (names the holder),
    /// `Damaged` (names the place).
    pub fn open(path: impl AsRef<Path>) -> Result<Store> {
        Store::open_with(path, OpenMode::Write, EngineOptions::default())
    }

    /// Opens the store in directory `path` as its one writer; makes it if it is not there.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn create(path: impl AsRef<Path>) -> Result<Store> {
        Store::open_with(path, OpenMode::Create, EngineOptions::default())
    }

    /// Opens the store in directory `path` for questions, beside a writer in another process. Sessions
    /// see its commits as they come; everything else shows the store as it was when it was opened.
    ///
    /// # Errors
    /// As [`Store::open`], but never `Busy`.
    pub fn open_read(path: impl AsRef<Path>) -> Result<Store> {
        Store::open_with(path, OpenMode::Read, EngineOptions::default())
    }

    /// Opens the store in directory `path` as said.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(path: impl AsRef<Path>, mode: OpenMode, options: EngineOptions) -> Result<Store> {
        let path = path.as_ref();
        let engine = Engine::open(path, mode, options.clone())?;
        let following =
            (mode == OpenMode::Read).then(|| Arc::new(Following::new(path, options, engine.clone())));
        let path = path.to_owned();
        Ok(Store { engine, path, following, memory: MemoryBudget::default() })
    }

    /// Opens the store in directory `path` with so much memory for itself and for its sessions.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_within(path: impl AsRef<Path>, mode: OpenMode, memory: MemoryBudget) -> Result<Store> {
        Ok(Store::open_with(path, mode, memory.engine_options())?.with_memory(memory))
    }

    /// The same store, whose sessions use so much memory.
    pub fn with_memory(self, memory: MemoryBudget) -> Store {
        Store { memory, ..self }
    }

    /// Lets other processes hand statements over that change the catalog, such as `CREATE FLOW`: they are
    /// committed here for as long as what is returned lives. Only processes that may open the store can.
    ///
    /// # Errors
    /// `Failed` if the store is open for questions only, or no socket can be made in its directory.
    pub fn listen(&self) -> Result<Owner> {
        if self.following.is_some() {
            return Err(Error::failed("the store is open for questions only"));
        }
        Owner::listen(&self.path, self.engine.clone())
            .map_err(|e| Error::failed(format!("statements of other processes cannot be taken: {e}")))
    }

    /// Closes the store and says whether the work behind commits went well, such as writing runs. Whatever fails
    /// here, every commit is on disk. While there are other handles the store stays open, and the last of them is
    /// told; a handle that is dropped tells nobody.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn close(self) -> Result<()> {
        let Store { engine, following, path: _, memory: _ } = self;
        drop(following);
        Ok(engine.close()?)
    }

    /// Opens a store whose log is damaged at the price of the commits behind the damage: the log is cut there, after a
    /// copy of what is cut was made in the store's directory, and a commit records it. What runs have is never cut.
    ///
    /// # Errors
    /// `Failed` if there is nothing to cut, `Damaged` where no cut makes the store whole; it is as it was then. Else as
    /// [`Store::open`].
    pub fn salvage(path: impl AsRef<Path>, memory: MemoryBudget) -> Result<(Store, Salvaged)> {
        let components = Components::real("asofdb");
        let (engine, salvaged) = Engine::salvage(path.as_ref(), memory.engine_options(), components)?;
        Ok((Store { engine, path: path.as_ref().to_owned(), following: None, memory }, salvaged))
    }

    /// The memory that the store and its sessions may use.
    pub fn memory(&self) -> MemoryBudget {
        self.memory
    }

    /// The storage engine, for what has no call of its own here.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the store knows of tables, streams and positions, as of now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.engine.pin().catalog().clone()
    }

    /// The newest commit; 0 in an empty store.
    pub fn commit(&self) -> CommitSeq {
        self.engine.pin().commit()
    }

    /// All commits, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    pub fn commits(&self) -> Result<Vec<CommitInfo>> {
        Ok(self.engine.pin().commits()?)
    }

    /// Messages that could not be taken when they came, oldest first, also those that were settled
    /// since.
    ///
    /// # Errors
    /// Those of the store.
    pub fn quarantine(&self) -> Result<Vec<QuarantineEntry>> {
        let snapshot = self.engine.pin();
        Ok(QuarantineEntry::number(snapshot.quarantine()?, &snapshot.resolutions()))
    }

    /// Takes messages of the quarantine again, with the options they came with and `options` over
    /// them: those `numbers` of [`Store::quarantine`], or all that wait. What can be taken now goes
    /// into a new commit under the position it always had, and is settled; the rest stays, counted
    /// as `quarantined` in the report. Taking a settled message again does nothing.
    ///
    /// # Errors
    /// As [`Store::ingest_files`]; `Usage` for a number that there is not.
    pub fn replay_quarantine(&self, numbers: &[u64], options: &IntakeOptions) -> Result<IntakeReport> {
        let mut waiting = WaitingMessages::new(self.engine.pin(), numbers)?;
        replay(&self.engine, &mut waiting, options)
    }

    /// Decodes the messages again that the history of `table` keeps as they came
    /// ([`IntakeOptions::keep_raw`]), into the table that `options` name and with these options alone. Their
    /// order and their positions are those they had, in streams called `STREAM as TABLE`; another call takes only what
    /// came since. Nothing but the store is read: schemas of a registry are those that were kept.
    ///
    /// # Errors
    /// `Failed` if a message was not kept, `Usage` for a table that is there already; else as
    /// [`Store::ingest_files`].
    pub fn redecode(
        &self,
        table: &str,
        options: &IntakeOptions,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<IntakeReport> {
        options.validate()?;
        let mut messages = RawMessages::open(self.engine.pin(), table, options)?;
        self.ingest_messages(&mut messages, options, progress)
    }

    /// Takes what files, globs and directories hold and was not taken before (rule C1).
    ///
    /// # Errors
    /// Of the options (`Usage`), the source (`Source`) or the store. Commits that were made stay, and
    /// another call goes on after them.
    pub fn ingest_files(&self, inputs: &[impl AsRef<str>], options: &IntakeOptions) -> Result<IntakeReport> {
        let inputs: Vec<String> = inputs.iter().map(|i| i.as_ref().to_owned()).collect();
        self.ingest_inputs(&inputs, options, None, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Store::ingest_files`], with standard input for `-`, and with a look at the progress that
    /// may stop the intake: what was read by then is committed.
    ///
    /// # Errors
    /// As [`Store::ingest_files`].
    pub fn ingest_inputs(
        &self,
        inputs: &[String],
        options: &IntakeOptions,
        stdin: Option<Box<dyn Read + Send>>,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<IntakeReport> {
        options.validate()?;
        let mut messages = FileMessages::open(inputs, options, stdin, &self.catalog())?;
        self.ingest_messages(&mut messages, options, progress)
    }

    /// Pulls a table of a database: what changed since the last pull, or the whole table (`docs/pull.md`).
    ///
    /// # Errors
    /// As [`Store::ingest_files`]; no error shows a password.
    pub fn pull(&self, pull: &PullOptions, options: &IntakeOptions) -> Result<IntakeReport> {
        options.validate()?;
        let mut messages = PullMessages::open(pull, options, Some(self.engine.pin()))?;
        self.ingest_messages(&mut messages, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Takes the rows of Arrow batches of one schema as events of the table that
    /// [`IntakeOptions::table`] names. Every call is a stream of its own (rule B3).
    ///
    /// # Errors
    /// As [`Store::ingest_files`].
    pub fn ingest(&self, batches: &[RecordBatch], options: &IntakeOptions) -> Result<IntakeReport> {
        options.validate()?;
        let mut messages = RowMessages::events(batches, options, &self.catalog())?;
        self.ingest_messages(&mut messages, options, &mut |_| ControlFlow::Continue(()))
    }

    /// Stores a version of a whole table: from `at` on, the table holds the rows of `batches` and no
    /// others, until the next version (rule B12). Versions may come in any order; a version that
    /// comes again replaces the one before.
    ///
    /// # Errors
    /// `Usage` if a key comes twice in the version (names it), or the table has declared times of
    /// another kind; else as [`Store::ingest_files`].
    pub fn replace_all(
        &self,
        table: &str,
        key: &[&str],
        at: ValidTime,
        batches: &[RecordBatch],
    ) -> Result<IntakeReport> {
        let (mut messages, options) = RowMessages::version(table, key, at, batches, &self.catalog())?;
        self.ingest_messages(&mut messages, &options, &mut |_| ControlFlow::Continue(()))
    }

    /// Accepts that messages of a stream are gone that the store had not taken, or that the stream is
    /// another one than it was (rule C3): the next intake goes on with what there is. Holds for the
    /// place where the store is now; recorded in a commit, which is returned, unless it was accepted
    /// before.
    ///
    /// # Errors
    /// `Failed` if the store took nothing from such a stream, and those of the store.
    pub fn accept_gap(&self, stream: &str) -> Result<Option<CommitInfo>> {
        let request = accept(&self.catalog(), stream)?;
        Ok(request.map(|request| self.engine.commit(request)).transpose()?)
    }

    /// Takes what `messages` delivers.
    ///
    /// # Errors
    /// As [`Store::ingest_files`].
    pub fn ingest_messages(
        &self,
        messages: &mut dyn Messages,
        options: &IntakeOptions,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<IntakeReport> {
        run(&self.engine, messages, options, progress)
    }

    /// Writes a table as Parquet to the directory `dest`/`table`, in place of an earlier export of it and
    /// in one step: a reader finds the old files or the new ones, never both and never half a file.
    ///
    /// # Errors
    /// `Usage` for options that make no sense for the table, `Busy` while another export writes there,
    /// else `Failed`; an earlier export is in place then.
    pub fn export(
        &self,
        table: &str,
        dest: impl AsRef<Path>,
        options: &ExportOptions,
    ) -> Result<ExportReport> {
        self.export_watched(table, dest, options, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Store::export`], with a look at the progress about every 50 ms that may stop it.
    ///
    /// # Errors
    /// As [`Store::export`]; `Cancelled` if it was stopped.
    pub fn export_watched(
        &self,
        table: &str,
        dest: impl AsRef<Path>,
        options: &ExportOptions,
        progress: &mut (dyn FnMut(&ExportProgress) -> ControlFlow<()> + Send),
    ) -> Result<ExportReport> {
        let dest = self.outside(dest.as_ref())?;
        export::export(&self.engine.pin(), table, dest, options, progress)
    }

    /// Exports all tables to `dest`, now and then while events come in: see [`PeriodicExport`]. `hear` is
    /// told of every round that exported something or failed.
    ///
    /// # Errors
    /// As [`Store::export`], as far as it can be told before there are rows.
    pub fn export_every(
        &self,
        dest: impl AsRef<Path>,
        options: ExportOptions,
        every: Duration,
        hear: impl FnMut(&Result<ExportReport>) + Send + 'static,
    ) -> Result<PeriodicExport> {
        let dest = self.outside(dest.as_ref())?;
        PeriodicExport::start(self.engine.clone(), dest, options, every, Box::new(hear))
    }

    /// A store's directory is its own.
    fn outside<'d>(&self, dest: &'d Path) -> Result<&'d Path> {
        let real = |p: &Path| p.canonicalize().ok();
        let existing = dest.ancestors().find_map(real);
        match (existing, real(self.engine.dir())) {
            (Some(dest), Some(store)) if dest.starts_with(&store) => {
                Err(Error::usage("an export cannot go into the store's own directory")
                    .hint("name a directory beside it"))
            }
            _ => Ok(dest),
        }
    }

    /// A session for questions in SQL (`docs/sql.md`), with clocks of its own: `SET asof.valid_time`
    /// holds for what is asked after it. The running clock is the store's. Each statement sees the
    /// newest commit, also where another process made it.
    ///
    /// # Errors
    /// `Failed` if the session cannot be made.
    pub fn session(&self) -> Result<Session> {
        self.session_with(Settings { memory_bytes_max: self.memory.query_bytes(), ..Settings::default() })
    }

    /// As [`Store::session`], with limits of memory, time and threads, and a directory to spill to.
    ///
    /// # Errors
    /// As [`Store::session`], and if the directory cannot be used.
    pub fn session_with(&self, settings: Settings) -> Result<Session> {
        let clock = self.engine.clone();
        let source: Arc<dyn ReaderSource> = match &self.following {
            Some(following) => following.clone(),
            None => Arc::new(self.engine.clone()),
        };
        Ok(Session::new(source, settings, Arc::new(move || clock.now_us()))?)
    }

    /// Runs one statement of SQL in a session of its own and waits for all its rows. Asynchronous
    /// code, and answers too big for memory, take [`Store::session`].
    ///
    /// # Errors
    /// `Failed` if the statement is wrong or fails, with the place in it and what to do; else those
    /// of the store.
    pub fn sql(&self, text: &str) -> Result<Rows> {
        self.sql_with(text, &Params::none())
    }

    /// As [`Store::sql`], with values for `$1`, `?` and `$name`.
    ///
    /// # Errors
    /// As [`Store::sql`], and if a parameter has no value.
    pub fn sql_with(&self, text: &str, params: &Params) -> Result<Rows> {
        Ok(self.session()?.ask(text, params)?)
    }

    /// A table as of the newest commit; the handle never sees later ones.
    ///
    /// # Errors
    /// `Failed` if there is none of that name; names near ones.
    pub fn table(&self, name: &str) -> Result<Table> {
        let snapshot = self.engine.pin();
        let catalog = snapshot.catalog().clone();
        match catalog.table(name) {
            Some(meta) => Ok(Table::new(snapshot, meta.clone())),
            None => Err(Error::failed(format!("there is no table {name}"))
                .hint(near_names_hint(name, catalog.tables.values().map(|t| t.name.as_str())))),
        }
    }
}
