//! What people read of nodes, pods and plans.

use super::super::{Notice, Subject, notices};
use super::*;
use crate::api::WaitingPod;

fn condition(world: &World, plan: &str, type_: &str) -> (String, String) {
    let status = world.status(plan);
    let found = status.conditions.iter().find(|condition| condition.type_ == type_).unwrap();
    (found.status.clone(), found.message.clone())
}

/// The world after a few decisions, and what they told.
fn told(world: &mut World, plan: &str, steps: usize) -> Vec<Notice> {
    let mut told = Vec::new();
    for _ in 0..steps {
        let before = world.plans.readable.iter().find(|it| it.metadata.name.as_deref() == Some(plan));
        let before = before.unwrap().status.clone();
        world.step();
        told.extend(notices(plan, before.as_ref(), world.status(plan)));
    }
    told
}

fn on_plan<'a>(told: &'a [Notice], reason: &str) -> Vec<&'a str> {
    let wanted = told.iter().filter(|notice| notice.reason == reason && notice.subject == Subject::Plan);
    wanted.map(|notice| notice.note.as_str()).collect()
}

/// A pod without a controller.
fn bare(name: &str, node: &str) -> Pod {
    Pod { owner: None, ..pod(name, "bare", Some(node)) }
}

#[test]
fn a_plan_that_waits_for_another_names_it_and_the_nodes_while_it_has_others_to_do() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .node("c")
        .service("web", &["a", "b", "c"], None)
        .plan("p", &over(&["a"], &json!({})));
    world.step();
    world = world.plan("q", &over(&["c", "a", "b"], &json!({})));
    world.step();
    let node = world.node_status("q", "a");
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Pending, Some("ClaimedByOther")));
    assert_eq!(node.message.as_deref(), Some("held by plan p"));
    let ready = condition(&world, "q", "Ready").1;
    assert_eq!(ready, "0 of 3 nodes done, 1 draining; c: 1 pod left; a: held by plan p");
    let told = notices("q", None, world.status("q"));
    assert_eq!(on_plan(&told, "ClaimedByOther"), ["1 node: a: held by plan p"]);
    assert_eq!(on_plan(&told, "NodeBlocked"), Vec::<&str>::new());
    let again = notices("q", Some(world.status("q")), world.status("q"));
    assert_eq!(again, [], "told once");
}

#[test]
fn a_node_that_another_plan_has_drained_is_drained_again_and_that_is_said() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a"], None)
        .plan("p", &over(&["a"], &json!({"handOff": {"then": "KeepCordoned"}})));
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    world.now += SignedDuration::from_secs(5);
    world = world.plan("q", &over(&["a"], &json!({})));
    world.edit_plan("q", |plan| {
        plan.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START + SignedDuration::from_secs(5)));
    });
    let said = "plan p has left it cordoned, so it is drained again";
    let told = told(&mut world, "q", 1);
    assert_eq!(
        on_plan(&told, "NodeDraining"),
        [format!("node a is drained by plan q until 2027-01-15T08:01:05Z; 0 pods left; {said}")]
    );
    assert_eq!(world.node_status("q", "a").message.as_deref(), Some(&*format!("0 pods left; {said}")));

    // Born together, the second one waits for the first and then drains what is drained already.
    let mut world = World::new()
        .node("a")
        .service("web", &["a"], None)
        .plan("p", &over(&["a"], &json!({})))
        .plan("q", &over(&["a"], &json!({})));
    let mut told = Vec::new();
    for _ in 0..10 {
        let before = world.plans.readable[1].status.clone();
        world.step();
        world.replace_going(None);
        told.extend(notices("q", before.as_ref(), world.status("q")));
    }
    let draining = on_plan(&told, "NodeDraining");
    let said = "0 pods left; plan p drained it at 2027-01-15T08:00:00Z, so it is drained again";
    assert!(draining.len() == 1 && draining[0].ends_with(said), "{draining:?}");
}

