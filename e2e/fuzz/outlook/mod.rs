//! Slow and never are never confused: what is said of a waiting pod, compared with what becomes of it.
//!
//! A random cluster, in which all sorts of things are out of order, is asked about every pod. Then everything recovers,
//! nothing that is written is changed, and time passes, with nobody evicting anything. What would never clear must be refused
//! after every single event until the end; what would clear, or may, must be free to go then; and at the end, when only
//! configuration can hold a pod, that must be what is said.

mod draw;
mod judge;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use drainplan::api::{Outlook, Reason};
use drainplan::simulate::World;
use jiff::Timestamp;

use super::run::{START, later};
pub use draw::Scenario;
use judge::{Look, Watch};

/// What is said and what comes to pass do not agree.
#[derive(Debug, Clone)]
pub struct Confused {
    /// In general.
    pub rule: &'static str,
    /// Of this pod.
    pub message: String,
}

impl fmt::Display for Confused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// How often each reason was given with each outlook.
pub type Said = BTreeMap<(Reason, Outlook), u64>;

/// What was tried.
#[derive(Default)]
pub struct Outlooks {
    clusters: u64,
    said: Said,
}

/// A cluster of which something was said that is not so.
pub struct Failure {
    pub seed: u64,
    pub scenario: Scenario,
    pub confused: Confused,
}

impl Outlooks {
    /// Tries so many clusters from that seed on.
    pub fn run(&mut self, clusters: u64, first: u64) -> Option<Failure> {
        for seed in first..first + clusters {
            let scenario = draw::scenario(seed);
            let (said, confused) = try_out(&scenario);
            self.clusters += 1;
            for (what, count) in said {
                *self.said.entry(what).or_default() += count;
            }
            if let Some(confused) = confused {
                return Some(Failure { seed, scenario, confused });
            }
        }
        None
    }

    /// How many clusters were tried.
    pub fn clusters(&self) -> u64 {
        self.clusters
    }

    /// What was said, and how often.
    pub fn report(&self) {
        println!("\nsaid of pods of {} clusters in which things were out of order", self.clusters);
        for ((reason, outlook), count) in &self.said {
            println!("{count:>9}  {reason} {outlook:?}");
        }
    }
}

/// Plays one cluster to its end.
fn try_out(scenario: &Scenario) -> (Said, Option<Confused>) {
    let mut world = scenario.world();
    let mut watch = Watch::new(scenario.policy.clone());
    let asked = later(START, scenario.asked);
    // What lasts is known from looking again and again.
    let mut at = START;
    while at < asked {
        world.run(at);
        watch.look(&world);
        at = later(at, draw::LOOKS);
    }
    world.run(asked);
    let looked = watch.look(&world);
    let said = looked.said();
    (said, follow(&mut world, &mut watch, &looked, later(asked, draw::RECOVERY)).err())
}

fn follow(world: &mut World, watch: &mut Watch, asked: &Look, end: Timestamp) -> Result<(), Confused> {
    let mut free = HashSet::new();
    while world.step(end) {
        asked.still_refused(world)?;
        free.extend(asked.free(world).cloned());
    }
    let last = watch.look(world);
    asked.came_true(world, &free)?;
    asked.has_passed(world, &last)?;
    last.is_about_configuration(world)
}

impl Failure {
    /// The smallest such cluster, and how to see it again.
    pub fn explain(&self) -> String {
        let rule = self.confused.rule;
        let confuses =
            |scenario: &Scenario| try_out(scenario).1.is_some_and(|confused| confused.rule == rule);
        let smallest = self.scenario.shrunk(confuses);
        let confused = try_out(&smallest).1.unwrap_or_else(|| self.confused.clone());
        format!("\n{smallest}\n\nFAILED {confused}\nagain: make outlooks CLUSTERS=1 SEED={}", self.seed)
    }
}
