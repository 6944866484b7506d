//! What only a process can show: closed pipes, signals, the environment, two processes at one store.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A question that takes minutes and never yields.
const LONG: &str = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 200000) b WHERE a.value + b.value = 7";

fn asof(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asof"));
    command.current_dir(dir).env_remove("ASOF_STORE").env_remove("ASOF_LOG").env("NO_COLOR", "1");
    command
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap_or(-1), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.ndjson"), "{\"id\":1,\"v\":\"a\"}\n{\"id\":2,\"v\":\"b\"}\n").unwrap();
    let (code, out, err) =
        run(asof(dir.path()).args(["ingest", "s", "t.ndjson", "--table", "t", "--key", "id"]));
    assert_eq!(code, 0, "{out}{err}");
    dir
}

#[test]
fn the_environment_names_the_store_and_asks_for_a_log() {
    let dir = store();
    let asked = run(asof(dir.path()).env("ASOF_STORE", "s").args(["sql", "SELECT count(*) AS n FROM t"]));
    assert_eq!(asked, (0, "n\n2\n".into(), String::new()));
    assert!(
        run(asof(dir.path()).env("ASOF_STORE", "s").arg("status")).1.contains("table        t  2 events")
    );
    let (_, out, err) = run(asof(dir.path()).env("ASOF_LOG", "debug").args(["sql", "s", "SELECT 1 AS x"]));
    assert_eq!(out, "x\n1\n");
    assert!(err.contains("debug: SELECT 1 AS x"), "{err}");
}

