//! The controllers that create pods again: Deployments, ReplicaSets, StatefulSets, Jobs, DaemonSets and custom ones.

use std::sync::Arc;

use super::kubelet::PodState;
use super::setup::{OwnerKind, WorkloadSetup};
use super::store::whole_second;
use super::world::{Event, World};
use crate::cluster::{
    DaemonSet, Job, Labels, Node, Object, Operator, Ordinals, OwnerRef, Placement, Pod, PodKey, PodPhase,
    Requirement, RestartPolicy, Scale, Selector, Text, Toleration, Workload, WorkloadKind,
};

/// A workload and its controller.
#[derive(Debug)]
pub struct Owner {
    setup: WorkloadSetup,
    /// What its pods name as their controller.
    reference: Option<Arc<OwnerRef>>,
    /// A Deployment's uid; its pods name its ReplicaSet.
    deployment: Option<Text>,
    template: Arc<super::setup::Template>,
    /// How many pods it has created.
    created: u64,
}

impl World {
    /// Creates a workload; its controller creates the pods.
    pub fn add_workload(&mut self, setup: WorkloadSetup) {
        let key = setup.key();
        self.store.put_namespace(&setup.namespace);
        let (reference, deployment) = self.create_owner(&setup);
        let nobody = matches!(setup.kind, OwnerKind::Nobody | OwnerKind::Kubelet);
        let template = Arc::new(setup.template.clone());
        let replicas = setup.replicas;
        self.owners.insert(key.clone(), Owner { setup, reference, deployment, template, created: 0 });
        if nobody {
            for _ in 0..replicas {
                self.create_pod(&key, None, None);
            }
        }
        self.react();
        self.owner_due(&key);
    }

    fn create_owner(&mut self, setup: &WorkloadSetup) -> (Option<Arc<OwnerRef>>, Option<Text>) {
        let (namespace, name): (Text, Text) = (setup.namespace.as_str().into(), setup.name.as_str().into());
        let uid = self.store.new_uid(&setup.name);
        let reference = |api_version: &str, kind: &str, name: &Text, uid: &Text| {
            Arc::new(OwnerRef {
                api_version: api_version.into(),
                kind: kind.into(),
                name: name.clone(),
                uid: uid.clone(),
            })
        };
        let workload = |kind: WorkloadKind, name: &Text, uid: &Text, owner: Option<Arc<OwnerRef>>| Workload {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            replicas: setup.replicas,
            owner,
            template_labels: labels(&setup.template.labels),
            replica_failure: None,
            ordinals: Ordinals::default(),
        };
        match setup.kind {
            OwnerKind::Deployment => {
                self.store.put_workload(workload(WorkloadKind::Deployment, &name, &uid, None));
                let owner = reference("apps/v1", "Deployment", &name, &uid);
                let set_name: Text = format!("{name}-5d4f").into();
                let set_uid = self.store.new_uid(&set_name);
                self.store.put_workload(workload(WorkloadKind::ReplicaSet, &set_name, &set_uid, Some(owner)));
                (Some(reference("apps/v1", "ReplicaSet", &set_name, &set_uid)), Some(uid))
            }
            OwnerKind::ReplicaSet => {
                self.store.put_workload(workload(WorkloadKind::ReplicaSet, &name, &uid, None));
                (Some(reference("apps/v1", "ReplicaSet", &name, &uid)), None)
            }
            OwnerKind::StatefulSet { .. } => {
                self.store.put_workload(workload(WorkloadKind::StatefulSet, &name, &uid, None));
                (Some(reference("apps/v1", "StatefulSet", &name, &uid)), None)
            }
            OwnerKind::Job => {
                let job = Job {
                    namespace,
                    name: name.clone(),
                    uid: uid.clone(),
                    finished: false,
                    ttl_seconds: None,
                };
                self.store.put_job(job);
                (Some(reference("batch/v1", "Job", &name, &uid)), None)
            }
            OwnerKind::DaemonSet => {
                self.store.put_daemon_set(DaemonSet { namespace, name: name.clone(), uid: uid.clone() });
                (Some(reference("apps/v1", "DaemonSet", &name, &uid)), None)
            }
            OwnerKind::Custom { has_scale } => {
                let owner = reference("example.com/v1", "Fleet", &name, &uid);
                let scale = if has_scale {
                    Scale::Replicas { uid: uid.clone(), replicas: setup.replicas }
                } else {
                    Scale::NoScale(Scale::no_subresource("fleets.example.com").into())
                };
                self.store.put_scale(&uid, scale);
                (Some(owner), None)
            }
            OwnerKind::Nobody | OwnerKind::Kubelet => (None, None),
        }
    }

    /// The owners as objects, as watches list them.
    pub(super) fn owner_objects(&self) -> Vec<Object> {
        let cluster = self.store.cluster();
        let mut objects = Vec::new();
        for owner in self.owners.values() {
            let uids =
                owner.deployment.iter().chain(owner.reference.as_ref().map(|reference| &reference.uid));
            for uid in uids {
                let workload = cluster.workload(uid).map(|workload| Object::Workload((**workload).clone()));
                let job = cluster.job(uid).map(|job| Object::Job(job.clone()));
                let set = cluster.daemon_set(uid).map(|set| Object::DaemonSet(set.clone()));
                objects.extend(workload.into_iter().chain(job).chain(set));
            }
        }
        objects
    }

