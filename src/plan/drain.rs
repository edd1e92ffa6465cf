//! What to evict now, over the nodes in progress of all plans.

use std::cmp::Reverse;
use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use super::own_pod::{self, Turn, is_own};
use super::run::{Emptied, Run};
use super::survey::Surveyed;
use super::{Action, Evict, Round};
use crate::api::{PodPolicy, Reason};
use crate::budget::Cause;
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{BudgetKey, OwnerRef, Pod, Text};
use crate::explain::{Treatment, Wait};

/// How long after its start a node that is not claimed yet keeps its place before younger ones.
const PLACE_KEPT: SignedDuration = SignedDuration::from_secs(2);

/// Chooses evictions. A budget's room goes to the node that was started first.
pub fn evict(round: &mut Round<'_>, runs: &mut [Run<'_>]) {
    let mut nodes: Vec<(Timestamp, usize, Text, bool)> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let kept = |emptied: &&Emptied| emptied.ready || keeps_its_place(round, emptied);
        let emptied = run.evicting.iter().filter(kept);
        nodes.extend(emptied.map(|emptied| (emptied.since, index, emptied.node.clone(), emptied.ready)));
    }
    // Nodes that were started at the same time stay in their plan's order.
    nodes.sort_by_key(|(since, index, ..)| (*since, *index));
    for (since, ..) in nodes.iter().filter(|(.., ready)| !ready) {
        round.wake(since.saturating_add(PLACE_KEPT).unwrap_or(*since));
    }
    let mut moving = HashSet::new();
    for (_, index, node, ready) in &nodes {
        let Some(run) = runs.get_mut(*index) else { continue };
        let chosen = choose(round, run, node, *ready, &mut moving);
        run.actions.extend(chosen);
    }
    evict_own(round, runs, &nodes, &mut moving);
}

/// The pods of a node that are evicted now; of the own pod see [`evict_own`].
fn choose(
    round: &mut Round<'_>,
    run: &Run<'_>,
    node: &Text,
    ready: bool,
    moving: &mut HashSet<Text>,
) -> Vec<Action> {
    let Some(survey) = run.surveys.get(node) else { return Vec::new() };
    let own = round.settings.own_pod.clone();
    let mut candidates: Vec<&Surveyed> =
        survey.pods.iter().filter(|surveyed| !is_own(own.as_ref(), &surveyed.pod)).collect();
    // A refusal should come before the disturbance: pods that cost a budget nothing, then budgeted ones, then those that
    // nothing protects.
    candidates.sort_by_key(|surveyed| order(surveyed));
    let mut chosen = Vec::new();
    for surveyed in candidates {
        if goes(round, run, surveyed, moving) && ready {
            chosen.push(eviction(round, run, surveyed, node));
        }
    }
    chosen
}

