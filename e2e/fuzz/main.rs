//! Fault tests: random clusters and plans in the virtual cluster, all invariants looked at after every step.
//!
//! `make fuzz [STEPS=…] [SEED=…]`. A step is one event delivered or one action done. A failure prints its seed and the
//! smallest scenario that still fails; the same seed fails again.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "what must be there in a test may end it, and figures for people need not be exact"
)]

mod chance;
mod draw;
mod fuzz;
mod hand_off;
mod invariants;
mod planted;
mod quiet;
mod run;
mod scenario;
mod shrink;
mod twin;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::process::ExitCode;

use fuzz::Fuzz;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().filter(|text| !text.is_empty()).map(|text| text.parse().expect(name))
}

fn main() -> ExitCode {
    let planted = std::env::var("PLANTED").unwrap_or_default();
    if !planted.is_empty() {
        if !drainplan::cluster::planted::possible() {
            println!("no error can be planted in this build: make fuzz-planted");
            return ExitCode::FAILURE;
        }
        return if planted::are_noticed(&planted) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let steps = number("STEPS").unwrap_or(50_000);
    let mut fuzz = Fuzz::default();
    let failure = if let Some(seed) = number("SEED") {
        fuzz.run(steps, seed)
    } else {
        let random = RandomState::new().build_hasher().finish() >> 32;
        println!("seeds from 1 on, then from {random} on");
        fuzz.run(steps, 1).or_else(|| fuzz.run(steps + steps / 5, random))
    };
    fuzz.report();
    match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("{}", failure.explain());
            ExitCode::FAILURE
        }
    }
}
