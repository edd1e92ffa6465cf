//! The owners whose pods a plan moves. They are remembered from the start of the first of their nodes, in the very status
//! that says so, until as many of their pods are Ready as before.
//!
//! So no eviction waits for a write of its own, and a crash after one loses nothing: at worst an owner is remembered of
//! which no pod was evicted.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::run::Run;
use super::{Round, words};
use crate::api::{DrainPlan, DrainPlanStatus, MovedOwner, NodeReason};
use crate::budget::{self, Moved, Wants, scaled_owner, wants};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, Node, OwnerRef, Pod, Text};
use crate::explain::Treatment;

/// How much of a status the owners may take, in bytes, before no further node is started: what is remembered is never
/// cut, and the names of 5,000 nodes need their place too. About a thousand owners.
const MOST: usize = 192 * 1024;

/// What an entry takes beside its texts: keys, quotes and numbers.
const ENTRY: usize = 160;

/// What the texts of an entry take, about.
const TEXTS: usize = 120;

/// What an entry takes at most.
const LONGEST: usize = 900;

/// About how long an entry is as JSON.
pub fn size(owner: &MovedOwner) -> usize {
    let texts = [&owner.namespace, &owner.api_version, &owner.kind, &owner.name, &owner.uid];
    ENTRY + texts.map(String::len).iter().sum::<usize>() + owner.budget.as_ref().map_or(0, String::len)
}

/// The owners that any plan remembers, as budgets ask for them.
pub fn of_all(plans: &[Arc<DrainPlan>]) -> impl Iterator<Item = Moved> {
    let all = plans.iter().filter_map(|plan| plan.status.as_ref()).flat_map(|status| &status.moved);
    all.map(|owner| Moved {
        namespace: owner.namespace.as_str().into(),
        owner: reference(owner),
        budget: owner.budget.as_deref().map(Text::from),
        expected: owner.budget_expected,
    })
}

/// As the status lists them.
pub fn listed(moved: &BTreeMap<Text, MovedOwner>) -> Vec<MovedOwner> {
    let mut listed: Vec<MovedOwner> = moved.values().cloned().collect();
    listed.sort_by(|a, b| {
        (&a.namespace, &a.kind, &a.name, &a.uid).cmp(&(&b.namespace, &b.kind, &b.name, &b.uid))
    });
    listed
}

/// Whether a status remembers owners that the one before did not: evictions wait for that.
pub fn adds(old: &DrainPlanStatus, new: &DrainPlanStatus) -> bool {
    let known: HashSet<&str> = old.moved.iter().map(|owner| owner.uid.as_str()).collect();
    new.moved.iter().any(|owner| !known.contains(owner.uid.as_str()))
}

/// The owner as its pods name it.
pub fn reference(owner: &MovedOwner) -> OwnerRef {
    OwnerRef {
        api_version: owner.api_version.as_str().into(),
        kind: owner.kind.as_str().into(),
        name: owner.name.as_str().into(),
        uid: owner.uid.as_str().into(),
    }
}

/// How many pods of an owner are Ready and not going.
pub fn ready(cluster: &Cluster, uid: &str) -> i32 {
    let ready = cluster.pods_of(uid).filter(|pod| pod.ready && !pod.terminating());
    i32::try_from(ready.count()).unwrap_or(i32::MAX)
}

impl Run<'_> {
    /// Whether the status says all that it must before the pod is evicted.
    pub fn has_written(&self, round: &Round<'_>, pod: &Pod) -> bool {
        let owner = self.owner_to_remember(round, pod);
        let recorded =
            owner.is_none_or(|owner| self.recorded.contains(&owner.uid)) || planted(Planted::OwnerUnrecorded);
        recorded && !self.unwritten.contains(&pod.uid)
    }

    /// The owner of a pod, if it has to be remembered: a gate waits for its pods, or a budget is about them.
    pub fn owner_to_remember(&self, round: &Round<'_>, pod: &Pod) -> Option<OwnerRef> {
        let counted = || round.cluster.budgets_of(pod).next().is_some();
        (self.plan.spec.awaits_replacements() || counted())
            .then(|| scaled_owner(round.cluster, pod))
            .flatten()
    }

    /// Owners of which only a GET tells how many pods they want, and that are waited for.
    pub fn scales_to_read(&self, round: &Round<'_>) -> Vec<(Text, OwnerRef)> {
        let waited = self.memory.moved.values().filter(|owner| wanted(round, owner).is_some());
        let references = waited.map(|owner| (Text::from(owner.namespace.as_str()), reference(owner)));
        references.filter(|(_, owner)| budget::only_scale_tells(owner)).collect()
    }

    /// Counts the evictions that no status has counted yet.
    pub fn count_moved(&mut self, round: &Round<'_>) {
        let in_progress = self.memory.nodes.iter().filter(|(_, record)| record.in_progress());
        for eviction in in_progress.flat_map(|(name, _)| round.cluster.evictions.uncounted_of(name)) {
            let moved = eviction.owner.as_ref().and_then(|owner| self.memory.moved.get_mut(owner));
            if let Some(moved) = moved {
                moved.evicted = moved.evicted.saturating_add(1);
            }
        }
    }

    /// Remembers the owners of the pods that are to leave the nodes in progress, and forgets those that are whole again.
    pub fn follow_owners(&mut self, round: &Round<'_>) {
        let in_progress = self.memory.nodes.iter().filter(|(_, record)| record.in_progress());
        let in_progress: Vec<Text> = in_progress.map(|(name, _)| name.clone()).collect();
        for name in &in_progress {
            self.remember_owners(round, name);
        }
        let busy: HashSet<&Text> = in_progress.iter().collect();
        // What the run before has moved counts from its start.
        let before = self.memory.last.as_ref().and_then(|last| last.started_at.as_ref());
        let started = before.map(|time| time.0).or(self.memory.started_at);
        self.memory.moved.retain(|uid, owner| {
            let mut pods = round.cluster.pods_of(uid);
            pods.any(|pod| pod.node.as_ref().is_some_and(|node| busy.contains(node)))
                || !(wanted(round, owner).is_none()
                    || is_untouched(round.cluster, owner, started)
                    || planted(Planted::OwnerForgotten))
        });
    }

    /// Remembers the owners of the pods that are to leave a node.
    pub fn remember_owners(&mut self, round: &Round<'_>, node: &Text) {
        let Some(survey) = self.surveys.get(node) else { return };
        let leaving = survey.pods.iter().filter(|surveyed| surveyed.judgement.treatment == Treatment::Evict);
        for pod in leaving.map(|surveyed| &surveyed.pod) {
            let Some(owner) = self.owner_to_remember(round, pod) else { continue };
            let gone =
                || round.cluster.evictions.uncounted_of(node).any(|of| of.owner.as_ref() == Some(&owner.uid));
            if planted(Planted::OwnerUnrecorded) && !gone() {
                continue;
            }
            let moved = || remembered(round, pod, &owner);
            self.memory.moved.entry(owner.uid.clone()).or_insert_with(moved);
        }
    }
}

