//! The conditions, by the rules of kstatus: `Reconciling` and `Stalled` are there only when true.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::run::{Run, Stall};
use super::{brief, preflight, words};
use crate::api::{DrainPlanStatus, Outlook, PlanPhase, WaitingPod, condition};

/// The longest message of a condition, in bytes.
const MESSAGE: usize = 2048;

/// A condition before it is compared with the one that was there.
pub struct Said {
    pub type_: &'static str,
    pub status: bool,
    pub reason: &'static str,
    pub message: String,
}

/// The conditions of a status, with the times of the old ones where nothing flipped.
pub fn of(run: &Run<'_>, status: &DrainPlanStatus, old: &[Condition], now: Timestamp) -> Vec<Condition> {
    let generation = run.plan.metadata.generation;
    let said = [
        Some(ready(run, status)),
        reconciling(run, status),
        stalled(run, status),
        Some(drain_blocked(status)),
        window_open(run),
        nodes_healthy(run),
        preflight::passed(run),
    ];
    let said = said.into_iter().flatten().map(|said| {
        let truth = if said.status { "True" } else { "False" };
        let before = old.iter().find(|condition| condition.type_ == said.type_ && condition.status == truth);
        Condition {
            type_: said.type_.to_owned(),
            status: truth.to_owned(),
            reason: said.reason.to_owned(),
            message: words::bounded(said.message, MESSAGE),
            observed_generation: generation,
            last_transition_time: before.map_or(Time(now), |before| before.last_transition_time.clone()),
        }
    });
    said.collect()
}

fn ready(run: &Run<'_>, status: &DrainPlanStatus) -> Said {
    if let Some((completed, message)) = ended(run, status) {
        let reason = if completed { "Completed" } else { "Failed" };
        return Said { type_: condition::READY, status: completed, reason, message };
    }
    let (reason, message) = match (status.phase, &run.stalled) {
        (Some(PlanPhase::Suspended), _) => ("Suspended", format!("suspended; {}", summary(status))),
        (_, Some(stall)) => (stall.reason(), stall.message().to_owned()),
        _ if run.only_looks() => ("PreflightOnly", preflight::summary(run)),
        (Some(PlanPhase::Scheduled), None) => ("AwaitingWindow", progress(run, status)),
        _ => (doing(run, status), progress(run, status)),
    };
    let status = false;
    Said { type_: condition::READY, status, reason, message }
}

/// Whether the plan, or its last run, has ended well; a suspension, or what is wrong with the spec, comes first between runs.
fn ended(run: &Run<'_>, status: &DrainPlanStatus) -> Option<(bool, String)> {
    let (_, phase) = run.memory.finished?;
    if run.repeats() && run.is_between_runs() && (run.stalled.is_some() || run.plan.spec.suspend) {
        return None;
    }
    let completed = phase == PlanPhase::Completed;
    let message = match &status.last_run {
        Some(last) if run.repeats() => words::between_runs(last, run.hours.next_opens()),
        _ => outcome(run, status, completed),
    };
    Some((completed, message))
}

/// How the run has ended.
pub fn outcome(run: &Run<'_>, status: &DrainPlanStatus, completed: bool) -> String {
    if completed { summary(status) } else { failures(run, status) }
}

/// Not while only a person can help: whoever reads it goes by it before it looks whether the plan is stalled.
fn reconciling(run: &Run<'_>, status: &DrainPlanStatus) -> Option<Said> {
    (status.phase == Some(PlanPhase::Running) && run.stalled.is_none()).then(|| Said {
        type_: condition::RECONCILING,
        status: true,
        reason: doing(run, status),
        message: summary(status),
    })
}

/// What a running plan does, as one word.
fn doing(run: &Run<'_>, status: &DrainPlanStatus) -> &'static str {
    let handed_off =
        status.node_counts.as_ref().is_some_and(|counts| counts.draining == 0 && counts.handed_off > 0);
    match run.ending {
        Some(_) => Run::ENDING,
        None if handed_off => "AwaitingHandOff",
        None => "Draining",
    }
}

impl Run<'_> {
    /// The reason of a plan that ends before its time and waits for nodes that are handed off.
    pub const ENDING: &'static str = "Ending";
}

