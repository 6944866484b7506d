//! Small JSON objects, packed into a number so that they are as cheap as one: members `a` and `b` in
//! any order, each null, a digit, or an object with members `x` and `y`.

/// The characters of the text of an object that mean something; `n` is null.
const TOKENS: &str = "abxy0123n{}";

/// Marks codes, so that no small number is one.
const MARK: i64 = 1 << 62;

/// An object, as the characters of its text without the outer braces, four bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object(u64);

/// A member's value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tree {
    Leaf(char),
    Inner(Vec<(char, Tree)>),
}

impl Object {
    /// The object of a JSON text.
    ///
    /// # Panics
    /// If it has more members than fit.
    pub fn of(text: &str) -> Object {
        let tokens: Vec<u64> = text.chars().filter_map(|c| TOKENS.find(c)).map(|i| i as u64 + 1).collect();
        assert!(tokens.len() >= 2 && tokens.len() <= 16, "{text} is no small object");
        Object(tokens[1..tokens.len() - 1].iter().fold(0, |code, token| code << 4 | token))
    }

    /// A number for the object that no value of tests has.
    pub fn code(self) -> i64 {
        MARK | self.0 as i64
    }

    /// The JSON text of a code of [`Object::code`].
    pub fn text_of(code: i64) -> Option<String> {
        (code & MARK != 0 && code > 0).then(|| Object((code ^ MARK) as u64).text())
    }

    /// The JSON text, without white space.
    pub fn text(self) -> String {
        show(&self.members())
    }

    /// The object with the leaves of a newer one.
    pub fn with(self, newer: Object) -> Object {
        Object::of(&show(&overlay(self.members(), newer.members())))
    }

    fn members(self) -> Vec<(char, Tree)> {
        let tokens: Vec<char> = (0..16)
            .rev()
            .map(|i| (self.0 >> (i * 4) & 15) as usize)
            .filter(|token| *token > 0)
            .map(|token| TOKENS.as_bytes()[token - 1] as char)
            .collect();
        members(&mut tokens.into_iter())
    }
}

fn members(tokens: &mut impl Iterator<Item = char>) -> Vec<(char, Tree)> {
    let mut all = Vec::new();
    while let Some(name) = tokens.next().filter(|t| *t != '}') {
        let value = match tokens.next() {
            Some('{') => Tree::Inner(members(tokens)),
            leaf => Tree::Leaf(leaf.unwrap_or('n')),
        };
        all.push((name, value));
    }
    all
}

/// Old members first, each with what the newer ones say of it; then the members that are new.
fn overlay(old: Vec<(char, Tree)>, newer: Vec<(char, Tree)>) -> Vec<(char, Tree)> {
    let find = |all: &[(char, Tree)], name| all.iter().find(|m| m.0 == name).map(|m| m.1.clone());
    let fresh: Vec<_> = newer.iter().filter(|m| find(&old, m.0).is_none()).cloned().collect();
    let kept = old.into_iter().map(|(name, value)| match (value, find(&newer, name)) {
        (value, None) => (name, value),
        (Tree::Inner(a), Some(Tree::Inner(b))) => (name, Tree::Inner(overlay(a, b))),
        (_, Some(value)) => (name, value),
    });
    kept.chain(fresh).collect()
}

fn show(members: &[(char, Tree)]) -> String {
    let member = |(name, value): &(char, Tree)| match value {
        Tree::Leaf('n') => format!("\"{name}\":null"),
        Tree::Leaf(digit) => format!("\"{name}\":{digit}"),
        Tree::Inner(inner) => format!("\"{name}\":{}", show(inner)),
    };
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
}
