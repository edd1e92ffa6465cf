//! The owners behind a budget's pods, as messages name them.

use super::case::Case;
use super::words;
use crate::cluster::{Cluster, OwnerRef, Pdb, Pod, Scale, Text};

/// An owner of pods that a budget selects.
pub(super) struct Owner<'e> {
    pub(super) kind: Text,
    pub(super) name: Text,
    /// How many pods it wants, where that is known.
    pub(super) replicas: Option<i32>,
    pub(super) uid: Text,
    /// Its pods that the budget selects, by name.
    pub(super) pods: Vec<&'e Pod>,
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
            None => self.name(),
        }
    }
    /// Pods that are neither finished nor terminating.
    pub(super) fn present(&self) -> usize {
        self.pods.iter().filter(|pod| !pod.finished() && !pod.terminating()).count()
    }
}

/// The owners of the pods a budget selects, and the pods that have none.
pub(super) fn of_budget<'e>(case: &Case<'e>, budget: &'e Pdb) -> (Vec<Owner<'e>>, Vec<&'e Pod>) {
    let (mut owners, mut bare) = (Vec::<Owner<'e>>::new(), Vec::new());
    for pod in case.selected(budget) {
        let Some(reference) = &pod.owner else {
            bare.push(pod);
            continue;
        };
        let owner = describe(case.cluster, reference);
        if let Some(known) = owners.iter_mut().find(|known| known.uid == owner.uid) {
            known.pods.push(pod);
        } else {
            owners.push(Owner { pods: vec![pod], ..owner });
        }
    }
    owners.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    (owners, bare)
}

/// A ReplicaSet of a Deployment is called by the Deployment's name: that is what people wrote.
fn describe<'e>(cluster: &Cluster, reference: &OwnerRef) -> Owner<'e> {
    let workload = cluster.workload(&reference.uid);
    let deployment = workload
        .and_then(|workload| workload.owner.as_ref())
        .and_then(|owner| cluster.workload(&owner.uid).map(|deployment| (owner, deployment)));
    let (reference, workload) = match deployment {
        Some((owner, deployment)) => (&**owner, Some(deployment)),
        None => (reference, workload),
    };
    let replicas = match (workload, cluster.scale(&reference.uid)) {
        (Some(workload), _) => Some(workload.replicas),
        (None, Some(Scale::Replicas { replicas, .. })) => Some(*replicas),
        _ => None,
    };
    Owner {
        kind: reference.kind.clone(),
        name: reference.name.clone(),
        replicas,
        uid: reference.uid.clone(),
        pods: Vec::new(),
    }
}
