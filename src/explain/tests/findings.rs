//! What is wrong with budgets.

use super::*;
use crate::api::Finding;

impl World {
    /// The findings about the budget `web`: name, message, remedy.
    fn findings(&self) -> Vec<(Finding, String, String)> {
        let patience = Patience::default();
        let explainer = Explainer::new(&self.cluster, NOW, &patience);
        let key = BudgetKey { namespace: "shop".into(), name: "web".into() };
        let budget = self.cluster.budget(&key).expect("the budget is there");
        let found = explainer.findings(budget).into_iter();
        found.map(|found| (found.finding, found.message, found.remedy)).collect()
    }

    #[track_caller]
    fn finds(&self, finding: Finding, message: &str, remedy: &str) {
        let findings = self.findings();
        let [(found, said, change)] = findings.as_slice() else { panic!("one finding: {findings:?}") };
        assert_eq!(said, message);
        assert_eq!(change, remedy);
        assert_eq!(*found, finding);
    }
}

#[test]
fn a_good_budget() {
    assert_eq!(World::new().deployment("web", 3).budget("web", "maxUnavailable: 1").findings(), []);
    // Spent for the moment, it is still a good one.
    let world = World::new().deployment("web", 3).change("web-7d-0", |pod| pod.ready = false);
    let young = |pod: &mut Pod| pod.created = Some(ago(5));
    assert_eq!(world.change("web-7d-0", young).budget("web", "maxUnavailable: 1").findings(), []);
}

#[test]
fn never_allows() {
    let world = World::new().deployment("web", 3).budget("web", "minAvailable: 3");
    world.finds(
        Finding::NeverAllows,
        "Budget shop/web (minAvailable 3 of 3) can never allow an eviction: it requires 3 \
         healthy pods, and Deployment web (3 replicas) can have 3 at most.",
        "in budget shop/web write maxUnavailable: 1 instead of minAvailable: 3, or run at \
         least 4 replicas",
    );
    // It is found although nothing of it holds a pod: all are unready.
    let world = World::new().deployment("web", 1).crashing("web-7d-0").budget("web", "minAvailable: 1");
    let found: Vec<Finding> = world.findings().into_iter().map(|found| found.0).collect();
    assert_eq!(found, [Finding::NeverAllows, Finding::BlocksUnhealthy]);
}

#[test]
fn sync_failed_and_jobs() {
    let world = World::new()
        .deployment("web", 3)
        .pod("cleanup-x", Some(owner("batch/v1", "Job", "cleanup")))
        .budget("web", "maxUnavailable: 1");
    let findings = world.findings();
    let found: Vec<Finding> = findings.iter().map(|found| found.0).collect();
    assert_eq!(found, [Finding::SyncFailed, Finding::SelectsJobs]);
    let [_, (_, message, remedy)] = findings.as_slice() else { panic!("two findings") };
    assert_eq!(
        message,
        "Budget shop/web selects pods of Job cleanup: Jobs have no scale, and their \
         finished pods are never healthy."
    );
    assert_eq!(
        remedy,
        "append to matchExpressions of budget shop/web: {key: \
         batch.kubernetes.io/job-name, operator: DoesNotExist}, {key: job-name, operator: \
         DoesNotExist}"
    );
}

#[test]
fn overlaps() {
    let world = World::new()
        .deployment("web", 3)
        .budget("web", "maxUnavailable: 1")
        .budget("chart", "minAvailable: 1");
    world.finds(
        Finding::Overlaps,
        "Budget shop/web selects 3 pods that shop/chart selects too, and the Eviction API \
         refuses pods that have more than one budget (500): web-7d-0, web-7d-1 and \
         web-7d-2.",
        "delete one of them, or narrow a selector: shop/web and shop/chart",
    );
}

