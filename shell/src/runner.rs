//! Runs statements on a runtime of their own and hands the rows to a renderer. Ctrl-C and timeouts
//! take effect at once, whether or not the query yields.

use crate::backend::{Backend, Part, Summary};
use crate::interrupt;
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::{Mode, Renderer};
use crate::terminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often a wait looks for signals.
const POLL: Duration = Duration::from_millis(25);
/// Batches on their way between query and renderer.
const PARTS_MAX: usize = 4;
/// After this long a waiting terminal is told that the query lives.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a statement gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows of the answer; `None` if the statement has no answer.
    pub rows: Option<u64>,
    /// How long it took.
    pub took: Duration,
    /// What the library says of it.
    pub summary: Summary,
    /// What the renderer left out.
    pub notes: Vec<String>,
}

/// Runs statements of one session.
pub struct Runner {
    backend: Arc<dyn Backend>,
    runtime: Mutex<Arc<Runtime>>,
    /// Waits and keeps the time: threads that queries hold cannot.
    waiting: Runtime,
    /// Time a statement may take.
    pub timeout: Option<Duration>,
    /// Whether a long wait shows the time on stderr.
    pub progress: bool,
}

impl Runner {
    /// A runner with worker threads of its own.
    pub fn new(backend: Arc<dyn Backend>) -> Outcome<Runner> {
        let runtime = Mutex::new(new_runtime()?);
        let waiting =
            new_waiting_runtime().map_err(|e| Failure::io("cannot keep the time for queries", &e))?;
        Ok(Runner { backend, runtime, waiting, timeout: None, progress: false })
    }

    /// The session.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Runs one statement and renders its answer.
    pub fn run(&self, statement: &str, renderer: &mut dyn Renderer) -> Outcome<Report> {
        let started = Instant::now();
        let (parts, received) = mpsc::channel(PARTS_MAX);
        let query = self.backend.run(statement, parts);
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let task = runtime.spawn(query);
        let mut wait = Wait { started, timeout: self.timeout, progress: self.progress, shown: false };
        let rendered = render(&self.waiting, received, &mut wait, renderer);
        wait.clear_line();
        let (rows, notes) = match rendered {
            Ok(rendered) => rendered,
            Err(failure) => {
                drop(runtime);
                self.give_up(&task);
                // What is being written to may be the first to hear of it.
                return Err(if interrupt::count() > 0 { cancelled() } else { failure });
            }
        };
        let summary = match self.waiting.block_on(task) {
            Ok(summary) => summary?,
            Err(e) => return Err(panicked(e)),
        };
        let took = started.elapsed();
        crate::log::debug(|| format!("{statement}: {rows:?} rows in {took:?}"));
        Ok(Report { rows, took, summary, notes })
    }
}

impl Runner {
    /// Cancels a query. What it has started may not yield, so the next query gets new threads.
    fn give_up(&self, task: &JoinHandle<Outcome<Summary>>) {
        task.abort();
        if let Ok(fresh) = new_runtime() {
            let mut current = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(old) = Arc::into_inner(std::mem::replace(&mut *current, fresh)) {
                old.shutdown_background();
            }
        }
    }
}

impl Drop for Runner {
    /// A query that does not yield must not keep the process.
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Ok(idle) = new_waiting_runtime()
            && let Some(runtime) = Arc::into_inner(std::mem::replace(runtime, Arc::new(idle)))
        {
            runtime.shutdown_background();
        }
    }
}

/// Stack of a thread that computes answers, bytes.
const STACK_BYTES: usize = 8 << 20;

fn new_runtime() -> Outcome<Arc<Runtime>> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let runtime = can_spawn(threads).and_then(|()| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(QUERY_THREAD)
            .thread_stack_size(STACK_BYTES)
            .enable_time()
            .build()
    });
    runtime.map(Arc::new).map_err(|e| {
        Failure::io("cannot start threads for queries", &e)
            .hint("give the process more memory, or let it have more threads")
    })
}

/// Whether so many threads can run at once. A runtime that cannot start all of its threads waits for ever for
/// those that it has started.
fn can_spawn(threads: usize) -> std::io::Result<()> {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    std::thread::scope(|scope| {
        let wait = || drop(gone.lock().map(|gone| gone.recv()));
        let spawn = || std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, wait);
        let spawned = (0..threads).try_for_each(|_| spawn().map(|_| ()));
        drop(go);
        spawned
    })
}

fn new_waiting_runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()
}

/// A panic of the engine, as an error; the shell lives on.
fn panicked(e: tokio::task::JoinError) -> Failure {
    let Ok(payload) = e.try_into_panic() else { return cancelled() };
    let text =
        payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    let text = text.map(|t| format!(": {t}")).unwrap_or_default();
    Failure::new(Exit::Failed, format!("the query failed inside the engine{text}"))
        .hint("this is a fault of asofdb: please report it with the statement; the store is not harmed")
}

