//! What a plan remembers of the owners whose pods it moves: it is written down before, not forgotten too soon, and a budget
//! that has refilled itself is not believed. Pods that come back to their node are not evicted again and again.

use std::collections::{BTreeMap, BTreeSet};

use drainplan::api::{DrainPlan, DrainPlanStatus, MovedOwner, NodePhase};
use drainplan::budget::{counts_by_scale, recompute, scaled_owner, selected};
use drainplan::cluster::{Amount, Cluster, Pdb, Text};
use drainplan::plan::Evict;
use drainplan::simulate::{Fact, World};
use jiff::{SignedDuration, Timestamp};

use super::evictions::holder;
use super::{Verdict, hold};

const RECORDED: &str = "an owner is remembered before its pods are evicted";
const HONEST: &str = "an owner is remembered with the Ready pods that it had";
const KEPT: &str = "an owner is remembered until its pods are Ready again";
const SHRUNK: &str = "3 no budget is overdrawn because an owner of evicted pods no longer counts";
const RETURNS: &str = "a pod that comes back to its node is evicted once more at most";

/// A pod that does not tolerate the cordon may have been bound while it was on its way.
const CORDON_LANDS: SignedDuration = SignedDuration::from_secs(10);

/// One draining of a node by a plan, and a controller of pods there.
type Draining = (String, Text, Timestamp, Text);

#[derive(Default)]
pub struct Moved {
    /// The pods that had come back and were evicted, by draining and controller.
    returned: BTreeMap<Draining, BTreeSet<Text>>,
}

