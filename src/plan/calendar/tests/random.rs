//! Random windows about the nights on which clocks jump, against a minute by minute reading of the clock.

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::super::Calendar;
use super::spec;

const NIGHTS: [(&str, &str); 8] = [
    ("Europe/Berlin", "2026-03-29T01:00:00Z"),
    ("Europe/Berlin", "2026-10-25T01:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Pacific/Chatham", "2026-09-26T14:00:00Z"),
    ("Pacific/Chatham", "2026-04-04T14:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
    ("Asia/Kolkata", "2026-12-01T00:00:00Z"),
];

/// A field that is read without the code under test.
#[derive(Debug, Clone, Copy)]
enum Part {
    Any,
    One(i8),
    Every(i8),
    Two(i8, i8),
}

impl Part {
    fn text(self) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::One(value) => value.to_string(),
            Self::Every(step) => format!("*/{step}"),
            Self::Two(a, b) => format!("{a},{b}"),
        }
    }
    fn matches(self, value: i8) -> bool {
        match self {
            Self::Any => true,
            Self::One(only) => value == only,
            Self::Every(step) => value % step == 0,
            Self::Two(a, b) => value == a || value == b,
        }
    }
}

fn part(last: i8) -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::Any),
        (0..=last).prop_map(Part::One),
        (2..=last / 2).prop_map(Part::Every),
        (0..=last / 2, last / 2 + 1..=last).prop_map(|(a, b)| Part::Two(a, b)),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    night: usize,
    windows: Vec<(Part, Part, i64)>,
    exclusion: Option<(i64, i64)>,
}

fn case() -> impl Strategy<Value = Case> {
    let hour = prop_oneof![part(23), (0..4_i8).prop_map(Part::One)];
    let window = (part(59), hour, 1..240_i64);
    let exclusion = proptest::option::of((-600..600_i64, 1..300_i64));
    (0..NIGHTS.len(), proptest::collection::vec(window, 1..3), exclusion)
        .prop_map(|(night, windows, exclusion)| Case { night, windows, exclusion })
}

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

/// What the clock shows, minute by minute.
struct Clock(Vec<DateTime>);

impl Clock {
    /// Two hours before the first minute are read, too.
    const BEFORE: i64 = 120;

    fn read(zone: &TimeZone, night: Timestamp, first: i64, last: i64) -> Self {
        Self((first - Self::BEFORE..last).map(|minute| zone.to_datetime(night + minutes(minute))).collect())
    }

    /// Whether a window opens in a minute, counted from the first.
    fn opens(&self, (minute, hour, _): (Part, Part, i64), index: usize) -> bool {
        let (seen, now) = self.0[index..=index + usize::try_from(Self::BEFORE).unwrap()].split_at(120);
        let fits = |face: DateTime| minute.matches(face.minute()) && hour.matches(face.hour());
        if !matches!((minute, hour), (Part::One(_), Part::One(_))) {
            return fits(now[0]);
        }
        // The faces that were skipped in this minute.
        let mut skipped = *seen.last().unwrap();
        let mut in_gap = false;
        while skipped.checked_add(minutes(1)).unwrap() < now[0] {
            skipped = skipped.checked_add(minutes(1)).unwrap();
            in_gap |= fits(skipped);
        }
        (fits(now[0]) && !seen.contains(&now[0])) || in_gap
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn as_the_clock_reads(case in case()) {
        let (name, night) = NIGHTS[case.night];
        let zone = TimeZoneDatabase::bundled().get(name).unwrap();
        let night: Timestamp = night.parse().unwrap();
        let windows: Vec<String> = case.windows.iter()
            .map(|(minute, hour, long)| format!("{} {} * * * | {long}m | {name}", minute.text(), hour.text()))
            .collect();
        let windows: Vec<&str> = windows.iter().map(String::as_str).collect();
        let excluded = case.exclusion.map(|(from, long)| (night + minutes(from), night + minutes(from + long)));
        let exclusions: Vec<String> = excluded.iter().map(|(start, end)| format!("{start}/{end}")).collect();
        let exclusions: Vec<&str> = exclusions.iter().map(String::as_str).collect();
        let mut calendar = Calendar::of(&spec(&windows, &exclusions)).unwrap();
        // Four days hold fewer windows than that, and what is always open need not be followed further.
        calendar.longest_chain = 400;

        // Minute by minute, four days about the night.
        let (first, last) = (-2 * 1440, 2 * 1440);
        let clock = Clock::read(&zone, night, first, last);
        let mut until = vec![i64::MIN; case.windows.len()];
        let open: Vec<bool> = (first..last).map(|minute| {
            let at = night + minutes(minute);
            for (window, until) in case.windows.iter().zip(&mut until) {
                if clock.opens(*window, usize::try_from(minute - first).unwrap()) {
                    *until = minute + window.2;
                }
            }
            until.iter().any(|until| minute < *until)
                && !excluded.is_some_and(|(start, end)| start <= at && at < end)
        }).collect();
        // What has opened before the first day is not known: begin after the longest window.
        for minute in (first + 300..last - 300).step_by(97) {
            let index = usize::try_from(minute - first).unwrap();
            let at = night + minutes(minute);
            let found = calendar.open_at(at);
            prop_assert_eq!(found.is_some(), open[index], "{} {:?} at {}", name, windows, at);
            let shut = open[index..].iter().position(|open| !open);
            if let (Some(found), Some(shut)) = (found, shut) {
                let closes = at + minutes(i64::try_from(shut).unwrap());
                prop_assert_eq!(found.closes, Some(closes), "{} {:?} at {}", name, windows, at);
            }
            let next = calendar.around(at).1;
            let from = index + if open[index] { shut.unwrap_or(open.len() - index) } else { 0 };
            if let Some(ahead) = open[from..].iter().position(|open| *open) {
                let opens = night + minutes(first + i64::try_from(from + ahead).unwrap());
                prop_assert_eq!(next.and_then(|next| next.opens), Some(opens), "{} {:?} after {}", name, windows, at);
            }
            if let Some(opened) = found.and_then(|found| found.opens)
                && opened > night + minutes(first + 300)
            {
                let back = open[..index].iter().rposition(|open| !open).unwrap();
                prop_assert_eq!(opened, night + minutes(first + i64::try_from(back).unwrap() + 1));
            }
        }
    }
}
