//! The four numbers of a budget (`disruption.go: trySync`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Amount, Cluster, OwnerRef, Pdb, Pod, Text};

use super::amount::scaled;
use super::owners::{self, Found, OwnerScale};
use super::{Computed, Numbers};

/// How long a pod that the server has let go counts as going (`disruption.go: DeletionTimeout`).
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// The budget as the disruption controller would compute it now (`disruption.go: trySync`).
#[must_use]
pub fn recompute(cluster: &Cluster, budget: &Pdb, now: Timestamp) -> Computed {
    if let Some(message) = &budget.invalid_selector {
        return Computed::failed(budget, message.to_string());
    }
    let pods: Vec<&Arc<Pod>> = selected(cluster, budget).collect();
    let (expected_pods, desired_healthy) = match expectation(cluster, budget, &pods) {
        Expectation::Known { expected, desired } => (expected, desired),
        Expectation::Failed(message) => return Computed::failed(budget, message),
        Expectation::Unread(owners) => return Computed::unread(budget, owners),
    };
    if let Some(message) = refused_status(budget, expected_pods, desired_healthy) {
        return Computed::failed(budget, message);
    }
    let disrupted = disrupted_pods(budget, &pods, now);
    let current_healthy = count(pods.iter().filter(|pod| healthy(pod, &disrupted, now)));
    let spare = current_healthy.saturating_sub(desired_healthy).max(0);
    // `updatePdbStatus`: a budget that expects nothing allows nothing.
    let nothing_expected = expected_pods <= 0 && !planted(Planted::NothingExpectedAllows);
    let disruptions_allowed = if nothing_expected { 0 } else { spare };
    Computed {
        numbers: Numbers { expected_pods, current_healthy, desired_healthy, disruptions_allowed },
        sync_error: None,
        unread_scales: Vec::new(),
        recheck_at: disrupted.values().copied().min(),
    }
}

impl Computed {
    /// The reason of the DisruptionAllowed condition that goes with the numbers
    /// (`component-helpers: UpdateDisruptionAllowedCondition`).
    #[must_use]
    pub fn condition_reason(&self) -> &'static str {
        if self.sync_error.is_some() {
            "SyncFailed"
        } else if self.numbers.disruptions_allowed > 0 {
            "SufficientPods"
        } else {
            "InsufficientPods"
        }
    }
    /// `failSafe`: only the allowance is changed.
    fn failed(budget: &Pdb, message: String) -> Self {
        let numbers = Numbers { disruptions_allowed: 0, ..Numbers::reported(budget) };
        Self { numbers, sync_error: Some(message), unread_scales: Vec::new(), recheck_at: None }
    }
    fn unread(budget: &Pdb, unread_scales: Vec<(Text, OwnerRef)>) -> Self {
        Self { numbers: Numbers::reported(budget), sync_error: None, unread_scales, recheck_at: None }
    }
}

impl Numbers {
    /// The numbers of the budget's status.
    #[must_use]
    pub fn reported(budget: &Pdb) -> Self {
        Self {
            expected_pods: budget.status.expected_pods,
            current_healthy: budget.status.current_healthy,
            desired_healthy: budget.status.desired_healthy,
            disruptions_allowed: budget.status.disruptions_allowed,
        }
    }
}

/// The pods a budget selects, terminating and finished ones included (`getPodsForPdb`).
pub fn selected<'a>(cluster: &'a Cluster, budget: &'a Pdb) -> impl Iterator<Item = &'a Arc<Pod>> {
    cluster.pods_selected_by(budget)
}

/// Pods for which the controller finds no scale, with its message for each. It reports any one of them, as it lists
/// pods in no order; [`Computed::sync_error`] is the first by name. Empty where the spec needs no scale.
#[must_use]
pub fn unscaled_pods(cluster: &Cluster, budget: &Pdb) -> Vec<(Text, String)> {
    if !counts_by_scale(budget) {
        return Vec::new();
    }
    let failure = |pod: &Arc<Pod>| match owners::find(cluster, pod, pod.owner.as_deref()?) {
        Found::Failed(message) => Some((pod.name.clone(), message)),
        Found::Owner(_) | Found::Unread => None,
    };
    selected(cluster, budget).filter_map(failure).collect()
}

/// The owners that a budget's numbers need and whose scale only a GET can tell, once per uid, asked before or not.
#[must_use]
pub fn scales_of(cluster: &Cluster, budget: &Pdb) -> Vec<(Text, OwnerRef)> {
    owners_to_ask(selected(cluster, budget), &mut BTreeSet::new())
}

/// The owners in a namespace whose scale must be asked for and was not, once per uid: those of all pods that a budget
/// selects.
#[must_use]
pub fn scales_wanted(cluster: &Cluster, namespace: &str) -> Vec<(Text, OwnerRef)> {
    let mut seen = BTreeSet::new();
    let mut wanted = Vec::new();
    for budget in cluster.budgets_in(namespace) {
        wanted.extend(owners_to_ask(selected(cluster, budget), &mut seen));
    }
    wanted.retain(|(_, owner)| cluster.scale(&owner.uid).is_none());
    wanted
}

fn owners_to_ask<'a>(
    pods: impl Iterator<Item = &'a Arc<Pod>>,
    seen: &mut BTreeSet<Text>,
) -> Vec<(Text, OwnerRef)> {
    let mut owners = Vec::new();
    for pod in pods {
        if let Some(owner) = &pod.owner
            && owners::only_scale_tells(owner)
            && seen.insert(owner.uid.clone())
        {
            owners.push((pod.namespace.clone(), OwnerRef::clone(owner)));
        }
    }
    owners
}

