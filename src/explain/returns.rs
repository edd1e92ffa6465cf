//! Pods that a cordon does not keep away.

use super::case::Case;
use super::{Explainer, Said, Treatment, Wait, owners, words};
use crate::api::{Outlook, Reason};
use crate::cluster::{Node, Pod};

/// Evicted, it would be bound to its node again: the cordon does not keep it away, and no other node may have it.
/// Room is not looked at, so that a node which is only full counts as another one.
pub(super) fn to_its_node(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    let (owner, node, placement) = (pod.owner.as_ref()?, pod.node.as_ref()?, pod.placement.as_ref()?);
    let may_return = placement.tolerates_cordon() && case.cluster.knows_all_nodes();
    if case.treatment == Treatment::Ignore || pod.terminating() || !may_return {
        return None;
    }
    let other = case.cluster.nodes().filter(|other| other.name != *node);
    let fitting: Vec<&Node> = other.map(|other| &**other).filter(|other| placement.admits(other)).collect();
    if fitting.iter().any(|other| &*other.ready == "True") {
        return None;
    }
    let but = words::list(&fitting, |other| other.name.to_string());
    let (but, bring) = match fitting.len() {
        0 => (String::new(), String::new()),
        1 => (format!(" ({but}, which is not Ready, would do)"), format!("bring {but} back, or ")),
        _ => (format!(" ({but}, which are not Ready, would do)"), format!("bring one of {but} back, or ")),
    };
    Some(Said {
        outlook: if fitting.is_empty() { Outlook::NeverClears } else { Outlook::MayClear },
        message: format!(
            "It tolerates node.kubernetes.io/unschedulable, so the cordon does not keep it away, and its node selector, \
             node affinity and tolerations allow no other Ready node{but}: evicted, it would return to {node}."
        ),
        remedy: format!(
            "{bring}take that toleration off {}, or let it run on another node; {SKIP}",
            owners::known_as(case.cluster, owner)
        ),
    })
}

const SKIP: &str = "a pod that belongs to its node can be left by a rule with action Skip in spec.pods.rules";

impl Explainer<'_> {
    /// Why a pod is not evicted from a node that is being drained, where pods of its controller came back although they may
    /// be elsewhere. Whoever looks at a whole drain knows that; no single pod tells.
    #[must_use]
    pub fn came_back(&self, pod: &Pod) -> Option<Wait> {
        let (owner, node) = (pod.owner.as_ref()?, pod.node.as_ref()?);
        let named = owners::known_as(self.cluster, owner);
        let tolerates = pod.placement.as_ref().is_some_and(|placement| placement.tolerates_cordon());
        let (how, change) = if tolerates {
            ("it tolerates node.kubernetes.io/unschedulable", format!("take that toleration off {named}"))
        } else {
            (
                "whoever binds its pods does not heed the cordon",
                format!("let whoever binds the pods of {named} choose another node"),
            )
        };
        let message = format!(
            "Two pods of {named} have come back to {node} since it was cordoned: {how}. Evicted, this one would come back \
             too, so it is left alone."
        );
        Some(Wait {
            reason: Reason::ReturnsToNode,
            outlook: Outlook::MayClear,
            budgets: self.cluster.budgets_of(pod).map(|budget| budget.name.clone()).collect(),
            message: words::bounded(message),
            remedy: format!("{change}; {SKIP}"),
        })
    }
}
