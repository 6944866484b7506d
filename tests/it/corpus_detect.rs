//! Every set of the corpus is taken for what it is.

use crate::corpus::{corpus, files};
use asofdb::format::FormatOptions;
use asofdb::source::{FileOptions, FileSource, Notice};
use std::path::Path;

/// Folders of the corpus and the format that their files are found to have. Of files that are listed
/// with their names, another one.
const SETS: &[(&str, &str)] = &[
    ("debezium-json", "debezium-json"),
    ("aws-dms", "dms"),
    ("dirty", "debezium-json"),
    ("maxwell", "maxwell"),
    ("canal", "canal"),
    ("ticdc", "ticdc"),
    ("ticdc/update_pk_is_update_column.csv", "ticdc-csv"),
    ("ticdc/update_pk_split.csv", "ticdc-csv"),
    ("ticdc/update_uk_delete_insert_same_ts.csv", "ticdc-csv"),
    ("ogg", "ogg"),
    ("debezium-mongodb", "debezium-mongodb"),
    ("debezium-mongodb/bson_scalar_types.jsonl", "json"),
    ("plain", "json"),
    ("plain/csv_sequence_numbers.csv", "csv"),
    ("bitemporal", "json"),
    ("wal2json", "wal2json"),
    ("debezium-flat", "debezium-flat"),
    ("cloudevents", "cloudevents"),
    ("delta-cdf", "delta-cdf"),
    ("soft-delete", "airbyte"),
    ("soft-delete/fivetran_history.csv", "fivetran"),
    ("soft-delete/striim_style.jsonl", "striim"),
];

fn format_of(file: &Path) -> String {
    let inputs = [file.to_string_lossy().into_owned()];
    // Files without a header are opened with names only.
    let options = FormatOptions { header: Some(vec!["a".into()]), ..FormatOptions::default() };
    let options = FileOptions { options, ..FileOptions::default() };
    let mut source = FileSource::open(&inputs, options, Vec::new()).unwrap();
    source.read(1, &mut |_, _| {}).unwrap();
    let found = source.take_notices().into_iter().find_map(|n| match n {
        Notice::Detected { format, .. } => Some(format.to_string()),
        _ => None,
    });
    found.unwrap_or_default()
}

#[test]
fn every_set_is_taken_for_what_it_is() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = Vec::new();
    for (folder, format) in SETS.iter().filter(|(path, _)| !path.contains('/')) {
        for file in files(&corpus.join(folder)) {
            let own = |(path, _): &&(&str, &str)| path.contains('/') && file.ends_with(path);
            let wanted = SETS.iter().find(own).map_or(*format, |(_, format)| *format);
            let found = format_of(&file);
            if found != wanted {
                wrong.push(format!("{}: {found}, not {wanted}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
