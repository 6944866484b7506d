//! One piece of a per-row join: left rows in the order of their keys become point questions.

use super::clause::Axis;
use super::clock::{parse_point, point_on_axis};
use super::error::{SqlError, storage_error};
use super::per_row::{Clock, PerRowSpec};
use super::per_row_keys::other_keys;
use asofdb_storage::engine::{Bounds, PointRequest, ScanCounts, SortedPoints};
use asofdb_storage::id::ColumnId;
use asofdb_storage::time::{AxisType, CommitSeq};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::compute::{cast, concat_batches, filter_record_batch, take};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

/// What is asked of each piece.
#[derive(Debug)]
pub(crate) struct Asked {
    pub spec: Arc<PerRowSpec>,
    /// Columns of the left side that a piece has; behind them stand the key, and the other spellings of it if there
    /// may be any.
    pub kept: Vec<usize>,
    /// Valid time, system time and commit; `None` where they are the same for all rows.
    pub clocks: [Option<Arc<dyn PhysicalExpr>>; 3],
    pub plain: View,
    /// For pieces with texts that stand for numbers, if the key has text; its columns begin as the plain ones.
    pub doubted: Option<View>,
    /// Columns of the result among those of a view.
    pub output: Vec<usize>,
    pub output_schema: SchemaRef,
}

/// Which columns of the table are asked for.
#[derive(Debug)]
pub(crate) struct View {
    columns: Vec<ColumnId>,
    /// What a match must fulfil.
    condition: Option<Arc<dyn PhysicalExpr>>,
    /// Of the kept columns and those of the table.
    schema: SchemaRef,
}

impl View {
    pub fn new(columns: Vec<ColumnId>, condition: Option<Arc<dyn PhysicalExpr>>, schema: SchemaRef) -> View {
        View { columns, condition, schema }
    }
}

/// Joins one piece after the other.
#[derive(Debug)]
pub(crate) struct Joiner {
    asked: Arc<Asked>,
    counts: Arc<ScanCounts>,
    /// The passes of the plain and of the doubted view, once there was something to ask.
    passes: [Option<SortedPoints>; 2],
}

/// Questions about other spellings of keys, and the left row of each.
struct Again {
    requests: Vec<PointRequest>,
    rows: Vec<u32>,
}

/// Left rows and the row of the right side that each found, ascending by the left ones.
struct Found {
    pairs: Vec<(u32, u32)>,
    right: RecordBatch,
}

impl Joiner {
    /// `counts` are those of all that is read.
    pub fn new(asked: Arc<Asked>, counts: Arc<ScanCounts>) -> Joiner {
        Joiner { asked, counts, passes: [None, None] }
    }

    /// Joins the next piece; its keys ascend, and are not below those of the one before.
    pub fn join(&mut self, piece: &RecordBatch) -> Result<RecordBatch> {
        let asked = self.asked.clone();
        let lefts = asked.kept.len();
        let left = piece.project(&(0..lefts).collect::<Vec<_>>())?;
        let keys = piece.column(lefts).as_binary::<i32>();
        let others = piece.columns().get(lefts + 1).map(|o| o.as_binary::<i32>());
        let others = others.filter(|o| o.null_count() < o.len());
        let (view, pass) = match &asked.doubted {
            Some(doubted) if others.is_some() => (doubted, &mut self.passes[1]),
            _ => (&asked.plain, &mut self.passes[0]),
        };
        let points = match pass {
            Some(points) => points,
            None => pass.insert(asked.begin(view, &self.counts)?),
        };
        let (rows, bounds) = asked.questions(&left, keys)?;
        let keys = match rows.len() == keys.len() {
            true => keys.clone(),
            false => take(keys, &UInt32Array::from(rows.clone()), None)?.as_binary::<i32>().clone(),
        };
        let (found, right) = points.answer(&keys, &bounds).map_err(storage_error)?;
        let pairs = found.iter().zip(0..).map(|(question, at)| (rows[*question as usize], at)).collect();
        let mut found = Found { pairs, right };
        if let Some(others) = others {
            let again = asked.others(others, &rows, &bounds, &found);
            self.ask_again(&again, view, &mut found)?;
        }
        asked.output(&left, view, &found)
    }

