//! What is done to nodes: invariant 5, and that nothing is touched before it is written down.

use std::collections::BTreeMap;

use drainplan::api::{DrainPlan, NodePhase, NodeReason, NodeStatus, OnNodeTimeout, Then, names};
use drainplan::cluster::{Node, Taint, Text};
use drainplan::plan::{Claim, NodeChange};
use drainplan::simulate::{Act, Fact, World};
use jiff::{SignedDuration, Timestamp};

use super::evictions::holder;
use super::{Verdict, hold};

const LEFT_BEHIND: &str = "5 nothing of ours is left behind";
const FOREIGN: &str = "5 foreign cordons are as they were";
const AHEAD: &str = "status is written ahead";

/// Who has cordoned a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Us,
    Others,
    /// Somebody has taken our marks off, so that nobody can tell.
    Unknown,
}

/// How long a request may be on its way; what it was decided from may have been overtaken since, even by whoever sent
/// it, and no order holds between a node and a status.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(5);

pub struct Nodes {
    /// By the node's uid; absent when it is not cordoned.
    cordoned: BTreeMap<Text, By>,
    /// Until when a status has called a node Draining, by the uids of the plan and the node.
    drained_until: BTreeMap<(String, String), Timestamp>,
}

impl Nodes {
    pub fn new(world: &World) -> Self {
        let cordoned = world.store().cluster().nodes().filter(|node| node.unschedulable);
        let cordoned = cordoned.map(|node| (node.uid.clone(), By::Others)).collect();
        Self { cordoned, drained_until: BTreeMap::new() }
    }

    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::NodePatched { change, before, after, .. } => self.patched(world, change, before, after),
            Fact::Acted(act) => {
                self.acted(world, act);
                Ok(())
            }
            Fact::StatusWritten { before: Some(before), plan, .. } => {
                let uid = plan.metadata.uid.clone().unwrap_or_default();
                for record in before.nodes.iter().filter(|record| record.phase == NodePhase::Draining) {
                    self.drained_until.insert((uid.clone(), record.uid.clone()), world.now());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn acted(&mut self, world: &World, act: &Act) {
        let (Act::Cordon(name) | Act::Uncordon(name) | Act::StripAnnotations(name)) = act else { return };
        let Some(node) = world.store().cluster().node(name) else { return };
        let by = match act {
            Act::StripAnnotations(_) => By::Unknown,
            // Under our claim a cordon looks like ours, unless there was one before the claim.
            _ if claimed_uncordoned(node) && !self.cordoned.contains_key(&node.uid) => By::Us,
            _ => By::Others,
        };
        if !node.unschedulable {
            self.cordoned.remove(&node.uid);
        } else if by == By::Unknown {
            self.cordoned.insert(node.uid.clone(), by);
        } else {
            self.cordoned.entry(node.uid.clone()).or_insert(by);
        }
    }

    fn patched(&mut self, world: &World, change: &NodeChange, before: &Node, after: &Node) -> Verdict {
        let name = &after.name;
        hold(FOREIGN, foreign(before) == foreign(after) && before.labels == after.labels, || {
            format!("{name}: taints or labels have changed, from {before:?} to {after:?}")
        })?;
        let by = self.cordoned.get(&after.uid).copied();
        match (before.unschedulable, after.unschedulable) {
            (true, false) => {
                self.cordoned.remove(&after.uid);
                hold(FOREIGN, by != Some(By::Others), || {
                    format!("{name} was cordoned by somebody else and is uncordoned by {change:?}")
                })?;
            }
            (false, true) => {
                self.cordoned.insert(after.uid.clone(), By::Us);
            }
            _ => {}
        }
        match change {
            NodeChange::Claim { .. } => self.claimed(world, after),
            NodeChange::GiveBack => {
                let ours = matches!(by, Some(By::Us)) && after.unschedulable;
                hold(LEFT_BEHIND, !ours && unmarked(after), || format!("{name} is given back as {after:?}"))
            }
            NodeChange::Keep { .. } => {
                let kept = !after.unschedulable || after.annotations.contains_key(names::KEPT_CORDONED);
                hold(LEFT_BEHIND, kept && unmarked(after), || format!("{name} is kept as {after:?}"))?;
                if after.unschedulable {
                    // From now on it is a cordon like any other.
                    self.cordoned.insert(after.uid.clone(), By::Others);
                }
                let plan = holder_of(world, before);
                hold(LEFT_BEHIND, plan.is_none_or(|plan| may_keep(plan, after)), || {
                    format!(
                        "{name} is kept cordoned, which the plan does not want: {:?}",
                        plan.map(|plan| &plan.spec)
                    )
                })
            }
            NodeChange::Release => {
                hold(LEFT_BEHIND, unmarked(after), || format!("{name} is let go as {after:?}"))
            }
            NodeChange::Mark => hold(LEFT_BEHIND, marked(after) && Claim::on(after).is_none(), || {
                format!("{name} is to be avoided until its claim, and is {after:?}")
            }),
            NodeChange::Unmark => {
                hold(LEFT_BEHIND, !marked(after), || format!("{name} is not to be avoided, and is {after:?}"))
            }
            NodeChange::DropStaleMark => Ok(()),
        }
    }

    /// A claim needs a status that says so, and a finalizer.
    fn claimed(&self, world: &World, node: &Node) -> Verdict {
        let name = &node.name;
        hold(AHEAD, node.unschedulable && Claim::on(node).is_some() && !marked(node), || {
            format!("{name} is claimed and cordoned by one and the same patch: {node:?}")
        })?;
        // A patch that was slow may arrive when the plan is gone; the end shows whether the node was swept.
        let Some(plan) = holder(world, name) else { return Ok(()) };
        let written = record(plan, node);
        let said = || {
            let uid = plan.metadata.uid.clone().unwrap_or_default();
            let until = self.drained_until.get(&(uid, node.uid.to_string()));
            until.is_some_and(|until| world.now().duration_since(*until) < UNDER_WAY)
        };
        let drained = written.is_some_and(|written| written.phase == NodePhase::Draining);
        hold(AHEAD, drained || said(), || format!("{name} is claimed, and the status says {written:?}"))?;
        let held = plan.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER);
        hold(AHEAD, held || !drained, || format!("{name} is claimed by a plan without our finalizer"))
    }

    /// At the end no node carries anything of ours.
    pub fn judge_the_end(&self, world: &World) -> Verdict {
        for node in world.store().cluster().nodes() {
            let name = &node.name;
            hold(LEFT_BEHIND, unmarked(node), || format!("{name} is left as {node:?}"))?;
            hold(LEFT_BEHIND, !node.taints.iter().any(|taint| taint.key.starts_with(names::PREFIX)), || {
                format!("{name} is left with taints {:?}", node.taints)
            })?;
            let by = self.cordoned.get(&node.uid).copied();
            let kept = node.annotations.contains_key(names::KEPT_CORDONED);
            hold(LEFT_BEHIND, by != Some(By::Us) || kept, || {
                format!("{name} was cordoned by us and is left so, without a word: {node:?}")
            })?;
            hold(FOREIGN, node.unschedulable || by.is_none(), || {
                format!("{name} was cordoned by {by:?} and is not cordoned any more: {node:?}")
            })?;
        }
        for plan in world.store().plans() {
            let ended = plan.status.as_ref().is_some_and(|status| status.finished_at.is_some());
            let held =
                plan.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER);
            hold(LEFT_BEHIND, !(ended && held), || {
                format!("plan {:?} has ended and keeps its finalizer", plan.metadata.name)
            })?;
        }
        Ok(())
    }
}