#[test]
fn selects_nothing() {
    let world = || World::new().budget("web", "minAvailable: 1");
    world().finds(
        Finding::SelectsNothing,
        "Budget shop/web protects nothing: no pod in its namespace matches app=web.",
        "correct the selector of budget shop/web, or delete it",
    );
    world().stateful_set("web", 0).finds(
        Finding::SelectsNothing,
        "Budget shop/web protects nothing now: StatefulSet web, whose pods it selects, has 0 replicas.",
        "nothing to change while that is meant",
    );
    world().change_budget(|budget| budget.selector = None).finds(
        Finding::SelectsNothing,
        "Budget shop/web protects nothing: it has no selector.",
        "correct the selector of budget shop/web, or delete it",
    );
    let of = |key: &str, operator, values: &[&str]| Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|value| Text::from(*value)).collect(),
    };
    let requirements = vec![
        of("app", Operator::In, &["web"]),
        of("tier", Operator::In, &["a", "b"]),
        of("stage", Operator::NotIn, &["dev"]),
        of("team", Operator::Exists, &[]),
        of("canary", Operator::DoesNotExist, &[]),
    ];
    let world = world().change_budget(|budget| budget.selector = Some(Selector { requirements }));
    world.finds(
        Finding::SelectsNothing,
        "Budget shop/web protects nothing: no pod in its namespace matches app=web,tier in \
         (a,b),stage notin (dev),team,!canary.",
        "correct the selector of budget shop/web, or delete it",
    );
}

#[test]
fn counts_none() {
    let world = World::new().pod("one", None).budget("web", "minAvailable: 50%");
    world.finds(
        Finding::CountsNone,
        "Budget shop/web (minAvailable 50% of 0 = 0) allows 0 evictions: it counts by the \
         scale of its pods' controllers, and none of them has one (one).",
        "in budget shop/web write minAvailable: 0 instead of minAvailable: 50%",
    );
}

#[test]
fn blocks_unhealthy() {
    let world = World::new().deployment("web", 2).crashing("web-7d-0").crashing("web-7d-1");
    let world = world.budget("web", "minAvailable: 1");
    world.finds(
        Finding::BlocksUnhealthy,
        "Budget shop/web lets unready pods go only while healthy ≥ desired > 0, and it has \
         healthy 0, desired 1: web-7d-0 on node-a (CrashLoopBackOff, 5 restarts) and \
         web-7d-1 on node-a (CrashLoopBackOff, 5 restarts) may not be evicted.",
        "set unhealthyPodEvictionPolicy: AlwaysAllow in budget shop/web",
    );
    let world = world.change_budget(|budget| budget.unhealthy_policy = UnhealthyPolicy::AlwaysAllow);
    assert_eq!(world.findings(), []);
}

#[test]
fn stale() {
    let world =
        World::new().deployment("web", 3).budget("web", "maxUnavailable: 1").change_budget(|budget| {
            budget.generation = 2;
            budget.spec_since = Some(ago(30));
        });
    world.finds(
        Finding::Stale,
        "Budget shop/web (maxUnavailable: 1) was written 2026-12-01T09:59:30Z and is not \
         processed since (generation 2, observed 1), so the server refuses evictions: is \
         the disruption controller down?",
        "check that kube-controller-manager runs and is not overloaded",
    );
}

#[test]
fn of_three_budgets_one_is_kept() {
    let world = World::new().stateful_set("web", 1).budget("web", "maxUnavailable: 1");
    let world = world.budget("a", "maxUnavailable: 1").budget("b", "maxUnavailable: 1");
    let patience = Patience::default();
    let explainer = Explainer::new(&world.cluster, NOW, &patience);
    let key = BudgetKey { namespace: "shop".into(), name: "web".into() };
    let found = explainer.findings(world.cluster.budget(&key).expect("the budget is there"));
    let remedies: Vec<&str> = found.iter().map(|found| found.remedy.as_str()).collect();
    let keep = "of shop/web, shop/a and shop/b keep one that selects these pods: delete the others, or narrow their \
                selectors";
    assert_eq!(remedies, [keep]);
}
