//! Statements that want too much end in an error, soon, and the session lives on.

use super::fixture::{Fixture, rows};
use asofdb::sql::{Params, Settings, SqlErrorKind};
use std::time::{Duration, Instant};

#[test]
fn fault_h10_statements_that_would_kill_the_parser_are_refused() {
    let f = Fixture::new();
    let kinds = [
        format!("SELECT {}1", "1+".repeat(20_000)),
        format!("SELECT 1 WHERE {}true", "1 = 2 OR ".repeat(50_000)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(2_000)),
        format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT '{}'", "x".repeat(10 << 20)),
        format!("SELECT {}1", "-".repeat(5_000)),
        format!("SELECT {}1", "- ".repeat(5_000)),
        format!("SELECT {}true", "NOT ".repeat(5_000)),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(1_000), " END".repeat(1_000)),
        format!("SELECT * FROM person{}", " NATURAL JOIN person".repeat(500)),
        format!("SELECT {}1{}", "abs(".repeat(3_000), ")".repeat(3_000)),
        format!("SELECT {}1{}", "[".repeat(3_000), "]".repeat(3_000)),
        format!("SELECT * FROM {}person{}", "(SELECT * FROM ".repeat(1_000), ")".repeat(1_000)),
        format!("SELECT * FROM person FOR VALID_TIME AS OF {}1", "1+".repeat(20_000)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(5_000)),
    ];
    for sql in kinds {
        let begun = Instant::now();
        let e = f.error(&sql);
        let shown: String = sql.chars().take(60).collect();
        assert!(
            matches!(e.kind, SqlErrorKind::Limit | SqlErrorKind::Syntax | SqlErrorKind::Unsupported),
            "{shown}: {e:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(5), "{shown}: {:?}", begun.elapsed());
    }
    assert_eq!(f.rows("SELECT 1"), ["1"]);
}

#[test]
fn fault_h10_texts_that_no_memory_holds_are_refused() {
    let f = Fixture::new();
    for sql in [
        "SELECT length(lpad('x', 2000000000))",
        "SELECT length(rpad('x', 2000000000, 'ab'))",
        "SELECT length(repeat('ab', 1000000000))",
        "SELECT sum(length(lpad('x', value * 100000))) FROM generate_series(1, 5000)",
        "SELECT sum(length(repeat(CAST(value AS VARCHAR), 100000))) FROM generate_series(1, 5000)",
    ] {
        let begun = Instant::now();
        let e = f.error(sql);
        assert_eq!(e.kind, SqlErrorKind::Limit, "{sql}: {e:?}");
        assert!(e.message.contains("characters at once"), "{sql}: {e:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{sql}: {:?}", begun.elapsed());
    }
    assert_eq!(
        f.rows("SELECT lpad('x', 3, 'ab') || rpad('y', 2) || repeat('z', 2) || lpad(NULL, 5)"),
        ["NULL"]
    );
    assert_eq!(f.rows("SELECT lpad('x', 3, 'ab') || rpad('y', 2) || repeat('z', 2)"), ["abxy zz"]);
    assert_eq!(f.rows("SELECT length(repeat('z', 1000000)), repeat('z', -1) = ''"), ["1000000|true"]);
}

#[test]
fn fault_h10_statements_at_the_caps_are_answered() {
    let f = Fixture::new();
    let sum = format!("SELECT {}1", "1+".repeat(400));
    assert_eq!(f.rows(&sum), ["401"]);
    let or = format!("SELECT count(*) FROM orders WHERE {}true", "id = 7 OR ".repeat(200));
    assert_eq!(f.rows(&or), ["2"]);
    let list = format!("SELECT count(*) FROM orders WHERE id IN ({}1)", "7,".repeat(20_000));
    assert_eq!(f.rows(&list), ["2"]);
    let unions = format!("SELECT count(*) FROM (SELECT 1{})", " UNION ALL SELECT 1".repeat(80));
    assert_eq!(f.rows(&unions), ["81"]);
}

#[test]
fn fault_h7_queries_over_the_memory_limit_are_refused_and_the_session_lives() {
    let f = Fixture::with(Settings { memory_bytes_max: 1 << 20, ..Settings::default() });
    let sort =
        "SELECT count(*) FROM (SELECT DISTINCT value, repeat('x', 100) FROM generate_series(1, 200000))";
    let e = f.error(sort);
    assert_eq!(e.kind, SqlErrorKind::Limit, "{e:?}");
    assert_eq!(f.rows("SELECT count(*) FROM orders"), ["2"]);
}

#[test]
fn fault_h7_a_query_that_may_spill_answers_and_leaves_no_file() {
    let spill = tempfile::tempdir().unwrap();
    let settings = Settings {
        memory_bytes_max: 8 << 20,
        spill_directory: Some(spill.path().to_owned()),
        ..Settings::default()
    };
    let f = Fixture::with(settings);
    let sort = "SELECT count(*) FROM (SELECT value, repeat('x', 100) AS x FROM generate_series(1, 300000) ORDER BY x, value DESC)";
    assert_eq!(f.rows(sort), ["300000"]);
    let left: Vec<_> = walk(spill.path());
    assert!(left.is_empty(), "{left:?}");
}

