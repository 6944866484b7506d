//! Splits rows into partitions and files, with a bound on open files and on memory.

use super::file::{OpenFile, wrong};
use super::hive::segment;
use super::manifest::ExportedFile;
use super::parquet_file::FileForm;
use super::place::Place;
use super::question::{Part, TIMES};
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// Files that are open at once.
const OPEN_FILES_MAX: usize = 64;

/// What the rows of one file have in common: the values of the partition columns, and for interval rows
/// which ends are open.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Group {
    values: Vec<Option<String>>,
    kind: Kind,
}

/// Kinds of rows that stand in files of their own, so that the statistics of the end columns rule out
/// whole files: a question about now needs the first kind alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    /// Rows that are not told apart.
    #[default]
    Part,
    /// Interval rows that hold now, in the latest belief.
    Open,
    /// Interval rows of the latest belief that have ended.
    Ended,
    /// Interval rows that are no longer believed.
    Superseded,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Part => "part",
            Kind::Open => "open",
            Kind::Ended => "ended",
            Kind::Superseded => "superseded",
        }
    }
}

/// Where and how the files of a table are written.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The directory with the data.
    pub dir: PathBuf,
    /// The generation, part of every file's name: a reader that listed the files of one generation never
    /// opens one of another.
    pub generation: u64,
    pub file: FileForm,
    pub parts: Vec<Part>,
    /// Whether the rows are interval rows.
    pub intervals: bool,
    pub file_bytes_max: u64,
    pub memory_bytes_max: usize,
    pub partitions_max: usize,
}

/// The files of one table while it is exported.
pub(crate) struct Files {
    place: Place,
    form: Form,
    /// Schema of the files.
    schema: SchemaRef,
    /// Columns of the answer that the files have.
    kept: Vec<usize>,
    /// Columns of the answer with the end of valid and of system time.
    ends: Option<(usize, usize)>,
    open: HashMap<Group, OpenFile>,
    /// Files begun for each group.
    begun: BTreeMap<Group, u32>,
    done: Vec<ExportedFile>,
    calls: u64,
}

impl Files {
    /// For answers of `schema`, whose last columns are the values of the partition columns.
    pub fn new(place: Place, form: Form, schema: &Schema) -> Result<Files> {
        let width = schema.fields().len().saturating_sub(form.parts.len());
        let find = |name: &str| (0..width).find(|i| schema.field(*i).name() == name);
        for part in form.parts.iter().filter(|p| p.in_rows) {
            if find(&part.name).is_none() {
                return Err(Error::usage(format!("there is no column {} to partition by", part.name)));
            }
        }
        let left_out = |name: &str| form.parts.iter().any(|p| p.in_rows && p.name == name);
        let kept: Vec<usize> = (0..width).filter(|i| !left_out(schema.field(*i).name())).collect();
        if kept.is_empty() {
            return Err(Error::usage("every column is a partition column, and the files would be empty")
                .hint("partition by fewer columns"));
        }
        for (n, i) in kept.iter().enumerate() {
            let name = schema.field(*i).name();
            if kept[..n].iter().any(|j| schema.field(*j).name() == name) {
                return Err(Error::failed(format!("the files would have two columns {name}"))
                    .hint("take the column in under another name: it is one that asof adds"));
            }
        }
        let fields: Vec<_> = kept.iter().map(|i| schema.field(*i).clone()).collect();
        let ends = find(TIMES[1]).zip(find(TIMES[3])).filter(|_| form.intervals);
        Ok(Files {
            place,
            form,
            schema: Arc::new(Schema::new(fields)),
            kept,
            ends,
            open: HashMap::new(),
            begun: BTreeMap::new(),
            done: Vec::new(),
            calls: 0,
        })
    }

