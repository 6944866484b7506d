//! Times as arguments of meta commands: several words each, of which the reader finds out where one ends.

use crate::text::when::{self, When};

/// A moment that a person named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// `commit:12`
    Commit(u64),
    /// A time, with the words it was given in.
    Time(When, String),
}

impl Moment {
    fn parse(words: &[String], now_us: i64) -> Result<Moment, String> {
        let text = words.join(" ");
        match text.strip_prefix("commit:") {
            Some(n) => {
                n.parse().map(Moment::Commit).map_err(|_| format!("'{n}' is not the number of a commit"))
            }
            None => when::parse(&text, now_us).map(|w| Moment::Time(w, text)),
        }
    }
}

/// Reads `FROM [TO]`, each of one or more words; a `to` may stand between them. Without `TO` it is now.
pub fn two(words: &[String], now_us: i64) -> Result<(Moment, Moment), String> {
    let parse = |words: &[String]| Moment::parse(words, now_us);
    if words.is_empty() {
        return Err("no moment is given".into());
    }
    if let Some(n) = words.iter().position(|w| w == "to" || w == "..") {
        return Ok((parse(&words[..n])?, parse(&words[n + 1..])?));
    }
    let pairs = (1..words.len()).filter_map(|n| Some((parse(&words[..n]).ok()?, parse(&words[n..]).ok()?)));
    let pairs: Vec<_> = pairs.collect();
    match (parse(words), &pairs[..]) {
        (Ok(from @ Moment::Time(..)), []) => Ok((from, Moment::Time(When::Now, "now".into()))),
        (Ok(Moment::Commit(_)), []) => Err("of commits two are wanted".into()),
        (Err(_), [one]) => Ok(one.clone()),
        (Err(e), []) => Err(e),
        _ => Err("it is not clear where the first moment ends".into()),
    }
}

/// The times of `[at WHEN] [known WHEN]`, valid and system.
pub type Times = (Option<When>, Option<When>);

/// Reads `[at WHEN] [known WHEN]`, in either order.
pub fn at_and_known(words: &[String], now_us: i64) -> Result<Times, String> {
    let marker = |i: usize| match words[i].to_ascii_lowercase().as_str() {
        "valid" => Some(0),
        // `yesterday at 18:00` is one time.
        "at" if !words.get(i + 1).is_some_and(|w| w.contains(':') && !w.contains('-')) => Some(0),
        "known" | "system" | "sys" => Some(1),
        _ => None,
    };
    let marks: Vec<(usize, usize)> = (0..words.len()).filter_map(|i| Some((i, marker(i)?))).collect();
    if let Some(word) = words.first().filter(|_| marks.first().is_none_or(|(i, _)| *i > 0)) {
        return Err(format!("'{word}' is neither at nor known"));
    }
    let mut times = [None, None];
    for (n, (i, axis)) in marks.iter().enumerate() {
        let end = marks.get(n + 1).map_or(words.len(), |(next, _)| *next);
        if times[*axis].is_some() {
            return Err(format!("{} is given twice", words[*i]));
        }
        times[*axis] = Some(when::parse(&words[i + 1..end].join(" "), now_us)?);
    }
    Ok((times[0], times[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_796_029_923_500_000;

    fn words(text: &str) -> Vec<String> {
        super::super::meta::words(text).unwrap()
    }

    fn texts(text: &str) -> Result<(String, String), String> {
        let name = |m: Moment| match m {
            Moment::Commit(n) => format!("#{n}"),
            Moment::Time(_, text) => text,
        };
        two(&words(text), NOW).map(|(a, b)| (name(a), name(b)))
    }

    #[test]
    fn two_moments_are_told_apart() {
        for (text, from, to) in [
            ("2026-01-01 2026-02-01", "2026-01-01", "2026-02-01"),
            ("2026-01-01 08:00 2026-02-01 09:00", "2026-01-01 08:00", "2026-02-01 09:00"),
            ("yesterday 18:00 now", "yesterday 18:00", "now"),
            ("'yesterday 18:00' 'today 9:00'", "yesterday 18:00", "today 9:00"),
            ("3 hours ago to now", "3 hours ago", "now"),
            ("2026-01-01", "2026-01-01", "now"),
            ("2026-01-01 08:00", "2026-01-01 08:00", "now"),
            ("commit:3 commit:5", "#3", "#5"),
            ("3 5", "3", "5"),
        ] {
            assert_eq!(texts(text), Ok((from.into(), to.into())), "{text}");
        }
        for wrong in ["", "soon", "commit:x commit:2", "commit:3", "now to", "2026-01-01 soon"] {
            assert!(texts(wrong).is_err(), "{wrong}: {:?}", texts(wrong));
        }
    }

    #[test]
    fn at_is_valid_time_and_known_is_system_time() {
        let read = |text: &str| at_and_known(&words(text), NOW);
        let day = |text: &str| Some(when::parse(text, NOW).unwrap());
        assert_eq!(read(""), Ok((None, None)));
        assert_eq!(
            read("at 2026-01-01 known yesterday at 18:00"),
            Ok((day("2026-01-01"), day("yesterday 18:00")))
        );
        assert_eq!(read("known 2026-01-02 08:00 at now"), Ok((Some(When::Now), day("2026-01-02 08:00"))));
        assert_eq!(read("at 7"), Ok((Some(When::Integer(7)), None)));
        for wrong in ["2026-01-01", "at", "at soon", "at now at now", "known"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
