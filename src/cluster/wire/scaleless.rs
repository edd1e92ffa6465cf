//! DaemonSets and Jobs on the wire.

use serde::Deserialize;

use crate::cluster::interner::Interner;
use crate::cluster::{DaemonSet, Job};

use super::meta::{Condition, Meta, condition, or_default};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WireDaemonSet {
    pub(super) metadata: Meta,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WireJob {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    ttl_seconds_after_finished: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

impl WireDaemonSet {
    pub(super) fn into_daemon_set(self, interner: &mut Interner) -> DaemonSet {
        DaemonSet {
            namespace: interner.text(&self.metadata.namespace),
            name: interner.text(&self.metadata.name),
            uid: interner.text(&self.metadata.uid("DaemonSet")),
        }
    }
}

impl WireJob {
    pub(super) fn into_job(self, interner: &mut Interner) -> Job {
        let Self { metadata, spec, status } = self;
        let says = |kind| condition(&status.conditions, kind).is_some_and(|found| found.status == "True");
        Job {
            namespace: interner.text(&metadata.namespace),
            name: interner.text(&metadata.name),
            uid: interner.text(&metadata.uid("Job")),
            finished: says("Complete") || says("Failed"),
            ttl_seconds: spec.ttl_seconds_after_finished,
        }
    }
}
