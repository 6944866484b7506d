//! Table functions: `history('t')`, `commits()`, …

mod arguments;
mod changes;
mod computed;
mod diff;
mod history;
mod keyed;
mod period;
mod spans;
mod store;
mod why;

use super::bound::Evaluation;
use super::context::QueryContext;
use super::error::SqlError;
use super::table::{Shape, TemporalTable};
use arguments::Arguments;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use datafusion::execution::SessionState;
use std::sync::Arc;

pub(crate) use history::HISTORY_COLUMNS;
pub(crate) use period::predicates as period_predicates;

/// Every table function of asofdb, and those of DataFusion that are kept.
pub(crate) const TABLE_FUNCTIONS: [TableFunction; 17] = [
    TableFunction::new("history", "'table'"),
    TableFunction::new("intervals", "'table'"),
    TableFunction::new("scd2", "'table'"),
    TableFunction::new("changes", "'table', from_commit, to_commit"),
    TableFunction::new("belief_diff", "'table', system_time_a, system_time_b"),
    TableFunction::new("timeline", "'table', key..."),
    TableFunction::new("why", "'table', key..., 'column', valid, system"),
    TableFunction::new("quarantine", ""),
    TableFunction::new("sources", ""),
    TableFunction::new("flows", ""),
    TableFunction::new("commits", ""),
    TableFunction::new("ties", "'table'"),
    TableFunction::new("files", "'table'"),
    TableFunction::new("late", "'table'"),
    TableFunction::new("generate_series", "first, last"),
    TableFunction::new("range", "first, end"),
    TableFunction::new("unnest", "array"),
];

/// How many of them are ours: they come first.
const OWN: usize = 14;

/// A table function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFunction {
    /// Its name.
    pub name: &'static str,
    /// Its arguments as usage; the name of a table is in quotes. Empty = none.
    pub arguments: &'static str,
}

impl TableFunction {
    const fn new(name: &'static str, arguments: &'static str) -> TableFunction {
        TableFunction { name, arguments }
    }
}

/// The names of all of them.
pub(crate) fn table_function_names() -> impl Iterator<Item = &'static str> {
    TABLE_FUNCTIONS.iter().map(|f| f.name)
}

#[derive(Debug)]
struct Function {
    name: &'static str,
    context: Arc<QueryContext>,
    evaluation: Evaluation,
}

/// Registers asofdb's table functions for one query.
pub(crate) fn register(state: &mut SessionState, context: &Arc<QueryContext>, evaluation: &Evaluation) {
    for TableFunction { name, .. } in &TABLE_FUNCTIONS[..OWN] {
        let function = Function { name, context: context.clone(), evaluation: evaluation.clone() };
        state.register_udtf(name, Arc::new(function));
    }
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::new(self.name, args.exprs(), &self.evaluation)?;
        Ok(self.table(&arguments)?)
    }
}

impl Function {
    fn table(&self, arguments: &Arguments) -> Result<Arc<dyn TableProvider>, SqlError> {
        let context = &self.context;
        match self.name {
            "history" => history::table(context, arguments, history::Pick::All),
            "ties" => history::table(context, arguments, history::Pick::Ties),
            "late" => history::table(context, arguments, history::Pick::Late),
            "intervals" => self.bounded(arguments, Shape::Bounded),
            "scd2" => self.bounded(arguments, Shape::Scd2),
            "changes" => changes::table(context, arguments),
            "belief_diff" => diff::table(context, arguments),
            "timeline" => keyed::timeline(context, arguments),
            "why" => why::table(context, arguments),
            "quarantine" => store::quarantine(context, arguments),
            "sources" => store::sources(context, arguments),
            "flows" => store::flows(context, arguments),
            "commits" => store::commits(context, arguments),
            "files" => keyed::files(context, arguments),
            name => Err(SqlError::unsupported(format!("{name}() is not supported yet"))),
        }
    }

    /// `intervals('t')`: every interval row of every belief; `scd2('t')`: those of the latest.
    fn bounded(&self, arguments: &Arguments, shape: Shape) -> Result<Arc<dyn TableProvider>, SqlError> {
        arguments.expect(1, 1, "'table'")?;
        let meta = arguments.table(0, &self.context)?;
        let mut bounds = self.context.default_bounds(&meta)?;
        bounds.valid = asofdb_storage::engine::RangeSpec::All;
        bounds.system = match shape {
            Shape::Bounded => asofdb_storage::engine::RangeSpec::All,
            Shape::Scd2 => asofdb_storage::engine::RangeSpec::Latest,
        };
        arguments.note_session_clocks(&self.context);
        Ok(Arc::new(TemporalTable::new(self.context.clone(), meta, bounds, shape)))
    }
}
