//! The rows of e2e/reasons.yaml that no real control plane can be brought to show.

#[path = "../../../e2e/harness/rows.rs"]
mod table;

use super::*;
use table::{Row, Said};

/// A world in which a row's pod waits.
fn worlds() -> Vec<(&'static str, World, &'static str)> {
    let web = || World::new().deployment("web", 3).budget("web", "maxUnavailable: 1");
    vec![
        (
            "BudgetRefused/MayClear/negative",
            web().change_budget(|budget| budget.status.disruptions_allowed = -1),
            "web-7d-0",
        ),
        ("Forbidden/MayClear", refused::before_the_authorizer_is_asked(), "web-0"),
        (
            "BudgetSyncFailed/NeverClears/misspelt",
            World::new().stateful_set("web", 2).budget("web", "maxUnavailable: 1.5%"),
            "web-0",
        ),
    ]
}

#[test]
fn rows_without_a_case() {
    let mut rows = table::all().expect("the file can be read");
    rows.retain(|_, row| row.unit.is_some());
    for (name, world, pod) in worlds() {
        let row: Row = rows.remove(name).unwrap_or_else(|| panic!("no row {name} that a unit test decides"));
        let wait = world.judge(pod).wait.expect("the pod waits");
        let said = Said {
            reason: wait.reason.to_string(),
            outlook: format!("{:?}", wait.outlook),
            budgets: wait.budgets.iter().map(ToString::to_string).collect(),
            message: wait.message,
            remedy: Some(wait.remedy),
        };
        assert_eq!(row.compare(&said), Ok(()), "{name}");
    }
    assert!(rows.is_empty(), "no unit test decides {:?}", rows.keys());
}
