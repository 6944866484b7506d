use super::source::{check, check_place, duration};
use super::stored::{declare, find, flows};
use super::{Flow, FlowClauses, FlowSource, FlowTable, SourceKind, Target};
use crate::ErrorKind;
use asofdb_storage::engine::Catalog;
use std::time::Duration;

fn flow(name: &str) -> Flow {
    let settings = [("format".to_owned(), "json".to_owned())].into();
    Flow {
        name: name.to_owned(),
        source: FlowSource { kind: SourceKind::Files, places: vec!["in".into()], settings },
        target: Target::One(FlowTable { name: "t".into(), key: vec!["id".into()] }),
        clauses: FlowClauses::default(),
    }
}

#[test]
fn durations_have_units_and_a_number_alone_is_seconds() {
    for (text, ms) in [
        ("500ms", 500),
        ("2s", 2_000),
        ("2", 2_000),
        ("5 minutes", 300_000),
        ("1h", 3_600_000),
        ("1 d", 86_400_000),
    ] {
        assert_eq!(duration("quiet", text).unwrap(), Duration::from_millis(ms), "{text}");
    }
    for text in ["", "s", "-1s", "1.5s", "2 fortnights", "99999999999999999999s", "18446744073709551615h"] {
        let e = duration("quiet", text).unwrap_err();
        assert_eq!((e.kind(), e.message().contains("quiet =>")), (ErrorKind::Usage, true), "{text}");
    }
}

#[test]
fn secrets_cannot_be_declared() {
    for place in [
        "postgres://u:canary@h/d",
        "mysql://u:a@b:canary@h/d",
        "mysql://h/d?password=canary",
        "postgres://h/d?sslmode=x&PASSWORD=canary",
    ] {
        let e = check_place(place).unwrap_err();
        assert!(!e.to_string().contains("canary"), "{e}");
    }
    for place in ["postgres://me@h/d", "sqlite:a:b.db", "in/a:b@c/*.json", "topic"] {
        check_place(place).unwrap();
    }
    let e = check("registry", "http://u:canary@h").unwrap_err();
    assert!(!e.to_string().contains("canary"), "{e}");
    check("registry", "http://h:8081").unwrap();
}

#[test]
fn values_of_settings_are_read_when_they_are_declared() {
    for (setting, value) in [
        ("batch", "many"),
        ("absent", "gone"),
        ("strict", "yes"),
        ("keep_raw", "1"),
        ("default_op", "inzert"),
        ("op_map", "i=inzert"),
        ("framing", "glue"),
        ("zone", "Mars"),
        ("format", "xml"),
        ("quiet", "long"),
        ("read_uncommitted", "maybe"),
    ] {
        assert_eq!(check(setting, value).unwrap_err().kind(), ErrorKind::Usage, "{setting}");
    }
    for (setting, value) in
        [("format", "auto"), ("batch", "10"), ("op_map", "i=insert, u=update"), ("properties", "any")]
    {
        check(setting, value).unwrap();
    }
}

#[test]
fn a_flow_of_a_newer_version_is_named_and_not_guessed_at() {
    let mut catalog = Catalog::default();
    let store = |catalog: &mut Catalog, flow: &Flow, version: Option<u32>| {
        let (key, mut value) = declare(flow, "create-flow").positions.remove(0);
        if let Some(version) = version {
            value["version"] = version.into();
        }
        catalog.positions.insert(key, value);
    };
    store(&mut catalog, &flow("new"), Some(2));
    store(&mut catalog, &flow("old"), None);
    let mut odd = declare(&flow("odd"), "create-flow").positions.remove(0);
    odd.1["flow"]["colour"] = "red".into();
    catalog.positions.insert(odd.0, odd.1);
    assert_eq!(find(&catalog, "OLD").unwrap(), flow("old"));
    for name in ["new", "odd"] {
        let e = find(&catalog, name).unwrap_err();
        assert!(e.message().starts_with(&format!("flow {name} cannot be read")), "{e}");
    }
    let listed: Vec<(String, bool)> = flows(&catalog).into_iter().map(|f| (f.name, f.flow.is_ok())).collect();
    assert_eq!(listed, [("new".to_owned(), false), ("odd".to_owned(), false), ("old".to_owned(), true)]);
    assert_eq!(find(&catalog, "olt").unwrap_err().hints(), ["did you mean old?"]);
}
