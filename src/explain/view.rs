//! A budget that holds pods: its pods that are away, and the owners behind it; looked at once for all its pods.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use super::owners::{self, Owner, Shortage};
use super::replacements::{self, Surplus};
use super::{Patience, Standing, hanging, ordered};
use crate::budget::{self, Numbers};
use crate::cluster::{Cluster, ContainerTrouble, Oddity, OwnerRef, Pdb, Pod, Scale, Text};

/// How long the controller and the server believe in an eviction that nothing confirms
/// (`disruption.go: DeletionTimeout`).
pub(super) const DISRUPTED_POD_LIFE: SignedDuration = SignedDuration::from_mins(2);

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
    /// Its status is not what it should be.
    pub(super) stale: Option<Oddity>,
    /// The owners that have fewer pods than they want, none of which is starting.
    pub(super) short: Vec<Short>,
    /// Its pods of StatefulSets that are going and take more than time: each comes back under its name when the old one is
    /// gone.
    pub(super) hanging: Vec<&'a Pod>,
    /// The owners that have more pods than they want.
    pub(super) surplus: Vec<Surplus>,
    /// How many of its pods take more than time to be back, for whatever reasons.
    lost: usize,
}

/// An owner that creates no pods, though it lacks some.
pub(super) struct Short {
    /// Which of the owners.
    pub(super) owner: usize,
    pub(super) shortage: Shortage,
    pub(super) oddity: Oddity,
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
        // Finished pods never will be healthy, and that is nobody's fault; but whoever comes back under such a name waits
        // until it is free. Kubelets say of deleted pods that they have finished.
        let counts = |pod: &&Pod| !pod.finished() || (pod.terminating() && comes_back_in_place(pod));
        for pod in budget::selected(cluster, budget).map(|pod| &**pod).filter(counts) {
            if pod.terminating() {
                away.terminating.push(pod);
            } else if let_go(cluster, now, budget, pod) && (pod.ready || !reborn(budget, pod)) {
                away.evicted.push(pod);
            } else if !pod.ready {
                match Unready::of(cluster, now, patience, pod) {
                    Unready::Unschedulable => away.unschedulable.push(pod),
                    Unready::Starting => away.starting.push(pod),
                    Unready::Ailing => away.unready.push(pod),
                }
            }
        }
        let (owners, bare) = owners::of_budget(cluster, budget);
        let stale = stale(budget, &standing);
        let short = short(cluster, &owners, &away);
        let going = away.terminating.iter().copied().filter(|pod| comes_back_in_place(pod));
        let hanging = going.filter(|pod| hanging::why(cluster, now, patience, pod).is_some()).collect();
        let surplus = surplus(cluster, budget);
        let mut view = Self { budget, standing, away, owners, bare, stale, short, hanging, surplus, lost: 0 };
        view.lost = view.lost(cluster, now, patience);
        view
    }

    fn lost(&self, cluster: &Cluster, now: Timestamp, patience: &Patience) -> usize {
        let creates_none = |index: usize, owner: &Owner<'_>| {
            let short = self.short.iter().filter(|short| short.owner == index);
            let mut since = short.filter_map(|short| cluster.oddities.since(&short.oddity));
            owner.failure.is_some()
                || since.any(|since| now.duration_since(since) >= patience.stale)
                || cluster
                    .workload(&owner.uid)
                    .is_some_and(|set| ordered::creates_none(cluster, now, patience, set))
        };
        let stuck = |(index, owner): (usize, &Owner<'_>)| {
            let shortage = owner.shortage(cluster)?;
            creates_none(index, owner).then(|| (owner.uid.clone(), shortage.lacking()))
        };
        let stuck: BTreeMap<Text, usize> = self.owners.iter().enumerate().filter_map(stuck).collect();
        // What is going is among what such an owner lacks.
        let counted = |pod: &Pod| pod.owner.as_ref().is_some_and(|owner| stuck.contains_key(&owner.uid));
        let hanging = self.hanging.iter().filter(|pod| !counted(pod)).count();
        let others = hanging + self.perhaps_not_replaced(cluster).len();
        stuck.values().sum::<usize>() + others + self.away.unschedulable.len() + self.away.unready.len()
    }

    /// What should not last.
    pub(super) fn oddities(&self) -> impl Iterator<Item = &Oddity> {
        let short = self.short.iter().map(|short| &short.oddity);
        self.stale.iter().chain(short).chain(self.surplus.iter().map(|surplus| &surplus.oddity))
    }

    /// Its pods that are going and of which nobody says whether others will come for them: their owner has no scale. A
    /// DaemonSet has a pod on every node.
    pub(super) fn perhaps_not_replaced(&self, cluster: &Cluster) -> Vec<(&Owner<'a>, &'a Pod)> {
        let unscaled = |owner: &&Owner<'_>| match &*owner.kind {
            "DaemonSet" => false,
            "Job" => true,
            _ => matches!(cluster.scale(&owner.uid), Some(Scale::NoScale(_))),
        };
        let owners = self.owners.iter().filter(unscaled);
        let going = |pod: &&&'a Pod| pod.terminating() && !pod.finished();
        owners.flat_map(|owner| owner.pods.iter().filter(going).map(move |pod| (owner, *pod))).collect()
    }

    /// Whether time alone gives the budget room again: it has enough without the pods that take more than that.
    pub(super) fn time_helps(&self) -> bool {
        self.suffices_without(self.lost)
    }

    /// Whether pods are on their way and the budget has room when they are there, by its numbers alone: for where no scale
    /// tells whether others will come.
    pub(super) fn comes_back_into_room(&self) -> bool {
        let Away { terminating, evicted, starting, .. } = &self.away;
        let on_their_way =
            (terminating.len() + evicted.len() + starting.len()).saturating_sub(self.hanging.len());
        let Numbers { current_healthy, desired_healthy, .. } = self.standing.computed.numbers;
        let then = i32::try_from(on_their_way).unwrap_or(i32::MAX).saturating_add(current_healthy);
        on_their_way > 0 && then > desired_healthy
    }

    /// Whether the budget will allow a disruption when all pods but this many are back.
    pub(super) fn suffices_without(&self, pods: usize) -> bool {
        let without = i32::try_from(pods).unwrap_or(i32::MAX);
        let attainable = &self.standing.attainable;
        attainable.attainable.saturating_sub(without) > attainable.required
    }
}