    /// The schema of the files.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends rows of the answer.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.kept.iter().map(|i| batch.column(*i).clone()).collect();
        let rows =
            RecordBatch::try_new(self.schema.clone(), columns).map_err(|e| wrong("write", "the rows", &e))?;
        let groups = self.groups(batch)?;
        let whole = groups.len() == 1;
        for (group, numbers) in groups {
            let file = self.file(&group)?;
            file.write(&rows, (!whole).then_some(numbers))?;
            if file.bytes() > self.form.file_bytes_max {
                self.close(&group)?;
            }
        }
        self.bound_memory()
    }

    /// The rows of a batch by group, in order of the groups.
    fn groups(&self, batch: &RecordBatch) -> Result<BTreeMap<Group, Vec<u32>>> {
        let first = batch.num_columns() - self.form.parts.len();
        let texts =
            |array: &ArrayRef| cast(array, &DataType::Utf8).map_err(|e| wrong("partition", "the rows", &e));
        let values: Vec<ArrayRef> = batch.columns()[first..].iter().map(texts).collect::<Result<_>>()?;
        let values: Vec<&StringArray> = values.iter().map(|v| v.as_string::<i32>()).collect();
        let ends = self.ends.map(|(valid, system)| (batch.column(valid), batch.column(system)));
        let kind = |i: usize| match ends {
            None => Kind::Part,
            Some((_, system)) if system.is_valid(i) => Kind::Superseded,
            Some((valid, _)) if valid.is_valid(i) => Kind::Ended,
            Some(_) => Kind::Open,
        };
        let same = |a: usize, b: usize| {
            kind(a) == kind(b)
                && values.iter().all(|v| match (v.is_null(a), v.is_null(b)) {
                    (false, false) => v.value(a) == v.value(b),
                    (x, y) => x == y,
                })
        };
        let mut groups: BTreeMap<Group, Vec<u32>> = BTreeMap::new();
        let mut start = 0;
        while start < batch.num_rows() {
            let end = (start + 1..batch.num_rows()).find(|i| !same(start, *i)).unwrap_or(batch.num_rows());
            let value = |v: &&StringArray| v.is_valid(start).then(|| v.value(start).to_owned());
            let group = Group { values: values.iter().map(value).collect(), kind: kind(start) };
            groups.entry(group).or_default().extend(start as u32..end as u32);
            start = end;
        }
        Ok(groups)
    }

    /// The open file of a group.
    fn file(&mut self, group: &Group) -> Result<&mut OpenFile> {
        self.calls += 1;
        if !self.open.contains_key(group) {
            if self.open.len() >= OPEN_FILES_MAX {
                let oldest = self.open.iter().min_by_key(|(_, f)| f.used).map(|(g, _)| g.clone());
                oldest.map_or(Ok(()), |g| self.close(&g))?;
            }
            let file = self.begin(group)?;
            self.open.insert(group.clone(), file);
        }
        let calls = self.calls;
        let file = self.open.get_mut(group).expect("it was opened just now");
        file.used = calls;
        Ok(file)
    }

    fn begin(&mut self, group: &Group) -> Result<OpenFile> {
        let partitions = self.begun.len();
        let number = *self.begun.entry(group.clone()).and_modify(|n| *n += 1).or_insert(0);
        if partitions >= self.form.partitions_max && number == 0 {
            return Err(Error::usage(format!(
                "the partition expression gives more than {} partitions",
                self.form.partitions_max
            ))
            .hint("partition by something with fewer values, such as a day or a region"));
        }
        let parts = || self.form.parts.iter().zip(&group.values);
        let mut path = String::new();
        for (part, value) in parts() {
            path.push_str(&segment(&part.name, value.as_deref())?);
            path.push('/');
        }
        path.push_str(&format!("{}-{:06}-{number:05}.parquet", group.kind.word(), self.form.generation));
        let partition = parts().map(|(part, value)| (part.name.clone(), value.clone())).collect();
        OpenFile::create(&self.place, &self.form.dir, path, &self.schema, &self.form.file, partition)
    }

    fn close(&mut self, group: &Group) -> Result<()> {
        if let Some(file) = self.open.remove(group) {
            self.done.push(file.close()?);
        }
        Ok(())
    }

    /// Ends row groups, the largest first, until what waits in memory is within the bound.
    fn bound_memory(&mut self) -> Result<()> {
        let mut bytes: usize = self.open.values().map(OpenFile::memory_bytes).sum();
        while bytes > self.form.memory_bytes_max {
            let sizes = self.open.iter().map(|(group, f)| (f.memory_bytes(), group));
            let Some((before, group)) = sizes.max().map(|(n, g)| (n, g.clone())) else { return Ok(()) };
            let Some(file) = self.open.get_mut(&group) else { return Ok(()) };
            file.end_row_group()?;
            let after = file.memory_bytes();
            if after >= before {
                return Ok(());
            }
            bytes -= before - after;
        }
        Ok(())
    }

    /// Completes all files, by path. An export without rows has one file, which tells the columns.
    pub fn finish(mut self) -> Result<Vec<ExportedFile>> {
        let mut groups: Vec<Group> = self.open.keys().cloned().collect();
        groups.sort();
        for group in &groups {
            self.close(group)?;
        }
        if self.done.is_empty() {
            let path = format!("{}-{:06}-00000.parquet", Kind::Part.word(), self.form.generation);
            let none = BTreeMap::new();
            let file =
                OpenFile::create(&self.place, &self.form.dir, path, &self.schema, &self.form.file, none)?;
            self.done.push(file.close()?);
        }
        self.done.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(self.done)
    }
}
