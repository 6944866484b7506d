//! The loop: read, decode, batch, commit. A batch is decoded while the one before it is committed;
//! commits stay in order and carry the positions of their messages (rule C3).

use super::batch::Batcher;
use super::gap::{self, StreamStart};
use super::pending::operation_key;
use super::report::{IntakeReport, Progress};
use super::sink::Sink;
use crate::change::Decoded;
use crate::error::{Error, Result};
use crate::format::avro::SchemaSource;
use crate::options::{BATCH_BYTES, BATCH_MESSAGES, IntakeOptions};
use crate::source::{Place, shown_schemas};
use asofdb_storage::engine::{self, CatalogChange, CommitInfo, CommitRequest};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Messages of a batch before their size is known.
const FIRST_MESSAGES: usize = 32;

/// Bytes of a batch that is to be one commit whatever its size; blocks end at 4 GiB.
const WHOLE_BYTES_MAX: usize = 2 << 30;

/// Receives a message with its place.
pub type Take<'t> = dyn FnMut(&Place<'_>, Decoded<'_>) -> Result<()> + 't;

/// Whether a source has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The batch is full, or it is time to show progress; call again.
    More,
    /// Nothing came for a while: what was delivered is worth a commit; call again.
    Idle,
    /// Everything was delivered.
    End,
}

/// Where messages come from, decoded.
pub trait Messages {
    /// Delivers messages in order, about `room` of them or fewer: as many as are good between two
    /// looks at the progress. A message that was handed to `take` counts as delivered.
    ///
    /// # Errors
    /// `Source` if reading fails; errors of `take` as they are.
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step>;

    /// Where to go on after the messages delivered so far, by keys of the caller's own; stored in the
    /// commit of those messages.
    fn positions(&mut self) -> Vec<(String, serde_json::Value)>;

    /// Where streams begin now that keep their messages for some time only, as a topic does. Asked
    /// before the first message.
    ///
    /// # Errors
    /// `Source` if it cannot be found out.
    fn starts(&mut self) -> Result<Vec<StreamStart>> {
        Ok(Vec::new())
    }

    /// Where the schemas of messages come from, if they name any.
    fn schemas(&self) -> Option<Arc<dyn SchemaSource>> {
        None
    }

    /// What is there and was left for later, because it may still be written to.
    fn left(&self) -> Vec<String> {
        Vec::new()
    }

    /// Fills in the source being read and the bytes there are in all.
    fn progress(&self, progress: &mut Progress);

    /// What people should know, once each.
    fn notices(&mut self) -> Vec<String>;
}

/// Takes everything that `messages` delivers. `progress` is called between batches and may stop the
/// intake: what was read is committed, and the totals come back.
///
/// # Errors
/// Of the options (`Usage`), the source or `strict` (`Source`), or the store; commits that were made
/// stay, and a second run goes on after them.
pub fn run(
    sink: &dyn Sink,
    messages: &mut dyn Messages,
    options: &IntakeOptions,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<IntakeReport> {
    options.validate()?;
    let mut starts = gap::check(&sink.catalog(), &messages.starts()?)?;
    if starts.begins {
        let note = serde_json::json!({"kind": "begin"});
        let positions = std::mem::take(&mut starts.positions);
        sink.commit(CommitRequest { positions, note, ..CommitRequest::default() })?;
    }
    std::thread::scope(|scope| {
        let (requests, requested) = sync_channel::<CommitRequest>(1);
        let (done, results) = sync_channel::<Result<CommitInfo, engine::Error>>(1);
        scope.spawn(move || {
            for request in requested {
                let panicked = |why| Err(engine::Error::new(engine::ErrorKind::Io, why).hint(PANICKED_HINT));
                let result = guarded("a commit", || sink.commit(request)).unwrap_or_else(panicked);
                let failed = result.is_err();
                if done.send(result).is_err() || failed {
                    break;
                }
            }
        });
        let mut run = Run {
            batcher: Batcher::new(sink, options).with_generations(starts.generations),
            identities: starts.positions,
            requests,
            results,
            in_flight: None,
            report: IntakeReport::default(),
        };
        let panicked = |why| Err(Error::failed(why).hint(PANICKED_HINT));
        guarded("taking messages", || run.all(messages, options, progress)).unwrap_or_else(panicked)
    })
}

const PANICKED_HINT: &str = "this is a fault of asofdb: please report it; what was committed is stored, and \
                             another run goes on after it";

/// What `work` gives, or in words that it panicked: of a panic over some message nobody should learn by
/// the end of the process.
fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        format!("{what} failed inside of asofdb: {}", text.unwrap_or("it panicked"))
    })
}

struct Run<'o> {
    batcher: Batcher<'o>,
    requests: SyncSender<CommitRequest>,
    results: Receiver<Result<CommitInfo, engine::Error>>,
    /// Counts of the batch that is being committed.
    in_flight: Option<IntakeReport>,
    report: IntakeReport,
    /// What streams are, for the first commit.
    identities: Vec<(String, serde_json::Value)>,
}

