//! Meta commands that look at a table: its columns, the events and the rectangles of a key.

use super::meta;
use super::output::Collect;
use super::rectangles::{self, Rectangles};
use super::session::Shell;
use super::timeline::{self, Canvas, Rectangle};
use crate::backend::TableNames;
use crate::outcome::{Exit, Failure, Outcome};
use asofdb::near::nearest;

impl Shell {
    pub(super) fn describe(&mut self, rest: &str) -> Outcome {
        let names = self.runner.backend().names();
        let mut text = String::new();
        if rest.is_empty() {
            for table in &names.tables {
                let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
                text.push_str(&format!("{}  ({})\n", table.name, columns.join(", ")));
            }
            if names.tables.is_empty() {
                text.push_str("no tables yet; take events in with: asof ingest STORE SOURCE\n");
            }
        } else {
            let table = self.table(rest.trim_matches('"'))?;
            text.push_str(&format!("{}: {}\n", table.name, table.axes));
            let width = table.columns.iter().map(|c| c.name.len()).max().unwrap_or(0);
            for column in &table.columns {
                let key = column.key.map(|n| format!("  key {n}")).unwrap_or_default();
                text.push_str(&format!("  {:<width$}  {}{key}\n", column.name, column.ty));
            }
        }
        let shown: String =
            text.lines().map(|l| crate::render::escape::visible(l).into_owned() + "\n").collect();
        self.print(&shown)
    }

    pub(super) fn table(&self, name: &str) -> Outcome<TableNames> {
        let names = self.runner.backend().names();
        names.table(name).cloned().ok_or_else(|| {
            let failure = Failure::new(Exit::Failed, format!("there is no table {name}"));
            match nearest(name, names.tables.iter().map(|t| t.name.as_str())) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint("\\d lists the tables"),
            }
        })
    }

    /// The table and the condition of `TABLE KEY...`.
    fn key(&self, rest: &str, command: &str) -> Outcome<(TableNames, Vec<String>, String)> {
        let wrong = |e| {
            Failure::new(Exit::Failed, e)
                .hint(format!("\\{command} TABLE KEY..., for example \\{command} orders 17"))
        };
        let mut words = meta::words(rest).map_err(wrong)?;
        if words.is_empty() {
            return Err(wrong("no table is named".into()));
        }
        let table = self.table(&words.remove(0))?;
        let key = table.key();
        if key.is_empty() {
            return Err(Failure::new(Exit::Failed, format!("table {} has no key", table.name)));
        }
        if key.len() != words.len() {
            let columns: Vec<&str> = key.iter().map(|c| c.name.as_str()).collect();
            return Err(wrong(format!(
                "the key of {} is ({}): {} wanted",
                table.name,
                columns.join(", "),
                key.len()
            )));
        }
        let parts: Vec<String> = key
            .iter()
            .zip(&words)
            .map(|(c, word)| format!("{} = {}", identifier(&c.name), literal(&c.ty, word)))
            .collect();
        let condition = parts.join(" AND ");
        Ok((table, words, condition))
    }

    pub(super) fn history(&mut self, rest: &str) -> Outcome {
        let (table, _, condition) = self.key(rest, "history")?;
        let name = table.name.replace('\'', "''");
        let columns: Vec<String> = table.columns.iter().map(|c| identifier(&c.name)).collect();
        let report = self.asked(&format!(
            "SELECT \"_operation\", \"__START_AT\", {}, \"__COMMIT_SEQ\" FROM history('{name}') WHERE {condition}",
            columns.join(", ")
        ))?;
        if report.rows == Some(0) {
            (self.screen.remarks)("empty: there are no events of this key");
        }
        Ok(())
    }

    pub(super) fn timeline(&mut self, rest: &str) -> Outcome {
        let (table, key, condition) = self.key(rest, "timeline")?;
        let statement = format!(
            "SELECT * FROM {} FOR VALID_TIME ALL FOR SYSTEM_TIME ALL WHERE {condition} \
             ORDER BY \"__START_AT\" NULLS FIRST, \"__SYSTEM_START_AT\" NULLS FIRST",
            identifier(&table.name)
        );
        let mut rows = Collect::default();
        self.runner.run(&statement, &mut rows)?;
        let found = rectangles::of(&rows.0, &table)?;
        let text = self.drawing(&found.list, &found);
        self.print(&format!("{} {}\n{text}", table.name, crate::render::escape::visible(&key.join(" "))))?;
        if found.list.is_empty() {
            (self.screen.remarks)("empty: nothing was ever held true of this key");
        }
        Ok(())
    }

    fn drawing(&self, list: &[Rectangle], axes: &Rectangles) -> String {
        let of = |ends: fn(&Rectangle) -> (i64, i64)| list.iter().map(ends).collect::<Vec<_>>();
        let valid = Rectangles::label(&of(|r| r.valid), axes.valid_is_instant);
        let system = Rectangles::label(&of(|r| r.system), axes.system_is_instant);
        let width = (self.screen.width)().unwrap_or(80).max(40);
        timeline::draw(
            list,
            &Canvas { width, colour: self.screen.colour, valid_label: &valid, system_label: &system },
        )
    }
}

/// A name in SQL.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A key value in SQL: a bare number where the column holds numbers.
pub(super) fn literal(ty: &str, word: &str) -> String {
    let is_number = word.parse::<f64>().is_ok_and(f64::is_finite)
        && word.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'.');
    match is_number && (ty == "bigint" || ty == "double" || ty.starts_with("decimal")) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "''")),
    }
}
