//! Volumes that are still attached to a node whose pods are gone.

use super::*;
use crate::cluster::{DaemonSet, PersistentVolume, PodKey, VolumeAttachment};

/// A node with a pod, and its volume attached.
fn attached(changes: &Value) -> World {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], changes));
    attach(&mut world, "csi-1", "pv-web", ("shop", "data"), true);
    world
}

fn attach(world: &mut World, name: &str, volume: &str, claim: (&str, &str), attached: bool) {
    let volumes = &mut world.cluster.volumes;
    volumes.add(PersistentVolume {
        name: volume.into(),
        uid: volume.into(),
        claim: Some(PodKey { namespace: claim.0.into(), name: claim.1.into() }),
    });
    volumes.attach(VolumeAttachment {
        name: name.into(),
        uid: name.into(),
        node: "a".into(),
        volume: Some(volume.into()),
        attached,
    });
}

#[test]
fn a_node_is_empty_when_its_volumes_are_detached_too() {
    let mut world = attached(&json!({}));
    world.run(Some("c"));
    let node = world.node_status("p", "a");
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Draining, Some("VolumesAttached")));
    assert_eq!((node.pods_left, node.drained_at.clone()), (0, None));
    let text = "its pods are gone, and 1 volume is still attached to it: PersistentVolume pv-web (VolumeAttachment csi-1).";
    assert!(node.message.as_ref().unwrap().starts_with(text), "{node:?}");
    assert!(world.cordoned("a"));
    world.wait(10);
    // It is to be detached, and is not yet: the object stays until then.
    attach(&mut world, "csi-1", "pv-web", ("shop", "data"), false);
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    let node = world.node_status("p", "a");
    assert_eq!(node.drained_at.as_ref().map(|at| at.0), Some(world.now), "not before");
    assert_eq!((node.reason.clone(), node.message.clone()), (None, None));
}

#[test]
fn at_its_deadline_the_node_has_failed_and_the_volume_is_named() {
    let mut world = attached(&json!({"handOff": {"until": "Rebooted"}}));
    world.run(Some("c"));
    world.wait(60);
    world.run(Some("c"));
    let node = world.node_status("p", "a");
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Failed, Some("TimedOut")));
    assert!(node.message.as_ref().unwrap().contains("PersistentVolume pv-web"), "{node:?}");
    assert!(!world.cordoned("a") && !world.announced("a"));
}

#[test]
fn nobody_waits_for_volumes_who_does_not_want_to() {
    let mut world = attached(&json!({"handOff": {"awaitVolumesDetached": false, "then": "Uncordon"}}));
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn volumes_of_pods_that_stay_stay() {
    let mut world = attached(&json!({}));
    let of_set = OwnerRef { kind: "DaemonSet".into(), uid: "ds".into(), ..owner("agent") };
    world.cluster.apply_daemon_set(DaemonSet {
        namespace: "shop".into(),
        name: "agent".into(),
        uid: "ds".into(),
    });
    let agent = Pod {
        owner: Some(Arc::new(of_set)),
        claims: Box::new(["cache".into()]),
        ..pod("agent", "agent", Some("a"))
    };
    let finished = Pod {
        phase: PodPhase::Succeeded,
        claims: Box::new(["results".into()]),
        ..pod("once", "once", Some("a"))
    };
    world.cluster.apply_pod(agent);
    world.cluster.apply_pod(finished);
    attach(&mut world, "csi-2", "pv-cache", ("shop", "cache"), true);
    attach(&mut world, "csi-3", "pv-results", ("shop", "results"), true);
    attach(&mut world, "csi-4", "pv-other", ("other", "cache"), true);
    world.cluster.volumes.detach("csi-1");
    world.run(Some("c"));
    let message = world.node_status("p", "a").message.clone().unwrap();
    assert!(message.contains("2 volumes are still attached"), "{message}");
    assert!(message.contains("pv-results") && message.contains("pv-other"), "{message}");
    world.cluster.volumes.detach("csi-3");
    world.cluster.volumes.detach("csi-4");
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn an_attachment_that_nobody_can_tell_the_volume_of_is_awaited() {
    let mut world = World::new().node("a").plan("p", &over(&["a"], &json!({})));
    world.cluster.volumes.attach(VolumeAttachment {
        name: "csi-1".into(),
        uid: "csi-1".into(),
        node: "a".into(),
        volume: None,
        attached: true,
    });
    world.run(None);
    let message = world.node_status("p", "a").message.clone().unwrap();
    assert!(message.contains("attached to it: VolumeAttachment csi-1."), "{message}");
}
