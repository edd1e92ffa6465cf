//! Budgets that have refilled themselves: an owner counts only while it has pods, so with the last one away a budget
//! expects fewer, wants fewer and allows more (`disruption.go: getExpectedScale`).

use std::collections::BTreeSet;

use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, OwnerRef, Pdb, Text};

use super::expected::{counts_by_scale, desired_of};
use super::owners::{Wants, wants};
use super::{Absent, Computed, Shrunk};

/// An owner whose pods were evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub namespace: Text,
    pub owner: OwnerRef,
    /// The budget that selected its pods.
    pub budget: Option<Text>,
    /// How many pods that budget expected before.
    pub expected: Option<i32>,
}

/// The owners whose pods were evicted and that want some, while the budget selects none of them now. `moved` are owners
/// in the budget's namespace.
#[must_use]
pub fn absent(cluster: &Cluster, budget: &Pdb, moved: &[Moved]) -> Vec<Absent> {
    let mut seen = BTreeSet::new();
    let mut absent = Vec::new();
    for moved in moved.iter().filter(|moved| is_about(cluster, budget, moved)) {
        let replicas = match wants(cluster, &moved.owner) {
            Wants::Pods(pods) if pods > 0 => Some(pods),
            Wants::Unknown => None,
            Wants::Pods(_) | Wants::None => continue,
        };
        let here = |uid: &str| cluster.pods_of(uid).any(|pod| budget.selects(&pod.labels));
        if !here(&moved.owner.uid) && seen.insert(&moved.owner.uid) {
            absent.push(Absent { owner: moved.owner.clone(), replicas, expected: moved.expected });
        }
    }
    absent
}

fn is_about(cluster: &Cluster, budget: &Pdb, moved: &Moved) -> bool {
    match cluster.workload(&moved.owner.uid) {
        Some(workload) => budget.selects(&workload.template_labels),
        None => moved.budget.as_ref() == Some(&budget.name),
    }
}

/// What the budget would want if those owners counted; `None` when they make no difference to it.
#[must_use]
pub fn shrunk(budget: &Pdb, computed: &Computed, absent: &[Absent]) -> Option<Shrunk> {
    let known = computed.sync_error.is_none() && computed.unread_scales.is_empty();
    if absent.is_empty() || !known || !counts_by_scale(budget) || planted(Planted::ShrunkBelieved) {
        return None;
    }
    let now = computed.numbers.expected_pods;
    let known: i32 = absent.iter().filter_map(|of| of.replicas).fold(0, i32::saturating_add);
    // Where nobody can tell how many an owner wants, as many are expected as once were.
    let unknown = absent.iter().filter(|of| of.replicas.is_none()).filter_map(|of| of.expected).max();
    let expected = now.saturating_add(known).max(unknown.unwrap_or(now));
    let desired = desired_of(budget, expected).ok()?;
    (expected > now).then_some(Shrunk { expected, desired })
}
