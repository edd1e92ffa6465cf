//! What is observed: nodes, pods, budgets and owners as small structs with shared strings.
//!
//! The same functions fill a [`Cluster`] from watch events and from files, so that live and offline answers are
//! equal. Nothing here decides; nothing here reads a clock or talks to a server.

mod evictions;
mod files;
mod interner;
mod labels;
mod objects;
mod observe;
mod oddities;
mod owned;
mod pdb;
mod placement;
pub mod planted;
mod pod;
mod rights;
mod scaleless;
mod selected;
#[cfg(test)]
mod tests;
mod volumes;
mod wire;
mod workload;

pub use evictions::{Evictions, InFlight, Refusal, Uncounted};
pub use files::{FileError, Files, Notes, read_text, yaml_documents};
pub use labels::{Labels, Operator, Requirement, Selector, Text};
pub use objects::{Namespace, Node, Taint};
pub use observe::{BadObject, Change, Effect, older};
pub use oddities::{Oddities, Oddity};
pub use pdb::{Amount, BudgetKey, Pdb, PdbStatus, UnhealthyPolicy};
pub use placement::{NodeTerm, Placement, Toleration};
pub use pod::{ContainerTrouble, Deletion, OwnerRef, Pod, PodKey, PodPhase, Protection, RestartPolicy};
pub use rights::{Right, Rights};
pub use scaleless::{DaemonSet, Job};
pub use volumes::{PersistentVolume, VolumeAttachment, Volumes};
pub use wire::{Kind, Object, ObjectKind, Raw, Watched, kinds};
pub use workload::{Ordinals, Scale, Workload, WorkloadKind};

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use interner::Interner;
use observe::Progress;
use owned::Owned;
use selected::Selected;

/// Everything the decisions read, as last observed. Cheap to query by node and by budget.
#[derive(Debug, Default, Clone)]
pub struct Cluster {
    nodes: BTreeMap<Text, Arc<Node>>,
    /// There are nodes that are not among them.
    misses_nodes: bool,
    /// There are owners of pods that are not among these.
    misses_owners: bool,
    namespaces: HashMap<Text, Arc<Namespace>>,
    pods: HashMap<PodKey, Arc<Pod>>,
    /// The same pods once more, in order: a budget looks at all those of its namespace.
    pods_by_namespace: HashMap<Text, BTreeMap<PodKey, Arc<Pod>>>,
    pods_by_node: HashMap<Text, BTreeMap<PodKey, Arc<Pod>>>,
    owned: Owned,
    selected: Selected,
    /// By namespace and name.
    budgets: HashMap<Text, BTreeMap<Text, Arc<Pdb>>>,
    /// By uid.
    workloads: HashMap<Text, Arc<Workload>>,
    /// By uid.
    daemon_sets: HashMap<Text, DaemonSet>,
    /// By uid.
    jobs: HashMap<Text, Job>,
    /// By the uid of the owner.
    scales: HashMap<Text, Scale>,
    /// Volumes and what they are attached to.
    pub volumes: Volumes,
    strings: Interner,
    progress: Progress,
    /// Evictions sent and not yet seen in a budget, and the last refusal of each pod: kept by whoever acts.
    pub evictions: Evictions,
    /// Since when things are seen that should pass by themselves: kept by whoever acts.
    pub oddities: Oddities,
    /// Whether pods may be evicted at all: what the server has answered whoever acts.
    pub rights: Rights,
}

impl Cluster {
    /// An empty cluster.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    // --- changes, one object at a time ---

