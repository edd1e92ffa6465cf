//! What statuses say: invariant 1, that nothing that has ended goes on, and that a node called Done was empty.

use std::collections::BTreeMap;

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, PlanPhase, PodAction, PodRule};
use drainplan::cluster::{Pod, Text};
use drainplan::simulate::{Fact, World};
use jiff::Timestamp;

use super::windows::opened;
use super::{Verdict, hold};

const PACE: &str = "1 no more nodes in progress than maxConcurrentNodes";
const FINAL: &str = "what has ended stays ended";
const EMPTY: &str = "a node is Done, or handed off, when it is empty";
const NEXT: &str = "a run begins when a window opens and the one before has ended";
const LOOKS: &str = "2 a plan that only looks starts nothing";
const COMPLETED: &str = "a plan is Completed when none of its nodes is left or has failed";

#[derive(Default)]
pub struct Statuses {
    /// When a list has shown the node, by name, without a pod that must leave. The node itself may be gone by then.
    empty: BTreeMap<Text, Timestamp>,
    /// When each node of each plan was started, by their uids.
    started: BTreeMap<(String, String), Timestamp>,
}

impl Statuses {
    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::Listed { node } => {
                if must_leave(world, node).is_empty() {
                    self.empty.insert(node.clone(), world.now());
                }
                Ok(())
            }
            Fact::StatusWritten { before, plan, .. } => self.written(before.as_deref(), plan),
            _ => Ok(()),
        }
    }

    fn written(&mut self, before: Option<&DrainPlanStatus>, plan: &DrainPlan) -> Verdict {
        let Some(status) = &plan.status else { return Ok(()) };
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        let (now, limit) = (in_progress_of(status), max_concurrent(plan, status));
        // A limit may fall below what is in progress already.
        let most = limit.max(before.map_or(0, in_progress_of));
        hold(PACE, now <= most, || {
            format!("{name} has {now} nodes in progress, and {limit} may be: {:?}", status.nodes)
        })?;
        self.starts(plan, status, name)?;
        let looks = plan.spec.preflight_only && before.is_none_or(|before| before.started_at.is_none());
        hold(LOOKS, !looks || status.started_at.is_none(), || format!("{name} was started"))?;
        hold(COMPLETED, !completes(before, status) || all_well(status), || {
            format!("{name} is Completed, and its nodes are {:?}", phases(status))
        })?;
        if let Some(before) = before {
            if before.run.unwrap_or(1) == status.run.unwrap_or(1) {
                still_ended(before, status, name)?;
            } else {
                hold(NEXT, begins_anew(plan, before, status), || {
                    format!(
                        "{name}: run {:?} began at {:?}, after {:?}",
                        status.run, status.started_at, before.last_run
                    )
                })?;
            }
            for node in newly_empty(before, status) {
                let started = node.1;
                let empty = self.empty.get(&Text::from(node.0)).copied();
                hold(
                    EMPTY,
                    empty.is_some_and(|empty| started.is_none_or(|started| empty >= started)),
                    || format!("{name} calls {} empty, started {started:?}, shown empty {empty:?}", node.0),
                )?;
            }
        }
        Ok(())
    }

    /// A deadline counts from the start that was written first.
    fn starts(&mut self, plan: &DrainPlan, status: &DrainPlanStatus, name: &str) -> Verdict {
        let uid = plan.metadata.uid.clone().unwrap_or_default();
        // One that another plan was faster to claim is pending again, and its time begins anew.
        let drains = |uid: &str| status.nodes.iter().any(|node| node.uid == uid && in_progress(node.phase));
        self.started.retain(|(of, node), _| *of != uid || drains(node));
        for node in status.nodes.iter().filter(|node| in_progress(node.phase)) {
            let Some(started) = node.started_at.as_ref().map(|time| time.0) else { continue };
            let first = *self.started.entry((uid.clone(), node.uid.clone())).or_insert(started);
            hold("deadlines count from status", first == started, || {
                format!("{name}: {} was started at {first}, now {started} is said", node.name)
            })?;
        }
        Ok(())
    }
}

/// Whether a plan, or one of its runs, ends well with this status.
fn completes(before: Option<&DrainPlanStatus>, status: &DrainPlanStatus) -> bool {
    let last = status.last_run.as_ref().filter(|last| {
        last.phase == PlanPhase::Completed && before.and_then(|before| before.last_run.as_ref()) != Some(last)
    });
    status.phase == Some(PlanPhase::Completed) || last.is_some()
}

