//! The scales of owners that are not watched: asked for when they are needed, and again when they may have changed.

use std::time::Duration;

use super::pace::Task;
use super::{Agenda, Errand, Moment};
use crate::budget::scales_of;
use crate::cluster::{Effect, OwnerRef, Scale, Text};

/// A scale that a decision waits on without an event to come is read again so often.
const AGAIN: Duration = Duration::from_secs(5);

impl Agenda {
    /// A budget's numbers have changed: so may have the scales that were read for it.
    pub(super) fn read_scales_again(&mut self, effect: &Effect, now: Moment) {
        let Some(budget) = self.changed_budget(effect) else { return };
        let mut read_before = scales_of(&self.cluster, budget);
        read_before.retain(|(_, owner)| self.cluster.scale(&owner.uid).is_some());
        for (namespace, owner) in read_before {
            self.read_scale(namespace, owner, now);
        }
    }

    /// Reads the scales that a decision asks for; those that are known, not too often.
    pub(super) fn read_scales(&mut self, wanted: Vec<(Text, OwnerRef)>, now: Moment) {
        for (namespace, owner) in wanted {
            let known = self.cluster.scale(&owner.uid).is_some();
            let again = self.scales_read.get(&owner.uid).map(|read| *read + AGAIN).filter(|_| known);
            match again.filter(|again| *again > now.steady) {
                Some(again) => self.decide_by(again),
                None => self.read_scale(namespace, owner, now),
            }
        }
    }

    fn read_scale(&mut self, namespace: Text, owner: OwnerRef, now: Moment) {
        if self.tasks.begin(Task::Scale(owner.uid.to_string()), now.steady) {
            self.errands.push(Errand::ReadScale { namespace, owner });
        }
    }

    /// Keeps what was read. What could not be read is asked for again after a while.
    pub(super) fn scale_was_read(&mut self, owner: Text, scale: Scale, now: Moment) {
        let task = Task::Scale(owner.to_string());
        if matches!(scale, Scale::Unreadable(_)) {
            self.tasks.failed(task, now.steady, &mut self.random);
        } else {
            self.tasks.done(&task);
        }
        self.scales_read.retain(|_, read| *read + AGAIN > now.steady);
        self.scales_read.insert(owner.clone(), now.steady);
        self.cluster.record_scale(owner, scale);
    }
}
