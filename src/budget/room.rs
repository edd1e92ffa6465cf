//! How many disruptions may be spent now.

use std::sync::Arc;

use jiff::Timestamp;

use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, Pdb, Pod};

use super::verdict::spend;
use super::{Cause, Computed, Shrunk, recompute, selected};

/// Disruptions that may be spent now: the smaller of reported and recomputed, less the evictions in flight.
///
/// Both, since with the controller manager down the reported allowance is stale and the server still spends it. Where
/// an owner's scale could not be read, the reported allowance alone decides. 0 when the server would refuse.
#[must_use]
pub fn room(cluster: &Cluster, budget: &Pdb, now: Timestamp) -> i32 {
    room_after(cluster, budget, &recompute(cluster, budget, now), None)
}

/// The same of a budget that was recomputed already, as if the owners counted that have no pod since theirs were evicted.
#[must_use]
pub fn room_after(cluster: &Cluster, budget: &Pdb, computed: &Computed, shrunk: Option<&Shrunk>) -> i32 {
    if spend(budget) != Cause::Allowed {
        return 0;
    }
    let reported =
        budget.status.disruptions_allowed.saturating_sub(cluster.evictions.of_budget(&budget.key()));
    let recomputed = if computed.unread_scales.is_empty() && !planted(Planted::StaleAllowance) {
        let spare = shrunk.map_or(computed.numbers.disruptions_allowed, |shrunk| {
            computed.numbers.disruptions_allowed.min(computed.numbers.current_healthy - shrunk.desired)
        });
        spare.saturating_sub(still_healthy_in_flight(cluster, budget))
    } else {
        i32::MAX
    };
    reported.min(recomputed).max(0)
}

/// Pods on their way out that the recomputed numbers still count: one that terminates already is out of them. Also those
/// whose eviction was thought to cost nothing: a pod that has become Ready meanwhile is charged all the same.
fn still_healthy_in_flight(cluster: &Cluster, budget: &Pdb) -> i32 {
    if !cluster.evictions.any_in_flight() || planted(Planted::InFlightForgotten) {
        return 0;
    }
    let counted = |pod: &&Arc<Pod>| {
        let name_shown = budget.status.disrupted_pods.contains_key(&pod.name);
        pod.ready && !pod.terminating() && !name_shown && cluster.evictions.is_in_flight(&pod.uid)
    };
    i32::try_from(selected(cluster, budget).filter(counted).count()).unwrap_or(i32::MAX)
}
