//! Invariant 8: a crash between any two actions changes neither the final state nor the pods evicted.
//!
//! The same quiet scenario runs twice, once with crashes. Replacements go to nodes that are not drained, so that the
//! pods that have to move are the same whatever the course of events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use drainplan::simulate::{Act, World};

use super::chance::Chance;
use super::hand_off;
use super::invariants::Violation;
use super::quiet;
use super::run::{Run, START, later, run};
use super::scenario::{SETTLING, Scenario};

const INVARIANT: &str = "8 a crash changes neither the final state nor the pods evicted";

/// A quiet scenario with crashes between its actions.
pub fn disturbed(seed: u64) -> Scenario {
    let mut disturbed = quiet::scenario(seed);
    let mut chance = Chance::new(seed ^ 0x7717);
    if chance.percent(50)
        && let Some((_, plan)) = disturbed.plans.first_mut()
    {
        let name = plan.metadata.name.clone().unwrap_or_default();
        let actor = hand_off::that_ends_well(&mut chance, plan);
        disturbed.actors.push((name, actor));
    }
    let mut at = Duration::ZERO;
    for _ in 0..chance.number(1, 3) {
        let calls = u32::try_from(chance.number(1, 15)).unwrap_or(1);
        disturbed.acts.push((at, Act::CrashAfterCalls(calls, chance.millis(100, 3_000))));
        at += chance.millis(1_000, 20_000);
    }
    disturbed
}

/// What must be the same: how every node and plan has ended, and which pods are gone.
fn end(scenario: &Scenario, world: &World) -> BTreeMap<String, String> {
    let mut end = BTreeMap::new();
    for plan in world.store().plans() {
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        let Some(status) = &plan.status else { continue };
        end.insert(format!("plan {name}"), format!("{:?}", status.phase));
        for node in &status.nodes {
            let key = format!("node {} of {name}", node.name);
            // Not `podsEvicted`: an eviction that no status has counted yet is forgotten in a crash.
            end.insert(key, format!("{:?} {:?}", node.phase, node.reason));
        }
    }
    for node in world.store().cluster().nodes() {
        end.insert(
            format!("node {}", node.name),
            format!("cordoned {} {:?}", node.unschedulable, node.annotations),
        );
    }
    for workload in &scenario.workloads {
        let pods = world.pods_of(&workload.key());
        let left = pods.iter().filter(|pod| pod.created < Some(later(START, SETTLING)));
        let left: BTreeSet<&str> = left.map(|pod| &*pod.uid).collect();
        end.insert(format!("pods of {} that have not moved", workload.key()), format!("{left:?}"));
    }
    end
}

/// Runs a scenario without its crashes and with them; says how they differ.
pub fn compare(disturbed: &Scenario) -> (Run, Option<Violation>) {
    let mut plain = disturbed.clone();
    plain.acts.retain(|(_, act)| !matches!(act, Act::CrashAfterCalls(..)));
    let before = run(&plain);
    if let Some(violation) = before.violation.clone() {
        return (before, Some(violation));
    }
    let mut after = run(disturbed);
    after.steps += before.steps;
    if let Some(violation) = after.violation.clone() {
        return (after, Some(violation));
    }
    let (left, right) = (end(&plain, &before.world), end(&plain, &after.world));
    let differences: Vec<String> = left
        .iter()
        .filter(|(what, value)| right.get(*what) != Some(value))
        .map(|(what, value)| format!("{what}: {value}, with crashes {:?}", right.get(what)))
        .collect();
    let violation = (!differences.is_empty()).then(|| Violation {
        invariant: INVARIANT,
        message: differences.join("; "),
        at: after.world.now(),
        step: after.steps,
    });
    (after, violation)
}