    /// From now on there may be nodes that are not known: files lack some, or whoever looks may not list them.
    pub fn miss_nodes(&mut self) {
        self.misses_nodes = true;
    }
    /// From now on there may be owners that are not known: nobody is asked, and files may lack them.
    pub fn miss_owners(&mut self) {
        self.misses_owners = true;
    }
    /// Adds or replaces a node.
    pub fn apply_node(&mut self, node: Node) {
        self.nodes.insert(node.name.clone(), Arc::new(node));
    }
    /// Forgets a node.
    pub fn delete_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }
    /// Adds or replaces a namespace.
    pub fn apply_namespace(&mut self, namespace: Namespace) {
        self.namespaces.insert(namespace.name.clone(), Arc::new(namespace));
    }
    /// Forgets a namespace.
    pub fn delete_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }
    /// Adds or replaces a pod; a pod reborn under the same name replaces the old one.
    pub fn apply_pod(&mut self, pod: Pod) {
        let (key, pod) = (pod.key(), Arc::new(pod));
        if pod.terminating() {
            self.evictions.seen_going(&pod.uid);
        }
        let old = self.pods.insert(key.clone(), pod.clone());
        self.owned.pod_changes(old.as_deref(), Some(&pod));
        let budgets = at(&self.budgets, &key.namespace);
        self.selected.pod_changes(budgets, old.as_deref(), Some(&pod));
        if let Some(old) = &old
            && old.uid != pod.uid
        {
            self.evictions.seen_going(&old.uid);
        }
        if let Some(node) = &pod.node
            && old.as_ref().is_none_or(|old| old.uid != pod.uid || old.node != pod.node)
        {
            self.evictions.seen_arriving(node);
        }
        if let Some(old) = old.filter(|old| old.node != pod.node) {
            self.leave_node(&old);
        }
        let of_namespace = self.pods_by_namespace.entry(key.namespace.clone()).or_default();
        of_namespace.insert(key.clone(), Arc::clone(&pod));
        if let Some(node) = &pod.node {
            self.pods_by_node.entry(node.clone()).or_default().insert(key, pod);
        }
    }
    /// Forgets a pod.
    pub fn delete_pod(&mut self, key: &PodKey) {
        let Some(old) = self.pods.remove(key) else { return };
        leave(&mut self.pods_by_namespace, &key.namespace, key);
        self.leave_node(&old);
        self.owned.pod_changes(Some(&old), None);
        let budgets = at(&self.budgets, &key.namespace);
        self.selected.pod_changes(budgets, Some(&old), None);
        self.evictions.seen_going(&old.uid);
    }
    /// Adds or replaces a budget, and settles the evictions in flight that its status now shows.
    pub fn apply_budget(&mut self, budget: Pdb) {
        self.evictions.seen_in(&budget);
        if self.budget(&budget.key()).is_none_or(|known| known.selector != budget.selector) {
            self.selected.budget_comes(&budget, at(&self.pods_by_namespace, &budget.namespace));
        }
        self.budgets
            .entry(budget.namespace.clone())
            .or_default()
            .insert(budget.name.clone(), Arc::new(budget));
    }
    /// Forgets a budget.
    pub fn delete_budget(&mut self, key: &BudgetKey) {
        self.selected.budget_goes(key);
        if let Some(of_namespace) = self.budgets.get_mut(&key.namespace) {
            of_namespace.remove(&key.name);
            if of_namespace.is_empty() {
                self.budgets.remove(&key.namespace);
            }
        }
    }
    /// Adds or replaces a workload (an owner with a scale that is watched).
    pub fn apply_workload(&mut self, workload: Workload) {
        self.owned.workload_comes(self.workloads.get(&workload.uid).map(AsRef::as_ref), &workload);
        self.workloads.insert(workload.uid.clone(), Arc::new(workload));
    }
    /// Forgets a workload.
    pub fn delete_workload(&mut self, uid: &str) {
        if let Some(old) = self.workloads.remove(uid) {
            self.owned.workload_goes(&old);
        }
    }
    /// Records what `*/scale` of an owner that is not watched answered.
    pub fn record_scale(&mut self, owner_uid: Text, scale: Scale) {
        self.scales.insert(owner_uid, scale);
    }

    /// Forgets what an owner's scale was: it will be asked again when it is needed.
    pub fn forget_scale(&mut self, owner_uid: &str) {
        self.scales.remove(owner_uid);
    }
    /// Forgets the scales of owners that no pod has any longer.
    pub fn sweep_scales(&mut self) {
        let in_use: HashSet<&Text> = self.pods().filter_map(|pod| Some(&pod.owner.as_ref()?.uid)).collect();
        let unused: Vec<Text> = self.scales.keys().filter(|uid| !in_use.contains(uid)).cloned().collect();
        for uid in unused {
            self.scales.remove(&uid);
        }
    }
    /// Adds or replaces a DaemonSet. Pods of one that was never added count as left behind by it.
    pub fn apply_daemon_set(&mut self, daemon_set: DaemonSet) {
        self.daemon_sets.insert(daemon_set.uid.clone(), daemon_set);
    }
    /// Forgets a DaemonSet.
    pub fn delete_daemon_set(&mut self, uid: &str) {
        self.daemon_sets.remove(uid);
    }
    /// Adds or replaces a Job.
    pub fn apply_job(&mut self, job: Job) {
        self.jobs.insert(job.uid.clone(), job);
    }
    /// Forgets a Job.
    pub fn delete_job(&mut self, uid: &str) {
        self.jobs.remove(uid);
    }

    fn leave_node(&mut self, pod: &Pod) {
        if let Some(node) = &pod.node {
            leave(&mut self.pods_by_node, node, &pod.key());
        }
    }

    // --- questions ---

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }
    /// Whether a node that is not found here does not exist.
    #[must_use]
    pub fn knows_all_nodes(&self) -> bool {
        !self.misses_nodes
    }
    /// The node of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }
    /// Whether the pod's node is known not to be Ready: nothing on it becomes Ready either.
    #[must_use]
    pub fn node_is_ill(&self, pod: &Pod) -> bool {
        let node = pod.node.as_ref().and_then(|name| self.node(name));
        node.is_some_and(|node| &*node.ready != "True")
    }
    /// The namespace of that name.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.namespaces.get(name)
    }
    /// The pod of that name.
    #[must_use]
    pub fn pod(&self, key: &PodKey) -> Option<&Arc<Pod>> {
        self.pods.get(key)
    }
    /// All pods, in no order.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.values()
    }
    /// The pods bound to a node, by namespace and name.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &Arc<Pod>> {
        at(&self.pods_by_node, node)
    }
    /// The pods of a namespace, by name.
    pub fn pods_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<Pod>> {
        at(&self.pods_by_namespace, namespace)
    }
    /// All budgets, in no order of namespaces.
    pub fn budgets(&self) -> impl Iterator<Item = &Arc<Pdb>> {
        self.budgets.values().flat_map(BTreeMap::values)
    }
    /// The budgets of a namespace, by name.
    pub fn budgets_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<Pdb>> {
        at(&self.budgets, namespace)
    }
    /// The budget of that name.
    #[must_use]
    pub fn budget(&self, key: &BudgetKey) -> Option<&Arc<Pdb>> {
        self.budgets.get(&key.namespace).and_then(|budgets| budgets.get(&key.name))
    }
    /// The budgets whose selector matches the pod, by name: our own match, as the server's own.
    pub fn budgets_of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<Pdb>> {
        self.budgets_in(&pod.namespace).filter(|budget| budget.selects(&pod.labels))
    }
    /// The watched workload of that uid.
    #[must_use]
    pub fn workload(&self, uid: &str) -> Option<&Arc<Workload>> {
        self.workloads.get(uid)
    }
    /// The watched workloads, in no order.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.workloads.values()
    }
    /// The DaemonSet of that uid.
    #[must_use]
    pub fn daemon_set(&self, uid: &str) -> Option<&DaemonSet> {
        self.daemon_sets.get(uid)
    }
    /// Whether there is a DaemonSet of that name, whatever its uid: what kubectl drain asks
    /// (`pkg/drain/filters.go: daemonSetFilter`).
    #[must_use]
    pub fn daemon_set_exists(&self, namespace: &str, name: &str) -> bool {
        // Files without any say nothing about them.
        let unknown = self.misses_owners && self.daemon_sets.is_empty();
        unknown || self.daemon_sets.values().any(|of| &*of.namespace == namespace && &*of.name == name)
    }
    /// Whether a workload that is not found here may exist all the same: files may lack it, unless they have another one
    /// of its name.
    #[must_use]
    pub fn may_exist(&self, namespace: &str, kind: WorkloadKind, name: &str) -> bool {
        let same = |of: &Workload| &*of.namespace == namespace && of.kind == kind && &*of.name == name;
        self.misses_owners && !self.workloads.values().any(|of| same(of))
    }
    /// The Job of that uid.
    #[must_use]
    pub fn job(&self, uid: &str) -> Option<&Job> {
        self.jobs.get(uid)
    }
    /// What `*/scale` of an owner that is not watched answered, when it was asked.
    #[must_use]
    pub fn scale(&self, owner_uid: &str) -> Option<&Scale> {
        self.scales.get(owner_uid)
    }
}

/// What an index holds at a place, in order.
fn at<'a, K, V>(
    index: &'a HashMap<Text, BTreeMap<K, V>>,
    place: &str,
) -> impl Iterator<Item = &'a V> + use<'a, K, V> {
    index.get(place).into_iter().flat_map(BTreeMap::values)
}

/// Takes a pod out of an index, and its place with it when that is empty.
fn leave(index: &mut HashMap<Text, BTreeMap<PodKey, Arc<Pod>>>, place: &Text, key: &PodKey) {
    if let Some(pods) = index.get_mut(place) {
        pods.remove(key);
        if pods.is_empty() {
            index.remove(place);
        }
    }
}
