use super::*;
use crate::backend::{Backend, Clocks};
use crate::outcome::Exit;
use crate::runner::Runner;
use crate::testing::Fake;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Bench {
    shell: Shell,
    fake: Arc<Fake>,
    answers: Shared,
    remarks: Arc<Mutex<Vec<String>>>,
}

fn bench() -> Bench {
    let fake = Arc::new(Fake::default());
    let (answers, remarks) = (Shared::default(), Arc::new(Mutex::new(Vec::new())));
    let (out, said) = (answers.clone(), remarks.clone());
    let screen = Screen {
        answers: Box::new(move || Box::new(out.clone())),
        remarks: Box::new(move |line| said.lock().unwrap().push(line.to_owned())),
        width: Box::new(|| None),
        lines: Box::new(|| None),
        pager: None,
        footers: true,
        colour: false,
        now: Box::new(|| 1_796_029_923_500_000),
    };
    let runner = Runner::new(fake.clone() as Arc<dyn Backend>).unwrap();
    Bench { shell: Shell::new(runner, screen, "shop"), fake, answers, remarks }
}

impl Bench {
    fn shown(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.answers.0.lock().unwrap())).unwrap()
    }
    fn said(&self) -> Vec<String> {
        std::mem::take(&mut self.remarks.lock().unwrap())
    }
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.fake.asked.lock().unwrap())
    }
}

#[test]
fn statements_run_in_order_up_to_the_first_failure() {
    let mut b = bench();
    b.shell.handle("rows 2; rows 1;").unwrap();
    assert_eq!(b.shown(), "n\n0\n1\nn\n0\n");
    assert_eq!(b.said().len(), 2);
    let failure = b.shell.handle("rows 1;\nfail; rows 3;").unwrap_err();
    assert_eq!(failure.exit, Exit::Failed);
    assert_eq!(b.asked(), ["rows 2", "rows 1", "rows 1", "fail"]);
}

#[test]
fn an_unknown_command_names_the_nearest() {
    let failure = bench().shell.handle("\\timelin orders 1").unwrap_err();
    assert_eq!(failure.message, "there is no command \\timelin");
    assert_eq!(failure.hints, ["did you mean \\timeline?"]);
}

#[test]
fn at_sets_the_clock_and_echoes() {
    let mut b = bench();
    b.shell.handle("\\at system 3 hours ago").unwrap();
    assert_eq!(b.asked(), ["SET asof.system_time = '2026-11-30T06:12:03.500Z'"]);
    assert!(b.said()[0].starts_with("system time as of 2026-11-30T06:12:03.500Z (3 hours ago, UTC)"));
    assert!(b.shell.handle("\\at system ''").is_err());
    assert!(b.asked().is_empty());
    *b.fake.set.lock().unwrap() = Clocks { valid: Some("2026-10-01T00:00:00Z".into()), ..Clocks::default() };
    assert_eq!(b.shell.prompt(), "shop @valid 2026-10-01> ");
}

#[test]
fn tables_are_described() {
    let mut b = bench();
    b.shell.handle("\\d").unwrap();
    assert!(b.shown().starts_with("orders  (id, status, amount)\n"));
    b.shell.handle(".d Orders").unwrap();
    assert!(b.shown().contains("  id      bigint  key 1\n"));
    assert_eq!(b.shell.handle("\\d ordrs").unwrap_err().hints, ["did you mean orders?"]);
}

#[test]
fn keys_become_conditions_of_their_type() {
    let mut b = bench();
    b.shell.handle("\\history orders 17").unwrap();
    b.shell.handle("\\history customers 17").unwrap();
    b.shell.handle("\\history customers \"O'Neil\"").unwrap();
    let asked = b.asked();
    assert_eq!(
        asked[0],
        "SELECT \"_operation\", \"__START_AT\", \"id\", \"status\", \"amount\", \"__COMMIT_SEQ\" FROM history('orders') \
         WHERE \"id\" = 17"
    );
    assert!(asked[1].ends_with("FROM history('customers') WHERE \"code\" = '17'"));
    assert!(asked[2].ends_with("\"code\" = 'O''Neil'"));
    assert!(
        b.shell.handle("\\history orders 1 2").unwrap_err().message.contains("the key of orders is (id)")
    );
    assert!(b.shell.handle("\\timeline").is_err());
}