fn remembered(round: &Round<'_>, pod: &Pod, owner: &OwnerRef) -> MovedOwner {
    let budget = round.cluster.budgets_of(pod).next();
    let expected = budget.filter(|budget| budget::counts_by_scale(budget)).and_then(|budget| {
        let standing = round.explainer.standing(budget);
        let known = standing.computed.sync_error.is_none() && standing.computed.unread_scales.is_empty();
        let now = standing.computed.numbers.expected_pods;
        known.then(|| standing.shrunk.map_or(now, |shrunk| shrunk.expected))
    });
    MovedOwner {
        namespace: pod.namespace.to_string(),
        api_version: owner.api_version.to_string(),
        kind: owner.kind.to_string(),
        name: owner.name.to_string(),
        uid: owner.uid.to_string(),
        evicted: 0,
        ready_before: ready(round.cluster, &owner.uid),
        budget: budget.map(|budget| budget.name.to_string()),
        budget_expected: expected,
    }
}

/// How many pods of an owner must be Ready again, if fewer are: as many as before, or as it wants now. None when it is
/// gone or has no scale.
pub fn wanted(round: &Round<'_>, owner: &MovedOwner) -> Option<i32> {
    let wanted = match wants(round.cluster, &reference(owner)) {
        Wants::None => return None,
        Wants::Pods(pods) => pods.min(owner.ready_before),
        Wants::Unknown => owner.ready_before,
    };
    (ready(round.cluster, &owner.uid) < wanted).then_some(wanted)
}

/// Why a node is not started: the status could not hold the owners of its pods beside those that are remembered. One
/// node at a time always fits, while those before it are whole again.
pub fn too_many(run: &Run<'_>, round: &Round<'_>, node: &Node, busy: bool) -> Option<(NodeReason, String)> {
    let pods = run.surveys.get(&node.name).map_or(0, |survey| survey.pods.len());
    if (run.memory.moved.len() + pods) * LONGEST <= MOST {
        return None;
    }
    let taken: usize = run.memory.moved.values().map(size).sum();
    let new = || {
        let survey = run.surveys.get(&node.name)?;
        let owners = survey.pods.iter().filter_map(|surveyed| scaled_owner(round.cluster, &surveyed.pod));
        let owners: HashSet<Text> = owners.map(|owner| owner.uid).collect();
        Some(owners.iter().filter(|owner| !run.memory.moved.contains_key(*owner)).count() * (ENTRY + TEXTS))
    };
    let full = taken > MOST || (busy && taken + new().unwrap_or(0) > MOST);
    full.then(|| (NodeReason::AwaitingReplacements, words::too_many_moved(run.memory.moved.len())))
}

/// None of its pods was evicted: none is counted, and all it wants are there since before the plan's start. What a crash has
/// kept from being counted shows in the pods.
fn is_untouched(cluster: &Cluster, owner: &MovedOwner, started: Option<Timestamp>) -> bool {
    let Wants::Pods(wanted) = wants(cluster, &reference(owner)) else { return false };
    let mut pods = 0;
    let old = |pod: &Arc<Pod>| {
        pods += 1;
        !pod.terminating() && pod.created < started
    };
    owner.evicted == 0
        && cluster.pods_of(&owner.uid).filter(|pod| !pod.finished_by_itself()).all(old)
        && pods >= wanted
}
