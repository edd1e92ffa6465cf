//! Claims on nodes, and the patches that make and end them.
//!
//! A node is changed only by one JSON patch that tests its resourceVersion, so that claim, mark and cordon come and
//! go together and never over somebody else's change.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Action;
use super::memory::Record;
use crate::api::{DrainPlanSpec, NodePhase, NodeReason, OnNodeTimeout, Then, Until, names};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Node, Taint};

/// A claim, as the node's annotation carries it: `<plan name>/<plan uid>/<run>/<since>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The plan's name.
    pub plan: &'a str,
    /// The plan's uid.
    pub uid: &'a str,
    /// Which run of the plan.
    pub run: &'a str,
    /// When the run took the node.
    pub since: &'a str,
}

impl<'a> Claim<'a> {
    /// The claim on a node, if there is one that can be read.
    #[must_use]
    pub fn on(node: &'a Node) -> Option<Self> {
        let mut parts = node.annotations.get(names::CLAIM)?.split('/');
        let claim =
            Self { plan: parts.next()?, uid: parts.next()?, run: parts.next()?, since: parts.next()? };
        (parts.next().is_none() && !claim.uid.is_empty()).then_some(claim)
    }
}

impl fmt::Display for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.plan, self.uid, self.run, self.since)
    }
}

/// What a patch does to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeChange {
    /// Claimed and cordoned; an earlier cordon is remembered.
    Claim {
        /// The annotation's value.
        claim: String,
    },
    /// The label tells that it is empty and whoever works on it may begin; the claim is put back where it was lost.
    HandOff {
        /// The annotation's value.
        claim: String,
    },
    /// Ours is removed; uncordoned unless it was cordoned before us.
    GiveBack,
    /// Ours is removed; left cordoned, with an annotation that says by which plan.
    Keep {
        /// The plan's name.
        plan: String,
    },
    /// Ours is removed; it is not Ready after its hand-off, so it stays cordoned, with an annotation that says by which
    /// plan.
    LeaveCordoned {
        /// The plan's name.
        plan: String,
    },
    /// Ours is removed; cordoned or not, it stays as it is.
    Release,
    /// Its turn comes soon: pods prefer other nodes.
    Mark,
    /// Its turn does not come soon any more.
    Unmark,
    /// It was left cordoned by a plan once and has been uncordoned since: the annotation is no longer true.
    DropStaleMark,
    /// It carries the label and nobody has handed it off.
    DropStaleLabel,
}

/// The change that claims a node for a plan.
pub fn claim(plan: &str, uid: &str, run: i32, since: Timestamp) -> NodeChange {
    NodeChange::Claim { claim: annotation(plan, uid, run, since) }
}

/// The change that tells of a node's hand-off.
pub fn hand_off(plan: &str, uid: &str, run: i32, since: Timestamp) -> NodeChange {
    NodeChange::HandOff { claim: annotation(plan, uid, run, since) }
}

fn annotation(plan: &str, uid: &str, run: i32, since: Timestamp) -> String {
    let since = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Claim { plan, uid, run: &run.to_string(), since: &since }.to_string()
}

/// How a node that the plan no longer works on is left.
pub fn ending(plan: &str, spec: &DrainPlanSpec, node: &Node, record: Option<&Record>) -> NodeChange {
    let keep = || NodeChange::Keep { plan: plan.to_owned() };
    let Some(record) = record else { return give_back(plan, node) };
    let because = |reason: NodeReason| record.reason.as_deref() == Some(reason.as_str());
    let done = record.phase == NodePhase::Done;
    let lost = because(NodeReason::HandOffTimedOut);
    if (done || lost) && spec.then() == Some(Then::KeepCordoned) {
        keep()
    } else if lost || (done && spec.until() != Until::Drained) || record.phase == NodePhase::HandedOff {
        back_or_left(plan, node)
    } else if because(NodeReason::TimedOut) && is_overdue(spec, record) && keeps(spec) {
        keep()
    } else if because(NodeReason::UncordonedByHand) {
        NodeChange::Release
    } else {
        give_back(plan, node)
    }
}

