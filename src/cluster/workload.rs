//! Owners of pods that have a scale.

use std::sync::Arc;

use super::{Labels, ObjectKind, OwnerRef, Text};

/// A watched owner: a `ReplicationController`, ReplicaSet, Deployment or StatefulSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    pub kind: WorkloadKind,
    pub namespace: Text,
    pub name: Text,
    pub uid: Text,
    /// `spec.replicas`, 1 when absent, as the server defaults it.
    pub replicas: i32,
    /// Its own controller: a ReplicaSet's Deployment.
    pub owner: Option<Arc<OwnerRef>>,
    /// The labels of its pod template.
    pub template_labels: Labels,
    /// Message of a `ReplicaFailure` condition, if any.
    pub replica_failure: Option<Text>,
    /// Of a StatefulSet.
    pub ordinals: Ordinals,
}

/// How a StatefulSet numbers its pods, and whether it takes them one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ordinals {
    /// `spec.ordinals.start`.
    pub start: i32,
    /// `spec.podManagementPolicy` is Parallel.
    pub parallel: bool,
}

/// The kinds of watched owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkloadKind {
    ReplicationController,
    ReplicaSet,
    Deployment,
    StatefulSet,
}

impl WorkloadKind {
    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.object_kind().name()
    }
    /// The observed kind.
    #[must_use]
    pub const fn object_kind(self) -> ObjectKind {
        match self {
            Self::ReplicationController => ObjectKind::ReplicationController,
            Self::ReplicaSet => ObjectKind::ReplicaSet,
            Self::Deployment => ObjectKind::Deployment,
            Self::StatefulSet => ObjectKind::StatefulSet,
        }
    }
}

/// What `*/scale` of an owner that is not watched answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scale {
    /// The scale has these replicas; the uid is that of the object it belongs to.
    Replicas {
        /// The owner's uid, as the scale object carries it.
        uid: Text,
        /// `spec.replicas` of the scale.
        replicas: i32,
    },
    /// Nobody can read a scale there: the kind has none, or the owner does not say how many pods it wants. The
    /// message is the disruption controller's own.
    NoScale(Text),
    /// The owner is gone.
    Gone,
    /// It could not be read, with the reason; the reported allowance alone decides.
    Unreadable(Text),
}

impl Scale {
    /// What the controller reports for a kind without a scale, by its resource such as `jobs.batch`
    /// (`disruption.go: getScaleController`).
    #[must_use]
    pub fn no_subresource(resource: &str) -> String {
        format!("{resource} does not implement the scale subresource")
    }
    /// What the controller reports for a kind or version the server does not serve
    /// (`apimachinery/pkg/api/meta: NoKindMatchError`).
    #[must_use]
    pub fn no_kind(owner: &OwnerRef) -> String {
        format!("no matches for kind \"{}\" in version \"{}\"", owner.kind, owner.api_version)
    }
}
