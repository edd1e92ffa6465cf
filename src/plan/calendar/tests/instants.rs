//! Instants worked out by hand: what is open then, since when, until when.

use super::super::{Calendar, Open};
use super::{at, spec};

/// A time that is open: since when and until when. `-` is no end in sight.
type Row = (&'static str, Option<(&'static str, &'static str)>);

fn check(windows: &[&str], exclusions: &[&str], rows: &[Row]) {
    let calendar = Calendar::of(&spec(windows, exclusions)).unwrap();
    let instant = |text: &str| (text != "-").then(|| at(text));
    for (when, expected) in rows {
        let expected =
            expected.map(|(opens, closes)| Open { opens: instant(opens), closes: instant(closes) });
        assert_eq!(calendar.open_at(at(when)), expected, "{windows:?} less {exclusions:?} at {when}");
    }
}

fn next(windows: &[&str], exclusions: &[&str], rows: &[(&str, &str, &str)]) {
    let calendar = Calendar::of(&spec(windows, exclusions)).unwrap();
    for (when, opens, closes) in rows {
        let expected = Open { opens: Some(at(opens)), closes: (*closes != "-").then(|| at(closes)) };
        assert_eq!(calendar.around(at(when)).1, Some(expected), "{windows:?} after {when}");
    }
}

const SATURDAY: &[&str] = &["0 22 * * SAT | 6h | Europe/Berlin"];

#[test]
fn saturday_night_in_berlin() {
    let winter = Some(("2026-12-05T21:00:00Z", "2026-12-06T03:00:00Z"));
    let summer = Some(("2026-07-04T20:00:00Z", "2026-07-05T02:00:00Z"));
    check(
        SATURDAY,
        &[],
        &[
            ("2026-12-05T20:59:59.999999999Z", None),
            ("2026-12-05T21:00:00Z", winter),
            ("2026-12-06T00:00:00Z", winter),
            ("2026-12-06T02:59:59.999Z", winter),
            ("2026-12-06T03:00:00Z", None),
            ("2026-12-04T22:00:00Z", None),
            ("2026-07-04T19:59:59Z", None),
            ("2026-07-04T20:00:00Z", summer),
            ("2026-07-05T01:59:59Z", summer),
            ("2026-07-05T02:00:00Z", None),
        ],
    );
    next(
        SATURDAY,
        &[],
        &[
            ("2026-12-01T00:00:00Z", "2026-12-05T21:00:00Z", "2026-12-06T03:00:00Z"),
            ("2026-12-05T21:00:00Z", "2026-12-12T21:00:00Z", "2026-12-13T03:00:00Z"),
            ("2026-12-06T03:00:00Z", "2026-12-12T21:00:00Z", "2026-12-13T03:00:00Z"),
        ],
    );
}

#[test]
fn a_window_keeps_its_length_while_the_clocks_change() {
    let spring = Some(("2026-03-28T21:00:00Z", "2026-03-29T03:00:00Z"));
    let autumn = Some(("2026-10-24T20:00:00Z", "2026-10-25T02:00:00Z"));
    check(
        SATURDAY,
        &[],
        &[
            ("2026-03-29T00:59:59Z", spring),
            ("2026-03-29T01:00:00Z", spring),
            ("2026-03-29T02:59:59Z", spring),
            ("2026-03-29T03:00:00Z", None),
            ("2026-10-25T00:59:59Z", autumn),
            ("2026-10-25T01:00:00Z", autumn),
            ("2026-10-25T01:59:59Z", autumn),
            ("2026-10-25T02:00:00Z", None),
        ],
    );
}

#[test]
fn a_window_belongs_to_the_day_on_which_it_opens() {
    let friday = Some(("2026-12-04T22:00:00Z", "2026-12-05T02:00:00Z"));
    check(
        &["0 22 * * FRI | 4h | UTC"],
        &[],
        &[
            ("2026-12-04T01:00:00Z", None),
            ("2026-12-04T22:00:00Z", friday),
            ("2026-12-05T01:00:00Z", friday),
            ("2026-12-05T02:00:00Z", None),
            ("2026-12-05T22:30:00Z", None),
        ],
    );
}

#[test]
fn a_single_time_that_is_skipped_comes_after_the_gap() {
    check(
        &["30 2 * * * | 1h | Europe/Berlin"],
        &[],
        &[
            ("2026-03-29T00:59:59Z", None),
            ("2026-03-29T01:00:00Z", Some(("2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"))),
            ("2026-03-29T02:00:00Z", None),
            ("2026-03-30T00:30:00Z", Some(("2026-03-30T00:30:00Z", "2026-03-30T01:30:00Z"))),
        ],
    );
    check(
        &["0 2 * * SUN | 2h | America/New_York"],
        &[],
        &[
            ("2026-03-08T06:59:59Z", None),
            ("2026-03-08T07:00:00Z", Some(("2026-03-08T07:00:00Z", "2026-03-08T09:00:00Z"))),
            ("2026-11-01T06:59:59Z", None),
            ("2026-11-01T07:00:00Z", Some(("2026-11-01T07:00:00Z", "2026-11-01T09:00:00Z"))),
        ],
    );
    // Midnight itself is skipped.
    check(
        &["0 0 * * * | 1h | America/Sao_Paulo"],
        &[],
        &[
            ("2018-11-04T02:59:59Z", None),
            ("2018-11-04T03:00:00Z", Some(("2018-11-04T03:00:00Z", "2018-11-04T04:00:00Z"))),
        ],
    );
    // A whole day is skipped: it is not the 31st that was meant.
    check(&["0 12 30 12 * | 1h | Pacific/Apia"], &[], &[("2011-12-30T10:00:00Z", None)]);
}

#[test]
fn a_single_time_that_comes_twice_counts_once() {
    check(
        &["30 2 * * * | 30m | Europe/Berlin"],
        &[],
        &[
            ("2026-10-25T00:29:59Z", None),
            ("2026-10-25T00:30:00Z", Some(("2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"))),
            ("2026-10-25T01:30:00Z", None),
            ("2026-10-25T01:45:00Z", None),
        ],
    );
    check(
        &["30 1 * * SUN | 30m | America/New_York"],
        &[],
        &[
            ("2026-11-01T05:30:00Z", Some(("2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z"))),
            ("2026-11-01T06:30:00Z", None),
        ],
    );
}

#[test]
fn with_steps_what_is_skipped_is_skipped_and_what_comes_twice_counts_twice() {
    check(
        &["*/30 2 * * * | 10m | Europe/Berlin"],
        &[],
        &[
            ("2026-03-29T01:00:00Z", None),
            ("2026-03-29T01:30:00Z", None),
            ("2026-10-25T00:00:00Z", Some(("2026-10-25T00:00:00Z", "2026-10-25T00:10:00Z"))),
            ("2026-10-25T00:30:00Z", Some(("2026-10-25T00:30:00Z", "2026-10-25T00:40:00Z"))),
            ("2026-10-25T01:00:00Z", Some(("2026-10-25T01:00:00Z", "2026-10-25T01:10:00Z"))),
            ("2026-10-25T01:39:59Z", Some(("2026-10-25T01:30:00Z", "2026-10-25T01:40:00Z"))),
            ("2026-10-25T01:40:00Z", None),
        ],
    );
    next(
        &["*/30 2 * * * | 10m | Europe/Berlin"],
        &[],
        &[
            ("2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:10:00Z"),
            ("2026-03-28T02:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T00:10:00Z"),
        ],
    );
}

#[test]
fn zones_of_quarter_and_half_hours() {
    check(
        &["0 1 * * * | 2h | Pacific/Chatham"],
        &[],
        &[
            ("2026-11-30T11:14:59Z", None),
            ("2026-11-30T11:15:00Z", Some(("2026-11-30T11:15:00Z", "2026-11-30T13:15:00Z"))),
            ("2026-06-30T12:15:00Z", Some(("2026-06-30T12:15:00Z", "2026-06-30T14:15:00Z"))),
        ],
    );
    check(
        &["0 3 * * * | 30m | Pacific/Chatham"],
        &[],
        &[
            ("2026-09-26T13:59:59Z", None),
            ("2026-09-26T14:00:00Z", Some(("2026-09-26T14:00:00Z", "2026-09-26T14:30:00Z"))),
            ("2026-04-04T13:15:00Z", Some(("2026-04-04T13:15:00Z", "2026-04-04T13:45:00Z"))),
            ("2026-04-04T14:15:00Z", None),
        ],
    );
    check(
        &["0 0 * * * | 1h | Asia/Kathmandu"],
        &[],
        &[
            ("2026-12-01T18:14:59Z", None),
            ("2026-12-01T18:15:00Z", Some(("2026-12-01T18:15:00Z", "2026-12-01T19:15:00Z"))),
        ],
    );
    check(
        &["15 2 * * * | 20m | Australia/Lord_Howe"],
        &[],
        &[
            ("2026-10-03T15:29:59Z", None),
            ("2026-10-03T15:30:00Z", Some(("2026-10-03T15:30:00Z", "2026-10-03T15:50:00Z"))),
        ],
    );
}

#[test]
fn the_29th_of_february() {
    let leap = &["0 0 29 2 * | 24h | UTC"];
    check(
        leap,
        &[],
        &[
            ("2027-02-28T23:00:00Z", None),
            ("2027-03-01T00:00:00Z", None),
            ("2028-02-29T12:00:00Z", Some(("2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"))),
            ("2028-03-01T00:00:00Z", None),
        ],
    );
    next(
        leap,
        &[],
        &[
            ("2026-11-30T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"),
            ("2097-01-01T00:00:00Z", "2104-02-29T00:00:00Z", "2104-03-01T00:00:00Z"),
        ],
    );
}

#[test]
fn windows_that_touch_or_overlap_are_one() {
    let night = Some(("2026-12-01T22:00:00Z", "2026-12-02T05:00:00Z"));
    check(
        &["0 22 * * * | 4h | UTC", "0 1 * * * | 4h | UTC"],
        &[],
        &[
            ("2026-12-01T21:59:59Z", None),
            ("2026-12-01T23:00:00Z", night),
            ("2026-12-02T01:30:00Z", night),
            ("2026-12-02T04:59:59Z", night),
            ("2026-12-02T05:00:00Z", None),
        ],
    );
    let morning = Some(("2026-12-02T00:00:00Z", "2026-12-02T04:00:00Z"));
    check(
        &["0 0 * * * | 2h | UTC", "0 2 * * * | 2h | UTC"],
        &[],
        &[
            ("2026-12-02T00:30:00Z", morning),
            ("2026-12-02T02:00:00Z", morning),
            ("2026-12-02T03:00:00Z", morning),
            ("2026-12-02T04:00:00Z", None),
        ],
    );
    // Two zones: 22:00 in Tokyo is 13:00 UTC, 14:00 in London is 14:00 UTC.
    check(
        &["0 22 * * * | 90m | Asia/Tokyo", "0 14 * * * | 2h | Europe/London"],
        &[],
        &[("2026-12-01T13:10:00Z", Some(("2026-12-01T13:00:00Z", "2026-12-01T16:00:00Z")))],
    );
    check(&["0 0 * * * | 24h | UTC"], &[], &[("2026-12-01T13:10:00Z", Some(("-", "-")))]);
}

#[test]
fn exclusions_cut() {
    let freeze: &[&str] = &["2026-12-20T00:00:00Z/2027-01-03T00:00:00Z"];
    check(
        SATURDAY,
        freeze,
        &[
            // The 19th is a Saturday: its window ends where the freeze begins.
            ("2026-12-19T22:00:00Z", Some(("2026-12-19T21:00:00Z", "2026-12-20T00:00:00Z"))),
            ("2026-12-20T00:00:00Z", None),
            ("2026-12-26T22:00:00Z", None),
            // So is the 2nd: the freeze ends in the middle of its window.
            ("2027-01-02T23:59:59Z", None),
            ("2027-01-03T00:00:00Z", Some(("2027-01-03T00:00:00Z", "2027-01-03T03:00:00Z"))),
        ],
    );
    next(
        SATURDAY,
        freeze,
        &[
            ("2026-12-19T22:00:00Z", "2027-01-03T00:00:00Z", "2027-01-03T03:00:00Z"),
            ("2026-12-24T00:00:00Z", "2027-01-03T00:00:00Z", "2027-01-03T03:00:00Z"),
        ],
    );
    check(
        &[],
        freeze,
        &[
            ("2026-12-19T00:00:00Z", Some(("-", "2026-12-20T00:00:00Z"))),
            ("2026-12-25T00:00:00Z", None),
            ("2027-01-03T00:00:00Z", Some(("2027-01-03T00:00:00Z", "-"))),
        ],
    );
    // Two that overlap are one.
    next(
        &[],
        &["2026-12-20T00:00:00Z/2026-12-24T00:00:00Z", "2026-12-23T00:00:00Z/2026-12-27T00:00:00Z"],
        &[("2026-12-21T00:00:00Z", "2026-12-27T00:00:00Z", "-")],
    );
}

#[test]
fn days_as_a_cronjob_reads_them() {
    // A star in one of the day fields: both must match. 2026-12-07 and 2026-12-14 are Mondays.
    check(
        &["0 0 */2 * MON | 1h | UTC"],
        &[],
        &[
            ("2026-12-07T00:00:00Z", Some(("2026-12-07T00:00:00Z", "2026-12-07T01:00:00Z"))),
            ("2026-12-14T00:00:00Z", None),
            ("2026-12-09T00:00:00Z", None),
        ],
    );
    // Both restricted: either is enough.
    check(
        &["0 0 13 * FRI | 1h | UTC"],
        &[],
        &[
            ("2026-12-13T00:00:00Z", Some(("2026-12-13T00:00:00Z", "2026-12-13T01:00:00Z"))),
            ("2026-12-04T00:00:00Z", Some(("2026-12-04T00:00:00Z", "2026-12-04T01:00:00Z"))),
            ("2026-12-05T00:00:00Z", None),
        ],
    );
    check(
        &["0 22 ? jan-mar,DEC sat-sun | 1h | UTC"],
        &[],
        &[
            ("2026-12-06T22:00:00Z", Some(("2026-12-06T22:00:00Z", "2026-12-06T23:00:00Z"))),
            ("2026-02-07T22:30:00Z", Some(("2026-02-07T22:00:00Z", "2026-02-07T23:00:00Z"))),
            ("2026-12-07T22:00:00Z", None),
            ("2026-11-28T22:00:00Z", None),
        ],
    );
    check(
        &["20/20 5 * * 7 | 5m | UTC"],
        &[],
        &[
            ("2026-12-06T05:20:00Z", Some(("2026-12-06T05:20:00Z", "2026-12-06T05:25:00Z"))),
            ("2026-12-06T05:41:00Z", Some(("2026-12-06T05:40:00Z", "2026-12-06T05:45:00Z"))),
            ("2026-12-06T05:00:00Z", None),
        ],
    );
}