/// A suspended plan does nothing stronger than giving back.
fn keeps(spec: &DrainPlanSpec) -> bool {
    spec.on_node_timeout == Some(OnNodeTimeout::Keep) && !spec.suspend
}

/// It ended at its own deadline, not at the plan's. Statuses hold whole seconds.
fn is_overdue(spec: &DrainPlanSpec, record: &Record) -> bool {
    let Some((started, finished)) = record.started_at.zip(record.finished_at) else { return true };
    let took = finished.as_second().saturating_sub(started.as_second());
    took >= spec.node_timeout().value().as_secs()
}

/// Back into service; but a node that is not Ready after somebody has worked on it is left as it is, and that is said.
pub fn give_back(plan: &str, node: &Node) -> NodeChange {
    if is_announced(node) { back_or_left(plan, node) } else { NodeChange::GiveBack }
}

fn back_or_left(plan: &str, node: &Node) -> NodeChange {
    let ours = node.unschedulable && !node.annotations.contains_key(names::WAS_CORDONED);
    if ours && &*node.ready != "True" && !planted(Planted::UncordonedNotReady) {
        return NodeChange::LeaveCordoned { plan: plan.to_owned() };
    }
    NodeChange::GiveBack
}

/// The patch action for a change.
pub fn patch(node: &Node, change: NodeChange) -> Action {
    let mut ops =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": &*node.resource_version})];
    match &change {
        NodeChange::Claim { claim } => claim_ops(&mut ops, node, claim),
        NodeChange::HandOff { claim } => hand_off_ops(&mut ops, node, claim),
        NodeChange::GiveBack => {
            remove_marks(&mut ops, node);
            if planted(Planted::ClaimLeft) {
                ops.retain(|op| op.get("path") != Some(&json!(annotation_path(names::CLAIM))));
            }
            let foreign = node.annotations.contains_key(names::WAS_CORDONED);
            if node.unschedulable && (!foreign || planted(Planted::ForeignCordonLifted)) {
                ops.push(json!({"op": "remove", "path": "/spec/unschedulable"}));
            }
        }
        NodeChange::Keep { plan } | NodeChange::LeaveCordoned { plan } => {
            let kept = matches!(change, NodeChange::Keep { .. });
            remove_marks(&mut ops, node);
            if node.unschedulable {
                ops.push(annotate(if kept { names::KEPT_CORDONED } else { names::LEFT_CORDONED }, plan));
            }
        }
        NodeChange::Release => remove_marks(&mut ops, node),
        NodeChange::Mark => add_taint(&mut ops, node),
        NodeChange::Unmark => remove_taint(&mut ops, node),
        NodeChange::DropStaleMark => {
            remove_annotation(&mut ops, node, names::KEPT_CORDONED);
            remove_annotation(&mut ops, node, names::LEFT_CORDONED);
        }
        NodeChange::DropStaleLabel => remove_label(&mut ops, node),
    }
    Action::PatchNode { node: node.name.clone(), change, patch: Value::Array(ops) }
}

/// The patch that drops an annotation of an earlier plan which an uncordon made untrue.
pub fn drop_stale_mark(node: &Node) -> Option<Action> {
    let stale = !node.unschedulable && is_left_cordoned(node);
    stale.then(|| patch(node, NodeChange::DropStaleMark))
}

/// The patch that drops the label of a hand-off that nobody remembers: somebody has removed the claim.
pub fn drop_stale_label(node: &Node) -> Option<Action> {
    Claim::on(node).is_none().then(|| patch(node, NodeChange::DropStaleLabel))
}

/// Whether an annotation says that a plan has left the node cordoned.
pub fn is_left_cordoned(node: &Node) -> bool {
    [names::KEPT_CORDONED, names::LEFT_CORDONED].iter().any(|mark| node.annotations.contains_key(*mark))
}

