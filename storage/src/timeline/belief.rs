//! One belief as versions in valid time (rules B9 and B11).

use super::error::TimelineError;
use super::event::{KeyHistory, Writer};
use super::line::{Step, Traits, line_up};
use super::point::{Bound, Scratch};
use crate::time::FOREVER;

/// The columns whose change begins a new interval row (rule B9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked<'t> {
    /// Every column of the image.
    All,
    /// These columns only.
    Only(&'t [u32]),
}

/// An interval row of a belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Start in valid time, inclusive; [`crate::time::BEGINNING`] if it has none.
    pub start: i64,
    /// End in valid time, exclusive; [`FOREVER`] while open.
    pub end: i64,
    /// The event that decides at the end of the version, whose image it shows.
    pub event: u32,
}

/// The versions of one key in one belief, and the memory to compute the next ones in.
#[derive(Clone, Debug, Default)]
pub struct Belief {
    columns: Vec<u32>,
    versions: Vec<Version>,
    images: Vec<Writer>,
    line: Vec<Step>,
    breaks: Vec<i64>,
    image: Vec<Writer>,
    pub(crate) scratch: Scratch,
}

/// How images compare: by the caller's values, over the tracked or over all columns.
pub(crate) struct Compare<'c, 'a, S> {
    pub history: &'c KeyHistory<'a>,
    pub tracked: Tracked<'c>,
    pub same: S,
}

impl<'a, S> Compare<'_, 'a, S>
where
    S: FnMut(u32, Writer, Writer) -> bool,
{
    /// Whether two neighbours in valid time are one row.
    pub fn one_row(&mut self, a: &[Writer], b: &[Writer]) -> bool {
        match self.tracked {
            Tracked::All => self.equal(a, b),
            Tracked::Only(columns) => columns.iter().all(|c| {
                let i = *c as usize;
                self.history.same_value(&mut self.same, *c, a[i], b[i])
            }),
        }
    }

    /// Whether two images show the same values.
    pub fn equal(&mut self, a: &[Writer], b: &[Writer]) -> bool {
        let mut pairs = a.iter().zip(b).enumerate();
        pairs.all(|(c, (x, y))| self.history.same_value(&mut self.same, c as u32, *x, *y))
    }
}

impl Belief {
    /// Nothing believed yet.
    pub fn new() -> Belief {
        Belief::default()
    }

    /// The versions, ascending in valid time; they never overlap and none is empty.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Who wrote each column of version `i`.
    ///
    /// # Panics
    /// If there is no such version.
    pub fn image(&self, i: usize) -> &[Writer] {
        let width = self.columns.len();
        &self.images[i * width..(i + 1) * width]
    }

