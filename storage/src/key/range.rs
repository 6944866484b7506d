//! Stretches of keys between two values.

use super::{BYTES, FRACTION, INT_ABOVE, INT_BELOW, TEXT, key_bytes};
use crate::value::Cell;

/// More than any component of a key begins with.
const ABOVE_ALL: u8 = 0xff;

/// Keys from `from` on and before `before`, compared as bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    /// The least key, itself included.
    pub from: Vec<u8>,
    /// The first key behind; excluded.
    pub before: Vec<u8>,
}

impl KeyRange {
    /// All keys that begin with `prefix`, which must end where a component does.
    pub fn of_prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { from: prefix.to_vec(), before: [prefix, &[ABOVE_ALL]].concat() }
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        self.from >= self.before
    }

    /// What both hold.
    pub fn intersect(&self, other: &KeyRange) -> KeyRange {
        KeyRange {
            from: self.from.clone().max(other.from.clone()),
            before: self.before.clone().min(other.before.clone()),
        }
    }

    /// The same behind the components of `prefix`.
    pub fn behind(&self, prefix: &[u8]) -> KeyRange {
        KeyRange { from: [prefix, &self.from].concat(), before: [prefix, &self.before].concat() }
    }

    /// Stretches that hold every key component whose value lies between two, both included; `None` leaves an
    /// end open. They ascend, and may hold others too: numbers with fractions are not in the order of their
    /// values, and texts that look like numbers are keyed as numbers. `None` where values of this kind are
    /// not in the order of their keys.
    pub fn between(low: Option<&Cell<'_>>, high: Option<&Cell<'_>>) -> Option<Vec<KeyRange>> {
        let kinds = [low, high].into_iter().flatten();
        let number = |c: &Cell<'_>| matches!(c, Cell::Int(_) | Cell::Decimal { .. });
        if kinds.clone().all(number) {
            return Some(numbers(low.map(|c| whole(c, Side::Below)), high.map(|c| whole(c, Side::Above))));
        }
        kinds.clone().all(|c| matches!(c, Cell::Text(_))).then(|| texts(low, high))
    }
}

enum Side {
    Below,
    Above,
}

/// The next whole number at or beside a number.
fn whole(cell: &Cell<'_>, side: Side) -> i128 {
    let (unscaled, scale) = match cell {
        Cell::Decimal { unscaled, scale } => (*unscaled, *scale),
        Cell::Int(v) => (*v as i128, 0),
        _ => (0, 0),
    };
    let one = 10i128.checked_pow(scale as u32).unwrap_or(i128::MAX);
    let floor = unscaled.div_euclid(one);
    match side {
        Side::Above if unscaled.rem_euclid(one) != 0 => floor + 1,
        _ => floor,
    }
}

fn numbers(low: Option<i128>, high: Option<i128>) -> Vec<KeyRange> {
    let key = |n: i128| key_bytes([&Cell::Decimal { unscaled: n, scale: 0 }]);
    let whole = KeyRange {
        from: low.map_or(vec![INT_BELOW], key),
        before: high.map_or(vec![INT_ABOVE + 1], |n| [key(n), vec![ABOVE_ALL]].concat()),
    };
    let fractions = KeyRange { from: vec![FRACTION], before: vec![FRACTION + 1] };
    [whole, fractions].into_iter().filter(|r| !r.is_empty()).collect()
}

fn texts(low: Option<&Cell<'_>>, high: Option<&Cell<'_>>) -> Vec<KeyRange> {
    let key = |cell: &Cell<'_>| match cell {
        Cell::Text(s) => {
            let mut key = Vec::new();
            super::put_escaped(&mut key, TEXT, s.as_bytes());
            key
        }
        _ => vec![TEXT],
    };
    let texts = KeyRange {
        from: low.map_or(vec![TEXT], key),
        before: high.map_or(vec![TEXT + 1], |c| [key(c), vec![ABOVE_ALL]].concat()),
    };
    let numbers = KeyRange { from: vec![INT_BELOW], before: vec![FRACTION + 1] };
    let bytes = KeyRange { from: vec![BYTES], before: vec![BYTES + 1] };
    [numbers, texts, bytes].into_iter().filter(|r| !r.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn within(ranges: &[KeyRange], cell: &Cell<'_>) -> bool {
        let key = key_bytes([cell]);
        ranges.iter().any(|r| r.from <= key && key < r.before)
    }

    fn decimal() -> impl Strategy<Value = (i128, u8)> {
        let few = (-50i128..50, 0u8..3);
        let any = (-1_000_000_000_000_000_000_000i128..1_000_000_000_000_000_000_000, 0u8..20);
        prop_oneof![few, any]
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[ab\\x00\\x01\\xff]{0,3}", "-?[0-9]{1,2}(\\.[0-9])?"]
    }

    /// Numbers compare by value, whatever their scales are.
    fn value((unscaled, scale): (i128, u8)) -> (i128, i128) {
        let one = 10i128.pow(scale as u32);
        (unscaled.div_euclid(one), unscaled.rem_euclid(one) * 10i128.pow(20 - scale as u32))
    }

    proptest! {
        #[test]
        fn numbers_between_two_have_their_keys_in_the_ranges(a in decimal(), b in decimal(), n in decimal()) {
            let cell = |(unscaled, scale)| Cell::Decimal { unscaled, scale };
            let (low, high) = (cell(a), cell(b));
            let ends = [(Some(a), Some(b)), (Some(a), None), (None, Some(b))];
            for (l, h) in ends {
                let ranges = KeyRange::between(l.map(|_| &low), h.map(|_| &high)).unwrap();
                let between = l.is_none_or(|l| value(l) <= value(n)) && h.is_none_or(|h| value(n) <= value(h));
                prop_assert!(!between || within(&ranges, &cell(n)), "{n:?} between {l:?} and {h:?}");
                let far = l.is_some_and(|l| value(n).0 < value(l).0) || h.is_some_and(|h| value(n).0 > value(h).0 + 1);
                let whole = value(n).1 == 0;
                prop_assert!(!far || !whole || !within(&ranges, &cell(n)), "{n:?} not between {l:?} and {h:?}");
            }
        }

        #[test]
        fn texts_between_two_have_their_keys_in_the_ranges(a in text(), b in text(), t in text()) {
            let ranges = KeyRange::between(Some(&Cell::Text(&a)), Some(&Cell::Text(&b))).unwrap();
            prop_assert!(!(a <= t && t <= b) || within(&ranges, &Cell::Text(&t)), "{t:?} between {a:?} and {b:?}");
            let named = crate::value::canonical_number(&t).is_none();
            prop_assert!(t >= a || !named || !within(&ranges, &Cell::Text(&t)), "{t:?} below {a:?}");
        }
    }

    #[test]
    fn kinds_without_an_order_have_no_ranges() {
        assert_eq!(KeyRange::between(Some(&Cell::Date(3)), None), None);
        assert_eq!(KeyRange::between(Some(&Cell::Int(3)), Some(&Cell::Text("x"))), None);
    }

    #[test]
    fn keys_that_begin_alike_are_one_range() {
        let prefix = key_bytes([&Cell::Text("eu")]);
        let range = KeyRange::of_prefix(&prefix);
        for other in [Cell::Int(i64::MIN), Cell::Null, Cell::Bytes(&[255, 255])] {
            let key = key_bytes([&Cell::Text("eu"), &other]);
            assert!(range.from <= key && key < range.before);
        }
        let other = key_bytes([&Cell::Text("eu2"), &Cell::Int(1)]);
        assert!(!(range.from <= other && other < range.before));
    }
}
