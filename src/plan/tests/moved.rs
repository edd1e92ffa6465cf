//! The owners whose pods are moved: remembered, held, awaited.

use super::*;
use crate::api::{MovedOwner, Outlook};
use crate::cluster::{Placement, Toleration};

fn moved<'w>(world: &'w World, plan: &str, owner: &str) -> Option<&'w MovedOwner> {
    world.status(plan).moved.iter().find(|of| of.name == owner)
}

/// What is said of the plan as a whole.
fn ready_message(world: &World, plan: &str) -> String {
    let ready = world.status(plan).conditions.iter().find(|condition| condition.type_ == "Ready");
    ready.unwrap().message.clone()
}

fn waits(world: &World, plan: &str, node: &str, pod: &str) -> Option<(String, Outlook, String)> {
    let waiting = world.node_status(plan, node).waiting.iter().find(|of| of.pod == pod)?;
    Some((waiting.reason.clone(), waiting.outlook, waiting.message.clone()))
}

#[test]
fn an_owner_is_written_down_with_the_start_of_its_node_and_forgotten_when_it_is_whole_again() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "b", "b"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a"], &json!({})));
    world.step();
    let owner = moved(&world, "p", "web").unwrap();
    assert_eq!(
        (owner.namespace.as_str(), owner.kind.as_str(), owner.uid.as_str()),
        ("shop", "ReplicaSet", "web")
    );
    assert_eq!((owner.evicted, owner.ready_before), (0, 3));
    assert_eq!((owner.budget.as_deref(), owner.budget_expected), (Some("web"), Some(3)));
    for _ in 0..3 {
        world.step();
    }
    assert_eq!(world.evicted, ["web-0"]);
    world.step();
    assert_eq!(moved(&world, "p", "web").map(|of| (of.evicted, of.ready_before)), Some((1, 3)));
    world.replace_going(Some("b"));
    world.run(None);
    assert_eq!((world.phase("p"), &world.status("p").moved), (PlanPhase::Completed, &vec![]));
}

#[test]
fn an_owner_that_is_not_whole_when_the_plan_ends_stays_in_its_status() {
    let mut world = World::new().node("a").service("web", &["a", "b"], Some(("maxUnavailable", 1)));
    world = world.plan("p", &over(&["a"], &json!({})));
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert_eq!(moved(&world, "p", "web").map(|of| (of.evicted, of.ready_before)), Some((1, 2)));
}

#[test]
fn pods_without_a_scale_are_not_remembered_and_go_all_the_same() {
    let mut world = World::new().node("a");
    let job = OwnerRef { api_version: "batch/v1".into(), kind: "Job".into(), ..owner("export") };
    world.cluster.apply_pod(Pod { owner: Some(Arc::new(job)), ..pod("export-0", "export", Some("a")) });
    world.cluster.apply_pod(Pod { owner: None, ..pod("bare", "bare", Some("a")) });
    let spec = json!({"pods": {"unmanaged": "Evict"}, "pace": {"awaitReplacements": true}});
    world = world.plan("p", &over(&["a"], &spec));
    world.run(None);
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 2));
    assert_eq!(world.status("p").moved, []);
}

#[test]
fn a_pod_that_comes_to_light_later_goes_only_when_its_owner_is_written_down() {
    let mut world = World::new().node("a").service("web", &["a", "a"], Some(("maxUnavailable", 1)));
    world = world.plan("p", &over(&["a"], &json!({"pace": {"awaitReplacements": true}})));
    for _ in 0..3 {
        world.step();
    }
    world.cluster.apply_workload(workload("late", 1));
    world.cluster.apply_pod(pod("late-0", "late", Some("a")));
    let before = world.status("p").clone();
    assert_eq!(evictions(&world.step()), ["web-0"]);
    assert_eq!(super::super::change(Some(&before), world.status("p")), super::super::Change::Now);
    assert!(moved(&world, "p", "late").is_some());
    assert_eq!(evictions(&world.step()), ["late-0"]);
}

