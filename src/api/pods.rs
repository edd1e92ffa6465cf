//! `pods`: which pods may be evicted, in which order, and how.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlanDuration, RequirementOperator, names_rules};

/// Which pods may be evicted, and how.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodPolicy {
    /// Pods without a controller, which nobody will create again. Default: Refuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmanaged: Option<Eviction>,
    /// Pods with emptyDir volumes, whose data is lost. Default: Refuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<Eviction>,
    /// Pods that ask by an annotation not to be moved: karpenter.sh/do-not-disrupt and
    /// cluster-autoscaler.kubernetes.io/safe-to-evict=false. Default: Honor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<Protected>,
    /// Overrides the pods' own grace period. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub grace_period_seconds: Option<i64>,
    /// How pods go that no budget selects. Default: AllAtOnce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbudgeted: Option<Unbudgeted>,
    /// With OneAtATime: how long the replacement may take to be Ready before the next one goes. Default: 2m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbudgeted_wait: Option<PlanDuration>,
    /// What is done to which pods; the first rule that matches a pod counts, and then its label
    /// cluster.x-k8s.io/drain (skip or wait-completed).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub rules: Vec<PodRule>,
}

/// Whether a kind of pods may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Eviction {
    #[default]
    Refuse,
    Evict,
}

/// Whether pods that ask not to be moved are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Protected {
    /// They are not evicted.
    #[default]
    Honor,
    /// They are evicted like others.
    Ignore,
}

/// How pods go that no budget selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Unbudgeted {
    /// As fast as the server takes them.
    #[default]
    AllAtOnce,
    /// Those of one owner one by one, each when the replacement of the one before is Ready.
    OneAtATime,
}

/// What is done to the pods that it matches.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRule {
    /// In which namespaces, by their labels; without it in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<PodSelector>,
    /// Which pods, by their labels; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<PodSelector>,
    /// What is done to them.
    pub action: PodAction,
    /// Pods of a lower order leave a node before those of a higher one. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1000, max = 1000))]
    pub order: Option<i32>,
}

/// What is done to pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PodAction {
    /// They are evicted.
    #[default]
    Evict,
    /// They are left alone and keep no node from being drained.
    Skip,
    /// They are not evicted; the node waits until they have finished.
    AwaitCompletion,
}

/// A label selector; an empty one matches everything.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSelector {
    /// Labels that must be there with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8), transform = names_rules::labels)]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements that must all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub match_expressions: Vec<PodRequirement>,
}

/// One requirement of a selector.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.operator in ['Exists', 'DoesNotExist'] || (has(self.values) && size(self.values) > 0)")
    .message("write the values for operator In or NotIn"))]
#[x_kube(validation = Rule::new("self.operator in ['In', 'NotIn'] || !has(self.values) || size(self.values) == 0")
    .message("write no values for operator Exists or DoesNotExist"))]
pub struct PodRequirement {
    /// The label's key.
    #[schemars(length(min = 1, max = 317), transform = names_rules::label_key)]
    pub key: String,
    /// How the value is compared.
    pub operator: RequirementOperator,
    /// With what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 63)), transform = names_rules::label_values)]
    pub values: Vec<String>,
}

impl PodPolicy {
    /// How long the replacement of a pod without a budget may take, where such pods go one by one.
    #[must_use]
    pub fn one_at_a_time(&self) -> Option<PlanDuration> {
        (self.unbudgeted == Some(Unbudgeted::OneAtATime))
            .then(|| self.unbudgeted_wait.clone().unwrap_or_else(|| PlanDuration::minutes(2)))
    }
}
