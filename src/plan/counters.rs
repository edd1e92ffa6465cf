//! The numbers of a status: what is listed under the nodes, counted.

use std::collections::{BTreeMap, BTreeSet};

use super::memory::Record;
use super::report::number;
use super::run::Run;
use super::survey::Surveyed;
use super::{Round, Waits};
use crate::api::{
    BudgetNumbers, BudgetStatus, NodeCounts, NodePhase, NodeReason, NodeStatus, PodCounts, Reason,
};
use crate::budget::Numbers;
use crate::cluster::{BudgetKey, Text};

/// How many nodes are where.
pub fn nodes(run: &Run<'_>) -> NodeCounts {
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

/// The surveyed pods of nodes that are in progress, blocked or only looked at, if they wait.
fn open<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Surveyed> {
    let blocked =
        |name: &Text| run.only_looks() || matches!(run.pending.get(name), Some((NodeReason::Blocked, _)));
    let open =
        move |name: &Text| run.memory.nodes.get(name).map_or_else(|| blocked(name), Record::in_progress);
    let surveys = run.surveys.iter().filter(move |(name, _)| open(name));
    surveys.flat_map(|(_, survey)| survey.waiting())
}

/// How many pods wait for what, on nodes that something is still done about.
pub fn waits(run: &Run<'_>) -> Waits {
    let mut waits = Waits::new();
    if run.memory.finished.is_none() {
        for wait in open(run).filter_map(|surveyed| surveyed.judgement.wait.as_ref()) {
            *waits.entry((wait.reason, wait.outlook)).or_default() += 1;
        }
    }
    waits
}

/// The nodes that have ended with pods on them. Nobody looks at them any more: what they list counts.
fn ended(nodes: &[NodeStatus]) -> impl Iterator<Item = &NodeStatus> {
    nodes.iter().filter(|node| matches!(node.phase, NodePhase::Failed | NodePhase::Done | NodePhase::Skipped))
}

/// How many pods were moved, and how many of those on the listed nodes wait or go.
pub fn pods(run: &Run<'_>, nodes: &[NodeStatus]) -> PodCounts {
    let known = run.memory.nodes.values().map(|record| record.evicted);
    let known = known.chain(run.memory.yielded.iter().map(|yielded| yielded.evicted));
    let evicted = known.fold(0_i32, i32::saturating_add);
    let mut counts = PodCounts { evicted, waiting: 0, terminating: 0 };
    let mut count = |going: bool| {
        let counted = if going { &mut counts.terminating } else { &mut counts.waiting };
        *counted = counted.saturating_add(1);
    };
    for surveyed in open(run) {
        count(surveyed.pod.terminating());
    }
    for pod in ended(nodes).flat_map(|node| &node.waiting) {
        count(Reason::parse(&pod.reason).is_some_and(Reason::is_going));
    }
    let not_listed: i32 = ended(nodes).fold(0, |sum, node| sum.saturating_add(node.more_waiting));
    PodCounts { waiting: counts.waiting.saturating_add(not_listed), ..counts }
}

/// The budgets that the waiting pods are held by.
pub fn budgets(run: &Run<'_>, round: &Round<'_>, nodes: &[NodeStatus]) -> Vec<BudgetStatus> {
    let mut waiting: BTreeMap<BudgetKey, i32> = BTreeMap::new();
    let mut count = |namespace: &str, names: BTreeSet<&str>| {
        for name in names {
            let key = BudgetKey { namespace: namespace.into(), name: name.into() };
            *waiting.entry(key).or_default() += 1;
        }
    };
    for surveyed in open(run) {
        let Some(wait) = &surveyed.judgement.wait else { continue };
        if wait.reason.is_about_budgets() {
            count(&surveyed.pod.namespace, wait.budgets.iter().map(AsRef::as_ref).collect());
        }
    }
    for pod in ended(nodes).flat_map(|node| &node.waiting) {
        if Reason::parse(&pod.reason).is_some_and(Reason::is_about_budgets) {
            count(&pod.namespace, pod.budgets.iter().map(String::as_str).collect());
        }
    }
    waiting.into_iter().filter_map(|(key, pods)| of_budget(round, &key, pods)).collect()
}

fn of_budget(round: &Round<'_>, key: &BudgetKey, waiting_pods: i32) -> Option<BudgetStatus> {
    let budget = round.cluster.budget(key)?;
    let numbers = as_written(&round.explainer.standing(budget).computed.numbers);
    let reported = as_written(&Numbers::reported(budget));
    Some(BudgetStatus {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        numbers,
        reported: (reported != numbers).then_some(reported),
        waiting_pods,
    })
}

fn as_written(numbers: &Numbers) -> BudgetNumbers {
    BudgetNumbers {
        expected_pods: numbers.expected_pods,
        current_healthy: numbers.current_healthy,
        desired_healthy: numbers.desired_healthy,
        disruptions_allowed: numbers.disruptions_allowed,
    }
}

/// `shop/web +2`.
pub fn blocked_on(budgets: &[BudgetStatus]) -> Option<String> {
    let most = budgets
        .iter()
        .reduce(|most, budget| if budget.waiting_pods > most.waiting_pods { budget } else { most })?;
    let name = format!("{}/{}", most.namespace, most.name);
    Some(match budgets.len() - 1 {
        0 => name,
        more => format!("{name} +{more}"),
    })
}
