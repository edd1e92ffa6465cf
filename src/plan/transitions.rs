//! What is worth an event: one function of the old and the new status.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::run::{Run, Stall};
use super::{teams, words};
use crate::api::{
    DrainPlanStatus, NodePhase, NodeReason, NodeStatus, Outlook, PlanPhase, Reason, WaitingPod, condition,
};
use crate::cluster::Node;

/// Events about waiting pods in one decision.
const WAITS: usize = 10;

/// An event to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub subject: Subject,
    /// Whether somebody should look.
    pub severity: Severity,
    /// One word.
    pub reason: &'static str,
    /// What was done.
    pub action: &'static str,
    /// A sentence.
    pub note: String,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The plan itself.
    Plan,
    /// One of its nodes.
    Node {
        /// The node's name.
        name: String,
        /// The node's uid.
        uid: String,
    },
    /// A pod of somebody's, by its name: whoever tells it looks up which.
    Pod { namespace: String, name: String },
    /// A budget of somebody's.
    Budget { namespace: String, name: String },
}

/// Whether somebody should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// All goes as it should.
    Normal,
    /// Somebody should look.
    Warning,
}

/// The events between two statuses.
#[must_use]
pub fn notices(plan: &str, old: Option<&DrainPlanStatus>, new: &DrainPlanStatus) -> Vec<Notice> {
    let empty = DrainPlanStatus::default();
    let old = old.unwrap_or(&empty);
    let before: BTreeMap<&str, &NodeStatus> =
        old.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    // As it reads best: a plan's start, the nodes that have ended, those that begin, and a plan's end or standstill.
    let (begins, ends): (Vec<Notice>, Vec<Notice>) = plan_notices(old, new)
        .into_iter()
        .partition(|notice| matches!(notice.reason, "Running" | "Suspended"));
    let mut nodes: Vec<&NodeStatus> = new.nodes.iter().collect();
    nodes.sort_by_key(|node| Reverse(node.phase));
    let mut notices = begins;
    for node in nodes {
        notices.extend(node_notices(plan, before.get(node.name.as_str()).copied(), node));
    }
    notices.extend(yield_notices(old, new));
    notices.extend(return_notices(old, new));
    notices.extend(claim_notices(&before, new));
    notices.extend(pod_notices(&before, new));
    notices.extend(teams::notices(plan, &before, new));
    notices.extend(ends);
    notices
}

fn plan_notices(old: &DrainPlanStatus, new: &DrainPlanStatus) -> Vec<Notice> {
    let ready = new.conditions.iter().find(|condition| condition.type_ == condition::READY);
    let message = ready.map(|condition| condition.message.clone()).unwrap_or_default();
    let mut notices = Vec::new();
    let mut say = |severity, reason, action, note| {
        notices.push(Notice { subject: Subject::Plan, severity, reason, action, note });
    };
    let ended = new.last_run.as_ref().filter(|_| old.last_run != new.last_run);
    match ended.map(|run| run.phase) {
        Some(PlanPhase::Completed) => say(Severity::Normal, "Completed", "Drain", message.clone()),
        Some(_) => say(Severity::Warning, "Failed", "Drain", message.clone()),
        None => {}
    }
    if old.phase != new.phase {
        match new.phase {
            Some(PlanPhase::Scheduled) if ended.is_some() => {}
            Some(PlanPhase::Scheduled) => say(Severity::Normal, "AwaitingWindow", "Wait", message),
            Some(PlanPhase::Running) => say(Severity::Normal, "Running", "Drain", message),
            Some(PlanPhase::Suspended) => say(Severity::Normal, "Suspended", "Suspend", message),
            Some(PlanPhase::Completed) => say(Severity::Normal, "Completed", "Drain", message),
            Some(PlanPhase::Failed) => say(Severity::Warning, "Failed", "Drain", message),
            Some(PlanPhase::Pending) | None => {}
        }
    }
    let stalled = |status: &DrainPlanStatus| {
        let stalled = status.conditions.iter().find(|condition| condition.type_ == condition::STALLED)?;
        let reason = Stall::REASONS.iter().find(|reason| **reason == stalled.reason)?;
        Some((*reason, stalled.message.clone()))
    };
    if let Some((reason, message)) = stalled(new)
        && stalled(old).is_none_or(|(before, _)| before != reason)
    {
        say(Severity::Warning, reason, "Wait", message);
    }
    notices
}

