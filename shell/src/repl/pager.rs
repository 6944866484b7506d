//! Long answers through a pager: text is held back until it does not fit the screen, and only then given away.
//!
//! Answers are written by a thread of their own, so that a pager that reads no further never keeps Ctrl-C from
//! the query.

use crate::interrupt;
use crate::render::Sink;
use crate::terminal;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pager where none is named: it cuts long lines, which the arrow keys shift, and leaves what was shown on the
/// screen.
const DEFAULT: &str = "less -SRX";
/// Text that waits for the pager, in pieces.
const PIECES_MAX: usize = 64;
/// Bytes of a piece, about.
const PIECE_BYTES: usize = 1 << 14;
/// How often a wait looks for signals.
const POLL: Duration = Duration::from_millis(20);
/// Text that is held back at most, whatever its lines.
const HELD_BYTES_MAX: usize = 1 << 20;

/// The command line of the pager: `ASOF_PAGER`, `PAGER`, else less where there is one. `None` = no pager.
pub fn command(variable: impl Fn(&str) -> Option<String>, less: impl Fn() -> bool) -> Option<String> {
    let named = variable("ASOF_PAGER").or_else(|| variable("PAGER"));
    let command = named.or_else(|| less().then(|| DEFAULT.to_owned()))?;
    let command = command.trim();
    (!command.is_empty() && command != "cat").then(|| command.to_owned())
}

/// Whether `less` is among the programs of `PATH`.
pub fn has_less() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join("less").is_file())
}

/// Output of one answer that may be longer than the screen.
pub struct Paged {
    command: String,
    /// Lines that fit, and columns.
    screen: (usize, usize),
    plain: Sink,
    held: Vec<u8>,
    held_lines: usize,
    line: Line,
    pager: Option<Pager>,
}

/// The line that is being written: how wide it is, without the colours.
#[derive(Default)]
struct Line {
    columns: usize,
    in_escape: bool,
}

impl Line {
    fn take(&mut self, byte: u8) {
        match (self.in_escape, byte) {
            (_, b'\n') => *self = Line::default(),
            (_, 0x1b) => self.in_escape = true,
            (true, _) => self.in_escape = !byte.is_ascii_alphabetic(),
            // Only the first byte of a character counts.
            (false, 0x80..=0xbf) => {}
            (false, _) => self.columns += 1,
        }
    }
}

struct Pager {
    child: Child,
    pieces: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

impl Paged {
    /// Text that fits `screen`, which has so many lines and columns, goes to `plain`, other to the pager.
    pub fn new(command: &str, screen: (usize, usize), plain: Sink) -> Paged {
        let (held, line) = (Vec::new(), Line::default());
        Paged { command: command.to_owned(), screen, plain, held, held_lines: 0, line, pager: None }
    }

    /// Starts the pager; where it cannot be started all goes to the screen.
    fn give_away(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        match Pager::start(&self.command) {
            Ok(pager) => {
                let pager = self.pager.insert(pager);
                pager.send(held)
            }
            Err(e) => {
                terminal::err(&format!("note: no pager: {}: {e}\n", self.command));
                self.screen = (usize::MAX, usize::MAX);
                self.plain.write_all(&held)
            }
        }
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(pager) = &self.pager {
            self.held.extend_from_slice(bytes);
            if self.held.len() >= PIECE_BYTES {
                pager.send(std::mem::take(&mut self.held))?;
            }
            return Ok(bytes.len());
        }
        if self.screen.0 == usize::MAX {
            return self.plain.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        let mut too_wide = false;
        for byte in bytes {
            self.held_lines += usize::from(*byte == b'\n');
            self.line.take(*byte);
            too_wide |= self.line.columns > self.screen.1;
        }
        if self.held_lines > self.screen.0 || too_wide || self.held.len() > HELD_BYTES_MAX {
            self.give_away()?;
        }
        Ok(bytes.len())
    }

    /// What fits is shown at the end of the answer.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Paged {
    /// Ends the answer: shows what fits, or waits until the pager is left.
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        // Neither a pager that was left nor a closed terminal can be told anything.
        let _ = match self.pager.take() {
            Some(pager) => pager.send(held),
            None => self.plain.write_all(&held).and_then(|()| self.plain.flush()),
        };
    }
}

impl Pager {
    fn start(command: &str) -> io::Result<Pager> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            shell.env("LESS", "SRX");
        }
        let mut child = shell.spawn()?;
        let mut input = child.stdin.take().ok_or_else(|| io::Error::other("it takes no input"))?;
        let (pieces, received) = sync_channel::<Vec<u8>>(PIECES_MAX);
        let writer = std::thread::spawn(move || {
            for piece in received {
                if input.write_all(&piece).is_err() {
                    break;
                }
            }
        });
        terminal::lend(true);
        Ok(Pager { child, pieces: Some(pieces), writer: Some(writer) })
    }

    /// Hands a piece over. An error once the pager was left, or Ctrl-C came.
    fn send(&self, mut piece: Vec<u8>) -> io::Result<()> {
        let Some(pieces) = &self.pieces else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let mut wait = Duration::from_millis(1);
        loop {
            match pieces.try_send(piece) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(TrySendError::Full(back)) => piece = back,
            }
            if interrupt::count() > 0 {
                return Err(io::Error::other("cancelled"));
            }
            std::thread::sleep(wait);
            wait = (wait * 2).min(POLL);
        }
    }
}