/// Whether the next run may begin: the one before has ended, and a window has opened since.
fn begins_anew(plan: &DrainPlan, before: &DrainPlanStatus, status: &DrainPlanStatus) -> bool {
    let Some(last) = &before.last_run else { return false };
    // Without a node to take it has not started yet.
    let opened = |at: Timestamp| opened(plan, at).is_some_and(|opened| opened > last.finished_at.0);
    let run = before.run.unwrap_or(1);
    last.run == run
        && status.run == Some(run + 1)
        && before.last_run == status.last_run
        && !before.nodes.iter().any(|node| in_progress(node.phase))
        && status.started_at.as_ref().is_none_or(|at| opened(at.0))
}

/// How many nodes a plan may have in progress.
fn max_concurrent(plan: &DrainPlan, status: &DrainPlanStatus) -> usize {
    let total = status.node_counts.as_ref().map_or(0, |counts| counts.total);
    plan.spec.concurrent_nodes(usize::try_from(total).unwrap_or(0))
}

fn in_progress_of(status: &DrainPlanStatus) -> usize {
    status.nodes.iter().filter(|node| in_progress(node.phase)).count()
}

fn in_progress(phase: NodePhase) -> bool {
    matches!(phase, NodePhase::Draining | NodePhase::HandedOff)
}

fn all_well(status: &DrainPlanStatus) -> bool {
    phases(status).values().all(|phase| matches!(phase, NodePhase::Done | NodePhase::Skipped))
}

/// Nodes by name and phase, also those that are only named.
fn phases(status: &DrainPlanStatus) -> BTreeMap<&str, NodePhase> {
    let more = [
        (&status.more_done, NodePhase::Done),
        (&status.more_failed, NodePhase::Failed),
        (&status.more_skipped, NodePhase::Skipped),
    ];
    let named =
        more.into_iter().flat_map(|(names, phase)| names.iter().map(move |name| (name.as_str(), phase)));
    named.chain(status.nodes.iter().map(|node| (node.name.as_str(), node.phase))).collect()
}

fn still_ended(before: &DrainPlanStatus, after: &DrainPlanStatus, name: &str) -> Verdict {
    hold(FINAL, before.finished_at.is_none() || before == after, || {
        format!("{name} was finished and is written again")
    })?;
    hold(FINAL, before.started_at.is_none() || before.started_at == after.started_at, || {
        format!("{name} was started at {:?}, now {:?}", before.started_at, after.started_at)
    })?;
    let now = phases(after);
    for (node, phase) in phases(before) {
        let ended = matches!(phase, NodePhase::Done | NodePhase::Failed | NodePhase::Skipped);
        hold(FINAL, !ended || now.get(node) == Some(&phase), || {
            format!("{name}: {node} was {phase:?} and is {:?}", now.get(node))
        })?;
    }
    Ok(())
}

/// Name and start of the nodes that have become Done, or were handed off.
fn newly_empty<'s>(
    before: &DrainPlanStatus,
    after: &'s DrainPlanStatus,
) -> Vec<(&'s str, Option<Timestamp>)> {
    let empty = |phase: Option<&NodePhase>| matches!(phase, Some(NodePhase::Done | NodePhase::HandedOff));
    let then = phases(before);
    let new = after.nodes.iter().filter(|node| empty(Some(&node.phase)));
    let new = new.filter(|node| !empty(then.get(node.name.as_str())));
    new.map(|node| (node.name.as_str(), node.started_at.as_ref().map(|time| time.0))).collect()
}

/// Pods of a node that a drain must move: not those of DaemonSets, not mirrors, not finished ones.
fn must_leave(world: &World, node: &str) -> Vec<Text> {
    let cluster = world.store().cluster();
    let stays = |owner: &str| cluster.daemon_set(owner).is_some();
    cluster
        .pods_on(node)
        .filter(|pod| !pod.mirror && !pod.finished_by_itself() && !is_skipped(world, pod))
        .filter(|pod| !pod.owner.as_ref().is_some_and(|owner| stays(&owner.uid)))
        .map(|pod| pod.uid.clone())
        .collect()
}

/// Whether a rule of some plan leaves the pod alone.
fn is_skipped(world: &World, pod: &Pod) -> bool {
    let app = pod.labels.get("app").map(AsRef::as_ref);
    let of = |rule: &&PodRule| {
        let selector = rule.pod_selector.as_ref();
        selector.and_then(|selector| selector.match_labels.get("app")).map(String::as_str) == app
    };
    let skips = |rule: &PodRule| rule.action == PodAction::Skip;
    let mut policies = world.store().plans().map(|plan| plan.spec.pod_policy());
    policies.any(|policy| policy.rules.iter().find(of).is_some_and(skips))
}
