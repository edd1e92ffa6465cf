//! That no node is started while a gate is closed: `pace.awaitReplacements`, `pace.soak` and `pace.maxUnhealthyNodes`, each
//! judged by what the process knew when it decided.

use std::collections::BTreeMap;

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus};
use drainplan::cluster::{Cluster, Node, Pod};
use drainplan::plan::Claim;
use drainplan::simulate::{Fact, World};
use jiff::Timestamp;

use super::moved::is_short;
use super::{Verdict, hold};

const REPLACEMENTS: &str = "no node is started while pods that were moved are not Ready again";
const SOAK: &str = "no node is started before pace.soak has passed";
const HEALTH: &str = "no node is started while more nodes are unhealthy than pace.maxUnhealthyNodes";

#[derive(Default)]
pub struct Gates {
    /// When the last node of a plan was done, by the plan's uid.
    done: BTreeMap<String, Timestamp>,
}

impl Gates {
    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::StatusWritten { plan, .. } => {
                let uid = plan.metadata.uid.clone().unwrap_or_default();
                let done = plan.status.iter().flat_map(|status| &status.nodes);
                let done = done.filter(|node| node.phase == NodePhase::Done);
                if let Some(last) = done.filter_map(|node| node.finished_at.as_ref()).map(|at| at.0).max() {
                    self.done.insert(uid, last);
                }
                Ok(())
            }
            Fact::Decided { process, moment, decisions } => {
                let Some(decider) = world.processes().get(*process) else { return Ok(()) };
                let cluster = decider.agenda().cluster();
                for plan in decider.agenda().plans().view().readable {
                    let mut of = decisions.plans.iter();
                    let of = of.find(|decision| Some(&decision.uid) == plan.metadata.uid.as_ref());
                    let Some(status) = of.and_then(|decision| decision.status.as_ref()) else { continue };
                    for node in started(plan.status.as_ref(), status) {
                        self.starts(cluster, &plan, status, node, moment.wall)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn starts(
        &self,
        cluster: &Cluster,
        plan: &DrainPlan,
        status: &DrainPlanStatus,
        node: &NodeStatus,
        now: Timestamp,
    ) -> Verdict {
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        let uid = plan.metadata.uid.clone().unwrap_or_default();
        // What was handed to somebody may be in any state.
        let handed = |other: &Node| {
            status.nodes.iter().any(|of| of.phase == NodePhase::HandedOff && *of.uid == *other.uid)
        };
        let others = cluster.nodes().filter(|other| *other.name != *node.name && !handed(other));
        let unhealthy = others.filter(|other| is_unhealthy(other)).count();
        let limit = plan.spec.unhealthy_nodes(cluster.nodes().count());
        hold(HEALTH, unhealthy <= limit, || {
            format!("{name} starts {} while {unhealthy} others are unhealthy, and {limit} may be", node.name)
        })?;
        if let Some(done) = self.done.get(&uid) {
            hold(SOAK, now.duration_since(*done) >= plan.spec.soak(), || {
                format!("{name} starts {} at {now}, and the one before was done at {done}", node.name)
            })?;
        }
        if plan.spec.awaits_replacements() {
            let moved = plan.status.iter().flat_map(|status| &status.moved);
            for owner in moved.filter(|owner| is_short(cluster, plan, owner)) {
                let waits = pending_for_us(cluster, plan, &owner.uid);
                hold(REPLACEMENTS, waits, || {
                    format!("{name} starts {} while {owner:?} is short of Ready pods", node.name)
                })?;
            }
        }
        Ok(())
    }
}

fn is_unhealthy(node: &Node) -> bool {
    &*node.ready != "True" || !node.pressure.is_empty()
}

/// The nodes that a decision starts.
fn started<'s>(
    before: Option<&'s DrainPlanStatus>,
    after: &'s DrainPlanStatus,
) -> impl Iterator<Item = &'s NodeStatus> {
    let drains = |node: &&NodeStatus| node.phase == NodePhase::Draining;
    let known = move |node: &NodeStatus| {
        let mut old = before.into_iter().flat_map(|status| &status.nodes).filter(drains);
        old.any(|old| old.uid == node.uid)
    };
    after.nodes.iter().filter(drains).filter(move |node| !known(node))
}

/// Some replacement has no node, and no node outside the plan's hands may have it.
fn pending_for_us(cluster: &Cluster, plan: &DrainPlan, owner: &str) -> bool {
    let ours = |node: &Node| {
        let held = Claim::on(node).is_some_and(|claim| Some(claim.uid) == plan.metadata.uid.as_deref());
        let kept = node.annotations.get(drainplan::api::names::KEPT_CORDONED);
        let drains = plan.status.iter().flat_map(|status| &status.nodes).any(|of| {
            *of.name == *node.name && matches!(of.phase, NodePhase::Draining | NodePhase::HandedOff)
        });
        held || drains || kept.map(AsRef::as_ref) == plan.metadata.name.as_deref()
    };
    let may = |pod: &Pod, node: &Node| {
        let placement = pod.placement.as_ref();
        let open = !node.unschedulable || placement.is_some_and(|placement| placement.tolerates_cordon());
        open && &*node.ready == "True" && placement.is_none_or(|placement| placement.admits(node)) && {
            let hard = node.taints.iter().any(|taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute"));
            placement.is_some() || !hard
        }
    };
    let mut pods = cluster.pods_of(owner).filter(|pod| pod.node.is_none() && !pod.terminating());
    pods.any(|pod| !cluster.nodes().any(|node| !ours(node) && may(pod, node)))
}
