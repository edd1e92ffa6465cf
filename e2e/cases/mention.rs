//! Whether something is said.

use crate::expect::Mention;

/// A number as a number of its own, `prefix-*` as the full name of one of these other pods, anything else literally.
pub fn said(text: &str, mention: &Mention, others: &[&str]) -> bool {
    match mention {
        Mention::Number(number) => has_word(text, &number.to_string()),
        Mention::Text(wanted) => match wanted.strip_suffix('*') {
            Some(prefix) => others.iter().any(|other| other.starts_with(prefix) && has_word(text, other)),
            None if wanted.chars().all(|letter| letter.is_ascii_digit()) => has_word(text, wanted),
            None => text.contains(wanted.as_str()),
        },
    }
}

/// The word stands for itself, not inside of another.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !inside(before) && !inside(after)
    })
}
