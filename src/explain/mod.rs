//! Why a pod waits: reason, outlook, message and remedy; and what is wrong with a budget.

mod awaited;
mod besides;
mod budget_shrunk;
mod budget_waits;
mod case;
mod collected;
mod filters;
mod findings;
mod hanging;
mod misconfigured;
mod ordered;
mod owners;
mod refusals;
mod remarks;
mod replacements;
mod returns;
mod rights;
mod rules;
mod sync_failed;
mod terminating;
#[cfg(test)]
mod tests;
mod unbudgeted;
mod view;
mod words;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use crate::api::{Outlook, PodPolicy, Reason};
use crate::budget::{self, Absent, Attainable, Cause, Computed, Moved, Shrunk, Verdict};
use crate::cluster::{BudgetKey, Cluster, Oddity, OwnerRef, Pdb, Pod, Text};
use case::Case;
pub use findings::Found;
pub use refusals::reason_of_answer;
use view::View;

/// Waiting times of the rules, an argument so that tests need no waiting.
#[derive(Debug, Clone)]
pub struct Patience {
    /// How long after its deletion time a terminating pod is overdue.
    pub overdue: SignedDuration,
    /// How long a budget may differ from what it should be before it is called stale.
    pub stale: SignedDuration,
    /// How young a pod may be to count as just starting.
    pub starting: SignedDuration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            overdue: SignedDuration::from_secs(30),
            stale: SignedDuration::from_secs(30),
            starting: SignedDuration::from_mins(10),
        }
    }
}

/// What is done to a pod of a node that is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It is evicted.
    Evict,
    /// It stays and keeps no node from being drained: DaemonSet, mirror and finished pods.
    Ignore,
    /// The plan does not allow evicting it.
    Refuse,
}

/// Why a pod waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub reason: Reason,
    pub outlook: Outlook,
    /// The budgets that the server looks at for this pod, by name.
    pub budgets: Vec<Text>,
    /// What holds it, with the numbers and the names.
    pub message: String,
    /// One line: what to change.
    pub remedy: String,
}

/// All that is to be said about one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub treatment: Treatment,
    /// What the server would answer to an eviction, whatever the treatment.
    pub verdict: Verdict,
    /// Why it cannot be evicted now, or is not gone yet.
    pub wait: Option<Wait>,
    /// The budgets of which an eviction would spend one disruption.
    pub spends: Vec<BudgetKey>,
    /// Pods of a lower order leave a node first.
    pub order: i32,
    /// When time alone may change what is said.
    pub changes_at: Option<Timestamp>,
}

/// How a budget stands at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub computed: Computed,
    pub attainable: Attainable,
    /// Disruptions that may be spent now.
    pub room: i32,
    /// Owners that it does not count, because their last pods were evicted.
    pub absent: Vec<Absent>,
    /// What it would say if it counted them.
    pub shrunk: Option<Shrunk>,
}

/// What a rule says of a pod it matches.
struct Said {
    outlook: Outlook,
    message: String,
    remedy: String,
}

/// Says something of the pods it matches.
type Rule = fn(&Case<'_, '_>) -> Option<Said>;

