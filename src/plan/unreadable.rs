//! Plans that this version cannot read.
//!
//! What such a plan holds stays as it is: whoever wrote it may read it again. Once it is being deleted nobody will, and
//! the claims on the nodes say all that is needed to give them back.

use std::collections::HashSet;

use kube::core::ObjectMeta;

use super::ownership::Claim;
use super::{Action, Decision, Plans};
use crate::api::names;
use crate::cluster::Cluster;

/// A plan of which only the metadata can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Unreadable {
    /// Its name, uid and finalizers.
    pub metadata: ObjectMeta,
    /// What cannot be read of it.
    pub why: String,
}

impl Unreadable {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Whether it is being deleted: what it holds is given back then.
    #[must_use]
    pub fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What its owner is told.
    #[must_use]
    pub fn told(&self) -> String {
        let (name, why) = (self.name(), &self.why);
        if self.is_going() {
            return format!(
                "plan {name} cannot be read by this version of the controller ({why}) and is being deleted: \
                 the nodes that it holds are given back"
            );
        }
        format!(
            "plan {name} cannot be read by this version of the controller: {why}. Nothing is done for it, and the nodes \
             that it holds stay as they are. Use the version of the controller that wrote it, correct the field with \
             kubectl edit drainplan {name} (with --subresource=status for one of its status), or delete the plan, which \
             gives its nodes back"
        )
    }
}

/// What is left to do for those that are being deleted, once their nodes are given back.
pub fn last_actions(plans: &Plans, cluster: &Cluster) -> Vec<Decision> {
    let claims: HashSet<&str> =
        cluster.nodes().filter_map(|node| Claim::on(node)).map(|claim| claim.uid).collect();
    let ours = |plan: &&Unreadable| {
        plan.is_going()
            && plan.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER)
            && !claims.contains(plan.uid())
    };
    let plans = plans.unreadable.iter().map(AsRef::as_ref).filter(ours);
    let decision = |plan: &Unreadable| Decision {
        plan: plan.name().to_owned(),
        uid: plan.uid().to_owned(),
        status: None,
        actions: vec![Action::RemoveFinalizer],
        waits: None,
    };
    plans.map(decision).collect()
}
