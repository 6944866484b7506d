//! Counts in words for people.

/// `1 row`, `2 rows`, `0 entries`: how many, with the noun in its right form.
pub fn of(n: impl TryInto<u64>, one: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    match (n, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn one_is_one_and_all_else_is_many() {
        assert_eq!([of(0u64, "row"), of(1u64, "row"), of(2usize, "row")], ["0 rows", "1 row", "2 rows"]);
        assert_eq!([of(1u32, "entry"), of(3u32, "entry")], ["1 entry", "3 entries"]);
    }
}
