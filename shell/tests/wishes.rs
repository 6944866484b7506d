//! What people ask of shells for SQL, one test for each wish of the table in `docs/testing.md`. What takes a
//! terminal is played on one by `terminal.py`; where there is no Python, that part is passed over.

#![cfg(unix)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A question that takes minutes.
const LONG: &str = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 200000) b WHERE a.value + b.value = 7";

struct Shop {
    dir: tempfile::TempDir,
}

impl Shop {
    /// A store `s` with orders of which the first changes, one is late and one deleted.
    fn new() -> Shop {
        let shop = Shop { dir: tempfile::tempdir().unwrap() };
        let orders = [
            r#"{"op":"c","id":1,"status":"new","total":1450000000,"at":"2026-01-01T00:00:00Z","seen":"2026-01-01T00:00:00Z"}"#,
            r#"{"op":"u","id":1,"status":"paid","total":1450000000,"at":"2026-02-01T00:00:00Z","seen":"2026-02-01T00:00:00Z"}"#,
            r#"{"op":"c","id":2,"status":"\u001b[31mred","total":12345678901234567890.12,"at":"2026-03-01T00:00:00Z","seen":"2026-03-05T00:00:00Z"}"#,
            r#"{"op":"c","id":3,"status":"gone","total":3,"at":"2026-01-01T00:00:00Z","seen":"2026-01-01T00:00:00Z"}"#,
            r#"{"op":"d","id":3,"at":"2026-01-15T00:00:00Z","seen":"2026-01-15T00:00:00Z"}"#,
        ];
        std::fs::write(shop.path().join("o.ndjson"), orders.join("\n")).unwrap();
        let line = "ingest s o.ndjson --table orders --key id --op op --valid at --system seen --columns";
        let (code, out, err) = run(shop.asof().args(line.split(' ')).arg("* except op, at, seen"));
        assert_eq!(code, 0, "{out}{err}");
        shop
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn asof(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asof"));
        command.current_dir(self.path()).env("NO_COLOR", "1").env("ASOF_HISTORY", "");
        command.env_remove("ASOF_STORE").env_remove("ASOF_LOG");
        command
    }

    fn sql(&self, arguments: &[&str]) -> (i32, String, String) {
        run(self.asof().arg("sql").arg("s").args(arguments))
    }

    /// `asof s` or another command with this text as its standard input.
    fn piped(&self, arguments: &[&str], text: &str) -> (i32, String, String) {
        let mut child = self
            .asof()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        texts(child.wait_with_output().unwrap())
    }

    /// Plays a session of `asof` on a terminal; `None` where there is no Python.
    fn play(&self, arguments: &[&str], environment: &[(&str, &str)], steps: &[Step<'_>]) -> Option<Played> {
        let mut argv = vec![env!("CARGO_BIN_EXE_asof")];
        argv.extend(arguments);
        self.play_program(&argv, environment, steps)
    }

    fn play_program(
        &self,
        argv: &[&str],
        environment: &[(&str, &str)],
        steps: &[Step<'_>],
    ) -> Option<Played> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
        let home = self.path().display().to_string();
        let mut env = serde_json::json!({ "PATH": "/usr/bin:/bin", "HOME": home, "NO_COLOR": "1", "ASOF_HISTORY": "", "ASOF_PAGER": "" });
        environment.iter().for_each(|(name, value)| env[*name] = (*value).into());
        let steps: Vec<serde_json::Value> = steps.iter().map(Step::json).collect();
        let play = serde_json::json!({
            "argv": argv, "env": env, "cwd": home, "rows": 24, "columns": 90, "steps": steps,
        });
        let started =
            Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = started else {
            println!("no python3: nothing is played on a terminal");
            return None;
        };
        child.stdin.take().unwrap().write_all(play.to_string().as_bytes()).unwrap();
        let (code, out, err) = texts(child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{err}");
        let came: serde_json::Value = serde_json::from_str(&out).unwrap();
        let seen = came["seen"].as_str().unwrap().to_owned();
        if let Some(failed) = came["failed"].as_u64() {
            panic!("step {failed} {}: {seen}\n{seen:?}", steps[failed as usize]);
        }
        let seconds = came["seconds"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
        Some(Played { seen, seconds, code: came["code"].as_i64() })
    }
}

/// What is done at a terminal.
enum Step<'a> {
    /// Types it.
    Send(&'a str),
    /// Waits some seconds for it to be shown.
    See(&'a str),
    /// Waits for the next prompt.
    Prompt,
    /// Waits for the program to end.
    End,
}

impl Step<'_> {
    fn json(&self) -> serde_json::Value {
        match self {
            Step::Send(text) => serde_json::json!(["send", text]),
            // What the editor writes once, before a prompt; the prompt itself comes again with each key.
            Step::Prompt => serde_json::json!(["expect", "\x1b[?2004h", 30]),
            Step::See(text) => serde_json::json!(["expect", text, 30]),
            Step::End => serde_json::json!(["end", 30]),
        }
    }
}

use Step::{End, Prompt, See, Send};

/// What came of a session.
struct Played {
    seen: String,
    seconds: Vec<f64>,
    code: Option<i64>,
}

fn texts(output: Output) -> (i32, String, String) {
    let Output { status, stdout, stderr } = output;
    (status.code().unwrap_or(-1), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn run(command: &mut Command) -> (i32, String, String) {
    texts(command.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn wish_1_failing_sql_fails_the_script() {
    let shop = Shop::new();
    std::fs::write(shop.path().join("q.sql"), "SELECT 1 AS a;\nSELEKT 2;\nSELECT 3 AS c;").unwrap();
    let by_file = shop.sql(&["-f", "q.sql"]);
    let by_option = shop.sql(&["-c", "SELECT 1 AS a", "-c", "SELEKT 2", "-c", "SELECT 3 AS c"]);
    let script = "SELECT 1 AS a; SELEKT 2; SELECT 3 AS c;";
    for (code, out, err) in
        [by_file, by_option, shop.piped(&["sql", "s"], script), shop.piped(&["s"], script)]
    {
        assert_eq!((code, out.as_str()), (1, "a\n1\n"), "{err}");
        assert!(err.starts_with("error:"), "{err}");
    }
}

#[test]
fn wish_2_no_file_of_settings_changes_a_script() {
    let shop = Shop::new();
    let home = shop.path().join("home");
    std::fs::create_dir_all(home.join(".config/asof")).unwrap();
    for name in [".asofrc", ".asof", ".config/asof/rc", ".config/asof/config", ".config/asof/asofrc"] {
        std::fs::write(home.join(name), "\\o json\n\\null -\nSELECT 99;\n").unwrap();
    }
    let asked = run(shop.asof().env("HOME", &home).args(["sql", "s", "SELECT id FROM orders ORDER BY id"]));
    assert_eq!(asked, (0, "id\n1\n2\n".into(), String::new()));
}

#[test]
fn wish_3_a_last_statement_without_its_end_runs() {
    let shop = Shop::new();
    let script = "SELECT 1 AS a;\nSELECT 2 AS b\n-- the end";
    std::fs::write(shop.path().join("q.sql"), script).unwrap();
    for asked in [shop.sql(&["-f", "q.sql"]), shop.piped(&["sql", "s"], script), shop.sql(&[script])] {
        assert_eq!(asked, (0, "a\n1\nb\n2\n".into(), String::new()));
    }
    assert_eq!(shop.piped(&["s"], script).1, "a\n1\nb\n2\n");
    let (code, _, err) = shop.sql(&["SELECT 'open"]);
    assert_eq!(code, 1, "{err}");
}

#[test]
fn wish_4_nothing_is_left_in_the_home_directory() {
    let shop = Shop::new();
    let before = names(shop.path());
    let state = shop.path().join("s/../elsewhere").display().to_string();
    let steps = [Prompt, Send("SELECT 41 + 1 AS answer;\r"), See(" 42 "), Prompt, Send("\x04"), End];
    let Some(played) = shop.play_with_history(&[("XDG_STATE_HOME", &state)], &steps) else { return };
    assert_eq!(played.code, Some(0));
    let added: Vec<String> = names(shop.path()).into_iter().filter(|n| !before.contains(n)).collect();
    assert_eq!(added, ["elsewhere"], "only the state directory, which is elsewhere");
    let history = std::fs::read_to_string(shop.path().join("elsewhere/asof/history")).unwrap();
    assert!(history.contains("SELECT 41 + 1"), "{history}");
}

impl Shop {
    /// As [`Shop::play`], with the history where it is by default.
    fn play_with_history(&self, environment: &[(&str, &str)], steps: &[Step<'_>]) -> Option<Played> {
        // Other plays set the variable.
        let script = self.path().join("asof.sh");
        let text = format!("#!/bin/sh\nunset ASOF_HISTORY\nexec '{}' s\n", env!("CARGO_BIN_EXE_asof"));
        std::fs::write(&script, text).unwrap();
        let played = self.play_program(&["/bin/sh", script.to_str().unwrap()], environment, steps);
        std::fs::remove_file(&script).unwrap();
        played
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn wish_5_ctrl_c_clears_the_line_or_cancels_and_ctrl_d_leaves() {
    let shop = Shop::new();
    let long = format!("{LONG};\r");
    let steps = [
        Prompt,
        Send("SELECT nonsense"),
        See("nonsense"),
        Send("\x03"),
        Prompt,
        Send(&long),
        See("Ctrl-C cancels"),
        Send("\x03"),
        See("cancelled"),
        Prompt,
        Send("SELECT 41 + 1 AS answer;\r"),
        See(" 42 "),
        Prompt,
        Send("\x04"),
        End,
    ];
    let Some(played) = shop.play(&["s"], &[], &steps) else { return };
    assert_eq!(played.code, Some(0));
    let back = played.seconds[8] + played.seconds[9];
    assert!(back < 1.0, "the prompt came back after {back} s");
}

#[test]
fn wish_6_a_join_is_cancelled_also_under_a_pager() {
    let shop = Shop::new();
    // Reads nothing, and does not mind Ctrl-C, as less.
    let pager = "trap '' INT; echo 'pages' '...'; sleep 2";
    let steps = [
        Prompt,
        Send("\\o csv\r"),
        See("written as csv"),
        Prompt,
        Send("SELECT a.value FROM generate_series(1, 100000) a, generate_series(1, 200000) b;\r"),
        See("pages ..."),
        Send("\x03"),
        See("error: cancelled"),
        Prompt,
        Send("SELECT 41 + 1 AS answer;\r"),
        See("42"),
        Prompt,
        Send("\x04"),
        End,
    ];
    let Some(played) = shop.play(&["s"], &[("ASOF_PAGER", pager)], &steps) else { return };
    assert_eq!(played.code, Some(0));
    assert!(played.seconds[6] < 10.0, "{:?}", played.seconds);
}

#[test]
fn wish_7_wide_answers_can_be_read() {
    let shop = Shop::new();
    let columns: Vec<String> = (0..40).map(|i| format!("{i} AS column_{i}")).collect();
    let wide = format!("SELECT {};\r", columns.join(", "));
    let steps = [
        Prompt,
        Send(&wide),
        See("columns not shown"),
        Prompt,
        Send("\\last\r"),
        See("paged"),
        See("column_20"),
        Prompt,
        Send("\\x\r"),
        Prompt,
        Send(&wide),
        See("column_39 | 39"),
        Prompt,
        Send("\\x\r"),
        Prompt,
        Send("SELECT value FROM generate_series(1, 500);\r"),
        See("not shown"),
        Prompt,
        Send("\\last\r"),
        See("paged"),
        See(" 250 "),
        See(" 500 "),
        Prompt,
        Send("\x04"),
        End,
    ];
    let Some(played) = shop.play(&["s"], &[("ASOF_PAGER", "sed 's/^/paged /'")], &steps) else { return };
    let table = played.seen.find("column_0 ").expect("the first column");
    let note = played.seen.find("columns not shown").expect("a note");
    assert!(!played.seen[table..note].lines().any(|l| l.chars().count() > 90 && l.starts_with('\u{2502}')));
}

#[test]
fn wish_7_long_answers_go_through_the_pager_on_a_terminal_only() {
    let shop = Shop::new();
    let pager = "sed 's/^/paged /'";
    let rows = "SELECT value AS n FROM generate_series(1, 100);\r";
    let steps = [
        Prompt,
        Send(rows),
        See("paged "),
        Prompt,
        Send("SELECT 41 + 1 AS answer;\r"),
        See("\r\n\u{2502}     42"),
        Prompt,
        Send("\\pager off\r"),
        Prompt,
        Send(rows),
        See("\r\n\u{2502} 100"),
        Prompt,
        Send("\x04"),
        End,
    ];
    let Some(_) = shop.play(&["s"], &[("ASOF_PAGER", pager)], &steps) else { return };
    let (code, out, err) = {
        let mut child = shop.asof();
        run(child.env("ASOF_PAGER", pager).args([
            "sql",
            "s",
            "SELECT value AS n FROM generate_series(1, 100)",
        ]))
    };
    assert_eq!((code, out.lines().count()), (0, 101), "{err}");
    assert!(!out.contains("paged"));
}

#[test]
fn wish_8_a_long_question_says_that_it_lives() {
    let shop = Shop::new();
    let asked = format!("{LONG};\r");
    let steps = [Prompt, Send(&asked), See(" s ..."), See("Ctrl-C cancels"), Send("\x03"), Prompt];
    let Some(played) = shop.play(&["s"], &[], &steps) else { return };
    let waited = played.seconds[2] + played.seconds[3];
    assert!(waited > 0.8, "it was said after {waited} s");
    let (_, _, err) = shop.sql(&["--timeout", "2s", LONG]);
    assert!(err.starts_with("error: no answer within 2s"), "not on a terminal: {err}");
}

#[test]
fn wish_9_control_characters_never_reach_the_terminal() {
    let shop = Shop::new();
    let steps = [Prompt, Send("SELECT status FROM orders WHERE id = 2;\r"), See("\\x1b[31mred"), Prompt];
    if let Some(played) = shop.play(&["s"], &[], &steps) {
        assert!(!played.seen.contains("\x1b[31m"), "{:?}", played.seen);
    }
    let csv = shop.sql(&["SELECT status FROM orders WHERE id = 2"]);
    assert_eq!(csv.1, "status\n\x1b[31mred\n", "programs get what is there");
}

#[test]
fn wish_10_integers_and_decimals_are_never_in_scientific_form() {
    let shop = Shop::new();
    for mode in ["table", "csv", "tsv", "json", "ndjson", "markdown", "vertical"] {
        let (code, out, err) =
            shop.sql(&["-o", mode, "SELECT total, 9223372036854775807 AS n FROM orders ORDER BY id"]);
        assert_eq!(code, 0, "{err}");
        for number in ["1450000000", "12345678901234567890.12", "9223372036854775807"] {
            assert!(out.contains(number), "{mode}: {out}");
        }
        assert!(!out.contains("e+") && !out.contains("E+"), "{mode}: {out}");
    }
}

#[test]
fn wish_11_nothing_but_data_goes_to_stdout() {
    let shop = Shop::new();
    let question = "SELECT count(*) AS n FROM history('orders')";
    let (code, out, err) =
        run(shop.asof().env("ASOF_LOG", "debug").args(["sql", "s", "SET asof.valid_time = now()", question]));
    assert_eq!(code, 2, "one text of SQL: {out}{err}");
    let script = format!("SET asof.valid_time = now(); {question}");
    let (code, out, err) = run(shop.asof().env("ASOF_LOG", "debug").args(["sql", "s", &script]));
    assert_eq!((code, out.as_str()), (0, "n\n5\n"));
    assert!(err.contains("debug:") && err.contains("note:"), "{err}");
}

#[test]
fn wish_12_completion_answers_at_once() {
    let shop = Shop::new();
    let big = format!("SELECT '{}' AS big;\r", "x".repeat(3_000));
    let steps = [
        Prompt,
        Send("SELECT stat\t"),
        See("status"),
        Send("\x15SELECT * FROM ord\t"),
        See("orders"),
        Send(" FOR VALID_TIME AS\t"),
        See("AS OF "),
        Send("'2026-01-15' WHERE statu\t"),
        See("status"),
        Send("\x15"),
        Send(&big),
        See("\u{2026}"),
        Prompt,
    ];
    let Some(played) = shop.play(&["s"], &[], &steps) else { return };
    let slowest = [2, 4, 6, 8].iter().map(|n| played.seconds[*n]).fold(0.0, f64::max);
    assert!(slowest < 2.0, "a completion took {slowest} s");
}

#[test]
fn wish_13_errors_point_at_the_place() {
    let shop = Shop::new();
    let (code, _, err) = shop.sql(&["SELECT id,\n       statsu\nFROM orders"]);
    assert_eq!(code, 1);
    let wanted = " --> 2:8\n  |\n2 |        statsu\n  |        ^\n";
    assert!(err.contains(wanted) && err.contains("hint: did you mean"), "{err}");
    let (_, _, err) = shop.sql(&["SELCT 1"]);
    assert!(err.contains("hint: did you mean SELECT?"), "{err}");
    let (_, _, err) = shop.sql(&["SELECT * FROM ordrs"]);
    assert!(
        err.contains("1 | SELECT * FROM ordrs\n  |               ^") && err.contains("did you mean orders?"),
        "{err}"
    );
}

#[test]
fn wish_14_times_without_a_zone_are_utc_and_the_instant_is_told() {
    let shop = Shop::new();
    let said = shop.piped(&["s"], "\\at system 2026-02-03 18:00\n").2;
    assert!(said.contains("system time as of 2026-02-03T18:00:00Z (2026-02-03 18:00, UTC)"), "{said}");
    let (_, out, _) = shop
        .sql(&["SELECT status FROM orders FOR VALID_TIME AS OF '2026-01-31 23:59:59.999999' WHERE id = 1"]);
    assert_eq!(out, "status\nnew\n");
    let (_, out, _) = shop
        .sql(&["SELECT status FROM orders FOR VALID_TIME AS OF '2026-02-01T01:00:00+01:00' WHERE id = 1"]);
    assert_eq!(out, "status\npaid\n");
}

#[test]
fn wish_15_one_clock_for_both_axes_and_either_order_of_words() {
    let shop = Shop::new();
    let (code, out, err) =
        shop.piped(&["s"], "\\at 2026-01-10\nSELECT id, status FROM orders ORDER BY id;\n");
    assert_eq!((code, out.as_str()), (0, "id,status\n1,new\n3,gone\n"), "{err}");
    let both = |clause: &str| shop.sql(&[&format!("SELECT count(*) AS n FROM orders {clause}")]).1;
    assert_eq!(
        both("FOR SYSTEM_TIME ALL FOR VALID_TIME ALL"),
        both("FOR ALL SYSTEM_TIME FOR ALL VALID_TIME")
    );
}

#[test]
fn wish_16_no_path_ignores_the_clock_of_the_session() {
    let shop = Shop::new();
    for question in [
        "SELECT count(*) AS n FROM orders",
        "WITH o AS (SELECT * FROM orders) SELECT count(*) AS n FROM o",
        "SELECT n FROM (SELECT count(*) AS n FROM orders) x",
        "SELECT count(*) AS n FROM orders a JOIN orders b ON a.id = b.id",
        "SELECT (SELECT count(*) FROM orders) AS n",
        "SELECT count(*) AS n FROM orders WHERE id IN (SELECT id FROM orders)",
    ] {
        let (code, out, err) = shop.sql(&[&format!("SET asof.valid_time = '2026-02-15'; {question}")]);
        assert_eq!((code, out.as_str()), (0, "n\n1\n"), "{question}: {err}");
    }
    let steps = [
        Prompt,
        Send("\\at valid 2026-02-15\r"),
        See("@valid 2026-02-15> "),
        Send("SELECT * FROM orders;\r"),
        See("1 row"),
        See("valid as of 2026-02-15T00:00:00Z"),
        Prompt,
    ];
    shop.play(&["s"], &[], &steps);
}

#[test]
fn wish_17_scripts_have_a_command_of_their_own() {
    let shop = Shop::new();
    std::fs::write(shop.path().join("q.sql"), "SELECT status FROM orders WHERE id = $id").unwrap();
    let wanted = (0, "{\"status\":\"paid\"}\n".to_owned(), String::new());
    assert_eq!(shop.sql(&["-f", "q.sql", "-p", "id=1", "-o", "ndjson"]), wanted);
    assert_eq!(
        shop.piped(&["sql", "s", "-p", "id=1", "-o", "ndjson"], "SELECT status FROM orders WHERE id = $id"),
        wanted
    );
    assert_eq!(
        shop.sql(&["-c", "SELECT status FROM orders WHERE id = $id", "-p", "id=1", "-o", "ndjson"]),
        wanted
    );
    assert_eq!(shop.sql(&["--timeout", "1s", LONG]).0, 124);
}

#[test]
fn wish_18_rows_time_and_the_reason_of_an_empty_answer_are_told() {
    let shop = Shop::new();
    let steps = [
        Prompt,
        Send("SELECT id FROM orders;\r"),
        See("2 rows \u{b7} "),
        See("ms \u{b7} orders: latest, commit 1"),
        Prompt,
        Send("SELECT * FROM orders WHERE id = 99;\r"),
        See("0 rows"),
        See("empty: there are no events of this key of orders"),
        Prompt,
        Send("SELECT * FROM orders FOR VALID_TIME AS OF '2026-02-15' WHERE id = 2;\r"),
        See("empty: this key of orders first holds at 2026-03-01T00:00:00Z"),
        Prompt,
        Send("SELECT * FROM orders FOR SYSTEM_TIME AS OF '2026-03-02' WHERE id = 2 AND status <> 'x';\r"),
        See("empty: this key of orders was first known at 2026-03-05T00:00:00Z"),
        Prompt,
        Send("SELECT * FROM orders WHERE id = 3;\r"),
        See("empty: the row of this key of orders was deleted at 2026-01-15T00:00:00Z"),
        Prompt,
        Send("SELECT * FROM orders WHERE status = 'none';\r"),
        See("empty: orders has rows at these clocks"),
        Prompt,
        Send("\x04"),
        End,
    ];
    shop.play(&["s"], &[], &steps);
    assert_eq!(shop.sql(&["SELECT id FROM orders WHERE id = 99"]), (0, "id\n".into(), String::new()));
    let early = "\\at commit 1\nSELECT * FROM orders FOR VALID_TIME AS OF '1990-01-01';\n";
    let said = shop.piped(&["s"], early).2;
    assert!(said.contains("its first row holds from 2026-01-01T00:00:00Z"), "{said}");
}
