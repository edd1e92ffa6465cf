//! Nodes and namespaces on the wire.

use serde::Deserialize;

use crate::cluster::interner::Interner;
use crate::cluster::{Namespace, Node, Taint};

use super::meta::{Condition, Meta, condition, or_default};

/// The conditions of a node that lacks something (`kubelet/eviction: helpers.go`).
const PRESSURE: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WireNode {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "or_default")]
    unschedulable: bool,
    #[serde(deserialize_with = "or_default")]
    taints: Vec<WireTaint>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct WireTaint {
    key: String,
    #[serde(deserialize_with = "or_default")]
    value: String,
    effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")]
    node_info: NodeInfo,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    #[serde(rename = "bootID")]
    boot_id: String,
    kubelet_version: String,
}

impl WireNode {
    pub(super) fn into_node(self, interner: &mut Interner) -> Node {
        let Self { metadata, spec, status } = self;
        let ready = condition(&status.conditions, "Ready").map_or("Unknown", |found| &found.status);
        let presses =
            |name: &&&str| condition(&status.conditions, name).is_some_and(|found| found.status == "True");
        let pressure = PRESSURE.iter().filter(presses).map(|name| interner.text(name)).collect();
        let mut taint = |taint: WireTaint| Taint {
            key: interner.text(&taint.key),
            value: interner.text(&taint.value),
            effect: interner.text(&taint.effect),
        };
        let taints = spec.taints.into_iter().map(&mut taint).collect();
        let ours =
            metadata.annotations.kept.iter().map(|(key, value)| (interner.text(key), value.as_str().into()));
        let annotations = ours.collect();
        Node {
            name: interner.text(&metadata.name),
            uid: metadata.uid("Node"),
            resource_version: metadata.resource_version.as_str().into(),
            created: metadata.creation_timestamp,
            deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels(interner),
            annotations,
            annotated: metadata.annotations.any,
            unschedulable: spec.unschedulable,
            taints,
            ready: interner.text(ready),
            pressure,
            boot_id: status.node_info.boot_id.into(),
            kubelet_version: interner.text(&status.node_info.kubelet_version),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WireNamespace {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    status: NamespaceStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NamespaceStatus {
    #[serde(deserialize_with = "or_default")]
    phase: String,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

impl WireNamespace {
    pub(super) fn into_namespace(self, interner: &mut Interner) -> Namespace {
        let Self { metadata, status } = self;
        // What could not be deleted does not count as remaining there (`pkg/controller/namespace/deletion`), and the
        // controller's tries come ever later.
        let remaining = [
            "NamespaceDeletionContentFailure",
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionGroupVersionParsingFailure",
            "NamespaceContentRemaining",
            "NamespaceFinalizersRemaining",
        ]
        .into_iter()
        .filter_map(|kind| condition(&status.conditions, kind))
        .find(|found| found.status == "True");
        Namespace {
            labels: metadata.labels(interner),
            name: interner.text(&metadata.name),
            // What admission looks at (`admission/plugin/namespace/lifecycle: Admit`).
            terminating: status.phase == "Terminating",
            content_remaining: remaining.map(|found| found.message.as_str().into()),
        }
    }
}
