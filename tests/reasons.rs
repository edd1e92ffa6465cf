//! docs/reasons.md lists the reasons that the program knows, in their order, and no others; and shows of each what users
//! read, as e2e/reasons.yaml has it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says so by failing")]

#[path = "../e2e/harness/rows.rs"]
mod rows;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use drainplan::api::{NodeReason, Outlook, Reason};
use rows::{EXAMPLE, Explain, Row, Said};

const PAGE: &str = include_str!("../docs/reasons.md");
const CASES: &str = include_str!("../e2e/cases.md");
/// The part of the page that is made from the rows, between these headings.
const MADE: (&str, &str) = ("## What it looks like\n", "\n## What a node's start waits for\n");
const OUTLOOKS: [Outlook; 3] = [Outlook::NeverClears, Outlook::MayClear, Outlook::WillClear];

fn listed(heading: &str) -> Vec<Vec<String>> {
    let table = PAGE.split(heading).nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect()).collect()
}

fn name(cells: &[String]) -> String {
    cells[0].trim_matches('`').to_owned()
}

#[test]
fn the_reasons_of_pods() {
    let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let written: Vec<String> = listed("| reason of a pod ").iter().map(|cells| name(cells)).collect();
    assert_eq!(written, known);
}

#[test]
fn the_reasons_of_nodes() {
    let mut known: Vec<&str> = NodeReason::ALL.iter().map(|reason| reason.as_str()).collect();
    let mut written: Vec<String> = listed("| reason of a node ").iter().map(|cells| name(cells)).collect();
    known.sort_unstable();
    written.sort_unstable();
    assert_eq!(written, known);
}

/// Every outlook that the table gives a reason has a row, and every row is an outlook that the table gives that reason.
#[test]
fn every_reason_has_a_row_for_each_of_its_outlooks() {
    let mut of_table = BTreeSet::new();
    for cells in listed("| reason of a pod ") {
        let outlooks = OUTLOOKS.iter().map(|outlook| format!("{outlook:?}"));
        let said: Vec<String> = outlooks.filter(|outlook| cells[2].contains(outlook.as_str())).collect();
        assert!(!said.is_empty(), "no outlook in {cells:?}");
        of_table.extend(said.into_iter().map(|outlook| format!("{}/{outlook}", name(&cells))));
    }
    let rows = rows::all().unwrap();
    let of_rows: BTreeSet<String> =
        rows.values().map(|row| format!("{}/{}", row.reason(), row.outlook())).collect();
    assert_eq!(of_rows, of_table);
}

#[test]
fn every_row_is_decided_by_a_case_that_there_is() {
    let cases: BTreeSet<u16> =
        CASES.lines().filter_map(|line| line.split('|').nth(1)?.trim().parse().ok()).collect();
    for (name, row) in rows::all().unwrap() {
        assert!(row.case.is_none_or(|case| cases.contains(&case)), "{name}: no case {:?}", row.case);
        // One line, a change or the word that none is needed, and as short as a status may carry it.
        assert!(!row.remedy.contains('\n') && !row.remedy.ends_with('.'), "{name}: {}", row.remedy);
        assert!(row.message.chars().count() <= 600, "{name} is too long");
        let about_budgets = Reason::parse(row.reason()).unwrap().is_about_budgets();
        assert!(!about_budgets || !row.budgets.is_empty(), "{name}");
        for budget in &row.budgets {
            let named = format!("shop/{budget}");
            assert!(!about_budgets || row.message.contains(&named), "{name} does not name {named}");
        }
        if row.outlook() == "WillClear" && row.explain != Explain::Verify {
            let nothing = row.remedy.starts_with("nothing to change") || row.reason() == "Protected";
            assert!(nothing, "{name} clears by itself: {}", row.remedy);
        }
    }
}

/// A text without the marks around what differs from run to run.
fn example(text: &str) -> String {
    text.replace([EXAMPLE.0, EXAMPLE.1], "")
}

