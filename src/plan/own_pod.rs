//! The pod that whoever acts runs in: it leaves its node last, and another replica evicts it.
//!
//! A controller that evicts itself loses what it has not written down yet, and its plans stand still until a successor has
//! started. So it hands its lease over first, to a replica that has nothing left to start.

use super::{Action, Round};
use crate::cluster::{Cluster, Pod, PodKey, Text};

/// Whether the pod is the one that whoever acts runs in.
pub fn is_own(own: Option<&PodKey>, pod: &Pod) -> bool {
    own.is_some_and(|own| own.namespace == pod.namespace && own.name == pod.name)
}

/// What is done instead of evicting the pod, if it is the own one and somebody else can do that.
pub fn hand_over(round: &Round<'_>, pod: &Pod) -> Option<Action> {
    if !is_own(round.settings.own_pod.as_ref(), pod) || round.cluster.evictions.was_handed_over(&pod.uid) {
        return None;
    }
    let to = standby(round.cluster, pod)?;
    Some(Action::HandOver { pod: pod.uid.clone(), to: to.name.clone() })
}

/// Another replica that has seen everything, which its readiness says, on another node.
fn standby<'a>(cluster: &'a Cluster, own: &Pod) -> Option<&'a Pod> {
    let workload = workload(cluster, own)?;
    let stands_by = |pod: &&Pod| {
        pod.uid != own.uid
            && pod.ready
            && !pod.terminating()
            && pod.node.is_some()
            && pod.node != own.node
            && self::workload(cluster, pod).as_ref() == Some(&workload)
    };
    cluster.pods_in(&own.namespace).map(|pod| &**pod).find(stands_by)
}

/// The uid of what a pod belongs to: of the Deployment, as its ReplicaSets change.
fn workload(cluster: &Cluster, pod: &Pod) -> Option<Text> {
    let owner = pod.owner.as_ref()?;
    let above = cluster.workload(&owner.uid).and_then(|workload| workload.owner.as_ref());
    Some(above.unwrap_or(owner).uid.clone())
}
