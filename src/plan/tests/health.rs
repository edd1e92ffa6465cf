//! The health of the cluster, and the pause between two nodes.

use super::*;

fn condition<'w>(world: &'w World, plan: &str, type_: &str) -> Option<(&'w str, &'w str, &'w str)> {
    let found = world.status(plan).conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.as_str(), found.reason.as_str(), found.message.as_str()))
}

fn nodes(count: usize) -> World {
    (0..count).fold(World::new(), |world, number| world.node(&format!("n{number:02}")))
}

fn ill(world: &mut World, name: &str) {
    world.set_node(name, |node| node.ready = "False".into());
}

fn press(world: &mut World, name: &str, pressure: &[&str]) {
    world.set_node(name, |node| node.pressure = pressure.iter().map(|name| Text::from(*name)).collect());
}

#[test]
fn no_node_is_started_while_too_many_are_unhealthy() {
    let mut world = nodes(12);
    ill(&mut world, "n09");
    press(&mut world, "n10", &["DiskPressure"]);
    world = world.plan("p", &over(&["n00"], &json!({})));
    world.step();
    // A tenth of twelve, rounded up.
    assert_eq!(world.node_status("p", "n00").phase, NodePhase::Draining);
    let (status, reason, message) = condition(&world, "p", "NodesHealthy").unwrap();
    assert_eq!((status, reason), ("True", "FewUnhealthy"));
    let told =
        "2 of 12 nodes are unhealthy (n09 not Ready, n10 DiskPressure), and pace.maxUnhealthyNodes allows 2";
    assert_eq!(message, told);

    world = world.plan("q", &over(&["n01"], &json!({})));
    press(&mut world, "n11", &["MemoryPressure", "PIDPressure"]);
    world.step();
    assert_eq!(
        condition(&world, "q", "NodesHealthy").map(|(status, reason, _)| (status, reason)),
        Some(("False", "TooManyUnhealthy"))
    );
    assert!(world.status("q").nodes.is_empty() && world.status("q").idle_since.is_some());
    let (.., message) = condition(&world, "q", "Ready").unwrap();
    assert!(message.contains("n01: 3 of 12 nodes are unhealthy (n09 not Ready, n10 DiskPressure, n11 MemoryPressure, PIDPressure)"), "{message}");
    press(&mut world, "n11", &[]);
    world.run(None);
    assert_eq!((world.phase("p"), world.phase("q")), (PlanPhase::Completed, PlanPhase::Completed));
    assert_eq!(condition(&world, "q", "NodesHealthy"), None, "an ended plan looks no more");
}

#[test]
fn the_node_itself_does_not_count_so_a_broken_one_can_be_drained() {
    let mut world = nodes(3);
    ill(&mut world, "n00");
    world = world.plan("p", &over(&["n01", "n00"], &json!({"pace": {"maxUnhealthyNodes": 0}})));
    world.step();
    let draining: Vec<&str> = world
        .status("p")
        .nodes
        .iter()
        .filter(|node| node.phase == NodePhase::Draining)
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(draining, ["n00"]);
    assert_eq!(condition(&world, "p", "NodesHealthy").map(|(status, ..)| status), Some("False"));
}

#[test]
fn a_cluster_that_stays_ill_ends_the_plan_by_its_idle_clock() {
    let mut world = nodes(3);
    ill(&mut world, "n02");
    world = world.plan("p", &over(&["n00", "n01"], &json!({"pace": {"maxUnhealthyNodes": "0%"}})));
    world.run(None);
    world.wait(60);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    for node in ["n00", "n01"] {
        assert_eq!(world.node_status("p", node).reason.as_deref(), Some("AwaitingHealth"));
    }
    assert!(world.changes.is_empty());
}

#[test]
fn the_next_node_is_started_when_the_last_one_has_been_done_for_a_while() {
    let mut world = nodes(3);
    world = world.plan("p", &over(&["n00", "n01", "n02"], &json!({"pace": {"soak": "90s"}})));
    world.run(None);
    assert_eq!(world.node_status("p", "n00").phase, NodePhase::Done);
    assert_eq!(world.status("p").idle_since, None, "a pause is no standstill");
    let (.., message) = condition(&world, "p", "Ready").unwrap();
    let told = "n01, n02: node n00 is done since 2027-01-15T08:00:00Z, and by pace.soak the next one is started at \
                2027-01-15T08:01:30Z at the earliest";
    assert!(message.contains(told), "{message}");
    assert_eq!(world.decide().wake_at, Some(START + SignedDuration::from_secs(90)));
    world.wait(89);
    world.step();
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().draining, 0);
    world.wait(1);
    world.step();
    assert_eq!(world.node_status("p", "n01").phase, NodePhase::Draining);
    world.run(None);
    world.wait(90);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn what_keeps_all_nodes_besides_the_pause_is_a_standstill() {
    let mut world = nodes(2);
    world.cluster.apply_pod(Pod { owner: None, ..pod("bare", "bare", Some("n01")) });
    world = world.plan("p", &over(&["n00", "n01"], &json!({"pace": {"soak": "1h"}})));
    world.run(None);
    assert!(world.status("p").idle_since.is_some());
    world.wait(60);
    world.run(None);
    assert_eq!(world.node_status("p", "n01").reason.as_deref(), Some("Blocked"));
}

#[test]
fn when_the_last_node_was_done_is_known_in_a_plan_of_many_nodes_too() {
    let mut world = nodes(0);
    let names: Vec<String> = (0..200).map(|number| format!("m{number:03}")).collect();
    for name in &names {
        world.set_node(name, |_| {});
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let pace = json!({"pace": {"soak": "1m", "maxConcurrentNodes": 150}});
    world = world.plan("p", &over(&all, &pace));
    world.run(None);
    let done = world.status("p").node_counts.as_ref().unwrap().done;
    assert_eq!(done, 150);
    world.wait(59);
    world.step();
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().draining, 0);
    world.wait(1);
    world.step();
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().draining, 50);
}
