//! Many nodes on one readable line. The whole of it stands under each node.

use super::run::Run;
use super::words;
use crate::api::{DrainPlanStatus, NodePhase, NodeReason, NodeStatus};

/// Reasons that a line tells; each with as many nodes as [`words::list`] names.
const GROUPS: usize = 3;
/// The longest text about all groups together, in bytes.
const TEXT: usize = 480;

/// Why nodes are not started. Those that have not had their turn are left out, unless nobody has one.
pub fn pending(run: &Run<'_>) -> String {
    let idle = run.memory.idle_since.is_some();
    let waits = run.pending.iter().filter(|(_, (reason, _))| match reason {
        NodeReason::AwaitingSlot => idle,
        NodeReason::PreflightOnly => false,
        _ => true,
    });
    let told = waits.map(|(name, (reason, message))| {
        let survey = run.surveys.get(name).filter(|_| *reason == NodeReason::Blocked);
        let held = survey.and_then(|survey| survey.never_clear().next());
        let why = held.and_then(|held| {
            let wait = held.judgement.wait.as_ref()?;
            let budgets: Vec<&str> = wait.budgets.iter().map(AsRef::as_ref).collect();
            Some(format!("{reason} ({})", words::cause(wait.reason.as_str(), &held.pod.namespace, &budgets)))
        });
        (name.to_string(), why.unwrap_or_else(|| message.clone()))
    });
    grouped(told, 0)
}

/// Which nodes are in progress, and how far that is.
pub fn in_progress(status: &DrainPlanStatus) -> String {
    let in_progress = |node: &&NodeStatus| matches!(node.phase, NodePhase::Draining | NodePhase::HandedOff);
    let in_progress = status.nodes.iter().filter(in_progress);
    let said = |node: &NodeStatus| node.message.clone().unwrap_or_else(|| "in progress".to_owned());
    grouped(in_progress.map(|node| (node.name.clone(), said(node))), 0)
}

/// Which nodes have failed, and why.
pub fn failed(status: &DrainPlanStatus) -> String {
    let failed = status.nodes.iter().filter(|node| node.phase == NodePhase::Failed);
    grouped(failed.map(|node| (node.name.clone(), why_failed(node))), status.more_failed.len())
}

fn why_failed(node: &NodeStatus) -> String {
    let reason = node.reason.as_deref().unwrap_or("Failed");
    let worst = node.waiting.iter().rev().max_by_key(|pod| pod.outlook);
    match (worst, &node.message) {
        (Some(pod), _) => format!("{reason} ({})", words::cause_of(pod)),
        (None, Some(message)) => format!("{reason}, {message}"),
        (None, None) => reason.to_owned(),
    }
}

/// `a, b, c and 4 more: this; d: that; and 2 more nodes`.
fn grouped(nodes: impl Iterator<Item = (String, String)>, not_listed: usize) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (name, why) in nodes {
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => groups.push((why, vec![name])),
        }
    }
    let rest: usize = groups.iter().skip(GROUPS).map(|(_, names)| names.len()).sum();
    let each = TEXT / groups.len().clamp(1, GROUPS);
    let mut parts: Vec<String> = groups
        .into_iter()
        .take(GROUPS)
        .map(|(why, names)| format!("{}: {}", words::list(&names), words::bounded(why, each)))
        .collect();
    if rest + not_listed > 0 {
        parts.push(format!("and {}", words::count(rest + not_listed, "more node")));
    }
    parts.join("; ")
}