/// Sorts, joins and groups of several times the pool, in any number of streams: spilled or refused, and where
/// it is answered, as without a limit.
#[test]
fn fault_h7_spilled_answers_are_those_of_memory() {
    let series = "generate_series(1, 150000)";
    let text = "repeat(CAST((value * 7919) % 150000 AS VARCHAR), 12)";
    let questions = [
        format!(
            "SELECT count(*), sum(n * length(x)), min(x), max(x) FROM \
             (SELECT row_number() OVER (ORDER BY x, value DESC) AS n, x FROM (SELECT value, {text} AS x FROM {series}))"
        ),
        format!(
            "SELECT count(*), sum(n), max(x) FROM (SELECT {text} AS x, count(*) AS n FROM {series} GROUP BY 1)"
        ),
        format!(
            "SELECT count(*), sum(a.value - b.value), max(a.x) FROM (SELECT value, {text} AS x FROM {series}) a \
             JOIN (SELECT value, {text} AS x FROM {series}) b ON a.x = b.x"
        ),
    ];
    let roomy = Fixture::with(Settings { memory_bytes_max: 4 << 30, ..Settings::default() });
    let right: Vec<Vec<String>> = questions.iter().map(|sql| roomy.rows(sql)).collect();
    let (mut spilled, mut refused) = (0, 0);
    for partitions in [1, 2, 4, 16] {
        let spill = tempfile::tempdir().unwrap();
        let tight = Fixture::with(Settings {
            memory_bytes_max: 16 << 20,
            spill_directory: Some(spill.path().to_owned()),
            partitions,
            ..Settings::default()
        });
        for (sql, right) in questions.iter().zip(&right) {
            match tight.batches(sql, &Params::none()) {
                Ok(batches) => {
                    spilled += 1;
                    let found: Vec<String> = rows(&batches).into_iter().map(|r| r.join("|")).collect();
                    assert_eq!(found, *right, "{partitions} streams: {sql}");
                }
                Err(e) => {
                    refused += 1;
                    assert_eq!(e.kind, SqlErrorKind::Limit, "{partitions} streams: {sql}: {e:?}");
                }
            }
            assert_eq!(tight.rows("SELECT count(*) FROM orders"), ["2"]);
        }
        // Streams of a question that failed end on their own.
        let begun = Instant::now();
        while !walk(spill.path()).is_empty() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(walk(spill.path()).is_empty(), "{partitions} streams left {:?}", walk(spill.path()));
    }
    println!("H7: {spilled} answers of spilled questions, {refused} refused");
    assert!(spilled >= 3, "{spilled} {refused}");
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p] }).collect()
}

#[test]
fn fault_h9_an_endless_query_ends_at_its_timeout() {
    let f = Fixture::with(Settings { timeout: Some(Duration::from_millis(300)), ..Settings::default() });
    for sql in [
        "SELECT count(*) FROM generate_series(1, 1000000000000)",
        "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT count(*) FROM r",
    ] {
        let begun = Instant::now();
        let e = f.error(sql);
        assert_eq!(e.kind, SqlErrorKind::Timeout, "{sql}: {e:?}");
        // Far more than it takes, so that a busy machine is no fault; without the timeout it takes days.
        assert!(begun.elapsed() < Duration::from_secs(60), "{sql}: {:?}", begun.elapsed());
    }
    assert_eq!(f.rows("SELECT count(*) FROM orders"), ["2"]);
}

#[test]
fn fault_h9_the_timeout_passes_while_all_threads_of_the_runtime_compute() {
    let f = Fixture::with(Settings { timeout: Some(Duration::from_millis(300)), ..Settings::default() });
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for _ in 0..f.runtime.metrics().num_workers() {
        let done = done.clone();
        f.runtime.spawn(async move {
            let begun = Instant::now();
            while !done.load(std::sync::atomic::Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(30)
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    }
    let e = f.error("SELECT count(*) FROM generate_series(1, 1000000000000)");
    assert_eq!(e.kind, SqlErrorKind::Timeout, "{e:?}");
    assert!(f.runtime.metrics().num_alive_tasks() > 0, "the timeout waited for the threads");
    done.store(true, std::sync::atomic::Ordering::SeqCst);
}

#[test]
fn fault_h9_dropping_an_answer_cancels_it() {
    let f = Fixture::new();
    let begun = Instant::now();
    f.runtime.block_on(async {
        let answer =
            f.session.run("SELECT * FROM generate_series(1, 1000000000000)", &Params::none()).await.unwrap();
        drop(answer);
    });
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(f.rows("SELECT count(*) FROM orders"), ["2"]);
}
