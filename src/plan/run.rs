//! One plan in one decision: its nodes are stepped, the next one is started, or the plan ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::calendar::Calendar;
use super::gates::health::Health;
use super::hours::Hours;
use super::memory::{Memory, Record, Yielded};
use super::ownership::{self, Claim, NodeChange};
use super::selection::{Selection, select};
use super::survey::Survey;
use super::{Action, Decision, Round, counters, report, returns, volumes, words};
use crate::api::{DrainPlan, NodePhase, NodeReason, PodPolicy, names};
use crate::cluster::{Node, Text};

/// More nodes than that do not fit a plan's status.
const MOST_NODES: usize = 5000;

/// One plan in one decision.
pub struct Run<'a> {
    pub plan: &'a DrainPlan,
    pub name: String,
    pub uid: String,
    pub policy: PodPolicy,
    pub memory: Memory,
    /// The owners, by uid, that the status remembers already.
    pub recorded: BTreeSet<Text>,
    /// Pods, by uid, that came back to their node, which the status does not say yet.
    pub unwritten: BTreeSet<Text>,
    pub selection: Selection,
    /// Why nodes that are not started are not.
    pub pending: BTreeMap<Text, (NodeReason, String)>,
    /// The judged pods of the nodes that were looked at.
    pub surveys: BTreeMap<Text, Survey>,
    /// Nodes whose turn comes next, in order, that nothing keeps from being started.
    pub upcoming: Vec<Text>,
    /// Nodes that are to be emptied now, in the plan's order.
    pub evicting: Vec<Emptied>,
    pub actions: Vec<Action>,
    /// It is over and no node is claimed for it.
    holds_nothing: bool,
    /// What only a person can change.
    pub stalled: Option<Stall>,
    /// It ends before its time, and waits for nodes that are handed off.
    pub ending: Option<String>,
    /// Whether time allows it to work.
    pub hours: Hours,
    /// How many nodes are unhealthy.
    pub health: Health,
    /// Whether the server has answered what it is asked about all pods that were looked at.
    pub is_answered: bool,
    /// It only looks, and has done so not long ago: what it said stands.
    pub rests: bool,
}

/// A node that is to be emptied.
pub struct Emptied {
    pub node: Text,
    /// When it was started.
    pub since: Timestamp,
    /// It is claimed, and so are the marks there that come before. Until then it only keeps its place before younger
    /// nodes.
    pub ready: bool,
}

/// Why a plan can do nothing at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stall {
    /// The spec cannot be followed.
    InvalidSpec(String),
    /// It selects no node.
    NoNodes(String),
    /// It selects more nodes than a status can remember.
    TooManyNodes(String),
    /// Nothing is in progress and pods that never clear are on every node that is left.
    AllBlocked(String),
}

impl<'a> Run<'a> {
    /// Steps the plan: everything but the choice of evictions.
    pub fn advance(round: &mut Round<'_>, plan: &'a DrainPlan) -> Self {
        let memory = Memory::of(plan);
        let mut run = Self {
            plan,
            name: plan.name_any(),
            uid: plan.uid().unwrap_or_default(),
            policy: plan.spec.pod_policy(),
            recorded: memory.moved.keys().cloned().collect(),
            unwritten: BTreeSet::new(),
            memory,
            selection: Selection::default(),
            pending: BTreeMap::new(),
            surveys: BTreeMap::new(),
            upcoming: Vec::new(),
            evicting: Vec::new(),
            actions: Vec::new(),
            holds_nothing: false,
            stalled: None,
            ending: None,
            hours: Hours::default(),
            health: Health::default(),
            is_answered: false,
            rests: false,
        };
        if !run.deleting() && !run.is_over() {
            run.read_hours(round);
            run.begin_anew(round);
            if run.memory.finished.is_none() {
                run.work(round);
            }
        }
        run.settle(round);
        run
    }

    /// When the plan was created.
    pub fn created(&self) -> Option<Timestamp> {
        self.plan.creation_timestamp().map(|time| time.0)
    }

    pub fn deleting(&self) -> bool {
        self.plan.metadata.deletion_timestamp.is_some()
    }

    /// Whether the spec can be followed, and whether time allows it now.
    fn read_hours(&mut self, round: &mut Round<'_>) {
        if self.plan.spec.then().is_none() {
            // The schema asks for it; a plan written past the schema must still not be guessed at.
            let message = "handOff.then is missing: write KeepCordoned or Uncordon".to_owned();
            self.stalled = Some(Stall::InvalidSpec(message));
        }
        match Calendar::of(&self.plan.spec) {
            Ok(calendar) => {
                self.hours = Hours::of(&calendar, round);
                if self.hours.never_open() {
                    self.stalled.get_or_insert(Stall::InvalidSpec(words::awaiting_window(false, None)));
                }
                if self.repeats() && self.hours.never_opens_again() {
                    self.stalled.get_or_insert(Stall::InvalidSpec(words::never_opens_again()));
                }
            }
            Err(problem) => {
                self.stalled.get_or_insert(Stall::InvalidSpec(problem));
            }
        }
    }