/// The reasons in their order; the first that matches is said.
const RULES: &[(Reason, Rule)] = &[
    (Reason::Protected, rules::is_protected),
    (Reason::Unmanaged, filters::unmanaged),
    (Reason::LocalData, filters::local_data),
    (Reason::AwaitingCompletion, rules::awaiting_completion),
    (Reason::AwaitingOrder, rules::awaiting_order),
    (Reason::Forbidden, rights::forbidden),
    (Reason::MultipleBudgets, misconfigured::multiple_budgets),
    (Reason::BudgetSyncFailed, sync_failed::sync_failed),
    (Reason::BudgetNeverAllows, misconfigured::never_allows),
    (Reason::BudgetCountsNone, misconfigured::counts_none),
    (Reason::OwnerScalingDown, replacements::owner_scaling_down),
    (Reason::BudgetStale, budget_waits::stale),
    (Reason::BudgetShrunk, budget_shrunk::refilled),
    (Reason::ReplacementMissing, replacements::missing),
    (Reason::ReplacementPending, replacements::pending),
    (Reason::BudgetUnhealthy, budget_waits::unhealthy),
    (Reason::BudgetExhausted, budget_waits::exhausted),
    (Reason::BudgetRefused, budget_waits::refused),
    (Reason::AwaitingReplacement, unbudgeted::awaiting_replacement),
    (Reason::ReturnsToNode, returns::to_its_node),
    (Reason::FinalizerHolds, terminating::finalizer_holds),
    (Reason::KubeletUnreachable, collected::kubelet_unreachable),
    (Reason::Terminating, terminating::in_time),
    (Reason::TerminatingOverdue, terminating::overdue),
    (Reason::NamespaceTerminating, terminating::namespace),
    (Reason::AdmissionDenied, refusals::admission_denied),
    (Reason::AdmissionUnavailable, refusals::admission_unavailable),
    (Reason::ApiThrottled, refusals::api_throttled),
    (Reason::ServerError, refusals::server_error),
];

/// Explains pods and budgets of one cluster at one instant; each budget is computed once.
pub struct Explainer<'a> {
    cluster: &'a Cluster,
    now: Timestamp,
    patience: &'a Patience,
    standings: RefCell<HashMap<BudgetKey, Rc<Standing>>>,
    views: RefCell<HashMap<BudgetKey, Rc<View<'a>>>>,
    /// Namespaces of pods that are to be evicted.
    evicts_in: RefCell<BTreeSet<Text>>,
    /// Owners whose pods plans have evicted, by namespace.
    moved: HashMap<Text, Vec<Moved>>,
}

impl<'a> Explainer<'a> {
    /// An explainer of what is observed now.
    #[must_use]
    pub fn new(cluster: &'a Cluster, now: Timestamp, patience: &'a Patience) -> Self {
        Self {
            cluster,
            now,
            patience,
            standings: RefCell::default(),
            views: RefCell::default(),
            evicts_in: RefCell::default(),
            moved: HashMap::new(),
        }
    }

    /// The same, which remembers the owners whose pods plans have evicted.
    #[must_use]
    pub fn remembering(mut self, moved: impl IntoIterator<Item = Moved>) -> Self {
        for moved in moved {
            self.moved.entry(moved.namespace.clone()).or_default().push(moved);
        }
        self
    }

    /// What is done to the pod, and why it waits if it does.
    #[must_use]
    pub fn judge(&self, pod: &Pod, policy: &PodPolicy) -> Judgement {
        let verdict = budget::verdict(self.cluster, pod);
        let (action, order) = rules::action(self.cluster, pod, policy);
        let treatment = filters::treatment(self.cluster, pod, policy, action, self.now);
        let spends = self.spends(pod, &verdict);
        if treatment == Treatment::Ignore {
            return Judgement { treatment, verdict, wait: None, spends, order, changes_at: None };
        }
        if treatment == Treatment::Evict && !pod.terminating() {
            self.evicts_in.borrow_mut().insert(pod.namespace.clone());
        }
        let case = Case::new(self, pod, (policy, action), treatment, &verdict);
        let matched = RULES.iter().find_map(|(reason, rule)| rule(&case).map(|said| (*reason, said)));
        let changes_at = case.changes_at();
        let wait = matched.map(|(reason, said)| Wait {
            reason,
            outlook: said.outlook,
            budgets: verdict.budgets.clone(),
            message: words::bounded(said.message),
            remedy: said.remedy,
        });
        Judgement { treatment, verdict, wait, spends, order, changes_at }
    }

    /// Why a pod waits for those of a lower order that are left on its node: never better than they do. The pod of whoever
    /// drains has no order and comes after all.
    #[must_use]
    pub fn behind(
        &self,
        pod: &Pod,
        order: Option<i32>,
        earlier: &[(&Pod, i32, Option<Outlook>)],
    ) -> Option<Wait> {
        rules::behind(self.cluster, pod, order, earlier)
    }

