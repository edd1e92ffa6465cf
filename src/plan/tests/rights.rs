//! No node is touched without the right to evict its pods.

use super::*;
use crate::cluster::{Rights, Scale};

fn denied() -> Right {
    Right::Denied { user: "drainer".into(), why: Text::default() }
}

impl World {
    fn answer(&mut self, right: &Right) {
        let now = self.now;
        self.cluster.rights.record(None, right.clone(), now);
        self.cluster.rights.record(Some("shop".into()), right.clone(), now);
    }
}

#[test]
fn the_right_is_asked_for_before_a_node_is_started() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    world.cluster.rights = Rights::default();
    assert_eq!(world.decide().rights, [None]);
    world.step();
    world.wait(3600);
    world.step();
    assert!(world.changes.is_empty());
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().pending, 1);
    assert_eq!(world.status("p").idle_since, None);
    world.answer(&Right::Granted);
    world.run(Some("b"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);

    // Without a pod to evict nothing needs to be known.
    let mut world = World::new().node("a").plan("p", &over(&["a"], &json!({})));
    world.cluster.rights = Rights::default();
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

/// How many pods an owner wants may say that its budget never allows.
#[test]
fn the_scale_is_asked_for_before_a_node_is_started() {
    let owner = || OwnerRef {
        api_version: "db.example.dev/v1".into(),
        kind: "Store".into(),
        name: "kv".into(),
        uid: "uid-of-kv".into(),
    };
    let answered = |replicas| {
        let budget = Some(("minAvailable", 2));
        let mut world = World::new().node("a").service("kv", &["a", "a"], budget);
        for name in ["kv-0", "kv-1"] {
            let key = crate::cluster::PodKey { namespace: "shop".into(), name: name.into() };
            let mut pod = Pod::clone(world.cluster.pod(&key).unwrap());
            pod.owner = Some(Arc::new(owner()));
            world.cluster.apply_pod(pod);
        }
        let mut world = world.plan("p", &over(&["a"], &json!({})));
        assert_eq!(world.decide().scales, [("shop".into(), owner())]);
        world.wait(3600);
        world.step();
        assert!(world.changes.is_empty());
        assert_eq!(world.status("p").idle_since, None);
        world.cluster.record_scale(owner().uid, Scale::Replicas { uid: owner().uid, replicas });
        assert_eq!(world.decide().scales, []);
        world.step();
        world
    };
    assert_eq!(answered(2).node_status("p", "a").reason.as_deref(), Some("Blocked"), "it never allows");
    assert_eq!(answered(3).node_status("p", "a").phase, NodePhase::Draining, "it may");
}

#[test]
fn without_the_right_every_node_is_blocked_and_none_is_touched() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b"], &json!({})));
    world.answer(&denied());
    world.run(None);
    for node in ["a", "b"] {
        let node = world.node_status("p", node);
        assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Pending, Some("Blocked")));
        assert_eq!(node.waiting[0].reason, "Forbidden");
    }
    let stalled = world.status("p").conditions.iter().find(|c| c.type_ == "Stalled").unwrap();
    assert!(stalled.message.ends_with("a, b: Blocked (Forbidden)"), "{}", stalled.message);
    assert_eq!(world.status("p").blocked_on, None, "no budget holds them");
    // It is asked for again and again.
    assert_eq!(world.decide().rights, [None, Some("shop".into())]);
    world.wait(60);
    world.run(None);
    assert_eq!((world.phase("p"), world.changes.len()), (PlanPhase::Failed, 0));
}

#[test]
fn when_the_right_is_taken_away_only_the_node_in_progress_is_affected() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "a", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b"], &json!({})));
    for _ in 0..4 {
        world.step();
    }
    assert_eq!(world.evicted.len(), 1);
    world.answer(&denied());
    world.run(Some("c"));
    assert_eq!(world.evicted.len(), 1, "what would be refused is not sent");
    assert_eq!(world.node_status("p", "a").waiting[0].reason, "Forbidden");
    world.wait(60);
    world.run(Some("c"));
    world.wait(60);
    world.run(Some("c"));
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("TimedOut"));
    assert_eq!(world.node_status("p", "b").reason.as_deref(), Some("Blocked"));
    let claimed =
        |(node, change): &(String, NodeChange)| node != "a" && matches!(change, NodeChange::Claim { .. });
    assert!(!world.changes.iter().any(claimed), "{:?}", world.changes);
    assert!(!world.cordoned("a"));
}
