//! What the terminal is.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether stdout is one.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether stderr is one.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether stdin is one.
pub fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Columns of the terminal that answers go to; `None` where they go elsewhere.
pub fn width() -> Option<usize> {
    if !stdout_is_terminal() {
        return None;
    }
    let (_, columns) = console_size();
    Some(columns.max(20))
}

fn console_size() -> (usize, usize) {
    let (rows, columns) = console::Term::stdout().size();
    (rows as usize, columns as usize)
}

/// Lines of the terminal that answers go to; `None` where they go elsewhere.
pub fn lines() -> Option<usize> {
    stdout_is_terminal().then(|| console_size().0.max(5))
}

/// Whether a pager has the terminal.
static LENT: AtomicBool = AtomicBool::new(false);

/// Gives the terminal to a pager, or takes it back.
pub fn lend(to_pager: bool) {
    LENT.store(to_pager, Ordering::SeqCst);
}

/// Whether a pager has the terminal: then nobody else writes to it.
pub fn is_lent() -> bool {
    LENT.load(Ordering::SeqCst)
}

/// Writes to stderr; a closed one is no reason to fail.
pub fn err(text: &str) {
    use std::io::Write;
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
