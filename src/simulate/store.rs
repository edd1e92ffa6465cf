//! The truth: the objects as the API server keeps them, and what has just happened to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::DrainPlan;
use crate::cluster::{
    BudgetKey, Cluster, DaemonSet, Deletion, Job, Namespace, Node, Object, Pdb, Pod, PodKey, PodPhase, Text,
    VolumeAttachment, Workload,
};

/// A change of one object, as a watch brings it.
#[derive(Debug, Clone)]
pub enum Happened {
    /// An object is new or has changed.
    Applied(Arc<Object>),
    /// An object is gone.
    Deleted(Arc<Object>),
    /// A plan is new or has changed.
    PlanApplied(Arc<DrainPlan>),
    /// A plan is gone.
    PlanDeleted(Arc<DrainPlan>),
}

/// The objects of the API server, each written with a new resourceVersion.
#[derive(Debug, Default)]
pub struct Store {
    cluster: Cluster,
    plans: BTreeMap<String, Arc<DrainPlan>>,
    namespaces: BTreeSet<Text>,
    version: u64,
    born: u64,
    written: u64,
    happened: Vec<Happened>,
}

impl Store {
    /// What there is, without the plans.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }
    /// The plans, by name.
    pub fn plans(&self) -> impl Iterator<Item = &Arc<DrainPlan>> {
        self.plans.values()
    }
    /// The plan of that name.
    #[must_use]
    pub fn plan(&self, name: &str) -> Option<&Arc<DrainPlan>> {
        self.plans.get(name)
    }
    /// All pods, in order.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.namespaces.iter().flat_map(|namespace| self.cluster.pods_in(namespace))
    }
    /// All namespaces, in order.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.namespaces.iter().filter_map(|name| self.cluster.namespace(name).map(AsRef::as_ref))
    }
    /// All budgets, in order.
    pub fn budgets(&self) -> impl Iterator<Item = &Arc<Pdb>> {
        self.namespaces.iter().flat_map(|namespace| self.cluster.budgets_in(namespace))
    }
    /// How much was ever written.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version + self.written
    }
    /// What has happened since this was asked last.
    pub fn take_happened(&mut self) -> Vec<Happened> {
        std::mem::take(&mut self.happened)
    }

    /// A resourceVersion that no object has had before.
    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }
    /// A uid that no object has had before.
    pub fn new_uid(&mut self, of: &str) -> Text {
        self.born += 1;
        format!("{of}-{}", self.born).into()
    }

    fn applied(&mut self, object: Object) {
        self.written += 1;
        self.happened.push(Happened::Applied(Arc::new(object)));
    }
    fn deleted(&mut self, object: Object) {
        self.written += 1;
        self.happened.push(Happened::Deleted(Arc::new(object)));
    }

    /// Creates or replaces a namespace.
    pub fn put_namespace(&mut self, name: &str) {
        if self.namespaces.insert(name.into()) {
            let namespace = Namespace { name: name.into(), ..Namespace::default() };
            self.cluster.apply_namespace(namespace.clone());
            self.applied(Object::Namespace(namespace));
        }
    }

    /// Creates or replaces a node.
    pub fn put_node(&mut self, mut node: Node) {
        node.resource_version = self.next_version().into();
        self.cluster.apply_node(node.clone());
        self.applied(Object::Node(node));
    }
    /// Changes a node, if it is there and the change is one.
    pub fn edit_node(&mut self, name: &str, edit: impl FnOnce(&mut Node)) {
        let Some(old) = self.cluster.node(name).cloned() else { return };
        let mut node = Node::clone(&old);
        edit(&mut node);
        if node != *old {
            self.put_node(node);
        }
    }
    /// Deletes a node.
    pub fn delete_node(&mut self, name: &str) {
        let Some(old) = self.cluster.node(name).cloned() else { return };
        self.cluster.delete_node(name);
        self.deleted(Object::Node(Node::clone(&old)));
    }

    /// Creates or replaces a pod.
    pub fn put_pod(&mut self, pod: Pod) {
        self.cluster.apply_pod(pod.clone());
        self.applied(Object::Pod(pod));
    }
    /// Changes a pod, if it is there and the change is one.
    pub fn edit_pod(&mut self, key: &PodKey, edit: impl FnOnce(&mut Pod)) {
        let Some(old) = self.cluster.pod(key).cloned() else { return };
        let mut pod = Pod::clone(&old);
        edit(&mut pod);
        if pod != *old {
            self.put_pod(pod);
        }
    }
    /// A pod by uid; its key alone might be that of a pod reborn under its name.
    #[must_use]
    pub fn pod_of(&self, key: &PodKey, uid: &str) -> Option<&Arc<Pod>> {
        self.cluster.pod(key).filter(|pod| &*pod.uid == uid)
    }
    /// The pod's object goes, unless finalizers keep it.
    pub fn end_pod(&mut self, key: &PodKey, now: Timestamp) {
        let Some(old) = self.cluster.pod(key).cloned() else { return };
        if old.finalizers.is_empty() {
            self.cluster.delete_pod(key);
            self.deleted(Object::Pod(Pod::clone(&old)));
            return;
        }
        self.edit_pod(key, |pod| {
            pod.ready = false;
            let cut_short = pod.deletion.map_or(!pod.finished(), |deletion| deletion.cut_short);
            pod.deletion = Some(Deletion { at: whole_second(now), grace_seconds: 0, cut_short });
            if pod.node.is_some() && !pod.finished() {
                pod.phase = PodPhase::Failed;
            }
        });
    }
    /// Deletes a pod as the server does: at once where no kubelet has a say, else with its grace period.
    pub fn delete_pod(&mut self, key: &PodKey, grace_seconds: i64, now: Timestamp) {
        let Some(pod) = self.cluster.pod(key).cloned() else { return };
        if pod.node.is_none() || pod.finished() || grace_seconds == 0 {
            self.end_pod(key, now);
            return;
        }
        // A second deletion can only shorten the first.
        let until = whole_second(now) + jiff::SignedDuration::from_secs(grace_seconds);
        if pod.deletion.is_none_or(|deletion| until < deletion.at) {
            self.edit_pod(key, |pod| {
                pod.deletion = Some(Deletion { at: until, grace_seconds, cut_short: true });
            });
        }
    }

    /// Creates or replaces a budget.
    pub fn put_budget(&mut self, mut budget: Pdb) {
        budget.resource_version = self.next_version().into();
        self.put_namespace(&budget.namespace.clone());
        self.cluster.apply_budget(budget.clone());
        self.applied(Object::Pdb(budget));
    }
    /// Deletes a budget.
    pub fn delete_budget(&mut self, key: &BudgetKey) {
        let Some(old) = self.cluster.budget(key).cloned() else { return };
        self.cluster.delete_budget(key);
        self.deleted(Object::Pdb(Pdb::clone(&old)));
    }

    /// Creates or replaces a workload.
    pub fn put_workload(&mut self, workload: Workload) {
        self.cluster.apply_workload(workload.clone());
        self.applied(Object::Workload(workload));
    }
    /// Changes a workload, if it is there.
    pub fn edit_workload(&mut self, uid: &str, edit: impl FnOnce(&mut Workload)) {
        let Some(old) = self.cluster.workload(uid).cloned() else { return };
        let mut workload = Workload::clone(&old);
        edit(&mut workload);
        if workload != *old {
            self.put_workload(workload);
        }
    }
    /// Creates or replaces a DaemonSet.
    pub fn put_daemon_set(&mut self, set: DaemonSet) {
        self.cluster.apply_daemon_set(set.clone());
        self.applied(Object::DaemonSet(set));
    }
    /// Creates or replaces a Job.
    pub fn put_job(&mut self, job: Job) {
        self.cluster.apply_job(job.clone());
        self.applied(Object::Job(job));
    }
    /// Creates an attachment.
    pub fn attach(&mut self, attachment: VolumeAttachment) {
        self.cluster.volumes.attach(attachment.clone());
        self.applied(Object::VolumeAttachment(attachment));
    }
    /// Deletes an attachment.
    pub fn detach(&mut self, name: &str) {
        let Some(old) = self.cluster.volumes.attachment(name).cloned() else { return };
        self.cluster.volumes.detach(name);
        self.deleted(Object::VolumeAttachment(old));
    }
    /// All attachments, in order.
    #[must_use]
    pub fn attachments(&self) -> Vec<VolumeAttachment> {
        let mut attachments: Vec<_> = self.cluster.volumes.attachments().cloned().collect();
        attachments.sort_by(|a, b| a.name.cmp(&b.name));
        attachments
    }
    /// What `*/scale` of an owner that is not watched answers.
    pub fn put_scale(&mut self, owner: &Text, scale: crate::cluster::Scale) {
        self.written += 1;
        self.cluster.record_scale(owner.clone(), scale);
    }

    /// Creates or replaces a plan; one that is deleted and has no finalizer any more goes.
    pub fn put_plan(&mut self, mut plan: DrainPlan) -> Arc<DrainPlan> {
        plan.metadata.resource_version = Some(self.next_version());
        let name = plan.metadata.name.clone().unwrap_or_default();
        let held = plan.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
        let over = plan.metadata.deletion_timestamp.is_some() && !held;
        let plan = Arc::new(plan);
        if over {
            self.plans.remove(&name);
            self.happened.push(Happened::PlanDeleted(Arc::clone(&plan)));
        } else {
            self.plans.insert(name, Arc::clone(&plan));
            self.happened.push(Happened::PlanApplied(Arc::clone(&plan)));
        }
        plan
    }
}

/// Times in metadata have whole seconds.
pub fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
