//! What to do now: which node next, what to evict from it, when to look again.
//!
//! [`decide`] is total and deterministic: the same input gives the same output, whatever happened before. What must
//! last is in the plans' status ([`memory`]) and on the nodes ([`ownership`]). A decision's status is written before
//! its actions are done, so "node n is Draining since t" is known to the next leader before n is touched. What whoever
//! acts keeps meanwhile is the [`agenda`].

mod agenda;
mod bounds;
mod brief;
mod calendar;
mod conditions;
mod counters;
mod deadlock;
mod drain;
mod ending;
mod gates;
mod hand_off;
mod hours;
mod memory;
mod moved;
mod own_pod;
mod ownership;
mod preflight;
mod repeat;
mod report;
mod returns;
mod run;
mod selection;
mod start;
mod survey;
mod teams;
mod transitions;
mod unreadable;
mod upcoming;
mod volumes;
mod words;

#[cfg(test)]
mod tests;

pub use agenda::{
    Agenda, Answer, Errand, Failure, Moment, Outcome, PlanChange, PlanStore, Random, Seen, StatusWrite, Told,
    causes,
};
pub use calendar::{Calendar, Open};
pub use memory::Memory;
pub use ownership::{Claim, NodeChange};
pub use report::{Change, change};
pub use transitions::{Notice, Severity, Subject, notices};
pub use unreadable::Unreadable;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use crate::api::{DrainPlan, DrainPlanStatus, IntOrPercent, NodePhase, Outlook, Reason};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{BudgetKey, Cluster, Node, Oddity, OwnerRef, PodKey, Text};
use crate::explain::{Explainer, Patience};

/// The plans of a cluster, as last observed.
#[derive(Debug, Clone, Default)]
pub struct Plans {
    /// Those that could be read.
    pub readable: Vec<Arc<DrainPlan>>,
    /// Those that could not: they exist, so what they hold is not given back before they are deleted.
    pub unreadable: Vec<Arc<Unreadable>>,
}

/// Waiting times and limits, an argument so that tests need no waiting.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The waiting times of the explanations.
    pub patience: Patience,
    /// How many nodes that cannot be started are looked at beyond the first in order, in one decision.
    pub lookahead: usize,
    /// How many nodes all plans together may hold cordoned, of all nodes; at least one.
    pub max_cordoned_nodes: IntOrPercent,
    /// How long a new pod may take to become Ready before it is evicted as one that is not.
    pub settling: SignedDuration,
    /// The pod that whoever acts runs in; `None` outside the cluster.
    pub own_pod: Option<PodKey>,
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = SignedDuration::from_secs;
        let patience = Patience { overdue: seconds(30), stale: seconds(30), starting: seconds(600) };
        let max_cordoned_nodes = IntOrPercent::Percent("100%".to_owned());
        Self { patience, lookahead: 50, max_cordoned_nodes, settling: seconds(30), own_pod: None }
    }
}

/// What to do for one plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The plan's name.
    pub plan: String,
    /// The plan's uid.
    pub uid: String,
    /// The status to write before anything is done; `None` when the plan is being deleted.
    pub status: Option<DrainPlanStatus>,
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// How many pods wait for what; `None` where nobody looked, and it is as it was.
    pub waits: Option<Waits>,
}

/// How many pods wait, by reason and outlook. A status lists some of them only.
pub type Waits = BTreeMap<(Reason, Outlook), usize>;

