//! The loop: what was observed is applied, a decision is made, its actions are begun.
//!
//! One task owns the cluster and the plans, so nothing is locked and a decision sees one consistent picture. Actions
//! run beside it and come back as outcomes. An action is not begun twice: each is under way, waiting after a
//! failure, or free.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::core::Status;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::act::{Answer, Hands, Outcome, causes};
use super::call::CallError;
use super::events::Publisher;
use super::lease::Leadership;
use super::metrics::Metrics;
use super::pace::{Task, Tasks, doubled, jittered};
use super::report;
use super::serve::Health;
use super::watch::{Observation, PlanWatch};
use crate::api::DrainPlan;
use crate::budget::scales_of;
use crate::cluster::{BudgetKey, Cluster, Effect, InFlight, ObjectKind, OwnerRef, Refusal, Scale, Text};
use crate::plan::{Action, Change, Decision, Evict, Settings, change, decide, notices};

/// How long changes are collected before a decision.
const COALESCE: Duration = Duration::from_millis(5);
/// A decision is made at least so often, whatever was missed.
const SAFETY_NET: Duration = Duration::from_secs(30);
/// A status that no phase has changed in is written at most so often.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// Waits after a refusal: the first, the longest.
const REFUSED_FIRST: Duration = Duration::from_secs(1);
const REFUSED_LONGEST: Duration = Duration::from_mins(1);
/// How long outcomes are awaited when the process ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// What readiness waits for, besides the kinds of objects.
pub const PLANS: &str = "DrainPlan";

/// What the loop is given.
pub struct Parts {
    pub hands: Hands,
    pub observations: mpsc::Receiver<Observation>,
    pub leadership: watch::Receiver<Leadership>,
    pub publisher: Publisher,
    pub metrics: Metrics,
    pub health: Health,
    pub settings: Settings,
}

/// The loop and what it owns.
pub struct Controller {
    parts: Parts,
    cluster: Cluster,
    watched: PlanWatch,
    tasks: Tasks,
    running: JoinSet<Outcome>,
    /// When the status of a plan was last written.
    written: HashMap<String, Instant>,
    /// When to decide next.
    decide_at: Option<Instant>,
    /// How long the last decision took.
    took: Duration,
}

