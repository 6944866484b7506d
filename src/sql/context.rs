//! What one query knows: its reader, its clocks, its clauses, and what it has to tell.

use super::clause::Axis;
use super::clock::{
    Applied, AppliedCommit, AppliedTime, Point, as_of, describe_range, point_of_scalar, point_on_axis,
};
use super::error::SqlError;
use super::lift::Clauses;
use super::names::{set_apart, set_apart_notices};
use super::one_key::OneKey;
use super::reader::Reader;
use asofdb_storage::engine::RangeSpec;
use asofdb_storage::schema::{TableMeta, TableSchema};
use asofdb_storage::time::{AxisType, CommitSeq, FOREVER, format_instant};
use datafusion::common::ScalarValue;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The clocks a session sets for tables without a clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionClocks {
    /// `asof.valid_time`.
    pub valid: Option<Point>,
    /// `asof.system_time`.
    pub system: Option<Point>,
    /// `asof.commit`: a commit number or an instant.
    pub commit: Option<Point>,
}

/// Settings of joins by point in time, see [`super::Settings`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelSettings {
    pub rows_max: usize,
    pub single_keys: usize,
}

/// Settings that shape scans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanSettings {
    pub partitions: usize,
    pub rows_per_key_max: usize,
    pub labels: LabelSettings,
}

/// The state of one query.
#[derive(Debug)]
pub(crate) struct QueryContext {
    pub reader: Arc<dyn Reader>,
    pub clocks: SessionClocks,
    /// The clock, read once.
    pub now: i64,
    pub scan: ScanSettings,
    pub clauses: Vec<Clauses>,
    /// Marker numbers that the planner has taken back.
    pub used: Mutex<Vec<usize>>,
    notices: Mutex<Vec<String>>,
    /// The keys that tables are asked for one by one.
    keys: Mutex<Vec<OneKey>>,
    /// The planner has asked for the plain table and must not look at it again.
    pub inside: AtomicBool,
}

/// Bounds of one table, worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableBounds {
    pub valid: RangeSpec,
    pub system: RangeSpec,
    pub commit: CommitSeq,
}

impl TableBounds {
    /// The point if the question is a point question on both axes: valid, system.
    pub fn point(&self) -> Option<(i64, i64)> {
        let point = |spec| match spec {
            RangeSpec::Latest => Some(FOREVER),
            RangeSpec::AsOf(t) => Some(t),
            RangeSpec::FromTo(..) | RangeSpec::Between(..) | RangeSpec::ContainedIn(..) | RangeSpec::All => {
                None
            }
        };
        Some((point(self.valid)?, point(self.system)?))
    }
}

impl QueryContext {
    pub fn new(
        reader: Arc<dyn Reader>,
        clocks: SessionClocks,
        now: i64,
        scan: ScanSettings,
        clauses: Vec<Clauses>,
    ) -> QueryContext {
        QueryContext {
            reader,
            clocks,
            now,
            scan,
            clauses,
            used: Mutex::default(),
            notices: Mutex::default(),
            keys: Mutex::default(),
            inside: AtomicBool::new(false),
        }
    }

