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
const WELL: &str = "a node that is not Ready after its hand-off is not put back into service";

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
    /// Until when a status has called a node Draining or HandedOff, by the uids of the plan and the node.
    said_until: BTreeMap<(String, String, NodePhase), Timestamp>,
}

impl Nodes {
    pub fn new(world: &World) -> Self {
        let cordoned = world.store().cluster().nodes().filter(|node| node.unschedulable);
        let cordoned = cordoned.map(|node| (node.uid.clone(), By::Others)).collect();
        Self { cordoned, said_until: BTreeMap::new() }
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
                let said = |of: &&NodeStatus| matches!(of.phase, NodePhase::Draining | NodePhase::HandedOff);
                for record in before.nodes.iter().filter(said) {
                    let of = (uid.clone(), record.uid.clone(), record.phase);
                    self.said_until.insert(of, world.now());
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
        hold(FOREIGN, foreign(before) == foreign(after), || {
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
            NodeChange::HandOff { .. } => self.announced(world, before, after),
            NodeChange::GiveBack => {
                let ours = matches!(by, Some(By::Us)) && after.unschedulable;
                hold(LEFT_BEHIND, !ours && unmarked(after), || format!("{name} is given back as {after:?}"))?;
                let uncordoned = before.unschedulable && !after.unschedulable;
                let ill = before.labels.get(names::STATE).is_some() && &*before.ready != "True";
                hold(WELL, !(uncordoned && ill), || format!("{name} was {before:?}"))
            }
            NodeChange::LeaveCordoned { .. } => {
                let left = after.unschedulable && after.annotations.contains_key(names::LEFT_CORDONED);
                let ill = &*before.ready != "True";
                hold(LEFT_BEHIND, left && ill && unmarked(after), || {
                    format!("{name} is left cordoned as {after:?}")
                })
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
            NodeChange::DropStaleLabel => hold(LEFT_BEHIND, after.labels.get(names::STATE).is_none(), || {
                format!("{name} is handed off by nobody, and is {after:?}")
            }),
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
        let drained = written.is_some_and(|written| written.phase == NodePhase::Draining);
        hold(AHEAD, drained || self.said(world, plan, node, NodePhase::Draining), || {
            format!("{name} is claimed, and the status says {written:?}")
        })?;
        let held = plan.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER);
        hold(AHEAD, held || !drained, || format!("{name} is claimed by a plan without our finalizer"))
    }

    /// Whether a status said so a moment ago.
    fn said(&self, world: &World, plan: &DrainPlan, node: &Node, phase: NodePhase) -> bool {
        let uid = plan.metadata.uid.clone().unwrap_or_default();
        let until = self.said_until.get(&(uid, node.uid.to_string(), phase));
        until.is_some_and(|until| world.now().duration_since(*until) < UNDER_WAY)
    }

    /// Whoever works on nodes may begin only when a status says what the node was like.
    fn announced(&self, world: &World, before: &Node, node: &Node) -> Verdict {
        let name = &node.name;
        let told = node.labels.get(names::STATE).is_some() && Claim::on(node).is_some();
        hold(AHEAD, told && before.unschedulable == node.unschedulable, || {
            format!("{name} is handed off, and that makes {node:?} of {before:?}")
        })?;
        let Some(plan) = holder(world, name) else { return Ok(()) };
        let written = record(plan, node);
        let handed_off = written.is_some_and(|written| written.phase == NodePhase::HandedOff);
        hold(AHEAD, handed_off || self.said(world, plan, node, NodePhase::HandedOff), || {
            format!("{name} is called drained by its label, and the status says {written:?}")
        })
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
            let told = [names::KEPT_CORDONED, names::LEFT_CORDONED];
            let kept = told.iter().any(|mark| node.annotations.contains_key(*mark));
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
    let announced = node.labels.get(names::STATE).is_some();
    !announced && !marked(node) && marks.iter().all(|mark| !node.annotations.contains_key(*mark))
}

fn marked(node: &Node) -> bool {
    node.taints.iter().any(|taint| &*taint.key == names::PENDING_TAINT)
}

/// The taints and labels that are not ours.
fn foreign(node: &Node) -> (Vec<&Taint>, Vec<(&Text, &Text)>) {
    let taints = node.taints.iter().filter(|taint| &*taint.key != names::PENDING_TAINT);
    (taints.collect(), node.labels.iter().filter(|(key, _)| ***key != *names::STATE).collect())
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
    let because = |record: &NodeStatus, reason: NodeReason| record.reason.as_deref() == Some(reason.as_str());
    let keeps = plan.spec.then() == Some(Then::KeepCordoned);
    record(plan, node).is_none_or(|record| match record.phase {
        NodePhase::Done => keeps,
        NodePhase::Failed if because(record, NodeReason::HandOffTimedOut) => keeps,
        NodePhase::Failed => {
            because(record, NodeReason::TimedOut) && plan.spec.on_node_timeout == Some(OnNodeTimeout::Keep)
        }
        _ => false,
    })
}
