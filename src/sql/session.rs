//! Sessions: what the shell and the library ask questions through.

use super::answer::{Answer, Params, bounded_stream};
use super::bound::Evaluation;
use super::clause::Axis;
use super::context::{LabelSettings, QueryContext, ScanSettings, SessionClocks};
use super::deadline::Deadline;
use super::error::{SqlError, from_datafusion};
use super::flow::read_flow;
use super::flow_answer::question;
use super::functions::{TABLE_FUNCTIONS, TableFunction};
use super::plan::{Planned, Planner};
use super::reader::{Reader, ReaderSource};
use super::settings::{Clock, Setting, SettingStatement, Settings, Shown, read_setting, setting_value};
use super::single::SingleRow;
use super::token::{check_limits, is_blank, tokenize};
use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, ParamValues};
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::AggregateUDF;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A session: its clocks, its settings, its memory. One statement after the other, or several at
/// once from several tasks. `run` and the streams of its answers need a tokio runtime with timers.
pub struct Session {
    pub(super) source: Arc<dyn ReaderSource>,
    pub(super) settings: Settings,
    clock: Clock,
    base: SessionState,
    state: Mutex<Shown>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("source", &self.source)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session over a store. `clock` gives the running time in microseconds since 1970.
    ///
    /// # Errors
    /// If the spill directory cannot be used.
    pub fn new(source: Arc<dyn ReaderSource>, settings: Settings, clock: Clock) -> Result<Session, SqlError> {
        let base = base_state(&settings).map_err(|e| from_datafusion(&e))?;
        let state = Shown { clocks: SessionClocks::default(), timeout: settings.timeout };
        Ok(Session { source, settings, clock, base, state: Mutex::new(state) })
    }

    /// The clocks that the session sets for tables without a clause.
    pub fn clocks(&self) -> SessionClocks {
        self.shown().clocks
    }