/// Whether the label tells that the node is handed off.
pub fn is_announced(node: &Node) -> bool {
    node.labels.get(names::STATE).is_some()
}

/// Whether the node carries our taint.
pub fn is_marked(node: &Node) -> bool {
    node.taints.iter().any(is_ours)
}

fn is_ours(taint: &Taint) -> bool {
    &*taint.key == names::PENDING_TAINT
}

fn add_taint(ops: &mut Vec<Value>, node: &Node) {
    let taint = json!({"key": names::PENDING_TAINT, "effect": "PreferNoSchedule"});
    ops.push(if node.taints.is_empty() {
        json!({"op": "add", "path": "/spec/taints", "value": [taint]})
    } else {
        json!({"op": "add", "path": "/spec/taints/-", "value": taint})
    });
}

/// By its place in the list, which is where it was as the resourceVersion proves; others' stay as they are.
fn remove_taint(ops: &mut Vec<Value>, node: &Node) {
    for (place, _) in node.taints.iter().enumerate().rev().filter(|(_, taint)| is_ours(taint)) {
        ops.push(json!({"op": "remove", "path": format!("/spec/taints/{place}")}));
    }
}

fn claim_ops(ops: &mut Vec<Value>, node: &Node, claim: &str) {
    if planted(Planted::ClaimAfterCordon) && !node.unschedulable {
        ops.push(json!({"op": "add", "path": "/spec/unschedulable", "value": true}));
        return;
    }
    if !node.annotated {
        ops.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    ops.push(annotate(names::CLAIM, claim));
    remove_taint(ops, node);
    remove_annotation(ops, node, names::RELEASE);
    remove_label(ops, node);
    // What a hand-off left cordoned is our cordon: it is taken up with the node.
    let left = node.annotations.contains_key(names::LEFT_CORDONED);
    remove_annotation(ops, node, names::LEFT_CORDONED);
    if node.unschedulable && !left {
        ops.push(annotate(names::WAS_CORDONED, "true"));
        return;
    }
    remove_annotation(ops, node, names::WAS_CORDONED);
    if !node.unschedulable {
        ops.push(json!({"op": "add", "path": "/spec/unschedulable", "value": true}));
    }
}

/// Somebody may have taken our annotations off: then nobody can tell whose the cordon is, and it counts as another's.
fn hand_off_ops(ops: &mut Vec<Value>, node: &Node, claim: &str) {
    if Claim::on(node).is_none() {
        if !node.annotated {
            ops.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        }
        ops.push(annotate(names::CLAIM, claim));
        if node.unschedulable {
            ops.push(annotate(names::WAS_CORDONED, "true"));
        }
    }
    if node.labels.iter().next().is_none() {
        ops.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
    }
    ops.push(json!({"op": "add", "path": label_path(), "value": names::DRAINED}));
}

fn remove_label(ops: &mut Vec<Value>, node: &Node) {
    if is_announced(node) && !planted(Planted::LabelLeft) {
        ops.push(json!({"op": "remove", "path": label_path()}));
    }
}

fn label_path() -> String {
    format!("/metadata/labels/{}", escaped(names::STATE))
}

fn remove_marks(ops: &mut Vec<Value>, node: &Node) {
    remove_annotation(ops, node, names::CLAIM);
    remove_annotation(ops, node, names::WAS_CORDONED);
    remove_annotation(ops, node, names::RELEASE);
    remove_label(ops, node);
    remove_taint(ops, node);
}

fn annotate(name: &str, value: &str) -> Value {
    json!({"op": "add", "path": annotation_path(name), "value": value})
}

fn remove_annotation(ops: &mut Vec<Value>, node: &Node, name: &str) {
    if node.annotations.contains_key(name) {
        ops.push(json!({"op": "remove", "path": annotation_path(name)}));
    }
}

fn annotation_path(name: &str) -> String {
    format!("/metadata/annotations/{}", escaped(name))
}

/// As a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
