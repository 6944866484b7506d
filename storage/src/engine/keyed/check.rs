//! Checking the index against the runs.

use super::changes::{add_rows, passing, runs_of_table};
use super::handle::reflected;
use crate::engine::error::Error;
use crate::engine::request::KeyFilter;
use crate::engine::shared::{Shared, locked};
use crate::engine::view::View;
use crate::id::TableId;
use crate::index::{Applied, Index, IndexError};

/// What is asked of the index at once.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl Shared {
    /// What is wrong with the index, as text for people; empty also if there is none.
    pub fn check_index(&self) -> Result<Vec<String>, Error> {
        let _one = locked(&self.keyed.upkeep);
        let Some(index) = self.index() else { return Ok(Vec::new()) };
        let hint = "removing the file is safe; it is made again";
        let name = self.index_path().display().to_string();
        let problem = |what: String| format!("{name}: {what} ({hint})");
        let mut problems: Vec<String> = match index.verify() {
            Ok(found) => found.into_iter().map(problem).collect(),
            Err(e) => return Ok(vec![problem(e.to_string())]),
        };
        let view = self.view();
        for (id, meta) in &view.catalog.tables {
            match compare(&index, &view, *id)? {
                Ok(0) => {}
                Ok(n) => problems.push(problem(format!("{n} entries of table {} are not right", meta.name))),
                Err(e) => problems.push(problem(e.to_string())),
            }
        }
        Ok(problems)
    }

    /// The commit up to which the index answers for a table; 0 = not at all.
    pub fn indexed(&self, view: &View, table: TableId) -> u64 {
        let applied: Option<Applied> = self.index().and_then(|index| index.applied(table).ok());
        applied.filter(|a| reflected(view, table) == Some(*a)).map_or(0, |a| a.commit)
    }
}

/// Number of entries that differ from what the runs say, if the index reflects those runs.
fn compare(index: &Index, view: &View, table: TableId) -> Result<Result<u64, IndexError>, Error> {
    let Some(wanted) = reflected(view, table) else { return Ok(Ok(0)) };
    match index.applied(table) {
        Ok(applied) if applied == wanted => {}
        Ok(_) => return Ok(Ok(0)),
        Err(e) => return Ok(Err(e)),
    }
    let scan = runs_of_table(view, table, wanted.commit)?;
    let (mut wrong, mut right) = (0, 0);
    for batch in passing(&scan).open_rows(&KeyFilter::All)? {
        let mut entries: Entries = Vec::new();
        add_rows(&batch?, scan.meta.schema(), |key, value| entries.push((key, value)))?;
        let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| key.as_slice()).collect();
        match index.values(table, &keys) {
            Ok((_, values)) => {
                let equal = entries.iter().zip(&values).filter(|((_, e), v)| v.as_ref() == Some(e)).count();
                right += equal as u64;
                wrong += (entries.len() - equal) as u64;
            }
            Err(e) => return Ok(Err(e)),
        }
    }
    Ok(index.entries(table).map(|entries| wrong.max(entries.abs_diff(right))))
}
