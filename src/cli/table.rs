//! Aligned columns, with sentences under the rows they belong to. Widths are those of a terminal's cells.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

use super::visible::visible_line;

/// The width sentences are wrapped to, unless `COLUMNS` says otherwise.
const WIDTH: usize = 120;
pub(super) const NARROWEST: usize = 60;
/// How many names a cell has.
const NAMES: usize = 3;

/// How wide sentences may be here; nobody reads wider ones.
pub(super) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.map_or(WIDTH, |columns: usize| columns.min(WIDTH))
}

/// `web,api,db +2`, or a dash.
pub(super) fn names(names: &[String]) -> String {
    let (shown, more) = names.split_at(names.len().min(NAMES));
    match (shown.join(","), more.len()) {
        (shown, 0) if shown.is_empty() => "-".to_owned(),
        (shown, 0) => shown,
        (shown, more) => format!("{shown} +{more}"),
    }
}

/// An instant, as kubectl writes it.
pub(super) fn instant(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Rows of cells, and sentences between them.
pub(super) struct Table {
    header: Vec<&'static str>,
    lines: Vec<Line>,
    width: usize,
}

enum Line {
    Row(Vec<String>),
    Sentence {
        mark: &'static str,
        text: String,
    },
    /// At most so many lines of it, then where all of it is.
    Shortened {
        mark: &'static str,
        text: String,
        most: usize,
        whole: String,
    },
    Blank,
}

impl Table {
    pub(super) fn new(header: &[&'static str], width: usize) -> Self {
        Self { header: header.to_vec(), lines: Vec::new(), width: width.max(NARROWEST) }
    }
    pub(super) fn row(&mut self, cells: Vec<String>) {
        let visible = |cell: String| match visible_line(&cell) {
            Cow::Borrowed(_) => cell,
            Cow::Owned(written_out) => written_out,
        };
        self.lines.push(Line::Row(cells.into_iter().map(visible).collect()));
    }
    /// A sentence about the rows above it.
    pub(super) fn sentence(&mut self, text: &str) {
        self.lines.push(Line::Sentence { mark: "  ", text: text.to_owned() });
    }
    /// What to do about them.
    pub(super) fn remedy(&mut self, text: &str) {
        self.lines.push(Line::Sentence { mark: "→ ", text: text.to_owned() });
    }
    /// A sentence of at most so many lines; `whole` says where all of it is.
    pub(super) fn shortened(&mut self, mark: &'static str, text: &str, most: usize, whole: &str) {
        self.lines.push(Line::Shortened { mark, text: text.to_owned(), most, whole: whole.to_owned() });
    }
    pub(super) fn blank(&mut self) {
        self.lines.push(Line::Blank);
    }
    /// The header is left out when there are no rows.
    pub(super) fn render(&self) -> String {
        let rows: Vec<&Vec<String>> = self
            .lines
            .iter()
            .filter_map(|line| match line {
                Line::Row(cells) => Some(cells),
                _ => None,
            })
            .collect();
        let widths: Vec<usize> = self
            .header
            .iter()
            .enumerate()
            .map(|(at, name)| {
                let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width());
                cells.chain([name.width()]).max().unwrap_or_default()
            })
            .collect();
        let mut text = String::new();
        if !rows.is_empty() {
            text += &aligned(self.header.iter().copied(), &widths);
        }
        for line in &self.lines {
            match line {
                Line::Row(cells) => text += &aligned(cells.iter().map(String::as_str), &widths),
                Line::Sentence { mark, text: sentence } => {
                    text += &marked(mark, &lines_of(sentence, self.width.saturating_sub(4)));
                }
                Line::Shortened { mark, text: sentence, most, whole } => {
                    let lines = lines_of(sentence, self.width.saturating_sub(4));
                    text += &marked(mark, &first(lines, *most, whole));
                }
                Line::Blank => text.push('\n'),
            }
        }
        text
    }
}

/// Cells three spaces apart, as kubectl writes them.
fn aligned<'c>(cells: impl Iterator<Item = &'c str>, widths: &[usize]) -> String {
    let padded: Vec<String> = cells.zip(widths).map(|(cell, width)| padded(cell, *width)).collect();
    format!("{}\n", padded.join("   ").trim_end())
}

/// The text with blanks after it up to a width.
pub(super) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Lines, indented; those after the first are indented further.
pub(super) fn marked(mark: &str, lines: &[String]) -> String {
    let marks = std::iter::once(mark).chain(std::iter::repeat("  "));
    lines.iter().zip(marks).flat_map(|(line, mark)| ["  ", mark, line, "\n"]).collect()
}

