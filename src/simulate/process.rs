//! The controller's processes: what each knows, which of them acts, how they die and come back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::acts::Stream;
use super::facts::Fact;
use super::house::Home;
use super::setup::Span;
use super::watches::Watch;
use super::world::{Event, World};
use crate::cluster::{PodKey, Text};
use crate::plan::{Agenda, Decisions, Moment, Settings};

/// How long a process that ends waits for answers.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a process that waits for the lease may take to see that it is free.
const LEASE_LOOK: Duration = Duration::from_secs(2);

/// One process of the controller.
#[derive(Debug)]
pub struct Process {
    pub(super) life: u32,
    pub(super) alive: bool,
    started: Timestamp,
    pub(super) agenda: Agenda,
    pub(super) watches: BTreeMap<Stream, Watch>,
    /// It reaches nobody until then.
    pub(super) cut_off_until: Option<Timestamp>,
    /// It is ending, and will be started again so much after its end.
    back: Option<Duration>,
    /// When it decides next; what was planned for another time is void.
    deciding_at: Option<Timestamp>,
    /// The pod that it runs in, or will be started in again.
    pub(super) pod: Option<(PodKey, Text)>,
    /// It is to be started, and there is no pod for it.
    pub(super) homeless: bool,
}

impl Process {
    fn end(&mut self) {
        self.alive = false;
        self.watches.clear();
        self.cut_off_until = None;
        self.back = None;
    }

    /// What it keeps.
    #[must_use]
    pub fn agenda(&self) -> &Agenda {
        &self.agenda
    }
    /// How often it was started.
    #[must_use]
    pub fn life(&self) -> u32 {
        self.life
    }
    /// The pod that it runs in, if it runs in one.
    #[must_use]
    pub fn pod(&self) -> Option<&PodKey> {
        self.pod.as_ref().map(|(key, _)| key)
    }
    /// It runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.alive
    }
    /// Since when it lacks something that some watch has not brought.
    #[must_use]
    pub fn behind_since(&self, now: Timestamp) -> Timestamp {
        self.watches.values().map(|watch| watch.behind_since(now)).min().unwrap_or(now)
    }
}

/// Who acts.
#[derive(Debug, Default)]
pub struct Lease {
    /// A process, and how often it was started: one that comes back is another.
    holder: Option<(usize, u32)>,
    /// How often it has changed hands.
    epoch: u64,
    /// Since when its holder has been able to act.
    since: Option<Timestamp>,
    /// Until when the holder may act, once it can renew no more.
    act_until: Option<Timestamp>,
    /// Until when the holder leaves it to others.
    left_until: Option<Timestamp>,
}

impl World {
    /// Adds a process of the controller and starts it.
    pub fn add_process(&mut self) {
        let process = self.processes.len();
        self.processes.push(Process {
            life: 0,
            alive: false,
            started: self.now,
            agenda: Agenda::new(self.settings.clone(), 0),
            watches: BTreeMap::new(),
            cut_off_until: None,
            back: None,
            deciding_at: None,
            pod: None,
            homeless: false,
        });
        self.start_process(process);
    }

    pub(super) fn start_process(&mut self, process: usize) {
        let seed = self.random("jitter").split(&process.to_string()).draw();
        if self.processes.get(process).is_none_or(|process| process.alive) {
            return;
        }
        let (own_pod, inherits) = match self.find_home(process) {
            Home::Host => (None, true),
            Home::Pod { pod, same } => (Some(pod), same),
            Home::None => return,
        };
        let (now, settings) = (self.now, Settings { own_pod, ..self.settings.clone() });
        let streams = self.random("watch").split(&process.to_string());
        let Some(started) = self.processes.get_mut(process) else { return };
        started.life += 1;
        started.alive = true;
        started.started = now;
        started.agenda = Agenda::new(settings, seed);
        started.deciding_at = None;
        let life = started.life;
        started.watches = Stream::all()
            .map(|stream| (stream, Watch::new(now, streams.split(&format!("{stream:?} {life}")))))
            .collect();
        for stream in Stream::all() {
            self.after(Duration::ZERO, Event::Relist { process, life, stream });
        }
        let held = self.lease.holder.is_some_and(|(holder, before)| holder == process && before != life);
        if held && inherits {
            let look = self.takes("lease", Span { least: Duration::ZERO, most: LEASE_LOOK });
            let epoch = self.lease.epoch;
            self.after(self.timing.lease_inherited + look, Event::LeaseInherited { process, life, epoch });
        }
        self.attend(process);
        if self.lease.holder.is_none() {
            self.take_lease(process);
        }
    }

    pub(super) fn lives(&self, process: usize, life: u32) -> bool {
        self.processes.get(process).is_some_and(|process| process.alive && process.life == life)
    }

