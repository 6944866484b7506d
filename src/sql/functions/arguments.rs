//! Arguments of table functions: constants, checked with messages that name the function.

use crate::sql::bound::Evaluation;
use crate::sql::clock::{Point, point_of_scalar};
use crate::sql::context::QueryContext;
use crate::sql::error::{SqlError, from_datafusion};
use crate::sql::names::some_of;
use asofdb_storage::schema::TableMeta;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

pub(crate) struct Arguments {
    pub function: &'static str,
    pub values: Vec<ScalarValue>,
}

impl Arguments {
    pub fn new(
        function: &'static str,
        exprs: &[Expr],
        evaluation: &Evaluation,
    ) -> Result<Arguments, SqlError> {
        let value = |e: &Expr| {
            let value = evaluation.argument(e).map_err(|e| from_datafusion(&e))?;
            value.ok_or_else(|| {
                let error = SqlError::invalid(format!("{function}(): the argument {e} is not constant"));
                match e {
                    Expr::Column(_) => error.hint(format!("names are texts here: {function}('{e}')")),
                    _ => error,
                }
            })
        };
        Ok(Arguments { function, values: exprs.iter().map(value).collect::<Result<_, _>>()? })
    }

    /// Checks how many arguments there are.
    pub fn expect(&self, min: usize, max: usize, usage: &str) -> Result<(), SqlError> {
        if (min..=max).contains(&self.values.len()) {
            return Ok(());
        }
        let Arguments { function, values } = self;
        Err(SqlError::invalid(format!(
            "{function}() was given {}",
            crate::count::of(values.len(), "argument")
        ))
        .hint(format!("write {function}({usage})")))
    }

    /// Argument `i` as the name of a table; equal but for case will do where only one is.
    pub fn table(&self, i: usize, context: &QueryContext) -> Result<Arc<TableMeta>, SqlError> {
        let function = self.function;
        let Some(Some(name)) = self.values.get(i).map(|v| v.try_as_str().flatten()) else {
            return Err(SqlError::invalid(format!("{function}(): the table's name must be a text"))
                .hint(format!("write {function}('table')")));
        };
        let tables = &context.reader.catalog().tables;
        if let Some(meta) = context.reader.catalog().table(name) {
            return Ok(meta.clone());
        }
        let mut alike = tables.values().filter(|t| t.name.eq_ignore_ascii_case(name));
        if let (Some(meta), None) = (alike.next(), alike.next()) {
            return Ok(meta.clone());
        }
        let names: Vec<&str> = tables.values().map(|t| t.name.as_str()).collect();
        let error = SqlError::invalid(format!("{function}(): there is no table {name}"));
        Err(match crate::near::nearest(name, names.iter().copied()) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint(format!("there are: {}", some_of(&names))),
        })
    }

    /// Argument `i` as a point; `None` if it was not given or is NULL.
    pub fn point(&self, i: usize) -> Result<Option<Point>, SqlError> {
        match self.values.get(i) {
            Some(value) => point_of_scalar(value),
            None => Ok(None),
        }
    }

    /// Says so where the session's time axes have no bearing on the answer.
    pub fn note_session_clocks(&self, context: &QueryContext) {
        let clocks = &context.clocks;
        if clocks.valid.is_some() || clocks.system.is_some() {
            context.notice(format!(
                "{}() shows all times: asof.valid_time and asof.system_time of the session do not bound it",
                self.function
            ));
        }
    }
}