    /// Sets the clocks, as `SET asof.…` does.
    pub fn set_clocks(&self, clocks: SessionClocks) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clocks = clocks;
    }

    /// The streams that a scan is split into.
    pub(crate) fn partitions(&self) -> usize {
        self.settings.partitions
    }

    /// The newest commit of the store, as a statement that begins now would see it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn pin(&self) -> Result<Arc<dyn Reader>, SqlError> {
        Ok(self.source.pin()?)
    }

    /// Names of every function that a statement may call, table functions included, sorted.
    pub fn functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self.table_functions().map(|f| f.name.to_owned()).collect();
        names.extend(self.base.scalar_functions().keys().cloned());
        names.extend(self.base.aggregate_functions().keys().cloned());
        names.extend(self.base.window_functions().keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    /// The functions that stand where a table may.
    pub fn table_functions(&self) -> impl Iterator<Item = TableFunction> {
        TABLE_FUNCTIONS.into_iter()
    }

    fn shown(&self) -> Shown {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one statement. A text of comments and white space alone gives an empty answer. Places
    /// in errors are those of `text`.
    ///
    /// # Errors
    /// [`SqlError`]; errors of the running query come through the answer's stream.
    pub async fn run(&self, text: &str, params: &Params) -> Result<Answer, SqlError> {
        if text.len() > self.settings.limits.bytes_max {
            check_limits(text, &[], &self.settings.limits)?;
        }
        let mut tokens = tokenize(text)?;
        check_limits(text, &tokens, &self.settings.limits)?;
        number_placeholders(&mut tokens);
        if tokens.iter().all(|t| is_blank(&t.token) || matches!(t.token, Token::SemiColon | Token::EOF)) {
            return Ok(self.empty_answer(Vec::new()));
        }
        if let Some((statement, place)) = read_flow(&tokens)? {
            match question(&statement) {
                Some(question) => tokens = tokenize(question)?,
                None => return self.flow(text, statement, place).await,
            }
        }
        let now = (self.clock)();
        let evaluation = self.evaluation(now, params);
        match read_setting(&tokens)? {
            Some(statement) => self.setting(statement, &evaluation),
            None => self.query(tokens, now, evaluation).await,
        }
    }

    fn evaluation(&self, now: i64, params: &Params) -> Evaluation {
        let params = (!params.is_empty())
            .then(|| ParamValues::from(params.by_name().into_iter().collect::<HashMap<_, _>>()));
        Evaluation {
            options: self.base.config_options().clone(),
            now: chrono::DateTime::from_timestamp_micros(now),
            params,
        }
    }

    fn setting(&self, statement: SettingStatement, evaluation: &Evaluation) -> Result<Answer, SqlError> {
        let name = match statement {
            SettingStatement::Show(name) => return self.show(name.as_deref()),
            SettingStatement::Reset(name) => {
                self.reset(name.as_deref());
                return Ok(self.empty_answer(Vec::new()));
            }
            SettingStatement::Set(name, tokens) => {
                let value = setting_value(&name, &tokens, &self.base, evaluation)?;
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                match value {
                    Setting::Timeout(timeout) => state.timeout = timeout,
                    Setting::Clock(Axis::Valid, point) => state.clocks.valid = point,
                    Setting::Clock(Axis::System, point) => state.clocks.system = point,
                    Setting::Clock(Axis::Commit, point) => state.clocks.commit = point,
                }
                name
            }
        };
        let rows = self.shown().rows(Some(&name));
        Ok(self.empty_answer(rows.into_iter().map(|(n, v)| format!("{n} = {v}")).collect()))
    }

    fn reset(&self, name: Option<&str>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |n: &str| name.is_none_or(|name| name == n);
        if wanted("asof.valid_time") {
            state.clocks.valid = None;
        }
        if wanted("asof.system_time") {
            state.clocks.system = None;
        }
        if wanted("asof.commit") {
            state.clocks.commit = None;
        }
        if wanted("asof.timeout") {
            state.timeout = self.settings.timeout;
        }
    }

    fn show(&self, name: Option<&str>) -> Result<Answer, SqlError> {
        self.texts_answer(["name", "value"], self.shown().rows(name))
    }

    /// An answer of two columns of text.
    pub(super) fn texts_answer<N: Into<String>>(
        &self,
        names: [&str; 2],
        rows: Vec<(N, String)>,
    ) -> Result<Answer, SqlError> {
        let (left, right): (Vec<String>, Vec<String>) = rows.into_iter().map(|(n, v)| (n.into(), v)).unzip();
        let fields = names.map(|n| Field::new(n, DataType::Utf8, false));
        let schema: SchemaRef = Arc::new(Schema::new(fields.to_vec()));
        let columns: Vec<datafusion::arrow::array::ArrayRef> =
            vec![Arc::new(StringArray::from(left)), Arc::new(StringArray::from(right))];
        let batch = RecordBatch::try_new(schema.clone(), columns)
            .map_err(|e| from_datafusion(&DataFusionError::from(e)))?;
        let mut answer = self.empty_answer(Vec::new());
        answer.schema = schema;
        answer.stream = futures::stream::iter([Ok(batch)]).boxed();
        Ok(answer)
    }

    pub(super) fn empty_answer(&self, notices: Vec<String>) -> Answer {
        Answer {
            schema: Arc::new(Schema::empty()),
            stream: futures::stream::empty().boxed(),
            applied: Vec::new(),
            notices,
            commit: Default::default(),
            commit_at: None,
            one_key: None,
        }
    }

    async fn query(
        &self,
        tokens: Vec<TokenWithSpan>,
        now: i64,
        evaluation: Evaluation,
    ) -> Result<Answer, SqlError> {
        let shown = self.shown();
        let reader = self.source.pin()?;
        let scan = ScanSettings {
            partitions: self.settings.partitions,
            rows_per_key_max: self.settings.rows_per_key_max,
            labels: LabelSettings {
                rows_max: self.settings.label_rows_max,
                single_keys: self.settings.label_single_keys,
            },
        };
        // What has a deadline is run where it can be left waiting.
        if shown.timeout.is_none() {
            let context = |clauses| QueryContext::new(reader.clone(), shown.clocks, now, scan, clauses);
            if let Some(single) = SingleRow::of(&tokens, &evaluation, context) {
                return Ok(single_answer(&single));
            }
        }
        let mut deadline = shown.timeout.map(Deadline::after).transpose()?;
        let state = self.base.clone();
        let planner = Planner { reader, clocks: shown.clocks, scan, state, now, evaluation };
        let Planned { context, plan, task, applied } =
            self.plan_apart(planner, tokens, deadline.as_mut()).await?;
        let schema = plan.schema();
        let stream =
            datafusion::physical_plan::execute_stream(plan, task).map_err(|e| from_datafusion(&e))?;
        Ok(Answer {
            schema,
            stream: bounded_stream(stream, deadline),
            applied,
            notices: context.take_notices(),
            commit: context.reader.commit(),
            commit_at: context.reader.commit_at(),
            one_key: context.one_key(),
        })
    }

    /// Plans on a thread with a big stack, so that a deep statement cannot end the process.
    async fn plan_apart(
        &self,
        planner: Planner,
        tokens: Vec<TokenWithSpan>,
        deadline: Option<&mut Deadline>,
    ) -> Result<Planned, SqlError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Handle::current();
        let plan = move || {
            let _guard = runtime.enter();
            let planned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| planner.plan(tokens)));
            // Nobody waits any more if the statement was cancelled.
            let _ = sender.send(planned.unwrap_or_else(|_| Err(planning_failed())));
        };
        std::thread::Builder::new()
            .name("asof-plan".into())
            .stack_size(self.settings.stack_bytes)
            .spawn(plan)
            .map_err(|e| {
                SqlError::new(super::error::SqlErrorKind::Limit, format!("no thread to plan on: {e}"))
            })?;
        let received = match deadline {
            None => receiver.await,
            Some(deadline) => deadline.bound(receiver).await?,
        };
        received.unwrap_or_else(|_| Err(planning_failed()))
    }
}

