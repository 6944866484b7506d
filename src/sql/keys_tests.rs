use super::*;
use asofdb_storage::id::ColumnId;
use asofdb_storage::schema::Column;
use asofdb_storage::value::write_text;
use datafusion::logical_expr::{col, ident, lit};

fn schema(types: &[(&str, ColumnType)]) -> TableSchema {
    let column = |(i, (name, ty)): (usize, &(&str, ColumnType))| Column {
        id: ColumnId(i as u32),
        name: (*name).into(),
        ty: *ty,
        declared: false,
    };
    TableSchema {
        version: 1,
        columns: types.iter().enumerate().map(column).collect(),
        key: (0..types.len() as u32).map(ColumnId).collect(),
    }
}

fn count(schema: &TableSchema, filters: &[Expr]) -> Option<usize> {
    match key_filter(schema, filters) {
        KeyFilter::All => None,
        KeyFilter::Keys(keys) => Some(keys.len()),
    }
}

#[test]
fn equality_on_the_whole_key_is_pushed() {
    let two = schema(&[("region", ColumnType::Text), ("Id", ColumnType::Int64)]);
    let region = || col("region").eq(lit("eu"));
    let id = || ident("Id").eq(lit(1i64));
    assert_eq!(count(&two, &[region(), id()]), Some(1));
    assert_eq!(count(&two, &[region().and(id())]), Some(1));
    assert_eq!(
        count(&two, &[region(), ident("Id").in_list(vec![lit(1i64), lit(2i64), lit(1i64)], false)]),
        Some(2)
    );
    assert_eq!(count(&two, &[region().or(col("region").eq(lit("us"))), id()]), Some(2));
    assert_eq!(count(&two, &[region(), ident("Id").eq(lit(ScalarValue::Int64(None)))]), Some(0));
    assert_eq!(count(&two, &[region()]), None);
    assert_eq!(count(&two, &[region(), ident("Id").gt(lit(1i64))]), None);
    assert_eq!(count(&two, &[region(), id().or(col("region").eq(lit("us")))]), None);
    assert_eq!(count(&two, &[region(), ident("Id").in_list(vec![lit(1i64)], true)]), None);
    let many: Vec<Expr> = (0..KEYS_MAX as i64 + 1).map(lit).collect();
    assert_eq!(count(&two, &[region(), ident("Id").in_list(many, false)]), None);
    let keyless = TableSchema { key: Vec::new(), ..two };
    assert_eq!(count(&keyless, &[region(), id()]), None);
}

/// What a column shows after it widened leads back to the key that was stored before.
#[test]
fn widened_keys_are_found() {
    let stored = [
        Value::Int(5),
        Value::Decimal { unscaled: 50, scale: 1 },
        Value::Decimal { unscaled: -500, scale: 2 },
        Value::Decimal { unscaled: 0, scale: 3 },
        Value::Decimal { unscaled: 15, scale: 1 },
        Value::Bool(true),
        Value::Float(1e20),
        Value::Date(19_844),
        Value::Instant(1_714_521_600_000_000),
        Value::Timestamp(1_714_521_600_000_001),
        Value::Text("05".into()),
        Value::Text("5".into()),
        Value::Text("5.0".into()),
        Value::Bytes(vec![0, 255]),
    ];
    for value in &stored {
        let mut text = String::new();
        write_text(&mut text, &value.as_cell());
        let found = candidates(ColumnType::Text, &Value::Text(text.clone())).unwrap();
        let wanted = key_bytes([&value.as_cell()]);
        assert!(found.iter().any(|c| key_bytes([&c.as_cell()]) == wanted), "{value:?} shown as {text}");
    }
    let midnight = candidates(ColumnType::Instant, &Value::Instant(1_714_521_600_000_000)).unwrap();
    assert!(midnight.contains(&Value::Date(19_844)));
    assert_eq!(candidates(ColumnType::Float64, &Value::Float(0.0)), None);
    assert_eq!(candidates(ColumnType::Json, &Value::Text("{}".into())), None);
}
