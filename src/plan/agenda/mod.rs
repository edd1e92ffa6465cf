//! What whoever acts keeps between two decisions: what is observed, what is under way, what waits after a failure.
//!
//! It is the pure half of the loop. The controller and the simulation put in what they observe and what came of each
//! errand, and carry out the errands that come out; so there is one bookkeeping, as there is one [`decide`]. An
//! errand is not begun twice: each is under way, waiting after a failure, or free.

mod conclude;
mod errands;
mod hand_over;
mod look;
mod pace;
mod plans;
mod random;
mod scales;
#[cfg(test)]
mod tests;

pub use errands::{Answer, Errand, Failure, Moment, Outcome, StatusWrite, Told};
pub use plans::{PlanChange, PlanStore, Seen};
pub use random::Random;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::core::{ObjectMeta, Status};

use super::{Action, Change, Decision, Decisions, Evict, NodeChange, Settings};
use super::{change, decide, notices};
use crate::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus};
use crate::cluster::{self, BudgetKey, Cluster, Effect, InFlight, ObjectKind, Oddities, Pdb, PodKey, Text};
use hand_over::HandOver;
use look::Sight;
use pace::{Few, Task, Tasks};

/// How long changes are collected before a decision, if the last one is so long ago.
const COALESCE: Duration = Duration::from_millis(1);
/// What lies between two decisions, at least.
const APART: Duration = Duration::from_millis(5);
/// A decision is made at least so often, whatever was missed.
const SAFETY_NET: Duration = Duration::from_secs(30);
/// A status that no phase has changed in is written at most so often.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// Waits after a refusal: the first, the longest.
const REFUSED_FIRST: Duration = Duration::from_secs(1);
const REFUSED_LONGEST: Duration = Duration::from_mins(1);
/// The same after admission has denied it: whoever does that moves the pod by itself, or has a rule, and each request is work for
/// a webhook and may have effects there.
const DENIED_FIRST: Duration = Duration::from_secs(30);
const DENIED_LONGEST: Duration = Duration::from_mins(5);

/// Whether this process acts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lead {
    No,
    /// It may, and first reads what the plans' statuses remember: its watch may not have brought yet what the one
    /// before has written. The plans that were known when it asked.
    Reads(HashSet<String>),
    Yes,
}

/// What whoever acts keeps between two decisions.
#[derive(Debug)]
pub struct Agenda {
    cluster: Cluster,
    plans: PlanStore,
    settings: Settings,
    tasks: Tasks,
    random: Random,
    /// Marks on nodes to come: none of them is urgent, and every node's watchers get each.
    marks: Few,
    /// When the scale of an owner was last read, by its uid.
    scales_read: HashMap<Text, Duration>,
    /// When the status of a plan was last written.
    written: HashMap<String, Duration>,
    /// The owners of the pods whose eviction is not answered yet, by the pod's uid: the pod may be gone before.
    evicting: HashMap<Text, Text>,
    /// Nodes that are being claimed, with the uid of the plan.
    claiming: HashMap<Text, String>,
    /// How far whoever asks has come in taking over.
    lead: Lead,
    sight: Sight,
    /// What the status says of a plan that is being written, by the plan's uid.
    writing: HashMap<String, Ahead>,
    errands: Vec<Errand>,
    /// How many errands were taken whose outcome has not come.
    under_way: usize,
    /// How far it has come in handing over.
    hand_over: HandOver,
    decide_at: Duration,
    /// When the last decision was made, and how long it took.
    decided: Duration,
    took: Duration,
}

