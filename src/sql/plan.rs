//! From tokens to a physical plan: spelling, lifting, parsing, planning, checking.

use super::bound::Evaluation;
use super::catalog::StoreCatalog;
use super::clock::Applied;
use super::context::{QueryContext, ScanSettings, SessionClocks};
use super::error::{SqlError, SqlErrorKind, from_datafusion, from_parser};
use super::functions;
use super::lift::{Lifted, complains_of_marker, lift, misplaced};
use super::names::{unify_spelling, words};
use super::per_row::rewrite;
use super::per_row_node::PerRowJoin;
use super::reader::Reader;
use super::relation::{AsofRelationPlanner, store_table};
use super::table::INTERVAL_COLUMNS;
use super::token::{DIALECT, Place, is_blank, is_word, tokenize};
use asofdb_storage::engine::Catalog;
use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{Query, Statement as SqlStatement, Visit, Visitor};
use datafusion::logical_expr::sqlparser::parser::Parser;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

/// Everything planning one statement needs.
pub(crate) struct Planner {
    pub reader: Arc<dyn Reader>,
    pub clocks: SessionClocks,
    pub scan: ScanSettings,
    pub state: SessionState,
    pub now: i64,
    pub evaluation: Evaluation,
}

/// A statement that is ready to run.
pub(crate) struct Planned {
    pub context: Arc<QueryContext>,
    pub plan: Arc<dyn ExecutionPlan>,
    pub task: Arc<TaskContext>,
    pub applied: Vec<Applied>,
}

impl Planner {
    /// Plans one statement.
    pub fn plan(self, mut tokens: Vec<TokenWithSpan>) -> Result<Planned, SqlError> {
        let catalog = self.reader.catalog().clone();
        let words = words(&tokens);
        unify_spelling(&mut tokens, known_names(&catalog, &words));
        let Lifted { tokens, clauses } = lift(&tokens)?;
        let statement = parse(tokens)?;
        check_kind(&statement)?;
        let statement = of_user(statement)?;
        let context = Arc::new(QueryContext::new(self.reader, self.clocks, self.now, self.scan, clauses));
        let state = query_state(self.state, &context, &self.evaluation)?;
        let statement = Statement::Statement(Box::new(statement));
        let plan = futures::executor::block_on(state.statement_to_plan(statement));
        let plan = plan.map_err(|e| from_datafusion(&e))?;
        check_used(&context)?;
        let plan = finish(plan, &state, &self.evaluation).map_err(|e| from_datafusion(&e))?;
        let applied = applied(&plan).map_err(|e| from_datafusion(&e))?;
        let physical = futures::executor::block_on(state.create_physical_plan(&plan));
        let physical = physical.map_err(|e| from_datafusion(&e))?;
        Ok(Planned { context, plan: physical, task: state.task_ctx(), applied })
    }
}

