//! What is made of an event does not depend on how its columns have widened since.

use super::*;
use crate::event::{EventHead, encode_row};
use crate::schema::Column;
use crate::time::CommitSeq;

fn schema(ty: ColumnType) -> TableSchema {
    let column = |i, name: &str, ty| Column { id: ColumnId(i), name: name.into(), ty, declared: false };
    let columns = vec![column(0, "k", ColumnType::Int64), column(1, "v", ty)];
    TableSchema { version: 1, columns, key: vec![ColumnId(0)] }
}

const CONTEXT: FrameContext = FrameContext { commit: CommitSeq(7), commit_at: 1_000 };

fn row_of(op: Op, full: bool, cell: Cell<'_>) -> Vec<u8> {
    let head = EventHead { full, valid_from: Some(5), ..EventHead::new(op, OriginId(3), 9) };
    let mut row = Vec::new();
    encode_row(&mut row, &head, &[(ColumnId(0), Cell::Int(4)), (ColumnId(1), cell)]);
    row
}

/// What columns of type `later` give of a row that was committed when the column was of type `then`.
fn guess(row: &[u8], then: ColumnType, later: ColumnType, habit: Habit) -> Vec<u8> {
    let batch = decode_rows([row].into_iter(), &schema(later), CONTEXT);
    let events = EventColumns::new(batch.expect("it fits")).expect("events");
    let later = schema(later);
    let mut recoder = Recoder::new(&events, &later, false).expect("the types are right");
    let mut out = Vec::new();
    recoder.row(0, &schema(then), CONTEXT.commit_at, habit, &mut out);
    out
}

fn cells() -> Vec<Cell<'static>> {
    let decimal = |unscaled, scale| Cell::Decimal { unscaled, scale };
    let most = 10i128.pow(38) - 1;
    let mut cells = vec![Cell::Null, Cell::Unknown, Cell::Bool(true), Cell::Bool(false)];
    cells.extend([0, 1, -1, 5, 100, i64::MIN, i64::MAX].map(Cell::Int));
    cells.extend(
        [(0, 0), (0, 2), (5, 0), (50, 1), (510, 2), (-12_345, 4), (1, 38), (most, 0), (-most, 38)]
            .map(|(u, s)| decimal(u, s)),
    );
    let floats = [0.0, -0.0, 1.5, -1e-7, 1e17, 1.5e300, f64::MIN_POSITIVE, f64::MAX, f64::NAN, -f64::NAN];
    cells.extend(floats.map(Cell::Float));
    cells.extend([f64::INFINITY, f64::NEG_INFINITY].map(Cell::Float));
    cells.extend([0, -1, 3, 40_000, -800_000, 4_000_000, 100_000_000, -100_000_000].map(Cell::Date));
    let moments =
        [0, -1, 1, 999_999, 1_000_000, -62_135_596_800_000_001, 253_402_300_800_000_000, i64::MIN, i64::MAX];
    cells.extend(moments.map(Cell::Timestamp));
    cells.extend(moments.map(Cell::Instant));
    cells.extend(moments.map(Cell::TimestampNs));
    let texts =
        ["", "abc", "5", "5.00", "-0", "true", "2020-01-01", "\"quoted\"", "\\x00", "a\nb\u{1f600}", "null"];
    cells.extend(texts.map(Cell::Text));
    cells.extend([&b""[..], b"\x00\xff", b"text"].map(Cell::Bytes));
    cells.extend(["{\"a\":1}", "[1, 2]", "\"s\"", "5", "5.0", "true", "null"].map(Cell::Json));
    cells.push(Cell::Leaves("{\"a\":2}"));
    cells
}

#[test]
fn what_is_made_of_an_event_is_the_same_after_every_widening() {
    let habits = [0, Habit::FIXED_SCALE, 15].map(Habit::from_bits);
    let mut compared = 0;
    // The types that a column of this one may have later.
    let wider = |ty: ColumnType| {
        let mut found: Vec<ColumnType> = Vec::new();
        for other in cells().iter().map(|c| ty.join(c.column_type())) {
            if !found.contains(&other) {
                found.push(other);
            }
        }
        found
    };
    for cell in cells() {
        // The column may have been wider than the cell when it came.
        for then in wider(cell.column_type()) {
            for later in wider(then).into_iter().filter(|later| *later != then) {
                for (op, full) in [(Op::Upsert, true), (Op::Update, false), (Op::Delete, true)] {
                    let row = row_of(op, full, cell);
                    for habit in habits {
                        let (a, b) = (guess(&row, then, then, habit), guess(&row, then, later, habit));
                        assert_eq!(a, b, "{cell:?} in {then:?}, later {later:?}, {op:?}, {habit:?}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 5_000, "only {compared} rows were compared");
}

#[test]
fn most_cells_come_back_as_they_were() {
    for cell in cells().into_iter().filter(|c| !matches!(c, Cell::Leaves(_))) {
        let then = cell.column_type();
        let exact = match cell {
            Cell::Decimal { .. } if then == ColumnType::Text => false,
            Cell::Decimal { unscaled, scale: 0 } => i64::try_from(unscaled).is_err(),
            Cell::Decimal { unscaled, .. } => unscaled % 10 != 0,
            Cell::Float(v) => {
                v != 0.0 && !v.is_nan() || v.to_bits() == 0 || v.to_bits() == f64::NAN.to_bits()
            }
            Cell::Json(text) => text.starts_with(['{', '[', 'n']),
            _ => true,
        };
        let habit = Habit::from_bits(Habit::NULLS_FULL);
        let row = row_of(Op::Upsert, true, cell);
        assert_eq!(guess(&row, then, then, habit) == row, exact, "{cell:?}");
    }
}