    fn ask_again(&self, again: &Again, view: &View, found: &mut Found) -> Result<()> {
        if again.requests.is_empty() {
            return Ok(());
        }
        let spec = &self.asked.spec;
        let answers = spec.context.reader.points(spec.meta.id, &again.requests, &view.columns, &self.counts);
        let (answers, right) = answers.map_err(storage_error)?;
        let first = found.right.num_rows() as u32;
        for (request, at) in answers.iter().zip(first..) {
            let row = again.rows[*request as usize];
            // Several keys of one row differ only in how they were once spelled.
            if found.pairs.last().is_none_or(|(last, place)| *last != row || *place < first) {
                found.pairs.push((row, at));
            }
        }
        found.right = concat_batches(&found.right.schema(), [&found.right, &right])?;
        found.pairs.sort_unstable();
        Ok(())
    }
}

impl Asked {
    fn begin(&self, view: &View, counts: &Arc<ScanCounts>) -> Result<SortedPoints> {
        let context = &self.spec.context;
        let points = context.reader.sorted_points(self.spec.meta.id, &view.columns, counts);
        Ok(points.map_err(storage_error)?.looking_up(context.scan.labels.single_keys))
    }

    /// The rows that ask something, and their bounds. Rows with NULL in the key or in a bound ask nothing.
    fn questions(&self, left: &RecordBatch, keys: &BinaryArray) -> Result<(Vec<u32>, Vec<Bounds>)> {
        let (spec, [valid, system, commit]) = (&self.spec, &self.clocks);
        let valid = clock_values(left, &spec.valid, valid, spec.meta.valid_axis, Axis::Valid, spec)?;
        let system = clock_values(left, &spec.system, system, spec.meta.system_axis, Axis::System, spec)?;
        let commit = commit_values(left, &spec.commit, commit, spec)?;
        let (mut rows, mut bounds) = (Vec::with_capacity(keys.len()), Vec::with_capacity(keys.len()));
        for row in (0..keys.len()).filter(|row| keys.is_valid(*row)) {
            if let (Some(valid), Some(system), Some(commit)) = (valid.at(row), system.at(row), commit.at(row))
            {
                rows.push(row as u32);
                bounds.push(Bounds { valid, system, commit: CommitSeq(commit as u64) });
            }
        }
        Ok((rows, bounds))
    }

    /// Rows that found nothing, and the keys that they may have been stored under once.
    fn others(&self, others: &BinaryArray, rows: &[u32], bounds: &[Bounds], found: &Found) -> Again {
        let mut again = Again { requests: Vec::new(), rows: Vec::new() };
        let mut taken = found.pairs.iter().map(|(row, _)| *row).peekable();
        for (row, bounds) in rows.iter().zip(bounds) {
            while taken.next_if(|t| t < row).is_some() {}
            if taken.peek() == Some(row) || others.is_null(*row as usize) {
                continue;
            }
            for key in other_keys(others.value(*row as usize)) {
                again.requests.push(PointRequest { key: key.to_vec(), bounds: *bounds });
                again.rows.push(*row);
            }
        }
        again
    }

    /// The rows of the result.
    fn output(&self, left: &RecordBatch, view: &View, found: &Found) -> Result<RecordBatch> {
        let (rows, places): (Vec<u32>, Vec<u32>) = found.pairs.iter().copied().unzip();
        let matched = gather(left, rows.into(), &found.right, places.into(), &view.schema)?;
        let keep = match &view.condition {
            None => None,
            Some(condition) => Some(condition.evaluate(&matched)?.into_array(matched.num_rows())?),
        };
        let keep = keep.as_ref().map(|k| k.as_boolean());
        if !self.spec.outer {
            return match keep {
                None => self.shown(matched),
                Some(keep) => Ok(filter_record_batch(&self.shown(matched)?, keep)?),
            };
        }
        let mut partner: Vec<Option<u32>> = vec![None; left.num_rows()];
        for (i, (row, place)) in found.pairs.iter().enumerate() {
            if keep.is_none_or(|k| k.is_valid(i) && k.value(i)) {
                partner[*row as usize] = Some(*place);
            }
        }
        let all: Vec<u32> = (0..left.num_rows() as u32).collect();
        self.shown(gather(left, all.into(), &found.right, partner.into(), &view.schema)?)
    }

