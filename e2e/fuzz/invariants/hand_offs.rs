//! That hand-offs end when what they wait for has happened, and not before.

use std::collections::BTreeSet;

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus, Until};
use drainplan::cluster::Text;
use drainplan::plan::Decisions;
use drainplan::simulate::{Act, Fact, World};

use super::{Verdict, hold};

const HAPPENED: &str = "a hand-off ends well when what it waits for has happened";
const DETACHED: &str = "a node is Done, or handed off, when no volume is attached to it";
const ONCE: &str = "what a node is compared with is written down once";

#[derive(Default)]
pub struct HandOffs {
    /// Nodes that were released, by uid, with the plan's name.
    released: BTreeSet<(Text, String)>,
}

impl HandOffs {
    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::Acted(Act::Release(node, plan)) => {
                let node = world.store().cluster().node(node);
                self.released.extend(node.map(|node| (node.uid.clone(), plan.clone())));
                Ok(())
            }
            Fact::Decided { process, decisions, .. } => detached(world, *process, decisions),
            Fact::StatusWritten { before: Some(before), plan, .. } => self.written(world, before, plan),
            _ => Ok(()),
        }
    }

    fn written(&self, world: &World, before: &DrainPlanStatus, plan: &DrainPlan) -> Verdict {
        let Some(after) = &plan.status else { return Ok(()) };
        for old in before.nodes.iter().filter(|node| node.phase == NodePhase::HandedOff) {
            let Some(new) = after.nodes.iter().find(|node| node.uid == old.uid) else { continue };
            match new.phase {
                NodePhase::HandedOff => {
                    let same = |of: &NodeStatus| {
                        (of.boot_id.clone(), of.kubelet_version.clone(), of.drained_at.clone())
                    };
                    hold(ONCE, same(old) == same(new), || format!("it was {old:?} and is {new:?}"))?;
                }
                NodePhase::Done => hold(HAPPENED, self.happened(world, plan, old), || {
                    format!("{:?} calls {} Done, which was {old:?}", plan.metadata.name, old.name)
                })?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What the plan waits for, judged from the node as it is; of one that is gone by now nobody can tell.
    fn happened(&self, world: &World, plan: &DrainPlan, old: &NodeStatus) -> bool {
        let node = world.store().cluster().node(&old.name).filter(|node| *node.uid == *old.uid);
        let until = plan.spec.until();
        let Some(node) = node else { return true };
        let name = plan.metadata.name.clone().unwrap_or_default();
        match until {
            Until::Drained => true,
            Until::Released => self.released.contains(&(node.uid.clone(), name)),
            Until::Rebooted => old.boot_id.as_deref() != Some(&*node.boot_id),
            Until::Upgraded => old.kubelet_version.as_deref() != Some(&*node.kubelet_version),
            Until::Deleted => false,
        }
    }
}

/// By what the process knew when it decided. The pods that stay use no volumes here.
fn detached(world: &World, process: usize, decisions: &Decisions) -> Verdict {
    let Some(decider) = world.processes().get(process) else { return Ok(()) };
    let volumes = &decider.agenda().cluster().volumes;
    for plan in decider.agenda().plans().view().readable {
        let mut of = decisions.plans.iter();
        let of = of.find(|decision| Some(&decision.uid) == plan.metadata.uid.as_ref());
        let Some(after) = of.and_then(|decision| decision.status.as_ref()) else { continue };
        let before = plan.status.iter().flat_map(|status| &status.nodes);
        for old in before.filter(|node| node.phase == NodePhase::Draining) {
            let empty = |new: &&NodeStatus| {
                new.uid == old.uid && matches!(new.phase, NodePhase::Done | NodePhase::HandedOff)
            };
            let empties = after.nodes.iter().any(|new| empty(&new)) && plan.spec.awaits_volumes_detached();
            let attached = volumes.attached_to(&old.name).next();
            hold(DETACHED, !empties || attached.is_none(), || format!("{} has {attached:?}", old.name))?;
        }
    }
    Ok(())
}
