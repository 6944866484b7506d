//! Statements about flows, in every state of a store, and what outlives each state.

use super::fixture::{STATES, State, rows, runtime, session, store};
use super::slt::run_folder;
use asofdb::sql::Params;
use asofdb::{ErrorKind, Store};

#[test]
fn statements_about_flows_in_every_state() {
    for state in STATES {
        let dir = tempfile::tempdir().unwrap();
        run_folder("tests/slt/flows", 1, &store(dir.path(), state), state);
    }
}

const DECLARE: &str = "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM files('x/**') KEYS (id)";

#[test]
fn a_flow_outlives_reopening_compaction_and_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.asof");
    let shown = |store: &Store| rows(&store.sql("SELECT flow, statement FROM flows()").unwrap().batches);
    let there = vec![vec![
        "f".to_owned(),
        format!("{};", DECLARE.replace(" FROM", "\nFROM").replace(" KEYS", "\nKEYS")),
    ]];
    let made = Store::create(&path).unwrap();
    made.sql(DECLARE).unwrap();
    assert_eq!(shown(&made), there);
    drop(made);
    let reopened = Store::open(&path).unwrap();
    assert_eq!(shown(&reopened), there);
    reopened.engine().compact().unwrap();
    assert_eq!(shown(&reopened), there);
    reopened.engine().rebuild().unwrap();
    drop(reopened);
    assert_eq!(shown(&Store::open_read(&path).unwrap()), there);
}

#[test]
fn a_question_bounded_by_a_commit_sees_the_flows_of_now() {
    let dir = tempfile::tempdir().unwrap();
    let engine = store(dir.path(), State::Fresh);
    let session = session(&engine);
    runtime().block_on(async {
        session.run(DECLARE, &Params::none()).await.unwrap();
        session.run("SET asof.commit = 1", &Params::none()).await.unwrap();
        let answer = session.run("SELECT flow FROM flows()", &Params::none()).await.unwrap();
        assert_eq!(rows(&answer.collect().await.unwrap()), [["f"]]);
    });
}

#[test]
fn a_session_can_be_kept_from_changes() {
    let dir = tempfile::tempdir().unwrap();
    let made = Store::create(dir.path().join("s.asof")).unwrap();
    let settings = asofdb::sql::Settings { read_only: true, ..Default::default() };
    let session = made.session_with(settings).unwrap();
    let refused = session.ask(DECLARE, &Params::none()).map(drop).unwrap_err();
    assert_eq!(refused.message, "this session only asks questions");
    assert_eq!(rows(&session.ask("SHOW FLOWS", &Params::none()).unwrap().batches).len(), 0);
    assert_eq!(made.commit().0, 0);
}

#[test]
fn a_reader_has_the_owner_commit_what_it_declares() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a-store-with-a-long-name".repeat(6));
    let writer = Store::create(&path).unwrap();
    let reader = Store::open_read(&path).unwrap();
    let refused = reader.sql(DECLARE).map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.message().contains(&std::process::id().to_string()), "{refused}");
    let owner = writer.listen().unwrap();
    reader.sql(DECLARE).unwrap();
    let again = reader.sql(DECLARE).map(drop).unwrap_err();
    assert!(again.message().starts_with("flow f is there already (line 1"), "{again}");
    let names = |store: &Store| rows(&store.sql("SELECT flow FROM flows()").unwrap().batches);
    assert_eq!((names(&reader), names(&writer)), (vec![vec!["f".to_owned()]], vec![vec!["f".to_owned()]]));
    drop(owner);
    assert!(!path.join("socket").exists(), "nothing is left of it");
    assert_eq!(reader.sql("DROP FLOW f").map(drop).unwrap_err().kind(), ErrorKind::Busy);
    let _owner = writer.listen().unwrap();
    reader.sql("DROP FLOW f").unwrap();
    assert_eq!(names(&writer), Vec::<Vec<String>>::new());
    drop(writer);
}

#[test]
fn the_owner_takes_nothing_but_changes_of_the_catalog() {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let writer = Store::create(&path).unwrap();
    // A socket of one that was killed is in the way, a file is left alone.
    std::fs::write(path.join("socket"), "mine").unwrap();
    assert!(writer.listen().unwrap_err().message().contains("is no socket"));
    std::fs::remove_file(path.join("socket")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap());
    let _owner = writer.listen().unwrap();
    let mode = std::fs::metadata(path.join("socket")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ask = |line: &[u8]| {
        let mut stream = std::os::unix::net::UnixStream::connect(path.join("socket")).unwrap();
        stream.write_all(line).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let statement =
        |text: &str| ask(format!("{}\n", serde_json::json!({"version": 1, "statement": text})).as_bytes());
    assert!(statement("SELECT 1").contains("only statements that change the catalog"));
    assert!(statement("SHOW FLOWS").contains("changes nothing"));
    assert!(ask(b"{\"version\":2,\"statement\":\"\"}\n").contains("another version"));
    assert!(ask(b"hello\n").contains("cannot be read"));
    assert_eq!(ask(b"no end"), "");
    assert_eq!(ask(b"\xff\xfe\n"), "");
    assert!(statement(&format!("CREATE FLOW f{}", "(".repeat(200_000))).contains("limit"));
    assert!(statement(DECLARE).contains("flow f declared; asof run runs it, commit 1"), "it still answers");
}