    /// The columns that the result has of those of a view.
    fn shown(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let columns = self.output.iter().map(|c| batch.column(*c).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.output_schema.clone(), columns, &options)?)
    }
}

fn gather(
    left: &RecordBatch,
    left_rows: UInt32Array,
    right: &RecordBatch,
    right_rows: UInt32Array,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let right_fields = schema.fields().iter().skip(left.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for column in left.columns() {
        columns.push(taken(column, &left_rows)?);
    }
    for (column, field) in right.columns().iter().zip(right_fields) {
        // Columns come as wide as they are now, and what an older commit holds fits as it did then.
        columns.push(cast(&taken(column, &right_rows)?, field.data_type())?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(left_rows.len()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// Some rows of a column; the column itself if they are all of it.
fn taken(column: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    let all = rows.len() == column.len() && rows.null_count() == 0;
    match all && rows.values().iter().zip(0..).all(|(row, at)| *row == at) {
        true => Ok(column.clone()),
        false => Ok(take(column, rows, None)?),
    }
}

enum Values {
    Same(i64),
    PerRow(Int64Array),
}

impl Values {
    fn at(&self, row: usize) -> Option<i64> {
        match self {
            Values::Same(v) => Some(*v),
            Values::PerRow(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

fn clock_values(
    left: &RecordBatch,
    clock: &Clock,
    expr: &Option<Arc<dyn PhysicalExpr>>,
    axis: AxisType,
    what: Axis,
    spec: &PerRowSpec,
) -> Result<Values> {
    let (Clock::PerRow { ty, .. }, Some(expr)) = (clock, expr) else {
        return Ok(Values::Same(if let Clock::Fixed(t) = clock {
            *t
        } else {
            asofdb_storage::time::FOREVER
        }));
    };
    let array = expr.evaluate(left)?.into_array(left.num_rows())?;
    let numbers = match (axis, ty) {
        (AxisType::Integer, _) => cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
        (AxisType::Instant, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) => {
            text_instants(&array, what, spec)?
        }
        (AxisType::Instant, _) => instants(&array)?,
    };
    Ok(Values::PerRow(numbers))
}

fn instants(array: &ArrayRef) -> Result<Int64Array> {
    let array = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    Ok(array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>())
}

fn text_instants(array: &ArrayRef, what: Axis, spec: &PerRowSpec) -> Result<Int64Array> {
    let texts = cast(array, &DataType::Utf8)?;
    let now = spec.context.now;
    let instant = |text: Option<&str>| -> Result<Option<i64>, SqlError> {
        let Some(text) = text else { return Ok(None) };
        let point = parse_point(text).ok_or_else(|| SqlError::invalid(format!("'{text}' is no time")))?;
        point_on_axis(point, what, AxisType::Instant, &spec.meta.name, now).map(Some)
    };
    Ok(texts.as_string::<i32>().iter().map(instant).collect::<Result<Int64Array, SqlError>>()?)
}

fn commit_values(
    left: &RecordBatch,
    clock: &Clock,
    expr: &Option<Arc<dyn PhysicalExpr>>,
    spec: &PerRowSpec,
) -> Result<Values> {
    let Some(expr) = expr else {
        return Ok(Values::Same(if let Clock::Fixed(n) = clock { *n } else { 0 }));
    };
    let array = expr.evaluate(left)?.into_array(left.num_rows())?;
    let commit = |row| -> Result<Option<i64>> {
        let value = ScalarValue::try_from_array(&array, row)?;
        Ok(spec.context.commit_of_scalar(&value)?.map(|c| c.0 as i64))
    };
    Ok(Values::PerRow((0..left.num_rows()).map(commit).collect::<Result<Int64Array>>()?))
}
