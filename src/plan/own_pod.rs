//! The pod that whoever acts runs in: it leaves its node last, and another replica evicts it.
//!
//! A controller that evicts itself loses what it has not written down yet, and its plans stand still until a successor has
//! started. So it hands its lease over first, to a replica that has nothing left to start; and one that is on its way,
//! because it was moved a moment ago, is awaited for as long as that usually takes. Where its successor would find no
//! node it stays: nobody would be there to give back what is cordoned.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Action, Round};
use crate::api::{Outlook, names};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, Node, Pod, PodKey, Text};

/// Whether the pod is the one that whoever acts runs in.
pub fn is_own(own: Option<&PodKey>, pod: &Pod) -> bool {
    own.is_some_and(|own| own.namespace == pod.namespace && own.name == pod.name)
}

/// What is done to the own pod, when its turn has come.
pub enum Turn {
    /// Somebody else can evict it.
    HandOver(Action),
    /// Another replica is evicted in this decision: the next one shows what becomes of it.
    Wait,
    /// Nobody else can.
    Evict,
}

/// What is done to the own pod now, while the pods of these uids are evicted.
pub fn turn(round: &Round<'_>, own: &Pod, leaving: &HashSet<Text>) -> Turn {
    if round.cluster.evictions.was_handed_over(&own.uid) || planted(Planted::NotHandedOver) {
        return Turn::Evict;
    }
    match standby(round, own, leaving) {
        Some(to) => Turn::HandOver(Action::HandOver { pod: own.uid.clone(), to: to.name.clone() }),
        None if replicas(round.cluster, own).any(|pod| leaving.contains(&pod.uid)) => Turn::Wait,
        None => Turn::Evict,
    }
}

/// Another replica that has seen everything, which its readiness says, on another node; best on one that no plan holds.
fn standby<'a>(round: &Round<'a>, own: &Pod, leaving: &HashSet<Text>) -> Option<&'a Pod> {
    let stands_by = |pod: &&Pod| {
        let sent = leaving.contains(&pod.uid) || round.cluster.evictions.is_in_flight(&pod.uid);
        let stays = !pod.terminating() && !sent;
        pod.ready && stays && pod.node.is_some() && pod.node != own.node
    };
    let held = |pod: &&Pod| pod.node.as_ref().is_some_and(|node| round.holders.contains_key(node));
    replicas(round.cluster, own).filter(stands_by).min_by_key(held)
}

/// Replicas that are not ready to take over yet and will be in a moment, or will be followed by one; until when that
/// is believed.
pub fn coming<'a>(round: &Round<'a>, own: &Pod) -> Vec<(&'a Pod, Timestamp)> {
    let handed_over = round.cluster.evictions.was_handed_over(&own.uid);
    if handed_over || standby(round, own, &HashSet::new()).is_some() {
        return Vec::new();
    }
    let until = |pod: &Pod| match pod.deletion {
        Some(deletion) => Some(deletion.at),
        None if round.cluster.evictions.is_in_flight(&pod.uid) => Some(Timestamp::MAX),
        None => pod.created?.saturating_add(round.settings.settling).ok(),
    };
    let coming = replicas(round.cluster, own).filter_map(|pod| Some((pod, until(pod)?)));
    coming.filter(|(_, until)| *until > round.now).collect()
}

/// Whether nobody would act any more once the pod is evicted, because no other replica is ready and a new one has no node;
/// and whether that may pass: nodes that plans hold come back.
pub fn is_indispensable(round: &Round<'_>, own: &Pod) -> Option<Outlook> {
    // One that did not take the lease when it could would not the next time.
    let tried = round.cluster.evictions.was_handed_over(&own.uid);
    if !tried && standby(round, own, &HashSet::new()).is_some() {
        return None;
    }
    let admits = |node: &&Arc<Node>| {
        let admits = own.placement.as_ref().is_none_or(|placement| placement.admits(node));
        Some(&node.name) != own.node.as_ref() && &*node.ready == "True" && admits
    };
    let mut outlook = Some(Outlook::NeverClears);
    for node in round.cluster.nodes().filter(admits) {
        let held = round.holders.contains_key(&node.name);
        if held && !node.annotations.contains_key(names::WAS_CORDONED) {
            outlook = Some(Outlook::MayClear);
        } else if !held && !node.unschedulable {
            return None;
        }
    }
    outlook
}

/// The other replicas, by name.
fn replicas<'a>(cluster: &'a Cluster, own: &Pod) -> impl Iterator<Item = &'a Pod> {
    let workload = workload(cluster, own);
    let uid = own.uid.clone();
    let siblings = cluster.pods_in(&own.namespace).map(|pod| &**pod);
    siblings.filter(move |pod| {
        let of = self::workload(cluster, pod);
        pod.uid != uid && !pod.finished() && of.is_some() && of == workload
    })
}

/// The uid of what a pod belongs to: of the Deployment, as its ReplicaSets change.
fn workload(cluster: &Cluster, pod: &Pod) -> Option<Text> {
    let owner = pod.owner.as_ref()?;
    let above = cluster.workload(&owner.uid).and_then(|workload| workload.owner.as_ref());
    Some(above.unwrap_or(owner).uid.clone())
}
