//! The relation planner: looks at every table factor before DataFusion does, because DataFusion
//! drops what it does not know and answers with today's rows (rule D4).

use super::bound::{Evaluation, constant_point, has_columns, has_subquery};
use super::clause::{Axis, Clause, Spec};
use super::clock::PointSpec;
use super::context::{QueryContext, TableBounds};
use super::error::{SqlError, SqlErrorKind, from_datafusion};
use super::functions::{TABLE_FUNCTIONS, table_function_names};
use super::lift::{Clauses, marker_number};
use super::names::some_of;
use super::per_row::{PerRowBound, PerRowTable};
use super::scan_name::named_call;
use super::table::{Shape, TemporalTable};
use super::token::Place;
use asofdb_storage::engine::RangeSpec;
use asofdb_storage::schema::TableMeta;
use datafusion::common::Result;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, Ident, ObjectName, ObjectNamePart, Spanned, TableAlias, TableFactor,
    TableFunctionArgs,
};
use datafusion::logical_expr::{LogicalPlan, TableScan};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See the module.
#[derive(Debug)]
pub(crate) struct AsofRelationPlanner {
    pub context: Arc<QueryContext>,
    pub evaluation: Evaluation,
}

impl RelationPlanner for AsofRelationPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        planner: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if self.context.inside.swap(false, Ordering::Relaxed) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        match relation {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                let hinted = !with_hints.is_empty() || !index_hints.is_empty();
                for (present, what, hint) in [
                    (version.is_some(), "this version clause", VERSION_HINT),
                    (hinted, "table hints", "leave them out"),
                    (with_ordinality, "WITH ORDINALITY", ORDINALITY_HINT),
                    (json_path.is_some(), "a path behind a table name", "leave it out"),
                    (sample.is_some(), "TABLESAMPLE", "filter with random() < 0.1 instead"),
                ] {
                    refuse_if(present, &name, what, hint)?;
                }
                let clauses = self.take_markers(&name, partitions)?;
                self.plan_table(name, alias, args, clauses, planner)
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                if sample.is_some() {
                    return Err(SqlError::unsupported("TABLESAMPLE is not supported").into());
                }
                Ok(original(TableFactor::Derived { lateral, subquery, alias, sample }))
            }
            factor @ (TableFactor::NestedJoin { table_with_joins: _, alias: _ }
            | TableFactor::UNNEST {
                alias: _,
                array_exprs: _,
                with_offset: _,
                with_offset_alias: _,
                with_ordinality: _,
            }) => Ok(original(factor)),
            TableFactor::Function { lateral, name, args, with_ordinality, alias } => {
                refuse_if(with_ordinality, &name, "WITH ORDINALITY", ORDINALITY_HINT)?;
                let name = function_name(name)?;
                let call = call_text(&name, &args);
                let factor = TableFactor::Function { lateral, name, args, with_ordinality, alias: None };
                let plan = named_call(self.original(factor, planner)?, call)?;
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
            }
            TableFactor::TableFunction { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::MatchRecognize { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. } => {
                Err(SqlError::unsupported("this kind of table expression is not supported").into())
            }
        }
    }
}

const ORDINALITY_HINT: &str = "number rows with row_number() OVER ()";
const VERSION_HINT: &str = "write FOR VALID_TIME, FOR SYSTEM_TIME or FOR COMMIT AS OF ... after the table";

fn original(factor: TableFactor) -> RelationPlanning {
    RelationPlanning::Original(Box::new(factor))
}

fn place_of(name: &ObjectName) -> Option<Place> {
    Place::of(name.span())
}

fn at_name(error: SqlError, name: &ObjectName) -> SqlError {
    match place_of(name) {
        Some(place) => error.at(place),
        None => error,
    }
}

fn refuse_if(present: bool, name: &ObjectName, what: &str, hint: &str) -> Result<(), SqlError> {
    if !present {
        return Ok(());
    }
    Err(at_name(SqlError::unsupported(format!("{what} at {name} is not supported")).hint(hint), name))
}

/// The table function in its own spelling, or an error that names the near one.
fn function_name(name: ObjectName) -> Result<ObjectName, SqlError> {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
        return Err(at_name(SqlError::invalid(format!("there is no table function {name}")), &name));
    };
    let lower = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
    if TABLE_FUNCTIONS.iter().any(|f| f.name == lower) {
        let ident = Ident { value: lower, quote_style: None, span: ident.span };
        return Ok(ObjectName(vec![ObjectNamePart::Identifier(ident)]));
    }
    let error = at_name(SqlError::invalid(format!("there is no table function {name}")), &name);
    Err(match crate::near::nearest(&lower, table_function_names()) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => {
            let names: Vec<&str> = table_function_names().collect();
            error.hint(format!("there are: {}", names.join(", ")))
        }
    })
}

