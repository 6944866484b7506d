//! Running flows: each trigger takes what a source has, up to a limit, and commits it. Sources that keep a
//! connection stay open between triggers; one that fails is asked again later and stops no other.

use super::definition::Flow;
use super::open::{Opened, Opening, Variable, open};
use super::source::SourceKind;
use super::stored::{NamedFlow, find, flows};
use crate::change::Decoded;
use crate::error::{Error, ErrorKind, Result};
use crate::format::avro::SchemaSource;
use crate::intake::{IntakeReport, Messages, Progress, Step, StreamStart, Take};
use crate::source::{LiveClock, Place, Until};
use crate::store::Store;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Time until a source that failed is asked again: at first, and at most.
const RETRY_US: (i64, i64) = (1_000_000, 60_000_000);

/// All flows that run.
pub struct Runner {
    /// Those that were asked for; empty = all.
    names: Vec<String>,
    flows: Vec<FlowRun>,
    settings: Shared,
}

/// What all flows of a run are given.
#[derive(Clone)]
struct Shared {
    variable: Variable,
    until: Until,
}

impl Shared {
    fn run(&self, flow: Flow) -> FlowRun {
        let (settings, told) = (self.clone(), BTreeSet::new());
        FlowRun { flow, settings, source: None, state: FlowState::Up, told }
    }
}

/// A flow that runs.
pub struct FlowRun {
    flow: Flow,
    settings: Shared,
    source: Option<Opened>,
    state: FlowState,
    told: BTreeSet<String>,
}

/// How a flow is.
#[derive(Clone, Debug)]
pub enum FlowState {
    /// Its source was read, or was not asked yet.
    Up,
    /// Its source fails.
    Down {
        /// Since when, microseconds since 1970.
        since: i64,
        /// When it is asked again.
        retry: i64,
        /// How often it was asked in vain.
        attempts: u32,
        /// What happened last.
        error: Error,
    },
    /// It cannot go on: what is declared does not fit.
    Stopped(Error),
}

/// What a trigger did.
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    /// Totals; notices of the source are told once a run.
    pub report: IntakeReport,
    /// The limit was reached: there is more.
    pub more: bool,
    /// What is there and may still be written to.
    pub left: Vec<String>,
    /// How long it took, microseconds.
    pub took: i64,
    /// The source had failed since then, and is back.
    pub back_since: Option<i64>,
}

impl Runner {
    /// All declared flows of a store, or those called `names`, in that order.
    ///
    /// # Errors
    /// `Failed` for a name that there is not (names near ones), a flow that cannot be read, or if there is
    /// no flow at all.
    pub fn new(store: &Store, names: &[String], variable: &Variable, until: Until) -> Result<Runner> {
        let catalog = store.catalog();
        let mut chosen: Vec<Flow> = match names.is_empty() {
            true => flows(&catalog).into_iter().map(|f| f.flow).collect::<Result<_>>()?,
            false => names.iter().map(|name| find(&catalog, name)).collect::<Result<_>>()?,
        };
        let mut seen = BTreeSet::new();
        chosen.retain(|flow| seen.insert(flow.name.clone()));
        if chosen.is_empty() {
            return Err(Error::failed("no flow is declared").hint(
                "declare one: CREATE FLOW name AS AUTO CDC INTO table FROM STREAM files('dir') KEYS (id)",
            ));
        }
        let settings = Shared { variable: variable.clone(), until };
        let names =
            if names.is_empty() { Vec::new() } else { chosen.iter().map(|f| f.name.clone()).collect() };
        let flows = chosen.into_iter().map(|flow| settings.run(flow)).collect();
        Ok(Runner { names, flows, settings })
    }

    /// Takes up what was declared, altered or dropped since: a flow that is as it was goes on.
    ///
    /// # Errors
    /// `Failed` for a flow that cannot be read.
    pub fn refresh(&mut self, store: &Store) -> Result<()> {
        let mut declared = flows(&store.catalog());
        if !self.names.is_empty() {
            declared.retain(|f| self.names.contains(&f.name));
        }
        let mut old = std::mem::take(&mut self.flows);
        for NamedFlow { name: _, flow } in declared {
            let flow = flow?;
            let same = old.iter().position(|run| run.flow == flow);
            self.flows.push(match same {
                Some(at) => old.swap_remove(at),
                None => self.settings.run(flow),
            });
        }
        Ok(())
    }

    /// The flows.
    pub fn flows(&mut self) -> &mut [FlowRun] {
        &mut self.flows
    }
}

