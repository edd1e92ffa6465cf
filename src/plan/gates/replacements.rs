//! The pods that were moved: no further node is started before they are Ready again.

use std::collections::BTreeSet;

use crate::api::{MovedOwner, NodeReason, names};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Node, Placement, Pod, Text};
use crate::plan::run::Run;
use crate::plan::{Round, moved, words};

/// Why no node is started: an owner whose pods were moved is short of Ready ones.
pub fn closed(run: &Run<'_>, round: &Round<'_>) -> Option<(NodeReason, String)> {
    if !run.plan.spec.awaits_replacements()
        || run.memory.moved.is_empty()
        || planted(Planted::ReplacementsIgnored)
    {
        return None;
    }
    let held = held(run, round);
    let mut short = run.memory.moved.values().filter_map(|owner| Some((owner, moved::wanted(round, owner)?)));
    let (owner, wanted) = short.find(|(owner, wanted)| !only_ours(round, &held, owner, *wanted))?;
    let lacks = round.explainer.lacks(&moved::reference(owner), wanted);
    Some((NodeReason::AwaitingReplacements, words::awaiting_replacements(&owner.namespace, &lacks)))
}

/// The nodes that are cordoned for the plan: those in progress, and those that it was told to keep so.
fn held(run: &Run<'_>, round: &Round<'_>) -> BTreeSet<Text> {
    let in_progress =
        run.memory.nodes.iter().filter(|(_, record)| record.in_progress()).map(|(name, _)| name);
    let claimed = round.claimed.get(&run.uid).into_iter().flatten();
    let kept = |node: &&std::sync::Arc<Node>| {
        node.unschedulable
            && node.annotations.get(names::KEPT_CORDONED).is_some_and(|plan| **plan == *run.name)
    };
    let kept = round.cluster.nodes().filter(kept).map(|node| &node.name);
    in_progress.chain(claimed).chain(kept).cloned().collect()
}

/// What the owner lacks fits only nodes that the plan holds: waiting for it would be waiting for ourselves.
fn only_ours(round: &Round<'_>, held: &BTreeSet<Text>, owner: &MovedOwner, wanted: i32) -> bool {
    let lacking = wanted.saturating_sub(moved::ready(round.cluster, &owner.uid));
    let waits = |pod: &&Pod| pod.node.is_none() && pod.unschedulable.is_some() && !pod.terminating();
    let pods = round.cluster.pods_of(&owner.uid).map(AsRef::as_ref).filter(waits);
    let ours = pods.filter(|pod| fits_only(round, held, pod)).count();
    i32::try_from(ours).unwrap_or(i32::MAX) >= lacking
}

fn fits_only(round: &Round<'_>, held: &BTreeSet<Text>, pod: &Pod) -> bool {
    let placement = pod.placement.as_deref();
    let admits =
        |node: &Node| &*node.ready == "True" && placement.is_none_or(|placement| placement.admits(node));
    let open = |node: &Node| !node.unschedulable || placement.is_some_and(Placement::tolerates_cordon);
    let ours = held.iter().filter_map(|name| round.cluster.node(name));
    let mut others = round.cluster.nodes().filter(|node| !held.contains(&node.name));
    !others.any(|node| open(node) && admits(node)) && ours.into_iter().any(|node| admits(node))
}
