//! The bytes of an open row.

use super::super::row::OpenRow;
use crate::id::ColumnId;
use crate::value::Value;

fn rows() -> Vec<OpenRow> {
    let cells = vec![
        (ColumnId(0), Value::Int(-5)),
        (ColumnId(1), Value::Null),
        (ColumnId(4), Value::Text("käse".into())),
        (ColumnId(5), Value::Bytes(vec![0, 255])),
        (ColumnId(9), Value::Decimal { unscaled: -12345, scale: 3 }),
        (ColumnId(10), Value::Float(1.5)),
        (ColumnId(11), Value::Bool(true)),
        (ColumnId(12), Value::Date(-1)),
        (ColumnId(13), Value::Timestamp(i64::MIN)),
        (ColumnId(14), Value::TimestampNs(1)),
        (ColumnId(15), Value::Instant(2)),
        (ColumnId(u32::MAX), Value::Json("{\"a\":1}".into())),
    ];
    vec![
        OpenRow { valid_start: i64::MIN, system_start: i64::MAX, cells: vec![] },
        OpenRow { valid_start: 1, system_start: 2, cells },
    ]
}

#[test]
fn a_row_comes_back_as_it_was() {
    for row in rows() {
        assert_eq!(OpenRow::decode(&row.encode()).expect("decode"), row);
    }
}

#[test]
fn any_bytes_are_a_row_or_an_error() {
    let mut rejected = 0;
    for bytes in rows().iter().map(OpenRow::encode) {
        for cut in 0..bytes.len() {
            OpenRow::decode(&bytes[..cut]).expect_err("a part of a row");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        OpenRow::decode(&longer).expect_err("more than a row");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match OpenRow::decode(&flipped) {
                Ok(row) => assert!(row.cells.windows(2).all(|w| w[0].0 < w[1].0), "columns ascend"),
                Err(e) => {
                    assert!(e.is_damaged(), "{e}");
                    rejected += 1;
                }
            }
        }
    }
    assert!(rejected > 50, "{rejected} flips were seen");
    OpenRow::decode(&[&[0; 16][..], &[2, 255, 255, 255, 255, 15, 0, 0, 0]].concat()).expect_err("too many");
}
