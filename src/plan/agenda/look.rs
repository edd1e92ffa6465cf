//! Whether a pod is looked at right before its eviction.
//!
//! The uid of a pod that was reborn under its name is refused and yet charged to the budget, so what may have been reborn
//! is looked at. A name that the server has drawn for the pod of a ReplicaSet is not given again: that look would only cost the
//! time between a budget's room and its use, and every eviction a second request. What it would show beside, that the
//! pod is going already, the watch shows too, as long as it speaks.

use std::time::Duration;

use super::{Agenda, Moment};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Change, ObjectKind, OwnerRef, Pod};
use crate::plan::Evict;

/// A watch of pods that has brought something since then is believed.
const FRESH: Duration = Duration::from_secs(1);
/// So long after this process has begun to act, its watch has brought what the one before has done.
const SETTLED: Duration = Duration::from_secs(5);

/// How good the sight of the pods is.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// When the watch of pods last brought something new; what a list brings page by page says nothing of the others.
    pub(super) heard: Option<Duration>,
    /// Since when this process acts.
    pub(super) acts_since: Duration,
}

impl Sight {
    pub(super) fn hears(&mut self, change: &Change, now: Moment) {
        match change {
            Change::Listing(ObjectKind::Pod) => self.heard = None,
            Change::Complete(ObjectKind::Pod) => self.heard = Some(now.steady),
            Change::Applied(raw) | Change::Deleted(raw) if raw.kind() == ObjectKind::Pod => {
                self.heard = Some(now.steady);
            }
            _ => {}
        }
    }

    fn is_good(&self, now: Duration) -> bool {
        self.heard.is_some_and(|heard| now < heard + FRESH) && now >= self.acts_since + SETTLED
    }
}

/// The server has drawn its name for it. Every controller that uses the templates of client-go sets `generateName`, some
/// with a name of their own choice (`controller_utils.go: GetPodFromTemplate`); these do not.
fn has_name_of_its_own(pod: &Pod) -> bool {
    let draws = |owner: &OwnerRef| {
        matches!(
            (&*owner.api_version, &*owner.kind),
            ("apps/v1", "ReplicaSet") | ("v1", "ReplicationController") | ("batch/v1", "Job")
        )
    };
    pod.name_drawn && pod.owner.as_deref().is_some_and(draws)
}

impl Agenda {
    /// Whether the pod has to be looked at before it is evicted.
    pub(super) fn looks_at(&self, eviction: &Evict, now: Moment) -> bool {
        if planted(Planted::NeverLooks) {
            return false;
        }
        let drawn = self.cluster.pod(&eviction.pod).is_some_and(|pod| has_name_of_its_own(pod));
        !(drawn && self.sight.is_good(now.steady) && !self.cluster.evictions.was_sent(&eviction.uid))
    }
}
