//! What is started and evicted, and in which order.

use super::*;
use crate::cluster::Scale;

#[test]
fn a_node_is_written_down_before_it_is_touched_and_the_finalizer_comes_before_the_claim() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    assert_eq!(world.step(), []);
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Draining);
    assert!(!world.cordoned("a"));
    assert_eq!(world.step(), [Action::AddFinalizer]);
    assert!(matches!(world.step().as_slice(), [Action::PatchNode { change: NodeChange::Claim { .. }, .. }]));
    assert!(world.cordoned("a"));
    assert_eq!(evictions(&world.step()), ["web-0"]);
}

#[test]
fn as_many_pods_of_a_budget_go_as_it_has_room() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a", "a", "b", "b", "b"], Some(("maxUnavailable", 2)))
        .plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    assert_eq!(evictions(&world.step()).len(), 2);
    assert_eq!(evictions(&world.step()).len(), 0, "nothing is back yet");
    world.replace_going(Some("b"));
    assert_eq!(evictions(&world.step()).len(), 1);
}

/// It might be Ready when its eviction arrives, and that would then cost a disruption which is not there. Where no kubelet
/// says so it will not be.
#[test]
fn a_new_pod_is_given_time_to_become_ready_unless_its_node_is_ill() {
    let evicted = |ready: &str| {
        let mut world = World::new()
            .node("a")
            .service("web", &["a", "b"], Some(("maxUnavailable", 1)))
            .plan("p", &over(&["a"], &json!({})));
        let new = Pod { ready: false, created: Some(world.now), ..pod("web-0", "web", Some("a")) };
        world.cluster.apply_pod(new);
        world.report_budgets();
        world.set_node("a", |node| node.ready = ready.into());
        for _ in 0..5 {
            world.step();
        }
        world.evicted.len()
    };
    assert_eq!((evicted("True"), evicted("Unknown")), (0, 1));
}

#[test]
fn a_reported_allowance_decides_alone_only_when_the_scale_was_asked_for_in_vain() {
    // Another pod keeps the node in progress.
    let mut world = World::new().node("a").service("db", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..4 {
        world.step();
    }
    assert_eq!(world.evicted, ["db-0"]);
    let shard = OwnerRef { api_version: "example.com/v1".into(), kind: "Shard".into(), ..owner("shard") };
    for name in ["web-0", "web-1"] {
        let owner = Some(Arc::new(shard.clone()));
        world.cluster.apply_pod(Pod { owner, ..pod(name, "web", Some("a")) });
    }
    let mut budget = pdb("web", "maxUnavailable", 1);
    budget.status.disruptions_allowed = 1;
    world.cluster.apply_budget(budget);
    assert_eq!(evictions(&world.step()).len(), 0, "whoever has just started knows no scale");
    assert_eq!(world.decide().scales, [("shop".into(), shard)]);
    world.cluster.record_scale("shard".into(), Scale::Unreadable("403".into()));
    assert_eq!(evictions(&world.step()).len(), 1);
}

#[test]
fn a_service_is_drained_node_by_node_and_every_pod_moves_once() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .node("c")
        .service("web", &["a", "a", "b", "b", "c", "c"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b", "c"], &json!({})));
    world.run(Some("spare"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert_eq!(world.evicted.len(), 6);
    let status = world.status("p");
    assert_eq!(status.progress.as_deref(), Some("3/3"));
    assert_eq!(status.pod_counts.as_ref().unwrap().evicted, 6);
    for node in ["a", "b", "c"] {
        assert!(!world.cordoned(node) && world.marks(node).is_empty(), "{node}");
    }
    let claims: Vec<&str> = world
        .changes
        .iter()
        .filter(|(_, change)| matches!(change, NodeChange::Claim { .. }))
        .map(|(node, _)| node.as_str())
        .collect();
    assert_eq!(claims, ["a", "b", "c"], "in the order written, one after the other");
}

#[test]
fn two_plans_share_the_room_of_a_budget_and_the_older_claim_has_it_first() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "b", "c"], Some(("maxUnavailable", 1)))
        .plan("first", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    // The claim is there, the eviction is not sent yet: now comes another plan.
    world.wait(2);
    world = world.plan("second", &over(&["b"], &json!({})));
    let sent: Vec<Vec<String>> =
        (0..4).map(|_| evictions(&world.step()).into_iter().map(str::to_owned).collect()).collect();
    assert_eq!(sent, [vec!["web-0".to_owned()], vec![], vec![], vec![]]);
    world.replace_going(Some("c"));
    assert_eq!(evictions(&world.step()), ["web-1"]);
}

#[test]
fn refused_pods_wait_until_they_may_be_tried_again_or_their_budget_changes() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.cluster.evictions.refused(crate::cluster::Refusal {
        uid: "uid-web-0".into(),
        at: world.now,
        code: 500,
        reason: "InternalError".into(),
        message: "failed calling webhook".into(),
        causes: vec![],
        budgets: vec![BudgetKey { namespace: "shop".into(), name: "web".into() }],
        times: 1,
        retry_at: world.now + SignedDuration::from_secs(5),
    });
    let decisions = world.decide();
    assert_eq!(evictions(&decisions.plans[0].actions).len(), 0);
    assert_eq!(decisions.wake_at, Some(world.now + SignedDuration::from_secs(5)));
    world.report_budgets();
    assert_eq!(evictions(&world.step()), ["web-0"]);
}

#[test]
fn a_pod_is_not_judged_for_ever_by_what_the_server_once_said() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    // Nobody puts it to the test again.
    world.edit_plan("p", |plan| plan.spec.suspend = true);
    world.cluster.evictions.refused(crate::cluster::Refusal {
        uid: "uid-web-0".into(),
        at: world.now,
        code: 403,
        reason: "Forbidden".into(),
        message: "not now".into(),
        causes: vec![],
        budgets: vec![],
        times: 1,
        retry_at: world.now + SignedDuration::from_secs(1),
    });
    world.step();
    assert_eq!(world.node_status("p", "a").waiting[0].reason, "ServerError");
    assert_eq!(world.decide().wake_at, Some(world.now + SignedDuration::from_secs(6)));
    world.wait(6);
    world.cluster.evictions.expire(world.now);
    world.step();
    assert_eq!(world.node_status("p", "a").waiting, []);
}

