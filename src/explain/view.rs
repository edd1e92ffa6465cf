//! A budget that holds pods: its pods that are away, and the owners behind it; looked at once for all its pods.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use super::owners::{self, Owner};
use super::{Patience, Standing};
use crate::budget;
use crate::cluster::{Cluster, ContainerTrouble, Pdb, Pod};

/// How long the controller and the server believe in an eviction that nothing confirms
/// (`disruption.go: DeletionTimeout`).
const DISRUPTED_POD_LIFE: SignedDuration = SignedDuration::from_mins(2);

/// A budget, looked at closely.
pub(super) struct View<'a> {
    pub(super) budget: &'a Pdb,
    pub(super) standing: Rc<Standing>,
    /// Its pods that are not healthy.
    pub(super) away: Away<'a>,
    /// The owners of its pods, by kind and name.
    pub(super) owners: Vec<Owner<'a>>,
    /// Its pods without a controller, by name.
    pub(super) bare: Vec<&'a Pod>,
}

/// The pods of a budget that are not healthy, by what becomes of them; each sorted by name.
#[derive(Default)]
pub(super) struct Away<'a> {
    /// Terminating.
    pub(super) terminating: Vec<&'a Pod>,
    /// Their eviction was accepted or sent, and nothing shows it yet.
    pub(super) evicted: Vec<&'a Pod>,
    /// The scheduler finds no node for them.
    pub(super) unschedulable: Vec<&'a Pod>,
    /// Not Ready yet, and young enough.
    pub(super) starting: Vec<&'a Pod>,
    /// Not Ready, and not just starting.
    pub(super) unready: Vec<&'a Pod>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        now: Timestamp,
        patience: &Patience,
        budget: &'a Pdb,
        standing: Rc<Standing>,
    ) -> Self {
        let mut away = Away::default();
        // Finished pods never will be healthy, and that is nobody's fault.
        for pod in budget::selected(cluster, budget).map(|pod| &**pod).filter(|pod| !pod.finished()) {
            if pod.terminating() {
                away.terminating.push(pod);
            } else if let_go(cluster, now, budget, pod) {
                away.evicted.push(pod);
            } else if pod.ready {
                // healthy
            } else if pod.node.is_none() && pod.unschedulable.is_some() {
                away.unschedulable.push(pod);
            } else if just_starting(now, patience, pod) {
                away.starting.push(pod);
            } else {
                away.unready.push(pod);
            }
        }
        let (owners, bare) = owners::of_budget(cluster, budget);
        Self { budget, standing, away, owners, bare }
    }

    /// Whether the budget will allow a disruption when all pods but this many are back: then it only takes time.
    pub(super) fn suffices_without(&self, pods: usize) -> bool {
        let without = i32::try_from(pods).unwrap_or(i32::MAX);
        let attainable = self.standing.attainable;
        attainable.attainable.saturating_sub(without) > attainable.required
    }
}

fn let_go(cluster: &Cluster, now: Timestamp, budget: &Pdb, pod: &Pod) -> bool {
    let shown = budget.status.disrupted_pods.get(&pod.name);
    let believed = |at: &Timestamp| at.checked_add(DISRUPTED_POD_LIFE).is_ok_and(|until| until > now);
    shown.is_some_and(believed) || cluster.evictions.is_in_flight(&pod.uid)
}

/// Created a short time ago, no container has restarted, none fails to start.
fn just_starting(now: Timestamp, patience: &Patience, pod: &Pod) -> bool {
    let young = pod.created.is_some_and(|created| now.duration_since(created) < patience.starting);
    let failing = pod.trouble.as_ref().is_some_and(|trouble| {
        trouble.restarts > 0 || trouble.waiting.as_deref().is_some_and(ContainerTrouble::is_ailment)
    });
    young && !failing
}
