//! What came of the errands.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::core::Status;

use super::hand_over::HandOver;
use super::pace::{Task, doubled, jittered};
use super::{Agenda, Answer, Failure, Lead, Moment, Outcome, Told, causes};
use super::{DENIED_FIRST, DENIED_LONGEST, REFUSED_FIRST, REFUSED_LONGEST};
use crate::api::{DrainPlan, Reason};
use crate::cluster::{self, Raw, Refusal, Right, Text, Uncounted};
use crate::explain::reason_of_answer;
use crate::plan::transitions::left_cordoned;
use crate::plan::{Evict, NodeChange};

impl Agenda {
    /// Takes in what came of an errand. Returns what is worth publishing of it.
    pub fn conclude(&mut self, outcome: Outcome, now: Moment) -> Option<Told> {
        self.decide_soon(now);
        self.under_way = self.under_way.saturating_sub(1);
        match outcome {
            Outcome::HandedOver => self.hand_over = HandOver::default(),
            Outcome::Status { uid, counted, notices, result } => {
                self.written.insert(uid.clone(), now.steady);
                self.writing.remove(&uid);
                let plan = self.settle(Task::Status(uid), result, now)?;
                self.count(&plan, &counted);
                self.plans.written(plan.clone());
                return Some(Told { plan: Some(Arc::new(plan)), notices });
            }
            Outcome::Finalizer { uid, result } => {
                if let Some(plan) = self.settle(Task::Finalizer(uid), result, now).flatten() {
                    self.plans.written(plan);
                }
            }
            Outcome::Node { name, change, result } => {
                self.claiming.remove(&name);
                let patched = self.settle(Task::Node(name.to_string()), result, now)?;
                return self.patched(&name, change, patched, now);
            }
            Outcome::Plans(result) => {
                let listed = self.settle(Task::Plans, result, now);
                if let (Some(listed), Lead::Reads(known)) = (listed, &self.lead) {
                    self.plans.reread(listed, known);
                    self.lead = Lead::Yes;
                    self.sight.acts_since = now.steady;
                }
            }
            Outcome::Scale { owner, scale } => self.scale_was_read(owner, scale, now),
            Outcome::Right { namespace, answer } => self.authorized(namespace, answer, now),
            Outcome::Listed { node, since, pods } => {
                let task = Task::List(node.to_string());
                if let Some(pods) = self.settle(task.clone(), pods, now) {
                    self.listed(&node, since, &pods, task, now);
                }
            }
            Outcome::Eviction { eviction, answer } => self.answered(&eviction, answer, now.wall),
        }
        None
    }

    /// A node was patched. Of a node that stays cordoned somebody has to know, also when its plan is gone by then.
    fn patched(&mut self, name: &str, change: NodeChange, patched: Raw, now: Moment) -> Option<Told> {
        // The answer may come after the event of the node's end.
        self.cluster.node(name).filter(|known| patched.uid() == &*known.uid)?;
        self.take_in(cluster::Change::Applied(patched), now);
        let NodeChange::LeaveCordoned { plan } = change else { return None };
        let notices = left_cordoned(&plan, self.cluster.node(name)?);
        Some(Told { plan: self.plans.by_name(&plan).cloned(), notices })
    }

    /// Marks a task as done or failed.
    fn settle<T>(&mut self, task: Task, result: Result<T, Failure>, now: Moment) -> Option<T> {
        if result.is_ok() {
            self.tasks.done(&task);
        } else {
            self.tasks.failed(task, now.steady, &mut self.random);
        }
        result.ok()
    }

    /// Keeps an answer about rights. A denied one is asked for again after a while.
    fn authorized(&mut self, namespace: Option<Text>, answer: Result<Right, Failure>, now: Moment) {
        let task = Task::Right(namespace.as_ref().map(ToString::to_string).unwrap_or_default());
        let right = answer.unwrap_or(Right::Unanswered);
        if right == Right::Granted {
            self.tasks.done(&task);
        } else {
            self.tasks.failed(task, now.steady, &mut self.random);
        }
        self.cluster.rights.record(namespace, right, now.wall);
    }

    /// What the list shows and the watch has not brought yet will come; then the node is not empty.
    fn listed(&mut self, node: &str, since: Timestamp, pods: &[String], task: Task, now: Moment) {
        let known: HashSet<&str> = self.cluster.pods_on(node).map(|pod| &*pod.uid).collect();
        let all_known = pods.iter().all(|uid| known.contains(uid.as_str()));
        if all_known {
            self.cluster.evictions.confirm_empty(node, since);
        } else {
            self.tasks.failed(task, now.steady, &mut self.random);
        }
    }

    /// The evictions that the written status counts need not be counted again.
    fn count(&mut self, plan: &DrainPlan, counted: &HashSet<Uncounted>) {
        let nodes: HashSet<&str> = plan
            .status
            .iter()
            .flat_map(|status| &status.nodes)
            .filter(|node| node.started_at.is_some())
            .map(|node| node.name.as_str())
            .chain(plan.status.iter().flat_map(|status| &status.yielded).map(|node| node.name.as_str()))
            .collect();
        self.cluster.evictions.counted(counted, |node| nodes.contains(node));
    }

    fn answered(&mut self, eviction: &Evict, answer: Answer, now: Timestamp) {
        let owner = self.evicting.remove(&eviction.uid);
        match answer {
            Answer::Accepted => {
                self.cluster.evictions.accepted(&eviction.uid, now);
                if let Some(owner) = owner {
                    self.cluster.evictions.moved(owner, now);
                }
            }
            Answer::Withdrawn => self.cluster.evictions.withdrawn(&eviction.uid),
            Answer::Refused(status) => self.refused(eviction, &status, now),
            Answer::Unanswered(failure) => {
                let status = Status { message: failure.message, ..Status::default() };
                self.refused(eviction, &status, now);
            }
        }
    }

    /// Keeps a refusal: its cause is explained, and it is tried again when a budget changes or after a while.
    fn refused(&mut self, eviction: &Evict, status: &Status, now: Timestamp) {
        let times = self
            .cluster
            .evictions
            .refusal(&eviction.uid)
            .map_or(1, |refusal| refusal.times.saturating_add(1));
        if status.code == 403 && !causes(status).any(|cause| !cause.is_empty()) {
            self.cluster.rights.doubt(&eviction.pod.namespace);
        }
        let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let denied = is_denied(status);
        let (first, longest) =
            if denied { (DENIED_FIRST, DENIED_LONGEST) } else { (REFUSED_FIRST, REFUSED_LONGEST) };
        let backoff = jittered(doubled(first, times, longest), &mut self.random);
        let wait = backoff.max(Duration::from_secs(u64::from(asked)).min(longest));
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::ZERO);
        let pod = self.cluster.pod(&eviction.pod).cloned();
        // What admission denies no budget's change will allow.
        let asked_again = pod.iter().filter(|_| !denied).flat_map(|pod| self.cluster.budgets_of(pod));
        let budgets = asked_again.map(|budget| budget.key()).collect();
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

/// A webhook or a policy has denied it, with whatever code.
fn is_denied(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<_> = causes.map(|cause| (cause.reason.as_str(), cause.message.as_str())).collect();
    reason_of_answer(status.code, &status.message, &causes) == Reason::AdmissionDenied
}