/// Name of the threads that queries run on; their panics are told as errors.
pub const QUERY_THREAD: &str = "asof-query";

struct Wait {
    started: Instant,
    timeout: Option<Duration>,
    progress: bool,
    shown: bool,
}

impl Wait {
    fn check(&mut self, rows: Option<u64>) -> Outcome {
        if interrupt::count() > 0 {
            return Err(cancelled());
        }
        let elapsed = self.started.elapsed();
        if self.timeout.is_some_and(|t| elapsed > t) {
            return Err(Failure::new(
                Exit::Timeout,
                format!("no answer within {:?}", self.timeout.unwrap_or_default()),
            )
            .hint("give it more time (--timeout, or .timeout in the shell), or narrow the question"));
        }
        if self.progress && elapsed > PATIENCE && !terminal::is_lent() {
            let rows = rows.filter(|n| *n > 0).map(|n| format!(", {}", asofdb::count::of(n, "row")));
            let (seconds, rows) = (elapsed.as_secs_f64(), rows.unwrap_or_default());
            terminal::err(&format!("\r\x1b[K{seconds:.1} s{rows} ... Ctrl-C cancels"));
            self.shown = true;
        }
        Ok(())
    }

    fn clear_line(&mut self) {
        if std::mem::take(&mut self.shown) {
            terminal::err("\r\x1b[K");
        }
    }
}

fn cancelled() -> Failure {
    Failure::new(Exit::Cancelled, "cancelled")
}

fn render(
    waiting: &Runtime,
    mut parts: mpsc::Receiver<Part>,
    wait: &mut Wait,
    renderer: &mut dyn Renderer,
) -> Outcome<(Option<u64>, Vec<String>)> {
    let mut rows = None;
    let write = |e: std::io::Error| Failure::io("cannot write the answer", &e);
    loop {
        wait.check(rows)?;
        let next = waiting.block_on(async { tokio::time::timeout(POLL, parts.recv()).await });
        match next {
            Err(_) => continue,
            Ok(None) => break,
            Ok(Some(Part::Columns(schema))) => {
                rows = Some(0);
                renderer.begin(&schema).map_err(write)?;
            }
            Ok(Some(Part::Rows(batch))) => {
                rows = rows.map(|n| n + batch.num_rows() as u64);
                renderer.batch(&batch).map_err(write)?;
            }
        }
    }
    if rows.is_none() {
        return Ok((None, Vec::new()));
    }
    wait.clear_line();
    renderer.end().map(|notes| (rows, notes)).map_err(write)
}

/// The mode where none is asked for.
pub fn default_mode(terminal: bool) -> Mode {
    if terminal { Mode::Table } else { Mode::Csv }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Options, renderer};
    use crate::testing::Fake;

    fn run(statement: &str, timeout: Option<Duration>) -> Outcome<Report> {
        let mut runner = Runner::new(Arc::new(Fake::default())).unwrap();
        runner.timeout = timeout;
        let mut csv = renderer(Mode::Csv, Box::new(std::io::sink()), &Options::default());
        runner.run(statement, csv.as_mut())
    }

    #[test]
    fn answers_are_counted() {
        assert_eq!(run("rows 5", None).unwrap().rows, Some(5));
        assert_eq!(run("nothing", None).unwrap().rows, None);
        assert_eq!(run("fail", None).unwrap_err().exit, Exit::Failed);
    }

    #[test]
    fn a_query_that_never_yields_still_times_out() {
        let started = Instant::now();
        let failure = run("spin", Some(Duration::from_millis(100))).unwrap_err();
        assert_eq!(failure.exit, Exit::Timeout);
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn the_time_is_kept_while_every_thread_is_held() {
        let started = Instant::now();
        assert_eq!(run("hog", Some(Duration::from_millis(100))).unwrap_err().exit, Exit::Timeout);
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    }

    #[test]
    fn queries_that_hold_every_thread_do_not_starve_the_next() {
        let mut runner = Runner::new(Arc::new(Fake::default())).unwrap();
        runner.timeout = Some(Duration::from_millis(60));
        let mut csv = renderer(Mode::Csv, Box::new(std::io::sink()), &Options::default());
        for _ in 0..8 {
            assert!(runner.run("spin", csv.as_mut()).is_err());
        }
        runner.timeout = Some(Duration::from_secs(4));
        assert_eq!(runner.run("rows 3", csv.as_mut()).unwrap().rows, Some(3));
    }

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(run("panic", None).unwrap_err().message, "the query failed inside the engine: on purpose");
    }
}
