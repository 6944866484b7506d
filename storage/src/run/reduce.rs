//! What a chunk need not store: which of its columns follow from others.

use super::derive::{Clock, Derivation, Derivations, Rows, clock, narrow_name, numbers, of_numbers, place};
use super::error::RunError;
use crate::event::columns::OP_MASK;
use crate::event::{EventColumns, Op};
use arrow::array::*;
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that a proposal is made from.
const SAMPLE_ROWS: usize = 4096;
/// Places of a line.
const PLACES: usize = 32;
/// Commits between the first and the last of a chunk, up to which they may follow from positions.
const COMMITS_MAX: u64 = 4096;
/// What times may be divided by: they are microseconds, and columns may have milliseconds or seconds.
const UNITS: [i64; 3] = [1, 1000, 1_000_000];

/// Columns before the image columns that may follow from others.
pub(crate) const DERIVED: [&str; 4] = ["system", "commit", "position", "event_time"];

/// A chunk as it is stored.
#[derive(Default)]
pub(crate) struct Reduced {
    pub derivations: Derivations,
    /// What the file has in place of the columns themselves, by physical name.
    pub columns: BTreeMap<String, ArrayRef>,
}

/// Which columns of a chunk follow from others; columns with one value in the whole run are `left_out`.
pub(crate) fn reduce(events: &EventColumns, left_out: impl Fn(&str) -> bool) -> Result<Reduced, RunError> {
    let mut chunk = Chunk { events, batch: events.batch(), found: Reduced::default() };
    for name in DERIVED.into_iter().filter(|name| !left_out(name)) {
        let proposals = match name {
            "system" => chunk.system()?,
            "event_time" => chunk.event_time()?,
            "position" => chunk.position()?,
            _ => chunk.commit()?,
        };
        chunk.take(name, proposals)?;
    }
    let fields = chunk.batch.schema();
    for field in fields.fields().iter().skip(crate::event::columns::META_COLUMNS) {
        if !left_out(field.name()) {
            let proposals = chunk.image(field.name())?;
            chunk.take(field.name(), proposals)?;
        }
    }
    Ok(chunk.found)
}

/// A derivation, and what the file keeps of the column.
struct Proposal {
    derivation: Derivation,
    /// Under which name, if not that of the column.
    own: Option<(String, ArrayRef)>,
}

impl Proposal {
    fn whole(derivation: Derivation) -> Proposal {
        Proposal { derivation, own: None }
    }
}

struct Chunk<'a> {
    events: &'a EventColumns,
    batch: &'a RecordBatch,
    found: Reduced,
}