/// The controller has not seen the budget's spec, or would report other numbers. What it cannot compute is another story.
fn stale(budget: &Pdb, standing: &Standing) -> Option<Oddity> {
    let (computed, reported) = (&standing.computed, Numbers::reported(budget));
    let computes = computed.sync_error.is_none()
        && computed.unread_scales.is_empty()
        && budget.status.sync_failed.is_none();
    let differs = budget.behind() || reported != computed.numbers;
    (computes && differs).then(|| Oddity::Stale {
        budget: budget.key(),
        reported: [
            budget.status.observed_generation,
            reported.expected_pods.into(),
            reported.current_healthy.into(),
            reported.desired_healthy.into(),
            reported.disruptions_allowed.into(),
        ],
    })
}

fn short(cluster: &Cluster, owners: &[Owner<'_>], away: &Away<'_>) -> Vec<Short> {
    let starts = |pod: &&Pod| away.starting.iter().chain(&away.unschedulable).any(|of| of.uid == pod.uid);
    let mut short = Vec::new();
    for (index, owner) in owners.iter().enumerate() {
        // A StatefulSet's pod comes back under its name when the old one is gone.
        let comes_back = &*owner.kind == "StatefulSet" && owner.pods.iter().any(|pod| pod.terminating());
        if owner.may_lack_pods() && !comes_back && !owner.pods.iter().any(starts) {
            let Some(shortage) = owner.shortage(cluster) else { continue };
            let alive = owner.pods.iter().filter(|pod| !pod.finished() && !pod.terminating());
            let pods = alive.map(|pod| pod.name.clone()).collect();
            short.push(Short {
                owner: index,
                shortage,
                oddity: Oddity::Short { owner: owner.uid.clone(), pods },
            });
        }
    }
    short
}

/// The owners of its pods that want fewer than there are.
fn surplus(cluster: &Cluster, budget: &Pdb) -> Vec<Surplus> {
    let owners: BTreeMap<&Text, &OwnerRef> = budget::selected(cluster, budget)
        .filter_map(|pod| pod.owner.as_deref())
        .map(|owner| (&owner.uid, owner))
        .collect();
    let of = |owner: &OwnerRef| replacements::surplus(cluster, &budget.namespace, owner);
    owners.into_values().filter_map(of).collect()
}

fn let_go(cluster: &Cluster, now: Timestamp, budget: &Pdb, pod: &Pod) -> bool {
    let shown = budget.status.disrupted_pods.get(&pod.name);
    let believed = |at: &Timestamp| at.checked_add(DISRUPTED_POD_LIFE).is_ok_and(|until| until > now);
    shown.is_some_and(believed) || cluster.evictions.is_in_flight(&pod.uid)
}

/// The eviction that the budget shows was that of the pod before it, which had the same name. The controller counts such a
/// pod as going all the same, until it has seen the budget without the name (`disruption.go: buildDisruptedPodMap`).
pub(super) fn reborn(budget: &Pdb, pod: &Pod) -> bool {
    let evicted = budget.status.disrupted_pods.get(&pod.name);
    evicted.zip(pod.created).is_some_and(|(evicted, created)| created >= *evicted)
}

/// Its controller creates another pod of that name when the name is free.
fn comes_back_in_place(pod: &Pod) -> bool {
    pod.owner.as_ref().is_some_and(|owner| &*owner.kind == "StatefulSet")
}

/// What becomes of a pod that is not Ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unready {
    /// The scheduler finds no node for it.
    Unschedulable,
    /// Time makes it Ready.
    Starting,
    /// It needs help, or its node does.
    Ailing,
}

impl Unready {
    pub(super) fn of(cluster: &Cluster, now: Timestamp, patience: &Patience, pod: &Pod) -> Self {
        if pod.node.is_none() && pod.unschedulable.is_some() {
            Self::Unschedulable
        } else if just_starting(now, patience, pod) && !cluster.node_is_ill(pod) {
            Self::Starting
        } else {
            Self::Ailing
        }
    }
}

/// Created a short time ago, no container has restarted, none fails to start.
fn just_starting(now: Timestamp, patience: &Patience, pod: &Pod) -> bool {
    let young = pod.created.is_some_and(|created| now.duration_since(created) < patience.starting);
    let failing = pod.trouble.as_ref().is_some_and(|trouble| {
        trouble.restarts > 0 || trouble.waiting.as_deref().is_some_and(ContainerTrouble::is_ailment)
    });
    young && !failing
}
