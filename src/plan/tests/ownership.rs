//! Whose nodes they are.

use super::*;
use crate::plan::Unreadable;

fn draining(changes: &Value) -> World {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], changes));
    for _ in 0..3 {
        world.step();
    }
    assert!(world.claimed("a"));
    world
}

#[test]
fn the_claim_names_plan_run_and_time() {
    let world = draining(&json!({}));
    assert_eq!(&*world.marks("a")[names::CLAIM], "p/uid-p/1/2027-01-15T08:00:00Z");
}

#[test]
fn a_foreign_cordon_stays() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    world.set_node("a", |node| node.unschedulable = true);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert!(world.cordoned("a"), "it was cordoned before");
    assert!(world.marks("a").is_empty());
}

#[test]
fn a_node_is_kept_cordoned_where_asked_and_the_mark_goes_when_it_is_no_longer_true() {
    let mut world = draining(&json!({"handOff": {"then": "KeepCordoned"}}));
    world.run(None);
    assert!(world.cordoned("a"));
    assert_eq!(world.marks("a"), BTreeMap::from([(names::KEPT_CORDONED.into(), "p".into())]));
    world.set_node("a", |node| node.unschedulable = false);
    world.run(None);
    assert!(world.marks("a").is_empty() && !world.cordoned("a"));
}

#[test]
fn uncordoning_by_hand_cancels_the_node() {
    let mut world = draining(&json!({}));
    world.set_node("a", |node| node.unschedulable = false);
    world.run(None);
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("UncordonedByHand"));
    assert!(world.evicted.is_empty() && !world.cordoned("a") && world.marks("a").is_empty());
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_plan_that_is_deleted_gives_its_nodes_back_and_then_goes() {
    let mut world = draining(&json!({}));
    world.edit_plan("p", |plan| {
        plan.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START));
    });
    assert!(matches!(world.step().as_slice(), [Action::PatchNode { change: NodeChange::GiveBack, .. }]));
    assert!(!world.cordoned("a") && world.marks("a").is_empty());
    assert_eq!(world.step(), [Action::RemoveFinalizer]);
    assert!(world.evicted.is_empty());
}

#[test]
fn nodes_of_plans_that_are_gone_are_given_back_but_not_those_of_plans_that_cannot_be_read() {
    let mut world = draining(&json!({}));
    let plan = world.plans.readable.remove(0);
    world.plans.unreadable.push(Arc::new(unreadable(&plan)));
    assert_eq!((world.decide().sweep, world.decide().plans), (vec![], vec![]));
    world.plans.unreadable.clear();
    world.step();
    assert!(!world.cordoned("a") && world.marks("a").is_empty());
}

fn unreadable(plan: &DrainPlan) -> Unreadable {
    Unreadable { metadata: plan.metadata.clone(), why: "unknown variant `Cooling`".into() }
}

#[test]
fn a_plan_that_cannot_be_read_and_is_deleted_gives_its_nodes_back_and_then_goes() {
    let mut world = draining(&json!({}));
    let mut plan = unreadable(&world.plans.readable.remove(0));
    assert!(plan.told().contains("plan p cannot be read by this version of the controller: unknown variant"));
    plan.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START));
    let uid = plan.uid().to_owned();
    world.plans.unreadable.push(Arc::new(plan));
    assert_eq!(world.decide().plans, [], "it still holds a node");
    let sweep = world.decide().sweep;
    assert!(
        matches!(sweep.as_slice(), [Action::PatchNode { change: NodeChange::GiveBack, .. }]),
        "{sweep:?}"
    );
    world.step();
    assert!(!world.cordoned("a") && world.marks("a").is_empty());
    let decisions = world.decide();
    let [decision] = decisions.plans.as_slice() else { panic!("{decisions:?}") };
    assert_eq!((&decision.uid, &decision.status), (&uid, &None));
    assert_eq!(decision.actions, [Action::RemoveFinalizer]);
}

