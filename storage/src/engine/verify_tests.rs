use super::*;
use crate::clock::{ManualClock, SeededEntropy};
use crate::disk::SimDisk;
use crate::engine::*;
use crate::event::{EventHead, Op, encode_row};
use crate::id::{ColumnId, OriginId, StreamId};
use crate::schema::Column;
use crate::value::{Cell, ColumnType};
use std::path::Path;

fn shared(memory_events_max: usize) -> Shared {
    let components = Components {
        disk: Arc::new(SimDisk::new()),
        clock: Arc::new(ManualClock::new(1_000_000)),
        entropy: Arc::new(SeededEntropy::new(7)),
        command: "test".into(),
    };
    let options = EngineOptions { memory_events_max, background: false, ..EngineOptions::default() };
    Shared::open(Path::new("/store"), OpenMode::Create, options, components).expect("a store")
}

fn table(ty: ColumnType) -> CatalogChange {
    let column = |i, name: &str, ty| Column { id: ColumnId(i), name: name.into(), ty, declared: false };
    let columns = vec![column(0, "key", ColumnType::Int64), column(1, "v", ty)];
    CatalogChange::Table(TableMeta {
        id: TableId(0),
        name: "t".into(),
        schemas: vec![(0, TableSchema { version: 1, columns, key: vec![ColumnId(0)] })],
        valid_declared: true,
        system_declared: false,
        valid_axis: Default::default(),
        system_axis: Default::default(),
        tracked: None,
    })
}

fn commit(shared: &Shared, seq: i64) {
    let mut block = RowBlock::default();
    for key in 0..5 {
        let position = seq as u64 * 10 + key;
        let head = EventHead { valid_from: Some(seq), ..EventHead::new(Op::Upsert, OriginId(0), position) };
        let head = EventHead { full: key != 2, ..head };
        let cells = [(ColumnId(0), Cell::Int(key as i64)), (ColumnId(1), Cell::Int(seq))];
        encode_row(&mut block.bytes, &head, &cells);
        block.ends.push(block.bytes.len() as u32);
    }
    let mut catalog = Vec::new();
    if seq == 1 {
        catalog.push(table(ColumnType::Int64));
        catalog.push(CatalogChange::Stream(Stream { id: StreamId(0), name: "s".into() }));
        let origin = Origin { id: OriginId(0), stream: StreamId(0), file: None, path: None };
        catalog.push(CatalogChange::Origin(origin));
    }
    let positions = vec![("source/s".to_owned(), seq.into())];
    let request = CommitRequest { catalog, blocks: vec![block], positions, ..CommitRequest::default() };
    shared.commit(request).expect("a commit");
}

fn damage(shared: &Shared) -> Vec<String> {
    shared.verify_full().expect("verification").damage
}

/// A store with events in runs and in memory.
fn filled() -> Shared {
    let store = shared(12);
    (1..=4).for_each(|seq| commit(&store, seq));
    assert_eq!(store.view().tables[&TableId(0)].runs.len(), 1);
    assert!(!store.view().tables[&TableId(0)].memory.is_empty());
    store
}

#[test]
fn a_sound_store_is_what_its_log_says() {
    let store = filled();
    let report = store.verify_full().expect("verification");
    assert_eq!(report, FullReport { commits: 4, events: 20, damage: vec![] });
    store.flush().expect("a flush");
    store.merge(crate::engine::merging::Merging::Everything).expect("a merge");
    assert_eq!(damage(&store), Vec::<String>::new());
}

