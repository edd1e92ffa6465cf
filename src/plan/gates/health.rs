//! The health of all nodes: a cluster in trouble is not drained further.
//!
//! Kubelets that lack memory, disk or process ids evict pods themselves, past all budgets. Each node that is drained moves
//! load to the others, so a drain must not feed such a storm.

use crate::api::{NodePhase, NodeReason};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Node, Text};
use crate::plan::run::Run;
use crate::plan::{Round, words};

/// How many nodes are unhealthy, and how many may be.
#[derive(Debug, Default)]
pub struct Health {
    /// Their names, and what ails them.
    pub unhealthy: Vec<(Text, String)>,
    /// How many nodes there are.
    pub all: usize,
    /// How many may be.
    pub limit: usize,
}

impl Health {
    /// Looks at all nodes. Those that the plan has handed to somebody may be in any state.
    pub fn of(run: &Run<'_>, round: &Round<'_>) -> Self {
        let handed = |node: &Node| {
            let record = run.memory.nodes.get(&node.name);
            record.is_some_and(|record| record.phase == NodePhase::HandedOff && *record.uid == *node.uid)
        };
        let all = round.cluster.nodes().count();
        let unhealthy = round.cluster.nodes().filter(|node| node.is_unhealthy() && !handed(node));
        let unhealthy = unhealthy.map(|node| (node.name.clone(), ailment(node))).collect();
        Self { unhealthy, all, limit: run.plan.spec.unhealthy_nodes(all) }
    }

    /// More nodes are unhealthy than may be.
    pub fn is_bad(&self) -> bool {
        self.unhealthy.len() > self.limit
    }

    /// Why a node is not started: too many others are unhealthy.
    pub fn closed(&self, node: &Node) -> Option<(NodeReason, String)> {
        let itself = self.unhealthy.iter().any(|(name, _)| *name == node.name);
        let others = self.unhealthy.len() - usize::from(itself);
        let closed = others > self.limit && !planted(Planted::HealthIgnored);
        closed.then(|| (NodeReason::AwaitingHealth, words::unhealthy(self)))
    }
}

fn ailment(node: &Node) -> String {
    let ready = match &*node.ready {
        "True" => None,
        "Unknown" => Some("Ready Unknown"),
        _ => Some("not Ready"),
    };
    let parts: Vec<&str> = ready.into_iter().chain(node.pressure.iter().map(AsRef::as_ref)).collect();
    parts.join(", ")
}