#[test]
fn a_node_whose_start_cannot_be_read_is_bounded_from_now_on() {
    let mut world = draining(&json!({"timeouts": {"node": "10m"}}));
    world.edit_plan("p", |plan| plan.status.as_mut().unwrap().nodes[0].started_at = None);
    world.wait(5);
    world.step();
    assert_eq!(world.node_status("p", "a").started_at.as_ref().unwrap().0, world.now);
    world.wait(599);
    world.step();
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Draining);
    world.wait(1);
    world.step();
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Failed);
}

#[test]
fn a_claim_that_cannot_be_read_is_left_alone() {
    let mut world = World::new().node("a");
    for odd in ["", "x", "p/uid-p", "a/b/c/d/e", "//x/y"] {
        world.set_node("a", |node| {
            node.unschedulable = true;
            node.annotations.insert(names::CLAIM.into(), odd.into());
        });
        assert_eq!(world.decide().sweep, [], "{odd}");
    }
}

#[test]
fn a_node_of_another_plan_waits_for_it() {
    let mut world = draining(&json!({}));
    world = world.plan("q", &over(&["a"], &json!({})));
    world.step();
    assert_eq!(world.status("q").node_counts.as_ref().unwrap().pending, 1);
    assert_eq!(world.status("q").conditions[0].message, "0 of 1 node done; a: held by plan p");
    world.run(None);
    assert_eq!((world.phase("p"), world.phase("q")), (PlanPhase::Completed, PlanPhase::Completed));
    assert_eq!(world.evicted, ["web-0"]);
}

#[test]
fn two_plans_born_together_take_a_node_once() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a"], None)
        .plan("p", &over(&["a"], &json!({})))
        .plan("q", &over(&["a"], &json!({})));
    world.step();
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().draining, 1);
    assert_eq!(world.status("q").node_counts.as_ref().unwrap().draining, 0);
}

#[test]
fn a_node_that_another_tool_takes_away_is_not_started() {
    let mut world = World::new().node("a").plan("p", &over(&["a"], &json!({})));
    let taint = crate::cluster::Taint {
        key: "ToBeDeletedByClusterAutoscaler".into(),
        value: "1".into(),
        effect: "NoSchedule".into(),
    };
    world.set_node("a", |node| node.taints.push(taint));
    world.run(None);
    world.wait(60);
    world.run(None);
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("ClaimedByOther"));
    assert!(world.changes.is_empty());
}

#[test]
fn a_node_that_leaves_the_selection_is_given_back() {
    let selector = json!({"nodes": {"selector": {"matchLabels": {"pool": "workers"}}}});
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&[], &selector));
    for _ in 0..3 {
        world.step();
    }
    world.set_node("a", |node| node.labels = Labels::default());
    world.run(None);
    assert!(!world.cordoned("a") && world.marks("a").is_empty() && world.evicted.is_empty());
    assert_ne!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn the_order_in_which_plans_are_observed_does_not_matter() {
    let spec = over(&["a", "b"], &json!({}));
    let mut world = World::new().node("a").node("b").plan("p", &spec).plan("q", &spec);
    world = world.plan("waits", &over(&["a"], &json!({})));
    world.step();
    // Both say that they drain it, as after a write that was decided from an old status.
    let status = world.status("p").clone();
    world.edit_plan("q", |plan| plan.status = Some(status));
    let decisions = world.decide();
    let waits = decisions.plans.iter().find(|decision| decision.plan == "waits").unwrap();
    let message = waits.status.as_ref().unwrap().nodes[0].message.clone().unwrap();
    assert!(message.contains("plan p"), "{message}");
    world.plans.readable.reverse();
    assert_eq!(world.decide(), decisions);
}

#[test]
fn a_cordon_that_a_hand_off_has_left_is_taken_up_with_its_node_and_lifted() {
    let mut world = World::new().node("a").plan("p", &over(&["a"], &json!({})));
    world.set_node("a", |node| {
        node.unschedulable = true;
        node.annotated = true;
        node.annotations.insert(names::LEFT_CORDONED.into(), "old".into());
    });
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert!(!world.cordoned("a") && world.marks("a").is_empty(), "{:?}", world.marks("a"));
}
