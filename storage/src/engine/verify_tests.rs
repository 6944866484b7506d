use super::*;
use crate::engine::fixtures::{commit, open, small_memory};

fn damage(shared: &Shared) -> Vec<String> {
    shared.verify_full().expect("verification").damage
}

fn shared(memory_events_max: usize) -> Shared {
    open(&Default::default(), small_memory(memory_events_max, false))
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
