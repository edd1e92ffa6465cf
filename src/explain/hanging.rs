//! Pods that are going and take more than time, as those say that wait for them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::case::Case;
use super::collected::{self, Unconfirmed};
use super::{Patience, words};
use crate::cluster::{Cluster, Deletion, Pod, Text};

/// What keeps a pod that is going.
pub(super) enum Hang<'a> {
    /// Its finalizers keep the object.
    Finalizers,
    /// The kubelet of this node is silent.
    Silent(&'a Text),
    /// It should have gone before.
    Overdue(Timestamp),
}

/// Why the pod's going takes more than time; what is said of the pod itself is `MayClear` in the same cases.
pub(super) fn why<'a>(
    cluster: &'a Cluster,
    now: Timestamp,
    patience: &Patience,
    pod: &'a Pod,
) -> Option<Hang<'a>> {
    let deletion = pod.deletion?;
    let kept = !pod.finalizers.is_empty();
    if kept && deletion.grace_seconds == 0 {
        return Some(Hang::Finalizers);
    }
    match collected::unconfirmed(cluster, pod) {
        Some(Unconfirmed::Silent(node)) => Some(Hang::Silent(&node.name)),
        Some(Unconfirmed::OutOfService(_) | Unconfirmed::Orphaned(_)) => kept.then_some(Hang::Finalizers),
        None => {
            let due = due(deletion, patience);
            (now >= due).then_some(Hang::Overdue(due))
        }
    }
}

/// From when on a deleted pod is overdue.
pub(super) fn due(deletion: Deletion, patience: &Patience) -> Timestamp {
    deletion.at.checked_add(patience.overdue).unwrap_or(Timestamp::MAX)
}

/// What becomes of a terminating pod, if its kubelet is not the one to say so in time.
pub(super) fn fate(cluster: &Cluster, now: Timestamp, patience: &Patience, pod: &Pod) -> Option<String> {
    Some(match why(cluster, now, patience, pod) {
        Some(Hang::Finalizers) => {
            let names = words::list(&pod.finalizers, ToString::to_string);
            let (the, keep) =
                if pod.finalizers.len() == 1 { ("finalizer", "keeps") } else { ("finalizers", "keep") };
            format!("its object is still there, because the {the} {names} {keep} it")
        }
        Some(Hang::Silent(node)) => format!("the kubelet of {node} does not report"),
        Some(Hang::Overdue(since)) => format!("overdue since {}", words::at(since)),
        None => {
            collected::unconfirmed(cluster, pod)?;
            "pod garbage collection deletes it".to_owned()
        }
    })
}

/// What to do about such pods: about each the same as its own entry says.
pub(super) fn remedy(case: &Case<'_, '_>, pods: &[&Pod]) -> String {
    let (mut silent, mut others) = (BTreeSet::new(), BTreeSet::new());
    for pod in pods {
        match why(case.cluster, case.now, case.patience, pod) {
            Some(Hang::Silent(node)) => {
                silent.insert(node);
            }
            Some(Hang::Finalizers) => {
                others.insert(finalizers(pod));
            }
            Some(Hang::Overdue(_)) => {
                others.insert(kubelet(pod));
            }
            None => {}
        }
    }
    let silent: Vec<&Text> = silent.into_iter().collect();
    let back = (!silent.is_empty()).then(|| collected::bring_back(&silent));
    let all: Vec<String> = back.into_iter().chain(others).collect();
    let more = all.len().saturating_sub(words::NAMES);
    let more = (more > 0).then(|| format!("the same for {more} more"));
    all.into_iter().take(words::NAMES).chain(more).collect::<Vec<_>>().join("; ")
}

/// Of a pod whose finalizers keep it.
pub(super) fn finalizers(pod: &Pod) -> String {
    let names = words::list(&pod.finalizers, ToString::to_string);
    format!(
        "find out why whoever set {names} does not remove it; if its work is done, remove it from metadata.finalizers of \
         pod {}/{}",
        pod.namespace, pod.name
    )
}

/// Of an overdue pod.
pub(super) fn kubelet(pod: &Pod) -> String {
    match &pod.node {
        Some(node) => {
            format!("look at the kubelet and the container runtime of {node}: what keeps {} alive?", pod.name)
        }
        None => "check that kube-controller-manager runs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Node, Taint};

    /// At the instant when it is to be gone.
    fn fate(cluster: &Cluster, pod: &Pod) -> Option<String> {
        super::fate(cluster, Timestamp::UNIX_EPOCH, &Patience::default(), pod)
    }

    fn cluster(node: Option<(&str, bool)>) -> (Cluster, Pod) {
        let mut cluster = Cluster::new();
        cluster.apply_node(Node { name: "other".into(), ready: "True".into(), ..Node::default() });
        if let Some((ready, tainted)) = node {
            let taint = Taint {
                key: collected::OUT_OF_SERVICE.into(),
                effect: "NoExecute".into(),
                ..Taint::default()
            };
            let taints = if tainted { vec![taint] } else { Vec::new() };
            cluster.apply_node(Node { name: "a".into(), ready: ready.into(), taints, ..Node::default() });
        }
        let deletion = Deletion { at: Timestamp::UNIX_EPOCH, grace_seconds: 30, cut_short: true };
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
            let hangs = why(&cluster, Timestamp::UNIX_EPOCH, &Patience::default(), &pod).is_some();
            assert_eq!((fate(&cluster, &pod), hangs), (expected.clone(), expected == silent), "{node:?}");
            assert_eq!(fate(&cluster, &Pod { deletion: None, ..pod.clone() }), None);
            assert_eq!(fate(&cluster, &Pod { node: None::<Text>, ..pod }), None);
        }
    }

    #[test]
    fn a_dump_without_nodes_says_nothing_of_them() {
        let (mut cluster, pod) = cluster(None);
        cluster.miss_nodes();
        assert_eq!(fate(&cluster, &pod), None);
    }
}