/// A table of the store with its bounds worked out, or with bounds to be worked out row by row.
#[allow(clippy::large_enum_variant)]
enum Bounded {
    Fixed(TemporalTable),
    PerRow(PerRowTable),
}

/// A call as text: equal only for equal arguments.
fn call_text(name: &ObjectName, args: &[FunctionArg]) -> String {
    let args: Vec<String> = args.iter().map(FunctionArg::to_string).collect();
    format!("{name}({})", args.join(", "))
}

impl AsofRelationPlanner {
    /// The clauses that a marker stands for. Every other partition list is refused.
    fn take_markers(&self, name: &ObjectName, partitions: Vec<Ident>) -> Result<Option<Clauses>, SqlError> {
        let Some(first) = partitions.first() else { return Ok(None) };
        let number = (partitions.len() == 1 && first.quote_style.is_none())
            .then(|| marker_number(&first.value))
            .flatten()
            .filter(|n| *n < self.context.clauses.len());
        let Some(number) = number else {
            refuse_if(true, name, "PARTITION", "filter the rows with WHERE")?;
            return Ok(None);
        };
        self.context.mark_used(number);
        Ok(self.context.clauses.get(number).cloned())
    }

    fn plan_table(
        &self,
        name: ObjectName,
        alias: Option<TableAlias>,
        args: Option<TableFunctionArgs>,
        clauses: Option<Clauses>,
        planner: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let is_function = args.is_some();
        let shown = name.to_string();
        let place = place_of(&name);
        let clause_place = clauses.as_ref().and_then(Clauses::place);
        if is_function && let Some(place) = clause_place {
            return Err(on_function(&shown).at(place).into());
        }
        let name = if is_function { function_name(name)? } else { name };
        let call = args.as_ref().map(|a| call_text(&name, &a.args));
        let plan =
            self.plain(name, args, planner).map_err(|e| self.located(&e, &shown, place, is_function))?;
        if let Some(call) = call {
            let plan = named_call(plan, call)?;
            return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))));
        }
        let at = |e: SqlError| clause_place.or(place).map_or(e.clone(), |p| e.at(p));
        let (scan, table) = match store_table(&plan) {
            // Without clauses too: the table of the catalog does not know the clocks of the session.
            Some((scan, table)) => (scan, table),
            _ if clauses.is_some() => return Err(at(not_temporal(&shown)).into()),
            _ => return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias)))),
        };
        let bounded = self.bounded(&table.meta, &clauses.unwrap_or_default(), planner).map_err(at)?;
        let plan = match bounded {
            Bounded::Fixed(table) => table.into_scan(scan.table_name.clone())?,
            Bounded::PerRow(table) => table.into_scan(scan.table_name.clone())?,
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }

    /// The relation without clauses, by DataFusion: only it knows which name is a CTE.
    fn plain(
        &self,
        name: ObjectName,
        args: Option<TableFunctionArgs>,
        planner: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let factor = TableFactor::Table {
            name,
            alias: None,
            args,
            with_hints: Vec::new(),
            version: None,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        };
        self.original(factor, planner)
    }

    /// What DataFusion makes of a factor, without a second look at it.
    fn original(&self, factor: TableFactor, planner: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        self.context.inside.store(true, Ordering::Relaxed);
        let plan = planner.plan(factor);
        self.context.inside.store(false, Ordering::Relaxed);
        plan
    }

    /// Gives the error of an unknown table its place and a near name.
    fn located(
        &self,
        e: &datafusion::common::DataFusionError,
        shown: &str,
        place: Option<Place>,
        is_function: bool,
    ) -> SqlError {
        let mut error = from_datafusion(e);
        if !is_function && error.kind == SqlErrorKind::Invalid && error.message.contains("not found") {
            let tables = &self.context.reader.catalog().tables;
            let names: Vec<&str> = tables.values().map(|t| t.name.as_str()).collect();
            error = SqlError::invalid(format!("there is no table {shown}"));
            error.hint = Some(
                match crate::near::nearest(shown.rsplit('.').next().unwrap_or(shown), names.iter().copied()) {
                    Some(near) => format!("did you mean {near}?"),
                    None if shown.contains(['/', '.']) => {
                        "files are not read from SQL: take them in with asof ingest".into()
                    }
                    None if names.is_empty() => {
                        "the store has no tables yet: take files in with asof ingest".into()
                    }
                    None => format!("there are: {}", some_of(&names)),
                },
            );
        }
        place.map_or(error.clone(), |p| error.at(p))
    }

    fn bounded(
        &self,
        meta: &Arc<TableMeta>,
        clauses: &Clauses,
        planner: &mut dyn RelationPlannerContext,
    ) -> Result<Bounded, SqlError> {
        let Clauses { valid, system, commit } = clauses;
        let valid = self.time_bound(meta, Axis::Valid, valid.as_ref(), planner)?;
        let system = self.time_bound(meta, Axis::System, system.as_ref(), planner)?;
        let commit = self.commit_bound(commit.as_ref(), planner)?;
        if let (PerRowBound::Fixed(valid), PerRowBound::Fixed(system), PerRowBound::Fixed(commit)) =
            (&valid, &system, &commit)
        {
            let bounds = TableBounds { valid: *valid, system: *system, commit: *commit };
            let bounds = self.context.settle(meta, bounds);
            let table = TemporalTable::new(self.context.clone(), meta.clone(), bounds, Shape::Bounded);
            return Ok(Bounded::Fixed(table));
        }
        PerRowTable::new(self.context.clone(), meta.clone(), valid, system, commit).map(Bounded::PerRow)
    }

    fn time_bound(
        &self,
        meta: &TableMeta,
        axis: Axis,
        clause: Option<&Clause>,
        planner: &mut dyn RelationPlannerContext,
    ) -> Result<PerRowBound<RangeSpec>, SqlError> {
        let ty = if axis == Axis::Valid { meta.valid_axis } else { meta.system_axis };
        let Some(Clause { axis: _, spec, place }) = clause else {
            return Ok(PerRowBound::Fixed(self.context.default_time(axis, ty, &meta.name)?));
        };
        if let Some(bound) = per_row(spec).map_err(|e| e.at(*place))? {
            return Ok(bound);
        }
        PointSpec::of(spec, |e| constant_point(e, &self.evaluation, planner))
            .and_then(|spec| spec.on_axis(axis, ty, &meta.name, self.context.now))
            .map(PerRowBound::Fixed)
            .map_err(|e| e.at(*place))
    }

    fn commit_bound(
        &self,
        clause: Option<&Clause>,
        planner: &mut dyn RelationPlannerContext,
    ) -> Result<PerRowBound<asofdb_storage::time::CommitSeq>, SqlError> {
        let Some(Clause { axis: _, spec, place }) = clause else {
            return Ok(PerRowBound::Fixed(self.context.default_commit()?));
        };
        if let Some(bound) = per_row(spec).map_err(|e| e.at(*place))? {
            return Ok(bound);
        }
        let Spec::AsOf(expr) = spec else {
            return Err(SqlError::invalid("a commit is bounded by AS OF only").at(*place));
        };
        constant_point(expr, &self.evaluation, planner)
            .and_then(|p| self.context.commit(p))
            .map(PerRowBound::Fixed)
            .map_err(|e| e.at(*place))
    }
}

