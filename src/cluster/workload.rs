//! Owners of pods that have a scale.

use std::sync::Arc;

use super::{Labels, OwnerRef, Text};

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
}

/// The kinds of watched owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkloadKind {
    ReplicationController,
    ReplicaSet,
    Deployment,
    StatefulSet,
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
    /// The owner's kind has no scale; the message is the disruption controller's own.
    NoScale(Text),
    /// The owner is gone.
    Gone,
    /// It could not be read, with the reason; the reported allowance alone decides.
    Unreadable(Text),
}
