//! What befalls a node in progress, cell by cell.
//!
//! | event | a Draining node | a HandedOff node |
//! | --- | --- | --- |
//! | suspend | no eviction; its clock runs; at the deadline given back | nothing; its own deadline |
//! | window ends | `Return`: given back, Pending again; `Finish`: goes on | nothing; the plan stays Running |
//! | plan ends | given back | its own deadline |
//! | plan deleted | given back | uncordoned if Ready, else left as it is, with an annotation |
//! | node leaves | given back | uncordoned if Ready, else left as it is, with an annotation |
//! | deadline | `onNodeTimeout` | Failed; uncordoned only if Ready and `then: Uncordon` |
//! | uncordoned | Skipped, `UncordonedByHand` | nothing |
//! | node deleted | Skipped `NodeGone`, slot freed | Done if `until: Deleted`, else Skipped `NodeGone` |

use super::*;

/// `a` is drained for at most a minute: one of its two pods is going for ever, the other one waits for it.
fn draining(changes: &Value) -> World {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "a"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b"], changes));
    rest(&mut world);
    assert_eq!((phase(&world, "a"), world.evicted.len()), (NodePhase::Draining, 1));
    world
}

/// `a` is empty and handed off for at most ten minutes, `b` waits for its turn.
fn handed_off(changes: &Value) -> World {
    let mut spec = json!({"handOff": {"until": "Released"}, "timeouts": {"node": "60s", "handOff": "10m"}});
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let mut world =
        World::new().node("a").node("b").service("web", &["a"], None).plan("p", &over(&["a", "b"], &spec));
    world.run(Some("c"));
    assert_eq!((phase(&world, "a"), world.announced("a")), (NodePhase::HandedOff, true));
    assert!(world.cordoned("a") && world.claimed("a") && !world.cordoned("b"));
    world
}

/// So many decisions that whatever follows has been done. Pods that are going stay.
fn rest(world: &mut World) {
    for _ in 0..10 {
        world.step();
    }
}

fn phase(world: &World, node: &str) -> NodePhase {
    world.node_status("p", node).phase
}

fn reason<'w>(world: &'w World, node: &str) -> Option<&'w str> {
    world.node_status("p", node).reason.as_deref()
}

fn falls_ill(world: &mut World, node: &str) {
    world.set_node(node, |node| node.ready = "Unknown".into());
}

fn release(world: &mut World, node: &str) {
    world.set_node(node, |node| {
        node.annotations.insert(names::RELEASE.into(), "p".into());
    });
}

/// Back in service, with nothing of ours on it.
fn assert_back(world: &World, node: &str) {
    assert!(!world.cordoned(node) && world.marks(node).is_empty() && !world.announced(node));
}

/// Cordoned, and nothing of ours on it but this annotation.
fn assert_left(world: &World, node: &str, annotation: &str) {
    assert!(world.cordoned(node) && !world.announced(node));
    assert_eq!(world.marks(node), BTreeMap::from([(annotation.into(), "p".into())]));
}

fn delete_plan(world: &mut World) {
    world.edit_plan("p", |plan| {
        plan.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START));
    });
    rest(world);
    let plan = world.plans.readable[0].clone();
    assert!(plan.metadata.finalizers.is_none(), "it can go");
}

fn set_names(world: &mut World, names: &[&str]) {
    world.edit_plan("p", |plan| {
        plan.spec.nodes.names = names.iter().map(|name| (*name).to_owned()).collect();
    });
    rest(world);
}

#[test]
fn cell_suspend_draining() {
    for changes in [json!({}), json!({"onNodeTimeout": "Keep"})] {
        let mut world = draining(&changes);
        world.edit_plan("p", |plan| plan.spec.suspend = true);
        world.replace_going(Some("c"));
        rest(&mut world);
        assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Suspended, 1), "the budget has room");
        world.wait(59);
        rest(&mut world);
        assert!(world.cordoned("a"));
        world.wait(1);
        rest(&mut world);
        assert_eq!((reason(&world, "a"), world.evicted.len()), (Some("TimedOut"), 1));
        assert_back(&world, "a");
    }
}

#[test]
fn cell_suspend_handedoff() {
    let mut world = handed_off(&json!({}));
    world.edit_plan("p", |plan| plan.spec.suspend = true);
    world.wait(599);
    rest(&mut world);
    assert_eq!((world.phase("p"), phase(&world, "a")), (PlanPhase::Suspended, NodePhase::HandedOff));
    assert!(world.announced("a"));
    let mut late = handed_off(&json!({"suspend": false}));
    late.edit_plan("p", |plan| plan.spec.suspend = true);
    late.wait(600);
    rest(&mut late);
    assert_eq!(reason(&late, "a"), Some("HandOffTimedOut"));
    release(&mut world, "a");
    rest(&mut world);
    assert_eq!((phase(&world, "a"), world.phase("p")), (NodePhase::Done, PlanPhase::Suspended));
    assert_back(&world, "a");
}

