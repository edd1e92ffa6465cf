//! The taint on the nodes whose turn comes soon.

use super::*;
use crate::cluster::Taint;

/// A plan over these nodes, each with one pod of `web`, until the first is claimed and all marks are there.
fn under_way(nodes: &[&str], changes: &Value) -> World {
    let mut world = nodes.iter().fold(World::new(), |world, node| world.node(node));
    world = world.service("web", nodes, Some(("maxUnavailable", 1))).plan("p", &over(nodes, changes));
    for _ in 0..3 {
        world.step();
    }
    world
}

fn marked<'n>(world: &World, nodes: &[&'n str]) -> Vec<&'n str> {
    nodes.iter().filter(|node| world.marked(node)).copied().collect()
}

fn foreign() -> Taint {
    Taint { key: "example.com/gpu".into(), value: "yes".into(), effect: "NoSchedule".into() }
}

#[test]
fn the_nodes_to_come_are_marked_and_each_loses_its_mark_with_its_claim() {
    let all = ["a", "b", "c", "d"];
    let mut world = under_way(&all, &json!({}));
    assert_eq!(marked(&world, &all), ["b", "c", "d"]);
    assert!(world.claimed("a"));
    world.run(Some("spare"));
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 4));
    assert_eq!(marked(&world, &all), Vec::<&str>::new());
    let unmarked = world.changes.iter().filter(|(_, change)| *change == NodeChange::Unmark).count();
    assert_eq!(unmarked, 0, "a claim takes the mark along in the same patch: {:?}", world.changes);
}

#[test]
fn ten_nodes_are_marked_or_twice_as_many_as_are_drained_at_once() {
    let names: Vec<String> = (10..50).map(|number| format!("n{number}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(marked(&under_way(&all, &json!({})), &all).len(), 10);
    assert_eq!(marked(&under_way(&all, &json!({"pace": {"maxConcurrentNodes": 7}})), &all).len(), 14);
    let world = under_way(&all, &json!({"pace": {"maxConcurrentNodes": "25%"}}));
    assert_eq!(marked(&world, &all), all[10..30]);
}

#[test]
fn taints_of_others_stay_as_they_are() {
    let mut world = World::new().node("a").node("b").service("web", &["a", "b"], None);
    world.set_node("b", |node| node.taints = vec![foreign()]);
    world = world.plan("p", &over(&["a", "b"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    assert!(world.marked("b"));
    world.set_node("b", |node| node.taints.push(foreign()));
    world.run(Some("spare"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert_eq!(world.cluster.node("b").unwrap().taints, [foreign(), foreign()]);
}

#[test]
fn a_blocked_node_is_not_marked() {
    let mut world = World::new().node("a").node("b").node("c").service("web", &["a", "c"], None);
    world.cluster.apply_pod(Pod { owner: None, ..pod("bare", "bare", Some("b")) });
    world = world.plan("p", &over(&["a", "b", "c"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    assert_eq!(marked(&world, &["a", "b", "c"]), ["c"]);
}

#[test]
fn whatever_stops_a_plan_takes_the_marks_back() {
    let all = ["a", "b", "c"];
    let delete = |plan: &mut DrainPlan| {
        plan.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START));
    };
    let suspend = |plan: &mut DrainPlan| plan.spec.suspend = true;
    let leave = |plan: &mut DrainPlan| plan.spec.nodes.names = vec!["a".into()];
    let edits: [&dyn Fn(&mut DrainPlan); 3] = [&delete, &suspend, &leave];
    for edit in edits {
        let mut world = under_way(&all, &json!({}));
        world.edit_plan("p", edit);
        world.step();
        assert_eq!(marked(&world, &all), Vec::<&str>::new());
    }
    // The object is gone, and nobody was there to see it go.
    let mut world = under_way(&all, &json!({}));
    world.plans.readable.clear();
    world.step();
    assert_eq!(marked(&world, &all), Vec::<&str>::new());
}

#[test]
fn the_finalizer_stays_until_the_last_mark_is_gone() {
    let mut world = under_way(&["a", "b"], &json!({}));
    world.edit_plan("p", |plan| {
        plan.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START));
    });
    world.set_node("b", |_| {});
    let actions = world.step();
    assert!(!actions.contains(&Action::RemoveFinalizer) && !world.marked("b"), "{actions:?}");
    assert_eq!(world.step(), [Action::RemoveFinalizer]);
}

#[test]
fn a_mark_stays_while_another_plan_wants_it() {
    let mut world = under_way(&["a", "b"], &json!({}));
    world = world.node("c").plan("q", &over(&["c", "b"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.edit_plan("p", |plan| plan.spec.suspend = true);
    world.step();
    assert!(world.marked("b"));
    world.edit_plan("q", |plan| plan.spec.suspend = true);
    world.step();
    assert!(!world.marked("b"));
}

#[test]
fn evictions_wait_a_moment_for_the_marks_and_not_longer() {
    let mut world = World::new().node("a").node("b").service("web", &["a", "b"], None);
    world = world.plan("p", &over(&["a", "b"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    world.set_node("b", |node| node.taints.clear());
    let decisions = world.decide();
    assert_eq!(evictions(&decisions.plans[0].actions).len(), 0);
    assert_eq!((decisions.marks.len(), decisions.wake_at), (1, Some(START + SignedDuration::from_secs(2))));
    world.wait(2);
    assert_eq!(evictions(&world.decide().plans[0].actions), ["web-0"]);
}
