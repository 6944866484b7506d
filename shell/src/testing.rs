//! A backend for tests: knows two tables and a few made-up statements.

use crate::backend::*;
use crate::outcome::{Exit, Failure};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// See the module.
#[derive(Default)]
pub struct Fake {
    /// Every statement that came, oldest first.
    pub asked: Mutex<Vec<String>>,
    /// The clocks to tell.
    pub set: Mutex<Clocks>,
}

async fn answer(statement: String, parts: Sender<Part>) -> Result<Summary, Failure> {
    let gone = |_| Failure::new(Exit::Failed, "nobody listens");
    match statement.split_whitespace().collect::<Vec<_>>()[..] {
        ["rows", n] => {
            let n: i64 = n.parse().unwrap();
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n));
            let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
            parts.send(Part::Columns(batch.schema())).await.map_err(gone)?;
            parts.send(Part::Rows(batch)).await.map_err(gone)?;
        }
        ["fail"] => return Err(Failure::new(Exit::Failed, "it failed")),
        ["spin"] => std::thread::sleep(Duration::from_secs(5)),
        ["hog"] => {
            for _ in 0..64 {
                tokio::spawn(async { std::thread::sleep(Duration::from_secs(5)) });
            }
            std::future::pending::<()>().await;
        }
        ["panic"] => panic!("on purpose"),
        _ => {}
    }
    Ok(Summary::default())
}

impl Backend for Fake {
    fn run(&self, statement: &str, parts: Sender<Part>) -> Running {
        self.asked.lock().unwrap().push(statement.to_owned());
        Box::pin(answer(statement.to_owned(), parts))
    }

    fn names(&self) -> Names {
        let column = |(i, (name, ty)): (usize, &(&str, &str))| ColumnNames {
            name: name.to_string(),
            ty: ty.to_string(),
            key: (i == 0).then_some(1),
        };
        let table = |name: &str, columns: &[(&str, &str)]| TableNames {
            name: name.into(),
            columns: columns.iter().enumerate().map(column).collect(),
            axes: "valid time declared, system time declared".into(),
        };
        Names {
            tables: vec![
                table("orders", &[("id", "bigint"), ("status", "text"), ("amount", "decimal(38,2)")]),
                table("customers", &[("code", "text"), ("name", "text")]),
            ],
            functions: ["history", "commits", "count"].map(str::to_owned).to_vec(),
            table_functions: ["history('", "commits()"].map(str::to_owned).to_vec(),
        }
    }

    fn clocks(&self) -> Clocks {
        self.set.lock().unwrap().clone()
    }

    fn commit_at_or_before(&self, us: i64) -> Option<(u64, i64)> {
        (us >= 1_000_000).then(|| (us as u64 / 1_000_000, us / 1_000_000 * 1_000_000))
    }

    fn commit_instant(&self, seq: u64) -> Option<i64> {
        (seq > 0 && seq < 1_000_000_000).then(|| seq as i64 * 1_000_000)
    }

    fn last_commit(&self) -> Option<(u64, i64)> {
        Some((7, 7_000_000))
    }
}
