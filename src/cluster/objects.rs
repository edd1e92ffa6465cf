//! Nodes and namespaces.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Labels, Text};

/// A node, as far as plans read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub name: Text,
    pub uid: Text,
    pub resource_version: Text,
    pub created: Option<Timestamp>,
    /// Being deleted: the object stays only for its finalizers.
    pub deleting: bool,
    pub labels: Labels,
    /// Only the `drainplan.dev/…` ones.
    pub annotations: BTreeMap<Text, Text>,
    /// It has annotations at all, ours or others'.
    pub annotated: bool,
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
    /// `True`, `False` or `Unknown` of the Ready condition; `Unknown` when there is none.
    pub ready: Text,
    /// The pressure conditions that are True: `MemoryPressure`, `DiskPressure`, `PIDPressure`.
    pub pressure: Box<[Text]>,
    pub boot_id: Text,
    pub kubelet_version: Text,
}

impl Node {
    /// Not Ready, or short of something: the kubelet may be evicting pods, past all budgets.
    #[must_use]
    pub fn is_unhealthy(&self) -> bool {
        &*self.ready != "True" || !self.pressure.is_empty()
    }
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taint {
    pub key: Text,
    pub value: Text,
    pub effect: Text,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    pub name: Text,
    pub labels: Labels,
    /// Being deleted: evictions in it are refused (403, `NamespaceTerminating`).
    pub terminating: bool,
    /// The message of the condition that says content or finalizers remain, if any.
    pub content_remaining: Option<Text>,
}
