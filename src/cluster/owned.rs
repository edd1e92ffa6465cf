//! Which pods an owner has, without a walk over all pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Cluster, Pod, PodKey, Text, Workload, leave};

/// Pods by the uid of their controller, and ReplicaSets by that of their Deployment.
#[derive(Debug, Default, Clone)]
pub(super) struct Owned {
    pods: HashMap<Text, BTreeMap<PodKey, Arc<Pod>>>,
    sets: HashMap<Text, BTreeSet<Text>>,
}

impl Owned {
    /// A pod is new, has changed or is gone.
    pub(super) fn pod_changes(&mut self, old: Option<&Pod>, new: Option<&Arc<Pod>>) {
        let (before, after) = (old.and_then(owner), new.and_then(|new| owner(new)));
        if let (Some(old), Some(uid)) = (old, before.filter(|uid| Some(*uid) != after)) {
            leave(&mut self.pods, uid, &old.key());
        }
        if let (Some(new), Some(uid)) = (new, after) {
            self.pods.entry(uid.clone()).or_default().insert(new.key(), Arc::clone(new));
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

fn owner(pod: &Pod) -> Option<&Text> {
    pod.owner.as_ref().map(|owner| &owner.uid)
}

impl Cluster {
    /// The pods of an owner by its uid, those of a Deployment's ReplicaSets too.
    pub fn pods_of<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
        // A ReplicaSet may claim to be its own.
        let sets = self.owned.sets.get(owner).into_iter().flatten().filter(move |set| &***set != owner);
        let own = self.owned.pods.get(owner);
        own.into_iter().chain(sets.filter_map(|set| self.owned.pods.get(set))).flat_map(BTreeMap::values)
    }

    /// The ReplicaSets of a Deployment by its uid.
    pub fn replica_sets_of<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Arc<Workload>> {
        self.owned.sets.get(owner).into_iter().flatten().filter_map(|uid| self.workload(uid))
    }
}
