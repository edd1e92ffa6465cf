//! The commands of `kubectl drainplan`.

mod args;
mod budgets;
mod explain;
mod explained;
mod failure;
mod live;
mod output;
mod source;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod verify;
mod visible;
mod windows;

use std::process::ExitCode;

use args::{Cli, Command};
use output::Outcome;

/// Runs the command line and says how it went: 0 fine, 1 failed, 2 wrong usage, 3 blocked.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing better can be done about a closed output than to say nothing.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(&cli) {
        Ok(outcome) => output::print(&outcome),
        Err(error) => {
            eprintln!("error: {}", visible::visible_line(&failure::sentence(&error)));
            ExitCode::from(1)
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<Outcome> {
    if matches!(cli.command, Command::Crd) {
        return Ok(Outcome::fine(serde_saphyr::to_string(&crate::api::crd())?));
    }
    if let Command::Windows(windows) = &cli.command {
        return windows::run(&cli.global, windows);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match &cli.command {
            Command::Crd | Command::Windows(_) => Ok(Outcome::fine(String::new())),
            Command::Budgets => budgets::run(&cli.global).await,
            Command::Explain(what) => explain::run(&cli.global, what).await,
            Command::Status(status) => status::run(&cli.global, status).await,
        }
    })
}