/// Three owners of one pod each under one budget, which lets one of them be away.
fn three_singles() -> World {
    let mut world = World::new().node("a").node("b");
    for name in ["one", "two", "three"] {
        let of =
            Workload { template_labels: Labels::new([("app".into(), "web".into())]), ..workload(name, 1) };
        world.cluster.apply_workload(of);
        let labels = Labels::new([("app".into(), "web".into())]);
        world.cluster.apply_pod(Pod { labels, ..pod(&format!("{name}-0"), name, Some("a")) });
    }
    world.cluster.apply_budget(pdb("web", "maxUnavailable", 1));
    world.report_budgets();
    world
}

#[test]
fn a_budget_that_has_refilled_itself_is_held_and_said() {
    let mut world = three_singles().plan("p", &over(&["a"], &json!({})));
    for _ in 0..4 {
        world.step();
    }
    assert_eq!(world.evicted, ["one-0"]);
    // Nothing comes in its place: the budget expects two pods and allows one of them to go.
    world.replace_going(None);
    let budget = BudgetKey { namespace: "shop".into(), name: "web".into() };
    assert_eq!(world.cluster.budget(&budget).unwrap().status.disruptions_allowed, 1);
    assert_eq!(evictions(&world.step()).len(), 0);
    let (reason, outlook, message) = waits(&world, "p", "a", "two-0").unwrap();
    assert_eq!((reason.as_str(), outlook), ("BudgetShrunk", Outlook::MayClear));
    assert_eq!(
        message,
        "Budget shop/web (maxUnavailable 1 of 2) reports disruptionsAllowed 1, but only because ReplicaSet one has no pod \
         left since pods of this budget were evicted, so that it no longer counts: it expects 2 pods instead of 3. With it \
         the budget would want 2 healthy pods and has 2, so nothing more is evicted under it. Let ReplicaSet one create its pod \
         (kubectl describe replicaset one -n shop says why there is none), or scale to 0 what is not wanted any more"
    );
    // Its pod is back.
    let labels = Labels::new([("app".into(), "web".into())]);
    world.cluster.apply_pod(Pod { labels, ..pod("one-1", "one", Some("b")) });
    world.report_budgets();
    assert_eq!(evictions(&world.step()).len(), 1);
}

#[test]
fn it_is_held_for_every_plan_and_also_when_the_plan_that_evicted_has_ended() {
    let mut world = three_singles();
    for (pod, node) in [("two-0", "b"), ("three-0", "b")] {
        let moved = Pod::clone(world.cluster.pods().find(|of| &*of.name == pod).unwrap());
        world.cluster.apply_pod(Pod { node: Some(node.into()), ..moved });
    }
    world = world.plan("p", &over(&["a"], &json!({})));
    world.run(None);
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 1));
    world = world.plan("q", &over(&["b"], &json!({})));
    world.run(None);
    assert_eq!(world.evicted.len(), 1);
    assert_eq!(waits(&world, "q", "b", "two-0").unwrap().0, "BudgetShrunk");
    // Nobody wants that owner's pods any more.
    world.cluster.apply_workload(Workload {
        template_labels: Labels::new([("app".into(), "web".into())]),
        ..workload("one", 0)
    });
    assert_eq!(evictions(&world.step()).len(), 1);
}

#[test]
fn with_its_pods_away_an_owner_still_counts_for_what_is_attainable() {
    let mut world = three_singles();
    let key = BudgetKey { namespace: "shop".into(), name: "web".into() };
    world.cluster.delete_budget(&key);
    world.cluster.apply_budget(pdb("web", "minAvailable", 2));
    world.report_budgets();
    world = world.plan("p", &over(&["a"], &json!({})));
    for _ in 0..4 {
        world.step();
    }
    world.replace_going(None);
    world.step();
    let (reason, outlook, _) = waits(&world, "p", "a", "two-0").unwrap();
    assert_ne!((reason.as_str(), outlook), ("BudgetNeverAllows", Outlook::NeverClears));
}

/// A pod that the cordon does not keep away.
fn tolerant(name: &str, node: &str, created: Timestamp) -> Pod {
    let cordon = Toleration {
        key: "node.kubernetes.io/unschedulable".into(),
        exists: true,
        effect: "NoSchedule".into(),
        ..Toleration::default()
    };
    let placement = Placement { tolerations: vec![cordon], ..Placement::default() };
    Pod { placement: Some(Arc::new(placement)), created: Some(created), ..pod(name, "web", Some(node)) }
}

