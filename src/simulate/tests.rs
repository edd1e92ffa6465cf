//! The virtual cluster does what a real one does, and a plan runs in it to its end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;
use crate::api::{DrainPlan, NodePhase, PlanPhase};
use crate::cluster::{BudgetKey, Pdb, PodKey, Text};
use crate::plan::{Evict, Settings};

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn world() -> World {
    World::new(START, Timing::default(), Settings::default(), 1)
}

fn after(seconds: i64) -> Timestamp {
    START + SignedDuration::from_secs(seconds)
}

/// Six pods of a service with a budget on nodes a and b, spares c and d.
fn service() -> World {
    let mut world = world();
    for node in ["a", "b"] {
        world.add_node(&NodeSetup::new(node, "old", 8));
    }
    world.add_workload(WorkloadSetup::deployment("shop", "web", 6));
    world.act(Act::PutBudget(BudgetSetup::max_unavailable("shop", "web", 1)));
    world.run(after(10));
    for node in ["c", "d"] {
        world.add_node(&NodeSetup::new(node, "new", 8));
    }
    world.run(after(20));
    world
}

fn plan(name: &str, spec: &serde_json::Value) -> DrainPlan {
    let object = json!({"apiVersion": "drainplan.dev/v1alpha1", "kind": "DrainPlan",
        "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn over(nodes: &[&str]) -> serde_json::Value {
    json!({"nodes": {"names": nodes}, "timeouts": {"node": "60s"}, "handOff": {"then": "Uncordon"}})
}

fn budget(world: &World) -> Pdb {
    let key = BudgetKey { namespace: "shop".into(), name: "web".into() };
    (**world.store().cluster().budget(&key).unwrap()).clone()
}

fn allowed(world: &World) -> i32 {
    budget(world).status.disruptions_allowed
}

fn eviction(pod: &PodKey, uid: &str) -> Evict {
    let (pod, uid) = (pod.clone(), Text::from(uid));
    Evict { pod, uid, node: "a".into(), spends: vec![], owner: None, grace_period_seconds: None }
}

#[test]
fn pods_are_created_bound_and_ready_and_their_budget_is_counted() {
    let world = service();
    let pods = world.pods_of("shop/web");
    assert_eq!(pods.len(), 6);
    assert!(pods.iter().all(|pod| pod.ready && pod.node.is_some()));
    assert_eq!(world.store().cluster().pods_on("a").count(), 3, "evenly");
    let status = budget(&world).status;
    assert_eq!(
        (status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed),
        (6, 6, 5, 1)
    );
}

#[test]
fn an_eviction_is_charged_the_pod_replaced_and_the_budget_has_room_again() {
    let mut world = service();
    let pod = world.pods_of("shop/web").remove(0);
    server::evict(&mut world.store, &eviction(&pod.key(), &pod.uid), 30, world.now).unwrap();
    assert_eq!(allowed(&world), 0);
    assert!(budget(&world).status.disrupted_pods.contains_key(&pod.name));
    let other = world.pods_of("shop/web").remove(1);
    let refused =
        server::evict(&mut world.store, &eviction(&other.key(), &other.uid), 30, world.now).unwrap_err();
    assert_eq!((refused.code, refused.details.unwrap().causes[0].reason.as_str()), (429, "DisruptionBudget"));
    world.react();
    world.run(after(30));
    assert!(world.store().pod_of(&pod.key(), &pod.uid).is_none());
    assert_eq!((world.pods_of("shop/web").len(), allowed(&world)), (6, 1));
    assert!(budget(&world).status.disrupted_pods.is_empty());
}

#[test]
fn a_wrong_uid_is_refused_and_yet_charged() {
    let mut world = service();
    let pod = world.pods_of("shop/web").remove(0);
    let refused =
        server::evict(&mut world.store, &eviction(&pod.key(), "another"), 30, world.now).unwrap_err();
    assert_eq!((refused.code, allowed(&world)), (409, 0));
    // The controller believes in the eviction for two minutes.
    world.react();
    world.run(after(100));
    assert_eq!(allowed(&world), 0);
    world.run(after(150));
    assert_eq!(allowed(&world), 1);
}

#[test]
fn with_the_controller_manager_stopped_the_allowance_is_stale_and_still_spent() {
    let mut world = service();
    world.act(Act::ManagerStops);
    world.act(Act::PodFails("shop/web".to_owned(), 0, Duration::from_mins(10)));
    world.react();
    world.run(after(40));
    assert_eq!(allowed(&world), 1, "nobody has counted again");
    let pod = world.pods_of("shop/web").remove(1);
    server::evict(&mut world.store, &eviction(&pod.key(), &pod.uid), 30, world.now).unwrap();
    world.act(Act::ManagerStarts);
    world.run(after(50));
    assert_eq!(budget(&world).status.current_healthy, 5, "the failing pod is still away");
}

#[test]
fn a_silent_kubelet_confirms_nothing_until_it_returns() {
    let mut world = service();
    world.act(Act::KubeletDies("a".to_owned()));
    world.react();
    let pod = world.store().cluster().pods_on("a").next().unwrap().clone();
    server::evict(&mut world.store, &eviction(&pod.key(), &pod.uid), 30, world.now).unwrap();
    world.react();
    world.run(after(70));
    assert!(world.store().pod_of(&pod.key(), &pod.uid).is_some());
    assert_eq!(&*world.store().cluster().node("a").unwrap().ready, "Unknown");
    assert_eq!(budget(&world).status.current_healthy, 4, "three pods are not Ready, one of them is replaced");
    world.act(Act::KubeletReturns("a".to_owned()));
    world.react();
    world.run(after(75));
    assert!(world.store().pod_of(&pod.key(), &pod.uid).is_none());
    assert_eq!(budget(&world).status.current_healthy, 6);
}

#[test]
fn pods_of_a_node_that_is_gone_are_collected_and_replaced() {
    let mut world = service();
    world.act(Act::DeleteNode("a".to_owned()));
    world.react();
    world.run(after(60));
    assert_eq!(world.store().cluster().pods_on("a").count(), 3);
    world.run(after(90));
    assert_eq!(world.store().cluster().pods_on("a").count(), 0);
    assert_eq!(world.pods_of("shop/web").iter().filter(|pod| pod.ready).count(), 6);
}

#[test]
fn a_stateful_pod_is_reborn_under_its_name_when_the_old_one_is_gone() {
    let mut world = world();
    world.add_node(&NodeSetup::new("a", "old", 8));
    let mut setup = WorkloadSetup::deployment("shop", "db", 3);
    setup.kind = OwnerKind::StatefulSet { parallel: false };
    setup.template.finalizer = Some(After::millis(2000));
    world.add_workload(setup);
    world.run(after(1));
    assert_eq!(world.pods_of("shop/db").len(), 1, "one after the other");
    world.run(after(10));
    let old = world.pods_of("shop/db").remove(1);
    assert_eq!((&*old.name, old.ready), ("db-1", true));
    world.act(Act::DeletePod("shop/db".to_owned(), 1));
    world.react();
    world.run(after(11));
    let held = world.pods_of("shop/db").remove(1);
    assert_eq!(
        (&held.uid, held.deletion.unwrap().grace_seconds),
        (&old.uid, 0),
        "only its finalizer holds it"
    );
    world.run(after(20));
    let reborn = world.pods_of("shop/db").remove(1);
    assert!(reborn.name == old.name && reborn.uid != old.uid && reborn.ready);
}

#[test]
fn a_plan_drains_its_nodes_and_gives_them_back() {
    let mut world = service();
    world.add_process();
    world.act(Act::CreatePlan(Box::new(plan("p", &over(&["a", "b"])))));
    world.run(after(60));
    let status = world.store().plan("p").unwrap().status.clone().unwrap();
    assert_eq!(status.phase, Some(PlanPhase::Completed), "{status:#?}");
    assert!(status.nodes.iter().all(|node| node.phase == NodePhase::Done));
    assert_eq!(status.pod_counts.unwrap().evicted, 6);
    for node in ["a", "b"] {
        let node = world.store().cluster().node(node).unwrap();
        assert!(!node.unschedulable && node.annotations.is_empty(), "{node:?}");
    }
    assert_eq!(world.store().plan("p").unwrap().metadata.finalizers, Some(vec![]));
    assert!(world.pods_of("shop/web").iter().all(|pod| pod.ready));
}

#[test]
fn the_same_seed_gives_the_same_course_of_events() {
    let course = |seed| {
        let mut world = World::new(START, Timing::default(), Settings::default(), seed);
        for node in ["a", "b", "c"] {
            world.add_node(&NodeSetup::new(node, "old", 8));
        }
        world.add_workload(WorkloadSetup::deployment("shop", "web", 5));
        world.act(Act::PutBudget(BudgetSetup::max_unavailable("shop", "web", 2)));
        world.add_process();
        world.act(Act::CreatePlan(Box::new(plan("p", &over(&["a", "b"])))));
        world.plan_act(after(3), Act::Crash(0, Duration::from_secs(2)));
        let mut times = Vec::new();
        while world.step(after(90)) {
            times.push(world.now());
        }
        (times, format!("{:?}", world.store().plan("p")))
    };
    assert_eq!(course(1), course(1));
    assert_ne!(course(1).0, course(2).0);
}

#[test]
fn without_the_right_to_evict_no_node_is_touched_and_with_it_the_plan_goes_on() {
    let mut world = service();
    world.add_process();
    world.act(Act::RightTaken);
    world.act(Act::CreatePlan(Box::new(plan("p", &over(&["a", "b"])))));
    world.run(after(60));
    let nodes = |world: &World| world.store().plan("p").unwrap().status.clone().unwrap().nodes;
    assert!(
        nodes(&world).iter().all(|node| node.reason.as_deref() == Some("Blocked")),
        "{:#?}",
        nodes(&world)
    );
    assert_eq!(nodes(&world).len(), 2);
    let touched = |facts: &[Fact]| {
        facts.iter().any(|fact| matches!(fact, Fact::NodePatched { .. } | Fact::EvictionSent { .. }))
    };
    assert!(!touched(&world.take_facts()));
    world.act(Act::RightGiven);
    world.run(after(400));
    assert_eq!(world.store().plan("p").unwrap().status.as_ref().unwrap().phase, Some(PlanPhase::Completed));
}

#[test]
fn a_controller_manager_that_is_down_is_not_called_a_matter_of_time() {
    let mut world = service();
    world.add_process();
    world.act(Act::ManagerStops);
    let mut spec = over(&["a", "b"]);
    spec["timeouts"]["node"] = json!("300s");
    world.act(Act::CreatePlan(Box::new(plan("p", &spec))));
    world.run(after(70));
    let status = |world: &World| world.store().plan("p").unwrap().status.clone().unwrap();
    let waiting = |world: &World| -> Vec<(String, bool)> {
        let pods = status(world).nodes.into_iter().flat_map(|node| node.waiting);
        pods.map(|pod| (pod.reason, pod.message.contains("othing to change"))).collect()
    };
    let held = waiting(&world);
    assert!(
        !held.is_empty() && held.iter().all(|(reason, wait)| reason == "BudgetStale" && !wait),
        "{held:?}"
    );
    world.act(Act::ManagerStarts);
    world.run(after(200));
    assert_eq!(status(&world).phase, Some(PlanPhase::Completed), "{:#?}", status(&world));
}
