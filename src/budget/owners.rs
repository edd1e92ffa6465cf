//! Which owner's scale a pod counts for (`disruption.go: finders`).

use std::sync::Arc;

use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, Labels, OwnerRef, Pod, Scale, Text, Workload, WorkloadKind};

/// What the disruption controller finds for the controller of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// An owner with a scale.
    Owner(OwnerScale),
    /// Nothing, and the budget cannot be computed: the controller's own message.
    Failed(String),
    /// Only a GET of the owner's scale can tell, and it was not asked or could not be read.
    Unread,
}

/// An owner and the pods it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnerScale {
    pub(super) uid: Text,
    pub(super) replicas: i32,
    /// The labels of its pod template, where they are known.
    pub(super) template: Option<Labels>,
}

/// A kind the server knows from birth.
struct BuiltIn {
    group: &'static str,
    kind: &'static str,
    /// The resource's name, as the controller's message spells it.
    resource: &'static str,
    /// The watched kind, when it has a scale.
    scaled: Option<WorkloadKind>,
}

/// Built-in kinds that own pods. Each is served in version v1 only.
const BUILT_IN: [BuiltIn; 9] = [
    BuiltIn {
        group: "",
        kind: "ReplicationController",
        resource: "replicationcontrollers",
        scaled: Some(WorkloadKind::ReplicationController),
    },
    BuiltIn {
        group: "apps",
        kind: "ReplicaSet",
        resource: "replicasets.apps",
        scaled: Some(WorkloadKind::ReplicaSet),
    },
    BuiltIn {
        group: "apps",
        kind: "Deployment",
        resource: "deployments.apps",
        scaled: Some(WorkloadKind::Deployment),
    },
    BuiltIn {
        group: "apps",
        kind: "StatefulSet",
        resource: "statefulsets.apps",
        scaled: Some(WorkloadKind::StatefulSet),
    },
    BuiltIn { group: "apps", kind: "DaemonSet", resource: "daemonsets.apps", scaled: None },
    BuiltIn { group: "batch", kind: "Job", resource: "jobs.batch", scaled: None },
    BuiltIn { group: "batch", kind: "CronJob", resource: "cronjobs.batch", scaled: None },
    BuiltIn { group: "", kind: "Node", resource: "nodes", scaled: None },
    BuiltIn { group: "", kind: "Pod", resource: "pods", scaled: None },
];

/// Finds the scale behind a pod's controller, as the controller's finders do one after the other.
pub(super) fn find(cluster: &Cluster, pod: &Pod, owner: &OwnerRef) -> Found {
    // Every finder parses the version first (`verifyGroupKind`).
    let Some((group, version)) = group_version(&owner.api_version) else {
        return Found::Failed(format!("unexpected GroupVersion string: {}", owner.api_version));
    };
    let found = match (group, &*owner.kind) {
        ("", "ReplicationController") => {
            workload(cluster, pod, owner, WorkloadKind::ReplicationController).map(|found| scale_of(found))
        }
        ("apps" | "extensions", "ReplicaSet") => replica_set(cluster, pod, owner),
        ("apps", "StatefulSet") => {
            workload(cluster, pod, owner, WorkloadKind::StatefulSet).map(|found| scale_of(found))
        }
        _ => None,
    };
    match found {
        Some(found) => Found::Owner(found),
        None => scale_subresource(cluster, pod, owner, group, version),
    }
}

/// `getPodDeployment`, then `getPodReplicaSet`: a Deployment's ReplicaSet stands for its Deployment, and one whose
/// Deployment is gone or another is left to the scale subresource.
fn replica_set(cluster: &Cluster, pod: &Pod, owner: &OwnerRef) -> Option<OwnerScale> {
    let replica_set = workload(cluster, pod, owner, WorkloadKind::ReplicaSet)?;
    let Some(deployment) = &replica_set.owner else { return Some(scale_of(replica_set)) };
    if planted(Planted::EachReplicaSet) {
        return Some(scale_of(replica_set));
    }
    if &*deployment.kind != "Deployment" {
        return Some(scale_of(replica_set));
    }
    let (group, _) = group_version(&deployment.api_version)?;
    if !matches!(group, "apps" | "extensions") {
        return None;
    }
    workload(cluster, pod, deployment, WorkloadKind::Deployment).map(|found| scale_of(found))
}

