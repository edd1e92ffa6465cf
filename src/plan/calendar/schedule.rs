//! When one window opens.

use chrono::{DateTime, Utc};
use croner::parser::CronParser;
use croner::{Cron, JobType};
use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use super::pattern::Pattern;

/// No clock has ever been put forward or back by more than a day.
const LONGEST_JUMP: SignedDuration = SignedDuration::from_hours(26);

/// A leap day on a certain day of the week may be forty years away, and nothing is rarer.
const RAREST_DAYS: i32 = 41 * 366;

/// The instants at which a pattern matches the clocks of a zone.
///
/// Croner reads the pattern and finds its matches on the clock's face. What a face means as an instant is decided here,
/// by croner's rules for jumping clocks: a single time of day that is skipped comes at the first instant after it, one that
/// comes twice counts once; with steps, lists and wildcards what is skipped is skipped, and what comes twice counts twice.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    single: bool,
}

impl Schedule {
    /// Reads five cron fields; a zone that is not written is UTC.
    pub fn parse(pattern: &str, zone: Option<&str>) -> Result<Self, String> {
        let Pattern { text, both_days } = Pattern::parse(pattern)?;
        let parser = CronParser::builder().dom_and_dow(both_days).build();
        let cron = parser.parse(&text).map_err(|error| error.to_string())?;
        if both_days && !has_a_day(&text) {
            return Err("no day is ever like that: day of month and month do not go together".to_owned());
        }
        let single = cron.determine_job_type() == JobType::FixedTime;
        Ok(Self { cron, zone: zone_named(zone.unwrap_or("UTC"))?, single })
    }

    /// The first opening at that instant or later.
    pub fn first(&self, at: Timestamp) -> Option<Timestamp> {
        // While clocks jump, a face before the present one may still be to come.
        let start = self.civil(at).saturating_sub(self.jump_about(at));
        let mut first: Option<Timestamp> = None;
        for face in self.forward(start) {
            if first.is_some_and(|first| self.earliest(face).is_none_or(|earliest| earliest >= first)) {
                break;
            }
            let later = self.instants(face).into_iter().flatten().filter(|instant| *instant >= at);
            first = later.chain(first).min();
        }
        first
    }

    /// The last opening at that instant or earlier.
    pub fn last(&self, at: Timestamp) -> Option<Timestamp> {
        let start = self.civil(at).saturating_add(self.jump_about(at));
        let mut last: Option<Timestamp> = None;
        for face in self.backward(start) {
            if last.is_some_and(|last| self.latest(face).is_none_or(|latest| latest <= last)) {
                break;
            }
            let earlier = self.instants(face).into_iter().flatten().filter(|instant| *instant <= at);
            last = earlier.chain(last).max();
        }
        last
    }

    fn civil(&self, at: Timestamp) -> civil::DateTime {
        self.zone.to_datetime(at)
    }

    /// By how much the clocks jump, if they do so within that much of an instant.
    fn jump_about(&self, at: Timestamp) -> SignedDuration {
        let around = || {
            let from = at.checked_sub(LONGEST_JUMP).ok()?;
            let jump = self.zone.following(from).next()?;
            let before = self.zone.to_offset(jump.timestamp().checked_sub(1.second()).ok()?);
            let by =
                SignedDuration::from_secs((jump.offset().seconds() - before.seconds()).unsigned_abs().into());
            (jump.timestamp().duration_since(at).abs() <= by).then_some(by)
        };
        around().unwrap_or_default()
    }