    /// Computes what is believed of key 0 at `system` (inclusive; `i64::MAX` is the latest belief,
    /// whose versions are SCD type 2), seeing events committed at or before `commit`. `same` says
    /// whether two writers stand for the same value of a column.
    ///
    /// # Errors
    /// [`TimelineError::TooManySteps`] after looking at `steps_max` events;
    /// [`TimelineError::ChainTooLong`].
    pub fn compute<'a>(
        &mut self,
        history: &KeyHistory<'a>,
        system: i64,
        commit: u64,
        tracked: Tracked<'_>,
        steps_max: u64,
        same: impl FnMut(u32, Writer, Writer) -> bool,
    ) -> Result<(), TimelineError> {
        self.scratch.limit_steps(steps_max);
        let traits = self.prepare(history, commit);
        self.fold(&mut Compare { history, tracked, same }, traits, system, commit)
    }

    /// SCD type 1 from SCD type 2 (rule B11): the last version if it is still open.
    pub fn open(&self) -> Option<(Version, &[Writer])> {
        let last = self.versions.len().checked_sub(1)?;
        let version = self.versions[last];
        (version.end == FOREVER).then(|| (version, self.image(last)))
    }

    /// Lays out the key for any number of calls of [`Belief::fold`] with the same commit.
    pub(crate) fn prepare(&mut self, history: &KeyHistory<'_>, commit: u64) -> Traits {
        self.columns.clear();
        self.columns.extend(0..history.columns());
        self.image.clear();
        self.image.resize(self.columns.len(), Writer::Null);
        let traits = line_up(history, commit, &mut self.line);
        self.breaks.clear();
        if by_points(traits) {
            self.find_breaks(history, commit);
        }
        traits
    }

    /// Every instant at which something can change.
    fn find_breaks(&mut self, history: &KeyHistory<'_>, commit: u64) {
        for number in history.key_range(0) {
            let event = history.event(number);
            if event.commit <= commit && !event.is_void() {
                self.breaks.extend([event.order.valid_from, event.valid_to]);
            }
        }
        let truncates = history.truncates().iter().filter(|t| t.commit <= commit);
        self.breaks.extend(truncates.map(|t| t.order.valid_from));
        self.breaks.sort_unstable();
        self.breaks.dedup();
        self.breaks.retain(|b| *b != FOREVER);
    }

    pub(crate) fn fold<'a, S>(
        &mut self,
        compare: &mut Compare<'_, 'a, S>,
        traits: Traits,
        system: i64,
        commit: u64,
    ) -> Result<(), TimelineError>
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        self.versions.clear();
        self.images.clear();
        if by_points(traits) {
            self.fold_points(compare, system, commit)
        } else {
            self.fold_line(compare, system, commit)
        }
    }

    /// Asks between any two instants of change. Answers everything.
    fn fold_points<'a, S>(
        &mut self,
        compare: &mut Compare<'_, 'a, S>,
        system: i64,
        commit: u64,
    ) -> Result<(), TimelineError>
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        for i in 0..self.breaks.len() {
            let start = self.breaks[i];
            let end = self.breaks.get(i + 1).copied().unwrap_or(FOREVER);
            let bound = Bound { valid: start, system, commit };
            let (columns, image) = (&self.columns, &mut self.image);
            let found = compare.history.resolve_counted(&bound, columns, image, &mut self.scratch)?;
            self.scratch.step(1)?;
            if let Some(event) = found {
                self.add(compare, Version { start, end, event });
            }
        }
        Ok(())
    }

    /// Applies the events one after the other. Not for events with their own end.
    fn fold_line<'a, S>(
        &mut self,
        compare: &mut Compare<'_, 'a, S>,
        system: i64,
        commit: u64,
    ) -> Result<(), TimelineError>
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        self.image.fill(Writer::Null);
        self.scratch.step(self.line.len() as u64)?;
        let mut open: Option<(i64, u32)> = None;
        for i in 0..self.line.len() {
            let step = self.line[i];
            if step.system > system {
                continue;
            }
            if let Some((start, event)) = open
                && start < step.valid
            {
                self.add(compare, Version { start, end: step.valid, event });
            }
            open = match step.event {
                Some(number) if step.present => {
                    self.apply(compare.history, number, system, commit)?;
                    Some((step.valid, number))
                }
                _ => {
                    self.image.fill(Writer::Null);
                    None
                }
            };
        }
        if let Some((start, event)) = open {
            self.add(compare, Version { start, end: FOREVER, event });
        }
        Ok(())
    }

    fn apply(
        &mut self,
        history: &KeyHistory<'_>,
        number: u32,
        system: i64,
        commit: u64,
    ) -> Result<(), TimelineError> {
        let event = history.event(number);
        if event.previous.is_some() {
            let bound = Bound { valid: event.order.valid_from, system, commit };
            return history.image_of(number, &bound, &self.columns, &mut self.image, &mut self.scratch);
        }
        for (column, writer) in self.image.iter_mut().enumerate() {
            *writer = write(history, number, column as u32, *writer);
        }
        Ok(())
    }

    /// Adds a stretch that shows `self.image`; one that continues the last version extends it.
    fn add<'a, S>(&mut self, compare: &mut Compare<'_, 'a, S>, stretch: Version)
    where
        S: FnMut(u32, Writer, Writer) -> bool,
    {
        let at = self.images.len().saturating_sub(self.image.len());
        if let Some(last) = self.versions.last_mut()
            && last.end == stretch.start
            && compare.one_row(&self.images[at..], &self.image)
        {
            (last.end, last.event) = (stretch.end, stretch.event);
            self.images[at..].copy_from_slice(&self.image);
            return;
        }
        self.versions.push(stretch);
        self.images.extend_from_slice(&self.image);
    }
}

/// The writer of a column after an upsert, given the one before it (rules B5 and B6).
#[inline]
pub(crate) fn write(history: &KeyHistory<'_>, number: u32, column: u32, before: Writer) -> Writer {
    let event = history.event(number);
    if event.authors(column) {
        history.written(column, number, before)
    } else if before == Writer::Null && event.is_unknown(column) {
        Writer::Unknown
    } else {
        before
    }
}

fn by_points(traits: Traits) -> bool {
    traits.bounded || traits.crossing
}
