use super::*;
use crate::change::Decoded;
use crate::format::{Format, FormatOptions};
use std::fs;
use std::io::Write;
use std::path::Path;

fn word(decoded: Decoded<'_>) -> String {
    match decoded {
        Decoded::Changes(c) => c.iter().map(|c| format!("{:?}", c.image.first().map(|c| c.cell))).collect(),
        Decoded::Ignored(kind) | Decoded::Repeat(kind) => format!("ignored {kind}"),
        Decoded::Quarantine(f) => format!("quarantine {}", f.reason),
    }
}

/// What a run delivers, its positions, and its notices.
pub(super) type Run = (Vec<String>, Vec<SourcePosition>, Vec<Notice>);

pub(super) fn run_with(
    inputs: &[&str],
    options: FileOptions,
    known: &[SourcePosition],
) -> Result<Run, SourceError> {
    let inputs: Vec<String> = inputs.iter().map(|s| s.to_string()).collect();
    let mut source = FileSource::open(&inputs, options, known.to_vec())?;
    let mut out = Vec::new();
    let mut sink = |place: &Place<'_>, decoded: Decoded<'_>| {
        let origin = if place.origin.is_empty() { place.stream } else { place.origin };
        let name = Path::new(origin).file_name().map_or(origin.into(), |n| n.to_string_lossy());
        out.push(format!("{name}:{}:{} {}", place.position, place.line, word(decoded)));
    };
    while source.read(2, &mut sink)? {}
    // What is known afterwards is what was known, with the positions of this run over it.
    let mut after = source.take_positions();
    let place =
        |p: &SourcePosition| (p.stream.clone(), p.stream_generation, p.origin.clone(), p.origin_generation);
    let fresh: Vec<_> = after.iter().map(place).collect();
    after.extend(known.iter().filter(|p| !fresh.contains(&place(p))).cloned());
    Ok((out, after, source.take_notices()))
}

pub(super) fn run(inputs: &[&str], known: &[SourcePosition]) -> Run {
    run_with(inputs, FileOptions::default(), known).expect("readable")
}

pub(super) fn path(dir: &tempfile::TempDir, name: &str, content: &[u8]) -> String {
    let path = dir.path().join(name);
    fs::create_dir_all(path.parent().expect("parent")).expect("directory");
    fs::write(&path, content).expect("written");
    path.to_string_lossy().into_owned()
}

pub(super) fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("directory")
}

#[test]
fn an_appended_file_yields_only_its_new_rows() {
    let dir = dir();
    let file = path(&dir, "a.jsonl", b"{\"a\":1}\n\n{\"a\":2}");
    let (first, known, _) = run(&[&file], &[]);
    assert_eq!(first, ["a.jsonl:0:1 Some(Int(1))", "a.jsonl:1:3 Some(Int(2))"]);
    assert_eq!(run(&[&file], &known).0, Vec::<String>::new());
    path(&dir, "a.jsonl", b"{\"a\":1}\n\n{\"a\":2}\n{\"a\":3}\r\n");
    let (more, known, notices) = run(&[&file], &known);
    assert_eq!(more.len(), 1);
    assert!(more[0].starts_with("a.jsonl:2:") && more[0].ends_with("Int(3))"), "{more:?}");
    assert!(!notices.iter().any(|n| matches!(n, Notice::OtherContent { .. })));
    path(&dir, "a.jsonl", b"{\"a\":9}\n\n{\"a\":2}\n{\"a\":3}\r\n");
    let (other, after, notices) = run(&[&file], &known);
    assert_eq!(other.len(), 3, "other content of the same length is new");
    assert!(notices.contains(&Notice::OtherContent { file: file.clone() }));
    assert!(after.iter().any(|p| p.stream_generation == 1));
}

#[test]
fn equal_content_is_taken_and_reported() {
    let dir = dir();
    let a = path(&dir, "a.jsonl", b"{\"a\":1}\n");
    let b = path(&dir, "b.jsonl", b"{\"a\":1}\n");
    let c = path(&dir, "c.jsonl", b"{\"a\":3}\n");
    let (rows, _, notices) = run(&[&a, &b, &c], &[]);
    assert_eq!(rows.len(), 3);
    assert_eq!(notices.iter().filter(|n| matches!(n, Notice::SameContent { .. })).count(), 1);
    assert!(notices.contains(&Notice::SameContent { file: b, other: a }));
}

