//! Plans that only look.

use super::*;
use crate::cluster::Right;

fn condition(world: &World, type_: &str) -> Option<(String, String)> {
    let found = world.status("p").conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.clone(), found.message.clone()))
}

#[test]
fn everything_is_judged_and_nothing_touched() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .node("c")
        .service("web", &["a", "b"], Some(("maxUnavailable", 1)))
        .service("db", &["b", "c"], Some(("minAvailable", 2)))
        .service("free", &["a", "a"], None)
        .plan("p", &over(&["a", "b", "c"], &json!({"preflightOnly": true})));
    world.run(None);
    assert_eq!((world.phase("p"), world.evicted.len(), world.changes.len()), (PlanPhase::Pending, 0, 0));
    let status = world.status("p").clone();
    assert_eq!(
        (status.started_at.clone(), world.plans.readable[0].metadata.finalizers.clone()),
        (None, None)
    );
    let counts = status.node_counts.unwrap();
    assert_eq!((counts.total, counts.pending, counts.blocked), (3, 3, 2));
    let listed: Vec<&str> = status.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(listed, ["b", "c"]);
    let (passed, message) = condition(&world, "PreflightPassed").unwrap();
    assert_eq!(
        (passed.as_str(), message.as_str()),
        (
            "False",
            "preflight: 1 of 3 nodes can be drained, by 3 evictions of pods; b, c: Blocked (BudgetNeverAllows of shop/db)"
        )
    );
    assert_eq!(condition(&world, "Ready").unwrap(), ("False".to_owned(), message));
    assert_eq!((condition(&world, "Reconciling"), condition(&world, "Stalled")), (None, None));
    assert_eq!(status.blocked_on.as_deref(), Some("shop/db"));

    // The idle clock does not run.
    world.wait(3600);
    world.run(None);
    assert_eq!((world.phase("p"), world.status("p").idle_since.clone()), (PlanPhase::Pending, None));

    // Somebody corrects the budget.
    world.cluster.apply_budget(pdb("db", "minAvailable", 1));
    world.report_budgets();
    world.run(None);
    let (passed, message) = condition(&world, "PreflightPassed").unwrap();
    assert_eq!(
        (passed.as_str(), message.as_str()),
        ("True", "preflight: 3 of 3 nodes can be drained, by 6 evictions of pods")
    );

    world.edit_plan("p", |plan| plan.spec.preflight_only = false);
    world.run(Some("spare"));
    assert_eq!((world.phase("p"), condition(&world, "PreflightPassed")), (PlanPhase::Completed, None));
    assert_eq!(world.evicted.len(), 6);
}

#[test]
fn pods_that_may_take_long_are_listed() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a"], Some(("minAvailable", 1)))
        .plan("p", &over(&["a"], &json!({"preflightOnly": true})));
    for name in ["web-0", "web-1"] {
        let mut pod = pod(name, "web", Some("a"));
        pod.ready = false;
        pod.trouble = None;
        world.cluster.apply_pod(pod);
    }
    world.cluster.apply_budget(pdb("web", "minAvailable", 1));
    world.report_budgets();
    world.run(None);
    let node = world.node_status("p", "a").clone();
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Pending, Some("PreflightOnly")));
    assert_eq!(node.waiting.len(), 2);
    assert_eq!(world.status("p").pod_counts.as_ref().unwrap().waiting, 2);
    let (passed, message) = condition(&world, "PreflightPassed").unwrap();
    assert!(
        passed == "True" && message.contains("2 pods could not go now: shop/web-0 (BudgetUnhealthy)"),
        "{message}"
    );
}

#[test]
fn it_is_not_said_before_it_is_known_whether_pods_may_be_evicted() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a"], None)
        .plan("p", &over(&["a"], &json!({"preflightOnly": true})));
    world.cluster.rights = crate::cluster::Rights::default();
    let asked = world.decide();
    assert!(!asked.rights.is_empty());
    world.step();
    assert_eq!(condition(&world, "PreflightPassed"), None);
    world.cluster.rights.record(None, Right::Granted, world.now);
    world.step();
    assert_eq!(condition(&world, "PreflightPassed").unwrap().0, "True");
}

#[test]
fn a_run_that_has_started_is_not_taken_back() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    for _ in 0..4 {
        world.step();
    }
    assert!(world.cordoned("a"));
    world.edit_plan("p", |plan| plan.spec.preflight_only = true);
    world.run(Some("spare"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn many_nodes_are_not_looked_at_in_every_decision() {
    let names: Vec<String> = (0..60).map(|number| format!("n{number:02}")).collect();
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = names.iter().fold(World::new(), |world, name| world.node(name));
    world = world.service("web", &["n00", "n59"], Some(("minAvailable", 2)));
    world = world.plan("p", &over(&nodes, &json!({"preflightOnly": true})));
    world.run(None);
    let first = world.status("p").clone();
    assert_eq!(first.preflight_at.as_ref().map(|at| at.0), Some(START));
    assert_eq!(condition(&world, "PreflightPassed").unwrap().0, "False");
    // What changes meanwhile is seen at the next look.
    world.cluster.apply_budget(pdb("web", "minAvailable", 1));
    world.report_budgets();
    world.wait(1);
    world.run(None);
    assert_eq!(world.status("p"), &first);
    let due = world.decide().wake_at.unwrap();
    assert_eq!(due, START + SignedDuration::from_millis(1200));
    world.now = due;
    world.run(None);
    assert_eq!(condition(&world, "PreflightPassed").unwrap().0, "True");
    // A changed spec is looked at at once, and so is a time that nobody can have written.
    world.edit_plan("p", |plan| {
        plan.spec.nodes.names.truncate(55);
        plan.metadata.generation = Some(2);
    });
    world.run(None);
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().total, 55);
    world.edit_plan("p", |plan| plan.spec.preflight_only = false);
    world.run(Some("spare"));
    assert_eq!((world.phase("p"), world.status("p").preflight_at.clone()), (PlanPhase::Completed, None));
}

#[test]
fn a_name_without_a_node_is_said_before_the_night() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a"], None)
        .plan("p", &over(&["a", "gohst"], &json!({"preflightOnly": true})));
    world.run(None);
    let (passed, message) = condition(&world, "PreflightPassed").unwrap();
    assert!(passed == "False" && message.ends_with("; there is no node gohst"), "{message}");
}
