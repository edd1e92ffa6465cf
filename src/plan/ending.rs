//! How a plan ends: when all its nodes have, or before.
//!
//! A plan that ends before lets go of the nodes that it drains. Those that are handed off are somebody else's work in
//! progress: they keep their own deadlines, and the plan ends with the last of them.

use jiff::Timestamp;

use super::memory::Record;
use super::run::{Run, Stall};
use super::{Round, words};
use crate::api::{NodePhase, NodeReason, PlanPhase};

/// Why a plan ends before all its nodes have.
struct Ending {
    message: String,
    /// What becomes of the nodes that are being drained: they fail for that reason, or are pending again.
    fails: Option<NodeReason>,
}

impl Run<'_> {
    /// Ends the plan before its time, if anything asks for that; true when no node may be started any more.
    pub fn wind_up(&mut self, round: &mut Round<'_>) -> bool {
        let Some(Ending { message, fails }) = self.ending(round) else { return false };
        if let Some(reason) = fails {
            let drains = |record: &&mut Record| record.phase == NodePhase::Draining;
            for record in self.memory.nodes.values_mut().filter(drains) {
                record.end(NodePhase::Failed, Some((reason, message.clone())), round.now);
            }
        }
        self.memory.nodes.retain(|_, record| record.phase != NodePhase::Draining);
        self.evicting.clear();
        self.upcoming.clear();
        for node in self.not_taken() {
            self.pending.insert(node.name.clone(), (NodeReason::PlanEnded, message.clone()));
        }
        if self.memory.nodes.values().any(Record::in_progress) {
            self.memory.idle_since = None;
            self.ending = Some(message);
        } else {
            self.memory.finished = Some((round.now, PlanPhase::Failed));
        }
        true
    }

    fn ending(&self, round: &mut Round<'_>) -> Option<Ending> {
        self.too_late(round).or_else(|| self.lost()).or_else(|| self.too_many_failed())
    }

    /// The plan's own time is up.
    fn too_late(&self, round: &mut Round<'_>) -> Option<Ending> {
        let timeout = self.plan.spec.timeouts.as_ref()?.plan.clone()?;
        let deadline = self.memory.started_at?.saturating_add(timeout.value()).unwrap_or(Timestamp::MAX);
        round.wake(deadline);
        (round.now >= deadline).then(|| Ending {
            message: format!("the plan had not ended {timeout} after its start"),
            fails: Some(NodeReason::TimedOut),
        })
    }

    /// A node has not come back: what was done to it may do the same to the next.
    fn lost(&self) -> Option<Ending> {
        let lost = |record: &Record| record.reason.as_deref() == Some(NodeReason::HandOffTimedOut.as_str());
        let (name, _) = self.memory.nodes.iter().find(|(_, record)| lost(record))?;
        Some(Ending { message: words::hand_off_ends_plan(name), fails: None })
    }

    fn too_many_failed(&self) -> Option<Ending> {
        let failed = self.memory.count(NodePhase::Failed);
        let total = self.memory.nodes.len() + self.not_taken().len();
        let limit = self.plan.spec.max_failed_nodes.as_ref().and_then(|limit| limit.of(total))?;
        (failed > limit).then(|| Ending {
            message: format!("{failed} nodes failed and maxFailedNodes allows {limit}"),
            fails: None,
        })
    }

    /// Ends the plan when all its nodes have.
    pub fn end(&mut self, round: &mut Round<'_>) {
        if self.memory.finished.is_some() || self.wind_up(round) {
            return;
        }
        if self.memory.nodes.is_empty() && self.not_taken().is_empty() {
            // The last node has left the selection.
            self.stalled.get_or_insert(Stall::NoNodes(words::no_nodes(&self.plan.spec.nodes)));
        }
        if self.stalled.is_none()
            && self.not_taken().is_empty()
            && !self.memory.nodes.values().any(Record::in_progress)
        {
            let failed = self.memory.count(NodePhase::Failed);
            let phase = if failed == 0 { PlanPhase::Completed } else { PlanPhase::Failed };
            self.memory.finished = Some((round.now, phase));
            self.memory.idle_since = None;
        }
    }
}
