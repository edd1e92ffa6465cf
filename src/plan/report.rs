//! The status that says what a plan has done and what it waits for.
//!
//! It is computed after the decision and never read back, but for what a pod waited for before: `since` stays, and
//! what was said of a node that has ended is kept.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::memory::{Record, Yielded};
use super::run::{Run, Stall};
use super::survey::{Survey, Surveyed};
use super::{Round, bounds, conditions, counters, moved, repeat, words};
use crate::api::{
    BudgetNumbers, DrainPlanStatus, NodePhase, NodeReason, NodeStatus, PlanPhase, ReturnedPod, WaitingPod,
    names,
};
use crate::cluster::Text;

/// Waiting pods listed of one node, and of one plan.
const WAITING_OF_NODE: usize = 20;
const WAITING_OF_PLAN: usize = 400;
/// The longest message of a pod or node, in bytes.
const MESSAGE: usize = 1024;

/// How much a status differs from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing to write.
    None,
    /// To be written within a second or so.
    Soon,
    /// A plan or node has changed phase: to be written at once, before anything is done.
    Now,
}

/// How much `new` differs from `old`. Budget numbers alone are not worth a write.
#[must_use]
pub fn change(old: Option<&DrainPlanStatus>, new: &DrainPlanStatus) -> Change {
    let Some(old) = old else { return Change::Now };
    let memory = |status: &DrainPlanStatus| {
        let nodes: BTreeMap<String, (NodePhase, Option<Time>, Vec<ReturnedPod>)> = status
            .nodes
            .iter()
            .filter(|node| node.phase != NodePhase::Pending)
            .map(|node| (node.name.clone(), (node.phase, node.started_at.clone(), node.returned.clone())))
            .collect();
        (
            status.phase,
            status.started_at.clone(),
            status.finished_at.clone(),
            (status.run, status.last_run.as_ref().map(|last| last.run)),
            status.idle_since.clone(),
            status.yielded.clone(),
            nodes,
        )
    };
    if memory(old) != memory(new) || moved::adds(old, new) {
        return Change::Now;
    }
    let worth = |status: &DrainPlanStatus| {
        let mut status = status.clone();
        for budget in &mut status.budgets {
            budget.numbers = BudgetNumbers::default();
            budget.reported = None;
        }
        status
    };
    if worth(old) == worth(new) { Change::None } else { Change::Soon }
}

/// The status of a plan after this decision.
pub fn status(run: &Run<'_>, round: &Round<'_>) -> DrainPlanStatus {
    let old = run.plan.status.clone().unwrap_or_default();
    let before = Before::of(&old);
    let mut room = WAITING_OF_PLAN;
    let mut nodes: Vec<NodeStatus> = Vec::new();
    for (name, record) in &run.memory.nodes {
        nodes.push(started(run, round, &before, name, record, &mut room));
    }
    for (name, (reason, message)) in run.pending.iter().filter(|(name, why)| is_listed(run, name, why.0)) {
        nodes.push(pending(run, round, &before, name, *reason, message, &mut room));
    }
    let mut status = DrainPlanStatus {
        observed_generation: run.plan.metadata.generation,
        phase: Some(phase(run)),
        started_at: run.memory.started_at.map(Time),
        run: run.numbered(),
        finished_at: run.memory.finished.filter(|_| !run.repeats()).map(|(at, _)| Time(at)),
        last_run: run.memory.last.clone(),
        preflight_at: run.memory.preflight_at.filter(|_| run.only_looks()).map(Time),
        idle_since: run.memory.idle_since.map(Time),
        yielded: run.memory.yielded.iter().map(Yielded::status).collect(),
        moved: moved::listed(&run.memory.moved),
        next_window: run.hours.next_opens().filter(|_| run.is_to_go_on()).map(Time),
        node_counts: Some(counters::nodes(run)),
        budgets: counters::budgets(run, round, &nodes),
        nodes,
        ..DrainPlanStatus::default()
    };
    let counts = status.node_counts.clone().unwrap_or_default();
    status.progress = Some(format!("{}/{}", counts.done, counts.total));
    status.blocked_on = counters::blocked_on(&status.budgets);
    bounds::keep(&mut status);
    status.pod_counts = Some(counters::pods(run, &status.nodes));
    if run.repeats() {
        status.last_run = repeat::ended(run, &status).or(status.last_run);
    }
    status.conditions = conditions::of(run, &status, &old.conditions, round.now);
    status
}

