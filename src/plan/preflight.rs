//! A plan that only looks: with `preflightOnly`, all nodes are judged as if their turn had come, and nothing is touched.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::report::number;
use super::run::Run;
use super::survey::{Survey, Surveyed};
use super::{Round, brief, conditions::Said, gates, words};
use crate::api::{NodeReason, condition};
use crate::cluster::Text;
use crate::explain::Treatment;

/// So many nodes are looked at in every decision.
const FEW: usize = 50;
/// Of more, so long after the last time for each of them: 5,000 nodes within two minutes.
const FOR_A_NODE: SignedDuration = SignedDuration::from_millis(20);
/// While it is not known yet whether pods may be evicted at all.
const FOR_AN_ANSWER: SignedDuration = SignedDuration::from_secs(1);

impl Run<'_> {
    fn between_looks(nodes: usize) -> SignedDuration {
        FOR_A_NODE.saturating_mul(i32::try_from(nodes).unwrap_or(i32::MAX)).max(FOR_AN_ANSWER)
    }

    /// When many nodes are looked at next; at once if the spec has changed since.
    fn looks_again_at(&self, at: Option<Timestamp>, nodes: usize, now: Timestamp) -> Option<Timestamp> {
        let status = self.plan.status.as_ref()?;
        let said = |found: &Condition| found.type_ == condition::PREFLIGHT_PASSED;
        let wait =
            if status.conditions.iter().any(said) { Self::between_looks(nodes) } else { FOR_AN_ANSWER };
        let same = status.observed_generation == self.plan.metadata.generation;
        at.filter(|at| same && *at <= now)?.checked_add(wait).ok()
    }

    /// Whether the plan may only look. A run that has started is not taken back; `suspend` holds that.
    pub fn only_looks(&self) -> bool {
        self.plan.spec.preflight_only && self.memory.started_at.is_none() && self.memory.finished.is_none()
    }

    /// Judges all nodes. Where they are many this takes so long that it is not done in every decision: other plans wait.
    pub fn look(&mut self, round: &mut Round<'_>) {
        let looked_at = self.memory.preflight_at.take();
        if self.stalled.is_some() {
            return;
        }
        let nodes = self.not_taken();
        if nodes.len() > FEW {
            let due = self.looks_again_at(looked_at, nodes.len(), round.now).filter(|due| *due > round.now);
            round.wake(due.unwrap_or(round.now + Self::between_looks(nodes.len())));
            self.rests = due.is_some();
            if self.rests {
                return;
            }
            self.memory.preflight_at = Some(round.now);
        }
        self.is_answered = true;
        for node in nodes {
            let why = self.in_the_way(round, &node).or_else(|| gates::control_plane(round, &node));
            let Some(survey) = self.surveys.get(&node.name) else {
                self.pending.extend(why.map(|why| (node.name.clone(), why)));
                continue;
            };
            for changes_at in survey.pods.iter().filter_map(|surveyed| surveyed.judgement.changes_at) {
                round.wake(changes_at);
            }
            self.is_answered &= survey.is_answered(round);
            let why = why.unwrap_or_else(|| (NodeReason::PreflightOnly, would_go(survey)));
            self.pending.insert(node.name.clone(), why);
        }
    }
}

/// What would have to leave a node that nothing keeps from being drained.
fn would_go(survey: &Survey) -> String {
    let pods = words::count(survey.pods.len(), "pod");
    let waiting = survey.waiting().count();
    match survey.waiting().next() {
        Some(first) => {
            let reason = first.judgement.wait.as_ref().map(|wait| wait.reason.as_str()).unwrap_or_default();
            let Surveyed { pod, .. } = first;
            format!(
                "it would be drained of {pods}, of which {waiting} could not go now; first {}/{} ({reason})",
                pod.namespace, pod.name
            )
        }
        None => format!("it would be drained of {pods}"),
    }
}

/// What a run would do, and what would be in its way.
pub fn summary(run: &Run<'_>) -> String {
    let would = |name: &Text| matches!(run.pending.get(name), Some((NodeReason::PreflightOnly, _)));
    let free: Vec<&Survey> =
        run.surveys.iter().filter(|(name, _)| would(name)).map(|(_, survey)| survey).collect();
    let evicted = |survey: &&Survey| {
        let pods = survey.pods.iter();
        pods.filter(|surveyed| surveyed.judgement.treatment == Treatment::Evict).count()
    };
    let pods: usize = free.iter().map(evicted).sum();
    let total = run.not_taken().len();
    let mut text = format!(
        "preflight: {} of {} can be drained, by {} of pods",
        free.len(),
        words::count(total, "node"),
        words::count(pods, "eviction")
    );
    let held = free.iter().flat_map(|survey| survey.held());
    let held: Vec<String> =
        held.map(|(pod, wait)| format!("{}/{} ({})", pod.namespace, pod.name, wait.reason)).collect();
    if !held.is_empty() {
        let pods = words::count(held.len(), "pod");
        text.extend(["; ", &pods, " could not go now: ", &words::list(&held)]);
    }
    let missing: Vec<String> = run.selection.missing.iter().map(ToString::to_string).collect();
    if !missing.is_empty() {
        text.extend(["; there is no node ", &words::list(&missing)]);
    }
    let others = brief::pending(run);
    if !others.is_empty() {
        text.extend(["; ", &others]);
    }
    text
}

/// Whether no node is blocked for good and none is missing; known as soon as it is known whether pods may be evicted at all.
pub fn passed(run: &Run<'_>) -> Option<Said> {
    if !run.only_looks() || run.stalled.is_some() || !run.is_answered {
        return None;
    }
    let blocks = |reason| matches!(reason, NodeReason::Blocked | NodeReason::ControlPlaneAtRisk);
    let blocked = number(run.pending.values().filter(|(reason, _)| blocks(*reason)).count());
    let (status, reason) = match (blocked, run.selection.missing.is_empty()) {
        (0, true) => (true, "NothingBlocks"),
        (0, false) => (false, "NodesMissing"),
        _ => (false, "NodesBlocked"),
    };
    Some(Said { type_: condition::PREFLIGHT_PASSED, status, reason, message: summary(run) })
}
