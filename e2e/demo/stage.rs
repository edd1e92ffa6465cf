//! The stages, and how long they took.

use std::time::{Duration, Instant};

use super::screen::{Colour, paint, say};

/// Stages, one after the other.
#[derive(Default)]
pub struct Stages {
    done: Vec<(&'static str, Duration)>,
    current: Option<(&'static str, Instant)>,
}

impl Stages {
    /// Ends the stage before and begins another.
    pub fn begin(&mut self, name: &'static str, what: &str) {
        self.end();
        let title = format!("{:<9}", format!("{name}:"));
        say!("\n{}{}", paint(Colour::Bold, &title), paint(Colour::Faint, what));
        self.current = Some((name, Instant::now()));
    }

    fn end(&mut self) {
        if let Some((name, began)) = self.current.take() {
            self.done.push((name, began.elapsed()));
        }
    }

    /// Ends the last stage; one line with all of them.
    pub fn print(&mut self) {
        self.end();
        let seconds = |took: &Duration| format!("{:.1} s", took.as_secs_f64());
        let all: Vec<String> =
            self.done.iter().map(|(name, took)| format!("{name} {}", seconds(took))).collect();
        let total: Duration = self.done.iter().map(|(_, took)| *took).sum();
        say!("\n{}", paint(Colour::Faint, &format!("{}; together {}", all.join(", "), seconds(&total))));
    }
}
