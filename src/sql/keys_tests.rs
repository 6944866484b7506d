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
        KeyFilter::All | KeyFilter::Ranges(_) => None,
        KeyFilter::Keys(keys) => Some(keys.len()),
    }
}

/// How many ranges there are, and which of some keys of (region, id) are in them.
fn held(schema: &TableSchema, filters: &[Expr]) -> (usize, String) {
    let KeyFilter::Ranges(ranges) = key_filter(schema, filters) else { return (0, "no ranges".into()) };
    let mut held = Vec::new();
    for region in ["a", "eu", "us", "17"] {
        for id in [-5, 1, 2, 300] {
            let key = key_bytes([&Cell::Text(region), &Cell::Int(id)]);
            if ranges.iter().any(|r| r.from <= key && key < r.before) {
                held.push(format!("{region}{id}"));
            }
        }
    }
    (ranges.len(), held.join(" "))
}

#[test]
fn what_is_said_of_the_first_columns_of_the_key_is_pushed_as_ranges() {
    let two = schema(&[("region", ColumnType::Text), ("Id", ColumnType::Int64)]);
    let held = |filters: &[Expr]| held(&two, filters);
    let (region, id) = (|| col("region"), || ident("Id"));
    assert_eq!(held(&[region().eq(lit("eu"))]), (1, "eu-5 eu1 eu2 eu300".into()));
    assert_eq!(held(&[region().eq(lit("eu")), id().gt(lit(1i64))]).1, "eu1 eu2 eu300");
    assert_eq!(held(&[region().eq(lit("eu")), id().gt(lit(1i64)).and(lit(2i64).gt_eq(id()))]).1, "eu1 eu2");
    let regions = region().in_list(vec![lit("eu"), lit("us")], false);
    assert_eq!(held(&[regions, id().between(lit(2i64), lit(9i64))]).1, "eu2 us2");
    let either = id().lt(lit(0i64)).or(id().eq(lit(2i64)));
    assert_eq!(held(&[region().eq(lit("us")), either]).1, "us-5 us2");
    // Texts that look like numbers stand elsewhere among the keys.
    assert_eq!(
        held(&[region().gt(lit("b")), region().lt(lit("f"))]).1,
        "eu-5 eu1 eu2 eu300 17-5 171 172 17300"
    );
    assert_eq!(held(&[region().eq(lit("eu")), id().gt(lit(9i64)), id().lt(lit(5i64))]), (1, "".into()));
    assert_eq!(held(&[region().eq(lit("eu")), id().gt(lit(ScalarValue::Int64(None)))]), (0, "".into()));
    for nothing in
        [id().gt(lit(1i64)), region().not_eq(lit("eu")), region().gt(lit(1i64)), region().is_not_null()]
    {
        assert_eq!(key_filter(&two, &[nothing]), KeyFilter::All);
    }
    let one = schema(&[("Id", ColumnType::Int64)]);
    let many = (0..200i64).map(|n| id().between(lit(10 * n), lit(10 * n + 1)));
    let many = many.reduce(Expr::or).unwrap();
    let KeyFilter::Ranges(ranges) = key_filter(&one, &[many]) else { panic!("no ranges") };
    assert!(ranges.len() <= RANGES_MAX, "{} ranges", ranges.len());
    let date = schema(&[("day", ColumnType::Date)]);
    assert_eq!(key_filter(&date, &[col("day").gt(lit(ScalarValue::Date32(Some(7))))]), KeyFilter::All);
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
