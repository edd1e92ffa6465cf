//! The taint on nodes whose turn comes soon, so that evicted pods prefer nodes which are done or not selected.
//!
//! It belongs to no plan: a node carries it when any plan wants it to, and loses it when none does. So whatever ends,
//! stops or forgets a plan, the next decision takes back what is left over.

use std::collections::HashSet;

use jiff::SignedDuration;

use super::ownership::{self, NodeChange, is_marked};
use super::run::Run;
use super::{Action, Claim, Round};
use crate::cluster::Text;
use crate::cluster::planted::{Planted, planted};

/// Evictions wait until so many of the next nodes are marked: as many as are written in a second.
const FIRST: usize = 5;
/// But no longer than this after their node's start.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// What the nodes to come need.
pub struct Upcoming {
    /// Patches of nodes, the urgent ones first.
    pub patches: Vec<Action>,
    /// Some nodes carry the taint and should not.
    pub left_over: bool,
}

/// Compares what the nodes carry with what the plans want.
pub fn mark(round: &mut Round<'_>, runs: &mut [Run<'_>], sweep: &[Action]) -> Upcoming {
    let patched: HashSet<&Text> =
        runs.iter().flat_map(|run| &run.actions).chain(sweep).filter_map(patched_node).collect();
    let mut wanted: HashSet<&Text> = HashSet::new();
    let mut adds = Vec::new();
    for run in runs.iter().filter(|run| run.may_mark()) {
        for name in &run.upcoming {
            let Some(node) = round.cluster.node(name) else { continue };
            if wanted.insert(name) && !is_marked(node) && !patched.contains(name) {
                adds.push(ownership::patch(node, NodeChange::Mark));
            }
        }
    }
    let mut left_over = false;
    let mut patches = Vec::new();
    for node in round.cluster.nodes().filter(|node| is_marked(node) && !wanted.contains(&node.name)) {
        // Its claim takes the mark away.
        let starting = round.holders.contains_key(&node.name) && Claim::on(node).is_none();
        if starting {
            continue;
        }
        left_over = true;
        if !patched.contains(&node.name) && !planted(Planted::TaintLeft) {
            patches.push(ownership::patch(node, NodeChange::Unmark));
        }
    }
    patches.extend(adds);
    for run in runs.iter_mut() {
        hold_back(round, run);
    }
    Upcoming { patches, left_over }
}

fn patched_node(action: &Action) -> Option<&Text> {
    match action {
        Action::PatchNode { node, .. } => Some(node),
        _ => None,
    }
}

/// Pods that are evicted before the next nodes are marked would land there and be moved again.
fn hold_back(round: &mut Round<'_>, run: &mut Run<'_>) {
    let unmarked = |name: &Text| round.cluster.node(name).is_some_and(|node| !is_marked(node));
    if !run.upcoming.iter().take(FIRST).any(unmarked) {
        return;
    }
    for emptied in &mut run.evicting {
        let until = emptied.since.saturating_add(PATIENCE).unwrap_or(emptied.since);
        if until > round.now {
            emptied.ready = false;
            round.wake(until);
        }
    }
}
