//! Foreign text on a terminal: messages of webhooks and names in files may hold what moves the cursor, colours, or turns
//! the direction of writing.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every such character written out, as `<U+001B>`. Lines stay lines.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, |found| found == '\n')
}

/// The same of what is one line, or a part of one.
pub(super) fn visible_line(text: &str) -> Cow<'_, str> {
    written_out(text, |_| false)
}

fn written_out(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let deceives = |found: char| deceives(found) && !kept(found);
    if !text.contains(deceives) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    for found in text.chars() {
        if deceives(found) {
            // Writing to a string never fails.
            let _ = write!(written, "<U+{:04X}>", u32::from(found));
        } else {
            written.push(found);
        }
    }
    Cow::Owned(written)
}

/// Controls, marks of direction, and what is not seen. Joiners belong to scripts and stay.
fn deceives(found: char) -> bool {
    found.is_control()
        || matches!(found,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Tells of something that the answer does without.
pub(super) fn warn(warning: &str) {
    eprintln!("warning: {}", visible_line(warning));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_a_terminal_is_written_out() {
        assert_eq!(visible("a\u{1b}[31mred\u{7}\nb\r\0"), "a<U+001B>[31mred<U+0007>\nb<U+000D><U+0000>");
        assert_eq!(visible_line("a\nb\tc"), "a<U+000A>b<U+0009>c");
        assert_eq!(
            visible("\u{9b}2J \u{7f} \u{202e}live \u{2066}"),
            "<U+009B>2J <U+007F> <U+202E>live <U+2066>"
        );
        let harmless = "名前空間 wéb → “x” … ████ נמל 👩\u{200d}🚀\n";
        assert!(matches!(visible(harmless), Cow::Borrowed(same) if same == harmless));
        for code in (0..0x20).chain(0x7f..0xa0).chain(0x202a..=0x202e).chain(0x2066..=0x2069) {
            let found = char::from_u32(code).unwrap();
            assert!(!visible_line(&format!("a{found}b")).contains(found), "{code:x}");
        }
    }
}
