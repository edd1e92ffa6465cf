//! Fault tests: random clusters and plans in the virtual cluster, all invariants looked at after every step.
//!
//! `make fuzz [STEPS=…] [SEED=…]`, and `make outlooks [CLUSTERS=…] [SEED=…]` for what is said of pods that wait. A step is one event delivered or one action done. A failure prints its seed and the
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
mod outlook;
mod planted;
mod quiet;
mod run;
mod scenario;
mod shrink;
mod twin;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::process::ExitCode;

use fuzz::Fuzz;
use outlook::Outlooks;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().filter(|text| !text.is_empty()).map(|text| text.parse().expect(name))
}

/// From the seed that is asked for; else from 1, and a fifth more from a random one, which is printed.
fn by_seeds<Failure>(what: &str, mut run: impl FnMut(u64, bool) -> Option<Failure>) -> Option<Failure> {
    if let Some(seed) = number("SEED") {
        return run(seed, false);
    }
    let random = random();
    println!("{what} from 1 on, then from {random} on");
    run(1, false).or_else(|| run(random, true))
}

/// Compares what is said with what comes of it; true when they agree.
fn outlooks(clusters: u64) -> bool {
    let mut outlooks = Outlooks::default();
    let failure = by_seeds("seeds of clusters", |seed, more| {
        outlooks.run(if more { clusters / 5 } else { clusters }, seed)
    });
    outlooks.report();
    if let Some(failure) = &failure {
        println!("{}", failure.explain());
    }
    failure.is_none()
}

/// Looks at all invariants for so many steps; true when they hold.
fn invariants_hold(steps: u64) -> bool {
    let mut fuzz = Fuzz::default();
    let failure =
        by_seeds("seeds", |seed, more| fuzz.run(if more { steps + steps / 5 } else { steps }, seed));
    fuzz.report();
    if let Some(failure) = &failure {
        println!("{}", failure.explain());
    }
    failure.is_none()
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
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
    // Both, unless one of them was asked for.
    let (steps, clusters) = match (number("STEPS"), number("CLUSTERS")) {
        (None, None) => (Some(50_000), Some(500)),
        asked => asked,
    };
    let holds = steps.is_none_or(invariants_hold);
    let agrees = clusters.is_none_or(outlooks);
    if holds && agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
