//! Short lines and a little colour.

use std::io::{IsTerminal as _, Write as _};

/// A colour of the terminal.
#[derive(Clone, Copy)]
pub enum Colour {
    Green,
    Yellow,
    Red,
    Faint,
    Bold,
}

/// The text in a colour, where a terminal shows it.
pub fn paint(colour: Colour, text: &str) -> String {
    if !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some() {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Green => "32",
        Colour::Yellow => "33",
        Colour::Red => "31",
        Colour::Faint => "2",
        Colour::Bold => "1",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Prints a line.
pub fn print_line(line: &str) {
    // Whoever reads may be gone; that is no reason to leave a cluster behind.
    let _ = writeln!(std::io::stdout(), "{line}");
}

macro_rules! say {
    ($($argument:tt)*) => { crate::screen::print_line(&format!($($argument)*)) };
}
pub(crate) use say;

/// The text, cut to a width.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let cut: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// The text in lines of a width.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
