//! Values for columns with a declared type (rule B14): what fits is converted, the rest is refused.

use crate::format::time_text::{self, TimeText};
use asofdb_storage::value::{Cell, ColumnType, canonical_number};

/// `cell` as a value of the declared type `ty`; `None` if it does not fit without loss.
pub fn fit<'a>(cell: Cell<'a>, ty: ColumnType) -> Option<Cell<'a>> {
    use ColumnType as T;
    Some(match (ty, cell) {
        (_, Cell::Unchanged | Cell::Unknown | Cell::Null) => cell,
        (T::Text, Cell::Leaves(text)) => Cell::Json(text),
        (T::Text | T::Json | T::Null, _) => cell,
        (T::Bool, Cell::Bool(_)) | (T::Int64, Cell::Int(_)) | (T::Float64, Cell::Float(_)) => cell,
        (T::Date, Cell::Date(_)) | (T::Timestamp, Cell::Timestamp(_)) => cell,
        (T::TimestampNs, Cell::TimestampNs(_))
        | (T::Instant, Cell::Instant(_))
        | (T::Bytes, Cell::Bytes(_)) => cell,
        (T::Bool, Cell::Int(n @ (0 | 1))) => Cell::Bool(n == 1),
        (T::Bool, Cell::Text(t)) => Cell::Bool(boolean(t)?),
        (T::Int64, Cell::Decimal { unscaled, scale }) => Cell::Int(whole(unscaled, scale)?),
        (T::Int64, Cell::Float(f)) if f.fract() == 0.0 && f.abs() < 9e15 => Cell::Int(f as i64),
        (T::Int64, Cell::Text(t)) => Cell::Int(t.trim().parse().ok()?),
        (T::Float64, Cell::Int(n)) if n.unsigned_abs() <= 1 << 53 => Cell::Float(n as f64),
        (T::Float64, Cell::Decimal { .. }) => Cell::Float(text(&cell).parse().ok()?),
        (T::Float64, Cell::Text(t)) => Cell::Float(t.trim().parse().ok()?),
        (T::Decimal { integer, scale }, _) => decimal(cell, integer, scale)?,
        (T::Timestamp, Cell::Date(d)) => Cell::Timestamp(d as i64 * 86_400_000_000),
        (T::Instant, Cell::Date(d)) => Cell::Instant(d as i64 * 86_400_000_000),
        (T::TimestampNs, Cell::Timestamp(us)) => Cell::TimestampNs(us.checked_mul(1_000)?),
        (T::Date | T::Timestamp | T::TimestampNs | T::Instant, Cell::Text(t)) => time(t, ty)?,
        (T::Bytes, Cell::Text(t)) => Cell::Bytes(t.as_bytes()),
        _ => return None,
    })
}

