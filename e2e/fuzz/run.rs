//! Runs a scenario with all invariants looked at after every step.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use drainplan::api::{DrainPlan, DrainPlanStatus, IntOrPercent, PlanDuration, PlanPhase, Until, condition};
use drainplan::plan::Settings;
use drainplan::simulate::{Act, After, BudgetSetup, NodeSetup, WorkloadSetup, World};
use jiff::{SignedDuration, Timestamp};

use super::invariants::{Checker, Violation};
use super::scenario::{FAULTY, SETTLING, Scenario};

/// When the virtual clocks begin.
pub const START: Timestamp = Timestamp::constant(1_800_000_000, 0);
/// What the end of a plan may take beyond all its timeouts.
const SLACK: Duration = Duration::from_secs(90);
/// How long after the last plan has ended everything must be given back.
const REST: Duration = Duration::from_secs(40);

/// How a run went.
pub struct Run {
    pub steps: u64,
    pub census: BTreeMap<String, u64>,
    /// What has come to pass, so that one sees what was tried.
    pub seen: BTreeMap<String, u64>,
    pub violation: Option<Violation>,
    /// When the controller was started, and when each plan has ended.
    pub begin: Timestamp,
    pub finished: BTreeMap<String, Timestamp>,
    /// What the world looked like at the end.
    pub digest: u64,
    pub trace: Vec<String>,
    pub world: World,
}

/// An instant, a while later.
pub fn later(at: Timestamp, wait: Duration) -> Timestamp {
    at + SignedDuration::try_from(wait).expect("a short time")
}

/// The cluster of a scenario at rest, the controller about to start.
pub fn settled(scenario: &Scenario) -> World {
    let usual = Settings::default();
    let most = scenario.most_cordoned.and_then(|most| i32::try_from(most).ok());
    let max_cordoned_nodes = most.map_or(usual.max_cordoned_nodes, IntOrPercent::Int);
    let settings = Settings { max_cordoned_nodes, ..usual };
    let mut world = World::new(START, scenario.timing.clone(), settings, scenario.seed);
    for node in &scenario.nodes {
        world.add_node(node);
    }
    for workload in &scenario.workloads {
        world.add_workload(workload.clone());
    }
    for budget in &scenario.budgets {
        world.add_budget(budget);
    }
    for (plan, actor) in &scenario.actors {
        world.set_actor(plan, actor.clone());
    }
    if scenario.housed {
        house(&mut world, scenario.processes);
    }
    world.run(later(START, SETTLING));
    for node in &scenario.spares {
        world.add_node(node);
    }
    world
}

/// The controller runs in pods that find room on every node, no two on one.
fn house(world: &mut World, processes: usize) {
    let replicas = i32::try_from(processes).unwrap_or(1);
    let mut home = WorkloadSetup::deployment("drainplan-system", "controller", replicas);
    home.template.requests = 0;
    home.template.spread = true;
    home.template.terminates = After::millis(2000);
    world.house_processes(&home.key());
    world.add_workload(home);
    world.add_budget(&BudgetSetup::max_unavailable("drainplan-system", "controller", 1));
}

/// Runs a scenario to its end, or to the first violation.
pub fn run(scenario: &Scenario) -> Run {
    run_traced(scenario, false)
}

/// The same, and takes down what happens.
pub fn run_traced(scenario: &Scenario, tracing: bool) -> Run {
    let mut world = settled(scenario);
    let begin = world.now();
    let rested = world.steps();
    world.take_facts();
    let mut checker = Checker::new(&world, scenario.most_cordoned);
    checker.tracing = tracing;
    for _ in 0..scenario.processes {
        world.add_process();
    }
    for (at, plan) in &scenario.plans {
        world.plan_act(later(begin, *at), Act::CreatePlan(Box::new(plan.clone())));
    }
    for (at, act) in &scenario.acts {
        world.plan_act(later(begin, *at), act.clone());
    }
    let faulty = if scenario.acts.is_empty() { Duration::ZERO } else { FAULTY };
    let calm = later(begin, faulty);
    world.plan_act(calm, Act::FaultsStop);
    if scenario.housed {
        // People's cordons stay, and the controller needs a place.
        world.plan_act(calm, Act::AddNode(NodeSetup::new("refuge", "new", 30)));
    }
    let violation = play(&mut world, &mut checker, calm).err();
    let digest = digest(&world);
    Run {
        steps: world.steps() - rested,
        census: world.census().clone(),
        seen: checker.seen.counts,
        violation,
        begin,
        finished: checker.seen.finished,
        digest,
        trace: checker.trace,
        world,
    }
}

