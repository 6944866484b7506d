//! Flows that run: what a turn takes, what is left for later, and what happens when a source fails.

use asofdb::flow::{FlowState, Runner, Trigger, Variable};
use asofdb::source::Until;
use asofdb::{ErrorKind, Store};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

struct Place {
    dir: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("s.asof")).unwrap();
        Place { dir, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Declares a flow; `DIR` in it is the directory.
    fn declare(&self, statement: &str) -> &Place {
        self.store.sql(&statement.replace("DIR", &self.dir.path().display().to_string())).unwrap();
        self
    }

    /// Writes a file, changed so many seconds ago.
    fn file(&self, name: &str, content: &str, age: u64) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
        self.age(name, age);
    }

    fn age(&self, name: &str, age: u64) {
        let file = File::options().write(true).open(self.path(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }

    fn append(&self, name: &str, content: &str) {
        OpenOptions::new().append(true).open(self.path(name)).unwrap().write_all(content.as_bytes()).unwrap();
    }

    fn runner(&self, names: &[&str]) -> asofdb::Result<Runner> {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let variable: Variable = Arc::new(|_| None);
        Runner::new(&self.store, &names, &variable, Until::CaughtUp)
    }

    fn ask(&self, question: &str) -> Vec<String> {
        let rows = self.store.sql(question).unwrap();
        let mut out = Vec::new();
        for batch in &rows.batches {
            let options = arrow::util::display::FormatOptions::default().with_null("-");
            for row in 0..batch.num_rows() {
                let cell = |c: &arrow::array::ArrayRef| {
                    arrow::util::display::ArrayFormatter::try_new(c, &options).unwrap().value(row).to_string()
                };
                out.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
            }
        }
        out
    }
}

/// A turn of the only flow.
fn turn(place: &Place, runner: &mut Runner, most: u64) -> Option<Trigger> {
    let [flow] = runner.flows() else { panic!("one flow") };
    flow.trigger(&place.store, most, &mut |_| ControlFlow::Continue(())).unwrap()
}

const ROWS: &str =
    "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM files('DIR/in/**', format => 'json') KEYS (id)";

#[test]
fn every_turn_takes_what_came_and_nothing_twice() {
    let place = Place::new();
    place.file("in/a.ndjson", "{\"id\":1,\"v\":1}\n{\"id\":2,\"v\":1}\n", 60);
    place.declare(ROWS);
    let mut runner = place.runner(&[]).unwrap();
    let mut delivered = || turn(&place, &mut runner, u64::MAX).unwrap().report.delivered;
    assert_eq!((delivered(), delivered()), (2, 0));
    place.append("in/a.ndjson", "{\"id\":1,\"v\":2}\n");
    place.file("in/deep/b.ndjson", "{\"id\":3,\"v\":1}\n", 0);
    assert_eq!((delivered(), delivered()), (2, 0));
    // A run that begins anew goes on there.
    let mut anew = place.runner(&["f"]).unwrap();
    assert_eq!(turn(&place, &mut anew, u64::MAX).unwrap().report.delivered, 0);
    place.append("in/deep/b.ndjson", "{\"id\":3,\"v\":2}\n");
    assert_eq!(turn(&place, &mut anew, u64::MAX).unwrap().report.delivered, 1);
    assert_eq!(place.ask("SELECT id, v FROM t ORDER BY id"), ["1 2", "2 1", "3 2"]);
    assert_eq!(place.ask("SELECT count(*) FROM history('t')"), ["5"]);
}

#[test]
fn two_flows_over_the_same_files_both_take_them() {
    let place = Place::new();
    place.file("in/a.ndjson", "{\"id\":1,\"v\":1}\n{\"id\":2,\"v\":1}\n", 60);
    place.declare(ROWS).declare(&ROWS.replace("FLOW f", "FLOW g").replace("INTO t", "INTO u"));
    place.declare(
        &ROWS
            .replace("FLOW f", "FLOW plain")
            .replace("INTO t", "INTO p")
            .replace("'json'", "'json', source_name => ''"),
    );
    let mut runner = place.runner(&[]).unwrap();
    for _ in 0..2 {
        for flow in runner.flows() {
            flow.trigger(&place.store, 1, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
        }
        // Another run: both go on where they were.
        runner = place.runner(&[]).unwrap();
    }
    for table in ["t", "u", "p"] {
        assert_eq!(place.ask(&format!("SELECT id FROM {table} ORDER BY id")), ["1", "2"], "{table}");
    }
    let streams = place.ask("SELECT DISTINCT stream FROM sources() ORDER BY stream");
    assert!(
        streams.iter().any(|s| s.starts_with("flow f/")) && streams.iter().any(|s| s.starts_with("flow g/")),
        "{streams:?}"
    );
    // A stream without a prefix is that of `asof ingest`.
    let dir = format!("{}/in/a.ndjson", place.dir.path().display());
    let report = place.store.ingest_files(&[dir], &asofdb::IntakeOptions::default()).unwrap();
    assert_eq!(report.delivered, 0);
}

#[test]
fn what_may_still_be_written_to_is_left_for_later() {
    let place = Place::new();
    // Half a line, an array, and something compressed that are being written.
    place.file("in/a.ndjson", "{\"id\":1,\"v\":1}\n{\"id\":2,", 0);
    place.file("in/b.json", "[{\"id\":3,\"v\":1},", 0);
    place.file("in/c.csv", "id,v", 0);
    place.declare(&ROWS.replace(", format => 'json'", ""));
    let mut runner = place.runner(&[]).unwrap();
    let first = turn(&place, &mut runner, u64::MAX).unwrap();
    assert_eq!((first.report.delivered, first.report.quarantined), (1, 0));
    let mut left: Vec<&str> = first.left.iter().filter_map(|l| l.rsplit('/').next()).collect();
    left.sort_unstable();
    assert_eq!(left, ["a.ndjson", "b.json", "c.csv"]);
    place.append("in/a.ndjson", "\"v\":1}\n");
    place.append("in/b.json", "{\"id\":4,\"v\":1}]");
    place.append("in/c.csv", "\n5,1\n6,");
    assert_eq!(turn(&place, &mut runner, u64::MAX).unwrap().report.delivered, 2, "lines, but no array yet");
    place.append("in/c.csv", "1");
    ["in/a.ndjson", "in/b.json", "in/c.csv"].iter().for_each(|name| place.age(name, 60));
    let last = turn(&place, &mut runner, u64::MAX).unwrap();
    assert_eq!((last.report.delivered, last.left.len()), (3, 0));
    assert_eq!(
        place.ask("SELECT id, v FROM t ORDER BY id"),
        (1..=6).map(|id| format!("{id} 1")).collect::<Vec<_>>()
    );
    assert_eq!(place.ask("SELECT count(*) FROM quarantine()"), ["0"]);
}

#[test]
fn a_file_is_at_rest_after_the_time_that_the_flow_says() {
    let place = Place::new();
    place.file("in/b.json", "[{\"id\":3,\"v\":1}]", 30);
    place.declare(&ROWS.replace("'json'", "'json', quiet => '1 minute'"));
    let mut runner = place.runner(&[]).unwrap();
    assert_eq!(turn(&place, &mut runner, u64::MAX).unwrap().left.len(), 1);
    place.age("in/b.json", 90);
    assert_eq!(turn(&place, &mut runner, u64::MAX).unwrap().report.delivered, 1);
}

#[test]
fn a_turn_ends_at_its_limit_and_the_next_goes_on() {
    let place = Place::new();
    let lines: String = (0..25).map(|n| format!("{{\"id\":{n},\"v\":{n}}}\n")).collect();
    place.file("in/a.ndjson", &lines, 60);
    place.declare(ROWS);
    let mut runner = place.runner(&[]).unwrap();
    let turns: Vec<(u64, bool)> = (0..4)
        .map(|_| turn(&place, &mut runner, 10).unwrap())
        .map(|t| (t.report.delivered, t.more))
        .collect();
    assert_eq!(turns, [(10, true), (10, true), (5, false), (0, false)]);
    assert_eq!(place.ask("SELECT count(*), sum(v) FROM t"), ["25 300"]);
}

#[test]
fn a_source_that_fails_is_asked_again_and_stops_no_other() {
    let place = Place::new();
    place.declare(&ROWS.replace("in/**", "missing/**"));
    place.declare(&ROWS.replace("FLOW f", "FLOW g"));
    place.file("in/a.ndjson", "{\"id\":1,\"v\":1}\n", 60);
    let mut runner = place.runner(&[]).unwrap();
    let mut turns = || -> Vec<Option<u64>> {
        let all = runner.flows().iter_mut();
        all.map(|f| f.trigger(&place.store, u64::MAX, &mut |_| ControlFlow::Continue(())).unwrap())
            .map(|t| t.map(|t| t.report.delivered))
            .collect()
    };
    assert_eq!(turns(), [None, Some(1)]);
    fs::rename(place.path("in"), place.path("missing")).unwrap();
    // Its directory went away from under it, and the other is not asked again so soon.
    assert_eq!(turns(), [None, None]);
    let state = |runner: &mut Runner, i: usize| match runner.flows()[i].state().clone() {
        FlowState::Down { attempts, error, .. } => (attempts, error.kind(), error.message().to_owned()),
        state => panic!("{state:?}"),
    };
    let (attempts, kind, message) = state(&mut runner, 0);
    assert_eq!((attempts, kind), (1, ErrorKind::Source));
    assert!(message.contains("missing"), "{message}");
    std::thread::sleep(Duration::from_millis(1_100));
    let back =
        runner.flows()[0].trigger(&place.store, 9, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
    assert!(back.back_since.is_some() && matches!(runner.flows()[0].state(), FlowState::Up));
    assert_eq!(place.ask("SELECT count(*) FROM t"), ["1"]);
}

#[test]
fn events_of_tables_that_are_not_listed_are_counted_and_passed_over() {
    let place = Place::new();
    let event = |table: &str, id: u32| {
        format!(
            "{{\"database\":\"d\",\"table\":\"{table}\",\"type\":\"insert\",\"ts\":{},\"xid\":{id},\"commit\":true,\"data\":{{\"id\":{id},\"line\":1}}}}\n",
            1_700_000_000 + id
        )
    };
    let lines: String =
        [("a", 1), ("b", 2), ("c", 3), ("b", 4)].iter().map(|(t, id)| event(t, *id)).collect();
    place.file("in/m.ndjson", &lines, 60);
    place.declare("CREATE FLOW f AS AUTO CDC INTO (d.a KEYS (id), d.b KEYS (id, line)) FROM STREAM files('DIR/in/*', format => 'maxwell')");
    let mut runner = place.runner(&[]).unwrap();
    let report = turn(&place, &mut runner, u64::MAX).unwrap().report;
    assert_eq!((report.delivered, report.accepted, report.ignored["other_table"]), (4, 3, 1));
    assert_eq!(place.ask("SELECT id FROM \"d.b\" ORDER BY id"), ["2", "4"]);
    assert_eq!(place.ask("SELECT count(*) FROM \"d.a\""), ["1"]);
    assert!(place.store.sql("SELECT * FROM \"d.c\"").is_err());
}

#[test]
fn clauses_do_what_they_say() {
    let place = Place::new();
    place.file(
        "in/a.ndjson",
        "{\"id\":1,\"at\":10,\"known\":100,\"v\":\"a\",\"note\":\"n\",\"seen\":1,\"gone\":false,\"x\":1}\n\
         {\"id\":1,\"at\":20,\"known\":101,\"v\":\"a\",\"note\":null,\"seen\":2,\"gone\":false,\"x\":1}\n\
         {\"id\":2,\"at\":20,\"known\":101,\"v\":\"b\",\"note\":\"m\",\"seen\":1,\"gone\":false,\"x\":1}\n\
         {\"id\":2,\"at\":30,\"known\":102,\"v\":\"b\",\"note\":\"m\",\"seen\":1,\"gone\":true,\"x\":1}\n",
        60,
    );
    place.declare(
        "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM files('DIR/in/*', format => 'json') KEYS (id) \
         TRACK HISTORY ON * EXCEPT (seen) STORED AS SCD TYPE 2 SYSTEM SEQUENCE BY known SEQUENCE BY at \
         COLUMNS * EXCEPT (x, gone, at, known) APPLY AS DELETE WHEN gone = true IGNORE NULL UPDATES ON (note)",
    );
    let mut runner = place.runner(&[]).unwrap();
    assert_eq!(turn(&place, &mut runner, u64::MAX).unwrap().report.delivered, 4);
    assert_eq!(place.ask("SELECT * FROM t"), ["1 a n 2"], "a column that is left out, a kept note, a delete");
    assert_eq!(
        place.ask("SELECT id, note, seen, \"__START_AT\", \"__END_AT\" FROM scd2('t') ORDER BY 1, 4"),
        ["1 n 2 10 -", "2 m 1 20 30"],
        "what is seen makes no row of its own"
    );
    assert_eq!(
        place.ask("SELECT id FROM t FOR SYSTEM_TIME AS OF 101 FOR VALID_TIME AS OF 30 ORDER BY id"),
        ["1", "2"]
    );
}

#[test]
fn flows_that_are_declared_altered_and_dropped_meanwhile_are_taken_up() {
    let place = Place::new();
    place.file("in/a.ndjson", "{\"id\":1,\"v\":1}\n", 60);
    place.declare(ROWS);
    let mut runner = place.runner(&[]).unwrap();
    assert_eq!(turn(&place, &mut runner, u64::MAX).unwrap().report.delivered, 1);
    place.declare(&ROWS.replace("FLOW f", "FLOW g").replace("INTO t", "INTO u").replace("in/**", "in2/**"));
    place.file("in2/a.ndjson", "{\"id\":1,\"w\":1}\n", 60);
    runner.refresh(&place.store).unwrap();
    let names: Vec<String> = runner.flows().iter().map(|f| f.name().to_owned()).collect();
    assert_eq!(names, ["f", "g"]);
    place.declare("DROP FLOW f");
    runner.refresh(&place.store).unwrap();
    assert_eq!(turn(&place, &mut runner, u64::MAX).unwrap().report.tables["u"], 1);
    place.file("in3/a.ndjson", "{\"id\":2,\"w\":1}\n{\"id\":3,\"w\":1}\n", 60);
    place.declare("ALTER FLOW g SET FROM files('DIR/in3/**', format => 'json')");
    runner.refresh(&place.store).unwrap();
    assert_eq!(turn(&place, &mut runner, u64::MAX).unwrap().report.delivered, 2, "as it is declared now");
    place.declare("DROP FLOW g");
    runner.refresh(&place.store).unwrap();
    assert!(runner.flows().is_empty());
    assert!(place.runner(&[]).err().unwrap().message().contains("no flow is declared"));
    let unknown = place.declare(ROWS).runner(&["ff"]).err().unwrap();
    assert_eq!(
        (unknown.message(), unknown.hints()),
        ("there is no flow ff", &["did you mean f?".to_owned()][..])
    );
}

#[test]
fn a_flow_that_can_never_run_stands_still_and_says_why() {
    let place = Place::new();
    place.declare(&ROWS.replace("INTO t", "INTO z"));
    // Meanwhile the table got another key, by another way in.
    place.file("z.ndjson", "{\"id\":1,\"v\":1}\n", 60);
    let options = asofdb::IntakeOptions {
        table: Some("z".into()),
        keys: vec!["v".parse().unwrap()],
        ..Default::default()
    };
    place.store.ingest_files(&[place.path("z.ndjson").to_str().unwrap()], &options).unwrap();
    place.file("in/a.ndjson", "{\"id\":2,\"v\":2}\n", 60);
    let mut runner = place.runner(&[]).unwrap();
    let taken = turn(&place, &mut runner, u64::MAX);
    match runner.flows()[0].state() {
        FlowState::Stopped(error) => assert!(error.message().contains("has key (v)"), "{error}"),
        state => panic!("{state:?} {taken:?}"),
    }
    assert!(turn(&place, &mut runner, u64::MAX).is_none());
    assert_eq!(place.ask("SELECT count(*) FROM z"), ["1"]);
}