/// What to do for all plans, and when to look again if nothing happens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decisions {
    /// One for each readable plan, and for each other one that has nothing left to give back.
    pub plans: Vec<Decision>,
    /// Nodes held by plans that are gone, to be given back.
    pub sweep: Vec<Action>,
    /// Nodes whose turn comes soon, or no longer does, to be marked accordingly; a few at a time.
    pub marks: Vec<Action>,
    /// Owners whose scale has to be read before their budgets can be computed, with their namespace.
    pub scales: Vec<(Text, OwnerRef)>,
    /// Where the right to evict is not known or was denied, and has to be asked for; `None` is the whole cluster.
    pub rights: Vec<Option<Text>>,
    /// What is seen that should not last, for whoever acts to remember since when.
    pub oddities: Vec<Oddity>,
    /// When time alone changes something.
    pub wake_at: Option<Timestamp>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Put our finalizer on the plan.
    AddFinalizer,
    /// Take our finalizer off the plan: it holds no node.
    RemoveFinalizer,
    /// Change a node by one JSON patch that tests its resourceVersion.
    PatchNode {
        /// The node's name.
        node: Text,
        /// What the patch does.
        change: NodeChange,
        /// The patch.
        patch: serde_json::Value,
    },
    /// Evict a pod.
    Evict(Evict),
    /// List the node's pods from the server, to be sure that none is left.
    ConfirmEmpty {
        /// The node's name.
        node: Text,
        /// Which draining of the node asks.
        since: Timestamp,
    },
    /// Let another replica go on: all that is left on a node is the pod that whoever acts runs in.
    HandOver {
        /// The uid of that pod.
        pod: Text,
        /// The name of another replica's pod.
        to: Text,
    },
}

impl Action {
    /// The eviction that it is, if it is one.
    #[must_use]
    pub fn evicts(&self) -> Option<&Evict> {
        match self {
            Self::Evict(evict) => Some(evict),
            _ => None,
        }
    }
}

/// An eviction to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evict {
    /// Which pod.
    pub pod: PodKey,
    /// Exactly which: a pod reborn under its name is another pod.
    pub uid: Text,
    /// From which node.
    pub node: Text,
    /// The budgets of which it spends one disruption.
    pub spends: Vec<BudgetKey>,
    /// The owner, by uid, whose scale it counts for; the plan's status remembers it.
    pub owner: Option<Text>,
    /// Instead of the pod's own grace period.
    pub grace_period_seconds: Option<i64>,
}

impl Evict {
    /// Whether a pod that was read right before is the one to be evicted. A uid is bound to one node, so nothing else
    /// needs to be looked at; a stale uid would be refused and yet charge the budget.
    #[must_use]
    pub fn is_about(&self, uid: Option<&str>, terminating: bool) -> bool {
        uid == Some(&*self.uid) && (!terminating || planted(Planted::EvictedAgain))
    }
}

/// What all plans share in one decision.
struct Round<'a> {
    cluster: &'a Cluster,
    explainer: Explainer<'a>,
    settings: &'a Settings,
    now: Timestamp,
    /// Nodes by the uid of the plan that has a claim on them.
    claimed: HashMap<String, Vec<Text>>,
    /// The plan that holds a node, by a claim or by its status.
    holders: BTreeMap<Text, Holder>,
    /// Nodes that are cordoned for plans, or will be, or were left so by one.
    cordoned: HashSet<Text>,
    /// Who has drained a node, by the node's uid.
    drained: HashMap<String, Vec<Drained>>,
    /// Disruptions spent so far in this decision.
    spent: HashMap<BudgetKey, i32>,
    wake_at: Option<Timestamp>,
}

/// Who holds a node.
struct Holder {
    uid: String,
    name: String,
}

/// A plan has drained a node.
struct Drained {
    by: Holder,
    at: Timestamp,
}

impl Round<'_> {
    /// How many nodes may be cordoned for plans.
    fn most_cordoned(&self) -> usize {
        let all = self.cluster.nodes().count();
        // Names of nodes that are gone may be among those that are held.
        let limit = self.settings.max_cordoned_nodes.of(all).filter(|limit| *limit < all);
        limit.map_or(usize::MAX, |limit| limit.max(1))
    }

    /// A plan starts a node.
    fn starts(&mut self, node: &Text, plan: Holder) {
        self.holders.insert(node.clone(), plan);
        self.cordoned.insert(node.clone());
    }

    /// Look again at that instant, if it is still to come.
    fn wake(&mut self, at: Timestamp) {
        if at > self.now {
            self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
        }
    }
}