/// What the page says of each reason.
fn made() -> String {
    let rows = rows::all().unwrap();
    let mut page = String::from(
        "\nWord by word as in the status of a plan: the message, and below it the remedy, which follows it there as a sentence of \
         its own.\n`kubectl drainplan explain` says the same, but for what only a plan knows. Real controllers have said it on a real \
         control\nplane ([how it is compared](testing.md#reasons)); the namespace is `shop`, the nodes are called `node-…`.\n",
    );
    for reason in Reason::ALL {
        let _ = write!(page, "\n### {reason}\n");
        for outlook in OUTLOOKS {
            let outlook = format!("{outlook:?}");
            let of: Vec<&Row> = rows
                .values()
                .filter(|row| row.reason() == reason.as_str() && row.outlook() == outlook)
                .collect();
            for row in of {
                let when = row.when.as_ref().map_or_else(String::new, |when| format!(", {when}"));
                let (message, remedy) = (example(&row.message), example(&row.remedy));
                let _ = write!(page, "\n**{outlook}**{when}\n\n> {message}\n>\n> → {remedy}\n");
            }
        }
    }
    page
}

#[test]
fn the_page_shows_what_users_read() {
    let (before, rest) = PAGE.split_once(MADE.0).unwrap_or_else(|| panic!("no {}", MADE.0));
    let (now, after) = rest.split_once(MADE.1).unwrap_or_else(|| panic!("no {}", MADE.1));
    if std::env::var_os("MAKE_DOCS").is_some() {
        let page = [before, MADE.0, &made(), MADE.1, after].concat();
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reasons.md"), page).unwrap();
        return;
    }
    assert!(now == made(), "docs/reasons.md is not what e2e/reasons.yaml says: run make docs");
}

mod comparing {
    use super::*;

    fn row(message: &str) -> Row {
        Row {
            name: "BudgetExhausted/WillClear".to_owned(),
            when: None,
            budgets: vec!["web".to_owned()],
            message: message.to_owned(),
            remedy: "wait for ‹7d4f8-x2k1p›".to_owned(),
            case: Some(1),
            unit: None,
            explain: Explain::Same,
        }
    }

    fn said(message: &str, remedy: Option<&str>) -> Said {
        Said {
            reason: "BudgetExhausted".to_owned(),
            outlook: "WillClear".to_owned(),
            budgets: vec!["web".to_owned()],
            message: message.to_owned(),
            remedy: remedy.map(str::to_owned),
        }
    }

    #[test]
    fn what_differs_from_run_to_run_is_the_same_kind_of_text() {
        let row = row("web-‹7d4f8-x2k1p› of ‹3› since ‹2026-12-01T10:00:00Z›: “‹some words›”.");
        let fits = |message: &str| row.compare(&said(message, Some("wait for 99-z"))).is_ok();
        assert!(fits("web-99-z of 12 since 2027-01-01T00:00:01Z: “others, or so”."));
        assert!(!fits("web-99-z of many since 2027-01-01T00:00:01Z: “others, or so”."));
        assert!(!fits("web-99-z of 12 since yesterday: “others, or so”."));
        assert!(!fits("web-99-z of 12 since 2027-01-01T00:00:01Z: “others, or” so”."));
        assert!(!fits("web-99 z of 12 since 2027-01-01T00:00:01Z: “others, or so”."));
        assert!(
            !fits("web-98-z of 12 since 2027-01-01T00:00:01Z: “others, or so”."),
            "another pod in the remedy"
        );
        assert!(!fits("web-99-z of 12 since 2027-01-01T00:00:01Z: “others, or so”. And more."));
    }

    #[test]
    fn the_remedy_may_follow_the_message() {
        assert_eq!(row("Web waits.").differs(&said("Web waits. Wait for abc-1", None)), None);
        assert!(row("Web waits.").differs(&said("Web waits. Hurry", None)).is_some());
        assert!(row("Web waits.").differs(&said("Web waits.", None)).is_some());
    }

    #[test]
    fn every_part_of_what_is_said_counts() {
        let (row, right) = (row("Web waits."), said("Web waits.", Some("wait for abc-1")));
        assert_eq!(row.compare(&right), Ok(()));
        for wrong in [
            Said { reason: "BudgetStale".to_owned(), ..right.clone() },
            Said { outlook: "MayClear".to_owned(), ..right.clone() },
            Said { budgets: Vec::new(), ..right.clone() },
            Said { message: "Web rests.".to_owned(), ..right.clone() },
            Said { remedy: Some("hurry".to_owned()), ..right.clone() },
        ] {
            assert!(row.compare(&wrong).is_err(), "{wrong:?}");
        }
    }
}
