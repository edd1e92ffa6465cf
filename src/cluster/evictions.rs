//! Evictions in flight and refusals: what the one who acts has seen of its own requests.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::planted::{Planted, planted};
use super::{BudgetKey, Pdb, PodKey, Text};

/// How long an accepted eviction counts as in flight when no budget ever shows it.
const UNSEEN_LIMIT: SignedDuration = SignedDuration::from_secs(2);

/// How long it is remembered that a pod of an owner was evicted.
const MOVED_LIMIT: SignedDuration = SignedDuration::from_hours(4);

/// How long a refusal is believed that nobody has put to the test again when it was time to.
const UNTRIED_LIMIT: SignedDuration = SignedDuration::from_secs(5);

/// An eviction that was sent and is not yet visible in a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    pub pod: PodKey,
    pub uid: Text,
    pub node: Text,
    /// The uid of its controller.
    pub owner: Option<Text>,
    pub budgets: Vec<BudgetKey>,
    /// When the server accepted it; `None` until it answers.
    pub accepted: Option<Timestamp>,
}

/// An accepted eviction that no written status counts yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Uncounted {
    pub pod: Text,
    pub node: Text,
    /// The uid of the pod's controller.
    pub owner: Option<Text>,
}

/// Whether a consistent list has shown a node to be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Emptiness {
    /// The draining that asked.
    since: Timestamp,
    shown: bool,
}

/// What the server answered when it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub uid: Text,
    pub at: Timestamp,
    pub code: u16,
    /// `reason` of the Status, as the server wrote it.
    pub reason: Text,
    pub message: Text,
    /// Reasons of `details.causes`, such as `DisruptionBudget`.
    pub causes: Vec<Text>,
    /// The budgets that selected the pod and whose change makes it worth another try.
    pub budgets: Vec<BudgetKey>,
    /// How many times in a row this pod was refused.
    pub times: u32,
    /// Not before this instant, unless a budget of the pod changes.
    pub retry_at: Timestamp,
}

impl Refusal {
    /// A node whose pods nobody evicts must not be judged for ever by what the server once said.
    fn believed_until(&self) -> Timestamp {
        self.at.max(self.retry_at).saturating_add(UNTRIED_LIMIT).unwrap_or(Timestamp::MAX)
    }
}

/// The evictions in flight, by pod uid, and the last refusal of each pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evictions {
    in_flight: HashMap<Text, InFlight>,
    refusals: HashMap<Text, Refusal>,
    /// Pods whose eviction was accepted and that are not yet seen to go, with the time of the answer.
    going: HashMap<Text, Timestamp>,
    /// Pods whose eviction was ever sent and that are not seen to go.
    sent: HashSet<Text>,
    /// When a pod of an owner was last evicted, by the owner's uid.
    moved: HashMap<Text, Timestamp>,
    uncounted: HashSet<Uncounted>,
    /// The pod of whoever acts, if the lease was handed over for its eviction.
    handed_over: Option<Text>,
    /// Nodes for which a consistent list was asked whether they are empty, while no pod has come to light on them since.
    emptiness: HashMap<Text, Emptiness>,
}

