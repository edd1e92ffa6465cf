//! Nodes that wait on each other's budgets: the younger gives way.
//!
//! A replacement has no node because the nodes that it may be on are cordoned for plans. The budget then has no room,
//! and the pods of that budget on those very nodes wait for it. Nothing ends that but one of the nodes.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use super::Round;
use super::run::{Emptied, Run};
use super::survey::Survey;
use crate::api::{Reason, names};
use crate::budget;
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{BudgetKey, Pod, Text};

/// So long a replacement has to wait, and so long the last node that gave way is given to help.
const PATIENCE: SignedDuration = SignedDuration::from_secs(3);

/// A node of which no pod can move.
struct Stuck {
    node: Text,
    run: usize,
    since: Timestamp,
}

/// Lets the youngest node give way that could take a replacement which an older one waits for.
pub fn resolve(round: &mut Round<'_>, runs: &mut [Run<'_>]) {
    let stuck = stuck(round, runs);
    if stuck.len() < 2 || planted(Planted::NeverYields) {
        return;
    }
    let Some((older, younger, lacking)) = entangled(round, runs, &stuck) else { return };
    let gave_way = runs.iter().flat_map(|run| &run.memory.yielded).map(|yielded| yielded.at);
    let since = gave_way.chain(lacking.created).max().unwrap_or(Timestamp::MIN);
    let until = since.saturating_add(PATIENCE).unwrap_or(since);
    if until > round.now {
        round.wake(until);
        return;
    }
    let (older, run, younger) = (older.node.clone(), younger.run, younger.node.clone());
    let lacking = format!("{}/{}", lacking.namespace, lacking.name);
    if let Some(run) = runs.get_mut(run) {
        run.give_way(&younger, &older, &lacking, round.now);
    }
}

/// The nodes that stand still for want of a replacement, the oldest claim first.
fn stuck(round: &Round<'_>, runs: &[Run<'_>]) -> Vec<Stuck> {
    let mut stuck = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let leaving: HashSet<&Text> =
            run.actions.iter().filter_map(|action| Some(&action.evicts()?.node)).collect();
        for Emptied { node, since, .. } in run.evicting.iter().filter(|emptied| emptied.ready) {
            let survey = run.surveys.get(node);
            if !leaving.contains(node) && survey.is_some_and(|survey| stands_still(round, survey)) {
                stuck.push(Stuck { node: node.clone(), run: index, since: *since });
            }
        }
    }
    stuck.sort_by_key(|stuck| (stuck.since, stuck.run));
    stuck
}

/// No pod is on its way, and one waits for a replacement that has no node.
fn stands_still(round: &Round<'_>, survey: &Survey) -> bool {
    let moves = |pod: &Pod| pod.terminating() || round.cluster.evictions.is_in_flight(&pod.uid);
    !survey.pods.iter().any(|surveyed| moves(&surveyed.pod)) && !budgets(survey).is_empty()
}

/// The budgets that wait for a replacement without a node.
fn budgets(survey: &Survey) -> Vec<&BudgetKey> {
    let waits = survey.pods.iter().filter(|surveyed| {
        surveyed.judgement.wait.as_ref().is_some_and(|wait| wait.reason == Reason::ReplacementPending)
    });
    waits.flat_map(|surveyed| &surveyed.judgement.spends).collect()
}

/// The oldest node that a younger one could help, that younger one, and the replacement that it could take.
fn entangled<'s, 'a>(
    round: &Round<'a>,
    runs: &[Run<'_>],
    stuck: &'s [Stuck],
) -> Option<(&'s Stuck, &'s Stuck, &'a Pod)> {
    for (number, older) in stuck.iter().enumerate() {
        let survey = runs.get(older.run).and_then(|run| run.surveys.get(&older.node))?;
        let pending: Vec<&Pod> = budgets(survey).into_iter().flat_map(|key| pending(round, key)).collect();
        for younger in stuck.iter().skip(number + 1).rev() {
            let helps = |pod: &&&Pod| opens_for(round, &younger.node, pod);
            if let Some(lacking) = pending.iter().find(helps) {
                return Some((older, younger, lacking));
            }
        }
    }
    None
}

/// The pods of a budget that the scheduler finds no node for.
fn pending<'a>(round: &Round<'a>, key: &BudgetKey) -> Vec<&'a Pod> {
    let Some(budget) = round.cluster.budget(key) else { return Vec::new() };
    let lacks = |pod: &&Pod| pod.node.is_none() && pod.unschedulable.is_some() && !pod.terminating();
    budget::selected(round.cluster, budget).map(|pod| &**pod).filter(lacks).collect()
}

/// Whether the pod could be on the node once it is given back.
fn opens_for(round: &Round<'_>, node: &Text, pod: &Pod) -> bool {
    let Some(node) = round.cluster.node(node) else { return false };
    let ours = !node.annotations.contains_key(names::WAS_CORDONED);
    ours && &*node.ready == "True" && pod.placement.as_ref().is_none_or(|placement| placement.admits(node))
}
