//! Which nodes are started now, and what keeps the others from it.

use std::sync::Arc;

use super::memory::Record;
use super::run::{Run, Stall};
use super::survey::Survey;
use super::{Holder, Round, brief, gates, words};
use crate::api::{NodePhase, NodeReason};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Node, Text};

/// Other tools' taints on nodes that they are about to take away.
const FOREIGN_TAINTS: [&str; 3] =
    ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "medik8s.io/drain"];

/// At least so many of the nodes whose turn comes next are kept in view.
const FEWEST_UPCOMING: usize = 10;

/// How many nodes may be in progress, and are.
struct Slots {
    limit: usize,
    taken: usize,
}

impl Slots {
    fn of(run: &Run<'_>) -> Self {
        let selected = run.memory.nodes.len() + run.not_taken().len();
        Self { limit: run.plan.spec.concurrent_nodes(selected), taken: run.busy().count() }
    }

    fn free(&self) -> usize {
        self.limit.saturating_sub(self.taken)
    }

    /// How many nodes are looked ahead to.
    fn upcoming(&self) -> usize {
        FEWEST_UPCOMING.max(2 * self.limit)
    }
}

impl Run<'_> {
    /// Starts as many nodes as may be, or lets the idle clock run.
    pub fn start(&mut self, round: &mut Round<'_>) {
        let shut = self.hours.obstacle(self, round.now).filter(|_| !self.hours.are_open());
        if let Some(why) = shut {
            self.await_window(&why);
            return;
        }
        let slots = Slots::of(self);
        let startable = self.look_at_pending(round, &slots);
        if self.plan.spec.suspend {
            self.memory.idle_since = None;
            return;
        }
        let mut free = slots.free();
        let mut asks = false;
        // With no slot free nothing is started anyway.
        let may = free > 0 && !startable.is_empty();
        let shut = if may { gates::Shut::of(self, round) } else { gates::Shut::default() };
        let (mut common, mut soaks) = (None, false);
        let mut busy: Vec<Text> = self.busy().cloned().collect();
        for node in startable {
            match gates::closed(self, round, &shut, &node, &busy) {
                None if free > 0 => {
                    let survey = self.surveys.get(&node.name);
                    if survey.is_some_and(|survey| !survey.is_answered(round)) {
                        // A node is not cordoned for nothing: whether its pods can ever be evicted is being asked.
                        asks = true;
                        break;
                    }
                    free -= 1;
                    busy.push(node.name.clone());
                    self.pending.remove(&node.name);
                    let evicted = self.memory.take_up(&node.name);
                    let record = Record { evicted, ..Record::started(&node.uid, round.now) };
                    self.memory.nodes.insert(node.name.clone(), record);
                    self.remember_owners(round, &node.name);
                    round.starts(&node.name, Holder { uid: self.uid.clone(), name: self.name.clone() });
                    continue;
                }
                Some((reason, message)) => {
                    soaks |= reason == NodeReason::AwaitingSoak;
                    if gates::is_common(reason) && free > 0 {
                        common = Some((reason, message.clone()));
                    }
                    self.pending.insert(node.name.clone(), (reason, message));
                    if reason == NodeReason::ControlPlaneAtRisk {
                        continue;
                    }
                }
                None => {}
            }
            if self.upcoming.len() < slots.upcoming() {
                self.upcoming.push(node.name.clone());
            }
        }
        self.wait_together(common);
        if busy.is_empty() && !asks && !soaks {
            self.idle(round);
        } else {
            self.memory.idle_since = None;
        }
    }

    /// What keeps every node from being started is said of those too that have not had their turn.
    fn wait_together(&mut self, common: Option<(NodeReason, String)>) {
        let Some(common) = common else { return };
        for why in self.pending.values_mut().filter(|(reason, _)| *reason == NodeReason::AwaitingSlot) {
            why.clone_from(&common);
        }
    }

    /// The nodes in progress.
    fn busy(&self) -> impl Iterator<Item = &Text> {
        let free =
            |record: &Record| record.phase == NodePhase::HandedOff && planted(Planted::HandedOffIsFree);
        let busy = move |record: &Record| record.in_progress() && !free(record);
        self.memory.nodes.iter().filter(move |(_, record)| busy(record)).map(|(name, _)| name)
    }

    /// Says why pending nodes are not started; returns those that could be, in order.
    fn look_at_pending(&mut self, round: &mut Round<'_>, slots: &Slots) -> Vec<Arc<Node>> {
        let wanted = slots.free() + slots.upcoming();
        let mut startable = Vec::new();
        let mut looked_at = 0;
        for node in self.in_turn(round) {
            if startable.len() < wanted || looked_at < round.settings.lookahead {
                looked_at += 1;
                if let Some(obstacle) = self.obstacle(round, &node) {
                    self.pending.insert(node.name.clone(), obstacle);
                    continue;
                }
                startable.push(Arc::clone(&node));
            }
            let waits = (NodeReason::AwaitingSlot, words::awaiting_slot(slots.limit));
            self.pending.insert(node.name.clone(), waits);
        }
        startable
    }

    /// The pending nodes, in the order in which they are taken.
    fn in_turn(&self, round: &Round<'_>) -> Vec<Arc<Node>> {
        let mut nodes = self.not_taken();
        let present = self.present_domain(round);
        let yielded = |node: &Node| self.memory.yielded.iter().position(|yielded| yielded.name == node.name);
        if present.is_some() || !self.memory.yielded.is_empty() {
            nodes.sort_by_key(|node| (yielded(node), Self::is_elsewhere(present.as_ref(), node)));
        }
        nodes
    }

    /// What keeps a pending node from being started.
    fn obstacle(&mut self, round: &mut Round<'_>, node: &Node) -> Option<(NodeReason, String)> {
        self.in_the_way(round, node).or_else(|| self.hours.obstacle(self, round.now))
    }

    /// What would keep a node from being drained at any time; judges its pods, unless it is held by others.
    pub fn in_the_way(&mut self, round: &mut Round<'_>, node: &Node) -> Option<(NodeReason, String)> {
        if let Some(Holder { name: other, .. }) =
            round.holders.get(&node.name).filter(|holder| holder.uid != self.uid)
        {
            return Some((NodeReason::ClaimedByOther, words::held_by(other)));
        }
        let foreign = |key: &str| FOREIGN_TAINTS.iter().find(|foreign| **foreign == key);
        if let Some(taint) = node.taints.iter().find_map(|taint| foreign(&taint.key)) {
            return Some((NodeReason::ClaimedByOther, words::taken_away(taint)));
        }
        let survey = Survey::of(node, round, &self.policy);
        let blocked = words::blocked(&survey);
        self.surveys.insert(node.name.clone(), survey);
        blocked.map(|message| (NodeReason::Blocked, message))
    }

    /// Nothing is in progress and nothing can be started.
    fn idle(&mut self, round: &mut Round<'_>) {
        if self.pending.is_empty() {
            return;
        }
        let idle_since = *self.memory.idle_since.get_or_insert(round.now);
        let until = self.hours.idle_until(idle_since, self.node_timeout());
        round.wake(until);
        if round.now >= until {
            self.give_up_pending(round);
        } else if self.pending.values().all(|(reason, _)| *reason == NodeReason::Blocked) {
            self.stalled =
                Some(Stall::AllBlocked(words::all_blocked(self.pending.len(), until, &brief::pending(self))));
        }
    }

    /// The idle clock has run out: what could not be started has failed, for the reason it then has.
    fn give_up_pending(&mut self, round: &Round<'_>) {
        for node in self.not_taken() {
            let Some((reason, message)) = self.pending.remove(&node.name) else { continue };
            let evicted = self.memory.take_up(&node.name);
            let failed = Record::never_started(&node.uid, NodePhase::Failed, reason, message, round.now);
            let failed = Record { evicted, ..failed };
            self.memory.nodes.insert(node.name.clone(), failed);
        }
    }
}
