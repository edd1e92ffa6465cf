//! How answers leave the program.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use super::args::Format;
use super::visible::visible;

/// What is printed, and how it went.
pub(super) struct Outcome {
    text: String,
    blocked: bool,
}

impl Outcome {
    /// Nothing is wrong.
    pub(super) fn fine(text: String) -> Self {
        Self { text, blocked: false }
    }
    /// What is to be printed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
    /// The same, with everything printed already.
    pub(super) fn told(self) -> Self {
        Self { text: String::new(), ..self }
    }
    /// An answer in the format asked for.
    pub(super) fn of<T: Serialize>(
        format: Format,
        answer: &T,
        blocked: bool,
        table: impl FnOnce() -> String,
    ) -> anyhow::Result<Self> {
        let text = match format {
            Format::Table => visible(&table()).into_owned(),
            Format::Json => {
                serde_json::to_string_pretty(answer).context("cannot write the answer as JSON")? + "\n"
            }
            Format::Yaml => serde_saphyr::to_string(answer).context("cannot write the answer as YAML")?,
        };
        Ok(Self { text, blocked })
    }
}

/// Prints an outcome; a reader that has had enough is no failure.
pub(super) fn print(outcome: &Outcome) -> ExitCode {
    let code = ExitCode::from(if outcome.blocked { 3 } else { 0 });
    let mut out = std::io::stdout().lock();
    match out.write_all(outcome.text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => code,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => code,
        Err(error) => {
            eprintln!("error: cannot write the answer: {error}");
            ExitCode::from(1)
        }
    }
}
