//! The virtual cluster and its clock: events in the order of their time, each handled to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::actor::{ActorSetup, WorkStep};
use super::acts::{Act, CallFault, CallKind, Stream};
use super::calls::{Call, Response};
use super::facts::Fact;
use super::kubelet::{Kubelet, PodState, PodStep};
use super::process::{Lease, Process};
use super::setup::{Span, Timing};
use super::store::{Happened, Store};
use super::workloads::Owner;
use crate::cluster::{BudgetKey, Object, Pdb, Pod, PodKey, Right, Text};
use crate::plan::{Random, Settings};

/// Something that is going to happen.
#[derive(Debug)]
pub(super) enum Event {
    Act(Act),
    /// A watch brings its next event to a process.
    Deliver {
        process: usize,
        life: u32,
        stream: Stream,
    },
    /// A watch begins anew with a list.
    Relist {
        process: usize,
        life: u32,
        stream: Stream,
    },
    /// A process decides.
    Decide {
        process: usize,
        life: u32,
    },
    /// A call arrives at the server.
    Arrive(u64),
    /// The answer of a call arrives.
    Return(u64, Box<Response>),
    /// A caller waits no longer.
    GiveUp(u64, u32),
    /// A caller may not act any more.
    NotSent(u64),
    /// A process is started.
    Start(usize),
    /// A process that ends waits no longer for answers.
    Farewell {
        process: usize,
        life: u32,
    },
    /// A partition is over.
    Heal {
        process: usize,
        life: u32,
    },
    /// A lease that nobody has renewed may be taken.
    LeaseFree(u64),
    /// A process that was started again has seen for long enough that nobody renews the lease of its predecessor.
    LeaseInherited {
        process: usize,
        life: u32,
        epoch: u64,
    },
    /// The disruption controller looks at a budget.
    Budget(BudgetKey),
    /// Its write arrives.
    BudgetWrite(Box<Pdb>),
    /// The controller of a workload looks at it.
    Owner(String),
    Schedule,
    Bind {
        key: PodKey,
        uid: Text,
        node: Text,
    },
    Pod {
        key: PodKey,
        uid: Text,
        step: PodStep,
    },
    /// A kubelet has been silent for long.
    Unreachable {
        node: Text,
        since: Timestamp,
        evict: bool,
    },
    /// Pods of a node that is gone are collected.
    Garbage(Text),
    /// A volume is attached no longer.
    Detach(Text),
    /// Somebody goes on with the work on a node.
    Work {
        node: Text,
        uid: Text,
        step: WorkStep,
    },
}

/// A virtual cluster with the controller in it.
#[derive(Debug)]
pub struct World {
    pub(super) now: Timestamp,
    pub(super) timing: Timing,
    pub(super) settings: Settings,
    pub(super) store: Store,
    queue: BTreeMap<(Timestamp, u64), Event>,
    sequence: u64,
    seed: Random,
    chance: BTreeMap<&'static str, Random>,
    pub(super) owners: BTreeMap<String, Owner>,
    pub(super) kubelets: BTreeMap<Text, Kubelet>,
    pub(super) pods: BTreeMap<Text, PodState>,
    pub(super) capacities: BTreeMap<Text, u32>,
    pub(super) manager_up: bool,
    /// Whether the controller may evict pods.
    pub(super) right: Right,
    pub(super) scheduler_up: bool,
    pub(super) scheduling: bool,
    /// Where the scheduler has put pods that are not bound yet.
    pub(super) assumed: BTreeMap<Text, Text>,
    pub(super) budgets_due: BTreeSet<BudgetKey>,
    /// How often in a row a budget's write was in conflict.
    pub(super) conflicts: BTreeMap<BudgetKey, u32>,
    pub(super) owners_due: BTreeSet<String>,
    pub(super) processes: Vec<Process>,
    /// The workload that they run in.
    pub(super) house: Option<String>,
    pub(super) lease: Lease,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) next_call: u64,
    pub(super) call_faults: Vec<(CallKind, CallFault)>,
    pub(super) crash_after: Option<(u32, Duration)>,
    /// Who works on the nodes that a plan hands off, by the plan's name.
    pub(super) actors: BTreeMap<String, ActorSetup>,
    /// Nodes that somebody has begun to work on, by uid.
    pub(super) worked_on: BTreeSet<Text>,
    /// How often a machine has been started again.
    pub(super) boots: u64,
    pub(super) facts: Vec<Fact>,
    census: BTreeMap<String, u64>,
    steps: u64,
}

