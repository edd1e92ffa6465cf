//! The fields of status that `decide` reads. They are never cut; everything else in status is a report.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{
    DrainPlan, LastRun, MovedOwner, NodePhase, NodeReason, NodeStatus, PlanPhase, ReturnedPod, YieldedNode,
};
use crate::cluster::Text;
use crate::cluster::planted::{Planted, planted};

/// What a plan remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Which run this is, counted from 1.
    pub run: i32,
    /// The last run that has ended, where runs are repeated.
    pub last: Option<LastRun>,
    /// When the run started.
    pub started_at: Option<Timestamp>,
    /// When it ended, and how.
    pub finished: Option<(Timestamp, PlanPhase)>,
    /// When a plan over many nodes that only looks did so last.
    pub preflight_at: Option<Timestamp>,
    /// Since when nothing is in progress and nothing can be started.
    pub idle_since: Option<Timestamp>,
    /// Nodes that were started or have ended, by name.
    pub nodes: BTreeMap<Text, Record>,
    /// Nodes that gave way and were not started again, in the order in which they did.
    pub yielded: Vec<Yielded>,
    /// The owners whose pods are moved, by uid, until they are whole again.
    pub moved: BTreeMap<Text, MovedOwner>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            run: 1,
            last: None,
            started_at: None,
            finished: None,
            preflight_at: None,
            idle_since: None,
            nodes: BTreeMap::new(),
            yielded: Vec::new(),
            moved: BTreeMap::new(),
        }
    }
}

/// What a plan remembers of a node that gave way.
#[derive(Debug, Clone, PartialEq)]
pub struct Yielded {
    /// Its name.
    pub name: Text,
    /// Its uid.
    pub uid: String,
    /// The older node that it gave way to.
    pub to: Text,
    /// When.
    pub at: Timestamp,
    /// Pods evicted from it until then.
    pub evicted: i32,
    /// Why, as a sentence.
    pub message: String,
}

/// What a plan remembers of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The node's uid; empty when the node was never seen, or the report was too long for it.
    pub uid: String,
    /// Never Pending: pending nodes are not remembered.
    pub phase: NodePhase,
    /// Why it is there.
    pub reason: Option<String>,
    /// Why, as a sentence.
    pub message: Option<String>,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it was empty; its hand-off begins then.
    pub drained_at: Option<Timestamp>,
    /// Its boot ID when it was handed off.
    pub boot_id: Option<String>,
    /// The version of its kubelet when it was handed off.
    pub kubelet_version: Option<String>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Pods evicted from it so far.
    pub evicted: i32,
    /// Pods that came back to it although it was cordoned.
    pub returned: Vec<ReturnedPod>,
}

impl Record {
    /// A node that is started now.
    pub fn started(uid: &str, now: Timestamp) -> Self {
        Self {
            uid: uid.to_owned(),
            phase: NodePhase::Draining,
            reason: None,
            message: None,
            started_at: Some(now),
            drained_at: None,
            boot_id: None,
            kubelet_version: None,
            finished_at: None,
            evicted: 0,
            returned: Vec::new(),
        }
    }

    /// A node that ends without ever having been started.
    pub fn never_started(
        uid: &str,
        phase: NodePhase,
        reason: NodeReason,
        message: String,
        now: Timestamp,
    ) -> Self {
        let mut record = Self { started_at: None, ..Self::started(uid, now) };
        record.end(phase, Some((reason, message)), now);
        record
    }

    /// The node ends here.
    pub fn end(&mut self, phase: NodePhase, why: Option<(NodeReason, String)>, now: Timestamp) {
        self.phase = phase;
        self.finished_at = Some(now);
        (self.reason, self.message) = match why {
            Some((reason, message)) => (Some(reason.to_string()), Some(message)),
            None => (None, None),
        };
    }

    /// Draining or handed off.
    pub fn in_progress(&self) -> bool {
        matches!(self.phase, NodePhase::Draining | NodePhase::HandedOff)
    }
}

