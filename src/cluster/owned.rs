//! Which pods an owner has, without a walk over all pods.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Cluster, Pod, PodKey, Text, Workload};

/// Pods by the uid of their controller, and ReplicaSets by that of their Deployment.
#[derive(Debug, Default, Clone)]
pub(super) struct Owned {
    pods: HashMap<Text, BTreeSet<PodKey>>,
    sets: HashMap<Text, BTreeSet<Text>>,
}

impl Owned {
    /// A pod is new, or its controller has changed.
    pub(super) fn pod_changes(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        let owner = |pod: Option<&Pod>| pod.and_then(|pod| pod.owner.as_ref()).map(|owner| owner.uid.clone());
        let (before, after) = (owner(old), owner(new));
        if before == after {
            return;
        }
        if let (Some(old), Some(uid)) = (old, before)
            && let Some(pods) = self.pods.get_mut(&uid)
        {
            pods.remove(&old.key());
            if pods.is_empty() {
                self.pods.remove(&uid);
            }
        }
        if let (Some(new), Some(uid)) = (new, after) {
            self.pods.entry(uid).or_default().insert(new.key());
        }
    }

    /// A workload is new or has changed.
    pub(super) fn workload_comes(&mut self, old: Option<&Workload>, new: &Workload) {
        if let Some(old) = old.filter(|old| old.owner != new.owner) {
            self.workload_goes(old);
        }
        if let Some(owner) = &new.owner {
            self.sets.entry(owner.uid.clone()).or_default().insert(new.uid.clone());
        }
    }

    /// A workload is gone.
    pub(super) fn workload_goes(&mut self, old: &Workload) {
        let Some(owner) = &old.owner else { return };
        if let Some(sets) = self.sets.get_mut(&owner.uid) {
            sets.remove(&old.uid);
            if sets.is_empty() {
                self.sets.remove(&owner.uid);
            }
        }
    }
}

impl Cluster {
    /// The pods of an owner by its uid, those of a Deployment's ReplicaSets too.
    pub fn pods_of<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
        let sets = self.owned.sets.get(owner).into_iter().flatten();
        let own = self.owned.pods.get(owner);
        let keys = own.into_iter().chain(sets.filter_map(|set| self.owned.pods.get(set))).flatten();
        keys.filter_map(|key| self.pod(key))
    }

    /// The ReplicaSets of a Deployment by its uid.
    pub fn replica_sets_of<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Arc<Workload>> {
        self.owned.sets.get(owner).into_iter().flatten().filter_map(|uid| self.workload(uid))
    }
}
