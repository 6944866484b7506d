use super::arguments::Arguments;
use crate::sql::context::QueryContext;
use crate::sql::error::SqlError;
use datafusion::catalog::TableProvider;
use std::sync::Arc;

pub(crate) fn timeline(
    _: &Arc<QueryContext>,
    arguments: &Arguments,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    Err(SqlError::unsupported(format!("{}() is not supported yet", arguments.function)))
}