fn stalled(run: &Run<'_>, status: &DrainPlanStatus) -> Option<Said> {
    let (reason, message) = match (ended(run, status), &run.stalled) {
        (Some((false, message)), _) => ("Failed", message),
        (None, Some(stall)) => (stall.reason(), stall.message().to_owned()),
        (Some((true, _)), _) | (None, None) => return None,
    };
    Some(Said { type_: condition::STALLED, status: true, reason, message })
}

/// Only there when the plan has windows or exclusions and has not ended.
fn window_open(run: &Run<'_>) -> Option<Said> {
    if !run.hours.limited || !run.is_to_go_on() {
        return None;
    }
    let (status, reason, message) = match run.hours.open {
        Some(open) => (true, "Open", words::window_open(open.closes)),
        None => (false, "Shut", words::awaiting_window(run.hours.excluded, run.hours.next_opens())),
    };
    Some(Said { type_: condition::WINDOW_OPEN, status, reason, message })
}

/// Only there while the plan works: names what is unhealthy, whether that is too much or not.
fn nodes_healthy(run: &Run<'_>) -> Option<Said> {
    let health = &run.health;
    if run.memory.finished.is_some() || health.all == 0 {
        return None;
    }
    let (reason, message) = match (health.unhealthy.is_empty(), health.is_bad()) {
        (true, _) => ("AllHealthy", "no node is unhealthy".to_owned()),
        (false, false) => ("FewUnhealthy", words::unhealthy(health)),
        (false, true) => ("TooManyUnhealthy", words::unhealthy(health)),
    };
    Some(Said { type_: condition::NODES_HEALTHY, status: !health.is_bad(), reason, message })
}

/// True when a pod waits for more than time, or did when its node ended.
fn drain_blocked(status: &DrainPlanStatus) -> Said {
    let not_listed: i32 = status.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.more_waiting));
    let waiting: Vec<&WaitingPod> = status.nodes.iter().flat_map(|node| &node.waiting).collect();
    let held: Vec<&WaitingPod> =
        waiting.iter().filter(|pod| pod.outlook != Outlook::WillClear).copied().collect();
    let (status, reason, pods) = match (held.is_empty(), waiting.is_empty()) {
        (false, _) => (true, "PodsHeld", held),
        (true, false) => (false, "PodsWaiting", waiting),
        (true, true) => (false, "NothingWaits", waiting),
    };
    let mut message =
        if pods.is_empty() { "no pod waits".to_owned() } else { words::of_pods(&pods, name_pod) };
    if not_listed > 0 {
        let more = words::count(usize_of(not_listed), "more pod");
        message.extend([" (", &more, " not listed)"]);
    }
    Said { type_: condition::DRAIN_BLOCKED, status, reason, message }
}

fn name_pod(pod: &WaitingPod) -> String {
    format!("{}/{} ({})", pod.namespace, pod.pod, words::cause_of(pod))
}

impl Stall {
    /// All reasons.
    pub const REASONS: [&str; 4] = ["InvalidSpec", "NoNodes", "TooManyNodes", "AllBlocked"];

    fn reason(&self) -> &'static str {
        match self {
            Self::InvalidSpec(_) => "InvalidSpec",
            Self::NoNodes(_) => "NoNodes",
            Self::TooManyNodes(_) => "TooManyNodes",
            Self::AllBlocked(_) => "AllBlocked",
        }
    }

    fn message(&self) -> &str {
        match self {
            Self::InvalidSpec(message)
            | Self::NoNodes(message)
            | Self::TooManyNodes(message)
            | Self::AllBlocked(message) => message,
        }
    }
}

/// `2 of 3 nodes done, 1 failed`.
fn summary(status: &DrainPlanStatus) -> String {
    let Some(counts) = &status.node_counts else { return String::new() };
    let mut text = format!("{} of {} done", counts.done, words::count(usize_of(counts.total), "node"));
    for (number, word) in [
        (counts.draining, "draining"),
        (counts.handed_off, "handed off"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.blocked, "blocked"),
    ] {
        if number > 0 {
            text.extend([", ", &number.to_string(), " ", word]);
        }
    }
    text
}

/// What is drained, or why nothing is.
fn progress(run: &Run<'_>, status: &DrainPlanStatus) -> String {
    let ending = run.ending.as_ref().map(|why| format!("the plan ends: {why}")).unwrap_or_default();
    let parts = [ending, summary(status), brief::in_progress(status), brief::pending(run)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn failures(run: &Run<'_>, status: &DrainPlanStatus) -> String {
    let parts = [summary(status), brief::failed(status), brief::pending(run)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn usize_of(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}
