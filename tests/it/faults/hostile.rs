//! Files that nobody should send: what can be read is taken, the rest is put aside or is an error of the
//! file, and the store is sound.

use super::{Place, keyed};
use asofdb::{ErrorKind, ExportOptions, IntakeOptions};
use std::time::{Duration, Instant};

const GOOD: &str = r#"{"id":7,"v":"good"}"#;

/// The rows of a table as text, by a question.
fn ask(place: &Place, sql: &str) -> Vec<String> {
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    let session = place.store.session().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_time().worker_threads(1).build().unwrap();
    let answer = runtime.block_on(async {
        session.run(sql, &asofdb::sql::Params::none()).await.unwrap().collect().await.unwrap()
    });
    let format = FormatOptions::default();
    let show = |batch: &arrow::array::RecordBatch, row: usize| {
        let cells = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c, &format).unwrap().value(row).to_string());
        cells.collect::<Vec<_>>().join("|")
    };
    answer.iter().flat_map(|b| (0..b.num_rows()).map(|r| show(b, r)).collect::<Vec<_>>()).collect()
}

#[test]
fn fault_h1_hostile_json_is_put_aside_or_kept_exactly() {
    let begun = Instant::now();
    let deep = |n: usize| format!("{{\"id\":1,\"v\":{}{}}}", "[".repeat(n), "]".repeat(n));
    let objects = |n: usize| format!("{{\"id\":1,\"v\":{}1{}}}", "{\"a\":".repeat(n), "}".repeat(n));
    let wide: String = (0..100_000).map(|i| format!(",\"k{i}\":{i}")).collect();
    // What it is, its text, whether it is refused.
    let lines = [
        ("a million levels of arrays", deep(1_000_000), true),
        ("100,000 levels of objects", objects(100_000), true),
        ("levels that are not closed", format!("{{\"id\":1,\"v\":{}", "[".repeat(100_000)), true),
        ("a member twice", r#"{"id":1,"id":2}"#.to_owned(), true),
        ("a lone surrogate", r#"{"id":1,"v":"\ud800"}"#.to_owned(), true),
        ("NaN", r#"{"id":1,"v":NaN}"#.to_owned(), true),
        ("text behind the value", r#"{"id":1} x"#.to_owned(), true),
        ("no key", r#"{"v":1}"#.to_owned(), true),
        ("a key that is null", r#"{"id":null}"#.to_owned(), true),
        ("half a document", r#"{"id":1,"v":"#.to_owned(), true),
        ("a raw NUL", "{\"id\":1,\"v\":\"\0\"}".to_owned(), true),
        ("a string of 8 MB", format!("{{\"id\":2,\"v\":\"{}\"}}", "x".repeat(8 << 20)), false),
        ("an escaped NUL", r#"{"id":3,"v":"a\u0000b"}"#.to_owned(), false),
        ("an integer beyond 64 bits", r#"{"id":4,"n":12345678901234567890123}"#.to_owned(), false),
        ("an integer beyond 53 bits", r#"{"id":5,"n":9007199254740993}"#.to_owned(), false),
        ("1e999", r#"{"id":6,"n":1e999}"#.to_owned(), true),
    ];
    let place = Place::new();
    for (i, (what, text, refused)) in lines.iter().enumerate() {
        let file = format!("{text}\n{GOOD}\n");
        let report = place.take(&format!("{i}.ndjson"), file.as_bytes(), &keyed("t", "json"));
        let report = report.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!((report.delivered, report.quarantined), (2, u64::from(*refused)), "{what}: {report}");
    }
    let numbers = ask(&place, "SELECT CAST(n AS VARCHAR) AS n FROM t WHERE n IS NOT NULL ORDER BY id");
    assert!(numbers[0].ends_with("12345678901234567890123"), "exact: {numbers:?}");
    assert!(numbers[1].ends_with("9007199254740993"), "exact: {numbers:?}");
    assert_eq!(ask(&place, "SELECT count(*) FROM t WHERE v = 'good'"), ["1"]);
    assert_eq!(ask(&place, "SELECT length(v) FROM t WHERE id = 2"), [(8 << 20).to_string()]);
    let bom = format!("\u{feff}{GOOD}\n");
    assert_eq!(place.take("bom.ndjson", bom.as_bytes(), &keyed("u", "json")).unwrap().accepted, 1);
    let many = format!("{{\"id\":1{wide}}}\n{GOOD}\n");
    match place.take("wide.ndjson", many.as_bytes(), &keyed("w", "json")) {
        Ok(report) => assert_eq!(report.delivered, 2),
        Err(e) => assert!(!e.message().is_empty()),
    }
    place.assert_sound();
    println!("H1: {} kinds of lines in {:?}", lines.len() + 2, begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}

#[test]
fn fault_h4_hostile_csv_is_put_aside_with_its_line() {
    let long = "x".repeat(32 << 20);
    let files: [(&str, Vec<u8>, u64, u64); 8] = [
        ("a field of 32 MB", format!("id,v\n1,{long}\n7,good\n").into_bytes(), 2, 0),
        ("ragged rows", b"id,v\n1\n2,a,b,c\n7,good\n".to_vec(), 3, 2),
        ("bad UTF-8", b"id,v\n1,\xff\xfe\n7,good\n".to_vec(), 2, 1),
        ("NUL", b"id,v\n1,a\0b\n7,good\n".to_vec(), 2, 0),
        ("mixed ends of lines", b"id,v\r\n1,a\n2,b\r\n7,good\n".to_vec(), 3, 0),
        ("a quote that is not closed", b"id,v\n7,good\n1,\"abc\nmore\n".to_vec(), 3, 2),
        ("formulas", b"id,v\n1,=1+1\n2,@x\n3,-1\n7,good\n".to_vec(), 4, 0),
        ("no header that fits", b"a,b\n1,2\n".to_vec(), 1, 1),
    ];
    for (what, bytes, delivered, quarantined) in files {
        let place = Place::new();
        match place.take("f.csv", &bytes, &keyed("t", "csv")) {
            Ok(report) => {
                assert_eq!(
                    (report.delivered, report.quarantined),
                    (delivered, quarantined),
                    "{what}: {report}"
                );
                let lines: Vec<Option<u64>> = report.quarantined_first.iter().map(|q| q.line).collect();
                assert!(
                    lines.iter().all(|l| l.is_some_and(|l| l > 1)),
                    "{what}: the lines are told: {lines:?}"
                );
                if what != "no header that fits" {
                    assert_eq!(ask(&place, "SELECT v FROM t WHERE id = 7"), ["good"], "{what}");
                }
            }
            Err(e) => assert!(what == "no header that fits" && !e.message().is_empty(), "{what}: {e}"),
        }
        place.assert_sound();
    }
    println!("H4: 8 kinds of files");
}

/// A Parquet file of a few hundred rows.
fn parquet_file(place: &Place) -> Vec<u8> {
    let lines: String =
        (0..300).map(|i| format!("{{\"id\":{i},\"v\":\"value {}\",\"x\":{}.5}}\n", i % 17, i)).collect();
    place.take("made.ndjson", lines.as_bytes(), &keyed("made", "json")).unwrap();
    place.store.export("made", place.path("out"), &ExportOptions::default()).unwrap();
    let files = super::files_below(&place.path("out"));
    let file = files.iter().find(|p| p.extension().is_some_and(|e| e == "parquet")).expect("a file");
    std::fs::read(file).unwrap()
}

#[test]
fn fault_h3_damaged_parquet_is_an_error_of_the_file() {
    let place = Place::new();
    let whole = parquet_file(&place);
    let options =
        IntakeOptions { table: Some("t".into()), keys: vec!["id".parse().unwrap()], ..keyed("t", "parquet") };
    assert_eq!(place.take("whole.parquet", &whole, &options).unwrap().delivered, 300);
    let (mut refused, mut taken, step) = (0, 0, whole.len() / 400 + 1);
    let flips = (0..whole.len()).step_by(step).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        (format!("bit {} of byte {at}", at % 8), bytes)
    });
    let cuts = (0..whole.len()).step_by(step * 4).map(|at| (format!("cut at {at}"), whole[..at].to_vec()));
    for (n, (what, bytes)) in flips.chain(cuts).enumerate() {
        let begun = Instant::now();
        match place.take(&format!("f{n}.parquet"), &bytes, &keyed(&format!("t{n}"), "parquet")) {
            Ok(report) => {
                taken += 1;
                assert!(report.delivered <= 300, "{what}: {report}");
            }
            Err(e) => {
                refused += 1;
                let kinds = [ErrorKind::Source, ErrorKind::Usage, ErrorKind::Failed];
                assert!(
                    kinds.contains(&e.kind()) && !e.message().contains("inside of asofdb"),
                    "{what}: {e:?}"
                );
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: {:?}", begun.elapsed());
    }
    println!(
        "H3: {} damaged files of {} bytes, {refused} refused, {taken} taken",
        refused + taken,
        whole.len()
    );
    assert!(refused > 100, "{refused}");
    place.assert_sound();
}