fn text(cell: &Cell<'_>) -> String {
    let mut out = String::new();
    asofdb_storage::value::write_text(&mut out, cell);
    out
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "1" => Some(true),
        "false" | "f" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn whole(unscaled: i128, scale: u8) -> Option<i64> {
    let unit = 10i128.checked_pow(scale as u32)?;
    (unscaled % unit == 0).then(|| i64::try_from(unscaled / unit).ok()).flatten()
}

fn decimal(cell: Cell<'_>, integer: u8, scale: u8) -> Option<Cell<'static>> {
    let (mut unscaled, mut own) = match cell {
        Cell::Int(n) => (n as i128, 0),
        Cell::Decimal { unscaled, scale } => (unscaled, scale),
        Cell::Text(t) => {
            let t = t.trim();
            let t = if t.contains('.') { t.trim_end_matches('0').trim_end_matches('.') } else { t };
            canonical_number(t)?
        }
        Cell::Float(f) => match few_digits(f, scale) {
            Some(unscaled) => (unscaled, scale),
            None => canonical_number(&text(&Cell::Float(f)))?,
        },
        _ => return None,
    };
    while own > scale && unscaled % 10 == 0 {
        (unscaled, own) = (unscaled / 10, own - 1);
    }
    let steps = scale.checked_sub(own)?;
    let unscaled = unscaled.checked_mul(10i128.checked_pow(steps as u32)?)?;
    let limit = 10u128.checked_pow(integer as u32 + scale as u32)?;
    (unscaled.unsigned_abs() < limit).then_some(Cell::Decimal { unscaled, scale })
}

/// The number of at most 15 digits, `scale` of them behind the point, that `f` is the double of. There is no
/// more than one, and it is what the shortest text for `f` says, unless that has an exponent. What is none may
/// have another scale.
fn few_digits(f: f64, scale: u8) -> Option<i128> {
    const DIGITS: f64 = 1e15;
    const EXPONENT_BELOW: f64 = 1e-5;
    const POWERS: [f64; 10] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
    let power = POWERS.get(scale as usize)?;
    let unscaled = (f * power).round();
    // The quotient of two whole numbers below 2^53 is rounded as their text would be.
    let is_it = f.abs() >= EXPONENT_BELOW && unscaled.abs() < DIGITS && unscaled / power == f;
    is_it.then_some(unscaled as i128)
}

fn time(text: &str, ty: ColumnType) -> Option<Cell<'static>> {
    const DAY_US: i64 = 86_400_000_000;
    let parsed = time_text::parse(text.trim())?;
    Some(match (ty, parsed) {
        (ColumnType::Date, TimeText::Date(d)) => Cell::Date(d),
        (ColumnType::Timestamp, TimeText::Date(d)) => Cell::Timestamp(d as i64 * DAY_US),
        (ColumnType::Timestamp, TimeText::Local(t)) => Cell::Timestamp(t.us),
        (ColumnType::TimestampNs, TimeText::Local(t)) => Cell::TimestampNs(t.us.checked_mul(1_000)?),
        (ColumnType::Instant, TimeText::Instant(t)) => Cell::Instant(t.us),
        (ColumnType::Instant, TimeText::Local(t)) => Cell::Instant(t.us),
        (ColumnType::Instant, TimeText::Date(d)) => Cell::Instant(d as i64 * DAY_US),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_fit_without_loss_or_not_at_all() {
        let two = ColumnType::Decimal { integer: 3, scale: 2 };
        assert_eq!(fit(Cell::Int(12), two), Some(Cell::Decimal { unscaled: 1200, scale: 2 }));
        assert_eq!(fit(Cell::Text("1.50"), two), Some(Cell::Decimal { unscaled: 150, scale: 2 }));
        assert_eq!(
            fit(Cell::Decimal { unscaled: 1500, scale: 3 }, two),
            Some(Cell::Decimal { unscaled: 150, scale: 2 })
        );
        assert_eq!(fit(Cell::Decimal { unscaled: 1501, scale: 3 }, two), None);
        assert_eq!(fit(Cell::Int(1000), two), None);
    }

    /// The way without a look at digits.
    fn by_text(f: f64, ty: ColumnType) -> Option<Cell<'static>> {
        let text = text(&Cell::Float(f));
        fit(Cell::Text(&text), ty).map(|cell| match cell {
            Cell::Decimal { unscaled, scale } => Cell::Decimal { unscaled, scale },
            other => panic!("{other:?} is no decimal"),
        })
    }

    #[test]
    fn doubles_fit_decimals_as_their_shortest_text_does() {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 11
        };
        let mut fitted = 0;
        for round in 0..200_000 {
            let (digits, scale, integer) = (random() % 18, (random() % 12) as u8, (random() % 12) as u8);
            let whole =
                (random() % 10u64.pow(digits as u32)) as f64 * if round % 2 == 0 { 1.0 } else { -1.0 };
            let near = whole / 10f64.powi((random() % 13) as i32);
            let f = match round % 5 {
                0 => f64::from_bits(near.to_bits() + 1),
                1 => f64::from_bits(random() << 11),
                _ => near,
            };
            let ty = ColumnType::Decimal { integer, scale };
            assert_eq!(fit(Cell::Float(f), ty), by_text(f, ty), "{f:e} as {integer},{scale}");
            fitted += usize::from(fit(Cell::Float(f), ty).is_some());
        }
        assert!(fitted > 20_000, "{fitted} of them fit");
        for f in [0.0, -0.0, f64::NAN, f64::INFINITY, 1e15, 999_999_999_999_999.0, 1e-9, 0.1 + 0.2] {
            let ty = ColumnType::Decimal { integer: 20, scale: 9 };
            assert_eq!(fit(Cell::Float(f), ty), by_text(f, ty), "{f}");
        }
    }

    #[test]
    fn texts_fit_numbers_and_times() {
        assert_eq!(fit(Cell::Text(" 7 "), ColumnType::Int64), Some(Cell::Int(7)));
        assert_eq!(fit(Cell::Text("7x"), ColumnType::Int64), None);
        assert_eq!(fit(Cell::Text("1970-01-02"), ColumnType::Date), Some(Cell::Date(1)));
        assert_eq!(
            fit(Cell::Text("1970-01-01T00:00:01Z"), ColumnType::Instant),
            Some(Cell::Instant(1_000_000))
        );
        assert_eq!(fit(Cell::Float(0.5), ColumnType::Int64), None);
        assert_eq!(fit(Cell::Null, ColumnType::Int64), Some(Cell::Null));
    }
}