/// Names whose spelling the statement may take over: tables, and the columns of those it names.
fn known_names<'c>(catalog: &'c Catalog, words: &HashSet<String>) -> Vec<&'c str> {
    let mut names: Vec<&str> = Vec::new();
    for table in catalog.tables.values() {
        names.push(&table.name);
        if words.contains(&table.name.to_lowercase()) {
            names.extend(table.schemas.iter().flat_map(|(_, s)| &s.columns).map(|c| c.name.as_str()));
        }
    }
    names.extend(INTERVAL_COLUMNS);
    names.extend(functions::HISTORY_COLUMNS);
    if words.contains("information_schema") {
        names.extend(["information_schema", "tables", "columns", "schemata", "df_settings", "views"]);
        names.extend([
            "table_name",
            "table_schema",
            "table_catalog",
            "table_type",
            "column_name",
            "data_type",
        ]);
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn parse(tokens: Vec<TokenWithSpan>) -> Result<SqlStatement, SqlError> {
    let last = tokens.iter().rfind(|t| !is_blank(&t.token) && t.token != Token::EOF).cloned();
    let foreign = foreign_clause(&tokens);
    let mut parser = Parser::new(&DIALECT).with_tokens_with_locations(tokens);
    let statement = parser.parse_statement().map_err(|e| {
        let mut error = from_parser(&e);
        if complains_of_marker(&error.message) {
            error = SqlError { place: error.place, ..misplaced() };
        }
        if error.hint.is_none() && foreign {
            error.hint =
                Some("write FOR COMMIT AS OF n, FOR VALID_TIME AS OF t or FOR SYSTEM_TIME AS OF t".into());
        }
        // An end of input has no place of its own: it is that of the last token.
        match last.as_ref().and_then(|t| Place::of(t.span)) {
            Some(place) => error.at(place),
            None => error,
        }
    })?;
    while parser.consume_token(&Token::SemiColon) {}
    let next = parser.peek_token();
    if next.token == Token::EOF {
        return Ok(statement);
    }
    let error = match complains_of_marker(&format!("found: {}", next.token)) {
        true => misplaced(),
        false => SqlError::new(
            SqlErrorKind::Syntax,
            format!("expected the end of the statement, found: {}", next.token),
        )
        .hint("statements are run one by one, with a semicolon between them"),
    };
    Err(Place::of(next.span).map_or(error.clone(), |p| error.at(p)))
}

/// Whether the statement holds a time travel clause of another database.
fn foreign_clause(tokens: &[TokenWithSpan]) -> bool {
    let significant: Vec<&Token> = tokens.iter().map(|t| &t.token).filter(|t| !is_blank(t)).collect();
    significant.windows(3).any(|w| {
        ["VERSION", "TIMESTAMP", "SCN"].iter().any(|word| is_word(Some(w[0]), word))
            && is_word(Some(w[1]), "AS")
            && is_word(Some(w[2]), "OF")
    }) || significant.windows(2).any(|w| is_word(Some(w[0]), "AT") && *w[1] == Token::LParen)
}

/// Only questions pass.
fn check_kind(statement: &SqlStatement) -> Result<(), SqlError> {
    let what = match statement {
        SqlStatement::Query(_) if locks(statement) => {
            return Err(SqlError::unsupported("locks such as FOR UPDATE are not supported")
                .hint("leave it out: every statement reads one commit, and nothing changes under it"));
        }
        SqlStatement::Query(_)
        | SqlStatement::ExplainTable { .. }
        | SqlStatement::ShowTables { .. }
        | SqlStatement::ShowColumns { .. } => return Ok(()),
        SqlStatement::Explain { statement, .. } => return check_kind(statement),
        SqlStatement::Insert(_)
        | SqlStatement::Update(_)
        | SqlStatement::Delete(_)
        | SqlStatement::Merge(_) => {
            return Err(SqlError::unsupported("rows cannot be written from SQL")
                .hint("asofdb takes changes from their source: asof ingest"));
        }
        SqlStatement::Prepare { .. } | SqlStatement::Execute { .. } => {
            return Err(SqlError::unsupported("PREPARE and EXECUTE are not supported")
                .hint("give parameters with the statement: WHERE id = $1"));
        }
        SqlStatement::Copy { .. } | SqlStatement::CopyIntoSnowflake { .. } => {
            return Err(SqlError::unsupported("COPY is not supported").hint("use asof export"));
        }
        SqlStatement::CreateView { .. } | SqlStatement::CreateTable(_) => "CREATE TABLE and CREATE VIEW",
        other => {
            let text = other.to_string();
            let words: Vec<&str> = text.split_whitespace().take(2).collect();
            return Err(SqlError::unsupported(format!("{} is not supported", words.join(" ")))
                .hint("SQL asks questions here: SELECT, WITH, EXPLAIN, SHOW, DESCRIBE, SET asof.*"));
        }
    };
    Err(SqlError::unsupported(format!("{what} are not supported")).hint("use WITH name AS (SELECT ...)"))
}

/// What `SHOW TABLES` asks: the tables of the store, not those that describe it.
const TABLES: &str = "SELECT * FROM information_schema.tables WHERE table_schema = 'main'";

/// The statement, or the query that it stands for.
fn of_user(statement: SqlStatement) -> Result<SqlStatement, SqlError> {
    match statement {
        SqlStatement::ShowTables {
            terse: false,
            history: false,
            extended: false,
            full: false,
            external: false,
            ref show_options,
        } if show_options.to_string().is_empty() => parse(tokenize(TABLES)?),
        other => Ok(other),
    }
}

/// Whether a query or one inside it asks for locks, which DataFusion would pass over.
fn locks(statement: &SqlStatement) -> bool {
    struct Locks;
    impl Visitor for Locks {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            if query.locks.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }
    statement.visit(&mut Locks).is_break()
}

/// The session's state with the catalog, the planner and the functions of this query.
fn query_state(
    mut state: SessionState,
    context: &Arc<QueryContext>,
    evaluation: &Evaluation,
) -> Result<SessionState, SqlError> {
    state.register_catalog_list(Arc::new(StoreCatalog { context: context.clone() }));
    let planner = AsofRelationPlanner { context: context.clone(), evaluation: evaluation.clone() };
    state.register_relation_planner(Arc::new(planner)).map_err(|e| from_datafusion(&e))?;
    functions::register(&mut state, context, evaluation);
    state.execution_props_mut().query_execution_start_time =
        chrono::DateTime::from_timestamp_micros(context.now);
    Ok(state)
}

/// Rule D4, once more: a clause that no table took is an error.
fn check_used(context: &QueryContext) -> Result<(), SqlError> {
    let used = context.used.lock().unwrap_or_else(PoisonError::into_inner);
    for (number, clauses) in context.clauses.iter().enumerate() {
        if !used.contains(&number) {
            let error = misplaced();
            return Err(clauses.place().map_or(error.clone(), |p| error.at(p)));
        }
    }
    Ok(())
}

fn finish(plan: LogicalPlan, state: &SessionState, evaluation: &Evaluation) -> DfResult<LogicalPlan> {
    let plan = rewrite(plan, state, evaluation)?;
    let plan = match &evaluation.params {
        Some(params) => plan.with_param_values(params.clone())?,
        None => plan,
    };
    if let Some(name) = plan.get_parameter_names()?.into_iter().min() {
        return Err(SqlError::invalid(format!("parameter {name} has no value"))
            .hint("give one with the statement: --param name=value")
            .into());
    }
    let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    options.verify_plan(&plan)?;
    Ok(plan)
}

/// What was applied to each table of the plan, without repeats.
fn applied(plan: &LogicalPlan) -> DfResult<Vec<Applied>> {
    let mut all: Vec<Applied> = Vec::new();
    plan.apply_with_subqueries(|plan| {
        let found = match plan {
            LogicalPlan::TableScan(_) => store_table(plan).map(|(_, table)| table.applied()),
            LogicalPlan::Extension(e) => {
                e.node.as_any().downcast_ref::<PerRowJoin>().map(|j| j.spec.applied())
            }
            _ => None,
        };
        if let Some(found) = found
            && !all.contains(&found)
        {
            all.push(found);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(all)
}
