//! Hand-offs: what they wait for, what is written down before, and what is left on nodes.

use super::super::{Notice, Subject, notices};
use super::*;

/// `a` is empty and handed off so, `b` waits for its turn.
fn handed_off(hand_off: &Value) -> World {
    let spec = json!({"handOff": hand_off, "timeouts": {"node": "60s", "handOff": "10m"}});
    let mut world =
        World::new().node("a").node("b").service("web", &["a"], None).plan("p", &over(&["a", "b"], &spec));
    world.run(Some("c"));
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    world
}

fn phase(world: &World, node: &str) -> NodePhase {
    world.node_status("p", node).phase
}

fn message<'w>(world: &'w World, node: &str) -> &'w str {
    world.node_status("p", node).message.as_deref().unwrap_or_default()
}

fn annotate(world: &mut World, node: &str, name: &str, value: &str) {
    world.set_node(node, |node| {
        node.annotations.insert(name.into(), value.into());
        node.annotated = true;
    });
}

/// What the decisions until all rests tell.
fn told(world: &mut World) -> Vec<Notice> {
    let mut told = Vec::new();
    for _ in 0..10 {
        let before = world.status_of("p");
        world.step();
        told.extend(notices("p", before.as_ref(), world.status("p")));
    }
    told
}

#[test]
fn what_the_node_is_compared_with_is_written_down_before_the_label_is_there() {
    let spec = json!({"handOff": {"until": "Rebooted"}});
    let mut world = World::new().node("a").plan("p", &over(&["a"], &spec));
    for _ in 0..20 {
        world.step();
        assert!(!world.announced("a") || world.status_of("p").unwrap().nodes[0].boot_id.is_some());
        if phase(&world, "a") == NodePhase::HandedOff {
            break;
        }
    }
    let node = world.node_status("p", "a").clone();
    assert!(!world.announced("a"), "first it is written down");
    assert_eq!((node.boot_id.as_deref(), node.kubelet_version.as_deref()), (Some("boot"), Some("v1.37.2")));
    assert_eq!(node.drained_at.as_ref().map(|time| time.0), Some(START));
    // An hour where nothing is written.
    assert_eq!(node.deadline.unwrap().0, START + SignedDuration::from_secs(3600));
    // Faster than we could tell: the reboot is seen all the same.
    world.set_node("a", |node| node.boot_id = "other".into());
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert!(!world.cordoned("a") && world.marks("a").is_empty() && !world.announced("a"));
}

#[test]
fn released_by_the_annotation_that_names_the_plan() {
    let mut world = handed_off(&json!({"until": "Released"}));
    assert_eq!(
        message(&world, "a"),
        "empty and handed off until 2027-01-15T08:10:00Z: waits until somebody releases it by an annotation: \
         kubectl annotate node a drainplan.dev/release=p"
    );
    annotate(&mut world, "a", names::RELEASE, "q");
    world.run(None);
    assert!(
        message(&world, "a").contains("(it names plan q now): kubectl annotate --overwrite"),
        "{}",
        message(&world, "a")
    );
    annotate(&mut world, "a", names::RELEASE, "p");
    let told = told(&mut world);
    assert_eq!(phase(&world, "a"), NodePhase::Done);
    assert!(!world.cordoned("a") && world.marks("a").is_empty() && !world.announced("a"));
    let back: Vec<&str> =
        told.iter().filter(|it| it.reason == "NodeTakenBack").map(|it| it.note.as_str()).collect();
    assert_eq!(back, ["the hand-off of node a has ended: it was released"; 2], "on the plan and on the node");
    assert_eq!(phase(&world, "b"), NodePhase::HandedOff, "the next one has its turn");
}

#[test]
fn a_release_that_was_left_from_another_time_does_not_count() {
    let spec = json!({"handOff": {"until": "Released"}});
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &spec));
    annotate(&mut world, "a", names::RELEASE, "p");
    world.run(Some("c"));
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    assert!(!world.marks("a").contains_key(names::RELEASE), "it went with the claim");
}

