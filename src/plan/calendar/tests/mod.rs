//! Windows at instants that were worked out by hand, and at random ones.

mod instants;
mod random;

use jiff::Timestamp;

use super::{Calendar, Open};
use crate::api::{DrainPlan, DrainPlanSpec};

/// Windows as `schedule | duration | zone`, exclusions as `start/end`.
fn spec(windows: &[&str], exclusions: &[&str]) -> DrainPlanSpec {
    let windows: Vec<_> = windows
        .iter()
        .map(|window| {
            let mut parts = window.split('|').map(str::trim);
            let mut part = || parts.next().unwrap();
            serde_json::json!({"schedule": part(), "duration": part(), "timeZone": part()})
        })
        .collect();
    let exclusions: Vec<_> = exclusions
        .iter()
        .map(|exclusion| {
            let (start, end) = exclusion.split_once('/').unwrap();
            serde_json::json!({"start": start, "end": end})
        })
        .collect();
    serde_json::from_value::<DrainPlan>(serde_json::json!({
        "apiVersion": "drainplan.dev/v1alpha1", "kind": "DrainPlan", "metadata": {"name": "night"},
        "spec": {"nodes": {"names": ["a"]}, "windows": windows, "exclusions": exclusions},
    }))
    .unwrap()
    .spec
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn says_what_is_wrong_with_a_window() {
    let refused = |window: &str| Calendar::of(&spec(&[window], &[])).unwrap_err();
    for (window, word) in [
        ("0 22 * * SAT * | 1h | UTC", "write five fields"),
        ("@daily | 1h | UTC", "write five fields"),
        ("60 22 * * * | 1h | UTC", "60 does not fit the field minute: it takes 0 to 59"),
        ("0 24 * * * | 1h | UTC", "the field hour"),
        ("0 0 0 * * | 1h | UTC", "the field day of month"),
        ("0 0 L * * | 1h | UTC", "the field day of month"),
        ("0 0 1 MON * | 1h | UTC", "the field month: it takes 1 to 12 or JAN to DEC"),
        ("0 0 * * FEB | 1h | UTC", "the field day of week"),
        ("0 0 * * 5#2 | 1h | UTC", "the field day of week"),
        ("0 22-20 * * * | 1h | UTC", "22-20 in the field hour ends before it begins"),
        ("*/0 * * * * | 1h | UTC", "no step"),
        ("? * * * * | 1h | UTC", "the field minute"),
        ("1,,2 * * * * | 1h | UTC", "the field minute"),
        ("0 0 30 2 * | 1h | UTC", "no day is ever like that"),
        ("0 0 31 4,6,9,11 * | 1h | UTC", "no day is ever like that"),
        ("0 0 30 FEB */2 | 1h | UTC", "no day is ever like that"),
        ("0 22 * * * | 1h | Europe/Bärlin", "is not a time zone"),
        ("0 22 * * * | 1h | Local", "is not a time zone"),
        ("0 22 * * * | 1h | CET+1", "is not a time zone"),
    ] {
        let problem = refused(window);
        assert!(problem.contains(word) && problem.contains("windows[0]"), "{window}: {problem}");
    }
}

#[test]
fn a_time_that_never_opens_has_no_next_one() {
    let calendar =
        Calendar::of(&spec(&["0 0 29 2 * | 1h | UTC"], &["2026-01-01T00:00:00Z/2400-01-01T00:00:00Z"]))
            .unwrap();
    assert_eq!(calendar.open_at(at("2028-02-29T00:10:00Z")), None);
    let next = calendar.around(at("2026-06-01T00:00:00Z")).1.unwrap();
    assert_eq!(next.opens, Some(at("2400-02-29T00:00:00Z")));
    let end_of_time = Calendar::of(&spec(&["0 0 1 1 * | 1h | UTC"], &[])).unwrap();
    assert_eq!(end_of_time.around(Timestamp::MAX).1, None);
    assert_eq!(end_of_time.open_at(Timestamp::MIN), None);
}

#[test]
fn windows_that_go_on_for_a_century_have_no_end_and_no_beginning() {
    let now = at("2026-12-01T00:00:00Z");
    let daily = Calendar::of(&spec(&["0 0 * * * | 99999h | UTC"], &[])).unwrap();
    assert_eq!(daily.open_at(now), Some(Open { opens: None, closes: None }));
    let once_in_years = Calendar::of(&spec(&["0 0 29 2 * | 30000h | UTC"], &[])).unwrap();
    let open = Open { opens: Some(at("2024-02-29T00:00:00Z")), closes: Some(at("2027-08-02T00:00:00Z")) };
    assert_eq!(once_in_years.open_at(now), Some(open));
}

#[test]
fn without_windows_any_time_is_open() {
    let any = Calendar::of(&spec(&[], &[])).unwrap();
    assert!(any.is_always_open());
    assert_eq!(any.open_at(at("2026-12-01T00:00:00Z")), Some(Open { opens: None, closes: None }));
    assert_eq!(any.around(at("2026-12-01T00:00:00Z")).1, None);
}