    fn work(&mut self, round: &mut Round<'_>) {
        let started_at = self.memory.started_at.unwrap_or(round.now);
        self.selection = select(&self.plan.spec.nodes, round.cluster, started_at);
        let selected = self.memory.nodes.len() + self.not_taken().len();
        if selected > MOST_NODES {
            self.stalled.get_or_insert(Stall::TooManyNodes(words::too_many_nodes(selected, MOST_NODES)));
        }
        if self.selection.nodes.is_empty() && self.memory.nodes.is_empty() {
            self.stalled.get_or_insert(Stall::NoNodes(words::no_nodes(&self.plan.spec.nodes)));
        }
        if self.only_looks() {
            self.look(round);
            return;
        }
        if self.stalled.is_none() && !self.plan.spec.suspend && self.hours.are_open() {
            self.memory.started_at.get_or_insert(round.now);
        }
        if self.memory.started_at.is_none() {
            if let Some(why) = self.hours.obstacle(self, round.now) {
                self.start_none(&why);
            }
            return;
        }

        self.miss(round);
        self.count_moved(round);
        self.step_in_progress(round);
        self.follow_owners(round);
        self.health = Health::of(self, round);
        if !self.wind_up(round) && self.stalled.is_none() {
            self.start(round);
        }
        self.end(round);
    }

    /// Names without a node are skipped.
    fn miss(&mut self, round: &Round<'_>) {
        for name in &self.selection.missing {
            let message = format!("there is no node {name} that existed when the plan started");
            let gone =
                || Record::never_started("", NodePhase::Skipped, NodeReason::NodeGone, message, round.now);
            self.memory.nodes.entry(name.clone()).or_insert_with(gone);
        }
    }

    /// Steps the nodes in progress.
    fn step_in_progress(&mut self, round: &mut Round<'_>) {
        for name in self.in_progress() {
            let Some(mut record) = self.memory.nodes.remove(&name) else { continue };
            let goes_on = match record.phase {
                NodePhase::HandedOff => self.step_handed_off(round, &name, &mut record),
                _ => self.step(round, &name, &mut record),
            };
            if goes_on {
                self.memory.nodes.insert(name, record);
            }
        }
    }

    /// The nodes in progress, in the plan's order; those that left the selection last.
    fn in_progress(&self) -> Vec<Text> {
        let progresses = |name: &Text| self.memory.nodes.get(name).is_some_and(Record::in_progress);
        let selected = self.selection.nodes.iter().map(|node| &node.name).filter(|name| progresses(name));
        let mut ordered: Vec<Text> = selected.cloned().collect();
        let all = self.memory.nodes.iter().filter(|(_, record)| record.in_progress());
        let left: Vec<Text> =
            all.map(|(name, _)| name).filter(|name| !ordered.contains(name)).cloned().collect();
        ordered.extend(left);
        ordered
    }

    /// Steps one draining node; false when the plan has no more to do with it.
    fn step(&mut self, round: &mut Round<'_>, name: &Text, record: &mut Record) -> bool {
        let now = round.now;
        let Some(node) = round.cluster.node(name).filter(|node| *node.uid == *record.uid).cloned() else {
            let message = words::node_gone(name, round.cluster.pods_on(name).count());
            record.end(NodePhase::Skipped, Some((NodeReason::NodeGone, message)), now);
            return true;
        };
        if !self.selection.nodes.iter().any(|selected| selected.uid == node.uid) {
            return false;
        }
        // Absent only when it could not be read: then its clock begins here, and is written down.
        let since = *record.started_at.get_or_insert(now);
        let deadline = since.saturating_add(self.plan.spec.node_timeout().value()).unwrap_or(Timestamp::MAX);
        round.wake(deadline);
        let mut survey = Survey::of(&node, round, &self.policy);
        self.unwritten.append(&mut returns::follow(round, since, record, &mut survey));
        for changes_at in survey.pods.iter().filter_map(|surveyed| surveyed.judgement.changes_at) {
            round.wake(changes_at);
        }
        record.evicted = record.evicted.saturating_add(round.cluster.evictions.uncounted_on(name));

        match Claim::on(&node) {
            Some(claim) if claim.uid == self.uid && !node.unschedulable => {
                let message = format!(
                    "somebody uncordoned node {name} while it was being drained, so it is left alone"
                );
                record.end(NodePhase::Skipped, Some((NodeReason::UncordonedByHand, message)), now);
            }
            Some(claim) if claim.uid == self.uid => {
                let confirmed = survey.pods.is_empty() && round.cluster.evictions.is_confirmed(name, since);
                let attached = volumes::attached(&self.plan.spec, round.cluster, name).filter(|_| confirmed);
                if confirmed && attached.is_none() {
                    self.hand_over(&node, record, now);
                } else if now >= deadline {
                    let message = attached.unwrap_or_else(|| words::timed_out(&survey));
                    record.end(NodePhase::Failed, Some((NodeReason::TimedOut, message)), now);
                } else if self.is_cut_off() {
                    return false;
                } else if attached.is_some() {
                    record.reason = Some(NodeReason::VolumesAttached.to_string());
                    record.message = attached;
                } else if survey.pods.is_empty() {
                    self.actions.push(Action::ConfirmEmpty { node: name.clone(), since });
                } else if self.may_evict() {
                    self.evicting.push(Emptied { node: name.clone(), since, ready: true });
                }
            }
            // Another plan was faster: this one has not touched the node.
            Some(_) => return false,
            None if now >= deadline => {
                record.end(NodePhase::Failed, Some((NodeReason::TimedOut, words::timed_out(&survey))), now);
            }
            None if self.is_cut_off() => return false,
            None => {
                self.evicting.push(Emptied { node: name.clone(), since, ready: false });
                self.claim(&node, since);
            }
        }
        self.surveys.insert(name.clone(), survey);
        true
    }