#[test]
fn a_node_that_was_released_and_is_not_ready_waits_until_it_is() {
    let mut world = handed_off(&json!({"until": "Released"}));
    annotate(&mut world, "a", names::RELEASE, "p");
    world.set_node("a", |node| node.ready = "False".into());
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    let text =
        "it was released, and its condition Ready is False; it is put back into service when that is True";
    assert!(message(&world, "a").ends_with(text), "{}", message(&world, "a"));
    world.set_node("a", |node| node.ready = "True".into());
    world.run(None);
    assert_eq!((phase(&world, "a"), world.cordoned("a")), (NodePhase::Done, false));

    // What stays cordoned need not be Ready: it may have been switched off.
    let mut world = handed_off(&json!({"until": "Released", "then": "KeepCordoned"}));
    annotate(&mut world, "a", names::RELEASE, "p");
    world.set_node("a", |node| node.ready = "Unknown".into());
    world.run(None);
    assert_eq!((phase(&world, "a"), world.cordoned("a")), (NodePhase::Done, true));
    assert_eq!(world.marks("a"), BTreeMap::from([(names::KEPT_CORDONED.into(), "p".into())]));
}

#[test]
fn rebooted_when_the_boot_id_is_another_one_and_the_node_is_ready() {
    let mut world = handed_off(&json!({"until": "Rebooted"}));
    assert!(message(&world, "a").ends_with("waits until it has rebooted; its boot ID is still boot"));
    world.set_node("a", |node| node.ready = "Unknown".into());
    world.run(None);
    world.set_node("a", |node| node.ready = "True".into());
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff, "a kubelet that was silent is no reboot");
    world.set_node("a", |node| (node.ready, node.boot_id) = ("False".into(), "other".into()));
    world.run(None);
    assert!(message(&world, "a").contains("it has rebooted, and its condition Ready is False"));
    assert!(world.cordoned("a"));
    world.set_node("a", |node| node.ready = "True".into());
    world.run(None);
    assert_eq!((phase(&world, "a"), message(&world, "a")), (NodePhase::Done, "it has rebooted and is Ready"));
    assert!(!world.cordoned("a"));
}

#[test]
fn upgraded_when_the_kubelet_has_another_version_and_the_node_is_ready() {
    let mut world = handed_off(&json!({"until": "Upgraded"}));
    world.set_node("a", |node| node.boot_id = "other".into());
    world.run(None);
    assert!(message(&world, "a").ends_with("waits until its kubelet has another version than v1.37.2"));
    world.set_node("a", |node| (node.ready, node.kubelet_version) = ("Unknown".into(), "v1.38.0".into()));
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    world.set_node("a", |node| node.ready = "True".into());
    world.run(None);
    let text = "its kubelet was v1.37.2 and is v1.38.0, and it is Ready";
    assert_eq!((phase(&world, "a"), message(&world, "a")), (NodePhase::Done, text));
}

#[test]
fn a_boot_id_that_could_not_be_read_is_taken_from_the_node_once() {
    let mut world = handed_off(&json!({"until": "Rebooted"}));
    world.edit_plan("p", |plan| {
        let nodes = &mut plan.status.as_mut().unwrap().nodes;
        let node = nodes.iter_mut().find(|node| node.name == "a").unwrap();
        (node.boot_id, node.drained_at) = (None, None);
    });
    world.wait(300);
    world.run(None);
    let node = world.node_status("p", "a");
    assert_eq!(node.boot_id.as_deref(), Some("boot"));
    assert_eq!(node.deadline.as_ref().unwrap().0, world.now + SignedDuration::from_secs(600));
}

#[test]
fn a_hand_off_that_fails_says_why_and_ends_the_plan() {
    let mut world = handed_off(&json!({"until": "Rebooted"}));
    assert_eq!(world.decide().wake_at, Some(START + SignedDuration::from_secs(600)));
    world.wait(600);
    let told = told(&mut world);
    let text = "its hand-off had not ended 10m after it was empty (timeouts.handOff); then it was: waits until it has rebooted; \
                its boot ID is still boot";
    let node = world.node_status("p", "a");
    assert_eq!((node.reason.as_deref(), node.message.as_deref()), (Some("HandOffTimedOut"), Some(text)));
    assert!(told.iter().any(|it| it.reason == "NodeFailed" && it.note.contains(text)), "{told:#?}");
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    let ready = world.status("p").conditions.iter().find(|found| found.type_ == "Ready").unwrap();
    assert!(ready.message.contains("node a did not come back from its hand-off"), "{}", ready.message);
}