/// The first lines, and where all of them are. Half a name is no name: a line that goes on in the next is no last one.
pub(super) fn first(mut lines: Vec<String>, most: usize, whole: &str) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most.saturating_sub(1));
        let ended = lines.iter().rposition(|line| !line.ends_with('\\'));
        lines.truncate(ended.map_or(lines.len(), |at| at + 1));
        lines.push(format!("… ({whole})"));
    }
    lines
}

/// Lines of at most that width, ended at words. A word that is longer goes on in the next line, and a backslash says so.
pub(super) fn lines_of(text: &str, width: usize) -> Vec<String> {
    let width = width.max(3);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = visible_line(word);
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.extend(broken(&word, width)),
        }
    }
    lines
}

fn broken(word: &str, width: usize) -> Vec<String> {
    let mut left = word;
    let mut lines = Vec::new();
    while left.width() > width {
        let ends = left.char_indices().map(|(at, _)| at).chain([left.len()]).skip(1);
        // A character is at most two cells wide, and a line has room for two: something always fits.
        let fits = |end: &usize| left.get(..*end).is_some_and(|part| part.width() < width);
        let first = left.chars().next().map_or(left.len(), char::len_utf8);
        let (line, rest) = left.split_at(ends.take_while(fits).last().unwrap_or(first));
        lines.push(format!("{line}\\"));
        left = rest;
    }
    lines.push(left.to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_sentences_wrapped() {
        let mut table = Table::new(&["NAMESPACE", "POD"], 60);
        table.row(vec!["shop".into(), "wéb-0".into()]);
        table.row(vec!["a-longer-namespace".into(), "x".into()]);
        table.sentence("Budget shop/web allows 0 evictions now: expected 3, healthy 2, desired 2.");
        table.remedy("repair web-2");
        table.blank();
        table.sentence("Done.");
        let expected = "\
NAMESPACE            POD
shop                 wéb-0
a-longer-namespace   x
    Budget shop/web allows 0 evictions now: expected 3,
    healthy 2, desired 2.
  → repair web-2

    Done.
";
        assert_eq!(table.render(), expected);
        assert_eq!(Table::new(&["A"], 60).render(), "");
    }

    #[test]
    fn a_word_longer_than_the_line_goes_on_in_the_next_and_says_so() {
        let long = "x".repeat(80);
        let (first, second) = ("x".repeat(55), "x".repeat(25));
        let lines = lines_of(&format!("a {long} b"), 56);
        assert_eq!(marked("→ ", &lines), format!("  → a\n    {first}\\\n    {second} b\n"));
        let name = "worker-0.example.com";
        let lines = lines_of(name, 9);
        assert_eq!(lines, ["worker-0\\", ".example\\", ".com"]);
        assert_eq!(lines.concat().replace('\\', ""), name, "nothing is lost");
    }

    #[test]
    fn a_wide_character_takes_two_cells() {
        let mut table = Table::new(&["POD", "NODE"], 60);
        table.row(vec!["名前".into(), "a".into()]);
        table.row(vec!["web".into(), "b".into()]);
        assert_eq!(table.render(), "POD    NODE\n名前   a\nweb    b\n");
        let message = "名前空間は凍結されています。".repeat(40);
        let lines = lines_of(&format!("denied: {message} ok"), 56);
        assert!(lines.len() > 15 && lines.iter().all(|line| line.width() <= 56), "{lines:?}");
        assert_eq!(lines.concat().replace(['\\', ' '], ""), format!("denied:{message}ok"), "nothing is lost");
        assert_eq!(lines_of("名前", 3), ["名\\", "前"]);
    }

    #[test]
    fn foreign_characters_that_move_a_terminal_are_written_out() {
        let mut table = Table::new(&["POD"], 60);
        table.row(vec!["web\u{1b}[2J\n".into()]);
        table.sentence("denied: \u{202e}evil\r\nnew\u{8}\u{0}nul");
        let expected = "POD\nweb<U+001B>[2J<U+000A>\n    denied: <U+202E>evil new<U+0008><U+0000>nul\n";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn what_is_too_long_ends_at_a_word_and_says_where_all_of_it_is() {
        let lines = |text: &str| first(lines_of(text, 9), 3, "look there");
        assert_eq!(lines("one two three four five"), ["one two", "three", "four five"]);
        assert_eq!(lines("one two three four five six"), ["one two", "three", "… (look there)"]);
        assert_eq!(lines("one worker-0.example.com six"), ["one", "… (look there)"]);
    }

    #[test]
    fn cells_have_three_names() {
        let names = |count: usize| super::names(&(0..count).map(|n| format!("b{n}")).collect::<Vec<_>>());
        assert_eq!([names(0), names(1), names(3), names(5)], ["-", "b0", "b0,b1,b2", "b0,b1,b2 +2"]);
    }
}
