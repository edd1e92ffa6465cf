//! One pod, and what the rules ask about it.

use std::rc::Rc;

use jiff::Timestamp;

use super::view::View;
use super::{Explainer, Patience, Treatment, rules, unbudgeted};
use crate::api::{PodAction, PodPolicy};
use crate::budget::{Cause, Verdict};
use crate::cluster::{Cluster, Oddity, Pdb, Pod, Refusal};

/// A pod that is judged.
pub(super) struct Case<'p, 'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) now: Timestamp,
    pub(super) patience: &'a Patience,
    pub(super) pod: &'p Pod,
    pub(super) policy: &'p PodPolicy,
    /// What a rule of the plan, or a label, says is done to it.
    pub(super) action: PodAction,
    pub(super) treatment: Treatment,
    pub(super) verdict: &'p Verdict,
    /// The server's last refusal.
    pub(super) refusal: Option<&'a Refusal>,
    /// The one budget that does not let the pod go now.
    held: Option<Rc<View<'a>>>,
}

impl<'p, 'a> Case<'p, 'a> {
    pub(super) fn new(
        explainer: &Explainer<'a>,
        pod: &'p Pod,
        (policy, action): (&'p PodPolicy, PodAction),
        treatment: Treatment,
        verdict: &'p Verdict,
    ) -> Self {
        let cluster = explainer.cluster;
        let mut case = Self {
            cluster,
            now: explainer.now,
            patience: explainer.patience,
            pod,
            policy,
            action,
            treatment,
            verdict,
            refusal: cluster.evictions.refusal(&pod.uid),
            held: None,
        };
        case.held = case.holds(explainer).map(|budget| explainer.view(budget));
        case
    }

    /// The budget that does not let the pod go now, if there is exactly one that decides.
    pub(super) fn held(&self) -> Option<&View<'a>> {
        self.held.as_deref()
    }

    /// The same, unless the server's own limits speak before the arithmetic (403).
    pub(super) fn held_by_arithmetic(&self) -> Option<&View<'a>> {
        let limits = matches!(self.verdict.cause, Cause::NegativeAllowance | Cause::TooManyDisruptedPods);
        self.held().filter(|_| !limits)
    }

    /// When time alone may change what is said: a pod is overdue, starts no longer, or a budget has been left for too
    /// long.
    pub(super) fn changes_at(&self) -> Option<Timestamp> {
        let after = |at: Timestamp, patience| at.checked_add(patience).ok().filter(|at| *at > self.now);
        if let Some(deletion) = self.pod.deletion {
            return after(deletion.at, self.patience.overdue);
        }
        if let Some(until) = unbudgeted::until(self) {
            return Some(until);
        }
        if rules::protected(self.pod, self.policy, self.now) {
            return rules::protected_until(self.pod);
        }
        let view = self.held()?;
        let starting = view.away.starting.iter().filter_map(|pod| pod.created);
        let starting = starting.filter_map(|created| after(created, self.patience.starting));
        let late = view.budget.spec_since.filter(|_| view.budget.behind());
        let late = late.and_then(|since| after(since, self.patience.stale));
        // What is seen for the first time is remembered from now on.
        let odd = view.oddities().map(|oddity| self.cluster.oddities.since(oddity).unwrap_or(self.now));
        let odd = odd.filter_map(|since| after(since, self.patience.stale));
        let counted_again = view.standing.computed.recheck_at.filter(|at| *at > self.now);
        let going = view.away.terminating.iter().filter_map(|pod| pod.deletion);
        let overdue = going.filter_map(|deletion| after(deletion.at, self.patience.overdue));
        starting.chain(late).chain(odd).chain(counted_again).chain(overdue).min()
    }

    /// Since when it is seen, if that is too long.
    pub(super) fn lasts(&self, oddity: &Oddity) -> Option<Timestamp> {
        let since = self.cluster.oddities.since(oddity)?;
        (self.now.duration_since(since) >= self.patience.stale).then_some(since)
    }

    fn holds(&self, explainer: &Explainer<'a>) -> Option<&'a Pdb> {
        let key = self.cluster.budgets_of(self.pod).next()?.key();
        let budget = self.cluster.budget(&key)?;
        let holds = match self.verdict.cause {
            Cause::Exhausted
            | Cause::SyncFailed
            | Cause::StillProcessing
            | Cause::NegativeAllowance
            | Cause::TooManyDisruptedPods => true,
            // The server would say yes, but what it would spend is not there, or is spoken for.
            Cause::Allowed => {
                let sent = self.cluster.evictions.is_in_flight(&self.pod.uid);
                !sent && (explainer.standing(budget).room <= 0 || self.refused_by_budget())
            }
            _ => false,
        };
        holds.then_some(budget)
    }

    /// The server has just refused for the budget, and its change has not arrived here yet.
    fn refused_by_budget(&self) -> bool {
        self.refusal.is_some_and(|refusal| {
            refusal.retry_at > self.now && refusal.causes.iter().any(|cause| &**cause == "DisruptionBudget")
        })
    }
}