#[test]
fn the_message_of_a_node_is_about_the_pods_that_are_counted_with_it() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        world.step();
        let node = world.node_status("p", "a");
        if node.phase == NodePhase::Draining {
            seen.insert(node.pods_left);
            let left = super::super::words::count(usize::try_from(node.pods_left).unwrap(), "pod");
            let message = node.message.clone().unwrap();
            assert!(message.starts_with(&format!("{left} left")), "{} left: {message}", node.pods_left);
            let first = node.waiting.first().map(|pod| format!("first shop/{} ({})", pod.pod, pod.reason));
            assert!(first.is_none_or(|first| message.ends_with(&first)), "{message}");
        }
        world.replace_going(Some("b"));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn many_pods_of_a_node_that_wait_for_one_reason_are_one_event_that_names_the_first() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    world.step();
    for number in 10..22 {
        world.cluster.apply_pod(bare(&format!("bare-{number}"), "a"));
    }
    let told = told(&mut world, "p", 4);
    let [note] = on_plan(&told, "Unmanaged")[..] else { panic!("{told:#?}") };
    let start =
        "node a: 12 pods: shop/bare-10, shop/bare-11, shop/bare-12 and 9 more; shop/bare-10: This pod has no";
    assert!(note.starts_with(start), "{note}");
    let (blocked, message) = condition(&world, "p", "DrainBlocked");
    assert_eq!(blocked, "True");
    let start = "12 pods: shop/bare-10 (Unmanaged), shop/bare-11 (Unmanaged), shop/bare-12 (Unmanaged) and 9 more; \
                 shop/bare-10: This pod has no";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn what_holds_a_node_that_is_not_touched_is_told_with_the_node_and_again_when_it_changes() {
    let mut world = World::new().node("a").plan("p", &over(&["a"], &json!({})));
    for number in 1..4 {
        world.cluster.apply_pod(bare(&format!("bare-{number}"), "a"));
    }
    let first = told(&mut world, "p", 3);
    assert_eq!(on_plan(&first, "NodeBlocked").len(), 1, "{first:#?}");
    assert_eq!(on_plan(&first, "Unmanaged"), Vec::<&str>::new());
    for number in 1..4 {
        let name = format!("bare-{number}");
        let data = Box::new([Text::from("cache")]);
        world.cluster.apply_pod(Pod { empty_dirs: data, ..pod(&name, "web", Some("a")) });
    }
    let second = told(&mut world, "p", 3);
    let [note] = on_plan(&second, "NodeBlocked")[..] else { panic!("{second:#?}") };
    assert!(note.contains("(LocalData)"), "{note}");
}

#[test]
fn a_pod_that_is_going_is_not_called_so_twice() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..5 {
        world.step();
    }
    let pod = &world.node_status("p", "a").waiting[0];
    assert_eq!(pod.reason, "Terminating");
    assert!(pod.message.starts_with("Deleted, and to be gone by"), "{}", pod.message);
}

#[test]
fn a_failed_plan_is_one_readable_line_and_the_whole_stands_under_its_nodes() {
    let nodes: Vec<String> = (0..10).map(|number| format!("node-{number}")).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut world = World::new().plan("p", &over(&nodes, &json!({})));
    for node in &nodes {
        world.set_node(node, |_| {});
    }
    let mut world = world.service("web", &nodes, Some(("minAvailable", 10)));
    world.run(None);
    let which = "node-0, node-1, node-2 and 7 more: Blocked (BudgetNeverAllows of shop/web)";
    let stalled = condition(&world, "p", "Stalled").1;
    let until = "no node can be started; 10 nodes fail at 2027-01-15T08:01:00Z unless somebody changes that";
    assert_eq!(stalled, format!("{until}; {which}"));
    world.wait(60);
    world.run(None);
    for type_ in ["Ready", "Stalled"] {
        assert_eq!(condition(&world, "p", type_).1, format!("0 of 10 nodes done, 10 failed; {which}"));
    }
    let node = world.node_status("p", "node-7");
    assert!(node.message.as_ref().unwrap().contains("it requires 10 healthy pods"), "{node:#?}");
}

#[test]
fn after_the_end_nobody_is_told_to_wait() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    for _ in 0..5 {
        world.step();
    }
    let mut going = Pod::clone(world.cluster.pods().find(|pod| pod.terminating()).unwrap());
    going.deletion.as_mut().unwrap().at = START + SignedDuration::from_secs(600);
    world.cluster.apply_pod(going);
    world.step();
    let waits =
        |world: &World| serde_json::to_string(world.status("p")).unwrap().contains("othing to change");
    assert!(waits(&world), "{:#?}", world.status("p"));
    world.wait(60);
    world.step();
    let node = world.node_status("p", "a");
    assert_eq!((node.phase, node.reason.as_deref()), (NodePhase::Failed, Some("TimedOut")));
    assert!(!waits(&world), "{:#?}", world.status("p"));
    let remedy = "More time may do it: write longer timeouts in the next plan";
    assert!(node.message.as_ref().unwrap().ends_with(remedy), "{node:#?}");
    let going = node.waiting.iter().find(|pod| pod.reason == "Terminating").unwrap();
    assert!(going.message.ends_with(remedy), "{going:#?}");
}