/// Open from 08:00 to 08:02.
fn two_minutes() -> Value {
    json!([{"schedule": "0 8 * * *", "duration": "2m"}])
}

#[test]
fn cell_window_ends_draining() {
    let returns = json!({"windows": two_minutes(), "timeouts": {"node": "2m"}});
    let finishes = json!({"windows": two_minutes(), "timeouts": {"node": "5m"}, "onWindowEnd": "Finish"});
    let mut world = draining(&returns);
    // The node's own deadline is as far as the window's end, and comes first; so it is put off.
    world.edit_plan("p", |plan| plan.spec.timeouts.as_mut().unwrap().node = Some("4m".parse().unwrap()));
    world.wait(120);
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Scheduled);
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().pending, 2);
    assert_back(&world, "a");

    let mut world = draining(&finishes);
    world.wait(120);
    world.replace_going(Some("c"));
    rest(&mut world);
    assert_eq!((phase(&world, "a"), world.evicted.len()), (NodePhase::Draining, 2));
    assert_eq!(world.phase("p"), PlanPhase::Running);
}

#[test]
fn cell_window_ends_handedoff() {
    let mut world = handed_off(&json!({"windows": two_minutes()}));
    world.wait(120);
    rest(&mut world);
    assert_eq!((world.phase("p"), phase(&world, "a")), (PlanPhase::Running, NodePhase::HandedOff));
    assert!(world.cordoned("a") && world.announced("a"));
    release(&mut world, "a");
    rest(&mut world);
    assert_eq!((phase(&world, "a"), world.phase("p")), (NodePhase::Done, PlanPhase::Scheduled));
    assert_back(&world, "a");
}

/// `a` is handed off and `b` is being drained, its pod going for ever.
fn both(changes: &Value) -> World {
    let mut spec = json!({"handOff": {"until": "Released"}, "pace": {"maxConcurrentNodes": 2},
        "timeouts": {"node": "5m", "handOff": "10m"}});
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let mut world = World::new()
        .node("a")
        .node("b")
        .node("c")
        .service("web", &["b"], None)
        .plan("p", &over(&["a", "b", "c"], &spec));
    rest(&mut world);
    assert_eq!((phase(&world, "a"), phase(&world, "b")), (NodePhase::HandedOff, NodePhase::Draining));
    world
}

fn ready(world: &World) -> (String, String) {
    let found = world.status("p").conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    (found.reason.clone(), found.message.clone())
}

#[test]
fn cell_plan_ends_draining() {
    let timeouts = json!({"node": "5m", "handOff": "10m", "plan": "1m"});
    for changes in [json!({"timeouts": timeouts}), json!({"timeouts": timeouts, "onNodeTimeout": "Keep"})] {
        let mut world = both(&changes);
        world.wait(60);
        rest(&mut world);
        assert_eq!((phase(&world, "b"), reason(&world, "b")), (NodePhase::Failed, Some("TimedOut")));
        assert_back(&world, "b");
    }

    let mut world = both(&json!({"timeouts": {"node": "5m", "handOff": "1m"}}));
    world.wait(60);
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Failed, "the hand-off of a has failed");
    assert_back(&world, "b");
    let counts = world.status("p").node_counts.clone().unwrap();
    assert_eq!((counts.failed, counts.pending), (1, 2));
}

#[test]
fn cell_plan_ends_handedoff() {
    let mut world = both(&json!({"timeouts": {"node": "5m", "handOff": "10m", "plan": "1m"}}));
    world.wait(60);
    rest(&mut world);
    assert_eq!((world.phase("p"), phase(&world, "a")), (PlanPhase::Running, NodePhase::HandedOff));
    assert!(world.cordoned("a") && world.announced("a") && !world.cordoned("c"));
    let (word, message) = ready(&world);
    assert_eq!(word, "Ending");
    assert!(
        message.starts_with("the plan ends: the plan had not ended 1m after its start; 0 of 3"),
        "{message}"
    );
    world.wait(539);
    rest(&mut world);
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    let mut late = both(&json!({"timeouts": {"node": "5m", "handOff": "10m", "plan": "1m"}}));
    late.wait(600);
    rest(&mut late);
    assert_eq!((late.phase("p"), reason(&late, "a")), (PlanPhase::Failed, Some("HandOffTimedOut")));
    assert_back(&late, "a");
    release(&mut world, "a");
    rest(&mut world);
    assert_eq!((world.phase("p"), phase(&world, "a")), (PlanPhase::Failed, NodePhase::Done));
    assert_back(&world, "a");
}

