//! Small clusters for the tests of this room.

mod evictions;
mod forever;
mod numbers;
mod properties;

use std::sync::Arc;

use jiff::Timestamp;

use crate::cluster::{
    Amount, Cluster, Labels, Namespace, Operator, Ordinals, OwnerRef, Pdb, PdbStatus, Pod, PodPhase,
    Requirement, RestartPolicy, Scale, Selector, Text, UnhealthyPolicy, Workload, WorkloadKind,
};

use super::{Computed, Numbers, Verdict, recompute, verdict};

pub(super) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub(super) fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> OwnerRef {
    OwnerRef { api_version: api_version.into(), kind: kind.into(), name: name.into(), uid: uid.into() }
}

pub(super) fn labels(pairs: &[(&str, &str)]) -> Labels {
    Labels::new(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())))
}

/// A Running and Ready pod of `app=web`, owned by whatever is named.
pub(super) fn pod(name: &str, owner: Option<OwnerRef>) -> Pod {
    Pod {
        namespace: "shop".into(),
        name: name.into(),
        name_drawn: false,
        uid: format!("uid-{name}").into(),
        created: Some(NOW),
        labels: labels(&[("app", "web")]),
        node: Some("node-a".into()),
        phase: PodPhase::Running,
        ready: true,
        owner: owner.map(Arc::new),
        deletion: None,
        placement: None,
        protection: None,
        finalizers: Box::default(),
        mirror: false,
        empty_dirs: Box::default(),
        claims: Box::default(),
        restart_policy: RestartPolicy::Always,
        trouble: None,
        unschedulable: None,
    }
}

/// An owner whose template is `app=web`; its uid is its name.
pub(super) fn workload(kind: WorkloadKind, name: &str, replicas: i32, owner: Option<OwnerRef>) -> Workload {
    Workload {
        kind,
        namespace: "shop".into(),
        name: name.into(),
        uid: name.into(),
        replicas,
        owner: owner.map(Arc::new),
        template_labels: labels(&[("app", "web")]),
        replica_failure: None,
        ordinals: Ordinals::default(),
    }
}

/// A budget over `app=web` with neither field, observed.
pub(super) fn budget() -> Pdb {
    Pdb {
        namespace: "shop".into(),
        name: "web".into(),
        uid: "uid-pdb".into(),
        resource_version: "1".into(),
        generation: 1,
        spec_since: None,
        selector: Some(Selector { requirements: vec![equals("app", "web")] }),
        invalid_selector: None,
        min_available: None,
        max_unavailable: None,
        unhealthy_policy: UnhealthyPolicy::IfHealthyBudget,
        status: PdbStatus { observed_generation: 1, has_condition: true, ..PdbStatus::default() },
    }
}

pub(super) fn equals(key: &str, value: &str) -> Requirement {
    Requirement { key: key.into(), operator: Operator::In, values: vec![value.into()] }
}

pub(super) fn amount(text: &str) -> Amount {
    text.parse().map_or_else(|_| Amount::Text(text.into()), Amount::Int)
}

pub(super) fn min_available(text: &str) -> Pdb {
    Pdb { min_available: Some(amount(text)), ..budget() }
}

pub(super) fn max_unavailable(text: &str) -> Pdb {
    Pdb { max_unavailable: Some(amount(text)), ..budget() }
}

/// A cluster with a StatefulSet `db` of that scale and as many pods `db-0`, `db-1`, ….
pub(super) fn stateful_set(replicas: i32, pods: usize) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.apply_workload(workload(WorkloadKind::StatefulSet, "db", replicas, None));
    for number in 0..pods {
        cluster.apply_pod(pod(&format!("db-{number}"), Some(owner("apps/v1", "StatefulSet", "db", "db"))));
    }
    cluster
}

/// Changes a pod in place.
pub(super) fn change(cluster: &mut Cluster, name: &str, edit: impl FnOnce(&mut Pod)) {
    let key = crate::cluster::PodKey { namespace: "shop".into(), name: name.into() };
    let mut pod = Pod::clone(cluster.pod(&key).expect("the pod is there"));
    edit(&mut pod);
    cluster.apply_pod(pod);
}

pub(super) fn computed(cluster: &Cluster, budget: &Pdb) -> Computed {
    recompute(cluster, budget, NOW)
}

/// expected, healthy, desired, allowed.
pub(super) fn four(cluster: &Cluster, budget: &Pdb) -> (i32, i32, i32, i32) {
    let computed = computed(cluster, budget);
    assert_eq!(computed.sync_error, None);
    assert_eq!(computed.unread_scales, Vec::new());
    let Numbers { expected_pods, current_healthy, desired_healthy, disruptions_allowed } = computed.numbers;
    (expected_pods, current_healthy, desired_healthy, disruptions_allowed)
}

pub(super) fn sync_error(cluster: &Cluster, budget: &Pdb) -> String {
    computed(cluster, budget).sync_error.expect("the budget cannot be computed")
}

/// Writes what is recomputed into the status, as the controller would, and puts the budget into the cluster.
pub(super) fn report(cluster: &mut Cluster, mut budget: Pdb) -> Pdb {
    let computed = computed(cluster, &budget);
    budget.status.expected_pods = computed.numbers.expected_pods;
    budget.status.current_healthy = computed.numbers.current_healthy;
    budget.status.desired_healthy = computed.numbers.desired_healthy;
    budget.status.disruptions_allowed = computed.numbers.disruptions_allowed;
    budget.status.sync_failed = computed.sync_error.map(Text::from);
    cluster.apply_budget(budget.clone());
    budget
}

pub(super) fn answer(cluster: &Cluster, name: &str) -> Verdict {
    let key = crate::cluster::PodKey { namespace: "shop".into(), name: name.into() };
    verdict(cluster, cluster.pod(&key).expect("the pod is there"))
}

pub(super) fn terminating_namespace() -> Namespace {
    Namespace { name: "shop".into(), terminating: true, ..Namespace::default() }
}

pub(super) fn scale(uid: &str, replicas: i32) -> Scale {
    Scale::Replicas { uid: uid.into(), replicas }
}
