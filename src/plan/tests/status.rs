//! What the status says, and when it is worth a write.

use super::super::{Change, change, notices};
use super::*;

#[test]
fn what_did_not_change_is_not_written_and_budget_numbers_alone_neither() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    for _ in 0..4 {
        world.step();
    }
    world.step();
    let before = world.status("p").clone();
    world.wait(1);
    let again = world.decide().plans.remove(0).status.unwrap();
    assert_eq!(change(Some(&before), &again), Change::None);
    let mut other = again.clone();
    other.budgets[0].numbers.current_healthy += 1;
    assert_eq!(change(Some(&before), &other), Change::None);
    other.nodes[0].pods_left += 1;
    assert_eq!(change(Some(&before), &other), Change::Soon);
    other.nodes[0].phase = NodePhase::Done;
    assert_eq!(change(Some(&before), &other), Change::Now);
}

#[test]
fn a_waiting_pod_is_named_with_its_budget_the_numbers_and_since_when() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "a", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    for _ in 0..4 {
        world.step();
    }
    world.step();
    let node = world.node_status("p", "a");
    assert_eq!((node.pods_left, node.waiting.len()), (2, 2), "{node:#?}");
    let waiting = node.waiting.iter().find(|pod| pod.reason == "BudgetExhausted").unwrap().clone();
    assert_eq!(waiting.budgets, ["web"]);
    assert!(waiting.message.contains("shop/web"), "{}", waiting.message);
    assert_eq!(world.status("p").blocked_on.as_deref(), Some("shop/web"));
    assert_eq!(world.status("p").budgets[0].numbers.disruptions_allowed, 0);
    world.wait(10);
    world.step();
    let later =
        world.node_status("p", "a").waiting.iter().find(|pod| pod.reason == "BudgetExhausted").unwrap();
    assert_eq!(later.since, waiting.since);
}

#[test]
fn the_report_of_a_large_plan_stays_within_bounds_and_forgets_no_node() {
    let mut world = World::new();
    let mut names: Vec<String> = Vec::new();
    for number in 0..5000 {
        let name = format!("node-{number:04}.with-a-long-name.example.internal");
        world.set_node(&name, |_| {});
        names.push(name);
    }
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    world = world.plan("p", &over(&listed, &json!({})));
    world.edit_plan("p", |plan| {
        let done = names.iter().take(4999).cloned().collect();
        plan.status = Some(DrainPlanStatus {
            phase: Some(PlanPhase::Running),
            started_at: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START)),
            more_done: done,
            ..DrainPlanStatus::default()
        });
    });
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert_eq!(world.status("p").progress.as_deref(), Some("5000/5000"));
    let size = serde_json::to_string(world.status("p")).unwrap().len();
    assert!(size < 512 * 1024, "{size} bytes");
    assert_eq!(world.changes.len(), 2, "only the last node was left to do");
}

#[test]
fn a_report_that_is_too_long_is_cut_and_the_memory_is_not() {
    let pod = |number: usize| crate::api::WaitingPod {
        namespace: "n".repeat(63),
        pod: format!("{number}-{}", "p".repeat(200)),
        budgets: vec!["b".repeat(253)],
        reason: "BudgetExhausted".to_owned(),
        outlook: crate::api::Outlook::WillClear,
        message: "\u{e9}".repeat(500),
        since: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(START),
    };
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    for _ in 0..3 {
        world.step();
    }
    let mut status = world.status("p").clone();
    let one = status.nodes[0].clone();
    status.nodes.clear();
    for number in 0..300 {
        let mut node = one.clone();
        node.name = format!("node-{number}");
        node.message = Some("m".repeat(1000));
        node.waiting = (0..20).map(pod).collect();
        if number >= 100 {
            node.phase = NodePhase::Done;
        }
        status.nodes.push(node);
    }
    super::super::bounds::keep(&mut status);
    let size = serde_json::to_string(&status).unwrap().len();
    assert!(size < 512 * 1024, "{size} bytes");
    assert_eq!(status.nodes.iter().filter(|node| node.phase == NodePhase::Draining).count(), 100);
    assert_eq!(status.nodes.len() + status.more_done.len(), 300);
    assert!(
        status
            .nodes
            .iter()
            .all(|node| node.waiting.len() + usize::try_from(node.more_waiting).unwrap() == 20)
    );
}

#[test]
fn too_many_nodes_are_refused_as_a_whole() {
    let mut world = World::new()
        .plan("p", &over(&[], &json!({"nodes": {"selector": {"matchLabels": {"pool": "workers"}}}})));
    for number in 0..5001 {
        world.set_node(&format!("node-{number}"), |_| {});
    }
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Pending);
    assert!(world.status("p").conditions.iter().any(|c| c.type_ == "Stalled" && c.reason == "TooManyNodes"));
    assert!(world.changes.is_empty());
}

#[test]
fn conditions_follow_the_rules_of_kstatus() {
    let mut world = World::new().node("a").service("web", &["a"], None).plan("p", &over(&["a"], &json!({})));
    world.step();
    let of = |world: &World| -> Vec<(String, String)> {
        world.status("p").conditions.iter().map(|c| (c.type_.clone(), c.status.clone())).collect()
    };
    let pair = |type_: &str, status: &str| (type_.to_owned(), status.to_owned());
    assert_eq!(
        of(&world),
        [
            pair("Ready", "False"),
            pair("Reconciling", "True"),
            pair("DrainBlocked", "False"),
            pair("NodesHealthy", "True")
        ]
    );
    let flipped = world.status("p").conditions[0].last_transition_time.clone();
    world.wait(5);
    world.run(None);
    assert_eq!(of(&world), [pair("Ready", "True"), pair("DrainBlocked", "False")]);
    assert_ne!(world.status("p").conditions[0].last_transition_time, flipped);
    assert!(world.status("p").conditions.iter().all(|c| c.observed_generation == Some(1)));
}

#[test]
fn events_are_told_once() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "b"], Some(("minAvailable", 2)))
        .plan("p", &over(&["a"], &json!({})));
    let mut told: Vec<String> = Vec::new();
    let mut last: Option<DrainPlanStatus> = None;
    for seconds in [0, 1, 30, 60, 61] {
        world.now = START + SignedDuration::from_secs(seconds);
        world.run(None);
        let new = world.status("p").clone();
        told.extend(notices("p", last.as_ref(), &new).into_iter().map(|notice| notice.reason.to_owned()));
        last = Some(new);
    }
    assert_eq!(told.first().map(String::as_str), Some("Running"));
    assert_eq!(told.last().map(String::as_str), Some("Failed"));
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for reason in told {
        *counted.entry(reason).or_default() += 1;
    }
    // On the plan and on the node; on the pod and on its budget.
    let expected = [
        ("AllBlocked", 1),
        ("BudgetNeverAllows", 2),
        ("Failed", 1),
        ("NodeBlocked", 2),
        ("NodeFailed", 2),
        ("Running", 1),
    ];
    assert_eq!(counted, expected.map(|(reason, times)| (reason.to_owned(), times)).into());
}