#[test]
fn cell_plan_deleted_draining() {
    let mut world = draining(&json!({}));
    delete_plan(&mut world);
    assert_back(&world, "a");
}

#[test]
fn cell_plan_deleted_handedoff() {
    let mut world = handed_off(&json!({}));
    delete_plan(&mut world);
    assert_back(&world, "a");
    let mut world = handed_off(&json!({}));
    falls_ill(&mut world, "a");
    delete_plan(&mut world);
    assert_left(&world, "a", names::LEFT_CORDONED);
}

#[test]
fn cell_node_leaves_draining() {
    let mut world = draining(&json!({}));
    set_names(&mut world, &["b"]);
    assert_back(&world, "a");
    assert!(world.status("p").nodes.iter().all(|node| node.name != "a"));
}

#[test]
fn cell_node_leaves_handedoff() {
    let mut world = handed_off(&json!({}));
    set_names(&mut world, &["b"]);
    assert_back(&world, "a");
    let mut world = handed_off(&json!({}));
    falls_ill(&mut world, "a");
    set_names(&mut world, &["b"]);
    assert_left(&world, "a", names::LEFT_CORDONED);
    assert!(world.status("p").nodes.iter().all(|node| node.name != "a"));
}

#[test]
fn cell_deadline_draining() {
    let mut world = draining(&json!({}));
    world.wait(60);
    rest(&mut world);
    assert_eq!((phase(&world, "a"), reason(&world, "a")), (NodePhase::Failed, Some("TimedOut")));
    assert_back(&world, "a");
    let mut world = draining(&json!({"onNodeTimeout": "Keep"}));
    world.wait(60);
    rest(&mut world);
    assert_eq!((phase(&world, "a"), reason(&world, "a")), (NodePhase::Failed, Some("TimedOut")));
    assert_left(&world, "a", names::KEPT_CORDONED);
}

#[test]
fn cell_deadline_handedoff() {
    let late = |changes: &Value, ill: bool| {
        let mut world = handed_off(changes);
        if ill {
            falls_ill(&mut world, "a");
        }
        world.wait(599);
        rest(&mut world);
        assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
        world.wait(1);
        rest(&mut world);
        assert_eq!((phase(&world, "a"), reason(&world, "a")), (NodePhase::Failed, Some("HandOffTimedOut")));
        assert_eq!((world.phase("p"), world.cordoned("b")), (PlanPhase::Failed, false), "it ends the plan");
        world
    };
    let kept = json!({"handOff": {"until": "Rebooted", "then": "KeepCordoned"}});
    assert_back(&late(&json!({}), false), "a");
    assert_left(&late(&json!({}), true), "a", names::LEFT_CORDONED);
    assert_left(&late(&kept, false), "a", names::KEPT_CORDONED);
    assert_left(&late(&kept, true), "a", names::KEPT_CORDONED);
}

#[test]
fn cell_uncordoned_draining() {
    let mut world = draining(&json!({}));
    world.set_node("a", |node| node.unschedulable = false);
    rest(&mut world);
    assert_eq!((phase(&world, "a"), reason(&world, "a")), (NodePhase::Skipped, Some("UncordonedByHand")));
    assert_back(&world, "a");
}

#[test]
fn cell_uncordoned_handedoff() {
    let mut world = handed_off(&json!({}));
    world.set_node("a", |node| node.unschedulable = false);
    rest(&mut world);
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    assert!(!world.cordoned("a") && world.announced("a") && world.claimed("a"));
    release(&mut world, "a");
    rest(&mut world);
    assert_eq!(phase(&world, "a"), NodePhase::Done);
    assert_back(&world, "a");
}

#[test]
fn cell_node_deleted_draining() {
    let mut world = draining(&json!({}));
    world.cluster.delete_node("a");
    rest(&mut world);
    assert_eq!((phase(&world, "a"), reason(&world, "a")), (NodePhase::Skipped, Some("NodeGone")));
    assert_eq!(phase(&world, "b"), NodePhase::Done, "its slot is free");
}

#[test]
fn cell_node_deleted_handedoff() {
    let mut world = handed_off(&json!({"handOff": {"until": "Deleted"}}));
    world.cluster.delete_node("a");
    rest(&mut world);
    assert_eq!((phase(&world, "a"), phase(&world, "b")), (NodePhase::Done, NodePhase::HandedOff));
    let mut world = handed_off(&json!({}));
    world.cluster.delete_node("a");
    rest(&mut world);
    assert_eq!((phase(&world, "a"), reason(&world, "a")), (NodePhase::Skipped, Some("NodeGone")));
    assert_eq!(phase(&world, "b"), NodePhase::HandedOff, "its slot is free");
}
