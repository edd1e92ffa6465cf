//! The status that says what a plan has done and what it waits for.
//!
//! It is computed after the decision and never read back, but for what a pod waited for before: `since` stays, and
//! what was said of a node that has ended is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::memory::Record;
use super::run::{Run, Stall};
use super::survey::{Survey, Surveyed};
use super::{Round, bounds, conditions, words};
use crate::api::{
    BudgetNumbers, BudgetStatus, DrainPlanStatus, NodeCounts, NodePhase, NodeReason, NodeStatus, PlanPhase,
    PodCounts, Reason, WaitingPod,
};
use crate::budget::Numbers;
use crate::cluster::{BudgetKey, Text};

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
        let nodes: BTreeMap<String, (NodePhase, Option<Time>)> = status
            .nodes
            .iter()
            .filter(|node| node.phase != NodePhase::Pending)
            .map(|node| (node.name.clone(), (node.phase, node.started_at.clone())))
            .collect();
        (
            status.phase,
            status.started_at.clone(),
            status.finished_at.clone(),
            status.idle_since.clone(),
            nodes,
        )
    };
    if memory(old) != memory(new) {
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
    let blocked = run.pending.iter().filter(|(_, (reason, _))| *reason == NodeReason::Blocked);
    for (name, (reason, message)) in blocked {
        nodes.push(pending(run, round, &before, name, *reason, message, &mut room));
    }
    let mut status = DrainPlanStatus {
        observed_generation: run.plan.metadata.generation,
        phase: Some(phase(run)),
        started_at: run.memory.started_at.map(Time),
        finished_at: run.memory.finished.map(|(at, _)| Time(at)),
        idle_since: run.memory.idle_since.map(Time),
        node_counts: Some(node_counts(run)),
        pod_counts: Some(pod_counts(run)),
        nodes,
        budgets: budgets(run, round),
        ..DrainPlanStatus::default()
    };
    let counts = status.node_counts.clone().unwrap_or_default();
    status.progress = Some(format!("{}/{}", counts.done, counts.total));
    status.blocked_on = blocked_on(&status.budgets);
    bounds::keep(&mut status);
    status.conditions = conditions::of(run, &status, &old.conditions, round.now);
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
        deadline: record.started_at.and_then(|at| at.checked_add(run.node_timeout()).ok()).map(Time),
        drained_at: record.drained_at.map(Time),
        finished_at: record.finished_at.map(Time),
        pods_left: survey.map_or(0, |survey| number(survey.pods.len())),
        pods_evicted: record.evicted,
        waiting: Vec::new(),
        more_waiting: 0,
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
    if record.in_progress() && node.message.is_none() {
        node.message = Some(match node.waiting.first() {
            Some(first) => format!(
                "{} left, {} cannot go now; first {}/{} ({})",
                words::count(survey.map_or(0, |survey| survey.pods.len()), "pod"),
                number(node.waiting.len()) + node.more_waiting,
                first.namespace,
                first.pod,
                first.reason
            ),
            None => format!("{} left", words::count(survey.map_or(0, |survey| survey.pods.len()), "pod")),
        });
    }
    node
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
        finished_at: None,
        pods_left: 0,
        pods_evicted: 0,
        waiting: Vec::new(),
        more_waiting: 0,
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
    let mut waiting: Vec<WaitingPod> =
        survey.waiting().filter_map(|surveyed| waiting_pod(surveyed, round.now, before)).collect();
    waiting.sort_by(|a, b| (a.since.0, &a.namespace, &a.pod).cmp(&(b.since.0, &b.namespace, &b.pod)));
    let listed = waiting.len().min(WAITING_OF_NODE).min(*room);
    node.more_waiting = number(waiting.len() - listed);
    waiting.truncate(listed);
    *room -= listed;
    node.waiting = waiting;
}

fn waiting_pod(surveyed: &Surveyed, now: Timestamp, before: &Before<'_>) -> Option<WaitingPod> {
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
        message: words::bounded(words::pod_message(&wait.message, &wait.remedy), MESSAGE),
        since: Time(since),
    })
}

