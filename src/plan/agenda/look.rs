//! Whether a pod is looked at right before its eviction.
//!
//! The uid of a pod that was reborn under its name is refused and yet charged to the budget, so what may have been reborn
//! is looked at. A name that the server has drawn for the pod is not given again: that look would only cost the
//! time between a budget's room and its use, and every eviction a second request. What it would show beside, that the
//! pod is going already, the watch shows too, as long as it speaks.

use std::time::Duration;

use super::{Agenda, Moment};
use crate::cluster::planted::{Planted, planted};
use crate::plan::Evict;

/// A watch of pods that has brought something since then is believed.
const FRESH: Duration = Duration::from_secs(1);
/// So long after this process has begun to act, its watch has brought what the one before has done.
const SETTLED: Duration = Duration::from_secs(5);

/// How good the sight of the pods is.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// When the watch of pods last brought something.
    pub(super) heard: Option<Duration>,
    /// Since when this process acts.
    pub(super) acts_since: Duration,
}

impl Sight {
    fn is_good(&self, now: Duration) -> bool {
        self.heard.is_some_and(|heard| now < heard + FRESH) && now >= self.acts_since + SETTLED
    }
}

impl Agenda {
    /// Whether the pod has to be looked at before it is evicted.
    pub(super) fn looks_at(&self, eviction: &Evict, now: Moment) -> bool {
        if planted(Planted::NeverLooks) {
            return false;
        }
        let drawn = self.cluster.pod(&eviction.pod).is_some_and(|pod| pod.name_drawn);
        !(drawn && self.sight.is_good(now.steady) && !self.cluster.evictions.was_sent(&eviction.uid))
    }
}
