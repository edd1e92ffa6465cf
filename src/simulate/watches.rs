//! What a process observes, and when: one stream of events a kind, in order, with delays, gaps and repetitions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::acts::Stream;
use super::store::Happened;
use super::world::{Event, World, within};
use crate::cluster::{Change, Object, ObjectKind, Raw, Text};
use crate::plan::{PlanChange, Random, Seen};

/// How many delivered events can come once more.
const REPEATABLE: usize = 8;

/// One watch of one process.
#[derive(Debug)]
pub struct Watch {
    /// On their way, with the time when they happened.
    pending: VecDeque<(Timestamp, Message)>,
    /// When the last of them arrives.
    last: Timestamp,
    /// What happens is lost until the next list.
    broken_since: Option<Timestamp>,
    /// Nothing arrives before.
    stalled_until: Timestamp,
    delivered: VecDeque<(Timestamp, Message)>,
    random: Random,
}

#[derive(Debug, Clone)]
enum Message {
    Listing,
    Listed(Happened),
    Complete,
    Changed(Happened),
}

impl Message {
    /// The uid of the object that it is about.
    fn uid(&self) -> Option<Text> {
        let (Self::Listed(happened) | Self::Changed(happened)) = self else { return None };
        match happened {
            Happened::Applied(object) | Happened::Deleted(object) => Some(object.uid()),
            Happened::PlanApplied(plan) | Happened::PlanDeleted(plan) => {
                plan.metadata.uid.as_deref().map(Text::from)
            }
        }
    }

    /// The uid of the object whose end it is.
    fn ended(&self) -> Option<Text> {
        let ends = matches!(self, Self::Changed(Happened::Deleted(_) | Happened::PlanDeleted(_)));
        self.uid().filter(|_| ends)
    }
}

impl Watch {
    pub(super) fn new(now: Timestamp, random: Random) -> Self {
        Self {
            pending: VecDeque::new(),
            last: now,
            broken_since: Some(now),
            stalled_until: now,
            delivered: VecDeque::new(),
            random,
        }
    }

    /// Nothing arrives before that instant.
    pub(super) fn stall(&mut self, until: Timestamp) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Since when there is something that this watch has not brought; `now` when there is nothing.
    #[must_use]
    pub fn behind_since(&self, now: Timestamp) -> Timestamp {
        let pending = self.pending.front().map(|(at, _)| *at);
        self.broken_since.into_iter().chain(pending).min().unwrap_or(now)
    }
}

/// Which watch brings it.
fn stream_of(happened: &Happened) -> Option<Stream> {
    match happened {
        Happened::Applied(object) | Happened::Deleted(object) => Some(Stream::Objects(object.kind()?)),
        Happened::PlanApplied(_) | Happened::PlanDeleted(_) => Some(Stream::Plans),
    }
}

impl World {
    /// Sends a change on its way to all processes.
    pub(super) fn broadcast(&mut self, happened: &Happened) {
        let Some(stream) = stream_of(happened) else { return };
        for process in 0..self.processes.len() {
            let broken = self.watch(process, stream).is_none_or(|watch| watch.broken_since.is_some());
            if !broken {
                self.send(process, stream, Message::Changed(happened.clone()));
            }
        }
    }

    fn watch(&mut self, process: usize, stream: Stream) -> Option<&mut Watch> {
        self.processes.get_mut(process)?.watches.get_mut(&stream)
    }

    fn send(&mut self, process: usize, stream: Stream, message: Message) {
        let (now, span) = (self.now, self.timing.watch);
        let Some(life) = self.processes.get(process).map(|process| process.life) else { return };
        let Some(watch) = self.watch(process, stream) else { return };
        let delay = within(&mut watch.random, span);
        let at = later(now, delay).max(watch.last).max(watch.stalled_until);
        watch.last = at;
        watch.pending.push_back((now, message));
        self.at(at, Event::Deliver { process, life, stream });
    }

    /// A watch brings its next event.
    pub(super) fn deliver(&mut self, process: usize, life: u32, stream: Stream) {
        let now = self.now;
        if !self.lives(process, life) {
            return;
        }
        let Some(watch) = self.watch(process, stream) else { return };
        if watch.stalled_until > now {
            let at = watch.stalled_until;
            self.at(at, Event::Deliver { process, life, stream });
            return;
        }
        let Some((at, message)) = watch.pending.pop_front() else { return };
        if matches!(message, Message::Changed(_)) {
            watch.delivered.push_back((at, message.clone()));
            if watch.delivered.len() > REPEATABLE {
                watch.delivered.pop_front();
            }
        }
        self.count_step();
        self.take_in(process, stream, message);
    }

    fn take_in(&mut self, process: usize, stream: Stream, message: Message) {
        let moment = self.moment(process);
        let Some(process_) = self.processes.get_mut(process) else { return };
        match stream {
            Stream::Plans => {
                let Some(change) = plan_change(message) else { return };
                process_.agenda.observe_plan(change, moment);
            }
            Stream::Objects(kind) => {
                let Some(change) = object_change(kind, message) else { return };
                process_.agenda.observe(change, moment);
            }
        }
        self.attend(process);
    }