/// The answer to a statement that asks for the row of one key.
fn single_answer(single: &SingleRow) -> Answer {
    let row = single.row().transpose();
    let context = &single.context;
    Answer {
        schema: single.schema.clone(),
        stream: futures::stream::iter(row).boxed(),
        applied: vec![single.applied.clone()],
        notices: context.take_notices(),
        commit: context.reader.commit(),
        commit_at: context.reader.commit_at(),
        one_key: context.one_key(),
    }
}

fn planning_failed() -> SqlError {
    SqlError::new(
        super::error::SqlErrorKind::Internal,
        "the statement could not be planned: a fault of asofdb",
    )
    .hint("please report the statement; the store is not affected")
}

/// `?` becomes `$1`, `$2`, …
fn number_placeholders(tokens: &mut [TokenWithSpan]) {
    let mut n = 0;
    for t in tokens {
        if let Token::Placeholder(name) = &mut t.token
            && name == "?"
        {
            n += 1;
            *name = format!("${n}");
        }
    }
}

/// What all queries of a session share: functions, rules, memory.
fn base_state(settings: &Settings) -> Result<SessionState, DataFusionError> {
    let mode = match &settings.spill_directory {
        Some(directory) => DiskManagerMode::Directories(vec![directory.clone()]),
        None => DiskManagerMode::Disabled,
    };
    let disk =
        DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(settings.spill_bytes_max);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(settings.memory_bytes_max)))
        .with_disk_manager_builder(disk)
        .build_arc()?;
    let mut config = SessionConfig::new()
        .with_target_partitions(settings.partitions)
        .with_batch_size(settings.batch_rows)
        .with_information_schema(true)
        .with_default_catalog_and_schema(super::catalog::CATALOG, super::catalog::SCHEMA);
    let options = config.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.collect_spans = true;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.execution.time_zone = Some("+00:00".into());
    // What each stream keeps back for merging what it spilled must leave room in a small pool to sort in.
    let kept_back = settings.memory_bytes_max / (16 * settings.partitions.max(1));
    let usual = options.execution.sort_spill_reservation_bytes;
    options.execution.sort_spill_reservation_bytes = usual.min(kept_back);
    let mut state = datafusion::execution::SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_query_planner(Arc::new(super::per_row_exec::AsofQueryPlanner))
        .with_analyzer_rule(Arc::new(super::arithmetic::CheckedArithmetic))
        .with_physical_optimizer_rule(Arc::new(super::yielding::YieldingJoins))
        .build();
    for predicate in super::functions::period_predicates() {
        datafusion::execution::FunctionRegistry::register_udf(&mut state, Arc::new(predicate))?;
    }
    super::texts::bound_texts(&mut state)?;
    let sum = AggregateUDF::new_from_impl(super::arithmetic::WideSum::new());
    datafusion::execution::FunctionRegistry::register_udaf(&mut state, Arc::new(sum))?;
    Ok(state)
}
