//! "Did you mean": the nearest of some names.

/// The name nearest to `typed`, if one is near enough to be a slip of the hand.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&typed, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len().min(typed.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_slips_and_leaves_strangers_alone() {
        let names = ["timeline", "history", "quit", "t"];
        assert_eq!(nearest("timelien", names), Some("timeline"));
        assert_eq!(nearest("HISTROY", names), Some("history"));
        assert_eq!(nearest("quti", names), Some("quit"));
        assert_eq!(nearest("banana", names), None);
    }
}
