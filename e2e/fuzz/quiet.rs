//! Runs in which nothing goes wrong: a plan takes as long as the budgets require, and not longer.
//!
//! The bounds are computed from the cluster at rest, without looking at what the plan does. A *cycle* is the time from
//! an eviction until the budget has its room back and the next eviction arrives. A budget that lets k pods be away at
//! once needs ⌈pods / k⌉ waves; nodes are drained one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use drainplan::cluster::Amount;
use drainplan::simulate::{Act, After, BudgetSetup, NodeSetup, OwnerKind, Timing, WorkloadSetup, World};
use serde_json::json;

use super::chance::Chance;
use super::invariants::Violation;
use super::run::{Run, run, settled};
use super::scenario::{Scenario, plan};

const INVARIANT: &str = "a quiet run takes as long as the budgets require";
/// Changes are collected for so long before a decision.
const COALESCE: Duration = Duration::from_millis(5);
/// What a node costs besides its pods: requests one after the other (the status that starts it, the finalizer, the
/// claim, the list of its pods, the status that ends it), each with what it takes to learn of it.
const STEPS_OF_A_NODE: u32 = 6;
/// When the plan is created; by then the controller has listed everything.
const CREATED: Duration = Duration::from_millis(500);

/// A quiet scenario: what is evicted finds room on nodes that are not drained.
pub fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed ^ 0x9E37);
    let count = chance.number(1, 4);
    let nodes: Vec<NodeSetup> =
        (0..count).map(|number| NodeSetup::new(&format!("node-{number}"), "old", 60)).collect();
    let mut workloads = Vec::new();
    let mut budgets = Vec::new();
    for number in 0..chance.number(1, 5) {
        let name = format!("app-{number}");
        let mut workload = WorkloadSetup::deployment("shop", &name, chance.int(1, 10));
        workload.kind = match chance.number(0, 3) {
            0 => OwnerKind::StatefulSet { parallel: true },
            1 => OwnerKind::ReplicaSet,
            _ => OwnerKind::Deployment,
        };
        workload.template.ready = After::Some(chance.millis(100, 5_000));
        workload.template.terminates = After::Some(chance.millis(50, 3_000));
        if chance.percent(75) {
            budgets.push(BudgetSetup::max_unavailable("shop", &name, chance.int(1, 3)));
        }
        workloads.push(workload);
    }
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let spec = json!({"nodes": {"names": names}, "timeouts": {"node": "60m"}, "handOff": {"then": "Uncordon"},
        "pace": {"awaitReplacements": chance.percent(40)}});
    let away = |node: &NodeSetup| (Duration::ZERO, Act::Taint(node.name.clone(), "maintenance".to_owned()));
    Scenario {
        seed,
        timing: Timing::default(),
        processes: 1,
        most_cordoned: None,
        housed: false,
        acts: nodes.iter().map(away).collect(),
        nodes,
        spares: vec![NodeSetup::new("spare", "new", 500)],
        workloads,
        budgets,
        plans: vec![(CREATED, plan("plan", &spec))],
        actors: Vec::new(),
    }
}

/// The least and the most that something takes.
#[derive(Clone, Copy, Default)]
struct Bounds {
    least: Duration,
    most: Duration,
}

impl Bounds {
    fn times(self, count: u32) -> Self {
        Self { least: self.least * count, most: self.most * count }
    }
}

/// From an eviction until the next one of the same budget can arrive.
fn cycle(timing: &Timing, workload: &WorkloadSetup) -> Bounds {
    let fixed = |after: After| match after {
        After::Some(wait) => wait,
        After::Never => Duration::MAX,
    };
    let template = &workload.template;
    let mut pod = fixed(template.starts) + fixed(template.ready);
    if matches!(workload.kind, OwnerKind::StatefulSet { .. }) {
        // Its name is free only when the old pod is gone.
        pod += fixed(template.terminates);
    }
    // Owner, scheduler, binding; then the disruption controller, its write, our watch, look and eviction.
    let spans = [
        timing.controller,
        timing.scheduler,
        timing.scheduler,
        timing.controller,
        timing.write,
        timing.watch,
        timing.request,
        timing.request,
        timing.request,
    ];
    let sum = |of: fn(&drainplan::simulate::Span) -> Duration| spans.iter().map(of).sum::<Duration>();
    Bounds { least: pod + sum(|span| span.least), most: pod + sum(|span| span.most) + COALESCE }
}

/// How long the plan must, and may, take.
fn bounds(scenario: &Scenario, world: &World) -> Bounds {
    let timing = &scenario.timing;
    let mut together: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let awaits = scenario.plans.iter().any(|(_, plan)| plan.spec.awaits_replacements());
    let mut sum = Bounds::default();
    let overhead = (timing.request.most * 2 + timing.watch.most + COALESCE) * STEPS_OF_A_NODE;
    for node in &scenario.nodes {
        let mut slowest = Bounds::default();
        let (mut last, mut back) = (Duration::ZERO, Duration::ZERO);
        for workload in &scenario.workloads {
            let on_node =
                |pod: &&std::sync::Arc<drainplan::cluster::Pod>| pod.node.as_deref() == Some(&*node.name);
            let pods = world.pods_of(&workload.key());
            let pods = u32::try_from(pods.iter().filter(on_node).count()).unwrap_or(u32::MAX);
            if pods == 0 {
                continue;
            }
            if let After::Some(wait) = workload.template.terminates {
                last = last.max(wait);
            }
            if awaits {
                back = back.max(cycle(timing, workload).most);
            }
            let Some(away) = away(scenario, workload) else { continue };
            let total = together.entry(workload.key()).or_insert((0, away));
            total.0 += pods;
            let waves = pods.div_ceil(away);
            let cycle = cycle(timing, workload);
            slowest.least = slowest.least.max(cycle.times(waves - 1).least);
            slowest.most = slowest.most.max(cycle.times(waves).most);
        }
        sum.least += slowest.least;
        sum.most += slowest.most + last.max(back) + overhead;
    }
    for workload in &scenario.workloads {
        let Some((pods, away)) = together.get(&workload.key()) else { continue };
        sum.least = sum.least.max(cycle(timing, workload).times(pods.div_ceil(*away) - 1).least);
    }
    sum
}

/// How many pods of a workload its budget lets be away at once.
fn away(scenario: &Scenario, workload: &WorkloadSetup) -> Option<u32> {
    let budget = scenario.budgets.iter().find(|budget| budget.name == workload.name)?;
    match budget.max_unavailable {
        Some(Amount::Int(pods)) => u32::try_from(pods).ok(),
        _ => None,
    }
}

/// How long the plan has taken, in parts of what the budgets require.
pub struct Pace {
    pub run: Run,
    pub took: Duration,
    pub least: Duration,
    pub violation: Option<Violation>,
}

/// Runs a quiet scenario against its bounds.
pub fn pace(scenario: &Scenario) -> Pace {
    let Bounds { least, most } = bounds(scenario, &settled(scenario));
    let run = run(scenario);
    let ended = run.finished.values().next().copied();
    let took = ended.map_or(Duration::MAX, |at| {
        Duration::try_from(at.duration_since(run.begin)).unwrap_or_default().saturating_sub(CREATED)
    });
    let violation = run.violation.clone().or_else(|| {
        let wrong = took < least || took > most;
        wrong.then(|| Violation {
            invariant: INVARIANT,
            message: format!("it took {took:?}; the budgets require {least:?}, and {most:?} at most"),
            at: run.world.now(),
            step: run.steps,
        })
    });
    Pace { run, took, least, violation }
}