impl Agenda {
    /// Knows nothing yet. The seed spreads the waits after failures.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            cluster: Cluster::new(),
            plans: PlanStore::default(),
            settings,
            tasks: Tasks::default(),
            random: Random::new(seed),
            marks: Few::default(),
            scales_read: HashMap::new(),
            written: HashMap::new(),
            evicting: HashMap::new(),
            claiming: HashMap::new(),
            lead: Lead::No,
            sight: Sight::default(),
            writing: HashMap::new(),
            errands: Vec::new(),
            under_way: 0,
            hand_over: HandOver::default(),
            decide_at: SAFETY_NET,
            decided: Duration::ZERO,
            took: Duration::ZERO,
        }
    }

    /// What is observed.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The plans that are observed.
    #[must_use]
    pub fn plans(&self) -> &PlanStore {
        &self.plans
    }

    /// Whether everything was listed once: before that nothing is decided.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.plans.is_listed() && self.cluster.not_listed().next().is_none()
    }

    /// When to decide next.
    #[must_use]
    pub fn decide_at(&self) -> Duration {
        self.decide_at
    }

    /// What is to be done now. Each comes back as an [`Outcome`].
    pub fn take_errands(&mut self) -> Vec<Errand> {
        self.under_way += self.errands.len();
        std::mem::take(&mut self.errands)
    }

    /// Decides at once, or some milliseconds after the last time; later where decisions take long, so that they never fill
    /// all the time.
    pub fn decide_soon(&mut self, now: Moment) {
        let rested = self.decided + self.took + APART.max(self.took);
        self.decide_by(rested.max(now.steady + COALESCE));
    }

    /// A budget may have room: pods may be waiting for nothing else. Decides at once, but never all the time.
    fn decide_now(&mut self, now: Moment) {
        self.decide_by((self.decided + self.took * 2).max(now.steady));
    }

    fn decide_by(&mut self, at: Duration) {
        self.decide_at = self.decide_at.min(at);
    }

    /// Takes in what a watch reports; returns what it did to one object.
    pub fn observe(&mut self, change: cluster::Change, now: Moment) -> Option<Effect> {
        self.sight.hears(&change, now);
        let effect = self.take_in(change, now);
        // As after a node's heartbeat: nothing that is read has changed.
        if effect.as_ref().is_none_or(|effect| effect.changed) {
            self.decide_soon(now);
        }
        if effect.as_ref().is_some_and(|effect| self.may_give_room(effect)) {
            self.decide_now(now);
        }
        effect
    }

    /// A budget has changed that reports room, or a pod of such a budget that is Ready: one of both comes last.
    fn may_give_room(&self, effect: &Effect) -> bool {
        let has_room = |budget: &Arc<Pdb>| budget.status.disruptions_allowed > 0;
        let ready = || {
            let key = PodKey { namespace: effect.namespace.clone(), name: effect.name.clone() };
            self.cluster.pod(&key).filter(|pod| pod.ready)
        };
        match effect.kind {
            ObjectKind::Pod if effect.changed => {
                ready().is_some_and(|pod| self.cluster.budgets_of(pod).any(has_room))
            }
            _ => self.changed_budget(effect).is_some_and(has_room),
        }
    }

    /// The budget that a change is about.
    fn changed_budget(&self, effect: &Effect) -> Option<&Arc<Pdb>> {
        let about = effect.changed && effect.kind == ObjectKind::PodDisruptionBudget;
        let key = || BudgetKey { namespace: effect.namespace.clone(), name: effect.name.clone() };
        about.then(key).and_then(|key| self.cluster.budget(&key))
    }

    /// Takes in what the watch of plans reports.
    pub fn observe_plan(&mut self, change: PlanChange, now: Moment) {
        self.plans.observe(change);
        self.decide_soon(now);
    }

    fn take_in(&mut self, change: cluster::Change, now: Moment) -> Option<Effect> {
        let effect = self.cluster.observe(change);
        if let Some(effect) = &effect {
            self.read_scales_again(effect, now);
        }
        effect
    }

    /// Decides, if everything was listed once and whoever asks may act. To be followed by [`Agenda::follow`].
    pub fn decide(&mut self, may_act: bool, now: Moment) -> Option<Decisions> {
        self.decide_at = now.steady + SAFETY_NET;
        if !may_act {
            self.lead = Lead::No;
            // Whoever acts next begins anew, this process too.
            self.cluster.oddities = Oddities::default();
        }
        if !may_act || self.hand_over.is_asked_for() || !self.synced() || !self.leads(now) {
            return None;
        }
        self.cluster.evictions.expire(now.wall);
        self.cluster.rights.expire(now.wall);
        self.tasks.forget_old(now.steady);
        let plans = self.plans.view();
        #[cfg(feature = "planted")]
        let plans = plans::with_planted_clocks(plans, now);
        Some(decide(&plans, &self.cluster, now.wall, &self.settings))
    }

    /// Whether the plans have been read since this process may act; asks for them if not.
    fn leads(&mut self, now: Moment) -> bool {
        if self.lead != Lead::Yes && self.tasks.begin(Task::Plans, now.steady) {
            self.lead = Lead::Reads(self.plans.uids());
            self.errands.push(Errand::ListPlans);
        }
        if let Some(at) = self.tasks.next(now.steady) {
            self.decide_by(at);
        }
        self.lead == Lead::Yes
    }

    /// Begins what was decided, unless it is under way or has to wait.
    pub fn follow(&mut self, decisions: Decisions, took: Duration, now: Moment) {
        (self.decided, self.took) = (now.steady, took);
        // A deadline is kept also while the lease is about to be handed over.
        if let Some(at) = decisions.wake_at {
            let wait = Duration::try_from(at.duration_since(now.wall)).unwrap_or(Duration::ZERO);
            self.decide_by(now.steady + wait.max(APART).min(SAFETY_NET));
        }
        if self.winds_up(&decisions, now) {
            return self.wind_up(decisions, now);
        }
        self.cluster.oddities.seen(decisions.oddities, now.wall);
        for action in decisions.sweep {
            self.begin(None, action, now);
        }
        for action in decisions.marks {
            if !self.marks.may(now.steady) {
                self.decide_by(self.marks.next().unwrap_or(now.steady));
                break;
            }
            let begun = self.errands.len();
            self.begin(None, action, now);
            if self.errands.len() > begun {
                self.marks.happens(now.steady);
            }
        }
        for decision in decisions.plans {
            self.follow_plan(decision, now);
        }
        self.read_scales(decisions.scales, now);
        for namespace in decisions.rights {
            let name = namespace.as_ref().map(ToString::to_string).unwrap_or_default();
            if self.tasks.begin(Task::Right(name), now.steady) {
                self.errands.push(Errand::AskRight { namespace });
            }
        }
        if let Some(at) = self.tasks.next(now.steady) {
            self.decide_by(at);
        }
    }

    fn follow_plan(&mut self, mut decision: Decision, now: Moment) {
        self.report(&mut decision, now);
        let Some(plan) = self.plans.metadata_of(&decision.uid).cloned() else { return };
        for action in decision.actions {
            if !self.is_untimely(&decision.uid, &action) {
                self.begin(Some(&plan), action, now);
            }
        }
    }

    /// Writes the status, if it is worth it.
    fn report(&mut self, decision: &mut Decision, now: Moment) {
        if let Some(status) = decision.status.take()
            && let Some(plan) = self.plans.by_uid(&decision.uid).cloned()
            && self.worth_writing(&plan, &decision.uid, &status, now)
            && self.tasks.begin(Task::Status(decision.uid.clone()), now.steady)
        {
            self.writing.insert(decision.uid.clone(), Ahead::of(&status));
            let notices = notices(&decision.plan, plan.status.as_ref(), &status);
            let counted = self.cluster.evictions.uncounted();
            let write = StatusWrite { plan: Arc::clone(&plan), status, counted, notices };
            self.errands.push(Errand::WriteStatus(Box::new(write)));
        }
    }

    /// Decided from what was observed, and overtaken by what is under way.
    fn is_untimely(&self, uid: &str, action: &Action) -> bool {
        match action {
            // Nothing more is done to a node whose end is being written, or to an owner that is being forgotten.
            Action::Evict(Evict { node, owner, .. }) => self.writing.get(uid).is_some_and(|ahead| {
                !ahead.in_progress.contains(&**node)
                    || owner.as_ref().is_some_and(|owner| !ahead.owners.contains(&**owner))
            }),
            Action::PatchNode {
                node, change: NodeChange::Claim { .. } | NodeChange::HandOff { .. }, ..
            } => self.writing.get(uid).is_some_and(|ahead| !ahead.in_progress.contains(&**node)),
            // The claim may succeed yet, and then the plan has to be there.
            Action::RemoveFinalizer => self.claiming.values().any(|claiming| claiming == uid),
            _ => false,
        }
    }

    fn worth_writing(&mut self, plan: &DrainPlan, uid: &str, status: &DrainPlanStatus, now: Moment) -> bool {
        let due = self.written.get(uid).map(|at| *at + STATUS_EVERY);
        match (change(plan.status.as_ref(), status), due) {
            (Change::None, _) => false,
            (Change::Soon, Some(due)) if due > now.steady => {
                self.decide_by(due);
                false
            }
            _ => true,
        }
    }

    fn begin(&mut self, plan: Option<&ObjectMeta>, action: Action, now: Moment) {
        let uid = plan.and_then(|plan| plan.uid.clone()).unwrap_or_default();
        let (task, errand) = match (action, plan) {
            (Action::AddFinalizer, Some(plan)) => {
                (Task::Finalizer(uid), Errand::AddFinalizer(Box::new(plan.clone())))
            }
            (Action::RemoveFinalizer, Some(plan)) => {
                (Task::Finalizer(uid), Errand::RemoveFinalizer(Box::new(plan.clone())))
            }
            // It is looked at before anything else is followed.
            (Action::AddFinalizer | Action::RemoveFinalizer, None) | (Action::HandOver { .. }, _) => return,
            (Action::PatchNode { node, change, patch }, _) => {
                (Task::Node(node.to_string()), Errand::PatchNode { node, change, patch })
            }
            (Action::ConfirmEmpty { node, since }, _) => {
                if self.tasks.begin(Task::List(node.to_string()), now.steady) {
                    self.cluster.evictions.ask_empty(node.clone(), since);
                    self.errands.push(Errand::ListPods { node, since });
                }
                return;
            }
            (Action::Evict(eviction), _) => {
                let look = self.looks_at(&eviction, now);
                let owner = self.cluster.pod(&eviction.pod).and_then(|pod| pod.owner.as_ref());
                self.evicting.extend(owner.map(|owner| (eviction.uid.clone(), owner.uid.clone())));
                self.cluster.evictions.sent(InFlight {
                    pod: eviction.pod.clone(),
                    uid: eviction.uid.clone(),
                    node: eviction.node.clone(),
                    owner: eviction.owner.clone(),
                    budgets: eviction.spends.clone(),
                    accepted: None,
                });
                self.errands.push(Errand::Evict { eviction, look });
                return;
            }
        };
        if self.tasks.begin(task, now.steady) {
            if let (
                Errand::PatchNode {
                    node, change: NodeChange::Claim { .. } | NodeChange::HandOff { .. }, ..
                },
                Some(plan),
            ) = (&errand, plan)
            {
                self.claiming.insert(node.clone(), plan.uid.clone().unwrap_or_default());
            }
            self.errands.push(errand);
        }
    }
}

/// What a status that is being written says already.
#[derive(Debug)]
struct Ahead {
    /// The nodes that it calls Draining or handed off.
    in_progress: HashSet<String>,
    /// The uids of the owners that it remembers.
    owners: HashSet<String>,
}

impl Ahead {
    fn of(status: &DrainPlanStatus) -> Self {
        let progresses =
            |node: &&NodeStatus| matches!(node.phase, NodePhase::Draining | NodePhase::HandedOff);
        let in_progress = status.nodes.iter().filter(progresses).map(|node| node.name.clone()).collect();
        Self { in_progress, owners: status.moved.iter().map(|owner| owner.uid.clone()).collect() }
    }
}

/// The reasons of a refusal's causes, such as `DisruptionBudget`.
pub fn causes(status: &Status) -> impl Iterator<Item = &str> {
    status.details.iter().flat_map(|details| &details.causes).map(|cause| cause.reason.as_str())
}