impl Run<'_> {
    fn all(
        &mut self,
        messages: &mut dyn Messages,
        options: &IntakeOptions,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<IntakeReport> {
        let most = options.batch.unwrap_or(BATCH_MESSAGES);
        let bytes_max = if most == usize::MAX { WHOLE_BYTES_MAX } else { BATCH_BYTES };
        loop {
            let batcher = &mut self.batcher;
            let room = room(most, bytes_max, batcher);
            let step = messages.read(room, &mut |place, decoded| batcher.take(place, decoded))?;
            let full = self.batcher.messages() >= most || self.batcher.bytes() >= bytes_max;
            if full || step != Step::More {
                self.close(messages)?;
            }
            let stop = progress(&self.progress(messages)).is_break();
            if step == Step::End || stop {
                break;
            }
        }
        self.close(messages)?;
        self.wait()?;
        self.report.notices.extend(messages.notices());
        assert!(self.report.is_balanced(), "every delivered message is counted once: {}", self.report);
        Ok(std::mem::take(&mut self.report))
    }

    fn progress(&self, messages: &dyn Messages) -> Progress {
        let flying = self.in_flight.as_ref();
        let sum =
            |f: fn(&IntakeReport) -> u64| f(&self.report) + flying.map_or(0, f) + f(&self.batcher.counts);
        let mut p = Progress {
            messages: sum(|r| r.delivered),
            bytes: sum(|r| r.bytes),
            rows_committed: self.report.row_events(),
            quarantined: sum(|r| r.quarantined),
            last_commit: self.report.last_commit,
            ..Progress::default()
        };
        messages.progress(&mut p);
        p
    }

    /// Settles the batch and hands it over to be committed, after the one before it.
    fn close(&mut self, messages: &mut dyn Messages) -> Result<()> {
        self.wait()?;
        if self.batcher.counts.delivered == 0 {
            return Ok(());
        }
        let idle = self.batcher.take_idle();
        self.batcher.check_names(self.report.commits)?;
        let (mut request, counts) = self.batcher.close()?;
        let positions = messages.positions();
        if idle && positions.is_empty() {
            self.report.add(counts);
            return Ok(());
        }
        request.positions.extend(positions);
        if let Some(schemas) = messages.schemas() {
            keep_schemas(&mut request, schemas.take_new());
        }
        request.positions.append(&mut self.identities);
        self.in_flight = Some(counts);
        self.requests.send(request).map_err(|_| Error::failed("the store stopped taking commits"))
    }

    /// Waits for the commit that is under way.
    fn wait(&mut self) -> Result<()> {
        let Some(counts) = self.in_flight.take() else { return Ok(()) };
        let info = self.results.recv().map_err(|_| Error::failed("the store stopped during a commit"))??;
        self.batcher.committed(&info);
        self.report.add(counts);
        self.report.commits += 1;
        self.report.last_commit = Some(info.seq);
        Ok(())
    }
}

/// Has a commit keep the schemas that its messages were the first to name, and say so.
pub(super) fn keep_schemas(request: &mut CommitRequest, new: Vec<(String, serde_json::Value)>) {
    let shown = shown_schemas(&new);
    if !shown.is_empty() {
        request.note["schemas"] = shown.into();
    }
    request.positions.extend(new);
}

/// Messages that the batch has room for: in number, and in bytes if they go on as they began.
fn room(most: usize, bytes_max: usize, batcher: &Batcher<'_>) -> usize {
    let messages = batcher.messages();
    let left = most - messages.min(most - 1);
    let bytes_each = match batcher.counts.bytes.checked_div(messages as u64) {
        Some(bytes) => bytes.max(1) as usize,
        None => return left.min(FIRST_MESSAGES),
    };
    left.min((bytes_max.saturating_sub(batcher.bytes()) / bytes_each).max(1))
}

impl Batcher<'_> {
    /// See [`super::check::Wanted::check`].
    fn check_names(&mut self, commits: u64) -> Result<()> {
        let catalog = self.sink.catalog();
        self.wanted.check(&catalog, commits)
    }

    /// Closes the batch: its commit and its counts.
    pub(super) fn close(&mut self) -> Result<(CommitRequest, IntakeReport)> {
        self.settle()?;
        self.numbers.settled();
        if self.again {
            self.numbers.streams.iter_mut().for_each(|s| s.come_back());
        }
        const OPS: [&str; 7] = ["insert", "update", "upsert", "read", "delete", "truncate", "moved_away"];
        for (op, n) in OPS.iter().zip(std::mem::take(&mut self.rows)).filter(|(_, n)| *n > 0) {
            IntakeReport::count(&mut self.counts.rows, op, n);
        }
        let mut request =
            CommitRequest { catalog: std::mem::take(&mut self.numbers.changes), ..Default::default() };
        for t in &mut self.tables {
            if t.block.ends.is_empty() {
                continue;
            }
            if t.dirty {
                t.close_schema();
                request.catalog.push(CatalogChange::Table(t.meta.clone()));
                t.dirty = false;
            }
            if std::mem::take(&mut t.operation_id_dirty) {
                request.positions.push((operation_key(t.meta.id), t.operation_id_high.into()));
            }
            IntakeReport::count(&mut self.counts.tables, &t.meta.name, t.block.ends.len() as u64);
            let empty = engine::RowBlock { table: t.meta.id, ..engine::RowBlock::default() };
            request.blocks.push(std::mem::replace(&mut t.block, empty));
        }
        let origins = std::mem::take(&mut self.origins_read);
        request.positions.extend(self.numbers.positions(&origins));
        request.positions.extend(self.note_options());
        self.forget_place();
        request.quarantine = std::mem::take(&mut self.quarantine);
        let counts = std::mem::take(&mut self.counts);
        request.note = counts.note();
        Ok((request, counts))
    }

    /// Takes note of a commit: schema versions have its number now.
    fn committed(&mut self, info: &CommitInfo) {
        for t in &mut self.tables {
            t.meta.schemas.iter_mut().filter(|(seq, _)| *seq == 0).for_each(|(seq, _)| *seq = info.seq);
        }
        self.numbers.committed(info.at);
    }
}
