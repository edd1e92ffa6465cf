//! The end-to-end cases on a real control plane; `cases.md` lists them.

#![allow(clippy::indexing_slicing, reason = "what is missing fails the case, as it should")]

mod harness;
mod runner;
mod scenarios;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match runner::Choice::parse(&arguments) {
        Ok(choice) => runner::main(&choice, &scenarios::all()),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}
