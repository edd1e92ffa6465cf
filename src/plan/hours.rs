//! Whether a plan may work now, and what it does when it may not.

use jiff::{SignedDuration, Timestamp};

use super::calendar::{Calendar, Open};
use super::memory::Record;
use super::run::Run;
use super::{Round, words};
use crate::api::NodeReason;
use crate::cluster::planted::{Planted, planted};

/// So much of a node's timeout may be missing from what is left of a window, and never more than a twentieth of it.
const MOST_GRACE: SignedDuration = SignedDuration::from_secs(30);

/// What a plan's windows say of the present.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hours {
    /// The plan has windows or exclusions.
    pub limited: bool,
    /// It has exclusions only.
    pub excluded: bool,
    /// The time that is open now.
    pub open: Option<Open>,
    /// The next one to come.
    pub next: Option<Open>,
}

impl Hours {
    /// Asks the calendar, and to be woken when its answer changes.
    pub fn of(calendar: &Calendar, round: &mut Round<'_>) -> Self {
        if planted(Planted::WindowIgnored) {
            return Self { open: Some(Open { opens: None, closes: None }), ..Self::default() };
        }
        let (open, next) = calendar.around(round.now);
        let closes = open.and_then(|open| open.closes);
        let opens = next.and_then(|next| next.opens);
        closes.into_iter().chain(opens).for_each(|change| round.wake(change));
        Self { limited: !calendar.is_always_open(), excluded: !calendar.has_windows(), open, next }
    }

    /// Whether there is no window to wait for, ever.
    pub fn never_open(&self) -> bool {
        self.open.is_none() && self.next.is_none()
    }

    /// Whether it is open, and so for ever: nothing opens any more.
    pub fn never_opens_again(&self) -> bool {
        self.open.is_some_and(|open| open.closes.is_none()) && self.next.is_none() && self.limited
    }

    /// Whether nodes may be started.
    pub fn are_open(&self) -> bool {
        self.open.is_some()
    }

    /// When the next time opens.
    pub fn next_opens(&self) -> Option<Timestamp> {
        self.next.and_then(|next| next.opens)
    }

    /// When a plan that idles has done so for long enough. The end of a window would stop that clock: if so little is
    /// missing then, it is let go.
    pub fn idle_until(&self, since: Timestamp, timeout: SignedDuration) -> Timestamp {
        let until = since.saturating_add(timeout).unwrap_or(Timestamp::MAX);
        let earlier = until.saturating_sub(grace(timeout)).unwrap_or(until);
        match self.open.and_then(|open| open.closes) {
            Some(closes) if earlier < closes && closes <= until => earlier,
            _ => until,
        }
    }

    /// What keeps nodes from being started, if time does: no window, or one that is too short for what is left of it.
    pub fn obstacle(&self, run: &Run<'_>, now: Timestamp) -> Option<(NodeReason, String)> {
        let Some(open) = self.open else {
            return Some((
                NodeReason::AwaitingWindow,
                words::awaiting_window(self.excluded, self.next_opens()),
            ));
        };
        let closes = open.closes.filter(|_| !run.plan.spec.finishes_after_window())?;
        let needed = run.node_timeout();
        (closes.duration_since(now).saturating_add(grace(needed)) < needed).then(|| {
            let message = words::window_too_short(
                self.excluded,
                closes,
                &run.plan.spec.node_timeout(),
                self.next_opens(),
            );
            (NodeReason::WindowTooShort, message)
        })
    }
}

/// A window that is exactly as long as the timeout is meant to be used, and no decision falls on its first instant.
fn grace(timeout: SignedDuration) -> SignedDuration {
    (timeout / 20).min(MOST_GRACE)
}

impl Run<'_> {
    /// Whether a node in progress may be worked on: it goes on outside a window when the plan says so.
    pub fn may_evict(&self) -> bool {
        !self.plan.spec.suspend && self.stalled.is_none() && !self.is_cut_off()
    }

    /// Whether nodes in progress have to be given back, because a window has ended.
    pub fn is_cut_off(&self) -> bool {
        !self.hours.are_open() && !self.plan.spec.finishes_after_window()
    }

    /// No node is started now, for that reason; those in progress may go on.
    pub fn start_none(&mut self, why: &(NodeReason, String)) {
        for node in self.not_taken() {
            self.pending.insert(node.name.clone(), why.clone());
        }
        self.upcoming.clear();
    }

    /// Waiting for a window is not idling: the idle clock stands still.
    pub fn await_window(&mut self, why: &(NodeReason, String)) {
        self.memory.idle_since = None;
        self.start_none(why);
    }

    /// Whether the plan waits for a window and holds no node.
    pub fn is_scheduled(&self) -> bool {
        !self.hours.are_open() && !self.memory.nodes.values().any(Record::in_progress)
    }
}