fn play(world: &mut World, checker: &mut Checker, calm: Timestamp) -> Result<(), Violation> {
    // The plans of the scenario exist by then at the latest.
    let all_there = later(calm, Duration::from_secs(31));
    while world.step(all_there) {
        checker.look(world)?;
    }
    let until = later(all_there, longest(world) + SLACK);
    while !at_rest(world) {
        if !world.step(until) {
            return Err(Checker::violation(world, "7 every plan ends once faults stop", waiting(world)));
        }
        checker.look(world)?;
    }
    let rest = later(world.now(), REST);
    while world.step(rest) {
        checker.look(world)?;
    }
    checker.look_at_the_end(world)
}

/// Plans that share nodes wait for each other, so their times add up.
fn longest(world: &World) -> Duration {
    let nodes = u32::try_from(world.store().cluster().nodes().count() + 2).unwrap_or(u32::MAX);
    let of = |timeout: PlanDuration| Duration::try_from(timeout.value()).unwrap_or_default();
    let handed_off = |plan: &DrainPlan| match plan.spec.until() {
        Until::Drained => Duration::ZERO,
        _ => of(plan.spec.hand_off_timeout()),
    };
    let timeout = |plan: &DrainPlan| of(plan.spec.node_timeout()) + handed_off(plan);
    // Between two windows of a minute's schedule lies less than a minute.
    let waits = |plan: &DrainPlan| Duration::from_mins(u64::from(!plan.spec.windows.is_empty()));
    world.store().plans().map(|plan| (timeout(plan) + waits(plan)) * nodes).sum()
}

/// Nothing happens any more that a plan is responsible for.
fn at_rest(world: &World) -> bool {
    world.store().plans().all(|plan| {
        if plan.metadata.deletion_timestamp.is_some() {
            return false;
        }
        let Some(status) = &plan.status else { return false };
        let progress =
            status.node_counts.as_ref().is_some_and(|counts| counts.draining + counts.handed_off > 0);
        match status.phase {
            Some(PlanPhase::Completed | PlanPhase::Failed) => true,
            Some(PlanPhase::Suspended) => !progress && plan.spec.suspend,
            // It can do nothing at all, and says what only a person can change.
            Some(PlanPhase::Pending) => !progress && is_stalled(status),
            // A window comes within a minute.
            Some(PlanPhase::Running | PlanPhase::Scheduled) | None => false,
        }
    })
}

fn is_stalled(status: &DrainPlanStatus) -> bool {
    status.conditions.iter().any(|found| found.type_ == condition::STALLED && found.status == "True")
}

fn waiting(world: &World) -> String {
    let mut waiting = Vec::new();
    for plan in world.store().plans() {
        let status = plan.status.as_ref();
        waiting.push(format!(
            "plan {} {:?}, deleted {:?}, finalizers {:?}, started {:?}, idle {:?}, {:?}",
            plan.metadata.name.as_deref().unwrap_or_default(),
            status.and_then(|status| status.phase),
            plan.metadata.deletion_timestamp.as_ref().map(|time| time.0),
            plan.metadata.finalizers,
            status.and_then(|status| status.started_at.as_ref()).map(|time| time.0),
            status.and_then(|status| status.idle_since.as_ref()).map(|time| time.0),
            status.and_then(|status| status.node_counts.clone()),
        ));
    }
    format!("still not at rest: {}", waiting.join("; "))
}

/// What can be told of a world from outside; runs of one scenario must agree in it.
fn digest(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.steps().hash(&mut hasher);
    world.now().hash(&mut hasher);
    for plan in world.store().plans() {
        serde_json::to_string(&**plan).unwrap_or_default().hash(&mut hasher);
    }
    for node in world.store().cluster().nodes() {
        format!("{node:?}").hash(&mut hasher);
    }
    for pod in world.store().pods() {
        format!("{pod:?}").hash(&mut hasher);
    }
    hasher.finish()
}