#[test]
fn output_goes_to_modes_and_files() {
    let mut b = bench();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.txt");
    b.shell.handle("\\o json").unwrap();
    b.shell.handle("rows 1;").unwrap();
    assert_eq!(b.shown(), "[\n  {\"n\":0}\n]\n");
    assert!(b.shell.handle("\\o parquet").unwrap_err().message.contains("spoil"));
    assert!(b.shell.handle("\\o jsn").unwrap_err().hints[0].contains("json"));
    b.shell.handle(&format!("\\o {}", file.display())).unwrap();
    b.shell.handle("rows 1; rows 2;").unwrap();
    b.shell.handle("\\o").unwrap();
    assert_eq!(b.shown(), "");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "[\n  {\"n\":0}\n]\n[\n  {\"n\":0},\n  {\"n\":1}\n]\n"
    );
    b.shell.handle("rows 1;").unwrap();
    assert!(!b.shown().starts_with('['), "as at first");
}

#[test]
fn files_run_with_meta_commands_between_statements() {
    let mut b = bench();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.sql");
    std::fs::write(&file, "\\x\nrows\n1;\n\\t\n-- remark;\nrows 2").unwrap();
    b.shell.handle(&format!("\\i {}", file.display())).unwrap();
    assert_eq!(b.asked(), ["rows\n1", "rows 2"]);
    assert!(b.shown().starts_with("-[ row 1 ]-"));
    std::fs::write(&file, format!("\\i {}", file.display())).unwrap();
    assert!(b.shell.handle(&format!("\\i {}", file.display())).unwrap_err().message.contains("too deeply"));
    std::fs::write(&file, "rows 1;\n\n  fail;").unwrap();
    let place = b.shell.handle(&format!("\\i {}", file.display())).unwrap_err().place.unwrap();
    assert_eq!((place.line, place.column, place.text.as_str()), (3, 3, "  fail;"));
}

#[test]
fn quit_quits() {
    assert_eq!(bench().shell.handle("\\q").unwrap(), Step::Quit);
    assert_eq!(bench().shell.handle(".exit").unwrap(), Step::Quit);
}

#[test]
fn why_and_diff_are_questions_to_functions() {
    let mut b = bench();
    b.shell.handle("\\why orders 17 Status at 2026-11-01 known yesterday 18:00").unwrap();
    b.shell.handle("\\why customers 7 name").unwrap();
    b.shell.handle("\\diff orders yesterday 18:00 now").unwrap();
    b.shell.handle("\\diff orders commit:5 commit:3").unwrap();
    let asked = b.asked();
    assert_eq!(
        asked[0],
        "SELECT * FROM why('orders', 17, 'status', '2026-11-01T00:00:00Z', '2026-11-29T18:00:00Z')"
    );
    assert_eq!(asked[1], "SELECT * FROM why('customers', '7', 'name')");
    assert_eq!(
        asked[2],
        "SELECT \"_change_type\", \"id\", \"status\", \"amount\", \"__START_AT\", \"__END_AT\" \
         FROM belief_diff('orders', '2026-11-29T18:00:00Z', 'now') \
         ORDER BY \"id\", \"__START_AT\" NULLS FIRST, \"_change_type\" DESC"
    );
    assert!(
        asked[3].contains("FROM changes('orders', 4, 5) ORDER BY \"_commit_version\", \"id\""),
        "{}",
        asked[3]
    );
    assert!(b.said().iter().any(|s| s.contains("2026-11-29T18:00:00Z (yesterday 18:00, UTC)")), "the echo");
    *b.fake.set.lock().unwrap() = Clocks { valid: Some("2026-10-01T00:00:00Z".into()), ..Clocks::default() };
    b.shell.handle("\\why orders 17 status known now").unwrap();
    assert!(
        b.asked()[0].ends_with("'status', '2026-10-01T00:00:00Z', now())"),
        "the session's valid time stays"
    );
    for (wrong, hint) in [
        ("\\why orders 17 statis", "did you mean status?"),
        ("\\why ordrs 17 status", "did you mean orders?"),
        ("\\why orders 17", "for example"),
        ("\\why orders 17 status soon", "for example"),
        ("\\diff orders", "for example"),
        ("\\diff orders commit:3 now", "for example"),
    ] {
        let failure = b.shell.handle(wrong).unwrap_err();
        assert!(failure.hints[0].contains(hint), "{wrong}: {failure:?}");
    }
    assert!(b.asked().is_empty());
}