impl Controller {
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            cluster: Cluster::new(),
            watched: PlanWatch::default(),
            tasks: Tasks::default(),
            running: JoinSet::new(),
            written: HashMap::new(),
            decide_at: None,
            took: Duration::ZERO,
        }
    }

    /// Runs until `stop`, then lets what is under way come to its end.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let decide_at = self.decide_at.unwrap_or_else(|| Instant::now() + SAFETY_NET);
            tokio::select! {
                () = &mut stop => break,
                observation = self.parts.observations.recv() => match observation {
                    Some(observation) => self.observe(observation),
                    None => break,
                },
                Some(outcome) = self.running.join_next() => match outcome {
                    Ok(outcome) => self.conclude(outcome),
                    Err(error) => tracing::error!(%error, "an action ended abnormally"),
                },
                changed = self.parts.leadership.changed() => match changed {
                    Ok(()) => self.decide_soon(),
                    Err(_) => break,
                },
                () = tokio::time::sleep_until(decide_at) => self.turn(),
            }
            self.parts.health.turned();
        }
        let farewell = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
            tracing::warn!("some requests were still unanswered when the controller ended");
        }
    }

    /// Decides after a few milliseconds; later where decisions take long, so that they never fill all the time.
    fn decide_soon(&mut self) {
        let soon = Instant::now() + COALESCE.max(self.took);
        self.decide_at = Some(self.decide_at.map_or(soon, |earlier| earlier.min(soon)));
    }

    fn observe(&mut self, observation: Observation) {
        let changed = self.take_in(observation);
        for kind in ObjectKind::ALL.into_iter().filter(|kind| self.cluster.is_listed(*kind)) {
            self.parts.health.done(kind.name());
        }
        if self.watched.is_listed() {
            self.parts.health.done(PLANS);
        }
        if changed {
            self.decide_soon();
        }
    }

    /// Takes an observation in; false when nothing that is read has changed, as after a node's heartbeat.
    fn take_in(&mut self, observation: Observation) -> bool {
        let effect = observation.apply(&mut self.cluster, &mut self.watched, &self.parts.metrics);
        let Some(effect) = effect else { return true };
        if effect.changed && effect.kind == ObjectKind::PodDisruptionBudget {
            self.read_scales_again(&effect);
        }
        effect.changed
    }

    /// A budget's numbers have changed: so may have the scales that were read for it.
    fn read_scales_again(&mut self, effect: &Effect) {
        let key = BudgetKey { namespace: effect.namespace.clone(), name: effect.name.clone() };
        let Some(budget) = self.cluster.budget(&key) else { return };
        let mut read_before = scales_of(&self.cluster, budget);
        read_before.retain(|(_, owner)| self.cluster.scale(&owner.uid).is_some());
        for (namespace, owner) in read_before {
            self.read_scale(namespace, owner);
        }
    }

    fn read_scale(&mut self, namespace: Text, owner: OwnerRef) {
        if self.tasks.begin(Task::Scale(owner.uid.to_string()), Instant::now()) {
            self.running.spawn(self.parts.hands.clone().read_scale(namespace, owner));
        }
    }

    fn synced(&self) -> bool {
        self.watched.is_listed() && self.cluster.not_listed().next().is_none()
    }

    /// Decides, and begins what was decided.
    fn turn(&mut self) {
        let started = Instant::now();
        self.decide_at = Some(started + SAFETY_NET);
        if !self.synced() || self.parts.leadership.borrow().may_act().is_none() {
            return;
        }
        let now = Timestamp::now();
        self.cluster.evictions.expire(now);
        self.tasks.forget_old(started);
        let plans = self.watched.plans.view();
        let decisions = decide(&plans, &self.cluster, now, &self.parts.settings);
        self.took = started.elapsed();
        self.parts.metrics.decision(self.took);
        report::gauges(&self.parts.metrics, &plans);

        for action in decisions.sweep {
            self.begin(None, action);
        }
        for decision in decisions.plans {
            self.follow(decision, started);
        }
        for (namespace, owner) in decisions.scales {
            self.read_scale(namespace, owner);
        }
        if let Some(at) = decisions.wake_at {
            self.wake_after(at.duration_since(now));
        }
        if let Some(at) = self.tasks.next(started) {
            self.decide_at = self.decide_at.map(|other| other.min(at));
        }
    }

    fn wake_after(&mut self, wait: SignedDuration) {
        let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO).max(COALESCE);
        let at = Instant::now() + wait.min(SAFETY_NET);
        self.decide_at = Some(self.decide_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn follow(&mut self, decision: Decision, now: Instant) {
        let Some(plan) = self.watched.plans.by_uid(&decision.uid).cloned() else { return };
        if let Some(status) = decision.status {
            let due = self.written.get(&decision.uid).map(|at| *at + STATUS_EVERY);
            let write = match (change(plan.status.as_ref(), &status), due) {
                (Change::None, _) => false,
                (Change::Soon, Some(due)) if due > now => {
                    self.decide_at = self.decide_at.map(|other| other.min(due));
                    false
                }
                _ => true,
            };
            if write && self.tasks.begin(Task::Status(decision.uid.clone()), now) {
                let notices = notices(&decision.plan, plan.status.as_ref(), &status);
                let counted = self.cluster.evictions.uncounted();
                let hands = self.parts.hands.clone();
                self.running.spawn(hands.write_status((*plan).clone(), status, counted, notices));
            }
        }
        for action in decision.actions {
            self.begin(Some(&plan), action);
        }
    }

    /// Begins an action, unless it is under way or has to wait.
    fn begin(&mut self, plan: Option<&DrainPlan>, action: Action) {
        let now = Instant::now();
        let hands = self.parts.hands.clone();
        match (action, plan) {
            (Action::AddFinalizer, Some(plan)) => {
                if self.tasks.begin(Task::Finalizer(plan.uid().unwrap_or_default()), now) {
                    self.running.spawn(hands.add_finalizer(plan.clone()));
                }
            }
            (Action::RemoveFinalizer, Some(plan)) => {
                if self.tasks.begin(Task::Finalizer(plan.uid().unwrap_or_default()), now) {
                    self.running.spawn(hands.remove_finalizer(plan.clone()));
                }
            }
            (Action::AddFinalizer | Action::RemoveFinalizer, None) => {}
            (Action::PatchNode { node, change, patch }, _) => {
                if self.tasks.begin(Task::Node(node.to_string()), now) {
                    tracing::info!(%node, ?change, "patching node");
                    self.running.spawn(hands.patch_node(node, patch));
                }
            }
            (Action::ConfirmEmpty { node, since }, _) => {
                if self.tasks.begin(Task::List(node.to_string()), now) {
                    self.running.spawn(hands.list_pods(node, since));
                }
            }
            (Action::Evict(eviction), _) => {
                tracing::info!(pod = %eviction.pod.name, namespace = %eviction.pod.namespace,
                    node = %eviction.node, uid = %eviction.uid, "evicting");
                self.cluster.evictions.sent(InFlight {
                    pod: eviction.pod.clone(),
                    uid: eviction.uid.clone(),
                    node: eviction.node.clone(),
                    budgets: eviction.spends.clone(),
                    accepted: None,
                });
                self.running.spawn(hands.evict(eviction));
            }
        }
    }

    /// Takes in what came of an action.
    fn conclude(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Status { uid, counted, notices, result } => {
                self.written.insert(uid.clone(), Instant::now());
                if let Some(plan) = self.settle(Task::Status(uid), "writing the status of the plan", result) {
                    self.count(&plan, &counted);
                    report::publish(&self.parts.publisher, &plan, notices);
                    self.watched.plans.apply(plan);
                }
            }
            Outcome::Finalizer { uid, result } => {
                let written =
                    self.settle(Task::Finalizer(uid), "changing the finalizers of the plan", result);
                if let Some(plan) = written.flatten() {
                    self.watched.plans.apply(plan);
                }
            }
            Outcome::Node { name, result } => {
                if let Some(node) = self.settle(Task::Node(name.to_string()), "patching the node", result) {
                    self.take_in(Observation::node(node));
                }
            }
            Outcome::Scale { owner, scale } => {
                if let Scale::Unreadable(why) = &scale {
                    tracing::warn!(%owner, %why, "cannot read the scale of an owner; the reported allowance decides");
                    self.tasks.failed(Task::Scale(owner.to_string()), Instant::now());
                } else {
                    self.tasks.done(&Task::Scale(owner.to_string()));
                }
                self.cluster.record_scale(owner, scale);
            }
            Outcome::Listed { node, since, pods } => {
                if let Some(pods) =
                    self.settle(Task::List(node.to_string()), "listing the pods of the node", pods)
                {
                    // What the list shows and the watch has not brought yet will come; then the node is not empty.
                    let known: HashSet<&str> = self.cluster.pods_on(&node).map(|pod| &*pod.uid).collect();
                    let all_known = pods.iter().all(|uid| known.contains(uid.as_str()));
                    if all_known {
                        self.cluster.evictions.confirm_empty(node, since);
                    } else {
                        self.tasks.failed(Task::List(node.to_string()), Instant::now());
                    }
                }
            }
            Outcome::Eviction { eviction, answer } => self.answered(&eviction, answer),
        }
        self.decide_soon();
    }

    /// Marks a task as done or failed; logs the failure.
    fn settle<T>(&mut self, task: Task, what: &str, result: Result<T, CallError>) -> Option<T> {
        match result {
            Ok(value) => {
                self.tasks.done(&task);
                Some(value)
            }
            Err(error) => {
                if matches!(error.code(), Some(409 | 422)) {
                    tracing::debug!(?task, %error, "{what}: it has changed meanwhile; deciding again");
                } else {
                    tracing::warn!(?task, %error, "{what} failed; it is tried again");
                }
                self.tasks.failed(task, Instant::now());
                None
            }
        }
    }

    /// The evictions that the written status counts need not be counted again.
    fn count(&mut self, plan: &DrainPlan, counted: &HashSet<(Text, Text)>) {
        let nodes: HashSet<&str> = plan
            .status
            .iter()
            .flat_map(|status| &status.nodes)
            .filter(|node| node.started_at.is_some())
            .map(|node| node.name.as_str())
            .collect();
        self.cluster.evictions.counted(counted, |node| nodes.contains(node));
    }

    fn answered(&mut self, eviction: &Evict, answer: Answer) {
        let now = Timestamp::now();
        match answer {
            Answer::Accepted => self.cluster.evictions.accepted(&eviction.uid, now),
            Answer::Withdrawn => self.cluster.evictions.withdrawn(&eviction.uid),
            Answer::Refused(status) => self.refused(eviction, &status, now),
            Answer::Unanswered(error) => {
                let status = Status { message: error.to_string(), ..Status::default() };
                self.refused(eviction, &status, now);
            }
        }
    }

    /// Keeps a refusal: its cause is explained, and it is tried again when a budget changes or after a while.
    fn refused(&mut self, eviction: &Evict, status: &Status, now: Timestamp) {
        tracing::warn!(pod = %eviction.pod.name, namespace = %eviction.pod.namespace, code = status.code,
            message = status.message, "eviction refused");
        let times = self
            .cluster
            .evictions
            .refusal(&eviction.uid)
            .map_or(1, |refusal| refusal.times.saturating_add(1));
        let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let backoff = jittered(doubled(REFUSED_FIRST, times, REFUSED_LONGEST));
        let wait = backoff.max(Duration::from_secs(u64::from(asked)).min(REFUSED_LONGEST));
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::ZERO);
        let pod = self.cluster.pod(&eviction.pod).cloned();
        let budgets =
            pod.iter().flat_map(|pod| self.cluster.budgets_of(pod)).map(|budget| budget.key()).collect();
        self.cluster.evictions.refused(Refusal {
            uid: eviction.uid.clone(),
            at: now,
            code: status.code,
            reason: Text::from(status.reason.as_str()),
            message: Text::from(status.message.as_str()),
            causes: causes(status).map(Text::from).collect(),
            budgets,
            times,
            retry_at: now.saturating_add(wait).unwrap_or(Timestamp::MAX),
        });
    }
}
