//! The sets of the corpus with change events of MongoDB.

use crate::corpus::{assert_none, check, corpus, expected, with_keys};
use asofdb::IntakeOptions;

#[test]
fn mongodb_sets_are_taken_as_expected() {
    let Some(dir) = corpus() else { return };
    let mut all = Vec::new();
    for name in ["customers_no_schema.jsonl", "events_insert_update_delete.kdump.jsonl"] {
        let file = dir.join("debezium-mongodb").join(name);
        let answer = expected(&file);
        let options = match name.contains(".kdump.") {
            true => IntakeOptions::default(),
            false => with_keys(IntakeOptions::default(), &answer),
        };
        all.extend(check(&file, &options, &answer));
        let named = IntakeOptions { format: Some("debezium-mongodb".into()), ..options };
        all.extend(check(&file, &named, &answer));
    }
    assert_none(all);
}