/// How many pods a budget expects and how many healthy ones it wants.
enum Expectation {
    Known { expected: i32, desired: i32 },
    Failed(String),
    Unread(Vec<(Text, OwnerRef)>),
}

/// Whether the spec counts by the scales of its pods' owners.
#[must_use]
pub fn counts_by_scale(budget: &Pdb) -> bool {
    budget.max_unavailable.is_some() || matches!(budget.min_available, Some(Amount::Text(_)))
}

/// `getExpectedPodCount`: maxUnavailable goes first, integer minAvailable counts pod objects.
fn expectation(cluster: &Cluster, budget: &Pdb, pods: &[&Arc<Pod>]) -> Expectation {
    if let (None, Some(Amount::Int(desired))) = (&budget.max_unavailable, &budget.min_available) {
        let counted = pods.iter().filter(|pod| !(planted(Planted::FinishedOut) && pod.finished()));
        return Expectation::Known { expected: count(counted), desired: *desired };
    }
    if !counts_by_scale(budget) {
        return Expectation::Known { expected: 0, desired: 0 };
    }
    let expected = match owners_of(cluster, pods) {
        OwnersFound::All(owners) => {
            let bare = if planted(Planted::BarePodsExpected) {
                count(pods.iter().filter(|pod| pod.owner.is_none()))
            } else {
                0
            };
            sum_of_scales(&owners).wrapping_add(bare)
        }
        OwnersFound::Failed(message) => return Expectation::Failed(message),
        OwnersFound::Unread(owners) => return Expectation::Unread(owners),
    };
    match desired_of(budget, expected) {
        Ok(desired) => Expectation::Known { expected, desired },
        Err(message) => Expectation::Failed(message),
    }
}

/// How many healthy pods the spec wants when its owners want `expected`.
///
/// # Errors
///
/// The amount is none.
pub fn desired_of(budget: &Pdb, expected: i32) -> Result<i32, String> {
    match (&budget.max_unavailable, &budget.min_available) {
        (Some(max), _) => Ok(expected.wrapping_sub(scaled(max, expected)?).max(0)),
        (None, Some(min)) => scaled(min, expected),
        (None, None) => Ok(0),
    }
}

/// The controller adds up in 32 bits and lets them wrap (`getExpectedScale`).
pub(super) fn sum_of_scales(owners: &BTreeMap<Text, OwnerScale>) -> i32 {
    owners.values().fold(0, |sum, owner| sum.wrapping_add(owner.replicas))
}

/// The owners of some pods, by uid.
pub(super) enum OwnersFound {
    All(BTreeMap<Text, OwnerScale>),
    Failed(String),
    Unread(Vec<(Text, OwnerRef)>),
}

/// `getExpectedScale`: each owner once; pods without a controller are left out; the first failure ends it.
pub(super) fn owners_of(cluster: &Cluster, pods: &[&Arc<Pod>]) -> OwnersFound {
    let mut owners = BTreeMap::new();
    let mut unread = BTreeMap::new();
    for pod in pods {
        let Some(reference) = &pod.owner else { continue };
        if owners.contains_key(&reference.uid) || unread.contains_key(&reference.uid) {
            continue;
        }
        match owners::find(cluster, pod, reference) {
            Found::Owner(owner) => {
                owners.insert(owner.uid.clone(), owner);
            }
            Found::Failed(message) => return OwnersFound::Failed(message),
            Found::Unread => {
                unread.insert(reference.uid.clone(), (pod.namespace.clone(), OwnerRef::clone(reference)));
            }
        }
    }
    if unread.is_empty() {
        OwnersFound::All(owners)
    } else {
        OwnersFound::Unread(unread.into_values().collect())
    }
}

/// The server refuses negative numbers (`ValidatePodDisruptionBudgetStatusUpdate`), which scales beyond 32 bits lead
/// to; its answer then becomes the message of the failed sync.
fn refused_status(budget: &Pdb, expected: i32, desired: i32) -> Option<String> {
    let problem = |field: &str, value: i32| {
        (value < 0)
            .then(|| format!("status.{field}: Invalid value: {value}: must be greater than or equal to 0"))
    };
    let problems: Vec<String> = [problem("desiredHealthy", desired), problem("expectedPods", expected)]
        .into_iter()
        .flatten()
        .collect();
    let list = match problems.as_slice() {
        [] => return None,
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    Some(format!("PodDisruptionBudget.policy \"{}\" is invalid: {list}", budget.name))
}

/// Pods that the server has let go and that do not terminate yet, with the time when they count again
/// (`buildDisruptedPodMap`).
fn disrupted_pods<'a>(budget: &Pdb, pods: &[&'a Arc<Pod>], now: Timestamp) -> BTreeMap<&'a str, Timestamp> {
    let deadline = |pod: &&'a Arc<Pod>| {
        let since = budget.status.disrupted_pods.get(&pod.name)?;
        let until = since.saturating_add(DELETION_TIMEOUT).ok()?;
        (!pod.terminating() && until >= now).then_some((&*pod.name, until))
    };
    pods.iter().filter_map(deadline).collect()
}

/// `countHealthyPods`: Ready, not terminating, not let go. The last holds until its end, excluded.
fn healthy(pod: &Pod, disrupted: &BTreeMap<&str, Timestamp>, now: Timestamp) -> bool {
    let terminating = pod.terminating() && !planted(Planted::TerminatingHealthy);
    let going =
        disrupted.get(&*pod.name).is_some_and(|until| *until > now) && !planted(Planted::DisruptedHealthy);
    pod.ready && !terminating && !going
}

fn count(items: impl Iterator) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}