#[test]
fn a_suspended_plan_evicts_nothing_and_goes_on_later() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.edit_plan("p", |plan| plan.spec.suspend = true);
    assert_eq!(world.step(), []);
    assert_eq!(world.phase("p"), PlanPhase::Suspended);
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Draining);
    world.edit_plan("p", |plan| plan.spec.suspend = false);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_plan_that_is_born_suspended_starts_nothing() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a"], None)
        .plan("p", &over(&["a"], &json!({"suspend": true})));
    world.run(None);
    assert_eq!((world.phase("p"), world.status("p").started_at.clone()), (PlanPhase::Suspended, None));
}

#[test]
fn a_node_is_drained_only_when_the_server_confirms_that_it_is_empty() {
    let mut world = World::new().node("a").plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    let actions = world.decide().plans.remove(0).actions;
    assert!(matches!(actions.as_slice(), [Action::ConfirmEmpty { .. }]), "{actions:?}");
    // A pod that was bound just before the cordon comes to light; what the list has shown before is void.
    world.cluster.evictions.ask_empty("a".into(), START);
    world.cluster.apply_pod(pod("late", "web", Some("a")));
    world.cluster.evictions.confirm_empty("a", START);
    assert_eq!(evictions(&world.step()), ["late"]);
    world.replace_going(None);
    let actions = world.decide().plans.remove(0).actions;
    assert!(matches!(actions.as_slice(), [Action::ConfirmEmpty { .. }]), "{actions:?}");
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_node_born_after_the_start_never_joins() {
    let selector = json!({"nodes": {"selector": {"matchLabels": {"pool": "workers"}}}});
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&[], &selector));
    world.step();
    world.wait(5);
    let born = world.now;
    world.set_node("b", |node| node.created = Some(born));
    world.run(None);
    assert_eq!(world.status("p").progress.as_deref(), Some("1/1"));
}

