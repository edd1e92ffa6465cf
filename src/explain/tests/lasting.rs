//! What should pass in moments and does not.

use super::*;

/// A budget whose status says that one pod of three is unready; all are Ready.
fn miscounted() -> World {
    let world = World::new().stateful_set("web", 3).change("web-1", |pod| pod.ready = false);
    world.budget("web", "maxUnavailable: 1").change("web-1", |pod| pod.ready = true)
}

/// One pod of three is gone, and its budget knows.
fn lacking() -> World {
    World::new().deployment("web", 3).without("web-7d-2").budget("web", "maxUnavailable: 1")
}

#[test]
fn a_status_that_stays_wrong_is_stale_after_thirty_seconds() {
    assert_eq!(miscounted().judge("web-0").changes_at, Some(ago(-30)), "it is remembered from now on");
    let world = miscounted().seen_for(29, "web-0");
    assert_eq!(world.reason("web-0"), Some(Reason::BudgetExhausted));
    assert_eq!(world.judge("web-0").changes_at, Some(ago(-1)));
    let world = miscounted().seen_for(30, "web-0");
    world.waits(
        "web-0",
        Reason::BudgetStale,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 3) reports expected 3, healthy 2, desired 2, \
         allowed 0, and by its pods and owners it should report expected 3, healthy 3, desired \
         2, allowed 1, since 2026-12-01T09:59:30Z at the latest: is the disruption controller \
         down?",
        "check that kube-controller-manager runs and is not overloaded",
    );
    // Somebody writes it, so somebody is there.
    let world = world.change_budget(|budget| budget.status.current_healthy = 1);
    assert_eq!(world.reason("web-0"), Some(Reason::BudgetExhausted));
}

#[test]
fn a_spec_that_nobody_processes_is_stale_though_nobody_knows_when_it_was_written() {
    let behind = || {
        let world = World::new().stateful_set("web", 3).budget("web", "maxUnavailable: 1");
        world.change_budget(|budget| budget.generation = 2)
    };
    assert_eq!(behind().seen_for(29, "web-0").reason("web-0"), Some(Reason::BudgetExhausted));
    behind().seen_for(30, "web-0").waits(
        "web-0",
        Reason::BudgetStale,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 3) is not processed since 2026-12-01T09:59:30Z \
         at the latest (generation 2, observed 1), so the server refuses evictions: is the \
         disruption controller down?",
        "check that kube-controller-manager runs and is not overloaded",
    );
}

#[test]
fn several_budgets_on_a_pod_are_why_one_of_them_is_not_counted() {
    let mut world = miscounted().change("web-1", |pod| pod.labels = labels(&[("app", "web"), ("tier", "x")]));
    let requirement = Requirement { key: "tier".into(), operator: Operator::In, values: vec!["x".into()] };
    let selector = Some(Selector { requirements: vec![requirement] });
    let budget = BudgetKey { namespace: "shop".into(), name: "web".into() };
    let web = Pdb::clone(world.cluster.budget(&budget).expect("the budget is there"));
    world.cluster.apply_budget(Pdb { name: "tier".into(), selector, ..web });
    let world = world.seen_for(60, "web-0");
    assert_eq!(world.reason("web-1"), Some(Reason::MultipleBudgets));
    let wait = world.judge("web-0").wait.expect("it waits");
    assert_eq!(wait.reason, Reason::BudgetStale);
    assert!(wait.message.contains("selects 1 pod that shop/tier selects too"), "{}", wait.message);
    assert!(!wait.message.contains("down"), "{}", wait.message);
    assert_eq!(wait.remedy, "delete one of them, or narrow a selector: shop/web and shop/tier");
}

#[test]
fn an_owner_that_creates_no_pods() {
    assert_eq!(lacking().seen_for(29, "web-7d-0").reason("web-7d-0"), Some(Reason::BudgetExhausted));
    let world = lacking().seen_for(30, "web-7d-0");
    world.waits(
        "web-7d-0",
        Reason::ReplacementMissing,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 3) allows 0 evictions now: expected 3, healthy \
         2, desired 2. Deployment web has 2 of 3 pods, and none is being created since \
         2026-12-01T09:59:30Z at the latest.",
        "read the events of Deployment web (kubectl describe deployment web -n shop), and \
         check that kube-controller-manager runs",
    );
    // One is there and starts: that only takes time.
    let world = world.pod("web-7d-3", Some(owner("apps/v1", "ReplicaSet", "web-7d")));
    let starting = |pod: &mut Pod| (pod.ready, pod.created) = (false, Some(ago(5)));
    let world =
        world.change("web-7d-3", starting).budget("web", "maxUnavailable: 1").seen_for(60, "web-7d-0");
    assert_eq!(world.reason("web-7d-0"), Some(Reason::BudgetExhausted));
}

#[test]
fn a_stateful_set_creates_its_pods_in_order() {
    let world = World::new().stateful_set("web", 3).without("web-2").crashing("web-0");
    world.budget("web", "maxUnavailable: 1").seen_for(30, "web-1").waits(
        "web-1",
        Reason::ReplacementMissing,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 3) allows 0 evictions now: expected 3, healthy \
         1, desired 2. StatefulSet web has 2 of 3 pods, and none is being created since \
         2026-12-01T09:59:30Z at the latest. A StatefulSet creates its pods in order, and \
         waits for web-0 on node-a (CrashLoopBackOff, 5 restarts).",
        "repair web-0 on node-a",
    );
    // What is behind the one that is missing is not waited for, and one that creates all at once waits for none.
    let events = "read the events of StatefulSet web (kubectl describe statefulset web -n shop), and check that \
                  kube-controller-manager runs";
    let behind = || World::new().stateful_set("web", 3).without("web-1").crashing("web-2");
    let behind = behind().budget("web", "maxUnavailable: 1").seen_for(30, "web-0");
    assert_eq!(behind.judge("web-0").wait.map(|wait| wait.remedy).as_deref(), Some(events));
    let mut world = World::new().stateful_set("web", 3).without("web-2").crashing("web-0");
    let set = workload(WorkloadKind::StatefulSet, "web", 3, None);
    let ordinals = Ordinals { parallel: true, ..Ordinals::default() };
    world.cluster.apply_workload(Workload { ordinals, ..set });
    let wait = world.budget("web", "maxUnavailable: 1").seen_for(30, "web-1").judge("web-1").wait;
    let wait = wait.expect("it waits");
    assert!(wait.message.ends_with("and none is being created since 2026-12-01T09:59:30Z at the latest."));
    assert_eq!(wait.remedy, events);
    // And each only when the one of its name is gone.
    let going =
        |pod: &mut Pod| pod.deletion = Some(Deletion { at: ago(-600), grace_seconds: 900, cut_short: true });
    let world = World::new().stateful_set("web", 3).change("web-2", going).budget("web", "maxUnavailable: 1");
    assert_eq!(world.seen_for(60, "web-0").reason("web-0"), Some(Reason::BudgetExhausted));
}