#[cfg(unix)]
#[test]
fn fault_h14_a_closed_pipe_is_a_quiet_end() {
    let dir = store();
    let mut child = asof(dir.path())
        .args(["sql", "s", "SELECT * FROM generate_series(1, 5000000)"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((line.as_str(), output.status.code()), ("value\n", Some(0)));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_takes_up_what_another_process_declares_and_leaves_with_0_when_it_is_told_to() {
    let dir = store();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    let flow = "CREATE FLOW f AS AUTO CDC INTO t FROM files('in/**', format => 'json') KEYS (id)";
    assert_eq!(run(asof(dir.path()).args(["sql", "s", flow])).0, 0);
    let mut child =
        asof(dir.path()).args(["run", "s"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ask = |sql: &str| run(asof(dir.path()).args(["sql", "s", sql]));
    let wait = |what: &str, sql: &str, wanted: &str| {
        let from = Instant::now();
        while ask(sql).1 != wanted {
            assert!(from.elapsed() < Duration::from_secs(60), "{what}: {:?}", ask(sql));
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    std::fs::write(dir.path().join("in/a.ndjson"), "{\"id\":3,\"v\":\"c\"}\n").unwrap();
    wait("a file that came", "SELECT v FROM t WHERE id = 3", "v\nc\n");
    let refused = run(asof(dir.path()).args(["ingest", "s", "t.ndjson", "--table", "t", "--key", "id"]));
    assert_eq!(refused.0, 3, "{refused:?}");
    assert!(refused.2.contains("(asof run)") && refused.2.contains(&child.id().to_string()), "{}", refused.2);
    let other = flow.replace("FLOW f", "FLOW g").replace("INTO t", "INTO u").replace("in/", "in2/");
    std::fs::create_dir(dir.path().join("in2")).unwrap();
    std::fs::write(dir.path().join("in2/a.ndjson"), "{\"id\":1}\n").unwrap();
    assert_eq!(ask(&other).0, 0);
    wait("a flow that was handed over", "SELECT count(*) AS n FROM u", "n\n1\n");
    assert_eq!(ask(&other).0, 1, "it is there already");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let code = child.wait().unwrap().code();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut said).unwrap();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("f\n  1 delivered = 1 accepted") && said.contains("g\n  1 delivered"), "{said}");
    assert_eq!(ask("DROP FLOW g").0, 0, "nobody holds it any more");
}

#[cfg(unix)]
#[test]
fn fault_h9_ctrl_c_ends_a_script_at_once() {
    let dir = store();
    let child = asof(dir.path())
        .args(["sql", "s", LONG])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let started = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: cancelled\n");
}

#[cfg(unix)]
#[test]
fn an_intake_that_is_asked_to_stop_commits_and_leaves_with_0() {
    use std::io::Write;
    let dir = store();
    let mut child = asof(dir.path())
        .args(["ingest", "s", "-", "--table", "t", "--key", "id", "--source-name", "pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = (10..60_000).map(|i| format!("{{\"id\":{i},\"v\":\"x\"}}\n")).collect();
    stdin.write_all(lines.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(200));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let (_, out, _) = run(asof(dir.path()).args(["sql", "s", "SELECT count(*) > 2 AS more FROM t"]));
    assert_eq!(out, "more\ntrue\n", "{said}");
}

#[test]
fn fault_d18_a_second_writer_is_told_who_holds_the_store() {
    let dir = store();
    let mut child = asof(dir.path())
        .args(["ingest", "s", "-", "--table", "t", "--key", "id"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    for _ in 0..100 {
        if run(asof(dir.path()).args(["status", "s"])).1.contains(&format!("process {id} ")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let busy = run(asof(dir.path()).args(["ingest", "s", "t.ndjson", "--table", "t", "--key", "id"]));
    let asked = run(asof(dir.path()).args(["sql", "s", "SELECT count(*) AS n FROM t"]));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(busy.0, 3, "{}", busy.2);
    assert!(busy.2.starts_with("error:") && busy.2.contains(&id), "{}", busy.2);
    assert_eq!(asked.1, "n\n2\n");
}

#[cfg(unix)]
#[test]
fn fault_d18_a_writer_that_was_killed_is_named_and_not_taken_for_a_live_one() {
    let dir = store();
    let status = || run(asof(dir.path()).args(["status", "s"])).1;
    assert!(status().contains("writer       none\n"), "closed in order: {}", status());
    let mut child = asof(dir.path())
        .args(["ingest", "s", "-", "--table", "t", "--key", "id"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let alive = format!("writer       process {} ", child.id());
    for _ in 0..100 {
        if status().contains(&alive) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(status().contains(&alive), "{}", status());
    child.kill().unwrap();
    child.wait().unwrap();
    let dead = format!("writer       none; the last one, process {} ", child.id());
    assert!(status().contains(&dead), "{}", status());
    let again = run(asof(dir.path()).args(["ingest", "s", "t.ndjson", "--table", "t", "--key", "id"]));
    assert_eq!(again.0, 0, "{}", again.2);
    assert!(status().contains("writer       none\n"), "{}", status());
}

#[test]
fn a_failed_first_intake_leaves_no_store_behind() {
    let dir = store();
    std::fs::write(dir.path().join("bad.ndjson"), "{\"id\":1}\nbroken\n").unwrap();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let strict = |store: &str| {
        run(asof(dir.path()).args(["ingest", store, "bad.ndjson", "--table", "t", "--key", "id", "--strict"]))
    };
    for made in ["new", "empty"] {
        assert_eq!(strict(made).0, 5);
    }
    assert!(!dir.path().join("new").exists());
    assert_eq!(std::fs::read_dir(dir.path().join("empty")).unwrap().count(), 0);
    assert_eq!(strict("s").0, 5);
    let (_, out, _) = run(asof(dir.path()).args(["sql", "s", "SELECT count(*) AS n FROM t"]));
    assert_eq!(out, "n\n2\n", "a store that was there stays");
    // With a batch for each message the first is committed, and then the store stays.
    let some = ["ingest", "new", "bad.ndjson", "--table", "t", "--key", "id", "--strict", "--batch", "1"];
    assert_eq!(run(asof(dir.path()).args(some)).0, 5);
    let (_, out, _) = run(asof(dir.path()).args(["sql", "new", "SELECT count(*) AS n FROM t"]));
    assert_eq!(out, "n\n1\n");
}

#[test]
fn parquet_and_arrow_go_to_pipes() {
    let dir = store();
    let out =
        asof(dir.path()).args(["sql", "s", "SELECT * FROM t", "-o", "parquet"]).output().unwrap().stdout;
    assert_eq!((&out[..4], &out[out.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    let (code, _, err) = run(asof(dir.path()).args(["export", "s", "t", "out"]));
    assert_eq!(code, 0, "{err}");
    let mut files = std::fs::read_dir(dir.path().join("out/t")).unwrap().map(|e| e.unwrap().path());
    assert!(std::fs::read(files.next().unwrap()).unwrap().starts_with(b"PAR1"));
    let (code, _, err) = run(asof(dir.path()).args(["export", "s", "tt", "out"]));
    assert_eq!((code, err.as_str()), (1, "error: there is no table tt\nhint: did you mean t?\n"));
}

/// Exports again and again, killed at some moment each time: what is there is always whole.
#[cfg(unix)]
#[test]
fn a_killed_export_leaves_the_one_before_it() {
    let dir = store();
    let export = |dir: &Path| {
        let mut command = asof(dir);
        command.args(["export", "s", "t", "out", "--partition-by", "id", "-q"]).stdin(Stdio::null());
        command
    };
    assert_eq!(run(&mut export(dir.path())).0, 0);
    for n in 0..12 {
        let mut child = export(dir.path()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(5 * n));
        child.kill().unwrap();
        child.wait().unwrap();
        let table = dir.path().join("out/t");
        let manifest = asofdb::export::Manifest::read(&table).unwrap();
        manifest.verify(&table).unwrap();
        assert_eq!(manifest.rows, 2);
    }
    assert_eq!(run(&mut export(dir.path())).0, 0);
    let left = std::fs::read_dir(dir.path().join("out/.asof-export/table-t")).unwrap().count();
    assert_eq!(left, 3, "one generation, the link and the lock");
}

/// Rounds come while an intake waits for more, and a failure of the last one says that events are stored.
#[cfg(unix)]
#[test]
fn an_intake_exports_at_an_interval() {
    use std::io::Write;
    let dir = store();
    let options = ["--table", "t", "--key", "id", "--source-name", "pipe", "--batch", "1"];
    let rounds = ["--export-to", "out", "--export-every", "20ms", "--export-layout", "current"];
    let start = || {
        let mut child = asof(dir.path())
            .args(["ingest", "s", "-"])
            .args(options)
            .args(rounds)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        (child, stdin)
    };
    let rows = || asofdb::export::Manifest::read(dir.path().join("out/t")).map_or(0, |m| m.rows);
    let (child, mut stdin) = start();
    let mut last = rows();
    for id in 10..12 {
        writeln!(stdin, "{{\"id\":{id},\"v\":\"x\"}}").unwrap();
        let since = Instant::now();
        while rows() == last && since.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(10));
        }
        last = rows();
    }
    assert!(last >= 2, "rounds came while the intake was waiting: {last} rows");
    drop(stdin);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(rows(), 4, "the last export is of everything");
    std::fs::remove_file(dir.path().join("out/t")).unwrap();
    std::fs::write(dir.path().join("out/t"), "mine").unwrap();
    std::fs::write(dir.path().join("more.ndjson"), "{\"id\":12,\"v\":\"x\"}\n").unwrap();
    let more = ["ingest", "s", "more.ndjson", "--table", "t", "--key", "id"];
    let output = asof(dir.path()).args(more).args(rounds).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("the last export failed") && err.contains("every event is stored"), "{err}");
    let (_, out, _) = run(asof(dir.path()).args(["sql", "s", "SELECT count(*) AS n FROM t"]));
    assert_eq!(
        (out.as_str(), std::fs::read_to_string(dir.path().join("out/t")).unwrap()),
        ("n\n5\n", "mine".into())
    );
}

#[test]
fn upkeep_says_what_it_did() {
    let dir = store();
    for command in ["compact", "rebuild", "verify"] {
        let (code, _, err) = run(asof(dir.path()).args([command, "s"]));
        assert_eq!(code, 0, "{command}: {err}");
    }
    let (_, out, _) = run(asof(dir.path()).args(["sql", "s", "SELECT v FROM t ORDER BY id"]));
    assert_eq!(out, "v\na\nb\n");
    let (code, out, _) = run(asof(dir.path()).args(["verify", "s", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let head = report["head"].as_str().unwrap();
    assert_eq!((code, report["damage"].as_array().unwrap().len()), (0, 0));
    assert_eq!(run(asof(dir.path()).args(["verify", "s", "--head", head])).0, 0);
    let full = run(asof(dir.path()).args(["verify", "s", "--full"]));
    assert!(full.1.contains("\n2 events in runs and in memory, the catalog and 1 commit:"), "{}", full.1);
    let forged = "0".repeat(head.len());
    assert_eq!(run(asof(dir.path()).args(["verify", "s", "--head", &forged])).0, 1);
}

/// A child that does not outlive a test that fails.
struct Reaped(std::process::Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines of a child, as they come.
fn lines_of(child: &mut std::process::Child) -> std::sync::mpsc::Receiver<String> {
    let (sender, lines) = std::sync::mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

fn more(dir: &Path) {
    std::fs::write(dir.join("u.ndjson"), "{\"id\":1,\"v\":\"c\"}\n").unwrap();
    let (code, out, err) = run(asof(dir).args(["ingest", "s", "u.ndjson", "--table", "t", "--key", "id"]));
    assert_eq!(code, 0, "{out}{err}");
}

#[cfg(unix)]
#[test]
fn tail_follows_the_commits_of_another_process_and_stops_with_0() {
    let dir = store();
    let mut tail = asof(dir.path());
    tail.args(["tail", "s", "t", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Reaped(tail.spawn().unwrap());
    let lines = lines_of(&mut child.0);
    let next = || lines.recv_timeout(Duration::from_secs(20)).expect("a change");
    let types = |line: String| {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        (line["_change_type"].as_str().unwrap().to_owned(), line["v"].as_str().unwrap().to_owned())
    };
    assert_eq!([types(next()).0, types(next()).0], ["insert", "insert"]);
    more(dir.path());
    assert_eq!(types(next()), ("update_preimage".into(), "a".into()));
    assert_eq!(types(next()), ("update_postimage".into(), "c".into()));
    Command::new("kill").args(["-INT", &child.0.id().to_string()]).status().unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!(lines.recv().is_err(), "nothing comes twice");
}

/// A writer that has closed the store left nothing unfinished: what is wrong at the end of its log is damage.
#[test]
fn damage_at_the_end_of_a_log_that_was_closed_is_told() {
    let dir = store();
    let log = std::fs::read_dir(dir.path().join("s/log")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&log, bytes).unwrap();
    let (code, _, err) = run(asof(dir.path()).args(["verify", "s"]));
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("closed in order"), "{err}");
    assert!(run(asof(dir.path()).args(["status", "s"])).1.contains("log          dropped"));
}

#[test]
fn compacting_shrinks_the_log_unless_it_is_to_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String = (0..4000).map(|i| format!("{{\"id\":{i},\"v\":\"value {i}\"}}\n")).collect();
    std::fs::write(dir.path().join("t.ndjson"), lines).unwrap();
    let take = ["ingest", "s", "t.ndjson", "--table", "t", "--key", "id"];
    assert_eq!(run(asof(dir.path()).args(take)).0, 0);
    let question = ["sql", "s", "SELECT count(*) AS n, min(v) AS a, max(v) AS z, sum(id) AS s FROM t"];
    let before = run(asof(dir.path()).args(question));
    let compact = |more: &[&str]| {
        let (code, out, err) = run(asof(dir.path()).args(["compact", "s", "--json"]).args(more));
        assert_eq!(code, 0, "{out}{err}");
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        (value["log_bytes_before"].as_u64().unwrap(), value["log_bytes_after"].as_u64().unwrap())
    };
    let (from, to) = compact(&["--keep-log"]);
    assert_eq!(from, to, "the log is kept");
    assert!(!run(asof(dir.path()).args(["status", "s"])).1.contains("in runs only"));
    let (from, to) = compact(&[]);
    assert!(to * 20 < from, "the log went from {from} to {to} bytes");
    assert!(run(asof(dir.path()).args(["status", "s"])).1.contains("in runs only 4000 events"));
    assert_eq!(run(asof(dir.path()).args(question)), before);
    for upkeep in [&["verify", "s", "--full"][..], &["rebuild", "s"], &["verify", "s", "--full"]] {
        let (code, out, err) = run(asof(dir.path()).args(upkeep));
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(run(asof(dir.path()).args(question)), before, "after {upkeep:?}");
    }
}

/// The tour is over the store of the demo, goes through all its steps and ends; elsewhere it says what to make.
#[test]
fn the_tour_goes_through_the_demo() {
    let dir = store();
    assert_eq!(run(asof(dir.path()).args(["demo", "-q", "d"])).0, 0);
    let typed = |store: &str, text: &str| {
        let mut child = asof(dir.path())
            .arg(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let texts = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (status.code(), texts[0].clone(), texts[1].clone())
    };
    let (code, out, err) = typed("d", &"\\tour\n".repeat(10));
    assert_eq!(code, Some(0), "{out}{err}");
    let steps: Vec<String> = (1..=9).map(|n| format!("{n} of 9: ")).collect();
    assert!(steps.iter().all(|s| out.matches(s.as_str()).count() == 1), "{out}");
    assert!(out.contains("1,Ada,basic") && out.contains("set,update,2026-02-01T00:00:00Z"), "{out}");
    assert!(out.contains("removed") && out.ends_with("\\tour 1 begins again.\n"), "{out}");
    let (code, out, err) = typed("d", "\\tour 7\n\\tour\n\\at 2026-01-01\n\\tour\n");
    assert!(out.contains("7 of 9: ") && out.contains("8 of 9: ") && !out.contains("9 of 9: "), "{out}");
    assert!(code == Some(1) && err.contains("a clock of the session is moved"), "{err}");
    let (code, _, err) = typed("s", "\\tour\n");
    assert!(code == Some(1) && err.contains("hint: outside of this shell: asof demo"), "{err}");
    assert!(typed("d", "\\tour 10\n").2.contains("there is no step 10"));
}
