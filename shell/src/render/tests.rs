use super::{Mode, Options, renderer};
use arrow::array::*;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn bytes(mode: Mode, options: &Options, batches: &[RecordBatch]) -> (Vec<u8>, Vec<String>) {
    let out = Shared::default();
    let mut renderer = renderer(mode, Box::new(out.clone()), options);
    renderer.begin(&batches[0].schema()).unwrap();
    for batch in batches {
        renderer.batch(batch).unwrap();
    }
    let notes = renderer.end().unwrap();
    let bytes = out.0.lock().unwrap().clone();
    (bytes, notes)
}

fn shown(mode: Mode, options: &Options, batches: &[RecordBatch]) -> (String, Vec<String>) {
    let (bytes, notes) = bytes(mode, options, batches);
    (String::from_utf8(bytes).unwrap(), notes)
}

fn people() -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 300]));
    let names: ArrayRef =
        Arc::new(StringArray::from(vec![Some("Ada, \"L\""), None, Some("a|b\x1b[1m\nc\t\\")]));
    let amounts: ArrayRef =
        Arc::new(Decimal128Array::from(vec![100, -5, 0]).with_precision_and_scale(38, 2).unwrap());
    RecordBatch::try_from_iter_with_nullable([
        ("id", ids, false),
        ("name", names, true),
        ("sum", amounts, true),
    ])
    .unwrap()
}

fn wide(columns: usize, rows: i64) -> RecordBatch {
    let schema: SchemaRef = Arc::new(Schema::new(
        (0..columns).map(|i| Field::new(format!("column_{i}"), DataType::Int64, false)).collect::<Vec<_>>(),
    ));
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    RecordBatch::try_new(schema, vec![column; columns]).unwrap()
}

#[test]
fn csv_quotes_and_tells_null_from_empty() {
    let (text, _) = shown(Mode::Csv, &Options::default(), &[people()]);
    assert_eq!(text, "id,name,sum\n1,\"Ada, \"\"L\"\"\",1.00\n2,,-0.05\n300,\"a|b\x1b[1m\nc\t\\\",0.00\n");
    let empty: ArrayRef = Arc::new(StringArray::from(vec![Some(""), None, Some("NULL")]));
    let batch = RecordBatch::try_from_iter_with_nullable([("v", empty, true)]).unwrap();
    assert_eq!(shown(Mode::Csv, &Options::default(), std::slice::from_ref(&batch)).0, "v\n\"\"\n\nNULL\n");
    let options = Options { null: Some("NULL".into()), header: false, ..Options::default() };
    assert_eq!(shown(Mode::Csv, &options, &[batch]).0, "\"\"\nNULL\n\"NULL\"\n");
}

#[test]
fn tsv_escapes_its_own_characters() {
    let (text, _) = shown(Mode::Tsv, &Options::default(), &[people()]);
    assert_eq!(text, "id\tname\tsum\n1\tAda, \"L\"\t1.00\n2\t\\N\t-0.05\n300\ta|b\x1b[1m\\nc\\t\\\\\t0.00\n");
}

#[test]
fn json_reads_back_with_every_digit() {
    let (text, _) = shown(Mode::Json, &Options::default(), &[people(), people()]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.as_array().unwrap().len(), 6);
    assert_eq!(value[2]["name"], "a|b\x1b[1m\nc\t\\");
    assert!(text.contains("{\"id\":1,\"name\":\"Ada, \\\"L\\\"\",\"sum\":1.00},\n"), "{text}");
    let none = people().slice(0, 0);
    assert_eq!(shown(Mode::Json, &Options::default(), std::slice::from_ref(&none)).0, "[]\n");
    assert_eq!(shown(Mode::Ndjson, &Options::default(), &[none]).0, "");
    assert_eq!(shown(Mode::Ndjson, &Options::default(), &[people()]).0.lines().count(), 3);
}

#[test]
fn json_keeps_numbers_that_json_lacks_as_text() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY, 1e300]));
    let list = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    let list: ArrayRef = Arc::new(list);
    let batch = RecordBatch::try_from_iter_with_nullable([("f", floats, true), ("l", list, true)]).unwrap();
    let (text, _) = shown(Mode::Ndjson, &Options::default(), &[batch]);
    assert_eq!(text, "{\"f\":\"NaN\",\"l\":[1,null]}\n{\"f\":\"-inf\",\"l\":null}\n{\"f\":1e300,\"l\":[]}\n");
}