#[test]
fn counters_and_columns_agree_with_the_pods_that_are_listed() {
    // One node is blocked and fails while the other one is drained; then the plan has ended.
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("db", &["a", "c"], Some(("minAvailable", 2)))
        .service("web", &["b", "c"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b"], &json!({})));
    let agrees = |world: &World| {
        let status = world.status("p");
        let listed: Vec<&WaitingPod> = status.nodes.iter().flat_map(|node| &node.waiting).collect();
        let counts = status.pod_counts.clone().unwrap();
        let counted = counts.waiting + counts.terminating;
        assert_eq!(usize::try_from(counted), Ok(listed.len()), "{status:#?}");
        let on: i32 = status.budgets.iter().map(|budget| budget.waiting_pods).sum();
        let held = listed.iter().filter(|pod| !pod.budgets.is_empty() && pod.reason != "Terminating");
        assert_eq!(usize::try_from(on), Ok(held.count()), "{status:#?}");
        assert_eq!(status.blocked_on.is_some(), on > 0, "{status:#?}");
        let said = condition(world, "p", "DrainBlocked");
        assert_eq!(said.1 == "no pod waits", listed.is_empty(), "{said:?}");
    };
    for _ in 0..12 {
        world.step();
        agrees(&world);
        world.replace_going(Some("c"));
    }
    assert_eq!(world.status("p").pod_counts.as_ref().unwrap().waiting, 1);
    world.wait(60);
    for _ in 0..3 {
        world.step();
        agrees(&world);
    }
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    let status = world.status("p");
    assert_eq!(status.pod_counts.as_ref().unwrap().waiting, 1);
    assert_eq!(status.blocked_on.as_deref(), Some("shop/db"));
    let (blocked, message) = condition(&world, "p", "DrainBlocked");
    assert_eq!(blocked, "True");
    assert!(message.starts_with("1 pod: shop/db-0 (BudgetNeverAllows of shop/db): Budget"), "{message}");
}

#[test]
fn teams_are_told_of_their_pods_and_budgets_once() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "a"], Some(("minAvailable", 2)))
        .service("fine", &["b"], None)
        .plan("p", &over(&["a", "b"], &json!({})));
    let told = told(&mut world, "p", 4);
    let pod = |name: &str| Subject::Pod { namespace: "shop".into(), name: name.into() };
    let of = |subject: &Subject| -> Vec<(&str, &str)> {
        let about = told.iter().filter(|notice| notice.subject == *subject);
        about.map(|notice| (notice.reason, notice.note.as_str())).collect()
    };
    for name in ["web-0", "web-1"] {
        let [(reason, note)] = of(&pod(name))[..] else { panic!("{told:#?}") };
        assert_eq!(reason, "BudgetNeverAllows");
        let start = "plan p cannot start node a, and this pod cannot go: Budget shop/web (minAvailable 2 of 2) can never";
        assert!(note.starts_with(start) && note.contains("maxUnavailable: 1"), "{note}");
    }
    let budget = Subject::Budget { namespace: "shop".into(), name: "web".into() };
    let [(reason, note)] = of(&budget)[..] else { panic!("{told:#?}") };
    assert_eq!(reason, "BudgetNeverAllows");
    let start = "plan p cannot start node a, and 2 pods wait on this budget; web-0: Budget shop/web";
    assert!(note.starts_with(start), "{note}");
    assert_eq!(of(&pod("fine-0")), []);
}

#[test]
fn teams_are_not_told_of_what_time_alone_does() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    let told = told(&mut world, "p", 6);
    assert_eq!(world.evicted.len(), 1, "the other one waits");
    assert!(
        !told.iter().any(|notice| matches!(notice.subject, Subject::Pod { .. } | Subject::Budget { .. })),
        "{told:#?}"
    );
}