impl Moved {
    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::EvictionSent { process, eviction } => {
                let Some(sender) = world.processes().get(*process) else { return Ok(()) };
                let cluster = sender.agenda().cluster();
                let plans = sender.agenda().plans().view().readable;
                recorded(world, cluster, eviction)?;
                for budget in eviction.spends.iter().filter_map(|key| cluster.budget(key)) {
                    let moved =
                        plans.iter().filter_map(|plan| plan.status.as_ref()).flat_map(|status| &status.moved);
                    not_shrunk(cluster, budget, moved, world.now())?;
                }
                self.returns(world, cluster, eviction)
            }
            Fact::Decided { process, decisions, .. } => {
                let Some(decider) = world.processes().get(*process) else { return Ok(()) };
                for plan in decider.agenda().plans().view().readable {
                    let mut of = decisions.plans.iter();
                    let of = of.find(|decision| Some(&decision.uid) == plan.metadata.uid.as_ref());
                    if let Some(status) = of.and_then(|decision| decision.status.as_ref()) {
                        followed(decider.agenda().cluster(), &plan, status)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn returns(&mut self, world: &World, cluster: &Cluster, eviction: &Evict) -> Verdict {
        let Some(pod) = cluster.pod(&eviction.pod).filter(|pod| pod.uid == eviction.uid) else {
            return Ok(());
        };
        let Some(plan) = holder(world, &eviction.node) else { return Ok(()) };
        let mut nodes = plan.status.iter().flat_map(|status| &status.nodes);
        let record = nodes.find(|of| *of.name == *eviction.node && of.phase == NodePhase::Draining);
        let since = record.and_then(|record| record.started_at.as_ref()).map(|at| at.0);
        let (Some(since), Some(owner)) = (since, pod.owner.as_ref()) else { return Ok(()) };
        let tolerates = pod.placement.as_ref().is_some_and(|placement| placement.tolerates_cordon());
        let lands = if tolerates { SignedDuration::ZERO } else { CORDON_LANDS };
        if pod.created.is_none_or(|created| created <= since + lands) {
            return Ok(());
        }
        let uid = plan.metadata.uid.clone().unwrap_or_default();
        let pods = self.returned.entry((uid, eviction.node.clone(), since, owner.uid.clone())).or_default();
        pods.insert(pod.uid.clone());
        hold(RETURNS, pods.len() < 2, || format!("{pods:?} of {} came back to {}", owner.name, eviction.node))
    }
}

/// The status of the plan that holds the node says so already.
fn recorded(world: &World, cluster: &Cluster, eviction: &Evict) -> Verdict {
    let Some(plan) = holder(world, &eviction.node) else { return Ok(()) };
    let Some(pod) = cluster.pod(&eviction.pod).filter(|pod| pod.uid == eviction.uid) else { return Ok(()) };
    let counted = cluster.budgets_of(pod).next().is_some();
    let Some(owner) = scaled_owner(cluster, pod).filter(|_| plan.spec.awaits_replacements() || counted)
    else {
        return Ok(());
    };
    let moved = plan.status.iter().flat_map(|status| &status.moved);
    hold(RECORDED, moved.into_iter().any(|of| *of.uid == *owner.uid), || {
        format!(
            "{} is evicted, and {:?} remembers nothing of {}",
            eviction.uid, plan.metadata.name, owner.name
        )
    })
}

/// What a decision does to what is remembered.
fn followed(cluster: &Cluster, plan: &DrainPlan, status: &DrainPlanStatus) -> Verdict {
    let old = plan.status.iter().flat_map(|status| &status.moved);
    let old: BTreeMap<&str, &MovedOwner> = old.map(|owner| (owner.uid.as_str(), owner)).collect();
    let new: BTreeMap<&str, &MovedOwner> =
        status.moved.iter().map(|owner| (owner.uid.as_str(), owner)).collect();
    let draining = |node: &Text| {
        status.nodes.iter().any(|of| of.phase == NodePhase::Draining && *of.name == **node)
            && plan
                .status
                .iter()
                .flat_map(|status| &status.nodes)
                .any(|of| of.phase == NodePhase::Draining && *of.name == **node)
    };
    for (uid, owner) in &old {
        let same = new
            .get(uid)
            .is_some_and(|now| now.evicted >= owner.evicted && now.ready_before == owner.ready_before);
        let leaves = cluster.pods_of(uid).any(|pod| pod.node.as_ref().is_some_and(draining));
        let forgotten = !same && (leaves || is_short(cluster, plan, owner));
        hold(KEPT, !forgotten, || {
            format!("{:?} forgets {owner:?}, now {:?}", plan.metadata.name, new.get(uid))
        })?;
    }
    for (uid, owner) in new.iter().filter(|(uid, _)| !old.contains_key(**uid)) {
        let ready = ready(cluster, uid);
        hold(HONEST, owner.ready_before == ready, || format!("{owner:?} has {ready} Ready pods"))?;
    }
    Ok(())
}

fn ready(cluster: &Cluster, owner: &str) -> i32 {
    let ready = cluster.pods_of(owner).filter(|pod| pod.ready && !pod.terminating()).count();
    i32::try_from(ready).unwrap_or(i32::MAX)
}

/// An owner that exists has fewer Ready pods than before and than it wants, and not all that it wants are there since before
/// the plan began: then none was moved.
pub fn is_short(cluster: &Cluster, plan: &DrainPlan, owner: &MovedOwner) -> bool {
    use drainplan::cluster::Scale;
    let wants = match (cluster.workload(&owner.uid), cluster.scale(&owner.uid)) {
        (Some(workload), _) => workload.replicas,
        (None, Some(Scale::Replicas { uid, replicas })) if **uid == *owner.uid => *replicas,
        (None, None | Some(Scale::Unreadable(_))) if owner.kind == "Fleet" => i32::MAX,
        _ => return false,
    };
    let started = plan.status.as_ref().and_then(|status| status.started_at.as_ref()).map(|at| at.0);
    let alive: Vec<_> = cluster.pods_of(&owner.uid).filter(|pod| !pod.finished_by_itself()).collect();
    let untouched = owner.evicted == 0
        && alive.iter().all(|pod| !pod.terminating() && pod.created < started)
        && i32::try_from(alive.len()).unwrap_or(i32::MAX) >= wants;
    ready(cluster, &owner.uid) < wants.min(owner.ready_before) && !untouched
}

/// With the owners counted that have no pod left, the budget has what is being spent.
fn not_shrunk<'m>(
    cluster: &Cluster,
    budget: &Pdb,
    moved: impl Iterator<Item = &'m MovedOwner>,
    now: Timestamp,
) -> Verdict {
    let computed = recompute(cluster, budget, now);
    let known = computed.sync_error.is_none() && computed.unread_scales.is_empty();
    if !known || !counts_by_scale(budget) {
        return Ok(());
    }
    let mut absent = BTreeMap::new();
    for owner in moved.filter(|owner| *owner.namespace == *budget.namespace) {
        let Some(workload) = cluster.workload(&owner.uid) else { continue };
        let here = cluster.pods_of(&owner.uid).any(|pod| budget.selects(&pod.labels));
        if budget.selects(&workload.template_labels) && !here && workload.replicas > 0 {
            absent.insert(owner.uid.clone(), workload.replicas);
        }
    }
    if absent.is_empty() {
        return Ok(());
    }
    let expected =
        i64::from(computed.numbers.expected_pods) + absent.values().map(|pods| i64::from(*pods)).sum::<i64>();
    let of = |amount: &Amount| match amount {
        Amount::Int(pods) => i64::from(*pods),
        Amount::Text(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (expected * percent + 99) / 100
        }
    };
    let desired = match (&budget.max_unavailable, &budget.min_available) {
        (Some(most), _) => (expected - of(most)).max(0),
        (None, Some(least)) => of(least),
        (None, None) => return Ok(()),
    };
    let leaving = selected(cluster, budget).filter(|pod| {
        let shown = budget.status.disrupted_pods.contains_key(&pod.name);
        pod.ready && !pod.terminating() && !shown && cluster.evictions.is_in_flight(&pod.uid)
    });
    let left = i64::from(computed.numbers.current_healthy) - i64::try_from(leaving.count()).unwrap_or(0);
    hold(SHRUNK, left >= desired, || {
        format!(
            "{}/{} keeps {left} healthy pods and would want {desired} of {expected} if {:?} counted",
            budget.namespace, budget.name, absent
        )
    })
}
