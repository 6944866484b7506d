//! The type of a value that comes as text only.

use super::number::exact;
use super::time_text::{self, TimeText};
use asofdb_storage::time::format_instant;
use asofdb_storage::value::Cell;

/// The cell of a text: a boolean, number, date or instant only where the text is the canonical
/// spelling of it, so that nothing is lost by reading it as one; else text. Zeros at the end of a
/// fraction are kept as scale.
pub fn text_cell(text: &str) -> Cell<'_> {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b't') if text == "true" => Cell::Bool(true),
        Some(b'f') if text == "false" => Cell::Bool(false),
        Some(b'-' | b'0'..=b'9') => number(text).or_else(|| time(text)).unwrap_or(Cell::Text(text)),
        _ => Cell::Text(text),
    }
}

fn number(text: &str) -> Option<Cell<'static>> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    if whole.is_empty() || fraction == Some("") || whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let (unscaled, scale) = exact(text)?;
    if unscaled == 0 && text.starts_with('-') {
        return None;
    }
    Some(match i64::try_from(unscaled) {
        Ok(n) if fraction.is_none() => Cell::Int(n),
        _ => Cell::Decimal { unscaled, scale },
    })
}

fn time(text: &str) -> Option<Cell<'static>> {
    match time_text::parse(text)? {
        TimeText::Date(days) => Some(Cell::Date(days)),
        TimeText::Instant(t) if t.exact && format_instant(t.us) == text => Some(Cell::Instant(t.us)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_spellings_have_a_type() {
        let decimal = |unscaled, scale| Cell::Decimal { unscaled, scale };
        let cases = [
            ("5", Cell::Int(5)),
            ("-5", Cell::Int(-5)),
            ("1.50", decimal(150, 2)),
            ("-0.5", decimal(-5, 1)),
            ("18446744073709551615", decimal(18446744073709551615, 0)),
            ("true", Cell::Bool(true)),
            ("2026-01-31", Cell::Date(20484)),
            ("2026-01-31T00:00:00Z", Cell::Instant(20484 * 86_400_000_000)),
        ];
        for (text, cell) in cases {
            assert_eq!(text_cell(text), cell);
        }
        for text in [
            "007",
            "+5",
            "-0",
            "-0.0",
            ".5",
            "5.",
            "1e3",
            "TRUE",
            "2026-02-30",
            "2026-1-1",
            "",
            " 5",
            "1,5",
            "2026-01-31T00:00:00+00:00",
            "2026-01-31T00:00:00.5Z",
            "2026-01-31 00:00:00",
            "NaN",
            "-",
        ] {
            assert_eq!(text_cell(text), Cell::Text(text));
        }
    }
}