/// A node that stays cordoned although its hand-off is over.
pub fn left_cordoned(plan: &str, node: &Node) -> Vec<Notice> {
    let note = words::left_cordoned(&node.name, plan, &node.ready);
    let on_node = Subject::Node { name: node.name.to_string(), uid: node.uid.to_string() };
    let notice = |subject| {
        let (severity, reason, action) = (Severity::Warning, "NodeLeftCordoned", "Keep");
        Notice { subject, severity, reason, action, note: note.clone() }
    };
    [Subject::Plan, on_node].map(notice).into()
}

/// Nodes that have given way.
fn yield_notices(old: &DrainPlanStatus, new: &DrainPlanStatus) -> Vec<Notice> {
    let mut notices = Vec::new();
    for node in new.yielded.iter().filter(|node| !old.yielded.contains(node)) {
        let subject = Subject::Node { name: node.name.clone(), uid: node.uid.clone() };
        for subject in [Subject::Plan, subject] {
            let (severity, reason, action) = (Severity::Warning, "NodeYielded", "Yield");
            notices.push(Notice { subject, severity, reason, action, note: node.message.clone() });
        }
    }
    notices
}

/// Nodes in progress of which the plan has let go before they have ended.
fn return_notices(old: &DrainPlanStatus, new: &DrainPlanStatus) -> Vec<Notice> {
    let in_progress = |node: &&NodeStatus| matches!(node.phase, NodePhase::Draining | NodePhase::HandedOff);
    let told = |node: &&NodeStatus| {
        let name = &node.name;
        let ended = new.more_done.iter().chain(&new.more_failed).chain(&new.more_skipped);
        ended.chain(new.yielded.iter().map(|node| &node.name)).any(|known| known == name)
            || new.nodes.iter().any(|known| known.name == *name && !is_claimed(known))
    };
    let shut = new.conditions.iter().find(|it| it.type_ == condition::WINDOW_OPEN && it.status == "False");
    let ready = new.conditions.iter().find(|it| it.type_ == condition::READY);
    let why = match shut {
        _ if new.finished_at.is_some() || new.last_run != old.last_run => "the plan has ended",
        _ if ready.is_some_and(|ready| ready.reason == Run::ENDING) => "the plan ends",
        Some(shut) => shut.message.as_str(),
        None => "it is no longer one of the plan's nodes, or another plan holds it",
    };
    let mut notices = Vec::new();
    for node in old.nodes.iter().filter(in_progress).filter(|node| !told(node)) {
        let before = match node.phase {
            NodePhase::HandedOff => "its hand-off had ended",
            _ => "it was empty",
        };
        let note = format!("node {} is given back before {before}: {why}", node.name);
        let on = Subject::Node { name: node.name.clone(), uid: node.uid.clone() };
        for subject in [Subject::Plan, on] {
            let (severity, reason, action) = (Severity::Normal, "NodeReturned", "Uncordon");
            notices.push(Notice { subject, severity, reason, action, note: note.clone() });
        }
    }
    notices
}

