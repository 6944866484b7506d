use super::*;
use crate::source::tests::{dir, path, run, run_with};
use crate::source::{FileOptions, Notice, SourcePosition};
use std::io::Write;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 3).unwrap()
}

type Pack = fn(&[u8]) -> Vec<u8>;

/// Every kind, with the ending of its names.
const KINDS: [(&str, Pack); 3] = [("gz", gzip), ("zst", zstd), ("zstd", zstd)];

fn stdin(content: Vec<u8>, name: Option<&str>) -> FileOptions {
    let stdin: Option<Box<dyn Read + Send>> = Some(Box::new(Cursor::new(content)));
    FileOptions { stdin, stdin_name: name.map(str::to_owned), ..FileOptions::default() }
}

#[test]
fn compressed_files_are_read_and_go_on_where_they_were() {
    for (ending, pack) in KINDS {
        let dir = dir();
        let name = format!("a.jsonl.{ending}");
        let file = path(&dir, &name, &pack(b"{\"a\":1}\n{\"a\":2}\n"));
        let (rows, known, _) = run(&[&file], &[]);
        assert_eq!(rows, [format!("{name}:0:1 Some(Int(1))"), format!("{name}:1:2 Some(Int(2))")]);
        assert_eq!(known[0].bytes, 16, "bytes are counted behind decompression");
        assert!(run(&[&file], &known).0.is_empty());
        // Further members or frames, a line that spans two of them, and nothing but content counts.
        let parts = [pack(b"{\"a\":1}\n{\"a\":2}\n{\"a\""), pack(b""), pack(b":3}\n{\"a\":4}\n")].concat();
        path(&dir, &name, &parts);
        let (rows, known, _) = run(&[&file], &known);
        assert_eq!(rows, [format!("{name}:2:3 Some(Int(3))"), format!("{name}:3:4 Some(Int(4))")]);
        path(&dir, &name, &pack(b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}\n"));
        assert_eq!(run(&[&file], &known).0, [format!("{name}:4:5 Some(Int(5))")], "packed otherwise");
        path(&dir, &name, &pack(b"{\"a\":9}\n"));
        let (rows, _, notices) = run(&[&file], &known);
        assert_eq!(rows.len(), 1);
        assert!(notices.contains(&Notice::OtherContent { file: file.clone() }));
    }
}

#[test]
fn compressed_standard_input_is_decompressed_and_known_by_its_name() {
    for (_, pack) in KINDS {
        let read = |content: &[u8], known: &[SourcePosition]| {
            run_with(&["-"], stdin(pack(content), Some("pipe")), known).unwrap()
        };
        let (rows, known, _) = read(b"{\"a\":1}\n{\"a\":2}\n", &[]);
        assert_eq!(rows, ["pipe:0:1 Some(Int(1))", "pipe:1:2 Some(Int(2))"]);
        assert_eq!(read(b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", &known).0, ["pipe:2:3 Some(Int(3))"]);
        // The same content is the same stream, compressed or not.
        let plain =
            run_with(&["-"], stdin(b"{\"a\":1}\n{\"a\":2}\n".to_vec(), Some("pipe")), &known).unwrap();
        assert!(plain.0.is_empty());
    }
    // Shorter than the marks of compression.
    let rows = run_with(&["-"], stdin(b"a\n1".to_vec(), None), &[]).unwrap().0;
    assert_eq!(rows, ["-:0:2 Some(Int(1))"]);
}

#[test]
fn names_of_compressed_files_say_what_is_in_them() {
    for (ending, pack) in KINDS {
        let dir = dir();
        path(&dir, &format!("a.csv.{ending}"), &pack(b"a\n1\n"));
        path(&dir, &format!("b.tsv.{ending}"), &pack(b"a\tb\n2\tx\n"));
        path(&dir, &format!("c.png.{ending}"), &pack(b"a\n3\n"));
        let (rows, _, notices) = run(&[&dir.path().to_string_lossy()], &[]);
        assert_eq!(
            rows,
            [format!("a.csv.{ending}:0:2 Some(Int(1))"), format!("b.tsv.{ending}:0:2 Some(Int(2))")]
        );
        assert!(notices.iter().any(|n| matches!(n, Notice::Skipped { file, .. } if file.contains("c.png"))));
    }
}

#[test]
fn frames_without_content_are_passed_over() {
    let dir = dir();
    let skipped = [&[0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
    let content = [&skipped[..], &zstd(b"{\"a\":1}\n"), &skipped, &zstd(b"{\"a\":2}\n")].concat();
    let file = path(&dir, "a.zst", &content);
    assert_eq!(run(&[&file], &[]).0, ["a.zst:0:1 Some(Int(1))", "a.zst:1:2 Some(Int(2))"]);
}

fn failure(content: &[u8], caps: Caps) -> String {
    let mut out = Vec::new();
    match decompressed(Box::new(Cursor::new(content.to_vec())), "f", caps) {
        Err(e) => e.to_string(),
        Ok(mut input) => match input.read_to_end(&mut out) {
            Err(e) => e.to_string(),
            Ok(n) => format!("{n} bytes"),
        },
    }
}

#[test]
fn what_comes_out_is_bounded_by_what_went_in() {
    let caps = Caps { free_bytes: 100_000, ratio: 100 };
    let zeros = vec![0; 2 << 20];
    for (_, pack) in KINDS {
        let text = failure(&pack(&zeros), caps);
        assert!(text.contains("more than 100 times its size"), "{text}");
        assert_eq!(failure(&pack(&zeros[..100_000]), caps), "100000 bytes");
        let mut noise = vec![0_u8; 300_000];
        let mut state = 7_u32;
        noise.iter_mut().for_each(|b| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *b = (state >> 24) as u8;
        });
        assert_eq!(failure(&pack(&noise), caps), "300000 bytes");
        assert_eq!(failure(&pack(&pack(b"x")), caps), "f: is compressed twice");
        assert_eq!(failure(&pack(b""), caps), "0 bytes");
    }
}

#[test]
fn damage_and_wide_windows_are_named() {
    for (ending, pack) in KINDS {
        let whole = pack(b"{\"a\":1}\n{\"b\":2}\n");
        let text = failure(&whole[..whole.len() - 2], Caps::default());
        assert_eq!(text, "its compressed content is cut off at its end");
        let torn = [&whole[..], &whole[..7]].concat();
        assert_eq!(failure(&torn, Caps::default()), "its compressed content is cut off at its end");
        let mut wrong = whole.clone();
        let header = if ending == "gz" { 10 } else { 6 };
        wrong[header..].fill(0xff);
        assert!(failure(&wrong, Caps::default()).contains("its compressed content is damaged"));
    }
    // A frame that asks for a window of 2^30 bytes.
    let wide = [0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 1, 0, 0];
    assert!(failure(&wide, Caps::default()).contains("a window of more than 128 MiB"));
}

#[test]
fn a_torn_file_gives_what_came_before_and_an_error() {
    let dir = dir();
    let whole = zstd(b"{\"a\":1}\n");
    let file = path(&dir, "a.jsonl.zst", &[&whole[..], &whole[..whole.len() - 1]].concat());
    let error = run_with(&[&file], FileOptions::default(), &[]).unwrap_err();
    assert_eq!(error.to_string(), format!("{file}: its compressed content is cut off at its end"));
}
