//! The Eviction API's answer (`eviction.go: Create`).

use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, Pdb, Pod, PodPhase, Text, UnhealthyPolicy};

use super::{Cause, Verdict};

/// More unconfirmed disruptions than this and the server refuses (`eviction.go: MaxDisruptedPodSize`).
pub const MAX_DISRUPTED_PODS: usize = 2000;

/// What the Eviction API would answer for the pod now, from the reported status as the server decides it.
#[must_use]
pub fn verdict(cluster: &Cluster, pod: &Pod) -> Verdict {
    // Admission is asked before the pod is read (`admission/lifecycle: Admit`).
    if cluster.namespace(&pod.namespace).is_some_and(|namespace| namespace.terminating) {
        return Verdict::new(Cause::NamespaceTerminating, Vec::new());
    }
    if not_held(pod) {
        return Verdict::new(Cause::NotCounted, Vec::new());
    }
    let budgets: Vec<&Pdb> = cluster.budgets_of(pod).map(AsRef::as_ref).collect();
    let cause = match budgets.as_slice() {
        [] => Cause::NoBudget,
        [budget] => answer(budget, pod.ready),
        _ => Cause::SeveralBudgets,
    };
    Verdict::new(cause, budgets.into_iter().map(|budget| budget.name.clone()).collect())
}

/// `canIgnorePDB`: these go whatever the budgets say.
fn not_held(pod: &Pod) -> bool {
    let pending = pod.phase == PodPhase::Pending && !planted(Planted::PendingHeld);
    pending || pod.finished() || pod.terminating()
}

/// What one budget answers for a running pod.
fn answer(budget: &Pdb, ready: bool) -> Cause {
    if !ready {
        if budget.unhealthy_policy == UnhealthyPolicy::AlwaysAllow {
            return Cause::UnhealthyAlwaysAllowed;
        }
        let status = &budget.status;
        let wants_some = status.desired_healthy > 0 || planted(Planted::DesiredZeroLetsGo);
        if status.current_healthy >= status.desired_healthy && wants_some {
            return Cause::UnhealthyOfHealthyBudget;
        }
    }
    spend(budget)
}

/// What the server answers to a pod that costs a disruption (`eviction.go: checkAndDecrement`).
pub(super) fn spend(budget: &Pdb) -> Cause {
    let status = &budget.status;
    if budget.behind() {
        Cause::StillProcessing
    } else if status.disruptions_allowed < 0 {
        Cause::NegativeAllowance
    } else if status.disrupted_pods.len() > MAX_DISRUPTED_PODS {
        Cause::TooManyDisruptedPods
    } else if status.disruptions_allowed > 0 {
        Cause::Allowed
    } else if status.sync_failed.is_some() {
        Cause::SyncFailed
    } else {
        Cause::Exhausted
    }
}

impl Verdict {
    fn new(cause: Cause, budgets: Vec<Text>) -> Self {
        Self { code: cause.code(), cause, budgets }
    }
}

impl Cause {
    /// The HTTP status the server answers with.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::NotCounted
            | Self::NoBudget
            | Self::Allowed
            | Self::UnhealthyAlwaysAllowed
            | Self::UnhealthyOfHealthyBudget => 201,
            Self::NegativeAllowance | Self::TooManyDisruptedPods | Self::NamespaceTerminating => 403,
            Self::Exhausted | Self::SyncFailed | Self::StillProcessing => 429,
            Self::SeveralBudgets => 500,
        }
    }
    /// The server would evict the pod.
    #[must_use]
    pub fn evicts(self) -> bool {
        self.code() == 201
    }
    /// The eviction would be taken off the budget's allowance.
    #[must_use]
    pub fn costs(self) -> bool {
        self == Self::Allowed
    }
}