    /// The pods of a workload, by name; those of a workload that nobody owns, too.
    #[must_use]
    pub fn pods_of(&self, workload: &str) -> Vec<Arc<Pod>> {
        let of = |pod: &&Arc<Pod>| {
            self.pods.get(&pod.uid).is_some_and(|state| state.owner.as_deref() == Some(workload))
        };
        let Some(owner) = self.owners.get(workload) else { return Vec::new() };
        self.store.cluster().pods_in(&owner.setup.namespace).filter(of).cloned().collect()
    }

    /// Sets a workload's scale.
    pub(super) fn scale(&mut self, workload: &str, replicas: i32) {
        let Some(owner) = self.owners.get_mut(workload) else { return };
        owner.setup.replicas = replicas;
        let uid = owner.deployment.clone().or_else(|| owner.reference.as_ref().map(|own| own.uid.clone()));
        let custom = owner.setup.kind == OwnerKind::Custom { has_scale: true };
        let Some(uid) = uid else { return };
        if custom {
            self.store.put_scale(&uid, Scale::Replicas { uid: uid.clone(), replicas });
        } else {
            self.store.edit_workload(&uid, |workload| workload.replicas = replicas);
        }
        self.owner_due(workload);
    }

    /// The controller of a workload looks at it a little later.
    pub(super) fn owner_due(&mut self, key: &str) {
        if self.owners.contains_key(key) && self.owners_due.insert(key.to_owned()) {
            let wait = self.takes("controller", self.timing.controller);
            self.after(wait, Event::Owner(key.to_owned()));
        }
    }

