//! Where the scheduler may put a pod, as far as the pod's own spec says.

use super::{Node, Selector, Text};

/// The taint that the scheduler sees on a cordoned node (`plugins/nodeunschedulable`).
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// What a pod asks of its node. Room, ports, volumes and other pods are not part of it, so a node that it admits may
/// still be none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Placement {
    /// Labels that the node must have (`nodeSelector`).
    pub labels: Selector,
    /// One of these must hold, where there are any (required node affinity).
    pub terms: Vec<NodeTerm>,
    pub tolerations: Vec<Toleration>,
}

/// One term of a required node affinity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeTerm {
    /// Of labels; `Gt` and `Lt` are left out and so taken to hold.
    pub labels: Selector,
    /// The node's name is one of these, where it is said.
    pub names: Option<Vec<Text>>,
}

/// A toleration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Toleration {
    /// Every key when empty.
    pub key: Text,
    /// Of any value.
    pub exists: bool,
    pub value: Text,
    /// Every effect when empty.
    pub effect: Text,
}

impl Placement {
    /// Whether the pod may be on the node, were that not cordoned.
    #[must_use]
    pub fn admits(&self, node: &Node) -> bool {
        let hard = |effect: &str| matches!(effect, "NoSchedule" | "NoExecute");
        let mut taints = node.taints.iter().filter(|taint| hard(&taint.effect) && &*taint.key != CORDON);
        self.labels.matches(&node.labels)
            && (self.terms.is_empty() || self.terms.iter().any(|term| term.holds(node)))
            && taints.all(|taint| self.tolerates(&taint.key, &taint.value, &taint.effect))
    }

    /// Whether a cordon keeps the pod away.
    #[must_use]
    pub fn tolerates_cordon(&self) -> bool {
        self.tolerates(CORDON, "", "NoSchedule")
    }

    fn tolerates(&self, key: &str, value: &str, effect: &str) -> bool {
        self.tolerations.iter().any(|toleration| {
            (toleration.effect.is_empty() || &*toleration.effect == effect)
                && (toleration.key.is_empty() || &*toleration.key == key)
                && (toleration.exists || &*toleration.value == value)
        })
    }
}

impl NodeTerm {
    fn holds(&self, node: &Node) -> bool {
        self.labels.matches(&node.labels)
            && self.names.as_ref().is_none_or(|names| names.contains(&node.name))
    }
}