impl Chunk<'_> {
    fn get(&self, name: &str) -> Result<ArrayRef, RunError> {
        let column = self.batch.column_by_name(name).cloned();
        column.ok_or_else(|| RunError::NotEvents(format!("{name} is missing")))
    }

    /// Takes the first proposal that gives the column as it is, in every row.
    fn take(&mut self, name: &str, proposals: Vec<Proposal>) -> Result<(), RunError> {
        let actual = self.get(name)?;
        for Proposal { derivation, own } in proposals {
            let mut get = |source: &str| match &own {
                Some((own, array)) if own == source => Ok(array.clone()),
                _ => self.get(source),
            };
            let Ok(derived) = derivation.column(name, actual.data_type(), actual.len(), &mut get) else {
                continue;
            };
            if derived.to_data() != actual.to_data() {
                continue;
            }
            let own_name = own.as_ref().map(|(name, _)| name.clone());
            if own_name.as_deref() != Some(name) {
                let nulls = new_null_array(actual.data_type(), actual.len());
                self.found.columns.insert(name.to_owned(), nulls);
            }
            self.found.columns.extend(own);
            self.found.derivations.insert(name.to_owned(), derivation);
            break;
        }
        Ok(())
    }

    /// Rows spread over the chunk.
    fn sample(&self) -> impl Iterator<Item = usize> + use<> {
        let rows = self.events.len();
        (0..rows).step_by(rows.div_ceil(SAMPLE_ROWS).max(1))
    }

    fn system(&self) -> Result<Vec<Proposal>, RunError> {
        let (valid, system) = (self.events.valid_from().values(), self.events.system().values());
        let same = BooleanBuffer::collect_bool(valid.len(), |i| valid[i] == system[i]);
        let count = same.count_set_bits();
        let of = "valid_from".to_owned();
        Ok(if count == valid.len() {
            vec![Proposal::whole(Derivation::Copy { of, plus: 0, per: 1, rows: Rows::All })]
        } else if count * 2 >= valid.len() {
            let own = Int64Array::new(system.clone(), Some(NullBuffer::new(!&same)));
            let own = Some(("system".to_owned(), Arc::new(own) as ArrayRef));
            vec![Proposal { derivation: Derivation::Else { of }, own }]
        } else {
            self.differences("system", &["valid_from"])?
        })
    }

    fn event_time(&self) -> Result<Vec<Proposal>, RunError> {
        let copy =
            |of: &str| Proposal::whole(Derivation::Copy { of: of.into(), plus: 0, per: 1, rows: Rows::All });
        let times = numbers(&self.get("event_time")?)?;
        let mut proposals = Vec::new();
        for of in ["valid_from", "system"] {
            let of_times = numbers(&self.get(of)?)?;
            if self.events.event_time().null_count() == 0 && self.sample().all(|i| times[i] == of_times[i]) {
                proposals.push(copy(of));
            }
        }
        proposals.extend(self.differences("event_time", &["valid_from", "system"])?);
        Ok(proposals)
    }

    /// The column as what it has more than the one of `others` it is nearest to, if that is much less
    /// than the column itself.
    fn differences(&self, name: &str, others: &[&str]) -> Result<Vec<Proposal>, RunError> {
        let actual = self.get(name)?;
        let values = numbers(&actual)?;
        let rows: Vec<usize> = self.sample().filter(|i| actual.is_valid(*i)).collect();
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let plain: u64 = rows.iter().map(|i| bits(values[*i].wrapping_sub(values[*first]))).sum();
        let mut best: Option<(u64, &str, ScalarBuffer<i64>)> = None;
        for of in others {
            let base = numbers(&self.get(of)?)?;
            let size = rows.iter().map(|i| bits(values[*i].wrapping_sub(base[*i]))).sum();
            if size * 4 < plain * 3 && best.as_ref().is_none_or(|b| size < b.0) {
                best = Some((size, of, base));
            }
        }
        let Some((_, of, base)) = best else { return Ok(Vec::new()) };
        let own = values.iter().zip(base.iter()).map(|(a, b)| a.wrapping_sub(*b)).collect();
        let own = of_numbers(own, actual.nulls().cloned(), actual.data_type())?;
        let derivation = Derivation::Plus { of: of.to_owned() };
        Ok(vec![Proposal { derivation, own: Some((name.to_owned(), own)) }])
    }

    /// Positions as places on a line, where the times of a stream go up with its positions.
    fn position(&self) -> Result<Vec<Proposal>, RunError> {
        let positions = self.events.position().values();
        let (Some(low), Some(high)) = (positions.iter().min(), positions.iter().max()) else {
            return Ok(Vec::new());
        };
        let rows: Vec<usize> = self.sample().collect();
        let plain = bits((high - low) as i64) * rows.len() as u64;
        let mut best: Option<(u64, Derivation, ScalarBuffer<i64>)> = None;
        for by in [Clock::Later, Clock::Valid, Clock::System] {
            let times = clock(by, &mut |name| self.get(name))?;
            let at = line(&rows, &times, positions, *low, *high);
            let off = |i: usize| positions[i].wrapping_sub(place(&at, times[i])) as i64;
            let size = rows.iter().map(|i| bits(off(*i))).sum();
            if size * 4 < plain * 3 && best.as_ref().is_none_or(|b| size < b.0) {
                best = Some((size, Derivation::Line { by, at }, times));
            }
        }
        let Some((_, derivation, times)) = best else { return Ok(Vec::new()) };
        let Derivation::Line { at, .. } = &derivation else { return Ok(Vec::new()) };
        let off = positions.iter().zip(times.iter()).map(|(p, t)| p.wrapping_sub(place(at, *t)));
        let off: ScalarBuffer<u64> = off.collect();
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(off.len(), |i| off[i] != 0));
        let own: ArrayRef = Arc::new(UInt64Array::new(off, Some(nulls)));
        Ok(vec![Proposal { derivation, own: Some(("position".to_owned(), own)) }])
    }

    /// Commits as steps along the positions, where each commit took the next ones.
    fn commit(&self) -> Result<Vec<Proposal>, RunError> {
        let (commits, positions) = (self.events.commit().values(), self.events.position().values());
        let (Some(low), Some(high)) = (commits.iter().min(), commits.iter().max()) else {
            return Ok(Vec::new());
        };
        if high - low >= COMMITS_MAX {
            return Ok(Vec::new());
        }
        let mut spans = vec![(u64::MAX, 0); (high - low + 1) as usize];
        for (commit, position) in commits.iter().zip(positions) {
            let (first, last) = &mut spans[(commit - low) as usize];
            (*first, *last) = ((*first).min(*position), (*last).max(*position));
        }
        let mut steps: Vec<(u64, u64, u64)> =
            (*low..).zip(&spans).filter(|(_, s)| s.0 <= s.1).map(|(c, s)| (s.0, s.1, c)).collect();
        steps.sort_unstable();
        let apart = steps.windows(2).all(|pair| pair[0].1 < pair[1].0);
        let at = steps.into_iter().map(|(first, _, commit)| (first, commit)).collect();
        Ok(if apart { vec![Proposal::whole(Derivation::Steps { at })] } else { Vec::new() })
    }

    fn image(&self, name: &str) -> Result<Vec<Proposal>, RunError> {
        let column = self.get(name)?;
        if column.null_count() == column.len() {
            return Ok(Vec::new());
        }
        match column.data_type() {
            DataType::Int64 | DataType::Timestamp(_, _) => {
                let mut proposals = self.copies(name, &column)?;
                if proposals.is_empty() {
                    proposals = self.differences(name, &["valid_from", "system", "position"])?;
                }
                Ok(proposals)
            }
            DataType::Decimal128(_, _) => Ok(narrow(name, &column)),
            DataType::Utf8 => Ok(self.operation(&column)),
            _ => Ok(Vec::new()),
        }
    }

    /// Copies of times and of the position that agree with the sample.
    fn copies(&self, name: &str, column: &ArrayRef) -> Result<Vec<Proposal>, RunError> {
        let values = numbers(column)?;
        let valid: Vec<usize> = self.sample().filter(|i| column.is_valid(*i)).collect();
        let Some(&first) = valid.first() else { return Ok(Vec::new()) };
        let Some(rows) = self.rows_of(name, column) else { return Ok(Vec::new()) };
        let mut proposals = Vec::new();
        for of in ["valid_from", "system", "position"] {
            let base = numbers(&self.get(of)?)?;
            let shifted = of == "position";
            let plus = if shifted { values[first].wrapping_sub(base[first]) } else { 0 };
            for per in if shifted { &UNITS[..1] } else { &UNITS[..] } {
                let agrees = |i: &usize| base[*i].wrapping_add(plus).wrapping_div(*per) == values[*i];
                if valid.iter().all(agrees) {
                    let of = of.to_owned();
                    proposals.push(Proposal::whole(Derivation::Copy { of, plus, per: *per, rows }));
                }
            }
        }
        Ok(proposals)
    }

    /// Which rows of the sample have a value in an image column, if there is a word for it.
    fn rows_of(&self, name: &str, column: &ArrayRef) -> Option<Rows> {
        let id: u32 = name.strip_prefix('c')?.parse().ok()?;
        let authored = |i: usize| id < 64 && self.events.mask().value(i) >> id & 1 == 1;
        let written = |i: usize| authored(i) && self.events.op().value(i) & OP_MASK < Op::Delete as u8;
        let is = |present: &dyn Fn(usize) -> bool| self.sample().all(|i| column.is_valid(i) == present(i));
        if column.null_count() == 0 {
            return Some(Rows::All);
        }
        is(&written).then_some(Rows::Written).or_else(|| is(&authored).then_some(Rows::Authored))
    }

    /// Texts that follow from the operation.
    fn operation(&self, column: &ArrayRef) -> Vec<Proposal> {
        let texts = column.as_string::<i32>();
        let mut by_op: [Option<Option<&str>>; 8] = [None; 8];
        for i in self.sample() {
            let text = texts.is_valid(i).then(|| texts.value(i));
            let known = by_op[(self.events.op().value(i) & OP_MASK) as usize].get_or_insert(text);
            if *known != text {
                return Vec::new();
            }
        }
        let texts = by_op.iter().map(|t| t.flatten().map(str::to_owned)).collect();
        vec![Proposal::whole(Derivation::Operation { texts })]
    }
}

