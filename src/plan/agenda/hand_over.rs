//! Handing the lease over: this process ends all that it has begun, and then acts no more.

use std::time::Duration;

use super::{Agenda, Errand, Moment};
use crate::cluster::Text;
use crate::plan::{Action, Decisions};

/// So long answers are awaited. One that takes longer is no reason to stand still: then nothing is handed over.
const PATIENCE: Duration = Duration::from_secs(5);

/// How far it has come.
#[derive(Debug, Default)]
pub(super) enum HandOver {
    /// Nobody wants it.
    #[default]
    No,
    /// Nothing new is begun for the sake of the pod of that uid, since then.
    WindsUp { pod: Text, since: Duration },
    /// The lease is being given back.
    Asked,
}

impl HandOver {
    pub(super) fn is_asked_for(&self) -> bool {
        matches!(self, Self::Asked)
    }
}

impl Agenda {
    /// Whether the lease is to be handed over, so that nothing new is begun.
    pub(super) fn winds_up(&mut self, decisions: &Decisions, now: Moment) -> bool {
        let mut actions = decisions.plans.iter().flat_map(|decision| &decision.actions);
        let wanted = actions.find_map(|action| match action {
            Action::HandOver { pod, .. } => Some(pod.clone()),
            _ => None,
        });
        let Some(pod) = wanted else {
            self.hand_over = HandOver::No;
            return false;
        };
        let since = match &self.hand_over {
            HandOver::WindsUp { pod: known, since } if *known == pod => *since,
            _ => now.steady,
        };
        if now.steady >= since + PATIENCE {
            self.cluster.evictions.hand_over(pod);
            self.hand_over = HandOver::No;
            self.decide_soon(now);
            return false;
        }
        self.hand_over = HandOver::WindsUp { pod, since };
        true
    }

    /// Writes what the statuses lack, without the pause between two writes; when nothing is under way any more, asks
    /// for the hand-over. It is tried once for a pod: another replica that does not take the lease would not the
    /// next time.
    pub(super) fn wind_up(&mut self, decisions: Decisions, now: Moment) {
        for mut decision in decisions.plans {
            self.written.remove(&decision.uid);
            self.report(&mut decision, now);
        }
        let HandOver::WindsUp { pod, since } = &self.hand_over else { return };
        let (pod, until) = (pod.clone(), *since + PATIENCE);
        if self.errands.is_empty() && self.under_way == 0 {
            self.cluster.evictions.hand_over(pod);
            self.hand_over = HandOver::Asked;
            self.errands.push(Errand::HandOver);
        } else {
            self.decide_by(until);
        }
    }
}
