use super::super::plain_json::tests::shown;
use super::*;
use arrow::array::*;
use parquet::arrow::ArrowWriter;
use std::io::Write;

fn file(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
    bytes
}

fn rows(bytes: &[u8], from: u64) -> Result<Vec<String>, String> {
    let mut temp = tempfile::tempfile().map_err(|e| e.to_string())?;
    temp.write_all(bytes).map_err(|e| e.to_string())?;
    let mut rows = ParquetRows::open(temp, from)?;
    let mut out = Vec::new();
    let take = &mut |row, decoded: Decoded<'_>| out.push(format!("{row} {}", shown(decoded)));
    while rows.read(&FormatOptions::default(), 2, take)? > 0 {}
    Ok(out)
}

fn batch() -> RecordBatch {
    let list = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3]))),
        ("u", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(7)]))),
        (
            "d",
            Arc::new(Decimal128Array::from(vec![-5, 0, 110]).with_precision_and_scale(10, 2).expect("fits")),
        ),
        ("t", Arc::new(TimestampMillisecondArray::from(vec![-1, 0, 1]))),
        ("z", Arc::new(TimestampNanosecondArray::from(vec![1000, 1, 0]).with_timezone("Europe/Berlin"))),
        ("n", Arc::new(TimestampNanosecondArray::from(vec![1, 2, 3]))),
        ("day", Arc::new(Date32Array::from(vec![-1, 0, 1]))),
        ("at", Arc::new(Time64MicrosecondArray::from(vec![1, 0, 86_399_999_999]))),
        ("b", Arc::new(BinaryArray::from(vec![&b"\x00"[..], b"", b"ab"]))),
        ("s", Arc::new(StringArray::from(vec!["x", "", "y"]))),
        ("l", Arc::new(list)),
    ];
    RecordBatch::try_from_iter(columns).expect("batch")
}

#[test]
fn every_type_has_its_cell() {
    let rows = rows(&file(&batch()), 0).expect("read");
    assert_eq!(
        rows[0],
        "0 upsert [id=Int(1) u=Decimal { unscaled: 18446744073709551615, scale: 0 } \
         d=Decimal { unscaled: -5, scale: 2 } t=Timestamp(-1000) z=Instant(1) n=TimestampNs(1) day=Date(-1) \
         at=Text(\"00:00:00.000001\") b=Bytes([0]) s=Text(\"x\") l=Json(\"[1,null]\")]"
    );
    assert!(rows[1].contains("u=Null") && rows[1].contains("z=Text(\"1970-01-01T00:00:00.000000001Z\")"));
    assert!(rows[1].contains("l=Null") && rows[2].contains("l=Json(\"[]\")"));
    assert_eq!(rows.len(), 3);
}

#[test]
fn reading_goes_on_at_a_row() {
    let rows = rows(&file(&batch()), 2).expect("read");
    assert_eq!(rows.len(), 1);
    assert!(rows[0].starts_with("2 upsert [id=Int(3)"));
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let good = file(&batch());
    assert!(rows(b"PAR1", 0).is_err() && rows(&good[..good.len() - 9], 0).is_err());
    let mut failed = 0;
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        failed += rows(&bad, 0).is_err() as usize;
        failed += rows(&good[..at], 0).is_err() as usize;
    }
    assert!(failed > good.len() / 7, "{failed} of {}", good.len() / 7 * 2);
}
