//! "Did you mean": names that are spelled like one that there is not.

/// How alike two names must be, from 0 to 1, for one to be suggested for the other.
const LIKENESS_MIN: f64 = 0.75;

/// The names among `known` that are spelled most like `wanted`, best first, at most three.
pub fn near_names<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > LIKENESS_MIN)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The name among `known` that is spelled most like `wanted`.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    near_names(wanted, known).into_iter().next()
}

/// A hint that names near matches of `wanted`, or the names there are.
pub(crate) fn near_names_hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let near = near_names(wanted, known.iter().copied());
    if !near.is_empty() {
        return format!("did you mean {}?", near.join(" or "));
    }
    let shown = known.iter().take(12).copied().collect::<Vec<_>>().join(", ");
    match known.len() {
        0 => "there are none yet".to_owned(),
        1..=12 => format!("there are: {shown}"),
        n => format!("there are {n}, such as {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_best_first_and_ignore_case() {
        assert_eq!(near_names("bussines_ts", ["id", "business_ts", "system_ts"])[0], "business_ts");
        assert_eq!(near_names("ID", ["id", "qty"]), ["id"]);
        assert!(near_names("zzz", ["id", "qty"]).is_empty());
        assert_eq!(near_names_hint("zzz", ["id", "qty"]), "there are: id, qty");
    }

    #[test]
    fn slips_are_found_and_strangers_left_alone() {
        let names = ["timeline", "history", "quit", "t"];
        assert_eq!(nearest("timelien", names), Some("timeline"));
        assert_eq!(nearest("HISTROY", names), Some("history"));
        assert_eq!(nearest("quti", names), Some("quit"));
        assert_eq!(nearest("banana", names), None);
    }
}
