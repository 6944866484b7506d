use super::*;
use std::sync::mpsc::{Receiver, channel};

/// Gives bytes in pieces of many sizes, then what `end` says.
struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    reads: usize,
    end: fn() -> io::Result<usize>,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(7) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let sizes = [1, 100_000, usize::MAX, 70_000, 3_000];
        let n = sizes[self.reads % sizes.len()].min(out.len()).min(self.bytes.len() - self.at);
        if n == 0 {
            return (self.end)();
        }
        out[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// Lines of many lengths, some longer than the room in front of a block and some longer than a block.
fn lines() -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..40_000usize {
        let length = match i {
            i if i % 9_000 == 8_999 => 2_500_000,
            i if i % 1_500 == 700 => 70_000 + i,
            i => i * 31 % 400,
        };
        out.extend(std::iter::repeat_n(b'a' + (i % 26) as u8, length));
        out.push(b'\n');
    }
    out
}

fn pieces(bytes: Vec<u8>, end: fn() -> io::Result<usize>) -> Blocks {
    Blocks::new(Box::new(Pieces { bytes, at: 0, reads: 0, end }))
}

/// The next line, with its line break.
fn next(blocks: &mut Blocks) -> io::Result<Option<Vec<u8>>> {
    let Line::Whole { all, .. } = blocks.line(usize::MAX)? else { return Ok(None) };
    let line = blocks.window()[..all].to_vec();
    blocks.consume(all);
    Ok(Some(line))
}

#[test]
fn reading_ahead_gives_every_byte_once_and_in_order() {
    let bytes = lines();
    let mut blocks = pieces(bytes.clone(), || Ok(0));
    let (mut at, mut hash) = (0, Xxh3::new());
    while let Some(line) = next(&mut blocks).unwrap() {
        assert!(bytes[at..].starts_with(&line), "at byte {at}");
        at += line.len();
        hash.update(&line);
        if at % 1_000 < 40 {
            assert_eq!(blocks.digest(), format!("xxh3:{:032x}", hash.digest128()), "to byte {at}");
        }
    }
    assert_eq!((at, blocks.bytes), (bytes.len(), bytes.len() as u64));
    assert_eq!(blocks.digest(), format!("xxh3:{:032x}", hash.digest128()));
    assert!(blocks.at_end && next(&mut blocks).unwrap().is_none());
}

#[test]
fn errors_and_panics_behind_the_front_are_no_end() {
    for (end, said) in [
        ((|| Err(io::Error::other("broken"))) as fn() -> _, "broken"),
        (|| panic!("inside"), "the thread that reads stopped before the end"),
    ] {
        let bytes = lines();
        let mut blocks = pieces(bytes.clone(), end);
        let mut at = 0;
        let error = loop {
            match next(&mut blocks) {
                Ok(line) => at += line.expect("no end").len(),
                Err(e) => break e,
            }
        };
        assert_eq!((at, error.to_string().as_str()), (bytes.len(), said));
        assert!(next(&mut blocks).is_err() && !blocks.at_end, "it stays one");
    }
}

/// Gives what it is told to, and waits meanwhile.
struct Told(Receiver<Vec<u8>>);

impl Read for Told {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Ok(bytes) = self.0.recv() else { return Ok(0) };
        out[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

#[test]
fn what_has_come_is_given_although_nothing_follows() {
    let (tell, told) = channel();
    let mut blocks = Blocks::new(Box::new(Told(told)));
    let line = [vec![b'x'; 99_999], vec![b'\n']].concat();
    for n in 0..200 {
        tell.send(line.clone()).unwrap();
        assert_eq!(next(&mut blocks).unwrap().as_deref(), Some(&line[..]), "line {n}");
    }
    assert!(matches!(blocks.input, Input::Ahead(_)), "a thread reads");
    drop(tell);
    assert_eq!(next(&mut blocks).unwrap(), None);
}