#[test]
fn events_that_are_missing_doubled_or_others_are_told_by_commit() {
    let store = filled();
    let whole = (*store.view()).clone();
    let with = |change: &dyn Fn(&mut TableView)| {
        let mut view = whole.clone();
        change(Arc::make_mut(view.tables.get_mut(&TableId(0)).expect("a table")));
        store.publish(view);
        damage(&store)
    };
    assert_eq!(with(&|t| t.memory.clear()), ["table t, commit 4: 0 events are there, the log has 5"]);
    assert_eq!(
        with(&|t| t.memory.extend(t.memory.clone())),
        ["table t, commit 4: 10 events are there, the log has 5"]
    );
    assert_eq!(with(&|t| t.runs.clear()).len(), 3);
    let other = shared(1000);
    commit(&other, 1);
    let forged = other.view().tables[&TableId(0)].memory[0].sorted().expect("columns").plain.clone();
    let commits: Vec<u64> = vec![4; forged.num_rows()];
    let mut columns = forged.columns().to_vec();
    columns[4] = Arc::new(arrow::array::UInt64Array::from(commits));
    let forged = RecordBatch::try_new(forged.schema(), columns).expect("the same schema");
    let (mut sums, mut others) = (Sums::new(), Sums::new());
    let schema = whole.catalog.tables[&TableId(0)].schema().clone();
    let memory = whole.tables[&TableId(0)].memory[0].sorted().expect("columns");
    add(&mut sums, &memory.plain, &schema).expect("sums");
    add(&mut others, &forged, &schema).expect("sums");
    let mut told = Vec::new();
    compare_sums("t", &sums, &others, &mut told);
    assert_eq!(told, ["table t, commit 4: 5 events are there, with other contents"]);
}

#[test]
fn events_out_of_order_are_told_within_and_between_batches() {
    let store = filled();
    let view = store.view();
    let meta = &view.catalog.tables[&TableId(0)];
    let order = EventOrder { ranks: view.ranks.for_table(meta), system_declared: false };
    let plain = view.tables[&TableId(0)].memory[0].sorted().expect("columns").plain.clone();
    let (first, last) = (plain.slice(0, 2), plain.slice(2, 3));
    assert!(continues(None, &plain, order).expect("an order"));
    assert!(continues(Some(&first), &last, order).expect("an order"));
    assert!(!continues(Some(&last), &first, order).expect("an order"));
    let turned = concat_batches(&plain.schema(), [&last, &first]).expect("a batch");
    assert!(!continues(None, &turned, order).expect("an order"));
}

#[test]
fn a_catalog_or_commits_that_the_log_does_not_have_are_told() {
    let store = filled();
    let whole = (*store.view()).clone();
    let mut view = whole.clone();
    Arc::make_mut(&mut view.catalog).positions.insert("source/s".into(), 3.into());
    store.publish(view);
    assert_eq!(damage(&store), ["the positions of sources of the catalog are not those of the log"]);
    store.publish(whole);
    store.view().commits.write().expect("commits")[1].info.events = 6;
    assert_eq!(damage(&store), ["commit 2: what the store says of it is not what its frame says"]);
    // A list that was written wrongly and has the right digests.
    let mut manifest = crate::engine::shared::locked(&store.manifest).clone();
    manifest.commits = Default::default();
    store.store_manifest(&mut manifest, &store.view().commits).expect("a manifest");
    store.view().commits.write().expect("commits")[1].info.events = 5;
    assert_eq!(damage(&store), ["commit 2: what the list on disk says of it is not what its frame says"]);
}

#[test]
fn masks_of_any_width_and_placeholders_count_by_their_bits() {
    let store = filled();
    let view = store.view();
    let schema = view.catalog.tables[&TableId(0)].schema().clone();
    let plain = view.tables[&TableId(0)].memory[0].sorted().expect("columns").plain.clone();
    let sums = |mask: u64| {
        let mut columns = plain.columns().to_vec();
        columns[9] = Arc::new(arrow::array::UInt64Array::from(vec![mask; plain.num_rows()]));
        let mut sums = Sums::new();
        add(&mut sums, &RecordBatch::try_new(plain.schema(), columns).expect("a batch"), &schema)
            .expect("sums");
        sums
    };
    assert_eq!(sums(0b11), sums(u64::MAX), "columns that there are not say nothing");
    assert_ne!(sums(0b11), sums(0b01));
}
