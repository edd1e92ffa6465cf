//! The pod that the controller runs in.

use super::*;
use crate::cluster::PodKey;

fn key(name: &str) -> PodKey {
    PodKey { namespace: "shop".into(), name: name.into() }
}

/// Draining node a, with two pods of a service and the controller's own, `drainplan-0`; its other replicas as given.
fn draining(replicas: &[&str], changes: &Value) -> World {
    let mut world = World::new().node("a").node("b");
    world.settings.own_pod = Some(key("drainplan-0"));
    world = world.service("drainplan", replicas, None).service("web", &["a", "a"], None);
    world = world.plan("p", &over(&["a"], changes));
    for _ in 0..3 {
        world.step();
    }
    world
}

fn handed_over_to(actions: &[Action]) -> Vec<&str> {
    let to = actions.iter().filter_map(|action| match action {
        Action::HandOver { pod, to } => {
            assert_eq!(&**pod, "uid-drainplan-0");
            Some(&**to)
        }
        _ => None,
    });
    to.collect()
}

fn edit_pod(world: &mut World, name: &str, edit: impl FnOnce(&mut Pod)) {
    let mut pod = Pod::clone(world.cluster.pod(&key(name)).unwrap());
    edit(&mut pod);
    world.cluster.apply_pod(pod);
}

