//! What statements about flows do: changes of the catalog, and answers about what is declared.

use super::answer::Answer;
use super::error::{SqlError, SqlErrorKind};
use super::flow::{FlowStatement, at};
use super::flow_clauses::of_library;
use super::reader::{Changed, ReaderSource};
use super::session::Session;
use super::token::Place;
use crate::flow::{Flow, declare, drop_flow, find, named};
use asofdb_storage::engine::{Catalog, CommitRequest};

/// What a statement changes, and what is said of it.
struct Change {
    request: Option<CommitRequest>,
    said: String,
}

impl Session {
    /// Carries out a statement about flows; `SHOW FLOWS` gives the tokens of the question it stands for.
    pub(super) async fn flow(
        &self,
        text: &str,
        statement: FlowStatement,
        place: Option<Place>,
    ) -> Result<Answer, SqlError> {
        match statement {
            FlowStatement::Describe(name) => {
                let flow = self.declared(&name, place)?;
                self.texts_answer(["name", "value"], described(&flow))
            }
            FlowStatement::ShowCreate(name) => {
                let flow = self.declared(&name, place)?;
                self.texts_answer(["flow", "statement"], vec![(flow.name.clone(), format!("{flow};"))])
            }
            _ if self.settings.read_only => Err(SqlError::unsupported("this session only asks questions")),
            change => {
                let (source, text) = (self.source.clone(), text.to_owned());
                // Opening a store to write may take its time.
                let changed =
                    tokio::task::spawn_blocking(move || changed(&*source, &text, &change, place)).await;
                let failed = |e| SqlError::new(SqlErrorKind::Internal, format!("the change failed: {e}"));
                Ok(self.empty_answer(vec![changed.map_err(failed)??]))
            }
        }
    }

    fn declared(&self, name: &str, place: Option<Place>) -> Result<Flow, SqlError> {
        let reader = self.source.pin()?;
        find(reader.catalog(), name).map_err(|e| at(of_library(&e), place))
    }
}

/// `SHOW FLOWS` is a question.
pub(super) fn question(statement: &FlowStatement) -> Option<&'static str> {
    matches!(statement, FlowStatement::Show).then_some("SELECT * FROM flows()")
}

pub(super) fn changed(
    source: &dyn ReaderSource,
    text: &str,
    statement: &FlowStatement,
    place: Option<Place>,
) -> Result<String, SqlError> {
    let mut said = String::new();
    let commit = source.change(text, &mut |catalog| {
        let change = change(statement, catalog).map_err(|e| at(e, place))?;
        said = change.said;
        Ok(change.request)
    })?;
    Ok(match commit {
        Changed::Here(Some(commit)) => format!("{said}, commit {}", commit.seq),
        Changed::Here(None) => said,
        Changed::Elsewhere(said) => said,
    })
}

fn change(statement: &FlowStatement, catalog: &Catalog) -> Result<Change, SqlError> {
    match statement {
        FlowStatement::Create { flow, replace, if_not_exists } => {
            create(flow, *replace, *if_not_exists, catalog)
        }
        FlowStatement::Alter { name, source, clauses } => {
            let mut flow = find(catalog, name).map_err(|e| of_library(&e))?;
            flow.source = source.clone().unwrap_or(flow.source);
            flow.clauses = flow.clauses.replaced_by(clauses);
            check(&flow, catalog)?;
            let said = format!("flow {} altered; a run takes it up with its next turn", flow.name);
            Ok(Change { request: Some(declare(&flow, "alter-flow")), said })
        }
        FlowStatement::Drop { name, if_exists } => match there(catalog, name) {
            Some(name) => {
                let said = format!("flow {name} dropped; the rows it brought stay");
                Ok(Change { request: Some(drop_flow(&name)), said })
            }
            None if *if_exists => Ok(Change { request: None, said: format!("there is no flow {name}") }),
            None => Err(match find(catalog, name) {
                Err(e) => of_library(&e),
                Ok(_) => SqlError::invalid(format!("there is no flow {name}")),
            }),
        },
        FlowStatement::Show | FlowStatement::Describe(_) | FlowStatement::ShowCreate(_) => {
            Err(SqlError::new(SqlErrorKind::Internal, "this statement changes nothing"))
        }
    }
}

/// The name of the flow that is meant, readable or not.
fn there(catalog: &Catalog, name: &str) -> Option<String> {
    Some(named(&crate::flow::flows(catalog), name)?.name.clone())
}

fn create(flow: &Flow, replace: bool, if_not_exists: bool, catalog: &Catalog) -> Result<Change, SqlError> {
    let mut flow = flow.clone();
    if let Some(name) = there(catalog, &flow.name) {
        if if_not_exists {
            return Ok(Change { request: None, said: format!("flow {name} is there already, unchanged") });
        }
        if !replace {
            return Err(SqlError::invalid(format!("flow {name} is there already"))
                .hint("CREATE OR REPLACE FLOW declares it again, ALTER FLOW name SET ... changes clauses"));
        }
        flow.name = name;
    }
    check(&flow, catalog)?;
    let said = format!("flow {} declared; asof run runs it", flow.name);
    Ok(Change { request: Some(declare(&flow, "create-flow")), said })
}

/// What the flow says must make sense, and fit the tables that are there.
fn check(flow: &Flow, catalog: &Catalog) -> Result<(), SqlError> {
    flow.options().map_err(|e| of_library(&e))?;
    crate::flow::check(flow).map_err(|e| of_library(&e))?;
    for other in crate::flow::flows(catalog).into_iter().filter_map(|f| f.flow.ok()) {
        let shared = flow.source_name().filter(|name| other.source_name() == Some(name));
        if let Some(name) =
            shared.filter(|_| other.name != flow.name && other.source.kind == flow.source.kind)
        {
            return Err(SqlError::invalid(format!("flow {} has the source_name {name} already", other.name))
                .hint("what one of them took the other would never see; leave source_name out"));
        }
    }
    for wanted in flow.target.tables() {
        let Some(meta) = catalog.tables.values().find(|t| t.name == wanted.name) else { continue };
        let schema = meta.schema();
        let key: Vec<&str> = schema.key.iter().map(|id| &*schema.columns[id.0 as usize].name).collect();
        if key != wanted.key {
            return Err(SqlError::invalid(format!(
                "table {} is there already with the key ({}), and the flow says ({})",
                wanted.name,
                key.join(", "),
                wanted.key.join(", ")
            ))
            .hint("the key of a table stays what it was at first"));
        }
    }
    Ok(())
}

/// The lines of `DESCRIBE FLOW`.
fn described(flow: &Flow) -> Vec<(String, String)> {
    let mut rows =
        vec![("name".to_owned(), flow.name.clone()), ("source".to_owned(), flow.source.to_string())];
    let tables = flow.target.tables().iter().map(|t| ("table".to_owned(), t.to_string()));
    rows.extend(tables);
    let clauses = flow.clauses.to_string();
    rows.extend(clauses.lines().filter(|l| !l.is_empty()).map(|l| ("clause".to_owned(), l.to_owned())));
    rows
}
