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
