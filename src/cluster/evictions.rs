//! Evictions in flight and refusals: what the one who acts has seen of its own requests.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::{BudgetKey, Pdb, PodKey, Text};

/// How long an accepted eviction counts as in flight when no budget ever shows it.
const UNSEEN_LIMIT: SignedDuration = SignedDuration::from_secs(2);

/// An eviction that was sent and is not yet visible in a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    pub pod: PodKey,
    pub uid: Text,
    pub budgets: Vec<BudgetKey>,
    /// When the server accepted it; `None` until it answers.
    pub accepted: Option<Timestamp>,
}

/// What the server answered when it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub uid: Text,
    pub at: Timestamp,
    pub code: u16,
    /// `reason` of the Status, as the server wrote it.
    pub reason: Text,
    pub message: Text,
    /// Reasons of `details.causes`, such as `DisruptionBudget`.
    pub causes: Vec<Text>,
    /// How many times in a row this pod was refused.
    pub times: u32,
    /// Not before this instant, unless a budget of the pod changes.
    pub retry_at: Timestamp,
}

/// The evictions in flight, by pod uid, and the last refusal of each pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evictions {
    in_flight: HashMap<Text, InFlight>,
    refusals: HashMap<Text, Refusal>,
}

impl Evictions {
    /// An eviction leaves for the server.
    pub fn sent(&mut self, pod: PodKey, uid: Text, budgets: Vec<BudgetKey>) {
        self.in_flight.insert(uid.clone(), InFlight { pod, uid, budgets, accepted: None });
    }
    /// The server accepted it: it stays in flight until a budget shows it, at most two seconds.
    pub fn accepted(&mut self, uid: &str, now: Timestamp) {
        self.refusals.remove(uid);
        let Some(eviction) = self.in_flight.get_mut(uid) else { return };
        if eviction.budgets.is_empty() {
            self.in_flight.remove(uid);
        } else {
            eviction.accepted = Some(now);
        }
    }
    /// The server refused it, or the call failed before it could be accepted.
    pub fn refused(&mut self, refusal: Refusal) {
        self.in_flight.remove(&refusal.uid);
        self.refusals.insert(refusal.uid.clone(), refusal);
    }
    /// The request never left, or the pod was gone: nothing to remember.
    pub fn withdrawn(&mut self, uid: &str) {
        self.in_flight.remove(uid);
    }
    /// A budget's status shows these evictions; and a refusal of its pods may be retried at once.
    pub fn seen_in(&mut self, budget: &Pdb) {
        let key = budget.key();
        self.in_flight.retain(|_, eviction| {
            let shown = budget.status.disrupted_pods.contains_key(&eviction.pod.name);
            if shown && eviction.pod.namespace == key.namespace {
                eviction.budgets.retain(|waiting| *waiting != key);
            }
            !(eviction.budgets.is_empty() && eviction.accepted.is_some())
        });
    }
    /// Drops what has waited too long to be seen; returns when to look again.
    pub fn expire(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.in_flight.retain(|_, eviction| eviction.accepted.is_none_or(|at| at + UNSEEN_LIMIT > now));
        self.in_flight.values().filter_map(|eviction| eviction.accepted).map(|at| at + UNSEEN_LIMIT).min()
    }
    /// Forgets a pod that is gone.
    pub fn forget(&mut self, uid: &str) {
        self.refusals.remove(uid);
    }
    /// How many evictions of a budget are in flight.
    #[must_use]
    pub fn of_budget(&self, key: &BudgetKey) -> i32 {
        let count = self.in_flight.values().filter(|eviction| eviction.budgets.contains(key)).count();
        i32::try_from(count).unwrap_or(i32::MAX)
    }
    /// The pod's eviction has been sent and is not settled.
    #[must_use]
    pub fn is_in_flight(&self, uid: &str) -> bool {
        self.in_flight.contains_key(uid)
    }
    /// The pod's last refusal.
    #[must_use]
    pub fn refusal(&self, uid: &str) -> Option<&Refusal> {
        self.refusals.get(uid)
    }
}
