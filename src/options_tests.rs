use super::*;

fn hint(e: &Error) -> String {
    e.hints().join("; ")
}

#[test]
fn keys_may_name_their_table() {
    let key: KeySpec = "shop.items:a, b".parse().unwrap();
    assert_eq!(key, KeySpec { table: Some("shop.items".into()), columns: vec!["a".into(), "b".into()] });
    assert_eq!("id".parse::<KeySpec>().unwrap().table, None);
    assert!("t:".parse::<KeySpec>().is_err());
    let options = IntakeOptions { keys: vec!["id".parse().unwrap(), key], ..Default::default() };
    assert_eq!(options.key_of("shop.items").unwrap(), ["a", "b"]);
    assert_eq!(options.key_of("other").unwrap(), ["id"]);
}

#[test]
fn columns_are_a_list_with_types_or_all_but_some() {
    let c: Columns = "id bigint, price decimal(10,2), note".parse().unwrap();
    let Columns::List(list) = c else { panic!("{c:?}") };
    assert_eq!(list[1].ty, Some(ColumnType::Decimal { integer: 8, scale: 2 }));
    assert_eq!(list[2].ty, None);
    let except: Columns = "* except (seq, at)".parse().unwrap();
    assert_eq!(except, Columns::Except(vec!["seq".into(), "at".into()]));
    assert!("a, a".parse::<Columns>().unwrap_err().message().contains("twice"));
}

#[test]
fn type_names_are_those_that_columns_show() {
    for ty in [ColumnType::Bool, ColumnType::Int64, ColumnType::Float64, ColumnType::Date]
        .into_iter()
        .chain([ColumnType::Timestamp, ColumnType::TimestampNs, ColumnType::Instant])
        .chain([ColumnType::Text, ColumnType::Bytes, ColumnType::Json])
    {
        assert_eq!(column_type(&ty.name()).unwrap(), ty);
    }
    assert!(hint(&column_type("bigin").unwrap_err()).contains("bigint"));
    assert!(column_type("decimal(39,1)").is_err());
}

#[test]
fn contradictions_are_named() {
    let both = IntakeOptions {
        ignore_null_updates: Some(ColumnChoice::All),
        columns_to_update: Some("cols".into()),
        ..Default::default()
    };
    assert!(both.validate().unwrap_err().message().contains("cannot both"));
    let twice =
        IntakeOptions { keys: vec!["a".parse().unwrap(), "b".parse().unwrap()], ..Default::default() };
    assert!(twice.validate().unwrap_err().message().contains("twice"));
    let words = IntakeOptions {
        op_map: vec!["x=insert".parse().unwrap(), "x=delete".parse().unwrap()],
        ..Default::default()
    };
    assert!(words.validate().unwrap_err().message().contains("two meanings"));
    assert!(hint(&"insret".parse::<OpName>().unwrap_err()).contains("insert"));
    let zone = IntakeOptions { zone: Some("Europe/Berln".into()), ..Default::default() };
    assert!(hint(&zone.validate().unwrap_err()).contains("Europe/Berlin"));
    let when = IntakeOptions { delete_when: Some("deleted ==".into()), ..Default::default() };
    assert!(when.validate().unwrap_err().message().contains("--delete-when"));
}

#[test]
fn options_are_read_back_from_json() {
    let options = IntakeOptions {
        valid: Some("at:us".parse().unwrap()),
        columns: Some("* except x".parse().unwrap()),
        op_map: vec!["i=insert".parse().unwrap()],
        ..Default::default()
    };
    let text = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<IntakeOptions>(&text).unwrap(), options);
    assert!(serde_json::from_str::<IntakeOptions>(r#"{"vald": null}"#).is_err());
}