/// What to do now for every plan.
#[must_use]
pub fn decide(plans: &Plans, cluster: &Cluster, now: Timestamp, settings: &Settings) -> Decisions {
    let mut round = Round {
        cluster,
        explainer: Explainer::new(cluster, now, &settings.patience)
            .remembering(moved::of_all(&plans.readable)),
        settings,
        now,
        claimed: HashMap::new(),
        holders: BTreeMap::new(),
        cordoned: HashSet::new(),
        drained: HashMap::new(),
        spent: HashMap::new(),
        wake_at: cluster.evictions.next_expiry(),
    };
    let mut ordered: Vec<&Arc<DrainPlan>> = plans.readable.iter().collect();
    ordered.sort_by_key(|plan| (plan.creation_timestamp(), plan.name_any()));
    let sweep = hold(&mut round, &ordered, &plans.unreadable);
    let mut runs: Vec<run::Run<'_>> =
        ordered.into_iter().map(|plan| run::Run::advance(&mut round, plan)).collect();
    let upcoming = upcoming::mark(&mut round, &mut runs, &sweep);
    drain::evict(&mut round, &mut runs);
    deadlock::resolve(&mut round, &mut runs);
    if !upcoming.left_over {
        runs.iter_mut().for_each(run::Run::release);
    }

    let waited: Vec<_> = runs.iter().flat_map(|run| run.scales_to_read(&round)).collect();
    let mut decided: Vec<Decision> = runs.into_iter().map(|run| run.conclude(&mut round)).collect();
    if !upcoming.left_over {
        decided.extend(unreadable::last_actions(plans, cluster));
    }
    let mut scales = round.explainer.unread_scales();
    for owner in waited {
        if !scales.contains(&owner) {
            scales.push(owner);
        }
    }
    let rights = round.explainer.rights_in_question();
    let mut oddities = round.explainer.oddities();
    oddities.sort();
    Decisions {
        plans: decided,
        sweep,
        marks: upcoming.patches,
        scales,
        rights,
        oddities,
        wake_at: round.wake_at,
    }
}

/// Learns who holds which node; returns the patches that give back the nodes of plans that are gone. Where the statuses of
/// two plans say so of one node that nobody has claimed, the older plan holds it.
fn hold(round: &mut Round<'_>, plans: &[&Arc<DrainPlan>], unreadable: &[Arc<Unreadable>]) -> Vec<Action> {
    let mut sweep = Vec::new();
    let kept = unreadable.iter().filter(|plan| !plan.is_going()).map(|plan| plan.uid().to_owned());
    let known: HashSet<String> = plans.iter().filter_map(|plan| plan.uid()).chain(kept).collect();
    for node in round.cluster.nodes() {
        if node.unschedulable && ownership::is_left_cordoned(node) {
            round.cordoned.insert(node.name.clone());
        }
        let Some(claim) = Claim::on(node) else {
            sweep.extend(ownership::drop_stale_mark(node));
            continue;
        };
        if known.contains(claim.uid) {
            let holder = Holder { uid: claim.uid.to_owned(), name: claim.plan.to_owned() };
            round.claimed.entry(claim.uid.to_owned()).or_default().push(node.name.clone());
            round.holders.insert(node.name.clone(), holder);
        } else {
            sweep.push(ownership::patch(node, ownership::give_back(claim.plan, node)));
        }
    }
    for plan in plans {
        let Some(uid) = plan.uid() else { continue };
        for (node, record) in Memory::of(plan).nodes {
            let holder = || Holder { uid: uid.clone(), name: plan.name_any() };
            if let Some(at) = record.drained_at.filter(|_| record.phase == NodePhase::Done) {
                round.drained.entry(record.uid).or_default().push(Drained { by: holder(), at });
            } else if record.in_progress() {
                round.holders.entry(node).or_insert_with(holder);
            }
        }
    }
    round.cordoned.extend(round.holders.keys().cloned());
    let forgotten =
        |node: &&Arc<Node>| ownership::is_announced(node) && !round.holders.contains_key(&node.name);
    sweep
        .extend(round.cluster.nodes().filter(forgotten).filter_map(|node| ownership::drop_stale_label(node)));
    sweep
}
