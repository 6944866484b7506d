//! The quarantine and its replay (rules C1, C2), in a real store.

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt64Type};
use asofdb::{ErrorKind, IntakeOptions, Store};
use asofdb_storage::event::EventColumns;
use std::collections::BTreeMap;
use std::path::Path;

fn options() -> IntakeOptions {
    IntakeOptions {
        table: Some("t".into()),
        keys: vec!["id".parse().unwrap()],
        op: Some("op".into()),
        ..Default::default()
    }
}

fn words(words: &[&str]) -> IntakeOptions {
    let op_map = words.iter().map(|w| w.parse().unwrap()).collect();
    IntakeOptions { op_map, ..Default::default() }
}

fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The latest `qty` by `id`.
fn latest(store: &Store) -> BTreeMap<i64, i64> {
    let mut out = BTreeMap::new();
    for batch in store.table("t").unwrap().as_of(None, None).unwrap() {
        let id = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().clone();
        let qty = batch.column_by_name("qty").unwrap().as_primitive::<Int64Type>().clone();
        out.extend((0..batch.num_rows()).map(|i| (id.value(i), qty.value(i))));
    }
    out
}

/// Positions of all stored events, with the commits that stored them.
fn stored(store: &Store) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    for batch in store.table("t").unwrap().history(None).unwrap() {
        let events = EventColumns::new(batch).unwrap();
        out.extend((0..events.len()).map(|i| {
            let commit: &arrow::array::PrimitiveArray<UInt64Type> = events.commit();
            (events.position().value(i), commit.value(i))
        }));
    }
    out.sort_unstable();
    out
}

fn waiting(store: &Store) -> Vec<u64> {
    let all = store.quarantine().unwrap();
    all.iter().filter(|e| e.resolved_by.is_none()).map(|e| e.number).collect()
}

#[test]
fn c2_a_replay_takes_what_can_be_taken_now_and_says_so_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(
        dir.path(),
        "a.jsonl",
        "{\"id\":1,\"op\":\"c\",\"qty\":1}\n{\"id\":2,\"op\":\"zap\",\"qty\":2}\nbroken\n{\"id\":3,\"op\":\"zap\",\"qty\":3}\n",
    );
    let home = dir.path().join("s");
    let store = Store::create(&home).unwrap();
    let first = store.ingest_files(&[&file], &options()).unwrap();
    assert_eq!((first.accepted, first.quarantined), (1, 3));
    // Options that change nothing change nothing.
    let same = store.replay_quarantine(&[], &IntakeOptions::default()).unwrap();
    assert_eq!((same.delivered, same.quarantined, same.commits), (3, 3, 0));
    assert_eq!(store.commit().0, 1);
    // One by its number, with an option over those that the file was read with.
    let one = store.replay_quarantine(&[3], &words(&["zap=upsert"])).unwrap();
    assert_eq!((one.delivered, one.accepted, one.last_commit), (1, 1, Some(2)));
    let rest = store.replay_quarantine(&[], &words(&["zap=upsert"])).unwrap();
    assert_eq!((rest.delivered, rest.accepted, rest.quarantined), (2, 1, 1));
    assert_eq!(rest.quarantined_first[0].line, Some(3));
    assert_eq!(latest(&store), BTreeMap::from([(1, 1), (2, 2), (3, 3)]));
    assert_eq!(stored(&store), [(0, 1), (1, 3), (3, 2)], "under the position they always had");
    // Nothing is taken twice, by this process or another, by number or not.
    for numbers in [&[][..], &[1, 3]] {
        let again = store.replay_quarantine(numbers, &words(&["zap=upsert"])).unwrap();
        assert_eq!((again.accepted, again.commits), (0, 0));
    }
    drop(store);
    for rebuild in [false, true] {
        let store = Store::open(&home).unwrap();
        if rebuild {
            store.engine().rebuild().unwrap();
        }
        assert_eq!(waiting(&store), [2], "rebuilt {rebuild}");
        let settled: Vec<_> =
            store.quarantine().unwrap().iter().map(|e| e.resolved_by.map(|c| c.0)).collect();
        assert_eq!(settled, [Some(3), None, Some(2)]);
        let again = store.replay_quarantine(&[], &words(&["zap=upsert"])).unwrap();
        assert_eq!((again.delivered, again.accepted, again.commits), (1, 0, 0));
        let status = store.engine().status().unwrap();
        assert_eq!((status.quarantined, status.resolved, status.events), (1, 2, 3));
        assert_eq!(store.ingest_files(&[&file], &options()).unwrap().accepted, 0, "nor with its file");
    }
}

