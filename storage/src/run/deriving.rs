//! Carrying out the derivations of a chunk: what is read for some columns, and how they come of it.

use super::derive::{Derivation, Derivations, constant_column};
use super::error::RunError;
use super::meta::Constants;
use super::read::RunBatches;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Columns of one chunk may follow from columns that follow from others, this often.
const DEPTH_MAX: usize = 8;

/// The derivations of a chunk. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Deriving {
    rules: Arc<Derivations>,
    constants: Arc<Constants>,
    /// Columns of the file.
    schema: SchemaRef,
}

/// What some columns of a chunk are made of.
#[derive(Debug)]
pub(crate) struct Needs {
    /// Columns of the file, ascending.
    pub read: Vec<usize>,
    /// Whether those are what is wanted.
    as_they_are: bool,
}

/// What there is of some rows.
struct Given<'a> {
    read: &'a [usize],
    arrays: &'a [ArrayRef],
    /// Columns that were made before.
    known: Option<&'a RecordBatch>,
    rows: usize,
}

/// Columns that were derived, by name.
type Made = Vec<(String, ArrayRef)>;

impl Deriving {
    pub fn new(rules: &Derivations, constants: &Arc<Constants>, schema: &SchemaRef) -> Deriving {
        Deriving { rules: Arc::new(rules.clone()), constants: constants.clone(), schema: schema.clone() }
    }

    /// The columns `wanted` of a chunk in file order; `read` gives batches of columns as they are in the
    /// file.
    pub fn batches(self, wanted: &[usize], read: impl FnOnce(&[usize]) -> RunBatches) -> RunBatches {
        let needs = match self.needs(wanted, &|_| false) {
            Ok(needs) if needs.as_they_are => return read(wanted),
            Ok(needs) => needs,
            Err(e) => return Box::new(std::iter::once(Err(e))),
        };
        let batches = read(&needs.read);
        let wanted = wanted.to_vec();
        Box::new(batches.map(move |batch| {
            let batch = batch?;
            let rows = batch.num_rows();
            let columns = self.columns(&wanted, &needs, batch.columns(), None, rows)?;
            let schema = Arc::new(self.schema.project(&wanted)?);
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
        }))
    }

    /// What must be read for the columns `wanted` by who has those that are `known`.
    pub fn needs(&self, wanted: &[usize], known: &dyn Fn(&str) -> bool) -> Result<Needs, RunError> {
        let derived = |c: &usize| {
            let name = self.schema.field(*c).name();
            self.rules.contains_key(name) || known(name)
        };
        if !wanted.iter().any(derived) {
            return Ok(Needs { read: wanted.to_vec(), as_they_are: true });
        }
        let mut needed = BTreeSet::new();
        wanted.iter().try_for_each(|c| self.need(self.schema.field(*c).name(), known, &mut needed, 0))?;
        Ok(Needs { read: needed.into_iter().collect(), as_they_are: false })
    }

    /// Adds the columns of the file that `name` is made of.
    fn need(
        &self,
        name: &str,
        known: &dyn Fn(&str) -> bool,
        needed: &mut BTreeSet<usize>,
        depth: usize,
    ) -> Result<(), RunError> {
        if depth > DEPTH_MAX {
            return Err(RunError::NotEvents(format!("column {name} follows from itself")));
        }
        if known(name) {
            return Ok(());
        }
        let rule = self.rules.get(name);
        if rule.is_none_or(Derivation::has_own) {
            needed.extend(self.schema.index_of(name).ok());
        }
        let sources = rule.map(|r| r.sources(name)).unwrap_or_default();
        sources.iter().try_for_each(|source| self.need(source, known, needed, depth + 1))
    }

    /// The columns `wanted` of `rows` rows: `arrays` are what [`Needs::read`] says, and `known` has the
    /// columns that were said to be known.
    pub fn columns(
        &self,
        wanted: &[usize],
        needs: &Needs,
        arrays: &[ArrayRef],
        known: Option<&RecordBatch>,
        rows: usize,
    ) -> Result<Vec<ArrayRef>, RunError> {
        if needs.as_they_are {
            return Ok(arrays.to_vec());
        }
        let given = Given { read: &needs.read, arrays, known, rows };
        let mut made = Made::new();
        wanted.iter().map(|c| self.column(self.schema.field(*c).name(), &given, &mut made)).collect()
    }

    fn column(&self, name: &str, given: &Given<'_>, made: &mut Made) -> Result<ArrayRef, RunError> {
        if let Some(array) = given.known.and_then(|k| k.column_by_name(name)) {
            return Ok(array.clone());
        }
        let Some(rule) = self.rules.get(name) else { return self.stored(name, given) };
        if let Some((_, array)) = made.iter().find(|(known, _)| known == name) {
            return Ok(array.clone());
        }
        let ty = self.schema.field_with_name(name)?.data_type();
        let mut get = |source: &str| match source == name {
            true => self.stored(name, given),
            false => self.column(source, given, made),
        };
        let array = rule.column(name, ty, given.rows, &mut get)?;
        made.push((name.to_owned(), array.clone()));
        Ok(array)
    }

    /// A column of the file or one with one value.
    fn stored(&self, name: &str, given: &Given<'_>) -> Result<ArrayRef, RunError> {
        if let Some(at) = given.read.iter().position(|c| self.schema.field(*c).name() == name)
            && let Some(array) = given.arrays.get(at).filter(|a| a.len() == given.rows)
        {
            return Ok(array.clone());
        }
        constant_column(&self.constants, name, given.rows).ok_or_else(|| {
            RunError::NotEvents(format!("column {name}, which others follow from, is missing"))
        })?
    }
}
