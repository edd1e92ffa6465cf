//! That deadlines are kept: invariant 4.

use std::collections::BTreeMap;

use drainplan::api::{DrainPlan, NodePhase};
use drainplan::plan::Decisions;
use drainplan::simulate::{Fact, World};
use jiff::{SignedDuration, Timestamp};

use super::{Verdict, hold};

const KEPT: &str = "4 a node in progress leaves its phase at the first decision at or after its deadline";
const IN_TIME: &str = "4 a decision is made when a deadline has come";
/// How late a decision may be.
const LATE: SignedDuration = SignedDuration::from_millis(50);

#[derive(Default)]
pub struct Deadlines {
    /// When each process decided last, in which life, and the earliest deadline to come that it knew then.
    awaited: BTreeMap<usize, (Timestamp, u32, Timestamp)>,
}

impl Deadlines {
    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        let Fact::Decided { process, moment, decisions } = fact else { return Ok(()) };
        let Some(decider) = world.processes().get(*process) else { return Ok(()) };
        let now = moment.wall;
        if let Some((decided, life, deadline)) = self.awaited.remove(process) {
            // Whoever has begun to act anew has had to read the plans first.
            let acted = life == decider.life() && world.led_since(*process) <= decided;
            let late = acted && now > deadline + LATE;
            hold(IN_TIME, !late, || {
                format!("process {process} knew of a deadline at {deadline} and decides at {now}")
            })?;
        }
        for plan in &decider.agenda().plans().view().readable {
            if plan.metadata.deletion_timestamp.is_some() {
                continue;
            }
            for (node, phase, deadline) in deadlines(plan) {
                if deadline > now && still(decisions, plan, node, phase) {
                    let awaited = self.awaited.entry(*process).or_insert((now, decider.life(), deadline));
                    awaited.2 = awaited.2.min(deadline);
                } else if deadline <= now {
                    hold(KEPT, !still(decisions, plan, node, phase), || {
                        format!(
                            "{node} of {:?} had to leave {phase:?} at {deadline}, and {now} is decided to go on",
                            plan.metadata.name
                        )
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The nodes in progress by a plan's status, with their deadlines by its present spec.
fn deadlines(plan: &DrainPlan) -> impl Iterator<Item = (&str, NodePhase, Timestamp)> {
    let (drained, back) = (plan.spec.node_timeout().value(), plan.spec.hand_off_timeout().value());
    let status = plan.status.as_ref().filter(|status| status.finished_at.is_none());
    status.into_iter().flat_map(|status| &status.nodes).filter_map(move |node| {
        let (since, timeout) = match node.phase {
            NodePhase::Draining => (node.started_at.as_ref()?, drained),
            NodePhase::HandedOff => (node.drained_at.as_ref()?, back),
            _ => return None,
        };
        Some((node.name.as_str(), node.phase, since.0.checked_add(timeout).ok()?))
    })
}

fn still(decisions: &Decisions, plan: &DrainPlan, node: &str, phase: NodePhase) -> bool {
    let decision = decisions.plans.iter().find(|decision| plan.metadata.uid.as_ref() == Some(&decision.uid));
    let status = decision.and_then(|decision| decision.status.as_ref());
    status.is_some_and(|status| status.nodes.iter().any(|of| of.name == node && of.phase == phase))
}
