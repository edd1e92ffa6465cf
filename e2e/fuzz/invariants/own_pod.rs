//! The controller's own pod goes last from its node, and another replica evicts it where one could.

use std::collections::BTreeSet;
use std::sync::Arc;

use drainplan::cluster::{Cluster, Pod, Text};
use drainplan::plan::Action;
use drainplan::simulate::{Fact, World};

use super::evictions::holder;
use super::seen::Seen;
use super::{Verdict, hold};

const LAST: &str = "the controller's own pod goes last";
const BY_ANOTHER: &str = "the controller's own pod is evicted by another replica, where one is ready";
const ONCE: &str = "the lease is handed over once for a pod";

/// A process in one of its lives, and the uid of its pod.
type Stay = (usize, u32, Text);

#[derive(Default)]
pub struct OwnPods {
    /// Decided last.
    wanted: Option<Stay>,
    /// Somebody has led since.
    done: BTreeSet<Stay>,
}

impl OwnPods {
    pub fn judge(&mut self, world: &World, fact: &Fact, seen: &mut Seen) -> Verdict {
        if let Fact::Leads { .. } = fact {
            self.done.extend(self.wanted.take());
        }
        self.decided(world, fact, seen)?;
        judge(world, fact, seen)
    }

    fn decided(&mut self, world: &World, fact: &Fact, seen: &mut Seen) -> Verdict {
        let Fact::Decided { process, decisions, .. } = fact else { return Ok(()) };
        let Some(decider) = world.processes().get(*process) else { return Ok(()) };
        let mut actions = decisions.plans.iter().flat_map(|decision| &decision.actions);
        let of = |action: &Action| match action {
            Action::HandOver { pod, .. } => Some(pod.clone()),
            _ => None,
        };
        self.wanted = actions.find_map(of).map(|uid| (*process, decider.life(), uid));
        let Some(stay) = &self.wanted else { return Ok(()) };
        seen.one("the lease is to be handed over".to_owned());
        hold(ONCE, !self.done.contains(stay), || format!("it is handed over again by {stay:?}"))
    }
}

fn judge(world: &World, fact: &Fact, seen: &mut Seen) -> Verdict {
    match fact {
        Fact::Evicted { process, eviction, code: 201, .. } => {
            if let Some(home) = world.homes().find(|home| home.uid == eviction.uid) {
                let own = world.processes().get(*process).and_then(|of| of.pod()) == Some(&home.key());
                seen.one(format!(
                    "a controller's pod is evicted by {}",
                    if own { "itself" } else { "another" }
                ));
            }
            Ok(())
        }
        Fact::Decided { process, decisions, .. } => {
            let Some(decider) = world.processes().get(*process) else { return Ok(()) };
            let cluster = decider.agenda().cluster();
            let Some(own) = decider.pod().and_then(|own| cluster.pod(own)) else { return Ok(()) };
            let mut actions = decisions.plans.iter().flat_map(|decision| &decision.actions);
            let handed_over = cluster.evictions.was_handed_over(&own.uid);
            let evicts = |action: &Action| action.evicts().is_some_and(|evict| evict.uid == own.uid);
            if actions.any(evicts) {
                let others = before(world, cluster, own);
                hold(LAST, others.is_empty(), || format!("{} goes while {others:?} are there", own.name))?;
                let other = other(cluster, own);
                hold(BY_ANOTHER, handed_over || other.is_none(), || {
                    format!("{} evicts itself while {:?} is ready", own.name, other.map(|pod| &pod.name))
                })?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Pods of its node that must leave before, as the process knows it. A plan with rules may leave some.
fn before<'a>(world: &World, cluster: &'a Cluster, own: &Pod) -> Vec<&'a str> {
    let Some(node) = &own.node else { return Vec::new() };
    if holder(world, node).is_none_or(|plan| !plan.spec.pod_policy().rules.is_empty()) {
        return Vec::new();
    }
    let stays = |pod: &Pod| pod.owner.as_ref().is_some_and(|owner| cluster.daemon_set(&owner.uid).is_some());
    let others =
        cluster.pods_on(node).filter(|pod| pod.uid != own.uid && !pod.mirror && !pod.finished_by_itself());
    others.filter(|pod| !stays(pod)).map(|pod| &*pod.name).collect()
}

/// Another replica that could take over, as the process knows it.
fn other<'a>(cluster: &'a Cluster, own: &Pod) -> Option<&'a Arc<Pod>> {
    let could = |pod: &&Arc<Pod>| {
        let sent = cluster.evictions.is_in_flight(&pod.uid);
        pod.uid != own.uid
            && pod.owner == own.owner
            && pod.ready
            && !pod.terminating()
            && !sent
            && pod.node != own.node
    };
    cluster.pods_in(&own.namespace).find(could)
}