/// `getScaleController`: GET `…/scale` by name, and the answer's uid must be the reference's.
fn scale_subresource(cluster: &Cluster, pod: &Pod, owner: &OwnerRef, group: &str, version: &str) -> Found {
    let nothing = || Found::Failed(format!("found no controllers for pod \"{}\"", pod.name));
    if let Some(built_in) = built_in(group, &owner.kind) {
        // `RESTMapping`: without a version the default one is taken.
        if !matches!(version, "v1" | "" | "__internal") {
            return Found::Failed(Scale::no_kind(owner));
        }
        let Some(kind) = built_in.scaled else {
            return Found::Failed(Scale::no_subresource(built_in.resource));
        };
        return match workload(cluster, pod, owner, kind) {
            Some(found) => Found::Owner(scale_of(found)),
            None if cluster.may_exist(&pod.namespace, kind, &owner.name) => Found::Unread,
            None => nothing(),
        };
    }
    if group == "extensions" {
        return Found::Failed(Scale::no_kind(owner));
    }
    match cluster.scale(&owner.uid) {
        None | Some(Scale::Unreadable(_)) => Found::Unread,
        Some(Scale::NoScale(message)) => Found::Failed(message.to_string()),
        Some(Scale::Replicas { uid, replicas }) if *uid == owner.uid || planted(Planted::AnyUid) => {
            Found::Owner(OwnerScale { uid: uid.clone(), replicas: *replicas, template: None })
        }
        Some(Scale::Gone | Scale::Replicas { .. }) => nothing(),
    }
}

/// The mapper knows each kind in lower case too (`client-go/restmapper: NewDiscoveryRESTMapper`).
fn built_in(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    BUILT_IN
        .iter()
        .find(|known| known.group == group && (known.kind == kind || known.kind.to_lowercase() == kind))
}

/// The watched workload a reference names: the listers go by namespace and name, then the uid must agree.
fn workload<'a>(
    cluster: &'a Cluster,
    pod: &Pod,
    reference: &OwnerRef,
    kind: WorkloadKind,
) -> Option<&'a Arc<Workload>> {
    let named = |found: &&Arc<Workload>| {
        found.kind == kind && found.namespace == pod.namespace && found.name == reference.name
    };
    if planted(Planted::AnyUid) {
        return cluster.workloads().find(named);
    }
    cluster.workload(&reference.uid).filter(named)
}

/// Whether only a GET of `…/scale` can tell the scale of this owner.
#[must_use]
pub fn only_scale_tells(owner: &OwnerRef) -> bool {
    group_version(&owner.api_version)
        .is_some_and(|(group, _)| group != "extensions" && built_in(group, &owner.kind).is_none())
}

/// Whose scale a pod counts for: its controller, or the Deployment above that. `None` without a controller, and for
/// owners that have no scale, as Jobs and DaemonSets.
#[must_use]
pub fn scaled_owner(cluster: &Cluster, pod: &Pod) -> Option<OwnerRef> {
    let reference = pod.owner.as_deref()?;
    match find(cluster, pod, reference) {
        Found::Failed(_) => None,
        Found::Unread => Some(reference.clone()),
        Found::Owner(owner) if owner.uid == reference.uid => Some(reference.clone()),
        Found::Owner(owner) => {
            let above = cluster.workload(&reference.uid)?.owner.as_deref()?;
            (above.uid == owner.uid).then(|| above.clone())
        }
    }
}

/// How many pods an owner wants that may have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// So many.
    Pods(i32),
    /// It is gone, or has no scale.
    None,
    /// Only a GET of its scale can tell, and it was not asked or could not be read.
    Unknown,
}

/// How many pods an owner wants, by the reference to it alone.
#[must_use]
pub fn wants(cluster: &Cluster, owner: &OwnerRef) -> Wants {
    if let Some(workload) = cluster.workload(&owner.uid) {
        return Wants::Pods(workload.replicas);
    }
    if !only_scale_tells(owner) {
        return Wants::None;
    }
    match cluster.scale(&owner.uid) {
        Some(Scale::Replicas { uid, replicas }) if *uid == owner.uid => Wants::Pods(*replicas),
        Some(Scale::Replicas { .. } | Scale::NoScale(_) | Scale::Gone) => Wants::None,
        None | Some(Scale::Unreadable(_)) => Wants::Unknown,
    }
}

/// An owner by uid alone; a Deployment's ReplicaSet stands for its Deployment.
pub(super) fn by_uid(cluster: &Cluster, uid: &str) -> Option<OwnerScale> {
    if let Some(Scale::Replicas { uid, replicas }) = cluster.scale(uid) {
        return Some(OwnerScale { uid: uid.clone(), replicas: *replicas, template: None });
    }
    let found = cluster.workload(uid)?;
    let deployment = found.owner.as_ref().and_then(|owner| cluster.workload(&owner.uid));
    Some(scale_of(deployment.unwrap_or(found)))
}

fn scale_of(workload: &Workload) -> OwnerScale {
    OwnerScale {
        uid: workload.uid.clone(),
        replicas: workload.replicas,
        template: Some(workload.template_labels.clone()),
    }
}

/// Group and version of an apiVersion (`schema.ParseGroupVersion`); `None` with more than one slash.
fn group_version(api_version: &str) -> Option<(&str, &str)> {
    match api_version.split_once('/') {
        None => Some(("", api_version)),
        Some((_, version)) if version.contains('/') => None,
        Some(parts) => Some(parts),
    }
}