#[test]
fn a5_a_replayed_message_stands_where_it_stood() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String = [(1, "c", 1), (1, "zap", 2), (1, "u", 3), (2, "c", 4), (0, "wipe", 0), (3, "c", 5)]
        .map(|(id, op, qty)| format!("{{\"id\":{id},\"op\":\"{op}\",\"qty\":{qty}}}\n"))
        .concat();
    let file = write(dir.path(), "a.jsonl", &lines);
    let store = Store::create(dir.path().join("s")).unwrap();
    store.ingest_files(&[&file], &options()).unwrap();
    assert_eq!(latest(&store), BTreeMap::from([(1, 3), (2, 4), (3, 5)]));
    let report = store.replay_quarantine(&[1], &words(&["zap=update"])).unwrap();
    assert_eq!((report.accepted, report.quarantined), (1, 0));
    assert_eq!(latest(&store)[&1], 3, "the event after it in the stream is still the newer one");
    // A truncate ends what stood before it and nothing after it.
    let report = store.replay_quarantine(&[], &words(&["wipe=truncate"])).unwrap();
    assert_eq!((report.accepted, report.rows.get("truncate")), (1, Some(&1)));
    assert_eq!(latest(&store), BTreeMap::from([(3, 5)]));
}

#[test]
fn c2_messages_of_every_container_are_replayed() {
    let record = |offset: u8, op: &str| {
        let value = format!("{{\\\"id\\\":{offset},\\\"op\\\":\\\"{op}\\\",\\\"qty\\\":7}}");
        format!(
            "{{\"topic\":\"t\",\"partition\":0,\"offset\":{offset},\"timestamp\":5,\"key\":null,\"value\":\"{value}\"}}\n"
        )
    };
    let object = |op: &str| format!("{{\"id\":2,\"op\":\"{op}\",\"qty\":7}}");
    for (name, content) in [
        ("a.csv", "id,op,qty\n1,c,7\n2,zap,7\n".to_owned()),
        ("a.tsv", "op\tqty\tid\nc\t7\t1\nzap\t7\t2\n".to_owned()),
        ("a.json", format!("[{{\"id\":1,\"op\":\"c\",\"qty\":7}},\n{}]", object("zap"))),
        ("a.kdump.jsonl", record(1, "c") + &record(2, "zap")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        write(&inside, name, &content);
        for source in [inside.join(name), inside.clone()] {
            let home = dir.path().join(format!("s{}", source == inside));
            let store = Store::create(&home).unwrap();
            let taken = store.ingest_files(&[source.to_str().unwrap()], &options()).unwrap();
            assert_eq!((taken.accepted, taken.quarantined), (1, 1), "{name}");
            let streams = store.catalog().streams.len();
            let report = store.replay_quarantine(&[], &words(&["zap=insert"])).unwrap();
            assert_eq!((report.accepted, report.quarantined), (1, 0), "{name}: {report:?}");
            assert_eq!(latest(&store), BTreeMap::from([(1, 7), (2, 7)]), "{name}");
            assert_eq!(store.catalog().streams.len(), streams, "no stream of its own: {name}");
        }
    }
}

#[test]
fn c2_a_replay_refuses_what_makes_no_sense_and_keeps_everything() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "a.jsonl", "{\"id\":1,\"op\":\"c\",\"qty\":1}\n{\"id\":2,\"op\":\"zap\"}\n");
    let store = Store::create(dir.path().join("s")).unwrap();
    store.ingest_files(&[&file], &options()).unwrap();
    let error = store.replay_quarantine(&[2], &IntakeOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.hints()), (ErrorKind::Usage, &["they go from 1 to 1".to_owned()][..]));
    let strict = IntakeOptions { strict: true, ..Default::default() };
    assert_eq!(store.replay_quarantine(&[], &strict).unwrap_err().kind(), ErrorKind::Source);
    let other_key = IntakeOptions { keys: vec!["qty".parse().unwrap()], ..words(&["zap=upsert"]) };
    assert_eq!(store.replay_quarantine(&[], &other_key).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!((store.commit().0, waiting(&store)), (1, vec![1]));
}