fn phase(run: &Run<'_>) -> PlanPhase {
    match (run.memory.finished, &run.stalled) {
        (Some((_, phase)), _) => phase,
        (None, Some(Stall::InvalidSpec(_) | Stall::NoNodes(_) | Stall::TooManyNodes(_))) => {
            PlanPhase::Pending
        }
        _ if run.plan.spec.suspend => PlanPhase::Suspended,
        _ => PlanPhase::Running,
    }
}

fn node_counts(run: &Run<'_>) -> NodeCounts {
    let of = |phase| number(run.memory.count(phase));
    let new = run.selection.nodes.iter().filter(|node| !run.memory.nodes.contains_key(&node.name)).count();
    let blocked = run.pending.values().filter(|(reason, _)| *reason == NodeReason::Blocked).count();
    NodeCounts {
        total: number(new + run.memory.nodes.len()),
        pending: number(new),
        draining: of(NodePhase::Draining),
        handed_off: of(NodePhase::HandedOff),
        done: of(NodePhase::Done),
        failed: of(NodePhase::Failed),
        skipped: of(NodePhase::Skipped),
        blocked: number(blocked),
    }
}

/// The surveyed pods of nodes that are in progress or blocked.
fn open_surveys<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Surveyed> {
    let blocked = |name: &Text| matches!(run.pending.get(name), Some((NodeReason::Blocked, _)));
    let open =
        move |name: &Text| run.memory.nodes.get(name).map_or_else(|| blocked(name), Record::in_progress);
    run.surveys.iter().filter(move |(name, _)| open(name)).flat_map(|(_, survey)| &survey.pods)
}

fn pod_counts(run: &Run<'_>) -> PodCounts {
    let going = |surveyed: &&Surveyed| surveyed.pod.terminating();
    let open: Vec<&Surveyed> =
        open_surveys(run).filter(|surveyed| surveyed.judgement.wait.is_some()).collect();
    let evicted = run.memory.nodes.values().fold(0_i32, |sum, record| sum.saturating_add(record.evicted));
    let terminating = open.iter().filter(|surveyed| going(surveyed)).count();
    PodCounts { evicted, waiting: number(open.len() - terminating), terminating: number(terminating) }
}

fn budgets(run: &Run<'_>, round: &Round<'_>) -> Vec<BudgetStatus> {
    let mut waiting: BTreeMap<BudgetKey, i32> = BTreeMap::new();
    for surveyed in open_surveys(run).filter(|surveyed| !surveyed.pod.terminating()) {
        let Some(wait) = &surveyed.judgement.wait else { continue };
        if matches!(wait.reason, Reason::Unmanaged | Reason::LocalData) {
            continue;
        }
        let names: BTreeSet<&Text> = wait.budgets.iter().collect();
        for name in names {
            let key = BudgetKey { namespace: surveyed.pod.namespace.clone(), name: name.clone() };
            *waiting.entry(key).or_default() += 1;
        }
    }
    let mut budgets = Vec::new();
    for (key, waiting_pods) in waiting {
        let Some(budget) = round.cluster.budget(&key) else { continue };
        let standing = round.explainer.standing(budget);
        let reported = BudgetNumbers {
            expected_pods: budget.status.expected_pods,
            current_healthy: budget.status.current_healthy,
            desired_healthy: budget.status.desired_healthy,
            disruptions_allowed: budget.status.disruptions_allowed,
        };
        let numbers = numbers(&standing.computed.numbers);
        budgets.push(BudgetStatus {
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            numbers,
            reported: (reported != numbers).then_some(reported),
            waiting_pods,
        });
    }
    budgets
}

fn numbers(numbers: &Numbers) -> BudgetNumbers {
    BudgetNumbers {
        expected_pods: numbers.expected_pods,
        current_healthy: numbers.current_healthy,
        desired_healthy: numbers.desired_healthy,
        disruptions_allowed: numbers.disruptions_allowed,
    }
}

/// `shop/web +2`.
fn blocked_on(budgets: &[BudgetStatus]) -> Option<String> {
    let most = budgets
        .iter()
        .reduce(|most, budget| if budget.waiting_pods > most.waiting_pods { budget } else { most })?;
    let name = format!("{}/{}", most.namespace, most.name);
    Some(match budgets.len() - 1 {
        0 => name,
        more => format!("{name} +{more}"),
    })
}

/// A count as the API writes it.
fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
