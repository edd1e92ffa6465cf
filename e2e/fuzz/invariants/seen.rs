//! What has come to pass in a run, so that one sees what the invariants were tried on.

use std::collections::{BTreeMap, BTreeSet};

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase};
use drainplan::simulate::Fact;
use jiff::Timestamp;

#[derive(Default)]
pub struct Seen {
    pub counts: BTreeMap<String, u64>,
    /// When each plan has ended.
    pub finished: BTreeMap<String, Timestamp>,
}

impl Seen {
    pub fn count(&mut self, now: Timestamp, fact: &Fact) {
        match fact {
            Fact::Evicted { code, charged, .. } => {
                let cost = if charged.is_some() { ", charged" } else { "" };
                self.one(format!("eviction answered {code}{cost}"));
            }
            Fact::NodePatched { change, .. } => {
                let change = format!("{change:?}");
                self.one(format!("node patched: {}", change.split(' ').next().unwrap_or_default()));
            }
            Fact::StatusWritten { before, plan, .. } => self.written(now, before.as_deref(), plan),
            _ => {}
        }
    }

    /// It has come to pass once more.
    pub fn one(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn written(&mut self, now: Timestamp, before: Option<&DrainPlanStatus>, plan: &DrainPlan) {
        let Some(status) = &plan.status else { return };
        let (old, new) = (told(before), told(Some(status)));
        for what in new.difference(&old) {
            self.one(what.clone());
        }
        if status.finished_at.is_some() && before.is_none_or(|before| before.finished_at.is_none()) {
            let name = plan.metadata.name.clone().unwrap_or_default();
            self.finished.insert(name, now);
        }
    }
}

/// What a status says, without names.
fn told(status: Option<&DrainPlanStatus>) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    let Some(status) = status else { return told };
    told.extend(status.yielded.iter().map(|_| "node gave way".to_owned()));
    told.extend(status.phase.map(|phase| format!("plan {phase:?}")));
    for node in &status.nodes {
        let reason = node.reason.as_deref().unwrap_or("");
        if node.phase != NodePhase::Draining {
            told.insert(format!("node {:?} {reason}", node.phase));
        }
        told.extend(node.waiting.iter().map(|pod| format!("pod waits: {}", pod.reason)));
    }
    told
}