/// Claimed when it was not cordoned.
fn claimed_uncordoned(node: &Node) -> bool {
    Claim::on(node).is_some() && !node.annotations.contains_key(names::WAS_CORDONED)
}

/// Neither a claim nor what goes with it.
fn unmarked(node: &Node) -> bool {
    let marks = [names::CLAIM, names::WAS_CORDONED];
    !marked(node) && marks.iter().all(|mark| !node.annotations.contains_key(*mark))
}

fn marked(node: &Node) -> bool {
    node.taints.iter().any(|taint| &*taint.key == names::PENDING_TAINT)
}

/// The taints that are not ours.
fn foreign(node: &Node) -> Vec<&Taint> {
    node.taints.iter().filter(|taint| &*taint.key != names::PENDING_TAINT).collect()
}

fn record<'p>(plan: &'p DrainPlan, node: &Node) -> Option<&'p NodeStatus> {
    let status = plan.status.as_ref()?;
    status.nodes.iter().find(|record| *record.name == *node.name && *record.uid == *node.uid)
}

fn holder_of<'w>(world: &'w World, node: &Node) -> Option<&'w DrainPlan> {
    let claim = Claim::on(node)?;
    world.store().plans().find(|plan| plan.metadata.uid.as_deref() == Some(claim.uid)).map(AsRef::as_ref)
}

/// The plan asks for it, or did a moment ago.
fn may_keep(plan: &DrainPlan, node: &Node) -> bool {
    let timed_out = |record: &NodeStatus| record.reason.as_deref() == Some(NodeReason::TimedOut.as_str());
    record(plan, node).is_none_or(|record| match record.phase {
        NodePhase::Done => plan.spec.then() == Some(Then::KeepCordoned),
        NodePhase::Failed => timed_out(record) && plan.spec.on_node_timeout == Some(OnNodeTimeout::Keep),
        _ => false,
    })
}