    /// Claims a node that the status already says is Draining.
    fn claim(&mut self, node: &Node, since: Timestamp) {
        let claim = ownership::claim(&self.name, &self.uid, self.memory.run, since);
        self.hold(node, claim);
    }

    /// Puts a mark of ours on a node; the finalizer comes first.
    pub fn hold(&mut self, node: &Node, change: NodeChange) {
        if self.has_finalizer() {
            self.actions.push(ownership::patch(node, change));
        } else if !self.actions.contains(&Action::AddFinalizer) {
            self.actions.push(Action::AddFinalizer);
        }
    }

    /// Whether the nodes to come may be marked: the finalizer sees to it that the marks are taken back.
    pub fn may_mark(&self) -> bool {
        let persisted = self.plan.status.as_ref().is_some_and(|status| status.started_at.is_some());
        persisted && self.has_finalizer() && self.memory.finished.is_none() && !self.deleting()
    }

    pub fn has_finalizer(&self) -> bool {
        self.plan.finalizers().iter().any(|finalizer| finalizer == names::FINALIZER)
    }

    /// A node gives way: it is given back, and pending again.
    pub fn give_way(&mut self, name: &Text, to: &Text, lacking: &str, now: Timestamp) {
        let Some(record) = self.memory.nodes.remove(name) else { return };
        let message = words::gives_way(name, to, lacking);
        let (name, to, evicted) = (name.clone(), to.clone(), record.evicted);
        self.evicting.retain(|emptied| emptied.node != name);
        self.surveys.remove(&name);
        self.pending.insert(name.clone(), (NodeReason::AwaitingSlot, words::gave_way(&to)));
        self.memory.yielded.retain(|yielded| yielded.name != name);
        self.memory.yielded.push(Yielded { name, uid: record.uid, to, at: now, evicted, message });
    }

    /// Selected nodes of which the plan remembers nothing.
    pub fn not_taken(&self) -> Vec<Arc<Node>> {
        let new = |node: &&Arc<Node>| !self.memory.nodes.contains_key(&node.name);
        self.selection.nodes.iter().filter(new).cloned().collect()
    }

    /// Gives back what the plan holds and no longer works on.
    ///
    /// Only what the persisted status already says is acted on: a node whose end is decided now is settled in the
    /// next decision, after that status is written.
    fn settle(&mut self, round: &mut Round<'_>) {
        let persisted = Memory::of(self.plan);
        let over = self.deleting() || persisted.finished.is_some();
        let claimed = round.claimed.get(&self.uid).cloned().unwrap_or_default();
        for name in &claimed {
            let record = persisted.nodes.get(name);
            if !over && record.is_some_and(Record::in_progress) {
                continue;
            }
            let Some(node) = round.cluster.node(name) else { continue };
            let change = ownership::ending(&self.name, &self.plan.spec, node, record);
            self.actions.push(ownership::patch(node, change));
        }
        self.holds_nothing = over && claimed.is_empty();
    }

    /// Takes the finalizer off when the plan is over and nothing of it is left on any node.
    pub fn release(&mut self) {
        if self.holds_nothing && self.has_finalizer() {
            self.actions.push(Action::RemoveFinalizer);
        }
    }

    /// The decision, with the status that reports it.
    pub fn conclude(self, round: &mut Round<'_>) -> Decision {
        let status = if self.deleting() {
            None
        } else if self.is_over() || self.rests {
            self.plan.status.clone()
        } else if self.is_between_runs() {
            Some(report::between_runs(&self, round.now))
        } else {
            Some(report::status(&self, round))
        };
        let waits = (!self.rests).then(|| counters::waits(&self));
        Decision { plan: self.name, uid: self.uid, status, actions: self.actions, waits }
    }

    /// How long a node may take.
    pub fn node_timeout(&self) -> SignedDuration {
        self.plan.spec.node_timeout().value()
    }
}
