//! How nodes and plans end.

use super::*;

fn stuck() -> World {
    World::new()
        .node("a")
        .service("web", &["a", "b"], Some(("minAvailable", 2)))
        .plan("p", &over(&["a"], &json!({})))
}

#[test]
fn a_node_with_a_pod_that_never_clears_is_not_touched_and_the_idle_clock_ends_the_plan() {
    let mut world = stuck();
    world.run(None);
    assert_eq!((world.phase("p"), world.changes.len()), (PlanPhase::Running, 0));
    let node = world.node_status("p", "a");
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Pending, Some("Blocked")));
    assert_eq!(node.waiting[0].reason, "BudgetNeverAllows");
    assert_eq!(world.decide().wake_at, Some(START + SignedDuration::from_secs(60)));
    assert!(world.status("p").conditions.iter().any(|c| c.type_ == "Stalled" && c.reason == "AllBlocked"));
    world.wait(60);
    world.run(None);
    assert_eq!((world.phase("p"), world.changes.len()), (PlanPhase::Failed, 0));
    let node = world.node_status("p", "a");
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Failed, Some("Blocked")));
    assert!(node.message.as_ref().unwrap().contains("shop/web"), "{node:#?}");
    assert_eq!(node.waiting.len(), 1, "the report keeps what held the node");
}

#[test]
fn a_blocked_node_is_taken_up_when_its_verdict_changes() {
    let mut world = stuck();
    world.run(None);
    world.wait(30);
    world.cluster.apply_budget(pdb("web", "minAvailable", 1));
    world.report_budgets();
    world.run(Some("b"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert_eq!(world.status("p").idle_since, None);
}

#[test]
fn a_stuck_node_costs_only_itself() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .node("c")
        .service("db", &["a", "d"], Some(("minAvailable", 2)))
        .service("web", &["b", "c"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b", "c"], &json!({})));
    world.run(Some("d"));
    world.wait(60);
    world.run(Some("d"));
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    assert_eq!(world.status("p").progress.as_deref(), Some("2/3"));
    let ready = world.status("p").conditions.iter().find(|c| c.type_ == "Ready").unwrap().message.clone();
    assert_eq!(ready, "2 of 3 nodes done, 1 failed; a: Blocked (BudgetNeverAllows of shop/db)");
}

/// A drain of `a` that no pod leaves, at its deadline.
fn overdue(changes: &Value) -> World {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], changes));
    for _ in 0..4 {
        world.step();
    }
    assert_eq!(world.evicted, ["web-0"]);
    world.wait(59);
    assert_eq!(world.step(), []);
    world.wait(1);
    world.step();
    world
}

#[test]
fn at_its_deadline_a_node_has_failed_and_is_given_back() {
    let mut world = overdue(&json!({}));
    let node = world.node_status("p", "a");
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Failed, Some("TimedOut")));
    assert!(world.claimed("a"), "first it is written down");
    world.step();
    assert!(!world.cordoned("a") && world.marks("a").is_empty());
    assert_eq!(world.step(), [Action::RemoveFinalizer]);
    assert_eq!(world.phase("p"), PlanPhase::Failed);
}

#[test]
fn or_kept_with_an_annotation_that_says_by_whom() {
    let mut world = overdue(&json!({"onNodeTimeout": "Keep"}));
    world.step();
    assert!(world.cordoned("a"));
    assert_eq!(world.marks("a"), BTreeMap::from([(names::KEPT_CORDONED.into(), "p".into())]));
}

#[test]
fn suspension_does_not_stop_the_clock() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.edit_plan("p", |plan| plan.spec.suspend = true);
    world.wait(60);
    world.run(None);
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Failed);
    assert!(!world.cordoned("a"));
}

#[test]
fn a_plan_that_has_taken_too_long_ends_and_gives_its_nodes_back() {
    let timeouts = json!({"timeouts": {"node": "60s", "plan": "30s"}});
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a"], None)
        .plan("p", &over(&["a", "b"], &timeouts));
    for _ in 0..4 {
        world.step();
    }
    world.wait(30);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Failed);
    assert!(!world.cordoned("a") && !world.claimed("a"));
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().pending, 1);
}

#[test]
fn one_failure_more_than_allowed_ends_the_plan_at_once() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "b"], None)
        .plan("p", &over(&["a", "b"], &json!({"maxFailedNodes": 0})));
    for _ in 0..4 {
        world.step();
    }
    world.wait(60);
    // Nobody confirms the end of a's pod.
    for _ in 0..10 {
        world.step();
    }
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    assert_eq!(world.evicted, ["web-0"], "b is not taken");
    assert!(!world.cordoned("a") && !world.cordoned("b"));
}

#[test]
fn a_node_deleted_meanwhile_is_skipped_and_its_slot_is_free() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "b"], None)
        .plan("p", &over(&["a", "b"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.cluster.delete_node("a");
    world.run(None);
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("NodeGone"));
    assert_eq!(
        (world.phase("p"), world.node_status("p", "b").phase),
        (PlanPhase::Completed, NodePhase::Done)
    );
}

#[test]
fn a_node_reborn_under_its_name_is_another_node() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.wait(1);
    let born = world.now;
    world.cluster.delete_node("a");
    world.set_node("a", |node| (node.uid, node.created) = ("uid-other".into(), Some(born)));
    world.run(None);
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("NodeGone"));
    assert!(world.evicted.is_empty() && !world.cordoned("a"));
}

#[test]
fn names_without_a_node_are_skipped_and_no_node_at_all_is_never_completed() {
    let mut world = World::new()
        .node("a")
        .plan("p", &over(&["a", "typo"], &json!({})))
        .plan("q", &over(&["typo"], &json!({})));
    world.run(None);
    assert_eq!(world.node_status("p", "typo").reason.as_deref(), Some("NodeGone"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert_eq!(world.phase("q"), PlanPhase::Pending);
    assert!(world.status("q").conditions.iter().any(|c| c.type_ == "Stalled" && c.reason == "NoNodes"));
}

#[test]
fn a_node_in_a_phase_that_nobody_here_writes_ends_all_the_same() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.edit_plan("p", |plan| plan.status.as_mut().unwrap().nodes[0].phase = NodePhase::HandedOff);
    world.run(None);
    assert_eq!(
        (world.phase("p"), world.node_status("p", "a").phase),
        (PlanPhase::Completed, NodePhase::Done)
    );
    assert!(!world.cordoned("a") && world.marks("a").is_empty());
}
