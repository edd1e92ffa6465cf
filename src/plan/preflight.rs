//! A plan that only looks: with `preflightOnly`, all nodes are judged as if their turn had come, and nothing is touched.

use super::report::number;
use super::run::Run;
use super::survey::{Survey, Surveyed};
use super::{Round, brief, conditions::Said, gates, words};
use crate::api::{NodeReason, Outlook, condition};
use crate::cluster::Text;
use crate::explain::Treatment;

impl Run<'_> {
    /// Whether the plan may only look. A run that has started is not taken back; `suspend` holds that.
    pub fn only_looks(&self) -> bool {
        self.plan.spec.preflight_only && self.memory.started_at.is_none() && self.memory.finished.is_none()
    }

    /// Judges all nodes.
    pub fn look(&mut self, round: &mut Round<'_>) {
        if self.stalled.is_some() {
            return;
        }
        self.rights_known = true;
        for node in self.not_taken() {
            let why = self.in_the_way(round, &node).or_else(|| gates::control_plane(round, &node));
            let Some(survey) = self.surveys.get(&node.name) else {
                self.pending.extend(why.map(|why| (node.name.clone(), why)));
                continue;
            };
            for changes_at in survey.pods.iter().filter_map(|surveyed| surveyed.judgement.changes_at) {
                round.wake(changes_at);
            }
            self.rights_known &= survey.rights_are_known(round.cluster);
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
    let held = free.iter().flat_map(|survey| survey.waiting());
    let held = held.filter(|surveyed| {
        surveyed.judgement.wait.as_ref().is_some_and(|wait| wait.outlook != Outlook::WillClear)
    });
    let held: Vec<String> = held
        .map(|surveyed| {
            let reason = surveyed.judgement.wait.as_ref().map(|wait| wait.reason.as_str());
            format!("{}/{} ({})", surveyed.pod.namespace, surveyed.pod.name, reason.unwrap_or_default())
        })
        .collect();
    if !held.is_empty() {
        let pods = words::count(held.len(), "pod");
        text.extend(["; ", &pods, " could not go now: ", &words::list(&held)]);
    }
    let others = brief::pending(run);
    if !others.is_empty() {
        text.extend(["; ", &others]);
    }
    text
}

/// Whether no node is blocked for good; known as soon as it is known whether pods may be evicted at all.
pub fn passed(run: &Run<'_>) -> Option<Said> {
    if !run.only_looks() || run.stalled.is_some() || !run.rights_known {
        return None;
    }
    let blocks = |reason| matches!(reason, NodeReason::Blocked | NodeReason::ControlPlaneAtRisk);
    let blocked = number(run.pending.values().filter(|(reason, _)| blocks(*reason)).count());
    let (status, reason) = if blocked == 0 { (true, "NothingBlocks") } else { (false, "NodesBlocked") };
    Some(Said { type_: condition::PREFLIGHT_PASSED, status, reason, message: summary(run) })
}
