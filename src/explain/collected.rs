//! Terminating pods that no kubelet confirms, and what the pod garbage collection of kube-controller-manager does with
//! them (`pkg/controller/podgc/gc_controller.go`).

use super::case::Case;
use super::{Said, words};
use crate::api::Outlook;
use crate::cluster::{Cluster, Node, Pod};

/// Whoever sets it says that the machine is off (`v1.TaintNodeOutOfService`); the effect does not matter here.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What the collection does, as one reads it in a message.
const COLLECTS: &str = "the pod garbage collection of kube-controller-manager";

/// Why nobody confirms the end of a terminating pod.
enum Unconfirmed<'a> {
    /// The kubelet is silent.
    Silent(&'a Node),
    /// Its node is not Ready, and somebody has said that the machine is off: it is collected.
    OutOfService(&'a Node),
    /// Its node is gone: it is collected.
    Orphaned(&'a str),
}

fn unconfirmed<'a>(cluster: &'a Cluster, pod: &'a Pod) -> Option<Unconfirmed<'a>> {
    pod.deletion?;
    let name = pod.node.as_deref()?;
    match cluster.node(name) {
        Some(node) if is_out_of_service(node) && &*node.ready != "True" => {
            Some(Unconfirmed::OutOfService(node))
        }
        Some(node) => (&*node.ready == "Unknown").then_some(Unconfirmed::Silent(node)),
        // Files may hold pods without any node.
        None => cluster.nodes().next().is_some().then_some(Unconfirmed::Orphaned(name)),
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
            remedy: format!(
                "bring {0} back; or, once the machine is confirmed to be off: kubectl taint node {0} \
                 {OUT_OF_SERVICE}=nodeshutdown:NoExecute",
                node.name
            ),
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
        remedy: format!(
            "see to it that whoever set {names} removes it from metadata.finalizers of pod {}/{}",
            pod.namespace, pod.name
        ),
    }
}

/// Why a terminating pod of a budget does not go, if its kubelet is not the one to say so.
pub(super) fn fate(cluster: &Cluster, pod: &Pod) -> Option<String> {
    Some(match unconfirmed(cluster, pod)? {
        Unconfirmed::Silent(node) => format!("the kubelet of {} does not report", node.name),
        Unconfirmed::OutOfService(_) | Unconfirmed::Orphaned(_) => {
            "pod garbage collection deletes it".to_owned()
        }
    })
}

/// Whether the pod's going takes more than time.
pub(super) fn hangs(cluster: &Cluster, pod: &Pod) -> bool {
    matches!(unconfirmed(cluster, pod), Some(Unconfirmed::Silent(_)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Deletion, Taint, Text};
    use jiff::Timestamp;

    fn cluster(node: Option<(&str, bool)>) -> (Cluster, Pod) {
        let mut cluster = Cluster::new();
        cluster.apply_node(Node { name: "other".into(), ready: "True".into(), ..Node::default() });
        if let Some((ready, tainted)) = node {
            let taint = Taint { key: OUT_OF_SERVICE.into(), effect: "NoExecute".into(), ..Taint::default() };
            let taints = if tainted { vec![taint] } else { Vec::new() };
            cluster.apply_node(Node { name: "a".into(), ready: ready.into(), taints, ..Node::default() });
        }
        let deletion = Deletion { at: Timestamp::UNIX_EPOCH, grace_seconds: 30 };
        let pod =
            Pod { name: "web-0".into(), node: Some("a".into()), deletion: Some(deletion), ..Pod::default() };
        (cluster, pod)
    }

    #[test]
    fn what_is_confirmed_by_whom() {
        let collects = Some("pod garbage collection deletes it".to_owned());
        let silent = Some("the kubelet of a does not report".to_owned());
        let table = [
            (Some(("True", false)), None),
            (Some(("True", true)), None),
            (Some(("False", false)), None),
            (Some(("False", true)), collects.clone()),
            (Some(("Unknown", false)), silent.clone()),
            (Some(("Unknown", true)), collects.clone()),
            (None, collects),
        ];
        for (node, expected) in table {
            let (cluster, pod) = cluster(node);
            assert_eq!(
                (fate(&cluster, &pod), hangs(&cluster, &pod)),
                (expected.clone(), expected == silent),
                "{node:?}"
            );
            assert_eq!(fate(&cluster, &Pod { deletion: None, ..pod.clone() }), None);
            assert_eq!(fate(&cluster, &Pod { node: None::<Text>, ..pod }), None);
        }
    }

    #[test]
    fn a_dump_without_nodes_says_nothing_of_them() {
        let (_, pod) = cluster(None);
        assert_eq!(fate(&Cluster::new(), &pod), None);
    }
}