/// Pending nodes are listed when they are blocked or held, and where the plan only looks also when pods may not go.
fn is_listed(run: &Run<'_>, name: &Text, reason: NodeReason) -> bool {
    match reason {
        NodeReason::Blocked | NodeReason::ClaimedByOther => true,
        NodeReason::ControlPlaneAtRisk => run.only_looks(),
        _ => run.only_looks() && run.surveys.get(name).is_some_and(|survey| survey.held().next().is_some()),
    }
}

/// The status between two runs: what was said of the last one stays, and when the next one begins.
pub fn between_runs(run: &Run<'_>, now: Timestamp) -> DrainPlanStatus {
    let mut status = run.plan.status.clone().unwrap_or_default();
    status.observed_generation = run.plan.metadata.generation;
    status.phase = Some(phase(run));
    status.finished_at = run.memory.finished.filter(|_| !run.repeats()).map(|(at, _)| Time(at));
    status.next_window = run.hours.next_opens().filter(|_| run.repeats()).map(Time);
    status.conditions = conditions::of(run, &status, &status.conditions, now);
    status
}

/// What the report said before.
struct Before<'a> {
    nodes: HashMap<&'a str, &'a NodeStatus>,
    since: HashMap<(&'a str, &'a str, &'a str), Timestamp>,
}

impl<'a> Before<'a> {
    fn of(status: &'a DrainPlanStatus) -> Self {
        let nodes = status.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let waiting = status.nodes.iter().flat_map(|node| &node.waiting);
        let since = waiting
            .map(|pod| ((pod.namespace.as_str(), pod.pod.as_str(), pod.reason.as_str()), pod.since.0))
            .collect();
        Self { nodes, since }
    }
}

fn started(
    run: &Run<'_>,
    round: &Round<'_>,
    before: &Before<'_>,
    name: &Text,
    record: &Record,
    room: &mut usize,
) -> NodeStatus {
    let survey = run.surveys.get(name);
    let mut node = NodeStatus {
        name: name.to_string(),
        uid: record.uid.clone(),
        phase: record.phase,
        reason: record.reason.clone(),
        message: record.message.clone().map(|message| words::bounded(message, MESSAGE)),
        started_at: record.started_at.map(Time),
        deadline: deadline(run, record).map(Time),
        drained_at: record.drained_at.map(Time),
        boot_id: record.boot_id.clone(),
        kubelet_version: record.kubelet_version.clone(),
        finished_at: record.finished_at.map(Time),
        pods_left: survey.map_or(0, |survey| number(survey.pods.len())),
        pods_evicted: record.evicted,
        waiting: Vec::new(),
        more_waiting: 0,
        returned: if record.in_progress() { record.returned.clone() } else { Vec::new() },
    };
    let told_before = before.nodes.get(&**name).filter(|old| old.phase == record.phase);
    match (survey, told_before) {
        // What held a node that has ended stays as it was said when it ended.
        (_, Some(old)) if !record.in_progress() => {
            node.waiting.clone_from(&old.waiting);
            node.more_waiting = old.more_waiting;
            node.pods_left = old.pods_left;
            node.deadline.clone_from(&old.deadline);
        }
        (Some(survey), _) if record.phase != NodePhase::Skipped => {
            list_waiting(&mut node, survey, round, before, room);
        }
        _ => {}
    }
    if record.phase == NodePhase::Draining {
        let waiting = number(node.waiting.len()).saturating_add(node.more_waiting);
        let pods = survey.map_or(0, |survey| survey.pods.len());
        let left = words::left(pods, waiting, node.waiting.first());
        let told = record.message.clone().into_iter().chain([left]).chain(again(run, round, name, record));
        node.message = Some(words::bounded(told.collect::<Vec<_>>().join("; "), MESSAGE));
    }
    node
}

/// Until when it must have left its phase.
fn deadline(run: &Run<'_>, record: &Record) -> Option<Timestamp> {
    match record.phase {
        NodePhase::HandedOff => run.hand_off_deadline(record),
        _ => record.started_at?.checked_add(run.node_timeout()).ok(),
    }
}

