//! The plans as last observed or written, and which object is the newer one.

use std::collections::HashMap;
use std::sync::Arc;

use kube::ResourceExt as _;

use crate::api::DrainPlan;
use crate::plan::Plans;

/// Whether an object with this resourceVersion is older than what is known. Both are the server's numbers.
pub fn older(new: Option<&str>, known: Option<&str>) -> bool {
    let number = |version: Option<&str>| version.and_then(|version| version.parse::<u128>().ok());
    matches!((number(new), number(known)), (Some(new), Some(known)) if new < known)
}

/// The plans, by name.
#[derive(Default)]
pub struct PlanStore {
    readable: HashMap<String, Arc<DrainPlan>>,
    unreadable: HashMap<String, String>,
}

impl PlanStore {
    /// Keeps a plan, unless a newer state of it is known: our own writes come back before their watch events.
    pub fn apply(&mut self, plan: DrainPlan) {
        let name = plan.name_any();
        self.unreadable.remove(&name);
        let stale = self.readable.get(&name).is_some_and(|known| {
            known.uid() == plan.uid()
                && older(
                    plan.metadata.resource_version.as_deref(),
                    known.metadata.resource_version.as_deref(),
                )
        });
        if !stale {
            self.readable.insert(name, Arc::new(plan));
        }
    }

    /// Keeps what is known of a plan that cannot be read: that it exists.
    pub fn apply_unreadable(&mut self, name: String, uid: String) {
        self.readable.remove(&name);
        self.unreadable.insert(name, uid);
    }

    /// Forgets a plan, unless another one has taken its name since.
    pub fn delete(&mut self, name: &str, uid: Option<&str>) {
        if self.readable.get(name).is_some_and(|known| known.uid().as_deref() == uid) {
            self.readable.remove(name);
        }
        if self.unreadable.get(name).map(String::as_str) == uid {
            self.unreadable.remove(name);
        }
    }

    /// Forgets all plans but these.
    pub fn retain(&mut self, names: &std::collections::HashSet<String>) {
        self.readable.retain(|name, _| names.contains(name));
        self.unreadable.retain(|name, _| names.contains(name));
    }

    /// The plan of that uid.
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<DrainPlan>> {
        self.readable.values().find(|plan| plan.metadata.uid.as_deref() == Some(uid))
    }

    /// All plans, for a decision.
    pub fn view(&self) -> Plans {
        Plans {
            readable: self.readable.values().cloned().collect(),
            unreadable: self.unreadable.values().cloned().collect(),
        }
    }
}