#[test]
fn pods_that_come_back_to_their_node_are_left_alone_after_two() {
    let mut world = World::new().node("a").node("b");
    world.cluster.apply_workload(workload("web", 1));
    world.cluster.apply_pod(tolerant("web-0", "a", START - SignedDuration::from_secs(9)));
    world = world.plan("p", &over(&["a"], &json!({})));
    for number in 1..=2 {
        for _ in 0..4 {
            world.step();
        }
        assert_eq!(world.evicted.len(), number);
        world.wait(5);
        world.replace_going(None);
        let now = world.now;
        world.cluster.apply_pod(tolerant(&format!("web-{number}"), "a", now));
        let before = world.status("p").clone();
        assert_eq!(evictions(&world.step()).len(), 0, "its return is written down first");
        assert_eq!(super::super::change(Some(&before), world.status("p")), super::super::Change::Now);
    }
    for _ in 0..4 {
        assert_eq!(evictions(&world.step()).len(), 0);
    }
    let (reason, outlook, message) = waits(&world, "p", "a", "web-2").unwrap();
    assert_eq!((reason.as_str(), outlook), ("ReturnsToNode", Outlook::MayClear));
    assert!(
        message.starts_with(
            "Two pods of ReplicaSet web have come back to a since it was cordoned: it tolerates"
        )
    );
    assert_eq!(world.node_status("p", "a").returned.len(), 2);
    world.wait(60);
    world.run(None);
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Failed, 2));
}

#[test]
fn no_node_is_started_while_moved_pods_are_not_ready_again() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .node("c")
        .service("web", &["a", "b", "c"], None)
        .plan("p", &over(&["a", "b"], &json!({"pace": {"awaitReplacements": true}})));
    world.run(None);
    assert_eq!(world.node_status("p", "a").phase, NodePhase::Done);
    assert!(world.changes.iter().all(|(node, change)| node == "a" || *change == NodeChange::Mark));
    let message = ready_message(&world, "p");
    let short = "b: pods of this plan are not back (pace.awaitReplacements), namespace shop: ReplicaSet web has 2 of 3 pods \
                 Ready: no replacement is created";
    assert!(message.contains(short), "{message}");
    assert!(world.status("p").idle_since.is_some());
    let mut replacement = pod("web-again", "web", None);
    (replacement.ready, replacement.phase) = (false, PodPhase::Pending);
    replacement.unschedulable = Some("0/3 nodes are available: 3 Too many pods.".into());
    world.cluster.apply_pod(replacement.clone());
    world.run(None);
    let message = ready_message(&world, "p");
    let quoted = "web-again is Pending, and the scheduler says: “0/3 nodes are available: 3 Too many pods.”";
    assert!(message.contains(quoted), "{message}");
    (replacement.node, replacement.ready, replacement.phase) = (Some("c".into()), true, PodPhase::Running);
    replacement.unschedulable = None;
    world.cluster.apply_pod(replacement);
    world.step();
    assert_eq!(world.node_status("p", "b").phase, NodePhase::Draining);
    assert_eq!(world.status("p").idle_since, None);
}

#[test]
fn moved_pods_that_never_come_back_end_the_plan_by_its_idle_clock_with_their_names() {
    let mut world = World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "b"], None)
        .plan("p", &over(&["a", "b"], &json!({"pace": {"awaitReplacements": true}})));
    world.run(None);
    world.wait(60);
    world.run(None);
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    let failed = world.node_status("p", "b");
    assert_eq!(failed.reason.as_deref(), Some("AwaitingReplacements"));
    assert!(failed.message.as_ref().unwrap().contains("ReplicaSet web has 1 of 2 pods Ready"));
}

