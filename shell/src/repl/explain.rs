//! `\why` and `\diff`: where a cell comes from, and what changed between two moments.

use super::inspect::{identifier, literal};
use super::moments::{self, Moment};
use super::output::Collect;
use super::session::Shell;
use super::{footer, meta};
use crate::backend::TableNames;
use crate::outcome::{Exit, Failure, Outcome};
use crate::render::cell::write_cell;
use crate::render::escape::visible;
use crate::text::when::{self, When};
use arrow::array::RecordBatch;
use asofdb::near::nearest;
use asofdb::time::format_instant;

const WHY: &str = "\\why orders 17 status at 2026-11-01 known yesterday 18:00";
const DIFF: &str = "\\diff orders 'yesterday 18:00' now, or \\diff orders commit:3 commit:5";

fn wrong(message: impl Into<String>, example: &str) -> Failure {
    Failure::new(Exit::Failed, message).hint(format!("for example {example}"))
}

/// A time in SQL.
fn sql_time(when: When) -> String {
    match when {
        When::Now => "now()".into(),
        When::Integer(n) => n.to_string(),
        When::Instant(us) => format!("'{}'", format_instant(us)),
    }
}

impl Shell {
    pub(super) fn why(&mut self, rest: &str) -> Outcome {
        let words = meta::words(rest).map_err(|e| wrong(e, WHY))?;
        let [table, words @ ..] = &words[..] else { return Err(wrong("no table is named", WHY)) };
        let table = self.table(table)?;
        let key = table.key();
        if key.is_empty() {
            return Err(Failure::new(Exit::Failed, format!("table {} has no key", table.name)));
        }
        if words.len() <= key.len() {
            let names: Vec<&str> = key.iter().map(|c| c.name.as_str()).collect();
            let wanted =
                format!("a value of ({}) and a column of {} are wanted", names.join(", "), table.name);
            return Err(wrong(wanted, WHY));
        }
        let (values, words) = words.split_at(key.len());
        let column = column_of(&table, &words[0])?;
        let (valid, system) = moments::at_and_known(&words[1..], (self.screen.now)())
            .map_err(|e| wrong(e, WHY).hint(format!("times are written {}", when::FORMS)))?;
        let literals = key.iter().zip(values).map(|(c, v)| literal(&c.ty, v));
        let mut arguments: Vec<String> = vec![format!("'{}'", table.name.replace('\'', "''"))];
        arguments.extend(literals);
        arguments.push(format!("'{}'", column.replace('\'', "''")));
        // What is not said is as the session has it.
        match (valid, system) {
            (None, None) => {}
            (Some(valid), None) => arguments.push(sql_time(valid)),
            (valid, Some(system)) => {
                let set = self.runner.backend().clocks().valid;
                let now = (self.screen.now)();
                let set = set.map(|text| when::parse(&text, now)).transpose().map_err(|e| wrong(e, WHY))?;
                arguments.push(valid.or(set).map_or("NULL".into(), sql_time));
                arguments.push(sql_time(system));
            }
        }
        let statement = format!("SELECT * FROM why({})", arguments.join(", "));
        if !self.is_for_people() {
            return self.statement(&statement);
        }
        let mut rows = Collect::default();
        let report = self.runner.run(&statement, &mut rows)?;
        let row_name = format!("{} {}", table.name, values.join(" "));
        let text: String = rows.0.iter().map(|batch| in_words(&row_name, &column, batch)).collect();
        self.print(&text)?;
        footer::notes(&report).iter().for_each(|line| (self.screen.remarks)(line));
        Ok(())
    }

