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

/// Compares what is said with what comes of it; true when they agree.
fn outlooks(clusters: u64) -> bool {
    let mut outlooks = Outlooks::default();
    let failure = if let Some(seed) = number("SEED") {
        outlooks.run(clusters, seed)
    } else {
        let random = random();
        println!("seeds of clusters from 1 on, then from {random} on");
        outlooks.run(clusters, 1).or_else(|| outlooks.run(clusters / 5, random))
    };
    outlooks.report();
    if let Some(failure) = &failure {
        println!("{}", failure.explain());
    }
    failure.is_none()
}

/// Looks at all invariants for so many steps; true when they hold.
fn invariants_hold(steps: u64) -> bool {
    let mut fuzz = Fuzz::default();
    let failure = if let Some(seed) = number("SEED") {
        fuzz.run(steps, seed)
    } else {
        let random = random();
        println!("seeds from 1 on, then from {random} on");
        fuzz.run(steps, 1).or_else(|| fuzz.run(steps + steps / 5, random))
    };
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