    pub(super) fn cut_off(&self, process: usize) -> bool {
        self.processes.get(process).and_then(|process| process.cut_off_until).is_some()
    }

    /// The instant on the clocks of a process.
    pub(super) fn moment(&self, process: usize) -> Moment {
        let started = self.processes.get(process).map_or(self.now, |process| process.started);
        let steady = Duration::try_from(self.now.duration_since(started)).unwrap_or(Duration::ZERO);
        Moment { wall: self.now, steady }
    }

    /// Begins the errands of a process and sees to it that it decides when it wants to.
    pub(super) fn attend(&mut self, process: usize) {
        let Some(attended) = self.processes.get_mut(process) else { return };
        let life = attended.life;
        let errands = attended.agenda.take_errands();
        let decide_at = attended.agenda.decide_at();
        let started = attended.started;
        for errand in errands {
            self.begin(process, errand);
        }
        let wait = jiff::SignedDuration::try_from(decide_at).unwrap_or(jiff::SignedDuration::MAX);
        let at = started.saturating_add(wait).unwrap_or(Timestamp::MAX).max(self.now);
        let Some(attended) = self.processes.get_mut(process) else { return };
        if attended.deciding_at != Some(at) {
            attended.deciding_at = Some(at);
            self.at(at, Event::Decide { process, life });
        }
    }

    fn holds_lease(&self, process: usize) -> bool {
        self.lease.holder.is_some_and(|(holder, life)| holder == process && self.lives(process, life))
    }

    /// How long a process may still act.
    pub(super) fn may_act(&self, process: usize) -> Option<Duration> {
        if !self.holds_lease(process) {
            return None;
        }
        match self.lease.act_until {
            None => Some(Duration::MAX),
            Some(until) => {
                Duration::try_from(until.duration_since(self.now)).ok().filter(|left| !left.is_zero())
            }
        }
    }

