//! Whether a budget's configuration can ever allow a disruption.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Amount, Cluster, OwnerRef, Pdb, Pod, Text};

use super::amount::scaled;
use super::expected::{desired_of, selected, sum_of_scales};
use super::owners::{self, Found, OwnerScale};
use super::{Attainable, Computed, recompute};

/// Whether the configuration can ever allow a disruption.
#[must_use]
pub fn attainable(cluster: &Cluster, budget: &Pdb, now: Timestamp) -> Attainable {
    attainable_after(cluster, budget, &recompute(cluster, budget, now), &[])
}

/// The same of a budget that was recomputed already, after a run has evicted pods of these owners from it: an owner whose
/// last pod is away still counts.
#[must_use]
pub fn attainable_after(
    cluster: &Cluster,
    budget: &Pdb,
    computed: &Computed,
    evicted: &[Text],
) -> Attainable {
    let pods: Vec<&Arc<Pod>> = selected(cluster, budget).collect();
    let mut owners = Owners::of(cluster, &pods);
    owners.add_evicted(cluster, evicted);
    let expected = sum_of_scales(&owners.scaled);
    let required = desired_of(budget, expected).unwrap_or(i32::MAX).max(0);
    let attainable = owners.attainable(cluster, budget, &pods);
    let neither_field = budget.min_available.is_none() && budget.max_unavailable.is_none();
    let unread: Vec<(Text, OwnerRef)> = owners.unread.into_values().collect();
    // The owner removes the pods of a scale of 0 itself: not for ever.
    let all_going = !owners.scaled.is_empty() && owners.unscaled.is_empty() && expected == 0;
    let allows_none = budget.status.disruptions_allowed <= 0 && computed.numbers.disruptions_allowed <= 0;
    let enough = if unread.is_empty() {
        all_going || attainable > required
    } else {
        // A scale of 0 is the one that the controller would have reported as such.
        let may_want_none = budget.behind() || budget.status.expected_pods <= 0;
        !asks_for_all(budget) || pods.iter().any(|pod| stays(pod)) || may_want_none
    };
    let never = neither_field || (allows_none && !enough);
    Attainable { required, attainable, neither_field, unread, never }
}

/// As many healthy pods are required as the owners want, whatever that is.
#[must_use]
pub fn asks_for_all(budget: &Pdb) -> bool {
    match (&budget.max_unavailable, &budget.min_available) {
        (Some(max), _) => scaled(max, 100).is_ok_and(|of_hundred| of_hundred <= 0),
        (None, Some(min @ Amount::Text(_))) => scaled(min, 100).is_ok_and(|of_hundred| of_hundred >= 100),
        _ => false,
    }
}

/// It has no owner and is not going.
fn stays(pod: &Pod) -> bool {
    let counts = pod.ready || !planted(Planted::BareMustBeReady);
    pod.owner.is_none() && !pod.finished() && !pod.terminating() && counts
}

/// Who owns the pods of a budget.
#[derive(Default)]
struct Owners {
    /// Owners with a scale.
    scaled: BTreeMap<Text, OwnerScale>,
    /// uid of a pod's controller → uid of the owner whose scale it counts for.
    stands_for: BTreeMap<Text, Text>,
    /// Controllers that have no scale or are gone.
    unscaled: BTreeMap<Text, OwnerRef>,
    /// Owners whose scale was not read, with their namespace, by uid.
    unread: BTreeMap<Text, (Text, OwnerRef)>,
}

impl Owners {
    fn of(cluster: &Cluster, pods: &[&Arc<Pod>]) -> Self {
        let mut owners = Self::default();
        for pod in pods {
            let Some(reference) = &pod.owner else { continue };
            let uid = &reference.uid;
            if owners.stands_for.contains_key(uid)
                || owners.unscaled.contains_key(uid)
                || owners.unread.contains_key(uid)
            {
                continue;
            }
            match owners::find(cluster, pod, reference) {
                Found::Owner(owner) => {
                    owners.stands_for.insert(reference.uid.clone(), owner.uid.clone());
                    owners.scaled.insert(owner.uid.clone(), owner);
                }
                Found::Failed(_) => {
                    owners.unscaled.insert(reference.uid.clone(), OwnerRef::clone(reference));
                }
                Found::Unread => {
                    let unread = (pod.namespace.clone(), OwnerRef::clone(reference));
                    owners.unread.insert(reference.uid.clone(), unread);
                }
            }
        }
        owners
    }

    fn add_evicted(&mut self, cluster: &Cluster, evicted: &[Text]) {
        for uid in evicted {
            if let Some(owner) = owners::by_uid(cluster, uid) {
                self.scaled.entry(owner.uid.clone()).or_insert(owner);
            }
        }
    }

    /// Healthy pods that owners can provide, plus the pods that have none: one that is not Ready may be again, one that is
    /// going is not created again.
    fn attainable(&self, cluster: &Cluster, budget: &Pdb, pods: &[&Arc<Pod>]) -> i32 {
        let unfinished = |of: &dyn Fn(&OwnerRef) -> bool| {
            count(pods.iter().filter(|pod| !pod.finished() && pod.owner.as_deref().is_some_and(of)))
        };
        let mut sum = count(pods.iter().filter(|pod| stays(pod)));
        for owner in self.scaled.values() {
            let belongs = |reference: &OwnerRef| self.stands_for.get(&reference.uid) == Some(&owner.uid);
            let whole = match &owner.template {
                Some(template) => budget.selects(template),
                None => self.selects_all_of(cluster, budget, &owner.uid),
            };
            sum = sum.saturating_add(if planted(Planted::AttainableByReady) {
                let belongs = |pod: &&Arc<Pod>| pod.owner.as_deref().is_some_and(belongs);
                count(pods.iter().copied().filter(belongs).filter(|pod| pod.ready))
            } else if whole {
                owner.replicas
            } else {
                unfinished(&belongs)
            });
        }
        sum = sum.saturating_add(i32::from(planted(Planted::AttainableByOneMore)));
        sum.saturating_add(unfinished(&|reference| self.unscaled.contains_key(&reference.uid)))
    }

    /// The pod template of a custom resource is not known: its pods stand for it.
    fn selects_all_of(&self, cluster: &Cluster, budget: &Pdb, owner: &Text) -> bool {
        let belongs = |pod: &&Arc<Pod>| {
            pod.owner.as_ref().is_some_and(|reference| self.stands_for.get(&reference.uid) == Some(owner))
        };
        cluster
            .pods_in(&budget.namespace)
            .filter(|pod| !pod.finished())
            .filter(belongs)
            .all(|pod| budget.selects(&pod.labels))
    }
}

fn count(items: impl Iterator) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}