#[test]
fn it_goes_last_and_another_replica_is_asked_to_evict_it() {
    let last = json!({"pods": {"rules": [
        {"podSelector": {"matchLabels": {"app": "web"}}, "action": "Evict", "order": i32::MAX},
    ]}});
    let mut world = draining(&["a", "b"], &last);
    assert_eq!(evictions(&world.step()), ["web-0", "web-1"]);
    assert!(world.step().is_empty(), "they are still going");
    let node = world.node_status("p", "a");
    let own = node.waiting.iter().find(|pod| pod.pod == "drainplan-0").unwrap();
    assert_eq!(own.reason, "AwaitingOrder");
    for part in ["runs in this pod, so it goes last", "2 pods are still on the node: web-0 and web-1"] {
        assert!(own.message.contains(part), "{}", own.message);
    }
    world.replace_going(Some("b"));
    for _ in 0..2 {
        let actions = world.step();
        assert_eq!((handed_over_to(&actions), evictions(&actions)), (vec!["drainplan-1"], vec![]));
    }
    // Nobody has taken the lease, and it is back: it is not given away twice.
    world.cluster.evictions.hand_over("uid-drainplan-0".into());
    let actions = world.step();
    assert_eq!((handed_over_to(&actions), evictions(&actions)), (vec![], vec!["drainplan-0"]));
    world.run(Some("b"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn without_another_replica_it_evicts_itself_last() {
    let unready: fn(&mut World) = |world| edit_pod(world, "drainplan-1", |pod| pod.ready = false);
    let elsewhere: fn(&mut World) = |world| {
        edit_pod(world, "drainplan-1", |pod| pod.owner = Some(Arc::new(owner("another"))));
    };
    let unbound: fn(&mut World) = |world| edit_pod(world, "drainplan-1", |pod| pod.node = None);
    let alone: fn(&mut World) = |world| world.cluster.delete_pod(&key("drainplan-1"));
    for prevent in [unready, elsewhere, unbound, alone] {
        let mut world = draining(&["a", "b"], &json!({}));
        assert_eq!(evictions(&world.step()), ["web-0", "web-1"]);
        world.replace_going(Some("b"));
        prevent(&mut world);
        let actions = world.step();
        assert_eq!((handed_over_to(&actions), evictions(&actions)), (vec![], vec!["drainplan-0"]));
    }
}

#[test]
fn a_replica_that_is_on_its_way_is_awaited_for_a_while() {
    let mut world = draining(&["a", "b"], &json!({}));
    world.step();
    world.replace_going(Some("b"));
    edit_pod(&mut world, "drainplan-1", |pod| {
        pod.ready = false;
        pod.created = Some(START - SignedDuration::from_secs(10));
    });
    assert!(world.step().is_empty());
    let own = world.node_status("p", "a").waiting[0].clone();
    assert_eq!((own.pod.as_str(), own.reason.as_str()), ("drainplan-0", "AwaitingOrder"));
    assert!(own.message.contains("of those drainplan-1 on b is going or starting"), "{}", own.message);
    let until = world.decide().wake_at.unwrap();
    assert_eq!(until, START + SignedDuration::from_secs(20), "as long as a new pod is given");
    let mut ready = world.cluster.clone();
    edit_pod(&mut world, "drainplan-1", |pod| pod.ready = true);
    assert_eq!(handed_over_to(&world.step()), ["drainplan-1"]);
    std::mem::swap(&mut world.cluster, &mut ready);
    world.wait(20);
    assert_eq!(evictions(&world.step()), ["drainplan-0"], "it never becomes Ready");
}

#[test]
fn of_two_replicas_that_are_last_on_their_nodes_one_goes_and_is_replaced_first() {
    let mut world = World::new().node("a").node("b").node("c");
    world.settings.own_pod = Some(key("drainplan-0"));
    world = world.service("drainplan", &["a", "b"], None);
    world = world.plan("p", &over(&["a", "b"], &json!({"pace": {"maxConcurrentNodes": 2}})));
    for _ in 0..3 {
        world.step();
    }
    let actions = world.step();
    assert_eq!((handed_over_to(&actions), evictions(&actions)), (vec![], vec!["drainplan-1"]));
    assert!(evictions(&world.step()).is_empty(), "its successor is awaited");
    world.replace_going(Some("c"));
    let actions = world.step();
    assert_eq!((handed_over_to(&actions), evictions(&actions)), (vec!["drainplan-1-again"], vec![]));
}

#[test]
fn where_it_could_not_come_back_it_is_not_evicted() {
    let elsewhere = |world: &mut World, edit: fn(&mut Node)| world.set_node("b", edit);
    let cases: [fn(&mut Node); 3] = [
        |node| node.unschedulable = true,
        |node| node.ready = "Unknown".into(),
        |node| {
            node.taints.push(crate::cluster::Taint {
                key: "gpu".into(),
                value: "".into(),
                effect: "NoSchedule".into(),
            });
        },
    ];
    for prevent in cases {
        let mut world = World::new().node("a").node("b");
        world.settings.own_pod = Some(key("drainplan-0"));
        world = world.service("drainplan", &["a"], None).service("web", &["a"], None);
        edit_pod(&mut world, "drainplan-0", |pod| pod.placement = Some(Arc::default()));
        elsewhere(&mut world, prevent);
        world = world.plan("p", &over(&["a"], &json!({})));
        world.run(None);
        let node = world.node_status("p", "a").clone();
        assert_eq!((node.reason.as_deref(), world.changes.len()), (Some("Blocked"), 0));
        let own = node.waiting.iter().find(|pod| pod.pod == "drainplan-0").unwrap();
        assert_eq!((own.reason.as_str(), own.outlook), ("ReturnsToNode", crate::api::Outlook::NeverClears));
        assert!(own.message.contains("nobody would give this node back"), "{}", own.message);
        world.set_node("b", |node| *node = new_node("b"));
        world.run(Some("b"));
        assert_eq!(world.phase("p"), PlanPhase::Completed);
    }
}

#[test]
fn a_replica_that_did_not_take_the_lease_does_not_make_it_dispensable() {
    let mut world = draining(&["a", "b"], &json!({}));
    world.step();
    world.replace_going(Some("b"));
    assert_eq!(handed_over_to(&world.step()), ["drainplan-1"]);
    world.cluster.evictions.hand_over("uid-drainplan-0".into());
    world.set_node("b", |node| node.unschedulable = true);
    assert!(world.step().is_empty());
    assert_eq!(world.node_status("p", "a").waiting[0].reason, "ReturnsToNode");
}

#[test]
fn a_node_that_a_plan_holds_comes_back_and_takes_it() {
    let mut world = World::new().node("a").node("b");
    world.settings.own_pod = Some(key("drainplan-0"));
    world = world.service("drainplan", &["a"], None).service("web", &["b"], None);
    world = world.plan("p", &over(&["b", "a"], &json!({"pace": {"maxConcurrentNodes": 2}})));
    for _ in 0..3 {
        world.step();
    }
    assert_eq!(evictions(&world.step()), ["web-0"]);
    let own = &world.node_status("p", "a").waiting[0];
    assert_eq!((own.reason.as_str(), own.outlook), ("ReturnsToNode", crate::api::Outlook::MayClear));
    world.replace_going(None);
    world.run(Some("b"));
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 2));
}

#[test]
fn on_a_node_that_is_drained_already_it_stays_until_another_node_may_have_it() {
    let mut world = draining(&["a"], &json!({"timeouts": {"node": "10m"}}));
    world.set_node("b", |node| node.unschedulable = true);
    assert_eq!(evictions(&world.step()), ["web-0", "web-1"]);
    world.replace_going(Some("b"));
    assert!(world.step().is_empty());
    assert_eq!(world.node_status("p", "a").waiting[0].reason, "ReturnsToNode");
    world.set_node("b", |node| node.unschedulable = false);
    assert_eq!(evictions(&world.step()), ["drainplan-0"]);
}

#[test]
fn a_replica_of_another_replica_set_of_its_deployment_stands_by() {
    let mut world = draining(&["a"], &json!({}));
    let deployment = Some(Arc::new(OwnerRef { kind: "Deployment".into(), ..owner("deployment") }));
    for of in ["drainplan", "newer"] {
        world.cluster.apply_workload(Workload { owner: deployment.clone(), ..workload(of, 1) });
    }
    world.cluster.apply_pod(pod("newer-0", "newer", Some("b")));
    world.step();
    world.replace_going(Some("b"));
    assert_eq!(handed_over_to(&world.step()), ["newer-0"]);
}

#[test]
fn the_pod_of_another_replica_is_a_pod_like_any_other() {
    let mut world = draining(&["a", "b"], &json!({}));
    world.settings.own_pod = Some(key("drainplan-1"));
    assert_eq!(evictions(&world.step()), ["drainplan-0", "web-0", "web-1"]);
}
