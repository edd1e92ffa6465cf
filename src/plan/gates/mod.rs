//! What keeps a node from being started although it could be drained.

pub mod health;
mod replacements;
mod soak;

use super::memory::Record;
use super::run::Run;
use super::{Round, moved, words};
use crate::api::NodeReason;
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Node, Text};

/// The label of nodes that run the control plane.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// What speaks against any start in this decision.
#[derive(Debug, Default)]
pub struct Shut {
    replacements: Option<(NodeReason, String)>,
    /// Asked last: whatever else keeps nodes from being started is worse than a pause.
    soak: Option<(NodeReason, String)>,
}

impl Shut {
    /// Looks at the owners whose pods were moved, and at when the last node was done.
    pub fn of(run: &Run<'_>, round: &mut Round<'_>) -> Self {
        Self { replacements: replacements::closed(run, round), soak: soak::closed(run, round) }
    }
}

/// Why a node is not started now, if anything speaks against it. Asked again after each start.
pub fn closed(
    run: &Run<'_>,
    round: &Round<'_>,
    shut: &Shut,
    node: &Node,
    busy: &[Text],
) -> Option<(NodeReason, String)> {
    control_plane(round, node)
        .or_else(|| yielded(run, round, node))
        .or_else(|| domain(run, round, node, busy))
        .or_else(|| cordons(round, node))
        .or_else(|| run.health.closed(node))
        .or_else(|| shut.replacements.clone())
        .or_else(|| moved::too_many(run, round, node, !busy.is_empty()))
        .or_else(|| shut.soak.clone())
}

/// Whether the reason holds for all nodes alike, whether they have had their turn or not.
pub fn is_common(reason: NodeReason) -> bool {
    matches!(reason, NodeReason::AwaitingHealth | NodeReason::AwaitingReplacements | NodeReason::AwaitingSoak)
}

/// A control plane of several nodes keeps its majority only while at most one of them is away.
pub fn control_plane(round: &Round<'_>, node: &Node) -> Option<(NodeReason, String)> {
    node.labels.get(CONTROL_PLANE)?;
    let mut others = round
        .cluster
        .nodes()
        .filter(|other| other.name != node.name && other.labels.get(CONTROL_PLANE).is_some())
        .peekable();
    if others.peek().is_none() {
        return Some((NodeReason::ControlPlaneAtRisk, words::only_control_plane()));
    }
    let away = |other: &Node| &*other.ready != "True" || round.holders.contains_key(&other.name);
    let other = others.find(|other| away(other))?;
    let drained = round.holders.contains_key(&other.name);
    Some((NodeReason::ControlPlaneAtRisk, words::control_plane_at_risk(&other.name, drained)))
}

/// A node that gave way waits until the older one has ended.
fn yielded(run: &Run<'_>, round: &Round<'_>, node: &Node) -> Option<(NodeReason, String)> {
    let yielded = run.memory.yielded.iter().find(|yielded| yielded.name == node.name)?;
    let held = round.holders.contains_key(&yielded.to);
    held.then(|| (NodeReason::AwaitingSlot, words::gave_way(&yielded.to)))
}

/// One value of the label is finished before the next.
fn domain(run: &Run<'_>, round: &Round<'_>, node: &Node, busy: &[Text]) -> Option<(NodeReason, String)> {
    let key = run.plan.spec.topology_key().filter(|_| !planted(Planted::DomainsMixed))?;
    let own = domain_of(node, key);
    let mut others = busy.iter().filter_map(|name| round.cluster.node(name));
    let other = others.find(|other| domain_of(other, key) != own)?;
    Some((NodeReason::AwaitingDomain, words::awaiting_domain(key, domain_of(other, key), &other.name)))
}

/// Nodes without the label are a domain of their own.
fn domain_of<'n>(node: &'n Node, key: &str) -> &'n str {
    node.labels.get(key).map_or("", AsRef::as_ref)
}

/// All plans together may hold so many nodes cordoned.
fn cordons(round: &Round<'_>, node: &Node) -> Option<(NodeReason, String)> {
    let limit = round.most_cordoned();
    let full = round.cordoned.len() >= limit
        && !round.cordoned.contains(&node.name)
        && !planted(Planted::CordonsUncounted);
    full.then(|| (NodeReason::AwaitingSlot, words::too_many_cordoned(round.cordoned.len(), limit)))
}

impl Run<'_> {
    /// The domain that was begun last: it is finished before another one is begun.
    pub fn present_domain(&self, round: &Round<'_>) -> Option<(&str, Text)> {
        let key = self.plan.spec.topology_key()?;
        let began = |record: &Record| record.started_at.map(|at| (record.in_progress(), at));
        let (name, record) = self
            .memory
            .nodes
            .iter()
            .filter(|(_, record)| record.started_at.is_some())
            .max_by_key(|(_, record)| began(record))?;
        let node = round.cluster.node(name).filter(|node| *node.uid == *record.uid)?;
        Some((key, domain_of(node, key).into()))
    }

    /// Whether a node is in another domain than the one that was begun last.
    pub fn is_elsewhere(present: Option<&(&str, Text)>, node: &Node) -> bool {
        present.is_some_and(|(key, domain)| domain_of(node, key) != &**domain)
    }
}
