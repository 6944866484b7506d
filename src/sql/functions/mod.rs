//! Table functions: `history('t')`, `commits()`, …

mod arguments;
mod changes;
mod computed;
mod diff;
mod history;
mod keyed;
mod store;

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

/// Every table function of asofdb, and those of DataFusion that are kept.
pub(crate) const FUNCTION_NAMES: [&str; 17] = [
    "history",
    "intervals",
    "scd2",
    "changes",
    "belief_diff",
    "timeline",
    "why",
    "quarantine",
    "sources",
    "flows",
    "commits",
    "ties",
    "files",
    "late",
    "generate_series",
    "range",
    "unnest",
];

/// Those of them that say only that they are not supported yet.
pub(crate) const UNSUPPORTED_NAMES: [&str; 2] = ["why", "flows"];

#[derive(Debug)]
struct Function {
    name: &'static str,
    context: Arc<QueryContext>,
    evaluation: Evaluation,
}

/// Registers asofdb's table functions for one query.
pub(crate) fn register(state: &mut SessionState, context: &Arc<QueryContext>, evaluation: &Evaluation) {
    for name in &FUNCTION_NAMES[..14] {
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
            "quarantine" => store::quarantine(context, arguments),
            "sources" => store::sources(context, arguments),
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