/// Another plan has drained the node, and left it cordoned or done so since this plan was created.
fn again(run: &Run<'_>, round: &Round<'_>, name: &Text, record: &Record) -> Option<String> {
    let kept = round.cluster.node(name).and_then(|node| node.annotations.get(names::KEPT_CORDONED));
    let drained = round.drained.get(&record.uid).into_iter().flatten();
    let by_other = drained
        .filter(|drained| drained.by.uid != run.uid && Some(drained.at) >= run.created())
        .max_by_key(|drained| drained.at)
        .map(|drained| words::drained_again(&drained.by.name, Some(drained.at)));
    by_other.or_else(|| kept.map(|plan| words::drained_again(plan, None)))
}

fn pending(
    run: &Run<'_>,
    round: &Round<'_>,
    before: &Before<'_>,
    name: &Text,
    reason: NodeReason,
    message: &str,
    room: &mut usize,
) -> NodeStatus {
    let mut node = NodeStatus {
        name: name.to_string(),
        uid: round.cluster.node(name).map(|node| node.uid.to_string()).unwrap_or_default(),
        phase: NodePhase::Pending,
        reason: Some(reason.to_string()),
        message: Some(words::bounded(message.to_owned(), MESSAGE)),
        started_at: None,
        deadline: None,
        drained_at: None,
        boot_id: None,
        kubelet_version: None,
        finished_at: None,
        pods_left: 0,
        pods_evicted: 0,
        waiting: Vec::new(),
        more_waiting: 0,
        returned: Vec::new(),
    };
    if let Some(survey) = run.surveys.get(name) {
        node.pods_left = number(survey.pods.len());
        list_waiting(&mut node, survey, round, before, room);
    }
    node
}

fn list_waiting(
    node: &mut NodeStatus,
    survey: &Survey,
    round: &Round<'_>,
    before: &Before<'_>,
    room: &mut usize,
) {
    let ended = !matches!(node.phase, NodePhase::Pending | NodePhase::Draining | NodePhase::HandedOff);
    let mut waiting: Vec<WaitingPod> =
        survey.waiting().filter_map(|surveyed| waiting_pod(surveyed, round.now, before, ended)).collect();
    waiting.sort_by(|a, b| (a.since.0, &a.namespace, &a.pod).cmp(&(b.since.0, &b.namespace, &b.pod)));
    let listed = waiting.len().min(WAITING_OF_NODE).min(*room);
    node.more_waiting = number(waiting.len() - listed);
    waiting.truncate(listed);
    *room -= listed;
    node.waiting = waiting;
}

fn waiting_pod(surveyed: &Surveyed, now: Timestamp, before: &Before<'_>, ended: bool) -> Option<WaitingPod> {
    let wait = surveyed.judgement.wait.as_ref()?;
    let pod = &surveyed.pod;
    let since =
        before.since.get(&(&*pod.namespace, &*pod.name, wait.reason.as_str())).copied().unwrap_or(now);
    Some(WaitingPod {
        namespace: pod.namespace.to_string(),
        pod: pod.name.to_string(),
        budgets: wait.budgets.iter().map(ToString::to_string).collect(),
        reason: wait.reason.to_string(),
        outlook: wait.outlook,
        message: words::bounded(words::pod_message(wait, ended), MESSAGE),
        since: Time(since),
    })
}

fn phase(run: &Run<'_>) -> PlanPhase {
    match (run.memory.finished.filter(|_| !run.repeats()), &run.stalled) {
        (Some((_, phase)), _) => phase,
        (None, Some(Stall::InvalidSpec(_) | Stall::NoNodes(_) | Stall::TooManyNodes(_))) => {
            PlanPhase::Pending
        }
        _ if run.only_looks() => PlanPhase::Pending,
        _ if run.plan.spec.suspend => PlanPhase::Suspended,
        _ if run.memory.finished.is_some() => PlanPhase::Scheduled,
        _ if run.is_scheduled() => PlanPhase::Scheduled,
        _ => PlanPhase::Running,
    }
}

/// A count as the API writes it.
pub fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
