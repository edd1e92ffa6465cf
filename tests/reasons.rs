//! docs/reasons.md lists the reasons that the program knows, in their order, and no others.

use drainplan::api::{NodeReason, Reason};

const PAGE: &str = include_str!("../docs/reasons.md");

fn listed(heading: &str) -> Vec<String> {
    let table = PAGE.split(heading).nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('`').nth(1).map(str::to_owned)).collect()
}

#[test]
fn the_reasons_of_pods() {
    let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(listed("| reason of a pod "), known);
}

#[test]
fn the_reasons_of_nodes() {
    let mut known: Vec<&str> = NodeReason::ALL.iter().map(|reason| reason.as_str()).collect();
    let mut written = listed("| reason of a node ");
    known.sort_unstable();
    written.sort_unstable();
    assert_eq!(written, known);
}