impl World {
    /// An empty cluster; the same seed gives the same course of events.
    #[must_use]
    pub fn new(start: Timestamp, timing: Timing, settings: Settings, seed: u64) -> Self {
        Self {
            now: start,
            timing,
            settings,
            store: Store::default(),
            queue: BTreeMap::new(),
            sequence: 0,
            seed: Random::new(seed),
            chance: BTreeMap::new(),
            owners: BTreeMap::new(),
            kubelets: BTreeMap::new(),
            pods: BTreeMap::new(),
            capacities: BTreeMap::new(),
            manager_up: true,
            right: Right::Granted,
            scheduler_up: true,
            scheduling: false,
            assumed: BTreeMap::new(),
            budgets_due: BTreeSet::new(),
            conflicts: BTreeMap::new(),
            owners_due: BTreeSet::new(),
            processes: Vec::new(),
            house: None,
            lease: Lease::default(),
            calls: BTreeMap::new(),
            next_call: 0,
            call_faults: Vec::new(),
            crash_after: None,
            actors: BTreeMap::new(),
            worked_on: BTreeSet::new(),
            boots: 0,
            facts: Vec::new(),
            census: BTreeMap::new(),
            steps: 0,
        }
    }

    /// The time of the virtual clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }
    /// What there is, in truth.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
    /// The processes of the controller.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }
    /// How many events were delivered and actions done.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }
    /// How often each kind of fault has taken effect.
    #[must_use]
    pub fn census(&self) -> &BTreeMap<String, u64> {
        &self.census
    }
    /// What has happened that is worth judging, since this was asked last.
    pub fn take_facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.facts)
    }

    /// Something is to happen at that instant.
    pub fn plan_act(&mut self, at: Timestamp, act: Act) {
        self.at(at, Event::Act(act));
    }

    /// Lets the next event happen; false when there is none before `until`.
    pub fn step(&mut self, until: Timestamp) -> bool {
        let due = self.queue.first_entry().filter(|entry| entry.key().0 <= until);
        let Some(entry) = due else {
            self.now = self.now.max(until);
            return false;
        };
        let ((at, _), event) = entry.remove_entry();
        self.now = self.now.max(at);
        self.handle(event);
        self.react();
        true
    }

    /// Lets everything happen until that instant.
    pub fn run(&mut self, until: Timestamp) {
        while self.step(until) {
            self.facts.clear();
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Act(act) => self.act(act),
            Event::Deliver { process, life, stream } => self.deliver(process, life, stream),
            Event::Relist { process, life, stream } => self.relist(process, life, stream),
            Event::Decide { process, life } => self.decide(process, life),
            Event::Arrive(id) => self.arrive(id),
            Event::Return(id, response) => self.return_to(id, *response),
            Event::GiveUp(id, stage) => self.give_up(id, stage),
            Event::NotSent(id) => self.not_sent(id),
            Event::Start(process) => self.start_process(process),
            Event::Farewell { process, life } => self.leave(process, life),
            Event::Heal { process, life } => self.heal(process, life),
            Event::LeaseFree(epoch) => self.lease_free(epoch),
            Event::LeaseInherited { process, life, epoch } => self.lease_inherited(process, life, epoch),
            Event::Budget(key) => self.sync_budget(&key),
            Event::BudgetWrite(budget) => self.write_budget(*budget),
            Event::Owner(key) => self.sync_owner(&key),
            Event::Schedule => self.schedule(),
            Event::Bind { key, uid, node } => self.bind(&key, &uid, node),
            Event::Pod { key, uid, step } => self.step_pod(&key, &uid, step),
            Event::Unreachable { node, since, evict } => self.unreachable(&node, since, evict),
            Event::Garbage(node) => self.collect_garbage(&node),
            Event::Detach(volume) => {
                self.count_step();
                self.store.detach(&volume);
            }
            Event::Work { node, uid, step } => self.work(&node, &uid, step),
        }
    }

    /// Everybody learns of what the last event has changed.
    pub(super) fn react(&mut self) {
        for happened in self.store.take_happened() {
            self.broadcast(&happened);
            match &happened {
                Happened::Applied(object) => match &**object {
                    Object::Pod(pod) => self.pod_changed(pod, false),
                    Object::Node(node) => {
                        self.actor_sees(node);
                        self.nodes_changed();
                    }
                    Object::Pdb(budget) => self.budget_due(&budget.key()),
                    Object::Workload(workload) => {
                        let key = workload.owner.as_ref().map_or(&workload.name, |owner| &owner.name);
                        self.owner_due(&format!("{}/{key}", workload.namespace));
                    }
                    _ => {}
                },
                Happened::Deleted(object) => match &**object {
                    Object::Pod(pod) => self.pod_changed(pod, true),
                    Object::Node(node) => {
                        self.kubelets.remove(&node.name);
                        self.after(self.timing.garbage, Event::Garbage(node.name.clone()));
                        self.nodes_changed();
                    }
                    _ => {}
                },
                Happened::PlanApplied(_) | Happened::PlanDeleted(_) => {}
            }
        }
    }

    fn pod_changed(&mut self, pod: &Pod, gone: bool) {
        self.budget_of_pod_due(pod);
        if let Some(owner) = self.pods.get(&pod.uid).and_then(|state| state.owner.clone()) {
            self.owner_due(&owner);
        }
        self.home_changed(pod, gone);
        if gone {
            self.pods.remove(&pod.uid);
            self.assumed.remove(&pod.uid);
            self.schedule_soon();
        } else {
            self.kubelet_sees(pod);
            if pod.node.is_none() {
                self.schedule_soon();
            }
        }
    }

    fn nodes_changed(&mut self) {
        self.schedule_soon();
        self.daemon_sets_due();
    }

    // --- time and chance ---

    pub(super) fn at(&mut self, at: Timestamp, event: Event) {
        self.sequence += 1;
        self.queue.insert((at.max(self.now), self.sequence), event);
    }

    pub(super) fn after(&mut self, wait: Duration, event: Event) {
        let at = self.later(wait);
        self.at(at, event);
    }

    /// The instant that is so far away.
    pub(super) fn later(&self, wait: Duration) -> Timestamp {
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
        self.now.saturating_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// A generator of its own for whatever has this name.
    pub(super) fn random(&self, name: &str) -> Random {
        self.seed.split(name)
    }

    /// How long something takes this time.
    pub(super) fn takes(&mut self, what: &'static str, span: Span) -> Duration {
        let seed = &self.seed;
        let random = self.chance.entry(what).or_insert_with(|| seed.split(what));
        within(random, span)
    }

    // --- counting ---

    /// An event was delivered, or an action done.
    pub(super) fn count_step(&mut self) {
        self.steps += 1;
    }

    /// A fault has taken effect.
    pub(super) fn count_fault(&mut self, what: &str) {
        *self.census.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn tell(&mut self, fact: Fact) {
        self.facts.push(fact);
    }

    pub(super) fn pod(&self, key: &PodKey, uid: &str) -> Option<&Arc<Pod>> {
        self.store.pod_of(key, uid)
    }
}

/// Mostly near the least, seldom near the most.
pub(super) fn within(random: &mut Random, span: Span) -> Duration {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let width = micros(span.most.saturating_sub(span.least));
    let part = random.below(1000) * random.below(1000) / 1000;
    span.least + Duration::from_micros(width / 1000 * part + width % 1000 * part / 1000)
}
