//! That a plan works in its windows only: the rest of invariant 2. Scenarios have windows that open with every minute, so
//! that what is open is plain arithmetic here.

use std::time::Duration;

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase};
use drainplan::simulate::{Fact, World};
use jiff::{SignedDuration, Timestamp};

use super::evictions::holder;
use super::{Verdict, hold};

const CLOSED: &str = "2 no eviction outside a window, except where the plan finishes what it has begun";
const STARTED: &str = "2 no node is started outside a window";
const RETURNED: &str = "2 nodes are given back at the first decision after a window";

pub fn judge(world: &World, fact: &Fact) -> Verdict {
    match fact {
        Fact::EvictionSent { eviction, .. } => {
            let Some(plan) = holder(world, &eviction.node) else { return Ok(()) };
            let may = open(plan, world.now()) || plan.spec.finishes_after_window();
            hold(CLOSED, may, || format!("{} is evicted for {:?}", eviction.uid, plan.metadata.name))
        }
        Fact::StatusWritten { before, plan, .. } => started(before.as_deref(), plan),
        Fact::Decided { process, moment, decisions } => {
            let Some(decider) = world.processes().get(*process) else { return Ok(()) };
            for plan in decider.agenda().plans().view().readable {
                let cut = !open(&plan, moment.wall) && !plan.spec.finishes_after_window();
                let mut of = decisions.plans.iter();
                let of = of.find(|decision| Some(&decision.uid) == plan.metadata.uid.as_ref());
                let goes_on = of.and_then(|decision| decision.status.as_ref()).is_some_and(drains);
                let over = plan.metadata.deletion_timestamp.is_some();
                hold(RETURNED, over || !(cut && goes_on), || format!("{:?} goes on", plan.metadata.name))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn started(before: Option<&DrainPlanStatus>, plan: &DrainPlan) -> Verdict {
    let nodes = plan.status.iter().flat_map(|status| &status.nodes);
    for node in nodes.filter(|node| node.phase == NodePhase::Draining) {
        let Some(at) = node.started_at.as_ref() else { continue };
        let same =
            |old: &&drainplan::api::NodeStatus| old.name == node.name && old.started_at.as_ref() == Some(at);
        let new = before.is_none_or(|before| !before.nodes.iter().any(|old| same(&old)));
        hold(STARTED, !new || open(plan, at.0), || format!("{} was started at {}", node.name, at.0))?;
    }
    Ok(())
}

fn drains(status: &DrainPlanStatus) -> bool {
    status.nodes.iter().any(|node| node.phase == NodePhase::Draining)
}

/// When what is open at an instant has opened; windows shorter than a minute open with every minute.
pub fn opened(plan: &DrainPlan, at: Timestamp) -> Option<Timestamp> {
    let minute = SignedDuration::from_mins(1);
    let apart = plan.spec.windows.iter().all(|of| of.duration.value() < minute);
    let full = Timestamp::from_second(at.as_second() - at.as_second().rem_euclid(60)).ok();
    let after = plan.spec.exclusions.iter().map(|of| of.end.0).filter(|end| *end <= at);
    full.filter(|_| apart).into_iter().chain(after).max().filter(|_| open(plan, at))
}

/// Whether the plan may work: every window opens with each minute.
fn open(plan: &DrainPlan, at: Timestamp) -> bool {
    let excluded = |of: &drainplan::api::Exclusion| of.start.0 <= at && at < of.end.0;
    let past = at.as_nanosecond().rem_euclid(60_000_000_000);
    let past = Duration::from_nanos(u64::try_from(past).unwrap_or(0));
    let within =
        |of: &drainplan::api::Window| Duration::try_from(of.duration.value()).is_ok_and(|lasts| past < lasts);
    let windows = &plan.spec.windows;
    !plan.spec.exclusions.iter().any(excluded) && (windows.is_empty() || windows.iter().any(within))
}
