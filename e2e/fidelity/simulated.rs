//! A drain on a virtual cluster and clock.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{DrainPlan, DrainPlanStatus};
use drainplan::plan::Settings;
use drainplan::simulate::{Act, Fact, NodeSetup, Timing, World};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::course::Course;
use super::drains::{Drain, ROOMY};

/// When the virtual clock begins.
const START: Timestamp = Timestamp::constant(1_800_000_000, 0);
/// How long the cluster comes to rest, and when the plan is created; a status keeps whole seconds, so half a second
/// after one of them on either side.
const SETTLED: SignedDuration = SignedDuration::from_secs(20);
const CREATED: SignedDuration = SignedDuration::from_millis(20_500);
/// Long enough for every drain.
const LIMIT: SignedDuration = SignedDuration::from_mins(10);

/// Plays it with the first pods of each workload on these nodes.
pub fn play(drain: &Drain, placed: &BTreeMap<String, Vec<String>>) -> Result<Course> {
    let mut world = World::new(START, Timing::default(), Settings::default(), 1);
    for group in &drain.groups {
        for node in &group.nodes {
            let room = if drain.roomy { ROOMY } else { group.room };
            world.add_node(&NodeSetup::new(node, "old", room));
        }
    }
    for workload in drain.workloads() {
        let placed = placed.get(&workload.name).cloned().unwrap_or_default();
        let mut workload = workload.clone();
        workload.placed = placed;
        world.add_workload(workload);
    }
    for budget in &drain.budgets {
        world.add_budget(budget);
    }
    world.run(START + SETTLED);
    if drain.spare {
        world.add_node(&NodeSetup::new("spare", "new", ROOMY));
    }
    world.add_process();
    let plan = json!({"apiVersion": "drainplan.dev/v1alpha1", "kind": "DrainPlan",
        "metadata": {"name": "plan"}, "spec": drain.spec("")});
    let plan: DrainPlan = serde_json::from_value(plan)?;
    world.plan_act(START + CREATED, Act::CreatePlan(Box::new(plan)));

    let mut statuses: Vec<DrainPlanStatus> = Vec::new();
    let mut evicted = Vec::new();
    let mut ended = None;
    while ended.is_none() && world.step(START + LIMIT) {
        for fact in world.take_facts() {
            match fact {
                Fact::StatusWritten { plan, .. } => {
                    let status = plan.status.clone().context("a status that was written is not there")?;
                    ended = status.finished_at.as_ref().map(|_| world.now());
                    statuses.push(status);
                }
                Fact::Evicted { eviction, code: 201, .. } => evicted.push(eviction),
                _ => {}
            }
        }
    }
    let ended = ended.context("the plan does not end")?;
    let took = Duration::try_from(ended.duration_since(START + CREATED))?;
    let mut course = Course::of(drain, &statuses, "", took)?;
    for eviction in evicted {
        course.moved(drain.workload_of(&eviction.pod.name), &eviction.node);
    }
    ensure!(course.ended != "None", "the plan ended without a phase");
    Ok(course)
}
