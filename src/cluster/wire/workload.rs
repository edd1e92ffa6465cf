//! ReplicationControllers, ReplicaSets, Deployments and StatefulSets on the wire.

use serde::Deserialize;

use crate::cluster::interner::Interner;
use crate::cluster::{Ordinals, Workload, WorkloadKind};

use super::meta::{Condition, Meta, condition, or_default};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WireWorkload {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    template: Template,
    #[serde(rename = "podManagementPolicy", deserialize_with = "or_default")]
    pod_management: String,
    #[serde(deserialize_with = "or_default")]
    ordinals: WireOrdinals,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct WireOrdinals {
    #[serde(deserialize_with = "or_default")]
    start: i32,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Template {
    #[serde(deserialize_with = "or_default")]
    metadata: Meta,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

impl WireWorkload {
    pub(super) fn into_workload(self, kind: WorkloadKind, interner: &mut Interner) -> Workload {
        let Self { metadata, spec, status } = self;
        let failure = condition(&status.conditions, "ReplicaFailure").filter(|found| found.status == "True");
        Workload {
            kind,
            namespace: interner.text(&metadata.namespace),
            name: interner.text(&metadata.name),
            uid: interner.text(&metadata.uid(kind.name())),
            replicas: spec.replicas.unwrap_or(1),
            owner: metadata.controller(interner, None),
            template_labels: spec.template.metadata.labels(interner),
            replica_failure: failure.map(|found| found.message.as_str().into()),
            ordinals: Ordinals { start: spec.ordinals.start, parallel: spec.pod_management == "Parallel" },
        }
    }
}