impl Evictions {
    /// An eviction leaves for the server.
    pub fn sent(&mut self, eviction: InFlight) {
        self.sent.insert(eviction.uid.clone());
        self.in_flight.insert(eviction.uid.clone(), eviction);
    }
    /// The server accepted it: it stays in flight until its budgets show it, at most two seconds.
    pub fn accepted(&mut self, uid: &str, now: Timestamp) {
        self.refusals.remove(uid);
        let Some(eviction) = self.in_flight.get_mut(uid) else { return };
        self.uncounted.insert(Uncounted {
            pod: eviction.uid.clone(),
            node: eviction.node.clone(),
            owner: eviction.owner.clone(),
        });
        self.going.insert(eviction.uid.clone(), now);
        if eviction.budgets.is_empty() {
            self.in_flight.remove(uid);
        } else {
            eviction.accepted = Some(now);
        }
    }
    /// Whether the pod's eviction was ever sent.
    #[must_use]
    pub fn was_sent(&self, uid: &str) -> bool {
        self.sent.contains(uid)
    }
    /// A pod of that owner was evicted.
    pub fn moved(&mut self, owner_uid: Text, now: Timestamp) {
        self.moved.insert(owner_uid, now);
    }
    /// When a pod of the owner was last evicted, in the last hours and by this process.
    #[must_use]
    pub fn last_moved(&self, owner_uid: &str) -> Option<Timestamp> {
        self.moved.get(owner_uid).copied()
    }
    /// The server refused it, or the call failed: it is in flight no longer.
    pub fn refused(&mut self, refusal: Refusal) {
        self.in_flight.remove(&refusal.uid);
        self.refusals.insert(refusal.uid.clone(), refusal);
    }
    /// The pod turned out to be gone, going or another one: nothing was sent.
    pub fn withdrawn(&mut self, uid: &str) {
        self.in_flight.remove(uid);
    }
    /// A budget has changed: what its status shows is in flight no longer, and its refused pods may be tried again.
    pub fn seen_in(&mut self, budget: &Pdb) {
        let key = budget.key();
        self.in_flight.retain(|_, eviction| {
            if budget.status.disrupted_pods.contains_key(&eviction.pod.name) {
                eviction.budgets.retain(|waiting| *waiting != key);
            }
            !(eviction.budgets.is_empty() && eviction.accepted.is_some())
        });
        for refusal in self.refusals.values_mut().filter(|refusal| refusal.budgets.contains(&key)) {
            refusal.retry_at = Timestamp::MIN;
        }
    }
    /// The lease is handed over, so that another replica evicts the pod of this one.
    pub fn hand_over(&mut self, uid: Text) {
        self.handed_over = Some(uid);
    }
    /// Whether that was tried for the pod.
    #[must_use]
    pub fn was_handed_over(&self, uid: &str) -> bool {
        self.handed_over.as_deref() == Some(uid)
    }
    /// Drops what has waited too long to be seen.
    pub fn expire(&mut self, now: Timestamp) {
        self.moved.retain(|_, at| *at + MOVED_LIMIT > now);
        self.in_flight.retain(|_, eviction| eviction.accepted.is_none_or(|at| at + UNSEEN_LIMIT > now));
        let kept = planted(Planted::EvictedAgain);
        self.going.retain(|_, at| kept || *at + UNSEEN_LIMIT > now);
        self.refusals.retain(|_, refusal| refusal.believed_until() > now);
    }
    /// When the next eviction in flight, or refusal, is dropped.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        let accepted = self.in_flight.values().filter_map(|eviction| eviction.accepted);
        let seen = accepted.map(|at| at + UNSEEN_LIMIT);
        seen.chain(self.refusals.values().map(Refusal::believed_until)).min()
    }
    /// A pod is seen to go, or to be gone.
    pub fn seen_going(&mut self, uid: &str) {
        self.refusals.remove(uid);
        self.sent.remove(uid);
        if !planted(Planted::EvictedAgain) {
            self.going.remove(uid);
        }
    }
    /// The evictions of a budget in flight, in no order.
    pub fn in_flight_of(&self, key: &BudgetKey) -> impl Iterator<Item = &InFlight> {
        let counted = !planted(Planted::InFlightForgotten);
        self.in_flight.values().filter(move |eviction| counted && eviction.budgets.contains(key))
    }
    /// How many evictions of a budget are in flight.
    #[must_use]
    pub fn of_budget(&self, key: &BudgetKey) -> i32 {
        i32::try_from(self.in_flight_of(key).count()).unwrap_or(i32::MAX)
    }
    /// The pod's eviction has been sent, and neither refused nor seen to be carried out.
    #[must_use]
    pub fn is_in_flight(&self, uid: &str) -> bool {
        self.in_flight.contains_key(uid) || self.going.contains_key(uid)
    }
    /// Whether any eviction is in flight.
    #[must_use]
    pub fn any_in_flight(&self) -> bool {
        !self.in_flight.is_empty() || !self.going.is_empty()
    }
    /// The pod's last refusal.
    #[must_use]
    pub fn refusal(&self, uid: &str) -> Option<&Refusal> {
        self.refusals.get(uid)
    }
    /// How many accepted evictions from a node no written status counts yet.
    #[must_use]
    pub fn uncounted_on(&self, node: &str) -> i32 {
        i32::try_from(self.uncounted_of(node).count()).unwrap_or(i32::MAX)
    }
    /// Those evictions, in no order.
    pub fn uncounted_of(&self, node: &str) -> impl Iterator<Item = &Uncounted> {
        self.uncounted.iter().filter(move |eviction| &*eviction.node == node)
    }
    /// The evictions that a status written now will count.
    #[must_use]
    pub fn uncounted(&self) -> HashSet<Uncounted> {
        self.uncounted.clone()
    }
    /// A status that counts these evictions has been written.
    pub fn counted(&mut self, evictions: &HashSet<Uncounted>, nodes: impl Fn(&str) -> bool) {
        self.uncounted.retain(|eviction| !(evictions.contains(eviction) && nodes(&eviction.node)));
    }
    /// The server is asked which pods a node has that looks empty.
    pub fn ask_empty(&mut self, node: Text, since: Timestamp) {
        self.emptiness.insert(node, Emptiness { since, shown: false });
    }
    /// A consistent list has shown nothing that was not known when it was asked for, unless a pod came to light
    /// meanwhile.
    pub fn confirm_empty(&mut self, node: &str, since: Timestamp) {
        let asked = self.emptiness.get_mut(node).filter(|asked| asked.since == since);
        if let Some(asked) = asked {
            asked.shown = true;
        }
    }
    /// A pod has come to light on a node: what a list has shown before says nothing any more.
    pub fn seen_arriving(&mut self, node: &str) {
        self.emptiness.remove(node);
    }
    /// Whether that was confirmed for this draining of the node.
    #[must_use]
    pub fn is_confirmed(&self, node: &str, since: Timestamp) -> bool {
        self.emptiness.get(node) == Some(&Emptiness { since, shown: true })
    }
}
