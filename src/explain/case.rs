//! One pod, and what the rules ask about it.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use super::{Explainer, Patience, Standing, Treatment};
use crate::api::PodPolicy;
use crate::budget::{self, Cause, Verdict};
use crate::cluster::{Cluster, Pdb, Pod, Refusal};

/// How long the controller and the server believe in an eviction that nothing confirms
/// (`disruption.go: DeletionTimeout`).
const DISRUPTED_POD_LIFE: SignedDuration = SignedDuration::from_mins(2);

/// Waiting reasons of containers that are not just starting.
const FAILING: [&str; 8] = [
    "CrashLoopBackOff",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RunContainerError",
    "CreateContainerError",
    "CreateContainerConfigError",
];

/// A pod that is judged.
pub(super) struct Case<'e> {
    pub(super) cluster: &'e Cluster,
    pub(super) now: Timestamp,
    pub(super) patience: &'e Patience,
    pub(super) pod: &'e Pod,
    pub(super) policy: &'e PodPolicy,
    pub(super) treatment: Treatment,
    pub(super) verdict: &'e Verdict,
    /// The server's last refusal.
    pub(super) refusal: Option<&'e Refusal>,
    held: Option<Held<'e>>,
}

/// The one budget that does not let the pod go now.
pub(super) struct Held<'e> {
    pub(super) budget: &'e Pdb,
    pub(super) standing: Rc<Standing>,
}

/// The pods of a budget that are not healthy, by what becomes of them; sorted by name.
#[derive(Default)]
pub(super) struct Away<'e> {
    /// Terminating.
    pub(super) terminating: Vec<&'e Pod>,
    /// Their eviction was accepted or sent, and nothing shows it yet.
    pub(super) evicted: Vec<&'e Pod>,
    /// Not Ready yet, and young enough.
    pub(super) starting: Vec<&'e Pod>,
    /// Not Ready, and not just starting.
    pub(super) unready: Vec<&'e Pod>,
}

impl<'e> Case<'e> {
    pub(super) fn new(
        explainer: &'e Explainer<'_>,
        pod: &'e Pod,
        policy: &'e PodPolicy,
        treatment: Treatment,
        verdict: &'e Verdict,
    ) -> Self {
        let cluster = explainer.cluster;
        let mut case = Self {
            cluster,
            now: explainer.now,
            patience: explainer.patience,
            pod,
            policy,
            treatment,
            verdict,
            refusal: cluster.evictions.refusal(&pod.uid),
            held: None,
        };
        case.held = case.find_held(explainer);
        case
    }

    /// The budget that does not let the pod go now, if there is exactly one that decides.
    pub(super) fn held(&self) -> Option<&Held<'e>> {
        self.held.as_ref()
    }

    fn find_held(&self, explainer: &Explainer<'_>) -> Option<Held<'e>> {
        let budget: &'e Pdb = self.cluster.budgets_of(self.pod).next()?;
        let standing = || explainer.standing(budget);
        match self.verdict.cause {
            Cause::Exhausted
            | Cause::SyncFailed
            | Cause::StillProcessing
            | Cause::NegativeAllowance
            | Cause::TooManyDisruptedPods => Some(Held { budget, standing: standing() }),
            // The server would say yes, but what it would spend is not there, or is spoken for.
            Cause::Allowed => {
                let standing = standing();
                let sent = self.cluster.evictions.is_in_flight(&self.pod.uid);
                let stale_view = self.refused_by_budget();
                (!sent && (standing.room <= 0 || stale_view)).then_some(Held { budget, standing })
            }
            _ => None,
        }
    }

    /// The server has just refused for the budget, and its change has not arrived here yet.
    fn refused_by_budget(&self) -> bool {
        self.refusal.is_some_and(|refusal| {
            refusal.retry_at > self.now && refusal.causes.iter().any(|cause| &**cause == "DisruptionBudget")
        })
    }

    /// The pods that a budget selects, by name.
    pub(super) fn selected(&self, budget: &'e Pdb) -> impl Iterator<Item = &'e Pod> {
        budget::selected(self.cluster, budget).map(|pod| &**pod)
    }

    /// The pods of a budget that are not healthy; finished ones never will be and are nobody's fault.
    pub(super) fn away(&self, budget: &'e Pdb) -> Away<'e> {
        let mut away = Away::default();
        for pod in self.selected(budget).filter(|pod| !pod.finished()) {
            if pod.terminating() {
                away.terminating.push(pod);
            } else if self.disrupted(budget, pod) {
                away.evicted.push(pod);
            } else if pod.ready {
                // healthy
            } else if self.just_starting(pod) {
                away.starting.push(pod);
            } else {
                away.unready.push(pod);
            }
        }
        away
    }

    fn disrupted(&self, budget: &Pdb, pod: &Pod) -> bool {
        let shown = budget.status.disrupted_pods.get(&pod.name);
        shown.is_some_and(|at| *at + DISRUPTED_POD_LIFE > self.now)
            || self.cluster.evictions.is_in_flight(&pod.uid)
    }

    /// Created a short time ago, no container has restarted, none fails to start.
    pub(super) fn just_starting(&self, pod: &Pod) -> bool {
        let young = pod.created.is_some_and(|created| created + self.patience.starting > self.now);
        let failing = pod.trouble.as_ref().is_some_and(|trouble| {
            trouble.restarts > 0
                || trouble.waiting.as_ref().is_some_and(|waiting| FAILING.contains(&&**waiting))
        });
        young && !failing
    }
}