/// A bound that refers to columns: only AS OF may.
fn per_row<T>(spec: &Spec) -> Result<Option<PerRowBound<T>>, SqlError> {
    let exprs: &[&SqlExpr] = match spec {
        Spec::All => &[],
        Spec::AsOf(e) => &[e],
        Spec::FromTo(a, b) | Spec::Between(a, b) | Spec::ContainedIn(a, b) => &[a, b],
    };
    if exprs.iter().any(|e| has_subquery(e)) {
        return Err(SqlError::unsupported("a bound cannot be a subquery")
            .hint("run the subquery first and give its result as a parameter"));
    }
    let range = match spec {
        Spec::All => return Ok(None),
        Spec::AsOf(e) => return Ok(has_columns(e).then(|| PerRowBound::PerRow(e.clone()))),
        Spec::FromTo(a, b) | Spec::Between(a, b) | Spec::ContainedIn(a, b) => {
            has_columns(a) || has_columns(b)
        }
    };
    if range {
        return Err(SqlError::unsupported("a range cannot refer to columns")
            .hint("read FOR VALID_TIME ALL and compare __START_AT and __END_AT in the join"));
    }
    Ok(None)
}

/// The table of the store that a plan reads and nothing else, if it does.
pub(crate) fn store_table(plan: &LogicalPlan) -> Option<(&TableScan, Arc<TemporalTable>)> {
    let LogicalPlan::TableScan(scan) = plan else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    let any: Arc<dyn std::any::Any + Send + Sync> = provider;
    Some((scan, any.downcast::<TemporalTable>().ok()?))
}

fn not_temporal(name: &str) -> SqlError {
    SqlError::unsupported(format!("a temporal clause cannot stand at {name}: it is no table of the store"))
        .hint("write the clause at the tables it reads from, or set it for all: SET asof.valid_time = ...")
}

fn on_function(name: &str) -> SqlError {
    SqlError::unsupported(format!("a temporal clause cannot stand at the table function {name}"))
        .hint("filter its columns, or bound the commit for all: SET asof.commit = n")
}