    /// The openings that a face of the clock means: none, one or two.
    fn instants(&self, face: civil::DateTime) -> [Option<Timestamp>; 2] {
        match self.zone.to_ambiguous_timestamp(face).offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset.to_timestamp(face).ok(), None],
            AmbiguousOffset::Fold { before, after } => {
                let again = if self.single { None } else { after.to_timestamp(face).ok() };
                [before.to_timestamp(face).ok(), again]
            }
            AmbiguousOffset::Gap { .. } if self.single => {
                let after = self.after_gap(face);
                [after.filter(|after| self.is_on_day(self.civil(*after).date())), None]
            }
            AmbiguousOffset::Gap { .. } => [None, None],
        }
    }

    /// The first instant that a face may mean. It never falls as the face goes on.
    fn earliest(&self, face: civil::DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(face).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(face).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(face).ok(),
            AmbiguousOffset::Gap { .. } => self.after_gap(face),
        }
    }

    /// The last instant that a face may mean. It never rises as the face goes back.
    fn latest(&self, face: civil::DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(face).offset() {
            AmbiguousOffset::Fold { after, .. } => after.to_timestamp(face).ok(),
            _ => self.earliest(face),
        }
    }

    /// The instant at which the clocks skip a face.
    fn after_gap(&self, face: civil::DateTime) -> Option<Timestamp> {
        let AmbiguousOffset::Gap { before, .. } = self.zone.to_ambiguous_timestamp(face).offset() else {
            return None;
        };
        // Read by the old offset a skipped face is an instant after the jump.
        let beyond = before.to_timestamp(face).ok()?.checked_add(1.nanosecond()).ok()?;
        self.zone.preceding(beyond).next().map(|jump| jump.timestamp())
    }

    fn is_on_day(&self, day: civil::Date) -> bool {
        self.forward(day.at(0, 0, 0, 0)).next().is_some_and(|face| face.date() == day)
    }

    fn forward(&self, start: civil::DateTime) -> impl Iterator<Item = civil::DateTime> + '_ {
        let end = start.saturating_add(RAREST_DAYS.days());
        let mut from = as_if_utc(start, true);
        std::iter::from_fn(move || {
            let face = self.cron.find_next_occurrence(&from?, true).ok()?;
            from = face.checked_add_signed(chrono::TimeDelta::minutes(1));
            face_of(face).filter(|face| *face <= end)
        })
    }

    fn backward(&self, start: civil::DateTime) -> impl Iterator<Item = civil::DateTime> + '_ {
        let end = start.saturating_sub(RAREST_DAYS.days());
        let mut from = as_if_utc(start, false);
        std::iter::from_fn(move || {
            let face = self.cron.find_previous_occurrence(&from?, true).ok()?;
            from = face.checked_sub_signed(chrono::TimeDelta::minutes(1));
            face_of(face).filter(|face| *face >= end)
        })
    }
}

/// Whether a leap year has a day of that month. Croner would look for one for three thousand years.
fn has_a_day(text: &str) -> bool {
    let mut fields = text.split(' ').skip(2);
    let (Some(day), Some(month)) = (fields.next(), fields.next()) else { return false };
    if day == "*" {
        return true;
    }
    let Ok(days) = CronParser::new().parse(&format!("* * {day} {month} *")) else { return false };
    let year = civil::date(2096, 1, 1).series(1.day()).take(366);
    year.filter_map(|day| as_if_utc(day.at(0, 0, 0, 0), false))
        .any(|day| days.is_time_matching(&day).unwrap_or_default())
}

/// Zones come with the program: what a plan means must not depend on the machine that reads it.
fn zone_named(name: &str) -> Result<TimeZone, String> {
    TimeZoneDatabase::bundled()
        .get(name)
        .map_err(|_| format!("{name:?} is not a time zone: write an IANA name such as Europe/Berlin or UTC"))
}

/// Croner's dates are chrono's. A face of a clock is given to it as if it were UTC, where nothing is skipped.
fn as_if_utc(face: civil::DateTime, up: bool) -> Option<DateTime<Utc>> {
    let instant = TimeZone::UTC.to_timestamp(face).ok()?;
    let part = instant.subsec_nanosecond();
    let second = instant.as_second() + i64::from(up && part > 0) - i64::from(!up && part < 0);
    DateTime::from_timestamp(second, 0)
}

fn face_of(face: DateTime<Utc>) -> Option<civil::DateTime> {
    Some(TimeZone::UTC.to_datetime(Timestamp::from_second(face.timestamp()).ok()?))
}
