//! Claims on nodes, and the patches that make and end them.
//!
//! A node is changed only by one JSON patch that tests its resourceVersion, so that claim, mark and cordon come and
//! go together and never over somebody else's change.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Action;
use super::memory::Record;
use crate::api::{DrainPlanSpec, NodePhase, NodeReason, OnNodeTimeout, Then, names};
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
    /// Ours is removed; uncordoned unless it was cordoned before us.
    GiveBack,
    /// Ours is removed; left cordoned, with an annotation that says by which plan.
    Keep {
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
}

/// The run that a plan without `repeat` has.
const ONLY_RUN: &str = "1";

/// The change that claims a node for a plan.
pub fn claim(plan: &str, uid: &str, since: Timestamp) -> NodeChange {
    let since = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    NodeChange::Claim { claim: Claim { plan, uid, run: ONLY_RUN, since: &since }.to_string() }
}

/// How a node that the plan no longer works on is left.
pub fn ending(plan: &str, spec: &DrainPlanSpec, record: Option<&Record>) -> NodeChange {
    let keep = || NodeChange::Keep { plan: plan.to_owned() };
    let Some(record) = record else { return NodeChange::GiveBack };
    let timed_out = record.reason.as_deref() == Some(NodeReason::TimedOut.as_str());
    let by_hand = record.reason.as_deref() == Some(NodeReason::UncordonedByHand.as_str());
    match record.phase {
        NodePhase::Done if spec.then() == Some(Then::KeepCordoned) => keep(),
        NodePhase::Failed if timed_out && spec.on_node_timeout == Some(OnNodeTimeout::Keep) => keep(),
        NodePhase::Skipped if by_hand => NodeChange::Release,
        _ => NodeChange::GiveBack,
    }
}

/// The patch action for a change.
pub fn patch(node: &Node, change: NodeChange) -> Action {
    let mut ops =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": &*node.resource_version})];
    match &change {
        NodeChange::Claim { claim } => claim_ops(&mut ops, node, claim),
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
        NodeChange::Keep { plan } => {
            remove_marks(&mut ops, node);
            if node.unschedulable {
                ops.push(annotate(names::KEPT_CORDONED, plan));
            }
        }
        NodeChange::Release => remove_marks(&mut ops, node),
        NodeChange::Mark => add_taint(&mut ops, node),
        NodeChange::Unmark => remove_taint(&mut ops, node),
        NodeChange::DropStaleMark => remove_annotation(&mut ops, node, names::KEPT_CORDONED),
    }
    Action::PatchNode { node: node.name.clone(), change, patch: Value::Array(ops) }
}

/// The patch that drops an annotation of an earlier plan which an uncordon made untrue.
pub fn drop_stale_mark(node: &Node) -> Option<Action> {
    let stale = !node.unschedulable && node.annotations.contains_key(names::KEPT_CORDONED);
    stale.then(|| patch(node, NodeChange::DropStaleMark))
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
    if node.unschedulable {
        ops.push(annotate(names::WAS_CORDONED, "true"));
    } else {
        remove_annotation(ops, node, names::WAS_CORDONED);
        ops.push(json!({"op": "add", "path": "/spec/unschedulable", "value": true}));
    }
}

fn remove_marks(ops: &mut Vec<Value>, node: &Node) {
    remove_annotation(ops, node, names::CLAIM);
    remove_annotation(ops, node, names::WAS_CORDONED);
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
    format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"))
}
