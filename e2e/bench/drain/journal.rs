//! What is printed, and kept for the page of figures.

use std::path::Path;

use anyhow::{Context as _, Result};

/// The page above its figures.
const PAGE: &str = include_str!("page.md");

/// All lines so far.
#[derive(Default)]
pub struct Journal(String);

impl Journal {
    /// Prints a line.
    pub fn say(&mut self, line: &str) {
        println!("{line}");
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    /// Writes the page of figures.
    pub fn record(&self, page: &Path, command: &str) -> Result<()> {
        let text = format!("{PAGE}\n```console\n$ {command}\n{}```\n", self.0);
        std::fs::write(page, text).with_context(|| format!("cannot write {}", page.display()))
    }
}