impl FlowRun {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.flow.name
    }

    /// How long to wait before its source is asked again that had no more; a topic waits itself.
    pub fn pause(&self) -> Duration {
        if !matches!(self.state, FlowState::Up) {
            return Duration::from_secs(1);
        }
        match self.flow.source.kind {
            SourceKind::Kafka => Duration::ZERO,
            SourceKind::Files | SourceKind::Changes => Duration::from_secs(1),
            SourceKind::Pull | SourceKind::Snapshot => Duration::from_secs(30),
        }
    }

    /// How it is.
    pub fn state(&self) -> &FlowState {
        &self.state
    }

    /// Takes up to `messages_max` messages and commits them. `None` where the flow stands still: it is
    /// stopped, or its source is not to be asked again yet. What fails in its source is its state
    /// afterwards. `progress` may stop it: what was read by then is committed.
    ///
    /// # Errors
    /// Those of the store, after which no flow can go on.
    pub fn trigger(
        &mut self,
        store: &Store,
        messages_max: u64,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Option<Trigger>> {
        let now = store.engine().now_us();
        let down_since = match &self.state {
            FlowState::Stopped(_) => return Ok(None),
            FlowState::Down { retry, .. } if now < *retry => return Ok(None),
            FlowState::Down { since, .. } => Some(*since),
            FlowState::Up => None,
        };
        match self.take(store, messages_max, progress) {
            Ok(mut trigger) => {
                if self.source.as_ref().is_some_and(|source| !source.goes_on && !trigger.more) {
                    self.source = None;
                }
                trigger.took = store.engine().now_us().saturating_sub(now).max(0);
                trigger.back_since = down_since;
                trigger.report.notices.retain(|notice| self.told.insert(notice.clone()));
                self.state = FlowState::Up;
                Ok(Some(trigger))
            }
            Err(e) => {
                // What the source had in hand may not be committed: it begins again from the positions.
                self.source = None;
                self.fail(e, store.engine().now_us())?;
                Ok(None)
            }
        }
    }

    fn take(
        &mut self,
        store: &Store,
        messages_max: u64,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Trigger> {
        let opened = match &mut self.source {
            Some(source) => source,
            closed => {
                let engine = store.engine().clone();
                let clock: LiveClock = Arc::new(move || engine.now_us());
                let Shared { variable, until } = self.settings.clone();
                let opening = Opening { snapshot: store.engine().pin(), clock, variable, until };
                closed.insert(open(&self.flow, &opening)?)
            }
        };
        let left = if opened.divides { messages_max } else { u64::MAX };
        let mut limited = Limited { inner: opened.messages.as_mut(), left, more: false };
        let report = store.ingest_messages(&mut limited, &opened.options, progress)?;
        let more = limited.more;
        Ok(Trigger { report, more, left: opened.messages.left(), ..Trigger::default() })
    }

    /// Notes a failure; passes on what concerns the store.
    fn fail(&mut self, error: Error, now: i64) -> Result<()> {
        let (since, attempts) = match &self.state {
            FlowState::Down { since, attempts, .. } => (*since, *attempts),
            _ => (now, 0),
        };
        match error.kind() {
            ErrorKind::Source | ErrorKind::Timeout => {
                let (first, most) = RETRY_US;
                let wait = first.saturating_mul(1 << attempts.min(16)).min(most);
                let retry = now.saturating_add(wait);
                self.state = FlowState::Down { since, retry, attempts: attempts + 1, error };
                Ok(())
            }
            ErrorKind::Usage => {
                self.state = FlowState::Stopped(error);
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// Messages up to a number.
struct Limited<'m> {
    inner: &'m mut dyn Messages,
    left: u64,
    more: bool,
}

impl Messages for Limited<'_> {
    fn read(&mut self, room: usize, take: &mut Take<'_>) -> Result<Step> {
        if self.left == 0 {
            self.more = true;
            return Ok(Step::End);
        }
        let mut count = 0;
        let room = room.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let step = self.inner.read(room, &mut |place: &Place<'_>, decoded: Decoded<'_>| {
            count += 1;
            take(place, decoded)
        })?;
        self.left = self.left.saturating_sub(count);
        self.more = step == Step::More;
        Ok(if self.left == 0 { Step::End } else { step })
    }

    fn positions(&mut self) -> Vec<(String, serde_json::Value)> {
        self.inner.positions()
    }

    fn starts(&mut self) -> Result<Vec<StreamStart>> {
        self.inner.starts()
    }

    fn schemas(&self) -> Option<Arc<dyn SchemaSource>> {
        self.inner.schemas()
    }

    fn left(&self) -> Vec<String> {
        self.inner.left()
    }

    fn progress(&self, progress: &mut Progress) {
        self.inner.progress(progress);
    }

    fn notices(&mut self) -> Vec<String> {
        self.inner.notices()
    }
}