/// Decimals whose digits all fit into 64 bits.
fn narrow(name: &str, column: &ArrayRef) -> Vec<Proposal> {
    let digits = column.as_primitive::<Decimal128Type>();
    let narrow: ScalarBuffer<i64> = digits.values().iter().map(|v| *v as i64).collect();
    let own: ArrayRef = Arc::new(Int64Array::new(narrow, digits.nulls().cloned()));
    vec![Proposal { derivation: Derivation::Narrow, own: Some((narrow_name(name), own)) }]
}

/// Places on a line from the lowest position to the highest: of each part of the way the row with the
/// latest time.
fn line(rows: &[usize], times: &[i64], positions: &[u64], low: u64, high: u64) -> Vec<(i64, u64)> {
    let part = ((high - low) / PLACES as u64).saturating_add(1);
    let mut latest: [Option<(i64, u64)>; PLACES] = [None; PLACES];
    for i in rows {
        let here = (times[*i], positions[*i]);
        let best = latest[((here.1 - low) / part) as usize].get_or_insert(here);
        if here.0 > best.0 || here.0 == best.0 && here.1 < best.1 {
            *best = here;
        }
    }
    let mut at: Vec<(i64, u64)> = Vec::new();
    for place in latest.into_iter().flatten() {
        if at.last().is_none_or(|last| last.0 < place.0 && last.1 < place.1) {
            at.push(place);
        }
    }
    at
}

/// Bits that a difference takes.
fn bits(difference: i64) -> u64 {
    (64 - difference.unsigned_abs().leading_zeros()) as u64
}