impl Memory {
    /// What the plan's status remembers.
    #[must_use]
    pub fn of(plan: &DrainPlan) -> Self {
        let Some(status) = &plan.status else { return Self::default() };
        let mut nodes = BTreeMap::new();
        for (names, phase) in [
            (&status.more_done, NodePhase::Done),
            (&status.more_failed, NodePhase::Failed),
            (&status.more_skipped, NodePhase::Skipped),
        ] {
            for name in names {
                nodes.insert(Text::from(name.as_str()), Record::remembered_by_name(phase));
            }
        }
        let remembered =
            |node: &&NodeStatus| node.phase != NodePhase::Pending || planted(Planted::ReportRead);
        for node in status.nodes.iter().filter(remembered) {
            // What is said of a node in progress is said anew each time.
            let ended = !matches!(node.phase, NodePhase::Draining | NodePhase::HandedOff);
            let record = Record {
                uid: node.uid.clone(),
                phase: node.phase,
                reason: node.reason.clone().filter(|_| ended),
                message: node.message.clone().filter(|_| ended),
                started_at: node.started_at.as_ref().map(|time| time.0),
                drained_at: node.drained_at.as_ref().map(|time| time.0),
                boot_id: node.boot_id.clone().filter(|_| !planted(Planted::BootForgotten)),
                kubelet_version: node.kubelet_version.clone(),
                finished_at: node.finished_at.as_ref().map(|time| time.0),
                evicted: node.pods_evicted,
                returned: node.returned.clone(),
            };
            nodes.insert(Text::from(node.name.as_str()), record);
        }
        let ended = |phase: PlanPhase| matches!(phase, PlanPhase::Completed | PlanPhase::Failed);
        let finished = status.finished_at.as_ref().map(|time| (time.0, status.phase));
        let finished =
            finished.or_else(|| status.ended_run().map(|last| (last.finished_at.0, Some(last.phase))));
        Self {
            run: status.present_run(),
            last: status.last_run.clone(),
            started_at: status.started_at.as_ref().map(|time| time.0),
            finished: finished
                .map(|(at, phase)| (at, phase.filter(|phase| ended(*phase)).unwrap_or(PlanPhase::Failed))),
            yielded: status.yielded.iter().map(Yielded::of).collect(),
            moved: status.moved.iter().map(|owner| (owner.uid.as_str().into(), owner.clone())).collect(),
            preflight_at: status.preflight_at.as_ref().map(|time| time.0),
            idle_since: status.idle_since.as_ref().map(|time| time.0),
            nodes,
        }
    }

    /// Takes a node off those that gave way; returns how many pods were evicted from it before.
    pub fn take_up(&mut self, name: &str) -> i32 {
        let evicted =
            self.yielded.iter().find(|yielded| &*yielded.name == name).map(|yielded| yielded.evicted);
        self.yielded.retain(|yielded| &*yielded.name != name);
        evicted.unwrap_or(0)
    }

    /// How many nodes are in a phase.
    #[must_use]
    pub fn count(&self, phase: NodePhase) -> usize {
        self.nodes.values().filter(|record| record.phase == phase).count()
    }
}

impl Record {
    fn remembered_by_name(phase: NodePhase) -> Self {
        Self {
            uid: String::new(),
            phase,
            reason: None,
            message: None,
            started_at: None,
            drained_at: None,
            boot_id: None,
            kubelet_version: None,
            finished_at: None,
            evicted: 0,
            returned: Vec::new(),
        }
    }
}

impl Yielded {
    fn of(node: &YieldedNode) -> Self {
        Self {
            name: node.name.as_str().into(),
            uid: node.uid.clone(),
            to: node.to.as_str().into(),
            at: node.at.0,
            evicted: node.pods_evicted,
            message: node.message.clone(),
        }
    }

    /// As the status carries it.
    pub fn status(&self) -> YieldedNode {
        YieldedNode {
            name: self.name.to_string(),
            uid: self.uid.clone(),
            to: self.to.to_string(),
            at: Time(self.at),
            pods_evicted: self.evicted,
            message: self.message.clone(),
        }
    }
}
