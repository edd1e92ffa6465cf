//! The plans as last observed or written, and which object is the newer one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::core::ObjectMeta;

use crate::api::DrainPlan;
#[cfg(feature = "planted")]
use crate::api::NodePhase;
use crate::cluster::older;
use crate::plan::{Plans, Unreadable};

/// A plan as a watch brings it.
#[derive(Debug, Clone)]
pub enum Seen {
    Readable(Box<DrainPlan>),
    /// It cannot be read; that it exists is known all the same.
    Unreadable(Box<Unreadable>),
}

impl Seen {
    fn name(&self) -> String {
        match self {
            Self::Readable(plan) => plan.name_any(),
            Self::Unreadable(plan) => plan.name().to_owned(),
        }
    }

    fn uid(&self) -> String {
        match self {
            Self::Readable(plan) => plan.uid().unwrap_or_default(),
            Self::Unreadable(plan) => plan.uid().to_owned(),
        }
    }
}

/// What a watch of plans reports. `kube`'s watcher events map to these one by one.
#[derive(Debug, Clone)]
pub enum PlanChange {
    /// A list begins. What is known stays until the list is complete.
    Listing,
    /// One plan of the list.
    Listed(Seen),
    /// The list is complete: what it did not contain is gone.
    Complete,
    /// A plan is new or has changed.
    Applied(Seen),
    /// A plan is gone.
    Deleted {
        /// Its name.
        name: String,
        /// Its uid.
        uid: Option<String>,
    },
}

/// The plans, by name, and which of them a list under way has shown.
#[derive(Debug, Default)]
pub struct PlanStore {
    readable: HashMap<String, Arc<DrainPlan>>,
    unreadable: HashMap<String, Arc<Unreadable>>,
    listing: HashSet<String>,
    listed: bool,
}

impl PlanStore {
    /// Takes in what a watch reports.
    pub fn observe(&mut self, change: PlanChange) {
        match change {
            PlanChange::Listing => self.listing.clear(),
            PlanChange::Listed(plan) => {
                self.listing.insert(plan.name());
                self.see(plan);
            }
            PlanChange::Complete => {
                self.readable.retain(|name, _| self.listing.contains(name));
                self.unreadable.retain(|name, _| self.listing.contains(name));
                self.listed = true;
            }
            PlanChange::Applied(plan) => self.see(plan),
            PlanChange::Deleted { name, uid } => self.delete(&name, uid.as_deref()),
        }
    }

    /// Whether a first list is complete.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    fn see(&mut self, plan: Seen) {
        match plan {
            Seen::Readable(plan) => self.apply(*plan),
            Seen::Unreadable(plan) => {
                self.readable.remove(plan.name());
                self.unreadable.insert(plan.name().to_owned(), Arc::from(plan));
            }
        }
    }

    /// Takes in the answer to our own write, unless the plan is gone by what was observed meanwhile.
    pub fn written(&mut self, plan: DrainPlan) {
        if plan.uid().is_some_and(|uid| self.by_uid(&uid).is_some()) {
            self.apply(plan);
        }
    }

    /// Keeps a plan, unless a newer state of it is known: our own writes come back before their watch events.
    fn apply(&mut self, plan: DrainPlan) {
        let name = plan.name_any();
        self.unreadable.remove(&name);
        let version = |plan: &DrainPlan| plan.metadata.resource_version.clone().unwrap_or_default();
        let stale = self
            .readable
            .get(&name)
            .is_some_and(|known| known.uid() == plan.uid() && older(&version(&plan), &version(known)));
        if !stale {
            self.readable.insert(name, Arc::new(plan));
        }
    }

    /// The uids of all plans, whether they can be read or not.
    #[must_use]
    pub fn uids(&self) -> HashSet<String> {
        self.readable
            .values()
            .filter_map(|plan| plan.uid())
            .chain(self.unreadable.values().map(|plan| plan.uid().to_owned()))
            .collect()
    }

    /// Takes in a consistent list: plans that were known when it was asked for and are not in it are gone.
    pub fn reread(&mut self, listed: Vec<Seen>, known: &HashSet<String>) {
        let there: HashSet<String> = listed.iter().map(Seen::uid).collect();
        let stays = |uid: &String| there.contains(uid) || !known.contains(uid);
        self.readable.retain(|_, plan| plan.uid().is_none_or(|uid| stays(&uid)));
        self.unreadable.retain(|_, plan| stays(&plan.uid().to_owned()));
        for plan in listed {
            self.see(plan);
        }
    }

    /// Forgets a plan, unless another one has taken its name since.
    fn delete(&mut self, name: &str, uid: Option<&str>) {
        if self.readable.get(name).is_some_and(|known| known.uid().as_deref() == uid) {
            self.readable.remove(name);
        }
        if self.unreadable.get(name).is_some_and(|known| uid == Some(known.uid())) {
            self.unreadable.remove(name);
        }
    }

    /// The plan of that uid.
    #[must_use]
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<DrainPlan>> {
        self.readable.values().find(|plan| plan.metadata.uid.as_deref() == Some(uid))
    }

    /// The plan of that name, if it can be read.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<DrainPlan>> {
        self.readable.get(name)
    }

    /// The name of the plan of that uid, readable or not.
    #[must_use]
    pub fn name_of(&self, uid: &str) -> Option<&str> {
        self.metadata_of(uid)?.name.as_deref()
    }

    /// The metadata of the plan of that uid, readable or not.
    #[must_use]
    pub fn metadata_of(&self, uid: &str) -> Option<&ObjectMeta> {
        let readable = self.by_uid(uid).map(|plan| &plan.metadata);
        let unreadable = || self.unreadable().find(|plan| plan.uid() == uid).map(|plan| &plan.metadata);
        readable.or_else(unreadable)
    }

    /// The plans that cannot be read.
    pub fn unreadable(&self) -> impl Iterator<Item = &Arc<Unreadable>> {
        self.unreadable.values()
    }

    /// All plans, for a decision.
    #[must_use]
    pub fn view(&self) -> Plans {
        Plans {
            readable: self.readable.values().cloned().collect(),
            unreadable: self.unreadable.values().cloned().collect(),
        }
    }
}

/// The planted error that lets the time of nodes in progress count from the start of the process.
#[cfg(feature = "planted")]
pub fn with_planted_clocks(mut plans: Plans, now: super::Moment) -> Plans {
    use crate::cluster::planted::{Planted, planted};

    let began = jiff::SignedDuration::try_from(now.steady).map_or(now.wall, |since| now.wall - since);
    let nodes = plans.readable.iter_mut().filter_map(|plan| Arc::make_mut(plan).status.as_mut());
    for node in nodes.flat_map(|status| &mut status.nodes).filter(|_| planted(Planted::DeadlineFromStart)) {
        if let Some(started) = node.started_at.as_mut().filter(|_| node.phase == NodePhase::Draining) {
            started.0 = started.0.max(began);
        }
    }
    plans
}
