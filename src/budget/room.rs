//! How many disruptions may be spent now.

use jiff::Timestamp;

use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, Pdb, PodKey};

use super::verdict::spend;
use super::{Cause, recompute};

/// Disruptions that may be spent now: the smaller of reported and recomputed, less the evictions in flight.
///
/// Both, since with the controller manager down the reported allowance is stale and the server still spends it. Where
/// an owner's scale could not be read, the reported allowance alone decides. 0 when the server would refuse.
#[must_use]
pub fn room(cluster: &Cluster, budget: &Pdb, now: Timestamp) -> i32 {
    if spend(budget) != Cause::Allowed {
        return 0;
    }
    let reported =
        budget.status.disruptions_allowed.saturating_sub(cluster.evictions.of_budget(&budget.key()));
    let computed = recompute(cluster, budget, now);
    let recomputed = if computed.unread_scales.is_empty() && !planted(Planted::StaleAllowance) {
        computed.numbers.disruptions_allowed.saturating_sub(still_healthy_in_flight(cluster, budget))
    } else {
        i32::MAX
    };
    reported.min(recomputed).max(0)
}

/// Evictions in flight whose pods the recomputed numbers still count: a pod that terminates already is out of them.
fn still_healthy_in_flight(cluster: &Cluster, budget: &Pdb) -> i32 {
    let counted = |key: &PodKey| {
        let name_shown = budget.status.disrupted_pods.contains_key(&key.name);
        cluster.pod(key).is_some_and(|pod| pod.ready && !pod.terminating() && !name_shown)
    };
    let key = budget.key();
    let in_flight = cluster.evictions.in_flight_of(&key).filter(|eviction| counted(&eviction.pod));
    i32::try_from(in_flight.count()).unwrap_or(i32::MAX)
}
