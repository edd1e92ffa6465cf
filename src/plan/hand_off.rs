//! Nodes that are empty and in the hands of whoever works on them.
//!
//! What a node is compared with later, its boot ID and its kubelet's version, is written down with the phase and before
//! anybody is told by the label, so that no reboot is missed.

use jiff::Timestamp;

use super::memory::Record;
use super::ownership::{self, Claim};
use super::run::Run;
use super::{Round, words};
use crate::api::{NodePhase, NodeReason, Then, Until, names};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Node, Text};

/// Where a hand-off stands.
enum Standing {
    /// It has ended well: why.
    Back(String),
    /// It goes on: what it waits for.
    Out(String),
}

impl Run<'_> {
    /// An empty node is done, or handed off.
    pub fn hand_over(&self, node: &Node, record: &mut Record, now: Timestamp) {
        record.drained_at = Some(now);
        if self.plan.spec.until() == Until::Drained {
            record.end(NodePhase::Done, None, now);
            return;
        }
        record.phase = NodePhase::HandedOff;
        record.remember(node);
        record.message = Some(match self.standing(node, record) {
            Standing::Back(why) => why,
            Standing::Out(awaited) => self.handed_off(record, &awaited),
        });
    }

    /// Steps a node that the status calls handed off; false when the plan has no more to do with it.
    pub fn step_handed_off(&mut self, round: &mut Round<'_>, name: &Text, record: &mut Record) -> bool {
        let now = round.now;
        let Some(node) = round.cluster.node(name).filter(|node| *node.uid == *record.uid).cloned() else {
            self.gone(name, record, now);
            return true;
        };
        let selected = self.selection.nodes.iter().any(|selected| selected.uid == node.uid);
        let claimed_by_other = Claim::on(&node).is_some_and(|claim| claim.uid != self.uid);
        if !selected || claimed_by_other {
            return false;
        }
        // Absent only when they could not be read: then clock and comparison begin here, and that is written down.
        record.drained_at.get_or_insert(now);
        record.remember(&node);
        let deadline = self.hand_off_deadline(record).unwrap_or(Timestamp::MAX);
        round.wake(deadline);
        match self.standing(&node, record) {
            Standing::Back(why) => {
                record.end(NodePhase::Done, None, now);
                record.message = Some(why);
            }
            Standing::Out(awaited) if now >= deadline && !planted(Planted::HandOffForEver) => {
                let timeout = self.plan.spec.hand_off_timeout();
                let message = words::hand_off_timed_out(&timeout, &node, &awaited);
                record.end(NodePhase::Failed, Some((NodeReason::HandOffTimedOut, message)), now);
            }
            Standing::Out(awaited) => {
                record.message = Some(self.handed_off(record, &awaited));
                self.announce(&node, record);
            }
        }
        true
    }

    /// When a node that is handed off must be back.
    pub fn hand_off_deadline(&self, record: &Record) -> Option<Timestamp> {
        record.drained_at?.checked_add(self.plan.spec.hand_off_timeout().value()).ok()
    }

    fn handed_off(&self, record: &Record, awaited: &str) -> String {
        words::handed_off(awaited, self.hand_off_deadline(record))
    }

    /// The object of a node that is handed off is gone.
    fn gone(&self, name: &str, record: &mut Record, now: Timestamp) {
        if self.plan.spec.until() == Until::Deleted {
            record.end(NodePhase::Done, None, now);
            record.message = Some("its Node object is gone".to_owned());
        } else {
            let message = format!("node {name} was deleted while it was handed off");
            record.end(NodePhase::Skipped, Some((NodeReason::NodeGone, message)), now);
        }
    }

    /// Whether the hand-off has ended, and what it waits for if not.
    fn standing(&self, node: &Node, record: &Record) -> Standing {
        let ready = &*node.ready == "True";
        let changed = |before: Option<&String>, now: &Text| {
            before.is_some_and(|before| !before.is_empty() && !now.is_empty() && **before != **now)
        };
        match self.plan.spec.until() {
            Until::Drained => Standing::Back("the plan waits for no more than that it is empty".to_owned()),
            Until::Released => self.released(node, ready),
            Until::Deleted => Standing::Out("waits until its Node object is deleted".to_owned()),
            Until::Rebooted if !changed(record.boot_id.as_ref(), &node.boot_id) => {
                Standing::Out(words::not_rebooted(&node.boot_id))
            }
            Until::Rebooted if ready => Standing::Back("it has rebooted and is Ready".to_owned()),
            Until::Rebooted => Standing::Out(words::not_ready("it has rebooted", &node.ready)),
            Until::Upgraded if !changed(record.kubelet_version.as_ref(), &node.kubelet_version) => {
                Standing::Out(words::not_upgraded(&node.kubelet_version))
            }
            Until::Upgraded => {
                let before = record.kubelet_version.as_deref().unwrap_or_default();
                let upgraded = words::upgraded(before, &node.kubelet_version);
                if ready {
                    Standing::Back(format!("{upgraded}, and it is Ready"))
                } else {
                    Standing::Out(words::not_ready(&upgraded, &node.ready))
                }
            }
        }
    }

    /// A node that is not Ready is not put back into service, whoever has released it.
    fn released(&self, node: &Node, ready: bool) -> Standing {
        let released = node.annotations.get(names::RELEASE);
        if released.is_none_or(|by| **by != *self.name) {
            return Standing::Out(words::not_released(&node.name, &self.name, released.map(AsRef::as_ref)));
        }
        if ready || self.plan.spec.then() == Some(Then::KeepCordoned) {
            return Standing::Back("it was released".to_owned());
        }
        Standing::Out(words::not_ready("it was released", &node.ready))
    }

    /// Tells whoever works on nodes that this one is theirs, by the label.
    fn announce(&mut self, node: &Node, record: &Record) {
        if ownership::is_announced(node) && Claim::on(node).is_some() {
            return;
        }
        let since = record.started_at.or(record.drained_at).unwrap_or_default();
        self.hold(node, ownership::hand_off(&self.name, &self.uid, self.memory.run, since));
    }
}

impl Record {
    /// What the node is compared with, unless that is remembered already.
    fn remember(&mut self, node: &Node) {
        let known = |text: &Text| (!text.is_empty()).then(|| text.to_string());
        self.boot_id = self.boot_id.take().or_else(|| known(&node.boot_id));
        self.kubelet_version = self.kubelet_version.take().or_else(|| known(&node.kubelet_version));
    }
}
