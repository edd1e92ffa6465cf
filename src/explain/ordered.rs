//! What a StatefulSet waits for that takes its pods one by one (`stateful_set_control.go: updateStatefulSet`).

use std::ops::Range;

use jiff::Timestamp;

use super::view::Unready;
use super::{Patience, hanging};
use crate::cluster::{Cluster, Pod, Workload, WorkloadKind};

/// The pods of a StatefulSet by ordinal.
struct Ordered<'a> {
    workload: &'a Workload,
    pods: Vec<(i32, &'a Pod)>,
}

impl<'a> Ordered<'a> {
    /// `None` for other kinds, and for those that take all pods at once.
    fn new(cluster: &'a Cluster, workload: &'a Workload) -> Option<Self> {
        if workload.kind != WorkloadKind::StatefulSet || workload.ordinals.parallel {
            return None;
        }
        let of = cluster.pods_of(&workload.uid).map(AsRef::as_ref);
        let here = of.filter(|pod: &&Pod| pod.namespace == workload.namespace);
        let mut pods: Vec<(i32, &Pod)> = here.filter_map(|pod| Some((ordinal(pod)?, pod))).collect();
        pods.sort_by_key(|(ordinal, _)| *ordinal);
        Some(Self { workload, pods })
    }
    /// The ordinals that it wants pods of.
    fn wanted(&self) -> Range<i32> {
        let start = self.workload.ordinals.start;
        start..start.saturating_add(self.workload.replicas)
    }
    /// The first of these without a pod.
    fn missing(&self) -> Option<i32> {
        let mut wanted = self.wanted();
        let mut next = wanted.next();
        for (ordinal, _) in &self.pods {
            if next == Some(*ordinal) {
                next = wanted.next();
            }
        }
        next
    }
    fn unhealthy(&self) -> impl Iterator<Item = (i32, &'a Pod)> {
        let healthy = |pod: &Pod| pod.ready && !pod.terminating() && !pod.finished();
        self.pods.iter().copied().filter(move |(_, pod)| !healthy(pod))
    }
}

fn ordinal(pod: &Pod) -> Option<i32> {
    pod.name.rsplit_once('-')?.1.parse().ok()
}

/// Whether the pod takes more than time to be Ready, or gone.
fn lasts(cluster: &Cluster, now: Timestamp, patience: &Patience, pod: &Pod) -> bool {
    if pod.terminating() {
        return hanging::why(cluster, now, patience, pod).is_some();
    }
    // A finished one is deleted and created again.
    !pod.finished() && Unready::of(cluster, now, patience, pod) != Unready::Starting
}

/// The unready pods before the first that is missing: no other is created before they are Ready.
pub(super) fn awaited_to_create<'a>(cluster: &'a Cluster, workload: &'a Workload) -> Vec<&'a Pod> {
    let Some(ordered) = Ordered::new(cluster, workload) else { return Vec::new() };
    let Some(missing) = ordered.missing() else { return Vec::new() };
    let before = ordered.wanted().start..missing;
    let again = |pod: &Pod| pod.finished() && !pod.terminating();
    let unhealthy = ordered.unhealthy().filter(|(ordinal, pod)| before.contains(ordinal) && !again(pod));
    unhealthy.map(|(_, pod)| pod).collect()
}

/// Whether pods are missing, and are not created before others that take more than time.
pub(super) fn creates_none(
    cluster: &Cluster,
    now: Timestamp,
    patience: &Patience,
    workload: &Workload,
) -> bool {
    awaited_to_create(cluster, workload).into_iter().any(|pod| lasts(cluster, now, patience, pod))
}

/// The pods that take more than time to be Ready, or gone, and before which none of those it has too many is deleted. The
/// first of these that is not healthy is deleted itself.
pub(super) fn awaited_to_delete<'a>(
    cluster: &'a Cluster,
    now: Timestamp,
    patience: &Patience,
    workload: &'a Workload,
) -> Vec<&'a Pod> {
    let Some(ordered) = Ordered::new(cluster, workload) else { return Vec::new() };
    let (wanted, surplus): (Vec<_>, Vec<_>) =
        ordered.unhealthy().partition(|(of, _)| ordered.wanted().contains(of));
    let wanted = wanted.into_iter().map(|(_, pod)| pod);
    let wanted: Vec<&Pod> = wanted.filter(|pod| lasts(cluster, now, patience, pod)).collect();
    if !wanted.is_empty() {
        return wanted;
    }
    // A finished one is not created again, and never healthy.
    let stays = |pod: &&Pod| (pod.finished() && !pod.terminating()) || lasts(cluster, now, patience, pod);
    let surplus = surplus.into_iter().map(|(_, pod)| pod).filter(stays).enumerate();
    surplus.filter(|(at, pod)| *at > 0 || pod.terminating()).map(|(_, pod)| pod).collect()
}
