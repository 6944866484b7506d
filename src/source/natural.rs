//! Natural order of paths.

use std::cmp::Ordering;

/// Compares paths so that runs of digits count as numbers: `a2` before `a10`. Where that says
/// nothing (`a1`, `a01`) bytes decide, so that different paths are never equal.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a.as_bytes(), b.as_bytes());
    while let (Some(p), Some(q)) = (x.first(), y.first()) {
        if p.is_ascii_digit() && q.is_ascii_digit() {
            let (m, n) = (digits(x), digits(y));
            let (u, v) = (without_zeros(&x[..m]), without_zeros(&y[..n]));
            match u.len().cmp(&v.len()).then(u.cmp(v)) {
                Ordering::Equal => (x, y) = (&x[m..], &y[n..]),
                other => return other,
            }
        } else if p != q {
            return p.cmp(q);
        } else {
            (x, y) = (&x[1..], &y[1..]);
        }
    }
    x.len().cmp(&y.len()).then_with(|| a.cmp(b))
}

fn digits(b: &[u8]) -> usize {
    b.iter().take_while(|c| c.is_ascii_digit()).count()
}

fn without_zeros(b: &[u8]) -> &[u8] {
    &b[b.iter().take_while(|c| **c == b'0').count()..]
}
