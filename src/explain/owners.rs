//! The owners behind a budget's pods, as messages name them.

use std::sync::Arc;

use super::words;
use crate::budget;
use crate::cluster::{Cluster, OwnerRef, Pdb, Pod, Scale, Text, Workload};

/// An owner of pods that a budget selects.
pub(super) struct Owner<'a> {
    pub(super) kind: Text,
    pub(super) name: Text,
    pub(super) uid: Text,
    /// How many pods it wants, where that is known.
    pub(super) replicas: Option<i32>,
    /// How many it wants could not be read.
    pub(super) unread: bool,
    /// Why it cannot create pods, in its own words.
    pub(super) failure: Option<&'a Text>,
    /// Its pods that the budget selects, by name.
    pub(super) pods: Vec<&'a Pod>,
}

impl Owner<'_> {
    /// `Deployment web`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
    /// `Deployment web (3 replicas)`.
    pub(super) fn with_replicas(&self) -> String {
        match self.replicas {
            Some(replicas) => format!("{} ({})", self.name(), words::count(replicas, "replica")),
            // Without a scale only the pods that are there count.
            None => format!("{} (no scale; {} here)", self.name(), words::count(self.pods.len(), "pod")),
        }
    }
    /// Who creates and deletes its pods.
    pub(super) fn run_by(&self, cluster: &Cluster) -> String {
        run_by(cluster, &self.uid, &self.name())
    }
    /// The same, and that the budget leaves some of its pods out.
    pub(super) fn with_replicas_selected(&self, cluster: &Cluster, budget: &Pdb) -> String {
        let selected = self.pods.iter().filter(|pod| !pod.finished()).count();
        let leaves_out = |of: &&Arc<Workload>| {
            !budget.selects(&of.template_labels)
                && usize::try_from(of.replicas).is_ok_and(|replicas| selected < replicas)
        };
        match cluster.workload(&self.uid).filter(leaves_out) {
            Some(workload) => {
                let (own, wants) = (self.name(), words::count(workload.replicas, "replica"));
                format!("{own} ({wants}, of which the budget selects {selected})")
            }
            None => self.with_replicas(),
        }
    }
    /// The budget selects fewer of its pods than it wants: only then they are worth counting.
    pub(super) fn may_lack_pods(&self) -> bool {
        let alive = self.pods.iter().filter(|pod| !pod.finished() && !pod.terminating()).count();
        self.replicas.and_then(|replicas| usize::try_from(replicas).ok()).is_some_and(|wants| alive < wants)
    }
    /// How many pods it has and how many it wants, when it has fewer. Finished and terminating ones do not count,
    /// those that the budget does not select do.
    pub(super) fn shortage(&self, cluster: &Cluster) -> Option<Shortage> {
        let namespace = &self.pods.first()?.namespace;
        let wants = usize::try_from(self.replicas?).ok()?;
        let has = alive(cluster, namespace, &self.uid).count();
        (has < wants).then_some(Shortage { has, wants })
    }
}

/// An owner has fewer pods than it wants.
#[derive(Clone, Copy)]
pub(super) struct Shortage {
    has: usize,
    wants: usize,
}

impl Shortage {
    pub(super) fn lacking(self) -> usize {
        self.wants.saturating_sub(self.has)
    }
    /// `Deployment web has 2 of 3 pods`.
    pub(super) fn of(self, owner: &Owner<'_>) -> String {
        format!("{} has {} of {} pods", owner.name(), self.has, self.wants)
    }
}

/// The pods of an owner that are neither finished nor going, whatever budget selects them.
pub(super) fn alive<'a>(
    cluster: &'a Cluster,
    namespace: &'a Text,
    owner: &str,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    let here = cluster.pods_of(owner).filter(move |pod| pod.namespace == *namespace);
    here.filter(|pod| !pod.finished() && !pod.terminating())
}

/// Who creates and deletes the pods of an owner.
pub(super) fn run_by(cluster: &Cluster, uid: &Text, name: &str) -> String {
    if cluster.workload(uid).is_some() || cluster.job(uid).is_some() {
        return "kube-controller-manager".to_owned();
    }
    format!("the controller of {name}")
}

/// The owners of the pods a budget selects, and the pods that have none.
pub(super) fn of_budget<'a>(cluster: &'a Cluster, budget: &'a Pdb) -> (Vec<Owner<'a>>, Vec<&'a Pod>) {
    let (mut owners, mut bare) = (Vec::<Owner<'a>>::new(), Vec::new());
    for pod in budget::selected(cluster, budget) {
        let Some(reference) = pod.owner.as_deref() else {
            bare.push(&**pod);
            continue;
        };
        let (top, workload) = top(cluster, reference);
        if let Some(known) = owners.iter_mut().find(|known| known.uid == top.uid) {
            known.pods.push(pod);
        } else {
            let failure = cluster.workload(&reference.uid).and_then(|of| of.replica_failure.as_ref());
            owners.push(Owner {
                kind: top.kind.clone(),
                name: top.name.clone(),
                uid: top.uid.clone(),
                replicas: replicas(cluster, top, workload),
                unread: budget::wants(cluster, top) == budget::Wants::Unknown,
                failure: workload.and_then(|workload| workload.replica_failure.as_ref()).or(failure),
                pods: vec![pod],
            });
        }
    }
    owners.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    (owners, bare)
}

/// A ReplicaSet of a Deployment stands for the Deployment: that is what people wrote.
fn top<'a>(cluster: &'a Cluster, reference: &'a OwnerRef) -> (&'a OwnerRef, Option<&'a Workload>) {
    let workload = cluster.workload(&reference.uid).map(AsRef::as_ref);
    let above = workload.and_then(|workload| workload.owner.as_deref());
    match above.and_then(|above| cluster.workload(&above.uid).map(|deployment| (above, deployment))) {
        Some((above, deployment)) => (above, Some(deployment)),
        None => (reference, workload),
    }
}

/// What people know an owner by: `Deployment web` for each of its ReplicaSets.
pub(super) fn known_as(cluster: &Cluster, owner: &OwnerRef) -> String {
    let (top, _) = top(cluster, owner);
    format!("{} {}", top.kind, top.name)
}

/// How many pods an owner wants.
fn replicas(cluster: &Cluster, owner: &OwnerRef, workload: Option<&Workload>) -> Option<i32> {
    match (workload, cluster.scale(&owner.uid)) {
        (Some(workload), _) => Some(workload.replicas),
        (None, Some(Scale::Replicas { replicas, .. })) => Some(*replicas),
        _ => None,
    }
}

/// Why an owner creates no pod, in its own words or those of its ReplicaSets.
pub(super) fn failure<'a>(cluster: &'a Cluster, owner: &OwnerRef) -> Option<&'a str> {
    let own = cluster.workload(&owner.uid).and_then(|of| of.replica_failure.as_deref());
    own.or_else(|| cluster.replica_sets_of(&owner.uid).filter_map(|set| set.replica_failure.as_deref()).min())
}