    /// Adds a notice, once.
    pub fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.contains(&text) {
            notices.push(text);
        }
    }

    /// The columns of a table beside others that an answer has: see [`set_apart`].
    pub fn set_apart(&self, table: &str, schema: &TableSchema, added: &[&str]) -> TableSchema {
        let apart = set_apart(schema, added);
        set_apart_notices(table, schema, &apart).into_iter().for_each(|n| self.notice(n));
        apart
    }

    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a table is asked for one key, once.
    pub fn note_key(&self, key: OneKey) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }

    /// The key that the statement asks for, where it is one.
    pub fn one_key(&self) -> Option<OneKey> {
        match &self.keys.lock().unwrap_or_else(PoisonError::into_inner)[..] {
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    pub fn mark_used(&self, number: usize) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    /// The commit that a point names.
    pub fn commit(&self, point: Point) -> Result<CommitSeq, SqlError> {
        let newest = self.reader.commit();
        match point {
            Point::Now => Ok(newest),
            Point::Integer(n) => match u64::try_from(n) {
                Ok(n) if n <= newest.0 => Ok(CommitSeq(n)),
                _ => Err(SqlError::invalid(format!("there is no commit {n}"))
                    .hint(format!("the newest commit is {newest}; commits() lists them"))),
            },
            Point::Instant(at) => {
                if self.reader.commit_at().is_some_and(|last| at > last) {
                    self.notice(format!(
                        "{} lies after the last commit; answered as of commit {newest}",
                        format_instant(at)
                    ));
                }
                Ok(self.reader.commit_at_or_before(at))
            }
        }
    }

    /// The commit of a constant per-row value; NULL bounds nothing.
    pub fn commit_of_scalar(&self, value: &ScalarValue) -> Result<Option<CommitSeq>, SqlError> {
        point_of_scalar(value)?.map(|p| self.commit(p)).transpose()
    }

    /// The commit where nothing else is said.
    pub fn default_commit(&self) -> Result<CommitSeq, SqlError> {
        self.clocks
            .commit
            .map_or(Ok(self.reader.commit()), |p| self.commit(p).map_err(|e| in_session(e, Axis::Commit)))
    }

    /// The commit whose schema tables have where no clause stands; says nothing of it.
    pub fn schema_commit(&self) -> CommitSeq {
        match self.clocks.commit {
            Some(Point::Integer(n)) => CommitSeq(n.max(0) as u64).min(self.reader.commit()),
            Some(Point::Instant(at)) => self.reader.commit_at_or_before(at),
            Some(Point::Now) | None => self.reader.commit(),
        }
    }

    /// The wanted rows on a time axis where no clause stands.
    pub fn default_time(&self, axis: Axis, ty: AxisType, table: &str) -> Result<RangeSpec, SqlError> {
        let set = match axis {
            Axis::Valid => self.clocks.valid,
            Axis::System => self.clocks.system,
            Axis::Commit => None,
        };
        let Some(point) = set else { return Ok(RangeSpec::Latest) };
        let at = point_on_axis(point, axis, ty, table, self.now).map_err(|e| in_session(e, axis))?;
        Ok(as_of(at))
    }

    /// The bounds of a table without a clause.
    pub fn default_bounds(&self, meta: &TableMeta) -> Result<TableBounds, SqlError> {
        let bounds = TableBounds {
            valid: self.default_time(Axis::Valid, meta.valid_axis, &meta.name)?,
            system: self.default_time(Axis::System, meta.system_axis, &meta.name)?,
            commit: self.default_commit()?,
        };
        Ok(self.settle(meta, bounds))
    }

    /// Rule D3: a store-owned system instant past the last commit is answered as of that commit.
    pub fn settle(&self, meta: &TableMeta, mut bounds: TableBounds) -> TableBounds {
        if meta.system_declared {
            return bounds;
        }
        let Some(last) = self.reader.commit_at() else { return bounds };
        if let RangeSpec::AsOf(s) = bounds.system
            && s > last
            && s != FOREVER
        {
            self.notice(format!(
                "system time {} lies after the last commit; {} is answered as of commit {} ({})",
                format_instant(s),
                meta.name,
                self.reader.commit(),
                format_instant(last)
            ));
            bounds.system = RangeSpec::AsOf(last);
        }
        bounds
    }

    /// What the answer says of a table with fixed bounds.
    pub fn applied(&self, meta: &TableMeta, bounds: &TableBounds) -> Applied {
        Applied {
            table: meta.name.clone(),
            valid: AppliedTime::Fixed(bounds.valid),
            valid_axis: meta.valid_axis,
            system: AppliedTime::Fixed(bounds.system),
            system_axis: meta.system_axis,
            commit: AppliedCommit::Fixed { seq: bounds.commit.0, at: self.instant_of(bounds.commit) },
        }
    }

    /// The instant of a commit.
    pub fn instant_of(&self, commit: CommitSeq) -> Option<i64> {
        if commit == self.reader.commit() {
            return self.reader.commit_at();
        }
        let commits = self.reader.commits().ok()?;
        commits.iter().find(|c| c.seq == commit.0).map(|c| c.at)
    }
}

fn in_session(mut e: SqlError, axis: Axis) -> SqlError {
    let name = match axis {
        Axis::Valid => "asof.valid_time",
        Axis::System => "asof.system_time",
        Axis::Commit => "asof.commit",
    };
    e.message = format!("{name} of the session: {}", e.message);
    e.hint(format!("write a clause at the table, or RESET {name}"))
}

/// Bounds as words for EXPLAIN.
pub(crate) fn describe_bounds(meta: &TableMeta, bounds: &TableBounds) -> String {
    format!(
        "valid=[{}], system=[{}], commit={}",
        describe_range(bounds.valid, meta.valid_axis),
        describe_range(bounds.system, meta.system_axis),
        bounds.commit
    )
}
