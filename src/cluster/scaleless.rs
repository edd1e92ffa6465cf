//! Owners of pods that have no scale, as far as drains care about them.

use super::Text;

/// A DaemonSet: its pods are left alone as long as it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSet {
    pub namespace: Text,
    pub name: Text,
    pub uid: Text,
}

/// A Job: its finished pods stay until it is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub namespace: Text,
    pub name: Text,
    pub uid: Text,
    /// Complete or Failed.
    pub finished: bool,
    /// `spec.ttlSecondsAfterFinished`: it deletes itself, and its pods, that long after it has finished.
    pub ttl_seconds: Option<i32>,
}
