//! `PodDisruptionBudgets`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Labels, Selector, Text};

/// A budget's namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BudgetKey {
    pub namespace: Text,
    pub name: Text,
}

/// A `PodDisruptionBudget`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pdb {
    pub namespace: Text,
    pub name: Text,
    pub uid: Text,
    pub resource_version: Text,
    pub generation: i64,
    /// When the present spec was written, at the latest.
    pub spec_since: Option<Timestamp>,
    /// `None` selects nothing, an empty selector everything in the namespace.
    pub selector: Option<Selector>,
    /// Why the selector cannot be used, in the disruption controller's words; it then selects nothing.
    pub invalid_selector: Option<Text>,
    pub min_available: Option<Amount>,
    pub max_unavailable: Option<Amount>,
    pub unhealthy_policy: UnhealthyPolicy,
    pub status: PdbStatus,
}

/// A number or a percentage, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amount {
    /// A number of pods.
    Int(i32),
    /// What was written as a string, such as `50%`; it may be nonsense.
    Text(Text),
}

/// `spec.unhealthyPodEvictionPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnhealthyPolicy {
    /// Unready pods go only while the budget is healthy (the default).
    #[default]
    IfHealthyBudget,
    /// Unready pods go always.
    AlwaysAllow,
    /// A policy this version does not know; the server treats it as the default.
    Other,
}

/// What the disruption controller last reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PdbStatus {
    pub observed_generation: i64,
    pub expected_pods: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub disruptions_allowed: i32,
    /// Evictions the server accepted and the controller has not confirmed, by pod name.
    pub disrupted_pods: BTreeMap<Text, Timestamp>,
    /// The message of `DisruptionAllowed` when its reason is `SyncFailed`.
    pub sync_failed: Option<Text>,
    /// The reason of DisruptionAllowed: SufficientPods, InsufficientPods or SyncFailed; empty without the condition.
    pub reason: Text,
    /// There is a DisruptionAllowed condition at all.
    pub has_condition: bool,
}

impl Pdb {
    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> BudgetKey {
        BudgetKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }
    /// Whether its selector matches; a missing selector matches nothing.
    #[must_use]
    pub fn selects(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }
    /// Nothing but the resourceVersion differs.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        Self { resource_version: other.resource_version.clone(), ..self.clone() } == *other
    }
    /// The controller has not seen the present spec yet.
    #[must_use]
    pub fn behind(&self) -> bool {
        self.status.observed_generation < self.generation
    }
}
