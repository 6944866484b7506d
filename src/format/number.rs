//! Numbers from their text, exactly where a cell can hold them (rule B14).

use asofdb_storage::value::{Cell, DECIMAL_DIGITS_MAX};

/// The cell of a JSON number: an integer, a decimal with the scale it was sent with, or a double
/// where there is an exponent or there are more than 38 digits. `None` if it is beyond a double.
pub fn json_number(text: &str) -> Option<Cell<'static>> {
    if text.len() <= 18
        && let Some(n) = small_integer(text.as_bytes())
    {
        return Some(Cell::Int(n));
    }
    if let Some((unscaled, scale)) = exact(text) {
        return Some(match i64::try_from(unscaled) {
            Ok(n) if !text.contains('.') => Cell::Int(n),
            _ => Cell::Decimal { unscaled, scale },
        });
    }
    let v: f64 = text.parse().ok()?;
    v.is_finite().then_some(Cell::Float(v))
}

fn small_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let mut n = 0i64;
    for b in digits {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        n = n * 10 + d as i64;
    }
    (!digits.is_empty()).then_some(if negative { -n } else { n })
}

/// Digits and scale of `-?digits(.digits)?` with at most 38 digits that count.
pub fn exact(text: &str) -> Option<(i128, u8)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() <= 18 {
        return exact_short(text, digits);
    }
    let (mut unscaled, mut count, mut scale, mut point) = (0i128, 0u32, 0u32, false);
    if digits.is_empty() {
        return None;
    }
    for b in digits.bytes() {
        match b {
            b'0'..=b'9' => {
                count += (unscaled != 0 || b != b'0') as u32;
                scale += point as u32;
                if count > DECIMAL_DIGITS_MAX as u32 || scale > DECIMAL_DIGITS_MAX as u32 {
                    return None;
                }
                unscaled = unscaled * 10 + (b - b'0') as i128;
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    Some((if text.starts_with('-') { -unscaled } else { unscaled }, scale as u8))
}

/// The same for texts whose digits fit 64 bits.
fn exact_short(text: &str, digits: &str) -> Option<(i128, u8)> {
    let (mut unscaled, mut scale, mut point) = (0i64, 0u8, false);
    if digits.is_empty() {
        return None;
    }
    for b in digits.bytes() {
        match b {
            b'0'..=b'9' => {
                scale += point as u8;
                unscaled = unscaled * 10 + (b - b'0') as i64;
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    Some((if text.starts_with('-') { -unscaled } else { unscaled } as i128, scale))
}

/// A big-endian two's complement integer of any length, if it has at most 38 digits.
pub fn from_twos_complement(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|b| *b >= 0x80);
    let fill = if negative { 0xff } else { 0 };
    let skip = bytes.len().saturating_sub(16);
    if bytes[..skip].iter().any(|b| *b != fill) {
        return None;
    }
    let mut wide = [fill; 16];
    wide[16 - (bytes.len() - skip)..].copy_from_slice(&bytes[skip..]);
    let n = i128::from_be_bytes(wide);
    let kept = (n < 0) == negative || bytes.len() <= 16;
    (kept && n.unsigned_abs() < 10u128.pow(DECIMAL_DIGITS_MAX as u32)).then_some(n)
}

/// A decimal with the scale of its column where that is more than its own and it still fits.
pub fn with_scale(unscaled: i128, own: u8, scale: i64) -> Cell<'static> {
    let more = u32::try_from(scale.saturating_sub(own as i64)).ok();
    let wider = more.and_then(|m| unscaled.checked_mul(10i128.checked_pow(m)?));
    let fits = |n: &i128| n.unsigned_abs() < 10u128.pow(DECIMAL_DIGITS_MAX as u32);
    wider.filter(fits).and_then(|n| scaled(n, scale)).unwrap_or(Cell::Decimal { unscaled, scale: own })
}

/// A decimal with any scale as a cell: a negative scale is multiplied out. `None` if it needs more
/// than 38 digits.
pub fn scaled(unscaled: i128, scale: i64) -> Option<Cell<'static>> {
    if scale >= 0 {
        let scale = u8::try_from(scale).ok().filter(|s| *s <= DECIMAL_DIGITS_MAX)?;
        return Some(Cell::Decimal { unscaled, scale });
    }
    let factor = 10i128.checked_pow(u32::try_from(-scale).ok()?);
    let unscaled = if unscaled == 0 { 0 } else { unscaled.checked_mul(factor?)? };
    (unscaled.unsigned_abs() < 10u128.pow(DECIMAL_DIGITS_MAX as u32))
        .then_some(Cell::Decimal { unscaled, scale: 0 })
}

/// A number that was sent as digits, with the scale of its column if that loses nothing.
pub fn rescaled(unscaled: i128, own: u8, scale: i64) -> Cell<'static> {
    let more = u32::try_from(scale - own as i64).ok();
    let wider = more.and_then(|m| unscaled.checked_mul(10i128.checked_pow(m)?));
    wider.and_then(|n| scaled(n, scale)).unwrap_or(Cell::Decimal { unscaled, scale: own })
}
