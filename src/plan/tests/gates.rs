//! What keeps a node from being started although it could be drained.

use super::*;

fn labelled(world: &mut World, node: &str, key: &str, value: &str) {
    world.set_node(node, |node| {
        let old = node.labels.iter().map(|(key, value)| (key.clone(), value.clone()));
        node.labels = Labels::new(old.chain([(Text::from(key), Text::from(value))]));
    });
}

/// Nodes that are being drained.
fn draining(world: &World, plan: &str) -> Vec<String> {
    let nodes = world.status(plan).nodes.iter().filter(|node| node.phase == NodePhase::Draining);
    let mut names: Vec<String> = nodes.map(|node| node.name.clone()).collect();
    names.sort();
    names
}

fn nodes(names: &[&str]) -> World {
    names.iter().fold(World::new(), |world, name| world.node(name))
}

#[test]
fn one_value_of_the_topology_key_is_finished_before_the_next() {
    let names = ["a1", "b1", "a2", "none", "b2", "a3"];
    let mut world = nodes(&names).service("web", &names, Some(("maxUnavailable", 6)));
    for name in names.iter().filter(|name| **name != "none") {
        labelled(&mut world, name, "zone", &name[..1]);
    }
    let pace = json!({"pace": {"maxConcurrentNodes": 2, "topologyKey": "zone"}});
    world = world.plan("p", &over(&names, &pace));
    world.step();
    assert_eq!(draining(&world, "p"), ["a1", "a2"]);
    let order: Vec<String> = loop {
        world.step();
        let domains: Vec<String> = draining(&world, "p").iter().map(|name| name[..1].to_owned()).collect();
        assert!(domains.windows(2).all(|pair| pair[0] == pair[1]), "{domains:?}");
        world.replace_going(Some("spare"));
        world.wait(1);
        if world.phase("p") == PlanPhase::Completed {
            break world
                .changes
                .iter()
                .filter(|(_, change)| matches!(change, NodeChange::Claim { .. }))
                .map(|(node, _)| node.clone())
                .collect();
        }
    };
    assert_eq!(order, ["a1", "a2", "a3", "b1", "b2", "none"]);
}

#[test]
fn a_node_of_another_domain_says_what_it_waits_for() {
    let mut world = nodes(&["a1", "b1"]);
    labelled(&mut world, "a1", "zone", "a");
    world.cluster.apply_pod(Pod { owner: None, ..pod("bare", "bare", Some("b1")) });
    world = world.service("web", &["a1"], Some(("maxUnavailable", 1)));
    let pace =
        json!({"pace": {"maxConcurrentNodes": 2, "topologyKey": "zone"}, "pods": {"unmanaged": "Evict"}});
    world = world.plan("p", &over(&["a1", "b1"], &pace));
    world.step();
    assert_eq!(draining(&world, "p"), ["a1"]);
    assert!(world.status("p").node_counts.as_ref().unwrap().pending == 1);
    world.run(Some("spare"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn one_control_plane_node_at_a_time_and_none_while_another_is_not_ready() {
    let names = ["m1", "m2", "m3"];
    let mut world = nodes(&names);
    for name in names {
        labelled(&mut world, name, "node-role.kubernetes.io/control-plane", "");
    }
    world.set_node("m3", |node| node.ready = "Unknown".into());
    world = world.plan("p", &over(&["m1", "m2"], &json!({"pace": {"maxConcurrentNodes": 2}})));
    world.run(None);
    assert!(world.changes.is_empty(), "{:?}", world.changes);
    world.set_node("m3", |node| node.ready = "True".into());
    world.step();
    assert_eq!(draining(&world, "p"), ["m1"]);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn the_only_control_plane_node_is_never_started() {
    let mut world = nodes(&["m", "a"]);
    labelled(&mut world, "m", "node-role.kubernetes.io/control-plane", "");
    world = world.plan("p", &over(&["m", "a"], &json!({})));
    world.run(None);
    world.wait(60);
    world.run(None);
    let failed = world.node_status("p", "m");
    assert_eq!((failed.phase, failed.reason.as_deref()), (NodePhase::Failed, Some("ControlPlaneAtRisk")));
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Done);
    assert!(world.changes.iter().all(|(node, _)| node == "a"), "{:?}", world.changes);
}

#[test]
fn all_plans_together_hold_no_more_nodes_cordoned_than_allowed() {
    let mut world = nodes(&["a", "b", "c", "d", "e"]);
    world.settings.max_cordoned_nodes = "45%".parse().unwrap();
    world = world
        .service("web", &["a", "b", "c", "d"], Some(("maxUnavailable", 4)))
        .plan("p", &over(&["a", "b"], &json!({"handOff": {"then": "KeepCordoned"}})))
        .plan("q", &over(&["c", "d"], &json!({"pace": {"maxConcurrentNodes": 2}})));
    world.step();
    assert_eq!((draining(&world, "p"), draining(&world, "q")), (vec!["a".to_owned()], vec!["c".to_owned()]));
    world.run(Some("e"));
    // The first keeps two cordoned, which leaves none for the other until somebody uncordons one.
    assert_eq!(
        (world.phase("p"), world.status("q").progress.as_deref()),
        (PlanPhase::Completed, Some("1/2"))
    );
    assert!(world.status("q").idle_since.is_some());
    let cordoned = ["a", "b", "c", "d", "e"].iter().filter(|node| world.cordoned(node)).count();
    assert_eq!(cordoned, 2);
    world.set_node("a", |node| node.unschedulable = false);
    world.run(Some("e"));
    assert_eq!((world.phase("p"), world.phase("q")), (PlanPhase::Completed, PlanPhase::Completed));
    let most = world.changes.iter().scan(0_i32, |held, (_, change)| {
        *held += match change {
            NodeChange::Claim { .. } => 1,
            NodeChange::GiveBack | NodeChange::DropStaleMark => -1,
            _ => 0,
        };
        Some(*held)
    });
    assert_eq!(most.max(), Some(2));
}

#[test]
fn one_node_may_always_be_cordoned() {
    let mut world = nodes(&["a", "b"]);
    world.settings.max_cordoned_nodes = "1%".parse().unwrap();
    world = world.plan("p", &over(&["a", "b"], &json!({"pace": {"maxConcurrentNodes": 2}})));
    world.step();
    assert_eq!(draining(&world, "p"), ["a"]);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}
