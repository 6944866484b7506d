use super::*;
use crate::event::columns::{OP_LEAVES, OP_MASK};
use crate::event::{EventColumns, EventHead, encode_row};
use crate::id::OriginId;
use crate::schema::Column;

fn schema(columns: u32) -> TableSchema {
    let ty = |i| if i == 0 { ColumnType::Int64 } else { ColumnType::Json };
    let column = |i| Column { id: ColumnId(i), name: format!("c{i}"), ty: ty(i), declared: false };
    TableSchema { version: 1, columns: (0..columns).map(column).collect(), key: vec![ColumnId(0)] }
}

fn decoded(full: bool, columns: u32, cells: &[(u32, Cell<'_>)]) -> EventColumns {
    let head = EventHead { full, ..EventHead::new(Op::Upsert, OriginId(0), 0) };
    let cells: Vec<_> = cells.iter().map(|(i, c)| (ColumnId(*i), *c)).collect();
    let mut row = Vec::new();
    encode_row(&mut row, &head, &cells);
    let parsed = RowView::parse(&row).expect("a row");
    assert_eq!(parsed.cells().collect::<Result<Vec<_>, _>>().expect("cells"), cells);
    let context = FrameContext { commit: CommitSeq(1), commit_at: 1 };
    let batch = decode_rows([row.as_slice()].into_iter(), &schema(columns), context).expect("a batch");
    EventColumns::new(batch).expect("events")
}

#[test]
fn leaves_are_told_from_whole_values_and_placeholders() {
    let object = r#"{"a":1}"#;
    let cells = [
        (0, Cell::Int(1)),
        (1, Cell::Leaves(object)),
        (2, Cell::Json(object)),
        (3, Cell::Unknown),
        (65, Cell::Json(object)),
        (66, Cell::Leaves(object)),
        (67, Cell::Unknown),
    ];
    let events = decoded(false, 70, &cells);
    assert_eq!(events.op().value(0), Op::Upsert as u8 | OP_LEAVES);
    for c in 0..70 {
        let id = ColumnId(c);
        let (by_leaf, unknown) = (matches!(c, 1 | 66), matches!(c, 3 | 67));
        assert_eq!(events.writes_leaves(0, id), by_leaf, "column {c}");
        assert_eq!(events.is_unknown(0, id), unknown, "column {c}");
        assert_eq!(events.authors(0, id), matches!(c, 0 | 1 | 2 | 65 | 66), "column {c}");
        let text = events.image(id).filter(|_| c > 0).map(|a| a.as_string::<i32>());
        let text = text.filter(|a| a.is_valid(0)).map(|a| a.value(0));
        assert_eq!(text, matches!(c, 1 | 2 | 65 | 66).then_some(object), "column {c}");
    }
}

#[test]
fn leaves_of_a_full_image_are_a_whole_value() {
    let events = decoded(true, 2, &[(0, Cell::Int(1)), (1, Cell::Leaves("{}"))]);
    assert_eq!(events.op().value(0) & !OP_MASK, OP_FULL);
    assert!(events.unknown().is_null(0) && events.authors(0, ColumnId(1)));
}

/// Cells that are times, and the tags that may stand for them.
fn time_cells(valid: i64, system: i64) -> Vec<(ColumnId, Cell<'static>)> {
    let cells = [
        Cell::Int(valid),
        Cell::Int(system),
        Cell::Timestamp(valid),
        Cell::Timestamp(system),
        Cell::Instant(valid),
        Cell::Instant(system),
        Cell::TimestampNs(valid),
        Cell::Int(valid + 1),
    ];
    (0..).map(ColumnId).zip(cells).collect()
}

#[test]
fn cells_that_repeat_a_time_of_the_row_take_one_byte_and_come_back() {
    let (valid, system) = (1_767_225_600_000_000, 1_767_225_600_000_077);
    let cells = time_cells(valid, system);
    let head = EventHead {
        valid_from: Some(valid),
        system: Some(system),
        ..EventHead::new(Op::Upsert, OriginId(0), 0)
    };
    let without = EventHead { system: None, ..head.clone() };
    let neither = EventHead { valid_from: None, ..without.clone() };
    let named = EventHead { operation_id: Some(b"id"), ..head.clone() };
    let placed = EventHead { token: b"lsn", ..head.clone() };
    // 8 bytes less each for those with eight bytes, and for a varint as many as it has.
    for (head, shorter) in [(&head, 48), (&without, 24), (&neither, 0), (&named, 0), (&placed, 0)] {
        let mut row = Vec::new();
        encode_row(&mut row, head, &cells);
        let parsed = RowView::parse(&row).expect("a row");
        assert_eq!(parsed.cells().collect::<Result<Vec<_>, _>>().expect("cells"), cells);
        let mut plain = Vec::new();
        cells.iter().for_each(|(_, cell)| crate::event::put_cell(&mut plain, cell));
        assert_eq!(parsed.cell_bytes().len(), plain.len() - shorter, "{head:?}");
        if shorter == 0 {
            assert_eq!(parsed.cell_bytes(), plain, "content that is compared is the same bytes");
        }
    }
}

#[test]
fn a_cell_that_is_a_time_the_row_does_not_have_is_refused() {
    let head = EventHead { valid_from: Some(7_000), ..EventHead::new(Op::Upsert, OriginId(0), 0) };
    let mut row = Vec::new();
    encode_row(&mut row, &head, &[(ColumnId(0), Cell::Instant(7_000))]);
    for tag in [16, 18, 20, 21, u8::MAX] {
        *row.last_mut().expect("a tag") = tag;
        let parsed = RowView::parse(&row).expect("a row");
        assert!(parsed.cells().next().expect("a cell").is_err(), "tag {tag}");
    }
}
