//! One scenario after the other until enough steps are done, or an invariant does not hold.

use std::collections::BTreeMap;
use std::time::Instant;

use super::invariants::Violation;
use super::run::{Run, run, run_traced};
use super::scenario::Scenario;
use super::shrink::shrink;
use super::{draw, quiet, twin};

/// How much of a trace is printed.
const TRACE: usize = 200;

/// What was done.
pub struct Fuzz {
    begun: Instant,
    pub steps: u64,
    scenarios: BTreeMap<&'static str, u64>,
    census: BTreeMap<String, u64>,
    seen: BTreeMap<String, u64>,
    /// What quiet plans took, in parts of what the budgets require.
    paces: Vec<f64>,
}

impl Default for Fuzz {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            steps: 0,
            scenarios: BTreeMap::new(),
            census: BTreeMap::new(),
            seen: BTreeMap::new(),
            paces: Vec::new(),
        }
    }
}

/// An invariant that does not hold, and where.
pub struct Failure {
    pub seed: u64,
    scenario: Scenario,
    pub violation: Violation,
    try_out: fn(&Scenario) -> (Run, Option<Violation>),
}

impl Fuzz {
    /// Runs scenarios from a seed on until so many steps are done in all.
    pub fn run(&mut self, steps: u64, first: u64) -> Option<Failure> {
        let mut seed = first;
        while self.steps < steps {
            let failure = match seed % 8 {
                0 => self.quiet(seed),
                1 => self.twins(seed),
                2 => self.twice(seed),
                _ => self.faulty(seed),
            };
            if failure.is_some() {
                return failure;
            }
            seed += 1;
        }
        None
    }

    fn faulty(&mut self, seed: u64) -> Option<Failure> {
        let try_out = |scenario: &Scenario| {
            let run = run(scenario);
            let violation = run.violation.clone();
            (run, violation)
        };
        self.one("with faults", seed, draw::scenario(seed), try_out)
    }

    /// The same scenario must take the same course, whatever the order in which maps are walked.
    fn twice(&mut self, seed: u64) -> Option<Failure> {
        let try_out = |scenario: &Scenario| {
            let (first, second) = (run(scenario), run(scenario));
            let differs = first.violation.is_none() && first.digest != second.digest;
            let different = differs.then(|| Violation {
                invariant: "a scenario has one course of events",
                message: format!("it took {} steps, then {}", first.steps, second.steps),
                at: second.world.now(),
                step: second.steps,
            });
            let violation = first.violation.clone().or(different);
            (first, violation)
        };
        self.one("with faults, twice", seed, draw::scenario(seed), try_out)
    }

    fn quiet(&mut self, seed: u64) -> Option<Failure> {
        let scenario = quiet::scenario(seed);
        let pace = quiet::pace(&scenario);
        if pace.least.as_secs() > 1 {
            self.paces.push(pace.took.as_secs_f64() / pace.least.as_secs_f64());
        }
        self.one("quiet", seed, scenario, |scenario| {
            let pace = quiet::pace(scenario);
            (pace.run, pace.violation)
        })
    }

    fn twins(&mut self, seed: u64) -> Option<Failure> {
        self.one("with crashes, against the same without", seed, twin::disturbed(seed), twin::compare)
    }

    fn one(
        &mut self,
        kind: &'static str,
        seed: u64,
        scenario: Scenario,
        try_out: fn(&Scenario) -> (Run, Option<Violation>),
    ) -> Option<Failure> {
        let (run, violation) = try_out(&scenario);
        self.steps += run.steps;
        *self.scenarios.entry(kind).or_default() += 1;
        for (into, from) in [(&mut self.census, run.census), (&mut self.seen, run.seen)] {
            for (what, count) in from {
                *into.entry(what).or_default() += count;
            }
        }
        violation.map(|violation| Failure { seed, scenario, violation, try_out })
    }

    /// What was done and what was seen.
    pub fn report(&mut self) {
        println!("\nfaults injected");
        print(&self.census);
        println!("\nseen");
        print(&self.seen);
        let scenarios: Vec<String> =
            self.scenarios.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        self.paces.sort_by(f64::total_cmp);
        if let (Some(median), Some(most)) = (self.paces.get(self.paces.len() / 2), self.paces.last()) {
            println!(
                "\nquiet plans took {median:.3} × what their budgets require (median), {most:.3} × at most"
            );
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        println!("\n{} steps in {seconds:.1} s; scenarios: {}", self.steps, scenarios.join(", "));
    }
}

fn print(counts: &BTreeMap<String, u64>) {
    for (what, count) in counts {
        println!("{count:>9}  {what}");
    }
}

impl Failure {
    /// The smallest scenario that fails in the same way, what happens in it, and how to see it again.
    pub fn explain(&self) -> String {
        let invariant = self.violation.invariant;
        let fails = |scenario: &Scenario| {
            (self.try_out)(scenario).1.is_some_and(|violation| violation.invariant == invariant)
        };
        let smallest = shrink(&self.scenario, fails);
        let trace = run_traced(&smallest, true).trace;
        let skip = trace.len().saturating_sub(TRACE);
        let (_, violation) = (self.try_out)(&smallest);
        let violation = violation.as_ref().unwrap_or(&self.violation);
        format!(
            "\n{}\n\n{}\n\nFAILED {violation}\nfound with {}, made smaller: {}; again: make fuzz STEPS=1 SEED={}",
            trace[skip..].join("\n"),
            smallest.describe(),
            self.scenario.size(),
            smallest.size(),
            self.seed
        )
    }
}