#[test]
fn as_many_nodes_are_in_progress_as_the_pace_allows() {
    let nodes = ["a", "b", "c", "d", "e"];
    let in_progress = |pace: &Value| {
        let mut world = nodes.iter().fold(World::new(), |world, node| world.node(node));
        world = world.plan("p", &over(&nodes, &json!({"pace": {"maxConcurrentNodes": pace}})));
        world.step();
        world.status("p").node_counts.as_ref().unwrap().draining
    };
    assert_eq!(in_progress(&json!(2)), 2);
    assert_eq!(in_progress(&json!("50%")), 2, "rounded down");
    assert_eq!(in_progress(&json!("1%")), 1, "at least one");
    assert_eq!(in_progress(&json!("100%")), 5);
    assert_eq!(in_progress(&json!(9)), 5);
}

#[test]
fn with_several_nodes_at_once_the_room_of_a_budget_goes_to_them_in_order() {
    let nodes = ["c", "a", "b"];
    let mut world = nodes.iter().fold(World::new(), |world, node| world.node(node));
    world = world
        .service("web", &["a", "b", "c", "spare"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&nodes, &json!({"pace": {"maxConcurrentNodes": "100%"}})));
    for _ in 0..3 {
        world.step();
    }
    assert!(nodes.iter().all(|node| world.claimed(node)));
    world.run(Some("spare"));
    assert_eq!(world.evicted, ["web-2", "web-0", "web-1"]);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_smaller_pace_starts_no_node_until_enough_have_ended() {
    let mut world = ["a", "b", "c"].iter().fold(World::new(), |world, node| world.node(node));
    world = world
        .service("web", &["a", "b", "c"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b", "c"], &json!({"pace": {"maxConcurrentNodes": 2}})));
    for _ in 0..4 {
        world.step();
    }
    world.edit_plan("p", |plan| {
        plan.spec.pace = Some(crate::api::Pace {
            max_concurrent_nodes: Some(crate::api::IntOrPercent::Int(1)),
            await_replacements: Some(false),
            ..crate::api::Pace::default()
        });
    });
    let draining = |world: &World| world.status("p").node_counts.as_ref().unwrap().draining;
    while world.status("p").node_counts.as_ref().unwrap().done < 1 {
        world.step();
        world.replace_going(Some("spare"));
        assert!(draining(&world) <= 2);
    }
    assert_eq!(draining(&world), 1);
    world.run(Some("spare"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_new_pod_is_not_evicted_while_it_becomes_ready() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "b"], Some(("maxUnavailable", 1)))
        .service("free", &["a"], None)
        .plan("p", &over(&["a"], &json!({})));
    for name in ["web-0", "free-0"] {
        let mut new = Pod::clone(world.cluster.pods_on("a").find(|pod| &*pod.name == name).unwrap());
        (new.ready, new.created) = (false, Some(START - SignedDuration::from_secs(1)));
        world.cluster.apply_pod(new);
    }
    world.report_budgets();
    for _ in 0..3 {
        world.step();
    }
    let decisions = world.decide();
    assert_eq!(evictions(&decisions.plans[0].actions), ["free-0"], "no budget can refuse it");
    assert_eq!(decisions.wake_at, Some(START + SignedDuration::from_secs(29)));
    world.wait(29);
    assert_eq!(evictions(&world.step()), ["web-0", "free-0"], "it does not become Ready: it costs nothing");
}

#[test]
fn a_node_whose_claim_is_still_under_way_is_not_overtaken_by_a_younger_one() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "b", "c"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b"], &json!({"pace": {"maxConcurrentNodes": 2}})));
    for _ in 0..3 {
        world.step();
    }
    let mut claims = BTreeMap::new();
    world.set_node("a", |node| {
        node.unschedulable = false;
        claims = std::mem::take(&mut node.annotations);
    });
    assert_eq!(evictions(&world.decide().plans[0].actions).len(), 0);
    let mut later = World { now: START + SignedDuration::from_secs(2), ..world };
    assert_eq!(evictions(&later.decide().plans[0].actions), ["web-1"], "but not for long");
    later.now = START;
    later.set_node("a", |node| (node.unschedulable, node.annotations) = (true, claims));
    assert_eq!(evictions(&later.step()), ["web-0"]);
}