    /// Why the pod of whoever drains stays: it would not come back.
    #[must_use]
    pub fn indispensable(&self, pod: &Pod, outlook: Outlook) -> Wait {
        rules::indispensable(self.cluster, pod, outlook)
    }

    /// Why the pod of whoever drains waits, when all others of its node are gone: for the first of these replicas that is
    /// ready to take over, at most until those instants.
    #[must_use]
    pub fn awaits_replica(&self, pod: &Pod, coming: &[(&Pod, Timestamp)]) -> Wait {
        rules::awaits_replica(self.cluster, pod, coming)
    }

    /// One sentence about a pod that waits for nothing.
    #[must_use]
    pub fn remark(&self, pod: &Pod, judgement: &Judgement) -> String {
        remarks::of(self.cluster, pod, judgement)
    }

    /// How a budget stands.
    #[must_use]
    pub fn standing(&self, budget: &Pdb) -> Rc<Standing> {
        let key = budget.key();
        if let Some(known) = self.standings.borrow().get(&key) {
            return Rc::clone(known);
        }
        let computed = budget::recompute(self.cluster, budget, self.now);
        let moved = self.moved.get(&budget.namespace).map_or(&[][..], Vec::as_slice);
        let absent = budget::absent(self.cluster, budget, moved);
        let uids: Vec<Text> = absent.iter().map(|of| of.owner.uid.clone()).collect();
        let shrunk = budget::shrunk(budget, &computed, &absent);
        let standing = Rc::new(Standing {
            attainable: budget::attainable_after(self.cluster, budget, &computed, &uids),
            room: budget::room_after(self.cluster, budget, &computed, shrunk.as_ref()),
            computed,
            absent,
            shrunk,
        });
        self.standings.borrow_mut().insert(key, Rc::clone(&standing));
        standing
    }

    /// The owners whose scale is not known and would be needed for the budgets looked at so far, once each.
    #[must_use]
    pub fn unread_scales(&self) -> Vec<(Text, OwnerRef)> {
        let standings = self.standings.borrow();
        let unread = standings.values().flat_map(|standing| &standing.attainable.unread);
        let by_uid: BTreeMap<&Text, &(Text, OwnerRef)> =
            unread.map(|wanted| (&wanted.1.uid, wanted)).collect();
        by_uid.into_values().cloned().collect()
    }

    /// Where the right to evict is not known, or was denied, and pods are to be evicted: what to ask the server. `None` is
    /// the whole cluster.
    #[must_use]
    pub fn rights_in_question(&self) -> Vec<Option<Text>> {
        self.cluster.rights.questions(self.evicts_in.borrow().iter())
    }

    /// What should not last, of the budgets that held pods: whoever acts remembers since when it is seen.
    #[must_use]
    pub fn oddities(&self) -> Vec<Oddity> {
        self.views.borrow().values().flat_map(|view| view.oddities().cloned().collect::<Vec<_>>()).collect()
    }

    /// What is wrong with a budget, whether it holds a pod now or not.
    #[must_use]
    pub fn findings(&self, budget: &Pdb) -> Vec<Found> {
        let known = self.cluster.budget(&budget.key());
        known.map_or_else(Vec::new, |budget| findings::of(self, budget))
    }

    /// A closer look at a budget that holds pods.
    fn view(&self, budget: &'a Pdb) -> Rc<View<'a>> {
        let key = budget.key();
        if let Some(known) = self.views.borrow().get(&key) {
            return Rc::clone(known);
        }
        let standing = self.standing(budget);
        let view = Rc::new(View::new(self.cluster, self.now, self.patience, budget, standing));
        self.views.borrow_mut().insert(key, Rc::clone(&view));
        view
    }

    fn spends(&self, pod: &Pod, verdict: &Verdict) -> Vec<BudgetKey> {
        let charged = matches!(
            verdict.cause,
            Cause::Allowed
                | Cause::Exhausted
                | Cause::SyncFailed
                | Cause::StillProcessing
                | Cause::NegativeAllowance
                | Cause::TooManyDisruptedPods
        );
        if charged { self.cluster.budgets_of(pod).map(|budget| budget.key()).collect() } else { Vec::new() }
    }
}