    pub(super) fn diff(&mut self, rest: &str) -> Outcome {
        let words = meta::words(rest).map_err(|e| wrong(e, DIFF))?;
        let [table, words @ ..] = &words[..] else { return Err(wrong("no table is named", DIFF)) };
        let table = self.table(table)?;
        let (from, to) = moments::two(words, (self.screen.now)())
            .map_err(|e| wrong(e, DIFF).hint(format!("times are written {}", when::FORMS)))?;
        let name = format!("'{}'", table.name.replace('\'', "''"));
        let key: Vec<String> = table.key().iter().map(|c| identifier(&c.name)).collect();
        let columns: Vec<String> = table.columns.iter().map(|c| identifier(&c.name)).collect();
        let columns = columns.join(", ");
        match (from, to) {
            (Moment::Commit(from), Moment::Commit(to)) => {
                let (from, to) = (from.min(to), from.max(to));
                let order =
                    [&["\"_commit_version\"".to_owned()][..], &key, &["\"_change_type\" DESC".to_owned()]];
                (self.screen.remarks)(&format!(
                    "what commits {} to {to} changed in the latest state",
                    from + 1
                ));
                self.statement(&format!(
                    "SELECT \"_commit_version\", \"_change_type\", {columns} FROM changes({name}, {}, {to}) ORDER BY {}",
                    from + 1,
                    order.concat().join(", ")
                ))
            }
            (Moment::Time(from, a), Moment::Time(to, b)) => {
                let ends = ["\"__START_AT\" NULLS FIRST", "\"_change_type\" DESC"].map(str::to_owned);
                let order = [&key[..], &ends].concat().join(", ");
                (self.screen.remarks)(&as_believed(&[(from, &a), (to, &b)]));
                // A word here, so that it is not taken for an instant after the last commit.
                let moment = |when| if when == When::Now { "'now'".to_owned() } else { sql_time(when) };
                let [from, to] = [from, to].map(moment);
                self.statement(&format!(
                    "SELECT \"_change_type\", {columns}, \"__START_AT\", \"__END_AT\" \
                     FROM belief_diff({name}, {from}, {to}) ORDER BY {order}"
                ))
                .map_err(|f| match a.parse::<i64>() {
                    Ok(n) => f.hint(format!("commit {n} is written commit:{n}")),
                    Err(_) => f,
                })
            }
            _ => Err(wrong("one moment is a commit and the other a time", DIFF)),
        }
    }
}

/// What the two sides of a difference are.
fn as_believed(moments: &[(When, &str)]) -> String {
    let side = |(when, text): &(When, &str)| match when {
        When::Now => "now".to_owned(),
        When::Integer(n) => n.to_string(),
        When::Instant(us) => {
            let at = format_instant(*us);
            if *text == at { at } else { format!("{at} ({text}, UTC)") }
        }
    };
    let sides: Vec<String> = moments.iter().map(side).collect();
    format!("removed: held at {} only; added: held at {} only", sides[0], sides[1])
}

/// The column called so; its case matters only where two differ by it.
fn column_of(table: &TableNames, name: &str) -> Outcome<String> {
    let names = || table.columns.iter().map(|c| c.name.as_str());
    let found = names().find(|n| *n == name).or_else(|| names().find(|n| n.eq_ignore_ascii_case(name)));
    found.map(str::to_owned).ok_or_else(|| {
        let failure = Failure::new(Exit::Failed, format!("{} has no column {name}", table.name));
        match nearest(name, names()) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure.hint(format!("it has: {}", names().collect::<Vec<_>>().join(", "))),
        }
    })
}

/// The events that `why` names, in words.
fn in_words(row_name: &str, column: &str, batch: &RecordBatch) -> String {
    let what = &format!("{row_name}: {column}");
    let cell = |row: usize, name: &str| {
        let mut text = String::new();
        let column = batch.column_by_name(name)?;
        write_cell(&mut text, column, row).then(|| visible(&text).into_owned())
    };
    let mut out = String::new();
    for row in 0..batch.num_rows() {
        let get = |name: &str| cell(row, name);
        let value = batch.columns().first().and_then(|c| {
            let mut text = String::new();
            write_cell(&mut text, c, row).then(|| visible(&text).into_owned())
        });
        let why = get("_why").unwrap_or_default();
        let written = value.unwrap_or_else(|| "NULL".into());
        out.push_str(&match why.as_str() {
            "set" => format!("{} = {written}\n", visible(what)),
            "set in part" if row == 0 => {
                format!("{}, which several events wrote, the newest first\n", visible(what))
            }
            "set in part" => String::new(),
            _ => format!("{}: there is no row\n", visible(row_name)),
        });
        let did = match why.as_str() {
            "set" => "set by".to_owned(),
            "set in part" => format!("{written} by"),
            _ => "ended by".to_owned(),
        };
        let from = get("__START_AT").unwrap_or_else(|| "the beginning".into());
        let known = get("__SYSTEM_START_AT").unwrap_or_else(|| "the beginning".into());
        let operation = match get("_operation").unwrap_or_default().as_str() {
            "moved_away" => "a change of its key".to_owned(),
            word if word.starts_with(['i', 'u']) => format!("an {word}"),
            word => format!("a {word}"),
        };
        out.push_str(&format!(
            "  {did} {operation} that holds from {from}, known since {known}
"
        ));
        let place = [
            (
                "commit ",
                get("__COMMIT_SEQ").map(|n| format!("{n} ({})", get("__COMMIT_AT").unwrap_or_default())),
            ),
            ("", get("_ingest_file_name").or_else(|| get("_stream"))),
            ("position ", get("_position")),
            ("transaction ", get("_transaction_id")),
        ];
        let place: Vec<String> =
            place.into_iter().filter_map(|(word, text)| Some(format!("{word}{}", text?))).collect();
        out.push_str(&format!("  in {}\n", place.join(", ")));
    }
    out
}
