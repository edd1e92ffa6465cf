//! `pace`: how fast a plan goes, and in which steps.

use jiff::SignedDuration;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{DrainPlanSpec, IntOrPercent, Pause};

/// How fast, and in which steps.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.maxConcurrentNodes) || (type(self.maxConcurrentNodes) == int ? \
        self.maxConcurrentNodes > 0 : !self.maxConcurrentNodes.matches('^0+%$'))")
    .message("pace.maxConcurrentNodes: write at least 1, or a percentage above 0%; to start no node write suspend: true"))]
pub struct Pace {
    /// How many nodes are in progress at once, as a number or a percentage of the selected nodes, rounded down and at
    /// least 1. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent_nodes: Option<IntOrPercent>,
    /// The key of a node label: all nodes of one value are finished before those of the next. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    #[x_kube(validation = Rule::new("self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')")
        .message("write the key of a node label, such as topology.kubernetes.io/zone"))]
    pub topology_key: Option<String>,
    /// How long after a node is done the next one is started at the earliest. Default: 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Pause>,
    /// No node is started while more nodes of the cluster than that are unhealthy, as a number or a percentage of all
    /// nodes, rounded up: not Ready, or short of memory, disk or process ids. Default: 10%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unhealthy_nodes: Option<IntOrPercent>,
    /// No node is started while owners whose pods the plan has moved have fewer Ready pods than before. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub await_replacements: Option<bool>,
}

impl DrainPlanSpec {
    /// How many of so many selected nodes may be in progress at once.
    #[must_use]
    pub fn concurrent_nodes(&self, selected: usize) -> usize {
        /// More do not fit a status.
        const MOST: usize = 200;
        let written = self.pace.as_ref().and_then(|pace| pace.max_concurrent_nodes.as_ref());
        written.and_then(|limit| limit.of(selected)).unwrap_or(1).clamp(1, MOST)
    }

    /// How long after a node is done no other is started.
    #[must_use]
    pub fn soak(&self) -> SignedDuration {
        let written = self.pace.as_ref().and_then(|pace| pace.soak.as_ref());
        written.map_or(SignedDuration::ZERO, Pause::value)
    }

    /// How many of so many nodes may be unhealthy when another one is started.
    #[must_use]
    pub fn unhealthy_nodes(&self, all: usize) -> usize {
        let written = self.pace.as_ref().and_then(|pace| pace.max_unhealthy_nodes.as_ref());
        written.and_then(|limit| limit.rounded_up(all)).unwrap_or_else(|| all.div_ceil(10))
    }

    /// Whether no node is started while pods that were moved are not Ready again.
    #[must_use]
    pub fn awaits_replacements(&self) -> bool {
        self.pace.as_ref().and_then(|pace| pace.await_replacements).unwrap_or(true)
    }

    /// The label whose values are finished one after the other.
    #[must_use]
    pub fn topology_key(&self) -> Option<&str> {
        self.pace.as_ref().and_then(|pace| pace.topology_key.as_deref())
    }
}