    /// A watch begins anew: what there is now is listed, and what comes after is not lost.
    pub(super) fn relist(&mut self, process: usize, life: u32, stream: Stream) {
        if !self.lives(process, life) {
            return;
        }
        if self.cut_off(process) {
            self.after(Duration::from_secs(1), Event::Relist { process, life, stream });
            return;
        }
        let mut list = vec![Message::Listing];
        list.extend(self.listed(stream).into_iter().map(Message::Listed));
        list.push(Message::Complete);
        let Some(watch) = self.watch(process, stream) else { return };
        watch.broken_since = None;
        watch.pending.clear();
        watch.delivered.clear();
        for message in list {
            self.send(process, stream, message);
        }
    }

    fn listed(&self, stream: Stream) -> Vec<Happened> {
        let cluster = self.store.cluster();
        let object = |object: Object| Happened::Applied(Arc::new(object));
        let kind = match stream {
            Stream::Plans => return self.store.plans().cloned().map(Happened::PlanApplied).collect(),
            Stream::Objects(kind) => kind,
        };
        match kind {
            ObjectKind::Node => cluster.nodes().map(|node| object(Object::Node((**node).clone()))).collect(),
            ObjectKind::Namespace => self
                .store
                .namespaces()
                .map(|namespace| object(Object::Namespace(namespace.clone())))
                .collect(),
            ObjectKind::Pod => self.store.pods().map(|pod| object(Object::Pod((**pod).clone()))).collect(),
            ObjectKind::PodDisruptionBudget => {
                self.store.budgets().map(|budget| object(Object::Pdb((**budget).clone()))).collect()
            }
            ObjectKind::VolumeAttachment => {
                self.store.attachments().into_iter().map(|of| object(Object::VolumeAttachment(of))).collect()
            }
            _ => self
                .owner_objects()
                .into_iter()
                .filter(|owner| owner.kind() == Some(kind))
                .map(object)
                .collect(),
        }
    }

    // --- faults ---

    pub(super) fn stall_watch(&mut self, process: usize, stream: Stream, wait: Duration) {
        let until = self.later(wait);
        if let Some(watch) = self.watch(process, stream) {
            watch.stall(until);
            self.count_fault("watch events late");
        }
    }

    pub(super) fn break_watch(&mut self, process: usize, stream: Stream, wait: Duration) {
        let now = self.now;
        let Some(life) = self.processes.get(process).map(|process| process.life) else { return };
        let Some(watch) = self.watch(process, stream) else { return };
        if watch.broken_since.is_some() {
            return;
        }
        watch.broken_since = Some(watch.behind_since(now));
        watch.pending.clear();
        self.count_fault("watch broken, events missed");
        self.after(wait, Event::Relist { process, life, stream });
    }

    pub(super) fn repeat_watch(&mut self, process: usize, stream: Stream, events: usize) {
        let now = self.now;
        let Some(life) = self.processes.get(process).map(|process| process.life) else { return };
        let Some(watch) = self.watch(process, stream) else { return };
        if watch.broken_since.is_some() {
            return;
        }
        let skip = watch.delivered.len().saturating_sub(events);
        // A watch goes on from what it has seen last: what is gone does not come back.
        let gone: Vec<Text> = watch.delivered.iter().filter_map(|(_, message)| message.ended()).collect();
        let lasts =
            |(_, message): &&(Timestamp, Message)| message.uid().is_some_and(|uid| !gone.contains(&uid));
        let again: Vec<(Timestamp, Message)> =
            watch.delivered.iter().skip(skip).filter(lasts).cloned().collect();
        // They come before what is still on its way.
        for message in again.iter().rev() {
            watch.pending.push_front(message.clone());
        }
        for _ in &again {
            self.at(now, Event::Deliver { process, life, stream });
            self.count_fault("watch events repeated");
        }
    }
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(wait)
        .ok()
        .and_then(|wait| now.checked_add(wait).ok())
        .unwrap_or(Timestamp::MAX)
}

fn plan_change(message: Message) -> Option<PlanChange> {
    let seen = |happened: Happened| match happened {
        Happened::PlanApplied(plan) | Happened::PlanDeleted(plan) => {
            Some(Seen::Readable(Box::new((*plan).clone())))
        }
        Happened::Applied(_) | Happened::Deleted(_) => None,
    };
    Some(match message {
        Message::Listing => PlanChange::Listing,
        Message::Listed(happened) => PlanChange::Listed(seen(happened)?),
        Message::Complete => PlanChange::Complete,
        Message::Changed(Happened::PlanDeleted(plan)) => PlanChange::Deleted {
            name: plan.metadata.name.clone().unwrap_or_default(),
            uid: plan.metadata.uid.clone(),
        },
        Message::Changed(happened) => PlanChange::Applied(seen(happened)?),
    })
}

fn object_change(kind: ObjectKind, message: Message) -> Option<Change> {
    let raw = |happened: Happened| match happened {
        Happened::Applied(object) | Happened::Deleted(object) => Raw::kept(Object::clone(&object)),
        Happened::PlanApplied(_) | Happened::PlanDeleted(_) => None,
    };
    Some(match message {
        Message::Listing => Change::Listing(kind),
        Message::Listed(happened) => Change::Listed(raw(happened)?),
        Message::Complete => Change::Complete(kind),
        Message::Changed(Happened::Deleted(object)) => Change::Deleted(raw(Happened::Deleted(object))?),
        Message::Changed(happened) => Change::Applied(raw(happened)?),
    })
}
