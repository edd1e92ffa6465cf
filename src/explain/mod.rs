//! Why a pod waits: reason, outlook, message and remedy; and what is wrong with a budget.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use crate::api::{Outlook, PodPolicy, Reason};
use crate::budget::{Attainable, Computed, Verdict};
use crate::cluster::{BudgetKey, Cluster, Pdb, Pod, Text};

/// Waiting times of the rules, an argument so that tests need no waiting.
#[derive(Debug, Clone)]
pub struct Patience {
    /// How long after its deletion time a terminating pod is overdue.
    pub overdue: SignedDuration,
    /// How long a budget may differ from what it should be before it is called stale.
    pub stale: SignedDuration,
    /// How young a pod may be to count as just starting.
    pub starting: SignedDuration,
}

/// What is done to a pod of a node that is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It is evicted.
    Evict,
    /// It stays and keeps no node from being drained: DaemonSet, mirror and finished pods.
    Ignore,
    /// The plan does not allow evicting it.
    Refuse,
}

/// Why a pod waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub reason: Reason,
    pub outlook: Outlook,
    /// The budgets that select the pod, by name.
    pub budgets: Vec<Text>,
    /// What holds it, with the numbers and the names.
    pub message: String,
    /// One line: what to change.
    pub remedy: String,
}

/// All that is to be said about one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub treatment: Treatment,
    /// What the server would answer to an eviction, whatever the treatment.
    pub verdict: Verdict,
    /// Why it cannot be evicted now, or is not gone yet.
    pub wait: Option<Wait>,
    /// The budgets of which an eviction would spend one disruption.
    pub spends: Vec<BudgetKey>,
}

/// How a budget stands at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub computed: Computed,
    pub attainable: Attainable,
    /// Disruptions that may be spent now.
    pub room: i32,
}

/// Explains pods and budgets of one cluster at one instant; each budget is computed once.
pub struct Explainer<'a> {
    cluster: &'a Cluster,
    now: Timestamp,
    patience: &'a Patience,
}

impl<'a> Explainer<'a> {
    /// An explainer of what is observed now.
    #[must_use]
    pub fn new(cluster: &'a Cluster, now: Timestamp, patience: &'a Patience) -> Self {
        Self { cluster, now, patience }
    }

    /// What is done to the pod, and why it waits if it does.
    #[must_use]
    pub fn judge(&self, pod: &Pod, policy: &PodPolicy) -> Judgement {
        let _ = (pod, policy, self.cluster, self.now, self.patience);
        todo!()
    }

    /// How a budget stands.
    #[must_use]
    pub fn standing(&self, budget: &Pdb) -> Rc<Standing> {
        let _ = budget;
        todo!()
    }
}
