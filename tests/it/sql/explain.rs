//! EXPLAIN says what will be read, EXPLAIN ANALYZE what was.

use super::fixture::{State, rows, runtime, session, store};
use asofdb::sql::{Params, Session};

struct Store {
    _dir: tempfile::TempDir,
    session: Session,
    runtime: tokio::runtime::Runtime,
}

impl Store {
    fn new(state: State) -> Store {
        let dir = tempfile::tempdir().unwrap();
        let engine = store(dir.path(), state);
        Store { session: session(&engine), _dir: dir, runtime: runtime() }
    }

    fn text(&self, sql: &str) -> String {
        let params = Params::none();
        let answer = self.runtime.block_on(async { self.session.run(sql, &params).await?.collect().await });
        let batches = answer.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        rows(&batches).into_iter().map(|r| r.join("|")).collect::<Vec<_>>().join("\n")
    }

    /// The line of an operator in the plan of a statement that was run.
    fn analyzed(&self, sql: &str, operator: &str) -> String {
        let plan = self.text(&format!("EXPLAIN ANALYZE {sql}"));
        let line = plan.lines().find(|l| l.contains(operator));
        line.unwrap_or_else(|| panic!("no {operator}: {plan}")).to_owned()
    }
}

/// A number of a line of metrics.
fn metric(line: &str, name: &str) -> u64 {
    let after = line.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("no {name}: {line}")).1;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{name} is no number: {line}"))
}

const METRICS: [&str; 10] = [
    "runs_read",
    "runs_pruned",
    "row_groups_read",
    "row_groups_pruned",
    "events_read",
    "events_in_memory",
    "events_pruned",
    "bytes_read",
    "bytes_kept",
    "bytes_pruned",
];

/// Every kind of question, its operator, the rows of it, and the events that it must read.
const QUESTIONS: [(&str, &str, u64, u64); 11] = [
    ("SELECT name FROM person FOR VALID_TIME AS OF '2024-05-01 12:10:00'", "AsofScan", 1, 4),
    ("SELECT * FROM orders", "AsofScan", 2, 6),
    ("SELECT count(*) FROM orders", "AsofScan", 2, 6),
    (
        "SELECT name FROM person FOR VALID_TIME FROM '2024-05-01 12:00:00' TO '2024-05-01 12:10:00'",
        "AsofScan",
        2,
        4,
    ),
    (
        "SELECT name FROM person FOR VALID_TIME BETWEEN '2024-05-01 12:00:00' AND '2024-05-01 12:10:00'",
        "AsofScan",
        2,
        4,
    ),
    ("SELECT name FROM scd2('person')", "AsofScan", 3, 4),
    ("SELECT * FROM timeline('orders', 'eu', 1)", "AsofScan", 3, 2),
    ("SELECT name FROM history('person')", "AsofFunction", 4, 4),
    ("SELECT * FROM late('orders')", "AsofFunction", 1, 6),
    ("SELECT region FROM changes('orders', 1, 2)", "AsofFunction", 5, 0),
    (
        "SELECT p.name FROM labels l JOIN person FOR VALID_TIME AS OF l.at p ON p.id = l.person_id",
        "AsofPerRowJoin",
        3,
        4,
    ),
];

#[test]
fn explain_analyze_counts_what_every_kind_of_question_reads() {
    for state in [State::Fresh, State::Compacted] {
        let store = Store::new(state);
        for (sql, operator, rows, events) in QUESTIONS {
            let line = store.analyzed(sql, operator);
            for name in METRICS {
                metric(&line, name);
            }
            assert_eq!(metric(&line, "output_rows"), rows, "{state:?}: {line}");
            assert!(!line.contains("elapsed_compute=NOT"), "{line}");
            let (runs, memory) = (metric(&line, "events_read"), metric(&line, "events_in_memory"));
            match (state, events) {
                // Read more than once.
                (_, 0) => assert!(runs + memory > 0, "{line}"),
                (State::Fresh, _) => assert_eq!((runs, memory), (0, events), "{line}"),
                _ => assert_eq!((runs, memory), (events, 0), "{line}"),
            }
            assert_eq!(metric(&line, "runs_read"), u64::from(state != State::Fresh), "{line}");
            let bytes = metric(&line, "bytes_read") + metric(&line, "bytes_kept");
            assert_eq!(bytes > 0, state != State::Fresh, "{line}");
        }
    }
}

#[test]
fn explain_shows_bounds_columns_filters_and_limit() {
    let store = Store::new(State::Fresh);
    let plan = store.text(
        "EXPLAIN SELECT name FROM person FOR VALID_TIME AS OF '2024-05-01 12:10:00'
         FOR SYSTEM_TIME AS OF '2024-05-01 12:22:00' LIMIT 3",
    );
    let scan = "person, valid=[as of 2024-05-01T12:10:00Z], system=[as of 2024-05-01T12:22:00Z], commit=5, \
                keys=all, columns=[name], fetch=3";
    assert!(plan.contains(scan), "{plan}");
    let plan = store.text("EXPLAIN SELECT name, _operation FROM history('person') LIMIT 2");
    assert!(
        plan.contains("history(person), commit=5, keys=all, columns=[name, _operation], fetch=2"),
        "{plan}"
    );
    assert!(!plan.contains("runs_read"), "nothing was read: {plan}");
}

#[test]
fn explain_shows_which_keys_and_commits_are_read() {
    let store = Store::new(State::Compacted);
    let plans = [
        (
            "SELECT amount FROM orders WHERE region = 'eu' AND id > 1 AND amount > 5",
            "keys=in 2 ranges, filters=[region = Utf8(\"eu\"), id > Int64(1)]",
        ),
        ("SELECT amount FROM orders WHERE id > 1", "keys=all, columns"),
        (
            "SELECT id FROM history('orders') h WHERE region < 'f'",
            "keys=in 3 ranges, filters=[region < Utf8(\"f\")]",
        ),
        (
            "SELECT id FROM history('orders') WHERE __COMMIT_SEQ > 3",
            "keys=all, commits=3 to 5, columns=[id, __COMMIT_SEQ]",
        ),
        (
            "SELECT id FROM changes('orders', 2) WHERE region = 'eu' AND id = 1",
            "commits 2 to 5, keys=1, filters=",
        ),
    ];
    for (sql, wanted) in plans {
        let plan = store.text(&format!("EXPLAIN {sql}"));
        assert!(plan.contains(wanted), "{sql}: {plan}");
    }
    let line = store.analyzed("SELECT * FROM orders WHERE region = 'us'", "AsofScan");
    assert_eq!((metric(&line, "events_read"), metric(&line, "events_pruned")), (2, 4), "{line}");
    let line =
        store.analyzed("SELECT * FROM history('orders') WHERE region = 'us' AND id = 1", "AsofFunction");
    assert_eq!((metric(&line, "events_read"), metric(&line, "events_pruned")), (2, 4), "{line}");
}