#[test]
fn table_aligns_and_escapes() {
    let (text, notes) = shown(Mode::Table, &Options::default(), &[people()]);
    let expected = "\
┌─────┬──────────────────┬───────┐
│ id  │ name             │ sum   │
├─────┼──────────────────┼───────┤
│   1 │ Ada, \"L\"         │  1.00 │
│   2 │ NULL             │ -0.05 │
│ 300 │ a|b\\x1b[1m\\nc\\t\\ │  0.00 │
└─────┴──────────────────┴───────┘
";
    assert_eq!(text, expected);
    assert!(notes.is_empty());
}

#[test]
fn markdown_escapes_bars() {
    let (text, _) = shown(Mode::Markdown, &Options::default(), &[people()]);
    assert!(text.lines().nth(1).unwrap().starts_with("| --: | ------"), "{text}");
    assert!(text.contains("a\\|b\\\\x1b[1m\\\\nc"), "{text}");
}

#[test]
fn a_terminal_leaves_out_the_middle_and_says_so() {
    let options = Options { width: Some(60), rows_max: 4, ..Options::default() };
    let (text, notes) = shown(Mode::Table, &options, &[wide(20, 3), wide(20, 5), wide(20, 100)]);
    assert!(text.lines().all(|l| super::display_width(l) <= 60), "{text}");
    assert_eq!(text.lines().count(), 3 + 2 + 1 + 2 + 1);
    let first: Vec<&str> = text.lines().filter_map(|l| l.split('│').nth(1)).map(str::trim).collect();
    assert_eq!(first, ["column_0", "0", "1", "⋮", "98", "99"]);
    assert_eq!(notes[0], "104 rows in the middle are not shown");
    assert!(notes[1].starts_with("columns not shown: column_2, column_3"), "{notes:?}");
}

#[test]
fn a_pipe_leaves_out_nothing() {
    let (text, notes) = shown(Mode::Table, &Options::default(), &[wide(50, 500)]);
    assert_eq!(text.lines().count(), 504);
    assert!(text.contains("column_49"));
    assert!(notes.is_empty());
}

#[test]
fn long_cells_are_cut_on_a_terminal_only() {
    let long: ArrayRef = Arc::new(StringArray::from(vec!["日本".repeat(100)]));
    let batch = RecordBatch::try_from_iter([("v", long)]).unwrap();
    let options = Options { width: Some(200), ..Options::default() };
    assert!(
        shown(Mode::Table, &options, std::slice::from_ref(&batch))
            .0
            .lines()
            .all(|l| super::display_width(l) <= 64)
    );
    assert!(shown(Mode::Table, &Options::default(), &[batch]).0.contains(&"日本".repeat(100)));
}

#[test]
fn vertical_shows_one_column_a_line() {
    let (text, _) = shown(Mode::Vertical, &Options::default(), &[people().slice(1, 1)]);
    assert_eq!(text, "-[ row 1 ]----\nid   | 2\nname | NULL\nsum  | -0.05\n");
}

#[test]
fn arrow_and_parquet_read_back() {
    let (ipc, _) = bytes(Mode::Arrow, &Options::default(), &[people(), people()]);
    let read = arrow::ipc::reader::StreamReader::try_new(ipc.as_slice(), None).unwrap();
    assert_eq!(read.map(|b| b.unwrap()).collect::<Vec<_>>(), [people(), people()]);
    let (parquet, _) = bytes(Mode::Parquet, &Options::default(), &[people()]);
    assert_eq!((&parquet[..4], &parquet[parquet.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    let mut twice = renderer(Mode::Parquet, Box::new(Shared::default()), &Options::default());
    twice.begin(&people().schema()).unwrap();
    twice.end().unwrap();
    assert!(twice.begin(&people().schema()).unwrap_err().to_string().contains("one result"));
}

#[test]
fn every_mode_has_a_name() {
    for (name, mode) in Mode::NAMES {
        assert_eq!(Mode::named(name), Some(mode));
        use clap::ValueEnum;
        assert_eq!(mode.to_possible_value().unwrap().get_name(), name);
    }
    assert_eq!(Mode::NAMES.len(), <Mode as clap::ValueEnum>::value_variants().len());
}

fn plan(nullable: bool) -> RecordBatch {
    let kinds: ArrayRef = Arc::new(StringArray::from(vec!["Plan with Metrics"]));
    let scan = "Filter: a > 1, metrics=[output_rows=2]\n  AsofScan: w, valid=[latest], system=[latest], \
                columns=[a], metrics=[output_rows=3, runs_read=1, runs_pruned=2]\n";
    let plans: ArrayRef = Arc::new(StringArray::from(vec![scan]));
    RecordBatch::try_from_iter_with_nullable([("plan_type", kinds, nullable), ("plan", plans, nullable)])
        .unwrap()
}

#[test]
fn a_plan_is_lines_that_are_broken_between_their_parts() {
    let narrow = Options { width: Some(60), ..Options::default() };
    let (text, notes) = shown(Mode::Table, &narrow, &[plan(false)]);
    let wanted = "\
Plan with Metrics:
  Filter: a > 1, metrics=[output_rows=2]
    AsofScan: w, valid=[latest], system=[latest],
        columns=[a], metrics=[output_rows=3, runs_read=1,
        runs_pruned=2]
";
    assert_eq!((text.as_str(), notes.len()), (wanted, 0));
    let (text, _) = shown(Mode::Table, &Options::default(), &[plan(false)]);
    assert!(text.lines().any(|l| l.starts_with("    AsofScan") && l.ends_with("runs_pruned=2]")), "{text}");
}

#[test]
fn a_table_with_the_columns_of_a_plan_is_a_table() {
    let (text, _) = shown(Mode::Table, &Options::default(), &[plan(true)]);
    assert!(text.starts_with('\u{250c}') && text.contains("\\n"), "{text}");
}