/// The own pod comes after all others of all nodes: what becomes of the other replicas is known then.
fn evict_own(
    round: &mut Round<'_>,
    runs: &mut [Run<'_>],
    nodes: &[(Timestamp, usize, Text, bool)],
    moving: &mut HashSet<Text>,
) {
    let Some(own) = round.settings.own_pod.clone() else { return };
    let leaving: HashSet<Text> = runs
        .iter()
        .flat_map(|run| &run.actions)
        .filter_map(|action| Some(action.evicts()?.uid.clone()))
        .collect();
    for (_, index, node, _) in nodes.iter().filter(|(.., ready)| *ready) {
        let Some(run) = runs.get_mut(*index) else { continue };
        let pods = run.surveys.get(node).into_iter().flat_map(|survey| &survey.pods);
        let Some(surveyed) = pods.into_iter().find(|surveyed| is_own(Some(&own), &surveyed.pod)) else {
            continue;
        };
        for (_, until) in own_pod::coming(round, &surveyed.pod) {
            round.wake(until);
        }
        if !goes(round, run, surveyed, moving) {
            continue;
        }
        let action = match own_pod::turn(round, &surveyed.pod, &leaving) {
            Turn::HandOver(action) => action,
            Turn::Evict => eviction(round, run, surveyed, node),
            Turn::Wait => continue,
        };
        run.actions.push(action);
    }
}

/// Whether the pod may go, with what it costs.
fn goes(round: &mut Round<'_>, run: &Run<'_>, surveyed: &Surveyed, moving: &mut HashSet<Text>) -> bool {
    may_go(round, surveyed)
        && run.has_written(round, &surveyed.pod)
        && alone(surveyed, &run.policy, moving)
        && spend(round, &surveyed.judgement.spends)
}

fn eviction(round: &Round<'_>, run: &Run<'_>, surveyed: &Surveyed, node: &Text) -> Action {
    Action::Evict(Evict {
        pod: surveyed.pod.key(),
        uid: surveyed.pod.uid.clone(),
        node: node.clone(),
        spends: surveyed.judgement.spends.clone(),
        owner: run.owner_to_remember(round, &surveyed.pod).map(|owner| owner.uid),
        grace_period_seconds: run.policy.grace_period_seconds,
    })
}

/// A node that is being claimed is not overtaken by a younger one whose claim was answered sooner.
fn keeps_its_place(round: &Round<'_>, emptied: &Emptied) -> bool {
    emptied.since.saturating_add(PLACE_KEPT).is_ok_and(|until| until > round.now)
}

/// Whether no other pod of its owner goes in this decision, where those without a budget go one by one.
fn alone(surveyed: &Surveyed, policy: &PodPolicy, moving: &mut HashSet<Text>) -> bool {
    let free = surveyed.judgement.verdict.cause == Cause::NoBudget && policy.one_at_a_time().is_some();
    let owner = surveyed.pod.owner.as_ref().filter(|_| free);
    owner.is_none_or(|owner| moving.insert(owner.uid.clone()))
}

fn order(surveyed: &Surveyed) -> (bool, Reverse<bool>) {
    let costs = !surveyed.judgement.spends.is_empty();
    (costs || surveyed.judgement.verdict.budgets.is_empty(), Reverse(costs))
}

/// Whether the server would take the pod now, as far as its own state goes.
fn may_go(round: &mut Round<'_>, surveyed: &Surveyed) -> bool {
    let (pod, judgement) = (&surveyed.pod, &surveyed.judgement);
    let held_back = |wait: &Wait| {
        matches!(wait.reason, Reason::AwaitingOrder | Reason::AwaitingReplacement | Reason::ReturnsToNode)
    };
    if judgement.treatment != Treatment::Evict
        || judgement.wait.as_ref().is_some_and(held_back)
        || (pod.terminating() && !planted(Planted::EvictedAgain))
        || judgement.verdict.code != 201
        || round.cluster.evictions.is_in_flight(&pod.uid)
        || round.cluster.rights.denied(&pod.namespace)
    {
        return false;
    }
    if let Some(until) = becomes_ready(round, pod) {
        round.wake(until);
        return false;
    }
    match round.cluster.evictions.refusal(&pod.uid).map(|refusal| refusal.retry_at) {
        Some(retry_at) if retry_at > round.now => {
            round.wake(retry_at);
            false
        }
        _ => true,
    }
}

/// A new pod of a budget becomes Ready at any moment. An eviction that costs nothing now would then be refused when it
/// arrives, so it waits; once Ready, its turn comes by the budget's room.
fn becomes_ready(round: &Round<'_>, pod: &Pod) -> Option<Timestamp> {
    let until = pod.created?.saturating_add(round.settings.settling).ok()?;
    let starts = !pod.ready && pod.just_starting(round.now) && !round.cluster.node_is_ill(pod);
    let starts = starts && until > round.now;
    (starts && round.cluster.budgets_of(pod).next().is_some()).then_some(until)
}

/// Takes one disruption of each budget, or of none when one of them has no room.
fn spend(round: &mut Round<'_>, budgets: &[BudgetKey]) -> bool {
    let has_room = |key: &BudgetKey| {
        let standing = round.cluster.budget(key).map(|budget| round.explainer.standing(budget));
        // What could not be read leaves the decision to the reported allowance; what nobody has asked for yet does not.
        let asked = |owner: &OwnerRef| round.cluster.scale(&owner.uid).is_some();
        let known =
            standing.filter(|known| known.computed.unread_scales.iter().all(|(_, owner)| asked(owner)));
        known.is_some_and(|known| known.room > round.spent.get(key).copied().unwrap_or(0))
    };
    if !budgets.iter().all(has_room) {
        return false;
    }
    for key in budgets {
        *round.spent.entry(key.clone()).or_default() += 1;
    }
    true
}