impl Drop for Pager {
    /// The end of its input, then its own end.
    fn drop(&mut self) {
        self.pieces = None;
        let _ = self.child.wait();
        if let Some(writer) = self.writer.take() {
            // It ends with the pager's end of the pipe.
            let _ = writer.join();
        }
        terminal::lend(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_pager_is_the_one_that_is_named() {
        let with = |pairs: &[(&str, &str)], less: bool| {
            let pairs: Vec<(String, String)> =
                pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            command(|name| pairs.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()), || less)
        };
        assert_eq!(with(&[("ASOF_PAGER", "a -b"), ("PAGER", "c")], true).as_deref(), Some("a -b"));
        assert_eq!(with(&[("PAGER", "c")], true).as_deref(), Some("c"));
        assert_eq!(with(&[], true).as_deref(), Some("less -SRX"));
        for none in [with(&[], false), with(&[("ASOF_PAGER", "")], true), with(&[("PAGER", "cat")], true)] {
            assert_eq!(none, None);
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_what_does_not_fit_is_paged() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("paged");
        let pager = format!("cat > '{}'", file.display());
        let text = |text: &str| {
            let plain = Shared::default();
            std::fs::write(&file, "").unwrap();
            Paged::new(&pager, (3, 20), Box::new(plain.clone())).write_all(text.as_bytes()).unwrap();
            (plain.0.lock().unwrap().len(), std::fs::read(&file).unwrap().len())
        };
        let bars = "\u{2502}".repeat(20);
        assert_eq!(text(&bars), (60, 0), "characters, not bytes");
        assert_eq!(text("\x1b[1;36mA\x1b[0m\x1b[1;36mAAAAAAAAAA\x1b[0m\n"), (34, 0), "colours have no width");
        assert_eq!(text(&"x".repeat(21)), (0, 21), "too wide");
        std::fs::write(&file, "").unwrap();
        let write = |lines: usize| {
            let plain = Shared::default();
            let mut paged = Paged::new(&pager, (3, 20), Box::new(plain.clone()));
            (0..lines).for_each(|i| writeln!(paged, "line {i}").unwrap());
            paged.flush().unwrap();
            drop(paged);
            let plain = String::from_utf8(plain.0.lock().unwrap().clone()).unwrap();
            (plain, std::fs::read_to_string(&file).unwrap_or_default())
        };
        assert_eq!(write(3), ("line 0\nline 1\nline 2\n".into(), String::new()));
        let (plain, paged) = write(50_000);
        assert_eq!((plain.as_str(), paged.lines().count()), ("", 50_000));
        assert!(paged.starts_with("line 0\n") && paged.ends_with("line 49999\n"));
    }

    #[cfg(unix)]
    #[test]
    fn a_pager_that_is_left_ends_the_answer() {
        let mut paged = Paged::new("head -n 1 > /dev/null", (1, 80), Box::new(io::sink()));
        let line = format!("{}\n", "x".repeat(1000));
        let error = (0..100_000).find_map(|_| paged.write_all(line.as_bytes()).err()).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