#[test]
fn a_changed_timeout_counts_for_nodes_that_are_handed_off() {
    let mut world = handed_off(&json!({"until": "Rebooted"}));
    world.edit_plan("p", |plan| {
        plan.spec.timeouts.as_mut().unwrap().hand_off = Some("20m".parse().unwrap());
    });
    world.wait(600);
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    let deadline = world.node_status("p", "a").deadline.clone().unwrap();
    assert_eq!(deadline.0, START + SignedDuration::from_secs(1200));
    world.wait(600);
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::Failed);
}

#[test]
fn a_claim_and_a_label_that_somebody_took_off_are_put_back() {
    let mut world = handed_off(&json!({"until": "Released"}));
    world.set_node("a", |node| (node.annotations, node.annotated) = (BTreeMap::new(), false));
    world.run(None);
    assert!(world.claimed("a") && world.announced("a"));
    world.set_node("a", |node| node.labels = Labels::default());
    world.run(None);
    assert!(world.announced("a"));
    annotate(&mut world, "a", names::RELEASE, "p");
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::Done);
    assert!(
        world.cordoned("a") && world.marks("a").is_empty(),
        "nobody can tell any more whose the cordon was"
    );

    // Taken off, and the plan goes before it could put it back.
    let mut world = handed_off(&json!({"until": "Released"}));
    world.set_node("a", |node| node.annotations.clear());
    world.plans.readable.clear();
    world.step();
    assert!(!world.announced("a"));
}

#[test]
fn a_node_of_a_plan_that_is_gone_is_left_cordoned_when_it_is_not_ready() {
    for (ready, left) in [("True", false), ("Unknown", true)] {
        let mut world = handed_off(&json!({"until": "Released"}));
        world.set_node("a", |node| node.ready = ready.into());
        world.plans.readable.clear();
        world.step();
        assert_eq!((world.cordoned("a"), world.announced("a")), (left, false));
        assert_eq!(world.marks("a").contains_key(names::LEFT_CORDONED), left);
        // Until somebody uncordons it.
        world.set_node("a", |node| node.unschedulable = false);
        world.step();
        assert!(world.marks("a").is_empty());
    }
}

#[test]
fn a_plan_that_is_deleted_before_the_label_is_there_has_handed_off_all_the_same() {
    let spec = json!({"handOff": {"until": "Rebooted"}});
    let mut world = World::new().node("a").plan("p", &over(&["a"], &spec));
    while world.status_of("p").is_none_or(|status| status.nodes[0].phase != NodePhase::HandedOff) {
        world.step();
    }
    assert!(!world.announced("a"));
    world.set_node("a", |node| node.ready = "Unknown".into());
    world.edit_plan("p", |plan| {
        plan.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START));
    });
    world.step();
    assert!(world.cordoned("a"));
    assert_eq!(world.marks("a"), BTreeMap::from([(names::LEFT_CORDONED.into(), "p".into())]));
}

#[test]
fn a_cordon_that_was_there_before_stays_and_nobody_is_alarmed() {
    let spec = json!({"handOff": {"until": "Rebooted"}, "timeouts": {"node": "60s", "handOff": "10m"}});
    let mut world = World::new().node("a").plan("p", &over(&["a"], &spec));
    world.set_node("a", |node| node.unschedulable = true);
    world.run(None);
    world.set_node("a", |node| node.ready = "Unknown".into());
    world.wait(600);
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::Failed);
    assert!(world.cordoned("a") && world.marks("a").is_empty() && !world.announced("a"));
}

