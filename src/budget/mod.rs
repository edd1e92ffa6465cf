//! The disruption controller's arithmetic and the Eviction API's verdict, recomputed.
//!
//! Rules carry their upstream place: `disruption.go` is `pkg/controller/disruption/disruption.go`, `eviction.go` is
//! `pkg/registry/core/pod/storage/eviction.go` of Kubernetes v1.37.2.

mod amount;
mod attainable;
mod expected;
mod owners;
mod room;
mod shrunk;
#[cfg(test)]
mod tests;
mod verdict;

pub use amount::is_amount;
pub use attainable::{asks_for_all, attainable, attainable_after};
pub use expected::{
    counts_by_scale, desired_of, recompute, scales_of, scales_wanted, selected, unscaled_pods,
};
pub use owners::{Wants, only_scale_tells, scaled_owner, wants};
pub use room::{room, room_after};
pub use shrunk::{Moved, absent, shrunk};
pub use verdict::{MAX_DISRUPTED_PODS, verdict};

use jiff::Timestamp;

use crate::cluster::{OwnerRef, Text};

/// The four numbers of a budget's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    pub expected_pods: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub disruptions_allowed: i32,
}

/// A budget as the disruption controller would report it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computed {
    /// With `sync_error` the numbers the controller would leave: allowed is 0, the rest as reported. With
    /// `unread_scales` the reported ones.
    pub numbers: Numbers,
    /// The controller's own message when it cannot compute the budget (reason `SyncFailed`).
    pub sync_error: Option<String>,
    /// Owners whose scale must be asked for and was not, or could not be read: the numbers are not to be trusted.
    pub unread_scales: Vec<(Text, OwnerRef)>,
    /// When time alone changes the numbers: a pod the server has let go counts again.
    pub recheck_at: Option<Timestamp>,
}

/// An owner that a budget does not count, because its last pods were evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    pub owner: OwnerRef,
    /// How many pods it wants, where that is known.
    pub replicas: Option<i32>,
    /// How many pods the budget expected before.
    pub expected: Option<i32>,
}

/// What a budget would say if it counted the owners that are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrunk {
    /// How many pods it would expect.
    pub expected: i32,
    /// How many healthy ones it would want.
    pub desired: i32,
}

/// What `POST …/eviction` answers for a pod, from the reported status as the server decides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub code: u16,
    pub cause: Cause,
    /// Names of the budgets the server looks at; empty where it looks at none.
    pub budgets: Vec<Text>,
}

/// Why the server answers as it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// 201: pending, finished or terminating pods are not held by any budget.
    NotCounted,
    /// 201: no budget selects the pod.
    NoBudget,
    /// 201: the budget allows a disruption.
    Allowed,
    /// 201: an unready pod under `AlwaysAllow`.
    UnhealthyAlwaysAllowed,
    /// 201: an unready pod whose budget is healthy without it.
    UnhealthyOfHealthyBudget,
    /// 429: the budget allows nothing now.
    Exhausted,
    /// 429: the controller could not compute the budget (its condition says `SyncFailed`).
    SyncFailed,
    /// 429 with Retry-After: the controller has not observed the budget's present spec.
    StillProcessing,
    /// 403 with the cause `DisruptionBudget`: negative allowance.
    NegativeAllowance,
    /// 403 with the cause `DisruptionBudget`: more than 2000 unconfirmed disruptions.
    TooManyDisruptedPods,
    /// 500: several budgets select the pod.
    SeveralBudgets,
    /// 403: the namespace is being deleted.
    NamespaceTerminating,
}

/// What configuration alone says about a budget: how many pods it requires, how many it can ever have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attainable {
    /// Healthy pods the budget requires at full scale.
    pub required: i32,
    /// Healthy pods its owners can ever provide.
    pub attainable: i32,
    /// The spec has neither minAvailable nor maxUnavailable.
    pub neither_field: bool,
    /// Owners whose scale was not read, with their namespace: where there are any, the two numbers mean nothing.
    pub unread: Vec<(Text, OwnerRef)>,
    /// Reported and recomputed allowance are 0 and required ≥ attainable, or neither field is written.
    pub never: bool,
}