fn node_notices(plan: &str, old: Option<&NodeStatus>, new: &NodeStatus) -> Vec<Notice> {
    let same = old.is_some_and(|old| {
        old.phase == new.phase && (new.phase != NodePhase::Pending || still_blocked(old, new))
    });
    if same || is_claimed(new) {
        return Vec::new();
    }
    let reason = new.reason.clone().unwrap_or_default();
    let message = new.message.clone().unwrap_or_default();
    let name = &new.name;
    let (severity, word, action, note) = match new.phase {
        NodePhase::Draining => {
            let deadline = new.deadline.as_ref().map(|at| words::instant(at.0)).unwrap_or_default();
            let note = format!("node {name} is drained by plan {plan} until {deadline}; {message}");
            (Severity::Normal, "NodeDraining", "Cordon", note)
        }
        NodePhase::HandedOff => {
            let note = format!("plan {plan} hands off node {name}: {message}");
            (Severity::Normal, "NodeHandedOff", "HandOff", note)
        }
        NodePhase::Done if !message.is_empty() => (
            Severity::Normal,
            "NodeTakenBack",
            "TakeBack",
            format!("the hand-off of node {name} has ended: {message}"),
        ),
        NodePhase::Done => {
            let note = format!(
                "node {name} is drained: {} evicted",
                words::count(usize_of(new.pods_evicted), "pod")
            );
            (Severity::Normal, "NodeDrained", "Drain", note)
        }
        NodePhase::Failed => {
            (Severity::Warning, "NodeFailed", "Drain", format!("node {name} {reason}: {message}"))
        }
        NodePhase::Skipped => (Severity::Warning, "NodeSkipped", "Skip", format!("{reason}: {message}")),
        NodePhase::Pending => (Severity::Warning, "NodeBlocked", "Wait", format!("node {name}: {message}")),
    };
    let on = |subject| Notice { subject, severity, reason: word, action, note: note.clone() };
    let node = Subject::Node { name: name.clone(), uid: new.uid.clone() };
    if new.uid.is_empty() { vec![on(Subject::Plan)] } else { vec![on(Subject::Plan), on(node)] }
}

/// A pending node is held by nothing that has not been told.
fn still_blocked(old: &NodeStatus, new: &NodeStatus) -> bool {
    let never = |node: &NodeStatus, reason: &str| {
        node.waiting.iter().any(|pod| pod.outlook == Outlook::NeverClears && pod.reason == reason)
    };
    old.reason == new.reason
        && new.waiting.iter().all(|pod| !never(new, &pod.reason) || never(old, &pod.reason))
}

fn is_claimed(node: &NodeStatus) -> bool {
    node.phase == NodePhase::Pending && node.reason.as_deref() == Some(NodeReason::ClaimedByOther.as_str())
}

/// Nodes that now wait for whoever holds them: one event for each holder.
fn claim_notices(before: &BTreeMap<&str, &NodeStatus>, new: &DrainPlanStatus) -> Vec<Notice> {
    let told = |node: &NodeStatus| before.get(node.name.as_str()).is_some_and(|old| is_claimed(old));
    let mut held: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in new.nodes.iter().filter(|node| is_claimed(node) && !told(node)) {
        held.entry(node.message.as_deref().unwrap_or_default()).or_default().push(node.name.clone());
    }
    let notice = |(message, nodes): (&str, Vec<String>)| Notice {
        subject: Subject::Plan,
        severity: Severity::Normal,
        reason: NodeReason::ClaimedByOther.as_str(),
        action: "Wait",
        note: format!("{}: {}: {message}", words::count(nodes.len(), "node"), words::list(&nodes)),
    };
    held.into_iter().map(notice).collect()
}

/// Pods of nodes in progress that begin to wait for more than time: one event for each node and reason. What holds a
/// node that is not touched, or has failed, is told with the node.
fn pod_notices(before: &BTreeMap<&str, &NodeStatus>, new: &DrainPlanStatus) -> Vec<Notice> {
    let mut notices = Vec::new();
    for node in new.nodes.iter().filter(|node| node.phase == NodePhase::Draining) {
        let old = before.get(node.name.as_str()).filter(|old| old.phase == NodePhase::Draining);
        let told = old.map(|old| held(old)).unwrap_or_default();
        for (reason, pods) in held(node) {
            let Some(known) = Reason::parse(reason).filter(|_| !told.contains_key(reason)) else { continue };
            let name = |pod: &WaitingPod| format!("{}/{}", pod.namespace, pod.pod);
            let note = format!("node {}: {}", node.name, words::of_pods(&pods, name));
            let (subject, severity) = (Subject::Plan, Severity::Warning);
            notices.push(Notice { subject, severity, reason: known.as_str(), action: "Wait", note });
        }
    }
    notices.truncate(WAITS);
    notices
}

/// The listed pods of a node that wait for more than time, by reason.
fn held(node: &NodeStatus) -> BTreeMap<&str, Vec<&WaitingPod>> {
    let mut held: BTreeMap<&str, Vec<&WaitingPod>> = BTreeMap::new();
    for pod in node.waiting.iter().filter(|pod| pod.outlook != Outlook::WillClear) {
        held.entry(pod.reason.as_str()).or_default().push(pod);
    }
    held
}

fn usize_of(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}