#[test]
fn a_slot_is_taken_until_the_node_is_back() {
    let spec = json!({"handOff": {"until": "Released"}, "pace": {"maxConcurrentNodes": 2}});
    let mut world = World::new()
        .node("a")
        .node("b")
        .node("c")
        .service("web", &["a"], None)
        .plan("p", &over(&["a", "b", "c"], &spec));
    world.run(Some("d"));
    let counts = world.status("p").node_counts.clone().unwrap();
    assert_eq!((counts.handed_off, counts.draining, counts.pending), (2, 0, 1));
    assert!(world.status("p").idle_since.is_none() && !world.cordoned("c"));
    annotate(&mut world, "b", names::RELEASE, "p");
    world.run(Some("d"));
    assert_eq!((phase(&world, "b"), phase(&world, "c")), (NodePhase::Done, NodePhase::HandedOff));
}

#[test]
fn events_tell_of_the_hand_off_and_of_what_is_awaited() {
    let spec = json!({"handOff": {"until": "Released"}});
    let mut world = World::new().node("a").plan("p", &over(&["a"], &spec));
    let told = told(&mut world);
    let told: Vec<&Notice> = told.iter().filter(|it| it.reason == "NodeHandedOff").collect();
    let text = "plan p hands off node a: empty and handed off until 2027-01-15T09:00:00Z: waits until somebody \
                releases it by an annotation: kubectl annotate node a drainplan.dev/release=p";
    assert_eq!(told.iter().map(|it| it.note.as_str()).collect::<Vec<_>>(), [text; 2]);
    assert!(matches!(told[1].subject, Subject::Node { .. }));
    let ready = world.status("p").conditions.iter().find(|found| found.type_ == "Ready").unwrap().clone();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "AwaitingHandOff"));
    assert!(
        ready.message.starts_with("0 of 1 node done, 1 handed off; a: empty and handed off until"),
        "{ready:?}"
    );
    assert!(world.status("p").conditions.iter().any(|found| found.type_ == "Reconciling"));
}

#[test]
fn a_node_is_rebooted_in_each_run_and_compared_with_what_it_was_then() {
    let windows = json!([{"schedule": "5 8 * * *", "duration": "10m"}]);
    let spec = json!({"windows": windows, "repeat": "EachWindow", "handOff": {"until": "Rebooted"},
        "timeouts": {"node": "60s", "handOff": "1h"}});
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &spec));
    world.wait(300);
    for (run, before, after) in [(1, "boot", "second"), (2, "second", "third")] {
        world.run(Some("c"));
        let node = world.node_status("p", "a");
        assert_eq!((node.phase, node.boot_id.as_deref()), (NodePhase::HandedOff, Some(before)), "run {run}");
        // It comes back long after the window.
        world.wait(1800);
        world.run(Some("c"));
        assert_eq!((world.phase("p"), world.announced("a")), (PlanPhase::Running, true));
        world.set_node("a", |node| node.boot_id = after.into());
        world.run(Some("c"));
        assert_eq!(world.status("p").last_run.as_ref().map(|last| last.run), Some(run));
        assert!(!world.cordoned("a") && world.marks("a").is_empty() && !world.announced("a"));
        world.wait(86_400 - 1800);
    }
}

#[test]
fn a_hand_off_that_fails_ends_its_run_and_leaves_the_next_one_to_try() {
    let windows = json!([{"schedule": "5 8 * * *", "duration": "10m"}]);
    let spec = json!({"windows": windows, "repeat": "EachWindow", "handOff": {"until": "Rebooted"},
        "timeouts": {"node": "60s", "handOff": "2m"}});
    let mut world = World::new().node("a").node("b").plan("p", &over(&["a", "b"], &spec));
    world.wait(300);
    world.run(None);
    assert_eq!(phase(&world, "a"), NodePhase::HandedOff);
    world.wait(120);
    world.run(None);
    let last = world.status("p").last_run.clone().unwrap();
    assert_eq!((last.phase, last.node_counts.failed, last.node_counts.pending), (PlanPhase::Failed, 1, 1));
    assert!(!world.cordoned("a") && !world.cordoned("b"), "b was not taken in the same window");
    world.wait(86_400 - 120);
    world.run(None);
    assert_eq!((phase(&world, "a"), world.cordoned("a")), (NodePhase::HandedOff, true));
}
