//! Terminating pods that no kubelet confirms, and what the pod garbage collection of kube-controller-manager does with
//! them (`pkg/controller/podgc/gc_controller.go`).

use super::case::Case;
use super::{Said, hanging, words};
use crate::api::Outlook;
use crate::cluster::{Cluster, Node, Pod, Text};

/// Whoever sets it says that the machine is off (`v1.TaintNodeOutOfService`); the effect does not matter here.
pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What the collection does, as one reads it in a message.
const COLLECTS: &str = "the pod garbage collection of kube-controller-manager";

/// Why nobody confirms the end of a terminating pod.
pub(super) enum Unconfirmed<'a> {
    /// The kubelet is silent.
    Silent(&'a Node),
    /// Its node is not Ready, and somebody has said that the machine is off: it is collected.
    OutOfService(&'a Node),
    /// Its node is gone: it is collected.
    Orphaned(&'a str),
}

pub(super) fn unconfirmed<'a>(cluster: &'a Cluster, pod: &'a Pod) -> Option<Unconfirmed<'a>> {
    pod.deletion?;
    let name = pod.node.as_deref()?;
    match cluster.node(name) {
        Some(node) if is_out_of_service(node) && &*node.ready != "True" => {
            Some(Unconfirmed::OutOfService(node))
        }
        Some(node) => (&*node.ready == "Unknown").then_some(Unconfirmed::Silent(node)),
        None => cluster.knows_all_nodes().then_some(Unconfirmed::Orphaned(name)),
    }
}

fn is_out_of_service(node: &Node) -> bool {
    node.taints.iter().any(|taint| &*taint.key == OUT_OF_SERVICE)
}

/// Nobody confirms that the containers have ended.
pub(super) fn kubelet_unreachable(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    let by = words::at(pod.deletion?.at);
    Some(match unconfirmed(case.cluster, pod)? {
        Unconfirmed::Silent(node) => Said {
            outlook: Outlook::MayClear,
            message: format!(
                "Deleted, to be gone by {by}, but the kubelet of {} does not report (Ready is Unknown), so nobody \
                 confirms that its containers have ended.",
                node.name
            ),
            remedy: bring_back(&[&node.name]),
        },
        Unconfirmed::OutOfService(node) => collected(
            pod,
            format!(
                "Deleted, to be gone by {by}. Its node {} is not Ready (Ready is {}) and carries the taint \
                 {OUT_OF_SERVICE}, so {COLLECTS} marks it Failed and deletes it in its next round, within 20 s.",
                node.name, node.ready
            ),
        ),
        Unconfirmed::Orphaned(node) => collected(
            pod,
            format!(
                "Deleted, to be gone by {by}, and bound to {node}, a node that does not exist any more: {COLLECTS} marks it \
                 Failed and deletes it 40 to 80 s after the node has gone."
            ),
        ),
    })
}

/// What to do about nodes whose kubelets do not report.
pub(super) fn bring_back(nodes: &[&Text]) -> String {
    let first = nodes.first().map_or("", |name| name.as_ref());
    format!(
        "bring {} back; or, once the machine is confirmed to be off: kubectl taint node {first} \
         {OUT_OF_SERVICE}=nodeshutdown:NoExecute",
        words::list(nodes, ToString::to_string)
    )
}

/// A pod that is collected; its finalizers are not.
fn collected(pod: &Pod, message: String) -> Said {
    if pod.finalizers.is_empty() {
        let remedy =
            "nothing to change: wait for the pod garbage collection; if it takes longer, check that \
                      kube-controller-manager runs"
                .to_owned();
        return Said { outlook: Outlook::WillClear, message, remedy };
    }
    let names = words::list(&pod.finalizers, ToString::to_string);
    Said {
        outlook: Outlook::MayClear,
        message: format!("{message} Its finalizers keep the object beyond that: {names}."),
        remedy: hanging::finalizers(pod),
    }
}

/// What is to be said of an overdue pod whose node is out of service by its taint alone.
pub(super) fn without_effect(case: &Case<'_, '_>) -> Option<String> {
    let node = case.cluster.node(case.pod.node.as_ref()?)?;
    (is_out_of_service(node) && &*node.ready == "True").then(|| {
        format!(
            " The taint {OUT_OF_SERVICE} of {} has no pod collected while its kubelet reports (Ready is True).",
            node.name
        )
    })
}