#[test]
fn what_fits_only_nodes_that_the_plan_holds_is_not_awaited() {
    let only = |names: &[&str]| {
        let names = Some(names.iter().map(|name| Text::from(*name)).collect());
        let term = crate::cluster::NodeTerm { names, ..crate::cluster::NodeTerm::default() };
        Some(Arc::new(Placement { terms: vec![term], ..Placement::default() }))
    };
    let after = |places: &[&str]| {
        let mut world = World::new().node("a").node("b").node("c").service("web", &["a", "b"], None).plan(
            "p",
            &over(
                &["a", "b"],
                &json!({"pace": {"awaitReplacements": true}, "handOff": {"then": "KeepCordoned"}}),
            ),
        );
        world.run(None);
        let pending = Pod { ready: false, phase: PodPhase::Pending, ..pod("web-again", "web", None) };
        let unschedulable = Some("0/3 nodes are available".into());
        world.cluster.apply_pod(Pod { placement: only(places), unschedulable, ..pending });
        world.step();
        world.status("p").node_counts.as_ref().unwrap().draining
    };
    assert_eq!(after(&["a"]), 1, "we keep that node cordoned ourselves");
    assert_eq!(after(&["a", "c"]), 0, "another node may have it");
    assert_eq!(after(&["nowhere"]), 0, "no node may have it");
}

#[test]
fn a_scale_that_has_fallen_and_an_owner_that_is_gone_are_not_awaited() {
    for gone in [false, true] {
        let mut world = World::new()
            .node("a")
            .node("b")
            .service("web", &["a", "b"], None)
            .plan("p", &over(&["a", "b"], &json!({"pace": {"awaitReplacements": true}})));
        world.run(None);
        assert_eq!(world.status("p").node_counts.as_ref().unwrap().done, 1);
        if gone {
            world.cluster.delete_workload("web");
        } else {
            world.cluster.apply_workload(workload("web", 1));
        }
        world.step();
        assert_eq!(world.node_status("p", "b").phase, NodePhase::Draining);
    }
}

#[test]
fn an_owner_none_of_whose_pods_went_is_forgotten_with_its_node() {
    let mut world = World::new().node("a").service("web", &["a", "b"], Some(("maxUnavailable", 0)));
    // Judged only once it is being drained: until then the budget lets a pod go.
    let key = BudgetKey { namespace: "shop".into(), name: "web".into() };
    let mut open = Pdb::clone(world.cluster.budget(&key).unwrap());
    open.max_unavailable = Some(Amount::Int(1));
    world.cluster.apply_budget(open);
    world.report_budgets();
    world = world.plan("p", &over(&["a"], &json!({"pace": {"awaitReplacements": true}})));
    world.step();
    world.cluster.apply_budget(pdb("web", "maxUnavailable", 0));
    let mut broken = pod("web-1", "web", Some("b"));
    broken.ready = false;
    world.cluster.apply_pod(broken);
    world.report_budgets();
    world.run(None);
    assert!(moved(&world, "p", "web").is_some());
    world.wait(60);
    world.run(None);
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Failed, 0));
    assert_eq!(world.status("p").moved, []);
}

#[test]
fn a_status_holds_no_more_owners_than_fit_beside_the_names_of_its_nodes() {
    let mut world = World::new();
    let nodes: Vec<String> = (0..40).map(|number| format!("node-{number:02}")).collect();
    for node in &nodes {
        world.set_node(node, |_| {});
        for number in 0..50 {
            let owner = format!("{node}-{number}-of-a-service-with-quite-a-long-name-as-they-are");
            world.cluster.apply_workload(workload(&owner, 1));
            world.cluster.apply_pod(pod(&format!("{owner}-0"), &owner, Some(node)));
        }
    }
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let pace = json!({"pace": {"awaitReplacements": true, "maxConcurrentNodes": "100%"}});
    world = world.plan("p", &over(&names, &pace));
    world.step();
    let draining = world.status("p").node_counts.as_ref().unwrap().draining;
    assert!((5..30).contains(&draining), "{draining}");
    let size = serde_json::to_string(&world.status("p").moved).unwrap().len();
    assert!((100 * 1024..256 * 1024).contains(&size), "{size} bytes");
    for _ in 0..60 {
        if world.phase("p") == PlanPhase::Running {
            world.step();
            world.replace_going(Some("spare"));
        }
    }
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 2000));
}
