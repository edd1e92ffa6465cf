//! Runs that follow each other: with `repeat: EachWindow`, one begins whenever a window opens.
//!
//! A run that has ended is remembered as `status.lastRun`; that it bears the number of the present run says that the plan
//! is between two runs. The nodes of the last run stay listed until the next one begins.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::memory::Memory;
use super::run::Run;
use super::{Round, conditions};
use crate::api::{DrainPlanStatus, LastRun, PlanPhase};

impl Run<'_> {
    /// Whether a run that has ended is followed by another.
    pub fn repeats(&self) -> bool {
        self.plan.spec.repeats()
    }

    /// Whether the status says that the plan has ended for good.
    pub fn is_over(&self) -> bool {
        self.plan.status.as_ref().is_some_and(|status| status.finished_at.is_some())
    }

    /// Whether the status says that a run has ended, and the next one has not begun.
    pub fn is_between_runs(&self) -> bool {
        self.memory.finished.is_some()
            && self.plan.status.as_ref().is_some_and(DrainPlanStatus::run_has_ended)
    }

    /// Whether there is more to come of this plan.
    pub fn is_to_go_on(&self) -> bool {
        self.memory.finished.is_none() || self.repeats()
    }

    /// The number of the run, where there may be several.
    pub fn numbered(&self) -> Option<i32> {
        (self.repeats() || self.memory.last.is_some()).then_some(self.memory.run)
    }

    /// Begins the next run when a time that is open has opened since the last one, and nothing of that is left on a node.
    pub fn begin_anew(&mut self, round: &Round<'_>) {
        let Some((ended, _)) = self.memory.finished.filter(|_| self.repeats()) else { return };
        let opened = self.hours.open.and_then(|open| open.opens);
        let anew = opened.is_some_and(|opened| opened > ended);
        let free = !round.claimed.contains_key(&self.uid);
        if anew && free && self.stalled.is_none() && !self.plan.spec.suspend {
            let run = self.memory.run.checked_add(1).unwrap_or(1);
            let (last, moved) = (self.memory.last.take(), std::mem::take(&mut self.memory.moved));
            self.memory = Memory { run, last, moved, ..Memory::default() };
        }
    }
}

/// The run that ends with this decision.
pub fn ended(run: &Run<'_>, status: &DrainPlanStatus) -> Option<LastRun> {
    let (at, phase) = run.memory.finished?;
    Some(LastRun {
        run: run.memory.run,
        started_at: run.memory.started_at.map(Time),
        finished_at: Time(at),
        phase,
        node_counts: status.node_counts.clone().unwrap_or_default(),
        pods_evicted: status.pod_counts.as_ref().map_or(0, |counts| counts.evicted),
        message: conditions::outcome(run, status, phase == PlanPhase::Completed),
    })
}
