//! Options that name columns: a name that messages could have had and none has is an error; where no
//! message could have it, nothing is wrong.

use asofdb::{ErrorKind, IntakeOptions, IntakeReport, Result, Store};

struct Shop {
    dir: tempfile::TempDir,
    store: Store,
}

impl Shop {
    fn new() -> Shop {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("s")).unwrap();
        Shop { dir, store }
    }

    fn take(&self, name: &str, lines: &str, columns: &str, format: &str) -> Result<IntakeReport> {
        let path = self.dir.path().join(name);
        std::fs::write(&path, lines).unwrap();
        let options = IntakeOptions {
            table: Some("t".into()),
            format: Some(format.into()),
            keys: vec!["id".parse().unwrap()],
            op: (format == "json").then(|| "op".into()),
            columns: Some(columns.parse().unwrap()),
            ..IntakeOptions::default()
        };
        self.store.ingest_files(&[path.to_str().unwrap()], &options)
    }
}

#[test]
fn a_column_that_no_message_has_is_an_error_that_names_near_ones() {
    let shop = Shop::new();
    let e = shop.take("a", "{\"op\":\"i\",\"id\":1,\"name\":\"x\"}\n", "id,nmae", "json").unwrap_err();
    assert_eq!((e.kind(), shop.store.commit().0), (ErrorKind::Usage, 0));
    assert!(e.message().contains("--columns names the column nmae") && e.message().contains("nothing was"));
    assert!(e.hints()[0].contains("name"), "{:?}", e.hints());
    // Only what could not be taken had the chance to have it.
    let e = shop.take("b", "{\"op\":\"nix\",\"id\":1,\"name\":\"x\"}\n", "id,nmae", "json").unwrap_err();
    assert!(e.message().contains("nmae"), "{e}");
}

#[test]
fn messages_that_could_not_have_a_column_are_no_sign_that_it_is_missing() {
    let shop = Shop::new();
    // Deletes have their key alone, and broken messages nothing that can be read.
    let report = shop.take("a", "{\"op\":\"d\",\"id\":1}\n{\"op\":\"i\",\n", "id,name", "json").unwrap();
    assert_eq!((report.accepted, report.quarantined), (1, 1));
    let broken = r#"{"payload":{"op":"?","after":{"id":1,"name":"x"},"source":{"table":"t"}}}"#;
    let report = shop.take("b", &format!("{broken}\n"), "id,name", "debezium-json").unwrap();
    assert_eq!(report.quarantined, 1, "the name stands inside of the envelope");
    let empty = r#"{"payload":{"op":"u","after":null,"source":{"table":"t"}}}"#;
    let report = shop.take("c", &format!("{empty}\n"), "id,name", "debezium-json").unwrap();
    assert_eq!(report.quarantined, 1);
    // A later batch, that could have had it, is still looked at.
    let e =
        shop.take("d", "{\"op\":\"d\",\"id\":2}\n{\"op\":\"i\",\"id\":3}\n", "id,name", "json").unwrap_err();
    assert!(e.message().contains("name"), "{e}");
}

#[test]
fn repeats_and_what_is_left_out_are_never_missed_later() {
    let shop = Shop::new();
    let all = "* except (op, secret)";
    let line = "{\"op\":\"i\",\"id\":1,\"secret\":\"x\"}\n";
    shop.take("a", line, all, "json").unwrap();
    let report = shop.take("a", line, all, "json").unwrap();
    assert_eq!(report.accepted, 0, "nothing is new");
    let more = format!("{line}{{\"op\":\"i\",\"id\":2}}\n");
    assert_eq!(shop.take("a", &more, all, "json").unwrap().accepted, 1, "it may be missing now and then");
    assert!(Shop::new().take("a", "{\"op\":\"i\",\"id\":2}\n", all, "json").is_err(), "but not at first");
}