    /// The process that may act now.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        self.lease.holder.map(|(process, _)| process).filter(|process| self.may_act(*process).is_some())
    }

    /// Since when a process has been able to act; the end of time when it is not.
    #[must_use]
    pub fn led_since(&self, process: usize) -> Timestamp {
        let since = self.lease.since.filter(|_| self.leader() == Some(process));
        since.unwrap_or(Timestamp::MAX)
    }

    pub(super) fn decide(&mut self, process: usize, life: u32) {
        if !self.lives(process, life) {
            return;
        }
        let moment = self.moment(process);
        let ending = self.processes.get(process).is_none_or(|process| process.back.is_some());
        let may_act = self.may_act(process).is_some() && !ending;
        let Some(deciding) = self.processes.get_mut(process) else { return };
        if deciding.deciding_at != Some(self.now) {
            return;
        }
        deciding.deciding_at = None;
        if let Some(decisions) = deciding.agenda.decide(may_act, moment) {
            let decisions = Arc::new(decisions);
            deciding.agenda.follow(Decisions::clone(&decisions), Duration::ZERO, moment);
            self.tell(Fact::Decided { process, moment, decisions });
        }
        self.attend(process);
    }

    // --- the lease ---

    fn take_lease(&mut self, process: usize) {
        self.lease.holder = self.processes.get(process).map(|leader| (process, leader.life));
        self.lease.epoch += 1;
        self.lease.act_until = None;
        self.lease.left_until = None;
        self.lease.since = Some(self.now);
        self.tell(Fact::Leads { process });
        let moment = self.moment(process);
        if let Some(leader) = self.processes.get_mut(process) {
            leader.agenda.decide_soon(moment);
        }
        self.attend(process);
    }

    /// The holder renews no more from now on.
    fn lease_unattended(&mut self) {
        self.lease.act_until = Some(self.later(self.timing.lease_act));
        let free = self.takes("lease", Span { least: Duration::ZERO, most: LEASE_LOOK });
        self.after(self.timing.lease + free, Event::LeaseFree(self.lease.epoch));
    }

    /// Nobody has renewed the lease: whoever reaches the server takes it.
    pub(super) fn lease_free(&mut self, epoch: u64) {
        if self.lease.epoch != epoch || self.lease.act_until.is_none() {
            return;
        }
        let able = |process: &usize| {
            self.processes
                .get(*process)
                .is_some_and(|process| process.alive && process.cut_off_until.is_none())
        };
        let left = self.lease.left_until.is_some_and(|until| until > self.now);
        let holder = self.lease.holder.map(|(process, _)| process);
        let others = (0..self.processes.len()).filter(|process| Some(*process) != holder);
        let next = others.chain(holder.filter(|_| !left)).find(able);
        match next {
            Some(process) => {
                self.count_fault("another process leads");
                self.take_lease(process);
            }
            None => self.after(LEASE_LOOK, Event::LeaseFree(epoch)),
        }
    }

    /// A container is started again only after its end, so nobody else can hold its name's lease.
    pub(super) fn lease_inherited(&mut self, process: usize, life: u32, epoch: u64) {
        if self.lease.epoch == epoch && self.lives(process, life) && !self.cut_off(process) {
            self.count_fault("a process takes its predecessor's lease");
            self.take_lease(process);
        }
    }

    /// The leader leaves its lease to the others and lives on.
    pub(super) fn resign(&mut self, process: usize) {
        if !self.holds_lease(process) || self.lease.act_until.is_some() {
            return;
        }
        self.lease.left_until = Some(self.later(self.timing.lease));
        if self.cut_off(process) {
            // It cannot give back what it cannot reach.
            self.lease_unattended();
            self.lease.act_until = Some(self.now);
            return;
        }
        self.lease.act_until = Some(self.now);
        let look = self.takes("lease", Span { least: Duration::ZERO, most: LEASE_LOOK });
        self.after(look, Event::LeaseFree(self.lease.epoch));
    }

    // --- faults ---

    pub(super) fn crash(&mut self, process: usize, back: Duration) {
        let held = self.holds_lease(process);
        let Some(crashed) = self.processes.get_mut(process).filter(|process| process.alive) else { return };
        crashed.end();
        self.count_fault("process killed");
        self.after(back, Event::Start(process));
        if held && self.lease.act_until.is_none() {
            self.lease_unattended();
        }
    }

    /// The leader ends and gives its lease back.
    pub(super) fn hand_over(&mut self, back: Duration) {
        let Some(process) = self.leader() else { return };
        if self.cut_off(process) {
            // It cannot give back what it cannot reach.
            self.crash(process, back);
            return;
        }
        if self.end_process(process, back) {
            self.count_fault("leader ended gracefully");
        }
    }

    /// A process ends gracefully, unless it does so already, and is started again so much later.
    pub(super) fn end_process(&mut self, process: usize, back: Duration) -> bool {
        let ends = |process: &&mut Process| process.alive && process.back.is_none();
        let Some(ending) = self.processes.get_mut(process).filter(ends) else { return false };
        ending.back = Some(back);
        let life = ending.life;
        self.after(FAREWELL, Event::Farewell { process, life });
        self.say_farewell(process);
        true
    }

    /// A process that ends goes when all that it has sent is answered; then it gives its lease back.
    pub(super) fn say_farewell(&mut self, process: usize) {
        let Some(leaving) = self.processes.get(process).filter(|leaving| leaving.back.is_some()) else {
            return;
        };
        let life = leaving.life;
        if self.calls.values().any(|call| call.is_awaited_by(process, life)) {
            return;
        }
        let held = self.holds_lease(process) && !self.cut_off(process);
        self.leave(process, life);
        if held {
            self.lease.act_until = Some(self.now);
            let look = self.takes("lease", Span { least: Duration::ZERO, most: LEASE_LOOK });
            self.after(look, Event::LeaseFree(self.lease.epoch));
        }
    }

    /// It waits no longer. What is unanswered may still be carried out, so its lease is left to expire.
    pub(super) fn leave(&mut self, process: usize, life: u32) {
        if !self.lives(process, life) {
            return;
        }
        let held = self.holds_lease(process) && self.lease.act_until.is_none();
        let Some(leaving) = self.processes.get_mut(process) else { return };
        let Some(back) = leaving.back.take() else { return };
        leaving.end();
        self.after(back, Event::Start(process));
        if held {
            self.lease_unattended();
        }
    }

    pub(super) fn partition(&mut self, process: usize, wait: Duration) {
        let until = self.later(wait);
        let Some(cut) = self.processes.get_mut(process).filter(|process| process.alive) else { return };
        if cut.cut_off_until.is_some() {
            return;
        }
        cut.cut_off_until = Some(until);
        let life = cut.life;
        for stream in Stream::all() {
            if let Some(watch) = self.processes.get_mut(process).and_then(|cut| cut.watches.get_mut(&stream))
            {
                watch.stall(until);
            }
        }
        self.count_fault("process cut off");
        self.at(until, Event::Heal { process, life });
        if self.holds_lease(process) && self.lease.act_until.is_none() {
            self.lease_unattended();
        }
    }

    pub(super) fn heal(&mut self, process: usize, life: u32) {
        if !self.lives(process, life) {
            return;
        }
        if let Some(healed) = self.processes.get_mut(process) {
            healed.cut_off_until = None;
        }
        if self.holds_lease(process) && self.lease.act_until.is_some() {
            // It renews before anybody else has taken it.
            self.lease.act_until = None;
            self.lease.since = Some(self.now);
            self.lease.epoch += 1;
            let moment = self.moment(process);
            if let Some(leader) = self.processes.get_mut(process) {
                leader.agenda.decide_soon(moment);
            }
            self.attend(process);
        }
    }
}