    pub(super) fn daemon_sets_due(&mut self) {
        let sets = self.owners.iter().filter(|(_, owner)| owner.setup.kind == OwnerKind::DaemonSet);
        let keys: Vec<String> = sets.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.owner_due(&key);
        }
    }

    pub(super) fn all_owners_due(&mut self) {
        let keys: Vec<String> = self.owners.keys().cloned().collect();
        for key in keys {
            self.owner_due(&key);
        }
    }

    pub(super) fn sync_owner(&mut self, key: &str) {
        self.owners_due.remove(key);
        if !self.manager_up {
            return;
        }
        let Some(owner) = self.owners.get(key) else { return };
        let (kind, replicas) = (owner.setup.kind, owner.setup.replicas);
        if let (Some(_), Some(reference)) = (&owner.deployment, &owner.reference) {
            let uid = reference.uid.clone();
            self.store.edit_workload(&uid, |set| set.replicas = replicas);
        }
        let pods = self.pods_of(key);
        match kind {
            OwnerKind::Deployment | OwnerKind::ReplicaSet | OwnerKind::Custom { .. } => {
                self.keep_count(key, &pods, replicas);
            }
            OwnerKind::StatefulSet { parallel } => self.keep_ordinals(key, &pods, replicas, parallel),
            OwnerKind::Job => self.keep_job(key, &pods, replicas),
            OwnerKind::DaemonSet => self.keep_on_nodes(key, &pods),
            OwnerKind::Nobody | OwnerKind::Kubelet => {}
        }
    }

    /// Pods are created or deleted until there are as many as wanted; those that are going do not count.
    fn keep_count(&mut self, key: &str, pods: &[Arc<Pod>], replicas: i32) {
        let mut active: Vec<&Arc<Pod>> =
            pods.iter().filter(|pod| !pod.terminating() && !pod.finished()).collect();
        let wanted = usize::try_from(replicas).unwrap_or(0);
        for _ in active.len()..wanted {
            self.create_pod(key, None, None);
        }
        // Those that are of least use go first.
        active.sort_by_key(|pod| (pod.ready, pod.node.is_some(), pod.name.clone()));
        let surplus = active.len().saturating_sub(wanted);
        for pod in active.into_iter().take(surplus) {
            self.remove_pod(pod);
        }
    }

    /// A name is free only when the object that had it is gone.
    fn keep_ordinals(&mut self, key: &str, pods: &[Arc<Pod>], replicas: i32, parallel: bool) {
        let Some(name) = self.owners.get(key).map(|owner| owner.setup.name.clone()) else { return };
        for ordinal in 0..replicas {
            let pod_name = format!("{name}-{ordinal}");
            let Some(pod) = pods.iter().find(|pod| *pod.name == *pod_name) else {
                self.create_pod(key, Some(&pod_name), None);
                if parallel {
                    continue;
                }
                return;
            };
            if pod.finished() && !pod.terminating() {
                self.remove_pod(pod);
            }
            if !parallel && (!pod.ready || pod.terminating()) {
                return;
            }
        }
        let beyond = |pod: &&Arc<Pod>| {
            let ordinal = pod.name.rsplit('-').next().and_then(|ordinal| ordinal.parse::<i32>().ok());
            ordinal.is_some_and(|ordinal| ordinal >= replicas) && !pod.terminating()
        };
        if let Some(last) = pods.iter().rfind(beyond) {
            self.remove_pod(last);
        }
    }

    /// So many pods have to finish.
    fn keep_job(&mut self, key: &str, pods: &[Arc<Pod>], replicas: i32) {
        let succeeded = pods.iter().filter(|pod| pod.phase == PodPhase::Succeeded).count();
        let active = pods.iter().filter(|pod| !pod.terminating() && !pod.finished()).count();
        let wanted = usize::try_from(replicas).unwrap_or(0);
        for _ in succeeded + active..wanted {
            self.create_pod(key, None, None);
        }
        let Some(uid) =
            self.owners.get(key).and_then(|owner| owner.reference.as_ref()).map(|own| own.uid.clone())
        else {
            return;
        };
        if succeeded >= wanted
            && let Some(job) = self.store.cluster().job(&uid).filter(|job| !job.finished)
        {
            self.store.put_job(Job { finished: true, ..job.clone() });
        }
    }

    /// One pod on every node, whatever keeps others from it.
    fn keep_on_nodes(&mut self, key: &str, pods: &[Arc<Pod>]) {
        let nodes: Vec<Arc<Node>> = self.store.cluster().nodes().cloned().collect();
        for node in nodes {
            if !pods.iter().any(|pod| pod.node.as_ref() == Some(&node.name)) {
                self.create_pod(key, None, Some(node.name.clone()));
            }
        }
    }

    fn remove_pod(&mut self, pod: &Pod) {
        self.count_step();
        let grace = self.pods.get(&pod.uid).map_or(30, |state| state.template.grace_seconds);
        let now = self.now;
        self.store.delete_pod(&pod.key(), grace, now);
    }

    fn create_pod(&mut self, key: &str, name: Option<&str>, node: Option<Text>) {
        let now = self.now;
        let Some(owner) = self.owners.get_mut(key) else { return };
        let placed = usize::try_from(owner.created).ok().and_then(|number| owner.setup.placed.get(number));
        let node = node.or_else(|| placed.map(|node| Text::from(node.as_str())));
        owner.created += 1;
        let template = Arc::clone(&owner.template);
        let of = owner.reference.as_ref().map_or(owner.setup.name.as_str(), |reference| &reference.name);
        let drawn = name.is_none();
        let name = name.map_or_else(|| format!("{of}-{:03}", owner.created), ToOwned::to_owned);
        let is_job = owner.setup.kind == OwnerKind::Job;
        let pod = Pod {
            namespace: owner.setup.namespace.as_str().into(),
            name: name.as_str().into(),
            name_drawn: drawn,
            uid: self.store.new_uid(&name),
            created: Some(whole_second(now)),
            labels: labels(&template.labels),
            node,
            phase: PodPhase::Pending,
            ready: false,
            owner: owner.reference.clone(),
            deletion: None,
            placement: placement(&template),
            protection: None,
            finalizers: template.finalizer.iter().map(|_| Text::from("example.com/hold")).collect(),
            mirror: owner.setup.kind == OwnerKind::Kubelet,
            claims: Box::default(),
            empty_dirs: if template.empty_dir { Box::new(["scratch".into()]) } else { Box::default() },
            restart_policy: if is_job { RestartPolicy::Never } else { RestartPolicy::Always },
            trouble: None,
            unschedulable: None,
        };
        self.count_step();
        self.pods.insert(pod.uid.clone(), PodState::new(template, Some(key.to_owned())));
        self.store.put_pod(pod);
    }

    /// The n-th pod of a workload that is not going, for acts that name it so.
    pub(super) fn nth_pod(&self, workload: &str, number: usize) -> Option<(PodKey, Text)> {
        let pods: Vec<Arc<Pod>> =
            self.pods_of(workload).into_iter().filter(|pod| !pod.terminating()).collect();
        let pod = pods.get(number.checked_rem(pods.len())?)?;
        Some((pod.key(), pod.uid.clone()))
    }
}

/// As the pod's spec says it.
fn placement(template: &super::setup::Template) -> Option<Arc<Placement>> {
    let labels = template.node_selector.iter().map(|(key, value)| Requirement {
        key: key.as_str().into(),
        operator: Operator::In,
        values: vec![value.as_str().into()],
    });
    let cordon = Toleration {
        key: "node.kubernetes.io/unschedulable".into(),
        exists: true,
        effect: "NoSchedule".into(),
        ..Toleration::default()
    };
    let placement = Placement {
        labels: Selector { requirements: labels.collect() },
        terms: Vec::new(),
        tolerations: template.tolerates_cordon.then_some(cordon).into_iter().collect(),
    };
    (placement != Placement::default()).then(|| Arc::new(placement))
}

pub(super) fn labels(pairs: &[(String, String)]) -> Labels {
    Labels::new(pairs.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())))
}
