//! When a plan may work: the union of its windows, less its exclusions.
//!
//! A window is open from its opening, included, for its duration of elapsed time, the end excluded. Windows that touch or
//! overlap are one. Without windows any time is open. Nothing here knows the present: every question names its instant.

mod pattern;
mod schedule;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};

use crate::api::DrainPlanSpec;
use schedule::Schedule;

/// So many windows that touch each other are followed to find where a time that is open begins and ends: a weekend of
/// single minutes has 2,880.
const LONGEST_CHAIN: usize = 3_000;
/// What begins or ends further away than a century is out of sight.
const SIGHT: SignedDuration = SignedDuration::from_hours(100 * 366 * 24);
/// So many openings may fall into exclusions before the search is given up.
const MOST_EXCLUDED: usize = 20_000;

/// A time that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Its first instant; none if no beginning is in sight.
    pub opens: Option<Timestamp>,
    /// The first instant after it; none if no end is in sight.
    pub closes: Option<Timestamp>,
}

/// When a plan may work.
#[derive(Debug, Clone)]
pub struct Calendar {
    windows: Vec<Window>,
    /// In order, and apart from each other.
    exclusions: Vec<(Timestamp, Timestamp)>,
    longest_chain: usize,
}

/// Where an open time ends.
enum End {
    /// It is not open.
    Past,
    At(Timestamp),
    OutOfSight,
}

#[derive(Debug, Clone)]
struct Window {
    schedule: Schedule,
    duration: SignedDuration,
}

impl Calendar {
    /// Reads a plan's windows and exclusions.
    ///
    /// # Errors
    /// What is wrong with which of them, for the plan's author.
    pub fn of(spec: &DrainPlanSpec) -> Result<Self, String> {
        let mut windows = Vec::new();
        for (at, window) in spec.windows.iter().enumerate() {
            let schedule = Schedule::parse(&window.schedule, window.time_zone.as_deref());
            let schedule = schedule.map_err(|problem| {
                format!("windows[{at}] with schedule {:?} cannot be read: {problem}", window.schedule)
            })?;
            windows.push(Window { schedule, duration: window.duration.value() });
        }
        let exclusions = spec.exclusions.iter().map(|exclusion| (exclusion.start.0, exclusion.end.0));
        Ok(Self { windows, exclusions: merged(exclusions), longest_chain: LONGEST_CHAIN })
    }

    /// Whether any time is open.
    #[must_use]
    pub fn is_always_open(&self) -> bool {
        self.windows.is_empty() && self.exclusions.is_empty()
    }

    /// Whether there are windows, and not exclusions only.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    /// The time around an instant that is open, if it is.
    #[must_use]
    pub fn open_at(&self, at: Timestamp) -> Option<Open> {
        if self.excluded(at).is_some() {
            return None;
        }
        let closes = match self.windows_end(at) {
            End::Past => return None,
            End::At(end) => Some(end),
            End::OutOfSight => None,
        };
        let opens = self.windows_open(at);
        let before = self.exclusions.iter().map(|(_, end)| *end).filter(|end| *end <= at).max();
        let after = self.exclusions.iter().map(|(start, _)| *start).filter(|start| *start > at).min();
        Some(Open { opens: opens.max(before), closes: earlier(closes, after) })
    }

    /// The time that is open at an instant, if any is, and the next one to come.
    #[must_use]
    pub fn around(&self, at: Timestamp) -> (Option<Open>, Option<Open>) {
        match self.open_at(at) {
            Some(open) => (Some(open), self.following(&open)),
            None => (None, self.next_from(at)),
        }
    }

    /// The next time that opens after one that is open.
    #[must_use]
    pub fn following(&self, open: &Open) -> Option<Open> {
        self.next_from(open.closes?)
    }

    /// The first time that opens at an instant or later; the instant before is not open.
    fn next_from(&self, at: Timestamp) -> Option<Open> {
        let mut from = at;
        for _ in 0..MOST_EXCLUDED {
            if let Some((_, end)) = self.excluded(from) {
                from = end;
            }
            if let Some(open) = self.open_at(from) {
                return Some(Open { opens: Some(from), ..open });
            }
            if self.excluded(from).is_none() {
                from = self.windows.iter().filter_map(|window| window.schedule.first(from)).min()?;
            }
        }
        None
    }

    /// The exclusion that holds an instant.
    fn excluded(&self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        self.exclusions.iter().copied().find(|(start, end)| *start <= at && at < *end)
    }

    /// When the windows end that are open at an instant.
    fn windows_end(&self, at: Timestamp) -> End {
        if self.windows.is_empty() {
            return End::OutOfSight;
        }
        let mut end = at;
        for _ in 0..self.longest_chain {
            let ends = self.windows.iter().filter_map(|window| {
                let opening = window.schedule.last(end)?;
                Some(opening.saturating_add(window.duration).unwrap_or(Timestamp::MAX))
            });
            match ends.max().filter(|later| *later > end) {
                Some(later) if later.duration_since(at) > SIGHT => return End::OutOfSight,
                Some(later) => end = later,
                None if end == at => return End::Past,
                None => return End::At(end),
            }
        }
        End::OutOfSight
    }

    /// When the windows that are open at an instant have opened; `None` if no beginning is in sight.
    fn windows_open(&self, at: Timestamp) -> Option<Timestamp> {
        let mut start = at;
        for _ in 0..self.longest_chain {
            let opening = self.windows.iter().filter_map(|window| {
                // The earliest opening that still reaches it: windows that touch are one.
                let reach = start.saturating_sub(window.duration).unwrap_or(Timestamp::MIN);
                window.schedule.first(reach).filter(|opening| *opening <= start)
            });
            match opening.min().filter(|earlier| *earlier < start) {
                Some(earlier) if at.duration_since(earlier) > SIGHT => return None,
                Some(earlier) => start = earlier,
                None => return (!self.windows.is_empty()).then_some(start),
            }
        }
        None
    }
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// In order, with those that touch or overlap put together; what ends before it starts is nothing.
fn merged(spans: impl Iterator<Item = (Timestamp, Timestamp)>) -> Vec<(Timestamp, Timestamp)> {
    let mut spans: Vec<_> = spans.filter(|(start, end)| start < end).collect();
    spans.sort_unstable();
    let mut merged: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (start, end) in spans {
        match merged.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ => merged.push((start, end)),
        }
    }
    merged
}
