//! Fault tests: random clusters and plans in the virtual cluster, all invariants looked at after every step.
//!
//! `make fuzz [STEPS=…] [SEED=…]`. A step is one event delivered or one action done. A failure prints its seed and the
//! smallest scenario that still fails; the same seed fails again.

#![allow(clippy::expect_used, reason = "what must be there in a test may end it")]

mod chance;
mod draw;
mod invariants;
mod run;
mod scenario;
mod shrink;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().filter(|text| !text.is_empty()).map_or(default, |text| text.parse().expect(name))
}

fn main() -> ExitCode {
    let steps = number("STEPS", 50_000);
    let first = number("SEED", 1);
    let begun = Instant::now();
    let mut done = 0;
    let mut seed = first;
    let mut census: BTreeMap<String, u64> = BTreeMap::new();
    while done < steps {
        let scenario = draw::scenario(seed);
        let run = run::run(&scenario);
        done += run.steps;
        for (fault, count) in run.census {
            *census.entry(fault).or_default() += count;
        }
        if let Some(violation) = run.violation {
            println!("seed {seed} fails: {violation}\n({}; made smaller …)", scenario.size());
            let same = |scenario: &scenario::Scenario| {
                run::run(scenario).violation.is_some_and(|other| other.invariant == violation.invariant)
            };
            let smallest = shrink::shrink(&scenario, same);
            let run = run::run_traced(&smallest, true);
            for line in run.trace {
                println!("{line}");
            }
            println!("{}", smallest.describe());
            if let Some(violation) = run.violation {
                println!("{violation}");
            }
            return ExitCode::FAILURE;
        }
        seed += 1;
    }
    println!("{done} steps in {} scenarios, {:.1} s", seed - first, begun.elapsed().as_secs_f64());
    for (fault, count) in census {
        println!("{count:>8}  {fault}");
    }
    ExitCode::SUCCESS
}
