//! Makes characters that would drive or confuse a terminal visible.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character may not reach a terminal as it is: C0, C1 and DEL controls, bidirectional
/// marks, embeddings and isolates, line and paragraph separators, tags and the byte order mark.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with such characters written as `\n`, `\t`, `\r`, `\x1b` or `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_hidden(c) && (c as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if is_hidden(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_that_moves_a_cursor_is_left() {
        assert_eq!(visible("a\x1b[2Jb\r\n\tc\x07\u{9b}31m"), "a\\x1b[2Jb\\r\\n\\tc\\x07\\x9b31m");
        assert_eq!(visible("pay \u{202e}001\u{2069}\u{feff}"), "pay \\u{202e}001\\u{2069}\\u{feff}");
        assert_eq!(visible("\x1b]52;c;cm0=\x07"), "\\x1b]52;c;cm0=\\x07");
    }

    #[test]
    fn ordinary_text_is_untouched() {
        let text = "Zo\u{eb} \u{65e5}\u{672c} \u{1f600} \\n";
        assert!(matches!(visible(text), std::borrow::Cow::Borrowed(t) if t == text));
    }
}
