//! Which pods are evicted, and when: invariants 2 and 6, and that no pod is evicted twice.

use std::collections::{BTreeMap, BTreeSet};

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus};
use drainplan::cluster::Text;
use drainplan::plan::{Claim, Evict};
use drainplan::simulate::{Fact, World};
use jiff::Timestamp;

use super::{Verdict, hold};

/// What a plan is about, and since when.
#[derive(Default)]
struct Standing {
    suspended_since: Option<Timestamp>,
    over_since: Option<Timestamp>,
    /// Nodes that it does not select, since when.
    left_out: BTreeMap<Text, Timestamp>,
    /// Nodes that its status does not call Draining, since when.
    not_draining: BTreeMap<Text, Timestamp>,
}

#[derive(Default)]
pub struct Evictions {
    /// By the plan's uid.
    plans: BTreeMap<String, Standing>,
    /// Nodes without a claim, since when.
    unclaimed: BTreeMap<Text, Timestamp>,
    accepted: BTreeSet<Text>,
}

impl Evictions {
    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::EvictionSent { process, eviction } => {
                let known = world.processes().get(*process).map(|process| process.behind_since(world.now()));
                self.sent(world, eviction, known.unwrap_or(world.now()))
            }
            Fact::Evicted { eviction, reborn: true, looked, .. } => hold(
                "a pod that may have been reborn is looked at right before its eviction",
                *looked,
                || format!("{} has another pod's name, and nobody looked", eviction.uid),
            ),
            Fact::Evicted { eviction, code: 201, .. } => {
                hold("no pod is evicted twice", self.accepted.insert(eviction.uid.clone()), || {
                    format!("the server has accepted a second eviction of {}", eviction.uid)
                })
            }
            _ => Ok(()),
        }
    }

    fn sent(&self, world: &World, eviction: &Evict, known: Timestamp) -> Verdict {
        let (node, uid) = (&eviction.node, &eviction.uid);
        let before = |since: Option<Timestamp>| since.is_some_and(|since| since < known);
        if let Some(pod) = world.store().pod_of(&eviction.pod, uid) {
            hold("6 no pod outside the plan's nodes is evicted", pod.node.as_ref() == Some(node), || {
                format!("{uid} is evicted from {node} and runs on {:?}", pod.node)
            })?;
        }
        hold("2 no eviction on an unclaimed node", !before(self.unclaimed.get(node).copied()), || {
            format!(
                "{uid} is evicted from {node}, which nobody has claimed since {:?}",
                self.unclaimed.get(node)
            )
        })?;
        let Some(plan) = holder(world, node) else { return Ok(()) };
        let Some(standing) = plan.metadata.uid.as_ref().and_then(|uid| self.plans.get(uid)) else {
            return Ok(());
        };
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        hold("2 no eviction while suspended", !before(standing.suspended_since), || {
            format!("{uid} is evicted for {name}, suspended since {:?}", standing.suspended_since)
        })?;
        hold("2 no eviction for a plan that is over", !before(standing.over_since), || {
            format!("{uid} is evicted for {name}, which is over since {:?}", standing.over_since)
        })?;
        hold(
            "6 no pod outside the plan's nodes is evicted",
            !before(standing.left_out.get(node).copied()),
            || format!("{uid} is evicted from {node}, which {name} does not select"),
        )?;
        let not_draining = standing.not_draining.get(node).copied();
        hold("status is written ahead", !before(not_draining), || {
            format!(
                "{uid} is evicted from {node}, which the status of {name} does not call Draining since {not_draining:?}"
            )
        })
    }

    /// Follows who may be evicted.
    pub fn follow(&mut self, world: &World) {
        let now = world.now();
        for node in world.store().cluster().nodes() {
            if Claim::on(node).is_some() {
                self.unclaimed.remove(&node.name);
            } else {
                self.unclaimed.entry(node.name.clone()).or_insert(now);
            }
        }
        let mut there = BTreeSet::new();
        for plan in world.store().plans() {
            let Some(uid) = plan.metadata.uid.clone() else { continue };
            there.insert(uid.clone());
            let standing = self.plans.entry(uid).or_default();
            since(&mut standing.suspended_since, plan.spec.suspend, now);
            let finished = plan.status.as_ref().is_some_and(DrainPlanStatus::run_has_ended);
            since(&mut standing.over_since, finished || plan.metadata.deletion_timestamp.is_some(), now);
            let names = &plan.spec.nodes.names;
            for node in world.store().cluster().nodes() {
                let selected = match &plan.spec.nodes.selector {
                    Some(selector) => selector
                        .match_labels
                        .iter()
                        .all(|(key, value)| node.labels.get(key).is_some_and(|found| **found == **value)),
                    None => names.iter().any(|name| **name == *node.name),
                };
                since_in(&mut standing.left_out, &node.name, !selected, now);
                let drains = |of: &NodeStatus| of.phase == NodePhase::Draining && *of.name == *node.name;
                let draining = plan.status.as_ref().is_some_and(|status| status.nodes.iter().any(drains));
                since_in(&mut standing.not_draining, &node.name, !draining, now);
            }
        }
        for (uid, standing) in &mut self.plans {
            if !there.contains(uid) {
                standing.over_since.get_or_insert(now);
            }
        }
    }
}

fn since(at: &mut Option<Timestamp>, holds: bool, now: Timestamp) {
    if holds {
        at.get_or_insert(now);
    } else {
        *at = None;
    }
}

fn since_in(nodes: &mut BTreeMap<Text, Timestamp>, node: &Text, holds: bool, now: Timestamp) {
    if holds {
        nodes.entry(node.clone()).or_insert(now);
    } else {
        nodes.remove(node);
    }
}

/// The plan that has a claim on a node.
pub fn holder<'w>(world: &'w World, node: &str) -> Option<&'w DrainPlan> {
    let node = world.store().cluster().node(node)?;
    let claim = Claim::on(node)?;
    world.store().plans().find(|plan| plan.metadata.uid.as_deref() == Some(claim.uid)).map(AsRef::as_ref)
}
