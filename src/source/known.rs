//! The positions that a source knows, found by place and by content in time that does not grow with their
//! number: a directory may have many files.

use super::position::SourcePosition;
use std::collections::HashMap;

/// Stream and origin, without their generations.
type Name = (String, String);

/// Positions in the order in which they became known.
#[derive(Debug, Default)]
pub(super) struct Known {
    all: Vec<SourcePosition>,
    by_name: HashMap<Name, Vec<usize>>,
    /// By digest; what was replaced since may still be listed.
    by_content: HashMap<String, Vec<usize>>,
    /// Those of parts inside of files, whose streams are named after the file and a `#`.
    inside: Vec<usize>,
}

/// Whether both are positions of one place.
pub(super) fn same_place(a: &SourcePosition, b: &SourcePosition) -> bool {
    (&a.stream, a.stream_generation, &a.origin, a.origin_generation)
        == (&b.stream, b.stream_generation, &b.origin, b.origin_generation)
}

impl Known {
    pub fn new(positions: Vec<SourcePosition>) -> Known {
        let mut known = Known::default();
        positions.into_iter().for_each(|p| known.put(p));
        known
    }

    /// Notes a position in place of an earlier one of the same place.
    pub fn put(&mut self, position: SourcePosition) {
        let name = (position.stream.clone(), position.origin.clone());
        let places = self.by_name.entry(name).or_default();
        let at = places.iter().copied().find(|at| same_place(&self.all[*at], &position));
        let at = at.unwrap_or(self.all.len());
        if !position.digest.is_empty() {
            self.by_content.entry(position.digest.clone()).or_default().push(at);
        }
        if at == self.all.len() {
            places.push(at);
            if position.stream.contains('#') {
                self.inside.push(at);
            }
            self.all.push(position);
        } else {
            self.all[at] = position;
        }
    }

    /// The positions of a stream and origin, of any generation.
    pub fn named(&self, stream: &str, origin: &str) -> impl Iterator<Item = &SourcePosition> {
        let places = self.by_name.get(&(stream.to_owned(), origin.to_owned()));
        places.into_iter().flatten().map(|at| &self.all[*at])
    }

    /// The first position of another place with the same content.
    pub fn twin(&self, of: &SourcePosition) -> Option<&SourcePosition> {
        let places = self.by_content.get(&of.digest)?;
        let found = places.iter().map(|at| &self.all[*at]);
        found.into_iter().find(|p| p.bytes == of.bytes && p.digest == of.digest && !same_place(p, of))
    }

    /// The positions of parts inside of files.
    pub fn inside(&self) -> impl Iterator<Item = &SourcePosition> {
        self.inside.iter().map(|at| &self.all[*at])
    }

    /// All of them, in order, which are forgotten.
    pub fn take(&mut self) -> Vec<SourcePosition> {
        std::mem::take(self).all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(origin: &str, generation: u32, bytes: u64, digest: &str) -> SourcePosition {
        SourcePosition {
            stream: "d".into(),
            stream_generation: 0,
            origin: origin.into(),
            origin_generation: generation,
            next: 0,
            bytes,
            digest: digest.into(),
            lines: 0,
            head: String::new(),
            reading: None,
            state: None,
            end: None,
        }
    }

    #[test]
    fn a_place_has_one_position_and_a_name_may_have_many() {
        let mut known = Known::new(vec![position("a", 0, 5, "x"), position("a", 1, 6, "y")]);
        known.put(position("a", 0, 9, "z"));
        let found: Vec<_> = known.named("d", "a").map(|p| (p.origin_generation, p.bytes)).collect();
        assert_eq!(found, [(0, 9), (1, 6)]);
        assert_eq!(known.named("d", "b").count() + known.named("e", "a").count(), 0);
        assert_eq!(known.take().len(), 2);
        assert_eq!(known.named("d", "a").count() + known.take().len(), 0);
    }

    #[test]
    fn a_twin_is_another_place_with_the_content_that_it_has_now() {
        let mut known = Known::new(vec![position("a", 0, 5, "x"), position("b", 0, 5, "x")]);
        let twin = |known: &Known, p: &SourcePosition| known.twin(p).map(|t| t.origin.clone());
        assert_eq!(twin(&known, &position("c", 0, 5, "x")), Some("a".into()));
        assert_eq!(twin(&known, &position("a", 0, 5, "x")), Some("b".into()));
        assert_eq!(twin(&known, &position("c", 0, 4, "x")), None);
        known.put(position("a", 0, 7, "longer"));
        assert_eq!(twin(&known, &position("c", 0, 5, "x")), Some("b".into()));
    }

    #[test]
    fn parts_of_files_are_found_apart() {
        let mut part = position("", 0, 0, "");
        part.stream = "d/dump#t/0".into();
        let known = Known::new(vec![position("a", 0, 5, "x"), part]);
        assert_eq!(known.inside().map(|p| p.stream.as_str()).collect::<Vec<_>>(), ["d/dump#t/0"]);
    }
}
