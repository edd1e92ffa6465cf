//! Pods that a cordon does not keep away.

use super::case::Case;
use super::{Said, Treatment};
use crate::api::Outlook;

/// Evicted, it would be bound to its node again: the cordon does not keep it away, and no other node may have it.
/// Room is not looked at, so that a node which is only full counts as another one.
pub(super) fn to_its_node(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    let (owner, node, placement) = (pod.owner.as_ref()?, pod.node.as_ref()?, pod.placement.as_ref()?);
    if case.treatment != Treatment::Evict || pod.terminating() || !placement.tolerates_cordon() {
        return None;
    }
    let other = case.cluster.nodes().filter(|other| other.name != *node);
    let mut fitting = other.filter(|other| &*other.ready == "True" && placement.admits(other));
    fitting.next().is_none().then(|| Said {
        outlook: Outlook::NeverClears,
        message: format!(
            "It tolerates node.kubernetes.io/unschedulable, so the cordon does not keep it away, and its node selector, \
             node affinity and tolerations allow no other Ready node: evicted, it would return to {node}."
        ),
        remedy: format!(
            "take that toleration off {} {}, or let it run on another node; a pod that belongs to its node can be left by \
             a rule with action Skip in spec.pods.rules",
            owner.kind, owner.name
        ),
    })
}