#[test]
fn directories_are_read_in_natural_order() {
    let dir = dir();
    for (name, n) in [
        ("f10.jsonl", 10),
        ("f2.jsonl", 2),
        ("sub/f1.jsonl", 1),
        (".hidden.jsonl", 0),
        ("g.jsonl.tmp", 0),
        ("README.md", 0),
    ] {
        path(&dir, name, format!("{{\"a\":{n}}}\n").as_bytes());
    }
    let root = dir.path().to_string_lossy().into_owned();
    let (rows, known, notices) = run(&[&root], &[]);
    assert_eq!(
        rows,
        ["f2.jsonl:0:1 Some(Int(2))", "f10.jsonl:0:1 Some(Int(10))", "f1.jsonl:0:1 Some(Int(1))"]
    );
    assert!(known.iter().all(|p| p.stream == root && !p.origin.is_empty()));
    assert!(notices.iter().any(|n| matches!(n, Notice::Skipped { file, .. } if file.ends_with("README.md"))));
    let glob = format!("{root}/f*.jsonl");
    assert_eq!(run(&[&glob], &[]).0.len(), 2);
    assert!(run_with(&[&format!("{root}/z*.jsonl")], FileOptions::default(), &[]).is_err());
    assert_eq!(natural_order("a2", "a10"), std::cmp::Ordering::Less);
    assert_ne!(natural_order("a1", "a01"), std::cmp::Ordering::Equal);
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_and_pipes_do_not_hang() {
    let (dir, outside) = (dir(), dir());
    path(&dir, "a.jsonl", b"{\"a\":1}\n");
    let secret = path(&outside, "secret.jsonl", b"{\"a\":666}\n");
    std::os::unix::fs::symlink(&secret, dir.path().join("link.jsonl")).expect("link");
    std::os::unix::fs::symlink("a.jsonl", dir.path().join("inside.jsonl")).expect("link");
    let fifo = dir.path().join("pipe.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    let (rows, _, notices) = run(&[&dir.path().to_string_lossy()], &[]);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(notices.iter().filter(|n| matches!(n, Notice::Skipped { .. })).count(), 2);
    assert!(run_with(&[&fifo.to_string_lossy()], FileOptions::default(), &[]).is_err());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_without_waiting_for_it() {
    let dir = dir();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s.jsonl")).expect("socket");
    let fifo = dir.path().join("p.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    std::os::unix::fs::symlink("nowhere", dir.path().join("l.jsonl")).expect("link");
    std::os::unix::fs::symlink("p.jsonl", dir.path().join("m.jsonl")).expect("link");
    let root = dir.path().to_string_lossy().into_owned();
    for name in ["s.jsonl", "p.jsonl", "m.jsonl"]
        .map(|n| format!("{root}/{n}"))
        .into_iter()
        .chain(["/dev/zero".into()])
    {
        let error = run_with(&[&name], FileOptions::default(), &[]).expect_err("no file");
        assert!(error.reason.contains("pipe, socket or device"), "{error}");
        assert!(error.hint.contains(&format!("< {name}")), "{}", error.hint);
    }
    assert!(run_with(&[&format!("{root}/l.jsonl")], FileOptions::default(), &[]).is_err());
    let skipped = |notices: &[Notice]| {
        let all = notices.iter().filter_map(|n| match n {
            Notice::Skipped { file, reason } => Some(format!("{} {reason}", &file[root.len() + 1..])),
            _ => None,
        });
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    };
    let (rows, _, notices) = run(&[&root], &[]);
    assert!(rows.is_empty());
    let kinds = ["l.jsonl the link leads to no file", "m.jsonl the link leads to no file"];
    let none = ["p.jsonl it is a pipe, socket or device", "s.jsonl it is a pipe, socket or device"];
    assert_eq!(skipped(&notices), [kinds, none].concat());
    // A glob says so of what it means only.
    path(&dir, "sub/deep/a.jsonl", b"{\"a\":1}\n");
    let (rows, _, notices) = run(&[&format!("{root}/**/[a-p].jsonl")], &[]);
    assert_eq!((rows.len(), skipped(&notices).len()), (1, 3), "{notices:?}");
}

#[cfg(unix)]
#[test]
fn links_within_globs_and_directories_lead_nowhere_else() {
    let (dir, outside) = (dir(), dir());
    path(&outside, "sub/secret.jsonl", b"{\"a\":666}\n");
    path(&dir, "in/a.jsonl", b"{\"a\":1}\n");
    std::os::unix::fs::symlink(outside.path().join("sub"), dir.path().join("in/sub")).expect("link");
    std::os::unix::fs::symlink("../in", dir.path().join("in/loop")).expect("link");
    let root = dir.path().to_string_lossy().into_owned();
    for input in [format!("{root}/in"), format!("{root}/**/*.jsonl"), format!("{root}/in/**")] {
        assert_eq!(run(&[&input], &[]).0.len(), 1, "{input}");
    }
    // The directory that a person names may be a link itself.
    std::os::unix::fs::symlink("in", dir.path().join("link")).expect("link");
    assert_eq!(run(&[&format!("{root}/link")], &[]).0.len(), 1);
}

#[test]
fn globs_go_as_deep_as_they_say_and_in_natural_order() {
    let dir = dir();
    for (name, n) in
        [("x/10.jsonl", 10), ("x/9.jsonl", 9), ("x/y/1.jsonl", 1), ("x/y/z/2.jsonl", 2), ("3.jsonl", 3)]
    {
        path(&dir, name, format!("{{\"a\":{n}}}\n").as_bytes());
    }
    path(&dir, "x/.h/4.jsonl", b"{\"a\":4}\n");
    let root = dir.path().to_string_lossy().into_owned();
    for (pattern, expected) in [
        ("*.jsonl", &[3][..]),
        ("**/*.jsonl", &[3, 9, 10, 1, 2]),
        ("x/**/*.jsonl", &[9, 10, 1, 2]),
        ("x/*/*.jsonl", &[1]),
        ("x/{9,10}.jsonl", &[9, 10]),
        ("x/?.jsonl", &[9]),
    ] {
        let rows = run(&[&format!("{root}/{pattern}")], &[]).0;
        let numbers: Vec<i64> = rows
            .iter()
            .map(|r| {
                r.rsplit_once("Int(").expect("a number").1.trim_end_matches("))").parse().expect("digits")
            })
            .collect();
        assert_eq!(numbers, expected, "{pattern}");
    }
}

#[test]
fn a_file_without_bytes_has_no_rows_until_it_has_some() {
    for (name, content) in [("a.jsonl", &b"{\"a\":1}\n"[..]), ("a.csv", b"a\n1\n"), ("a", b"{\"a\":1}\n")] {
        let dir = dir();
        let file = path(&dir, name, b"");
        let root = dir.path().to_string_lossy().into_owned();
        for input in [&file, &root] {
            path(&dir, name, b"");
            let (rows, known, _) = run(&[input], &[]);
            assert!(rows.is_empty(), "{name}: {rows:?}");
            path(&dir, name, content);
            let (rows, known, notices) = run(&[input], &known);
            assert_eq!(rows.len(), 1, "{name}");
            assert!(!notices.iter().any(|n| matches!(n, Notice::OtherContent { .. })), "{notices:?}");
            assert!(run(&[input], &known).0.is_empty(), "{name}");
        }
    }
}

#[test]
fn what_goes_away_between_listing_and_reading_is_passed_over_unless_it_was_named() {
    let dir = dir();
    let first = path(&dir, "1.jsonl", b"{\"a\":1}\n");
    let second = path(&dir, "2.jsonl", b"{\"a\":2}\n");
    let read = |inputs: &[String]| {
        path(&dir, "2.jsonl", b"{\"a\":2}\n");
        let mut source = FileSource::open(inputs, FileOptions::default(), Vec::new()).expect("listed");
        fs::remove_file(&second).expect("removed");
        let mut rows = 0;
        while source.read(9, &mut |_, _| rows += 1)? {}
        Ok::<_, SourceError>((rows, source.take_notices()))
    };
    let (rows, notices) = read(&[dir.path().to_string_lossy().into_owned()]).expect("the other one");
    assert_eq!(rows, 1);
    let reason = "it went away before it was read".to_owned();
    assert!(notices.contains(&Notice::Skipped { file: second.clone(), reason }), "{notices:?}");
    let error = read(&[first, second.clone()]).expect_err("one was named");
    assert_eq!(error.file, second);
}

#[cfg(unix)]
#[test]
fn what_became_a_pipe_since_it_was_listed_is_not_waited_for() {
    let dir = dir();
    let file = path(&dir, "1.jsonl", b"{\"a\":1}\n");
    let mut source =
        FileSource::open(std::slice::from_ref(&file), FileOptions::default(), Vec::new()).expect("listed");
    fs::remove_file(&file).expect("removed");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    let error = source.read(9, &mut |_, _| {}).expect_err("no file");
    assert_eq!(error.reason, "is no file any more");
}

#[test]
fn long_lines_are_passed_over_without_holding_them() {
    let dir = dir();
    let mut content = b"{\"a\":1}\n{\"a\":\"".to_vec();
    content.resize(content.len() + (5 << 20), b'x');
    content.extend_from_slice(b"\"}\n{\"a\":3}\n");
    let file = path(&dir, "a.jsonl", &content);
    let options = FormatOptions { message_bytes_max: 1 << 20, ..FormatOptions::default() };
    let options = FileOptions { options, ..FileOptions::default() };
    let (rows, ..) = run_with(&[&file], options, &[]).expect("readable");
    assert_eq!(rows.len(), 3);
    assert!(rows[1].starts_with("a.jsonl:1:2 quarantine the message has 5242"), "{}", rows[1]);
    assert_eq!(rows[2], "a.jsonl:2:3 Some(Int(3))");
}

#[test]
fn csv_records_span_lines_and_an_open_quote_costs_one_line() {
    let dir = dir();
    let file = path(&dir, "a.csv", b"\xef\xbb\xbfa,b\r\n1,\"x\ny\"\r\n\n2,z\n3,\"open\n4,z\n");
    let (rows, known, _) = run(&[&file], &[]);
    assert_eq!(
        rows,
        [
            "a.csv:0:2 Some(Int(1))",
            "a.csv:1:5 Some(Int(2))",
            "a.csv:2:6 quarantine a quote is not closed",
            "a.csv:3:7 Some(Int(4))",
        ]
    );
    let mut f = fs::OpenOptions::new().append(true).open(&file).expect("open");
    f.write_all(b"5,z\n").expect("append");
    let (rows, known, _) = run(&[&file], &known);
    assert_eq!(rows, ["a.csv:4:8 Some(Int(5))"]);
    assert!(run(&[&file], &known).0.is_empty());
}

#[test]
fn other_containers_are_recognised() {
    let dir = dir();
    let array = path(&dir, "a.json", b" [ {\"a\":1},\n {\"a\":2} , 3 ]\n");
    let rows = run(&[&array], &[]).0;
    assert_eq!(rows[..2], ["a.json:0:1 Some(Int(1))", "a.json:1:2 Some(Int(2))"]);
    assert_eq!(rows[2], "a.json:2:2 quarantine expected a JSON object");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"a\":7}\n").expect("compress");
    let gzip = path(&dir, "b.jsonl.gz", &gzip.finish().expect("compress"));
    let (rows, known, _) = run(&[&gzip], &[]);
    assert_eq!(rows, ["b.jsonl.gz:0:1 Some(Int(7))"]);
    assert!(run(&[&gzip], &known).0.is_empty());
}

#[test]
fn topic_partitions_of_a_dump_are_streams() {
    let dir = dir();
    let record = |p: u8, o: u8| {
        format!(
            "{{\"topic\":\"t\",\"partition\":{p},\"offset\":{o},\"timestamp\":1,\"key\":null,\"value\":\"{{\\\"a\\\":{o}}}\"}}\n"
        )
    };
    let content = [record(0, 5), record(1, 5), record(0, 7), record(0, 5), "{\"topic\":1}\n".into()].concat();
    let file = path(&dir, "d.kdump.jsonl", content.as_bytes());
    let (rows, known, _) = run(&[&file], &[]);
    assert_eq!(
        rows,
        [
            "0:5:1 Some(Int(5))",
            "1:5:2 Some(Int(5))",
            "0:7:3 Some(Int(7))",
            "0:5:4 ignored repeated_offset",
            "d.kdump.jsonl:4:5 quarantine the record has no topic",
        ]
    );
    assert!(known.iter().any(|p| p.stream.ends_with("#t/0") && p.next == 8));
    path(&dir, "d.kdump.jsonl", [content, record(0, 6), record(0, 8)].concat().as_bytes());
    let rows = run(&[&file], &known).0;
    assert_eq!(rows, ["0:6:6 ignored repeated_offset", "0:8:7 Some(Int(8))"]);
}

#[test]
fn standard_input_is_a_new_stream_unless_named() {
    let options = || FileOptions { stdin: Some(Box::new(&b"{\"a\":1}\n"[..])), ..FileOptions::default() };
    let (rows, known, _) = run_with(&["-"], options(), &[]).expect("readable");
    assert_eq!(rows, ["-:0:1 Some(Int(1))"]);
    let (rows, known, _) = run_with(&["-"], options(), &known).expect("readable");
    assert_eq!((rows.len(), known.iter().map(|p| p.stream_generation).max()), (1, Some(1)));
}

#[test]
fn a_named_standard_input_goes_on_where_it_was() {
    let long = |n: usize| (0..n).map(|i| format!("{{\"a\":{i}}}\n")).collect::<String>();
    let named = |content: &str| FileOptions {
        stdin: Some(Box::new(std::io::Cursor::new(content.to_owned().into_bytes()))),
        stdin_name: Some("pipe".into()),
        ..FileOptions::default()
    };
    for n in [2, 20_000] {
        let (rows, known, _) = run_with(&["-"], named(&long(n)), &[]).expect("readable");
        assert_eq!((rows.len(), rows[0].as_str()), (n, "pipe:0:1 Some(Int(0))"));
        let (rows, _, _) = run_with(&["-"], named(&long(n)), &known).expect("readable");
        assert_eq!(rows.len(), 0, "the same again has nothing new");
        let (rows, known, notices) = run_with(&["-"], named(&long(n + 1)), &known).expect("readable");
        assert_eq!(rows, [format!("pipe:{n}:{} Some(Int({n}))", n + 1)]);
        assert!(!notices.iter().any(|n| matches!(n, Notice::OtherContent { .. })));
        // Other content is a new stream of that name, and is known again too.
        let other = "{\"a\":7}\n".repeat(3);
        let (rows, known, notices) = run_with(&["-"], named(&other), &known).expect("readable");
        assert_eq!((rows.len(), known.iter().map(|p| p.stream_generation).max()), (3, Some(1)));
        assert!(notices.iter().any(|n| matches!(n, Notice::OtherContent { .. })));
        for content in [long(n + 1), other] {
            assert_eq!(run_with(&["-"], named(&content), &known).expect("readable").0.len(), 0);
        }
    }
    // What begins the same for longer than is remembered must go on the same.
    let (_, known, _) = run_with(&["-"], named(&long(20_000)), &[]).expect("readable");
    let forked = long(19_000) + &"{\"a\":7}\n".repeat(2_000);
    let error = run_with(&["-"], named(&forked), &known).expect_err("neither the same nor another");
    assert!(error.reason.starts_with("begins like what was read as pipe before"), "{error}");
}

#[test]
fn a_header_that_begins_like_null_is_one() {
    let dir = dir();
    let names = path(&dir, "x.csv", b"name,a\nn,1\n");
    let (rows, ..) = run_with(&[&names], FileOptions::default(), &[]).expect("readable");
    assert_eq!(rows, [r#"x.csv:0:2 Some(Text("n"))"#]);
}

#[test]
fn unknown_formats_are_refused_with_near_names() {
    let error = "jsn".parse::<Format>().expect_err("unknown");
    assert_eq!(error.to_string(), "format jsn is not supported yet");
    assert!(error.hint.starts_with("did you mean json?"), "{}", error.hint);
    let error = "protobuf".parse::<Format>().expect_err("unknown");
    assert!(error.hint.starts_with("the formats are debezium-json, "), "{}", error.hint);
    assert_eq!("ndjson".parse(), Ok(Format::Json));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Any bytes are rows, ignored or quarantined, whatever they are taken for.
    #[test]
    fn any_bytes_are_answered(content in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        let dir = dir();
        let file = path(&dir, "x", &content);
        for format in [None, Some(Format::Json), Some(Format::DebeziumJson), Some(Format::Csv)] {
            let lines = content.split(|b| *b == b'\n').count();
            if let Ok((rows, ..)) = run_with(&[&file], FileOptions { format, ..FileOptions::default() }, &[]) {
                proptest::prop_assert!(rows.len() <= lines);
            }
        }
    }

    /// Texts near to JSON and CSV, where the interesting paths are.
    #[test]
    fn near_json_is_answered(content in "([\\[\\]{}\",:\\\\ua0-9e.\\-\n ]|null|\"op\":\"c\"|\"after\":|\"payload\":){0,120}") {
        let dir = dir();
        let file = path(&dir, "x", content.as_bytes());
        for format in [None, Some(Format::Json), Some(Format::DebeziumJson), Some(Format::Csv)] {
            if let Ok((rows, known, _)) = run_with(&[&file], FileOptions { format, ..FileOptions::default() }, &[]) {
                proptest::prop_assert!(rows.len() <= content.len());
                let again = run_with(&[&file], FileOptions { format, ..FileOptions::default() }, &known);
                proptest::prop_assert_eq!(again.map(|r| r.0.len()), Ok(0));
            }
        }
    }
}

/// A dump of one record, and what reading it with these options says.
fn read_framed(name: &str, text: &str, options: crate::IntakeOptions) -> Result<Vec<String>, SourceError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let format = options.format.as_deref().map(|f| f.parse().unwrap());
    let files = FileOptions {
        format,
        options: options.decoding(&Default::default()).unwrap(),
        ..FileOptions::default()
    };
    let mut source = FileSource::open(&[path.to_str().unwrap().to_owned()], files, vec![])?;
    let mut out = Vec::new();
    let mut sink = |_: &Place<'_>, d: Decoded<'_>| out.push(word(d));
    while source.read(10, &mut sink)? {}
    Ok(out)
}

#[test]
fn framed_messages_without_a_place_of_schemas_stop_the_intake_and_say_what_is_missing() {
    let record = r#"{"topic":"t","partition":0,"offset":0,"value_b64":"AAAAAAEC"}"#;
    let error = read_framed("t.kdump.jsonl", record, crate::IntakeOptions::default()).unwrap_err();
    assert!(error.reason.contains("name the schemas"), "{error}");
    assert!(error.hint.contains("--schemas FILE"), "{}", error.hint);
    let avro = crate::IntakeOptions { format: Some("avro".into()), ..Default::default() };
    let error = read_framed("t.jsonl", "{\"a\":1}\n", avro).unwrap_err();
    assert!(error.reason.contains("no dump of Kafka records"), "{error}");
}

#[test]
fn framed_messages_are_read_with_the_schemas_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let schemas = dir.path().join("s.json");
    let text = r#"{"1":{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}}"#;
    std::fs::write(&schemas, text).unwrap();
    let options =
        crate::IntakeOptions { schemas: vec![schemas.to_str().unwrap().to_owned()], ..Default::default() };
    let record = r#"{"topic":"t","partition":0,"offset":0,"value_b64":"AAAAAAEC"}"#;
    let read = read_framed("t.kdump.jsonl", record, options).unwrap();
    assert_eq!(read, ["Some(Int(1))"]);
}
