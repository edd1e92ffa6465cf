//! The order in which pods leave a node, and pods that are left or awaited.

use super::*;

fn draining(changes: &Value, services: &[(&str, &[&str])]) -> World {
    let mut world = World::new().node("a");
    for (name, nodes) in services {
        world = world.service(name, nodes, None);
    }
    world = world.plan("p", &over(&["a"], changes));
    for _ in 0..3 {
        world.step();
    }
    world
}

fn order(name: &str, order: i32) -> Value {
    json!({"podSelector": {"matchLabels": {"app": name}}, "action": "Evict", "order": order})
}

#[test]
fn pods_of_a_lower_order_are_gone_before_the_next_ones_go() {
    let rules = json!({"pods": {"rules": [order("db", 5), order("proxy", -1)]}});
    let mut world = draining(&rules, &[("db", &["a"]), ("proxy", &["a", "a"]), ("web", &["a"])]);
    assert_eq!(evictions(&world.step()), ["proxy-0", "proxy-1"]);
    assert_eq!(evictions(&world.step()).len(), 0, "they are still going");
    let waiting = world.node_status("p", "a").waiting.iter().find(|pod| pod.pod == "web-0").unwrap().clone();
    assert_eq!(waiting.reason, "AwaitingOrder");
    assert!(waiting.message.contains("proxy-0 and proxy-1"), "{}", waiting.message);
    world.replace_going(None);
    assert_eq!(evictions(&world.step()), ["web-0"]);
    world.replace_going(None);
    assert_eq!(evictions(&world.step()), ["db-0"]);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_pod_of_a_later_order_that_never_clears_blocks_the_node_at_once() {
    let rules = json!({"pods": {"rules": [order("bare", 5)]}});
    let mut world = World::new().node("a").service("web", &["a"], None);
    world.cluster.apply_pod(Pod { owner: None, ..pod("bare", "bare", Some("a")) });
    world = world.plan("p", &over(&["a"], &rules));
    world.run(None);
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("Blocked"));
    assert!(world.evicted.is_empty() && world.changes.is_empty());
}

#[test]
fn skipped_pods_stay_and_awaited_ones_are_awaited() {
    let rules = json!({"pods": {"rules": [
        {"podSelector": {"matchLabels": {"app": "agent"}}, "action": "Skip"},
        {"podSelector": {"matchLabels": {"app": "job"}}, "action": "AwaitCompletion"},
    ]}});
    let mut world = World::new().node("a").service("agent", &["a"], None).service("web", &["a"], None);
    let job = Pod { restart_policy: crate::cluster::RestartPolicy::Never, ..pod("job-0", "job", Some("a")) };
    world.cluster.apply_pod(job.clone());
    world = world.plan("p", &over(&["a"], &rules));
    world.run(None);
    assert_eq!(world.evicted, ["web-0"]);
    assert_eq!(world.node_status("p", "a").waiting[0].reason, "AwaitingCompletion");
    world.cluster.apply_pod(Pod { phase: PodPhase::Succeeded, ready: false, ..job });
    world.run(None);
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 1));
}

#[test]
fn pods_without_a_budget_go_one_by_one_where_asked() {
    let policy = json!({"pods": {"unbudgeted": "OneAtATime"}, "timeouts": {"node": "1h"}});
    let mut world = draining(&policy, &[("web", &["a", "a", "a"]), ("api", &["a", "b"])]);
    assert_eq!(evictions(&world.step()), ["api-0", "web-0"], "of each owner one");
    assert_eq!(evictions(&world.step()).len(), 0);
    world.replace_going(Some("b"));
    assert_eq!(evictions(&world.step()), ["web-1"]);
    world.replace_going(None);
    assert_eq!(evictions(&world.step()).len(), 0, "its replacement is not there");
    world.wait(120);
    assert_eq!(evictions(&world.step()), ["web-2"], "but is not awaited for ever");
}
