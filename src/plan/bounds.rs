//! Keeps a status within bounds. What `decide` reads is never cut: a node that is not listed stays as a name.

use super::{moved, words};
use crate::api::{DrainPlanStatus, NodePhase, NodeReason, NodeStatus};

/// Nodes listed that are not in progress.
const OTHER_NODES: usize = 100;
/// Budgets listed.
const BUDGETS: usize = 400;
/// The size that a report may bring a status to, in bytes; the object is stored whole with every write.
const STATUS: usize = 512 * 1024;
/// What a node or pod takes beside its texts: keys, quotes, times and numbers.
const NODE: usize = 400;
const POD: usize = 200;
/// A pod that came back: two uids and their keys.
const RETURNED: usize = 110;

/// Cuts the report where it is too long.
pub fn keep(status: &mut DrainPlanStatus) {
    list_as_names(status);
    status.budgets.truncate(BUDGETS);
    // First shorter messages, then fewer pods: a name says more than the rest of a sentence.
    for (message, pods) in [(512, 20), (256, 20), (256, 5), (128, 1), (0, 0)] {
        if size(status) <= STATUS {
            return;
        }
        for node in &mut status.nodes {
            shorten(node, message, pods);
        }
    }
}

fn list_as_names(status: &mut DrainPlanStatus) {
    // When the last node was done is needed for pace.soak. All that were done with it are listed once, and counted.
    let done = status.nodes.iter().filter(|node| node.phase == NodePhase::Done);
    let last = done.filter_map(|node| node.finished_at.as_ref().map(|at| at.0)).max();
    let is_last = |node: &NodeStatus| {
        node.phase == NodePhase::Done && last.is_some() && node.finished_at.as_ref().map(|at| at.0) == last
    };
    let order = |node: &NodeStatus| match node.phase {
        NodePhase::Draining | NodePhase::HandedOff => 0,
        // That a hand-off has failed ends a plan, and is read back.
        NodePhase::Failed if node.reason.as_deref() == Some(NodeReason::HandOffTimedOut.as_str()) => 1,
        NodePhase::Failed => 2,
        NodePhase::Pending => 3,
        NodePhase::Skipped => 4,
        NodePhase::Done => 5,
    };
    let rank = |node: &NodeStatus| if is_last(node) { 0 } else { order(node) };
    let in_progress = status.nodes.iter().filter(|node| rank(node) == 0).count();
    status.nodes.sort_by_key(|node| (rank(node), node.name.clone()));
    let keep = (in_progress + OTHER_NODES).min(status.nodes.len());
    for node in status.nodes.split_off(keep) {
        match node.phase {
            NodePhase::Done => status.more_done.push(node.name),
            NodePhase::Failed => status.more_failed.push(node.name),
            NodePhase::Skipped => status.more_skipped.push(node.name),
            NodePhase::Pending | NodePhase::Draining | NodePhase::HandedOff => {}
        }
    }
    // Among those that are listed the last one stands where the others do.
    status.nodes.sort_by_key(|node| (order(node), node.name.clone()));
}

fn shorten(node: &mut NodeStatus, message: usize, pods: usize) {
    node.message =
        node.message.take().map(|text| words::bounded(text, message)).filter(|text| !text.is_empty());
    let dropped = node.waiting.len().saturating_sub(pods);
    node.more_waiting = node.more_waiting.saturating_add(i32::try_from(dropped).unwrap_or(i32::MAX));
    node.waiting.truncate(pods);
    for pod in &mut node.waiting {
        pod.message = words::bounded(std::mem::take(&mut pod.message), message);
    }
}

/// About how long the status is as JSON, and rather too long than too short.
fn size(status: &DrainPlanStatus) -> usize {
    let names = [&status.more_done, &status.more_failed, &status.more_skipped];
    let named: usize = names.into_iter().flatten().map(|name| name.len() + 3).sum();
    let listed: usize = status.nodes.iter().map(node_size).sum();
    let budgets: usize =
        status.budgets.iter().map(|budget| NODE + budget.namespace.len() + budget.name.len()).sum();
    let yielded: usize =
        status.yielded.iter().map(|node| NODE + node.name.len() + node.to.len() + node.message.len()).sum();
    // The conditions repeat some of the messages, each within 2 KiB.
    let moved: usize = status.moved.iter().map(moved::size).sum();
    16 * 1024 + named + listed + budgets + yielded + moved
}

fn node_size(node: &NodeStatus) -> usize {
    let pods = node.waiting.iter().map(|pod| {
        let budgets: usize = pod.budgets.iter().map(|budget| budget.len() + 3).sum();
        POD + pod.namespace.len() + pod.pod.len() + pod.message.len() + budgets
    });
    NODE + RETURNED * node.returned.len()
        + node.name.len()
        + node.message.as_ref().map_or(0, String::len)
        + pods.sum::<usize>()
}
