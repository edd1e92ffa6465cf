//! Nodes that wait on each other's budgets.

use super::*;
use crate::cluster::{ContainerTrouble, Placement};

/// Ended pods are created again, and bound to a node that is not cordoned and has no pod of the same service.
fn reschedule(world: &mut World, nodes: &[&str]) {
    let going: Vec<Arc<Pod>> = world.cluster.pods().filter(|pod| pod.terminating()).cloned().collect();
    for old in going {
        world.cluster.delete_pod(&old.key());
        let name = format!("{}+", old.name);
        let new = pod(&name, &old.owner.as_ref().unwrap().name, None);
        let created = Some(world.now);
        world.cluster.apply_pod(Pod {
            phase: PodPhase::Pending,
            ready: false,
            created,
            placement: old.placement.clone(),
            ..new
        });
    }
    let mut pending: Vec<Arc<Pod>> = world.cluster.pods().filter(|pod| pod.node.is_none()).cloned().collect();
    pending.sort_by_key(|pod| pod.key());
    for pod in pending {
        let free = |node: &&&str| {
            !world.cordoned(node) && world.cluster.pods_on(node).all(|other| other.owner != pod.owner)
        };
        let mut pod = Pod::clone(&pod);
        if let Some(node) = nodes.iter().find(free) {
            (pod.node, pod.phase, pod.ready, pod.unschedulable) =
                (Some((*node).into()), PodPhase::Running, true, None);
        } else {
            pod.unschedulable = Some("0/2 nodes are available: 2 node(s) were unschedulable.".into());
        }
        world.cluster.apply_pod(pod);
    }
    world.report_budgets();
}

/// Two services with one pod on each of two nodes, and nowhere else to go.
fn two_services() -> World {
    let one = Some(("maxUnavailable", 1));
    World::new().node("a").node("b").service("web", &["a", "b"], one).service("api", &["a", "b"], one)
}

/// A pod loops in crashes, so its budget lets it go for nothing.
fn break_pod(world: &mut World, name: &str) {
    let mut broken = Pod::clone(world.cluster.pods().find(|pod| &*pod.name == name).unwrap());
    broken.ready = false;
    let looping = ContainerTrouble {
        restarts: 9,
        waiting: Some("CrashLoopBackOff".into()),
        ..ContainerTrouble::default()
    };
    broken.trouble = Some(Box::new(looping));
    world.cluster.apply_pod(broken);
    world.report_budgets();
}

/// Goes on for so many seconds, or until all plans have ended; returns who gave way to whom, in order.
fn run(world: &mut World, seconds: usize) -> Vec<(String, String)> {
    let mut gave_way = Vec::new();
    for _ in 0..seconds {
        for _ in 0..4 {
            let before = world.plans.readable.clone();
            world.step();
            for (old, new) in before.iter().zip(&world.plans.readable) {
                let known = old.status.iter().flat_map(|status| &status.yielded);
                let known: Vec<_> = known.collect();
                let now = new.status.iter().flat_map(|status| &status.yielded);
                gave_way.extend(
                    now.filter(|node| !known.contains(node)).map(|node| (node.name.clone(), node.to.clone())),
                );
            }
            reschedule(world, &["a", "b"]);
        }
        world.wait(1);
    }
    gave_way
}

fn b_to_a() -> Vec<(String, String)> {
    vec![("b".to_owned(), "a".to_owned())]
}

fn both() -> Value {
    json!({"pace": {"maxConcurrentNodes": 2}})
}

#[test]
fn the_older_claim_has_all_room_so_that_most_deadlocks_do_not_come_up() {
    let mut world = two_services().plan("p", &over(&["a", "b"], &both()));
    assert_eq!(run(&mut world, 20), []);
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 4));
}

#[test]
fn the_younger_of_two_nodes_that_wait_on_each_other_gives_way_once() {
    let mut world = two_services();
    break_pod(&mut world, "api-1");
    world = world.plan("p", &over(&["a", "b"], &both()));
    assert_eq!(run(&mut world, 30), b_to_a());
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    let status = world.status("p");
    assert_eq!(status.yielded, []);
    let evicted = i32::try_from(world.evicted.len()).unwrap();
    assert_eq!(status.pod_counts.as_ref().unwrap().evicted, evicted, "none is lost and none counted twice");
    assert!(["a", "b"].iter().all(|node| !world.cordoned(node) && world.marks(node).is_empty()));
}

#[test]
fn it_gives_way_to_the_node_of_another_plan_too_and_waits_for_its_end() {
    let mut world = two_services();
    break_pod(&mut world, "api-1");
    world = world.plan("p", &over(&["a"], &json!({}))).plan("q", &over(&["b"], &json!({})));
    let mut gave_way = Vec::new();
    for _ in 0..30 {
        gave_way.extend(run(&mut world, 1));
        let drains = |plan: &str, node: &str| {
            let nodes = &world.status(plan).nodes;
            nodes.iter().any(|of| of.name == node && of.phase == NodePhase::Draining)
        };
        assert!(
            gave_way.is_empty() || !(drains("p", "a") && drains("q", "b")),
            "b is started while a is drained"
        );
    }
    assert_eq!(gave_way, b_to_a());
    assert_eq!((world.phase("p"), world.phase("q")), (PlanPhase::Completed, PlanPhase::Completed));
}

#[test]
fn a_node_that_could_not_take_the_replacement_does_not_give_way() {
    let mut world = two_services();
    break_pod(&mut world, "api-1");
    let pods: Vec<Arc<Pod>> = world.cluster.pods().cloned().collect();
    let elsewhere = Requirement { key: "pool".into(), operator: Operator::In, values: vec!["other".into()] };
    let placement = Placement { labels: Selector { requirements: vec![elsewhere] }, ..Placement::default() };
    for pod in pods {
        let placement = Some(Arc::new(placement.clone()));
        world.cluster.apply_pod(Pod { placement, ..Pod::clone(&pod) });
    }
    world = world.plan("p", &over(&["a", "b"], &both()));
    assert_eq!(run(&mut world, 20), []);
}

#[test]
fn a_foreign_cordon_would_stay_so_the_node_does_not_give_way() {
    let mut world = two_services();
    break_pod(&mut world, "api-1");
    world.set_node("b", |node| node.unschedulable = true);
    world = world.plan("p", &over(&["a", "b"], &both()));
    assert_eq!(run(&mut world, 20), []);
}

#[test]
fn the_one_that_gave_way_is_said_and_an_event() {
    let mut world = two_services();
    break_pod(&mut world, "api-1");
    world = world.plan("p", &over(&["a", "b"], &both()));
    let mut said = None;
    while said.is_none() {
        let before = world.status_of("p");
        run(&mut world, 1);
        let now = world.status_of("p");
        let told = super::super::notices("p", before.as_ref(), now.as_ref().unwrap());
        said = told.into_iter().find(|notice| notice.reason == "NodeYielded");
    }
    let note = said.unwrap().note;
    assert!(note.contains("node b gives way to a") && note.contains("shop/"), "{note}");
}
