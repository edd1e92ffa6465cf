//! What an owner lacks whose pods were moved.

use super::{Explainer, owners, words};
use crate::cluster::{OwnerRef, Pod};

impl Explainer<'_> {
    /// An owner with fewer Ready pods than wanted: the numbers, and one pod that is not Ready, with the scheduler's words
    /// when it has no node; or why none is created.
    #[must_use]
    pub fn lacks(&self, owner: &OwnerRef, wanted: i32) -> String {
        let pods: Vec<&Pod> = self
            .cluster
            .pods_of(&owner.uid)
            .map(AsRef::as_ref)
            .filter(|pod| !pod.finished_by_itself())
            .collect();
        let ready = pods.iter().filter(|pod| pod.ready && !pod.terminating()).count();
        let mut missing: Vec<&Pod> =
            pods.iter().copied().filter(|pod| !pod.ready || pod.terminating()).collect();
        // What has no node is in the way for longest, what is still going for the shortest time.
        missing.sort_by_key(|pod| {
            (pod.terminating(), pod.unschedulable.is_none(), pod.node.is_some(), pod.name.clone())
        });
        let what = match missing.first() {
            Some(pod) => self.not_ready(pod),
            None => match owners::failure(self.cluster, owner) {
                Some(why) => format!("no replacement is created, {}", words::quote(why)),
                None => "no replacement is created".to_owned(),
            },
        };
        format!("{} {} has {ready} of {wanted} pods Ready: {what}", owner.kind, owner.name)
    }

    fn not_ready(&self, pod: &Pod) -> String {
        let name = words::placed(pod);
        match (&pod.unschedulable, &pod.node, pod.created) {
            _ if pod.terminating() => format!("{name} is still terminating"),
            (Some(why), None, _) => {
                format!("{name} is Pending, and the scheduler says: {}", words::scheduler(why))
            }
            (None, None, _) => format!("{name} is Pending"),
            (_, Some(_), Some(created)) if pod.just_starting(self.now) && !self.cluster.node_is_ill(pod) => {
                format!("{name} is starting since {}", words::at(created))
            }
            _ => words::ailing(self.cluster, pod),
        }
    }
}
