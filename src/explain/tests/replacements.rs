//! Pods whose budget waits for its owners.

use super::*;

/// Unscheduled: the scheduler has said why.
fn unschedulable(pod: &mut Pod) {
    pod.node = None;
    pod.phase = PodPhase::Pending;
    pod.ready = false;
    pod.created = Some(ago(20));
    pod.unschedulable = Some(
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod \
         anti-affinity rules."
            .into(),
    );
}

#[test]
fn a_replacement_without_a_node() {
    let world = World::new().stateful_set("pg", 3).change("pg-1", unschedulable);
    let world = world.budget("web", "maxUnavailable: 1");
    world.waits(
        "pg-0",
        Reason::ReplacementPending,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 3) allows 0 evictions now: expected 3, \
         healthy 2, desired 2. pg-1 is Pending, and the scheduler says: “0/3 nodes are \
         available: 1 node(s) were unschedulable, 2 node(s) didn't match pod anti-affinity \
         rules.”.",
        "give pg-1 a node: uncordon or add one that fits, or relax the pod's affinity, \
         selector or requests",
    );
    // The pod itself has nothing to wait for.
    world.goes("pg-1");
    // It explains nothing as long as others bring the budget back.
    let world = World::new().stateful_set("pg", 4).change("pg-1", unschedulable);
    let going =
        |pod: &mut Pod| pod.deletion = Some(Deletion { at: ago(-20), grace_seconds: 30, cut_short: true });
    let world = world.change("pg-2", going).budget("web", "maxUnavailable: 2");
    assert_eq!(world.judge("pg-0").wait.map(|wait| wait.reason), Some(Reason::BudgetExhausted));
}

#[test]
fn replacements_that_cannot_be_created() {
    let quota = "pods \"web-7d-\" is forbidden: exceeded quota: team, requested: pods=1, used: \
                 pods=2, limited: pods=2";
    let failing = |world: World, kind, name: &str, of| {
        let mut world = world;
        let set = workload(kind, name, 3, of);
        world.cluster.apply_workload(Workload { replica_failure: Some(quota.into()), ..set });
        world.without("web-7d-2").budget("web", "maxUnavailable: 1")
    };
    let deployment = || World::new().deployment("web", 3);
    let of = Some(owner("apps/v1", "Deployment", "web"));
    let world = failing(deployment(), WorkloadKind::ReplicaSet, "web-7d", of);
    world.waits(
        "web-7d-0",
        Reason::ReplacementMissing,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 3) allows 0 evictions now: expected 3, \
         healthy 2, desired 2. Deployment web has 2 of 3 pods: “pods \"web-7d-\" is \
         forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: \
         pods=2”.",
        "raise ResourceQuota shop/team, or make room in it, so that Deployment web can create pods",
    );
    let world = failing(deployment(), WorkloadKind::Deployment, "web", None);
    assert_eq!(world.judge("web-7d-0").wait.map(|wait| wait.reason), Some(Reason::ReplacementMissing));
    // All pods are there again, and the condition is not yet taken back.
    let world = world.pod("web-7d-2", Some(owner("apps/v1", "ReplicaSet", "web-7d")));
    world.budget("web", "maxUnavailable: 1").goes("web-7d-0");
}

/// A stateful set with one pod too many, of which two crash.
fn one_by_one() -> World {
    let mut world = World::new().stateful_set("web", 3).crashing("web-1").crashing("web-2");
    world.cluster.apply_workload(workload(WorkloadKind::StatefulSet, "web", 2, None));
    world.budget("web", "minAvailable: 50%")
}

#[test]
fn an_owner_that_scales_down() {
    let mut world = World::new().stateful_set("web", 2).crashing("web-1");
    world.cluster.apply_workload(workload(WorkloadKind::StatefulSet, "web", 1, None));
    world.budget("web", "maxUnavailable: 0").waits(
        "web-0",
        Reason::BudgetNeverAllows,
        Outlook::NeverClears,
        "Budget shop/web (maxUnavailable 0 of 1) can never allow an eviction: it requires \
         1 healthy pod, and StatefulSet web (1 replica) can have 1 at most.",
        "in budget shop/web write maxUnavailable: 1 instead of maxUnavailable: 0 (its only \
         pod is then down while it moves)",
    );
    let mut world = World::new().stateful_set("web", 3).crashing("web-1");
    world.cluster.apply_workload(workload(WorkloadKind::StatefulSet, "web", 2, None));
    world.budget("web", "minAvailable: 50%").goes("web-0");
    let mut world = one_by_one();
    world.waits(
        "web-0",
        Reason::OwnerScalingDown,
        Outlook::MayClear,
        "Budget shop/web (minAvailable 50% of 2 = 1) allows 0 evictions now: expected 2, healthy 1, desired 1. StatefulSet \
         web is scaling down: it wants 2 pods and has 3; its controller deletes the others itself, one by one, and none \
         while another is not Ready: it waits for web-1 on node-a (CrashLoopBackOff, 5 restarts).",
        "repair web-1 on node-a",
    );
    // All at once, whatever ails the others.
    let ordinals = Ordinals { parallel: true, ..Ordinals::default() };
    let set = workload(WorkloadKind::StatefulSet, "web", 2, None);
    world.cluster.apply_workload(Workload { ordinals, ..set });
    world.waits(
        "web-0",
        Reason::OwnerScalingDown,
        Outlook::WillClear,
        "Budget shop/web (minAvailable 50% of 2 = 1) allows 0 evictions now: expected 2, healthy 1, desired 1. StatefulSet \
         web is scaling down: it wants 2 pods and has 3; its controller \
         deletes the others itself.",
        "nothing to change: wait until StatefulSet web has scaled down",
    );
}

/// A stateful set that takes its pods one by one deletes the first unhealthy one that is too many, and no pod behind it.
#[test]
fn a_stateful_set_scales_down_past_one_unready_pod() {
    let outlook = |world: World, replicas, start| {
        let mut world = world;
        let set = workload(WorkloadKind::StatefulSet, "web", replicas, None);
        let ordinals = Ordinals { start, ..Ordinals::default() };
        world.cluster.apply_workload(Workload { ordinals, ..set });
        let world = world.budget("web", "maxUnavailable: 1");
        let wait = world.judge("web-0").wait.expect("it waits");
        (wait.reason, wait.outlook, wait.remedy)
    };
    let five = || World::new().stateful_set("web", 5);
    let starts = |pod: &mut Pod| (pod.ready, pod.created) = (false, Some(ago(5)));
    let slow = |world, replicas, start| {
        let (reason, outlook, _) = outlook(world, replicas, start);
        assert_eq!((reason, outlook), (Reason::OwnerScalingDown, Outlook::WillClear));
    };
    let perhaps = |world, replicas, start, pod| {
        let (reason, outlook, remedy) = outlook(world, replicas, start);
        assert_eq!((reason, outlook), (Reason::OwnerScalingDown, Outlook::MayClear));
        assert!(remedy.contains(pod), "{remedy}");
    };
    slow(five().crashing("web-4").change("web-1", starts), 4, 0);
    perhaps(five().crashing("web-4").crashing("web-1"), 4, 0, "repair web-1 on node-a");
    // The first unhealthy one of those that are too many is deleted, and then the next is the first.
    let three = || five().change("web-1", starts);
    slow(three().crashing("web-4").change("web-3", starts), 3, 0);
    perhaps(three().crashing("web-4").crashing("web-3"), 3, 0, "repair web-4 on node-a");
    // Which are too many depends on where the ordinals start.
    perhaps(five().crashing("web-4").change("web-1", starts), 4, 1, "web-4");
}

/// Each of two pods alone would leave the budget its room, and together they do not: time does not help.
#[test]
fn what_holds_a_budget_together_is_never_called_slow() {
    let held = |world: World| world.budget("web", "maxUnavailable: 2").seen_for(30, "web-7d-0");
    let world = || World::new().deployment("web", 4).crashing("web-7d-3");
    held(world().without("web-7d-2")).waits(
        "web-7d-0",
        Reason::ReplacementMissing,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 2 of 4) allows 0 evictions now: expected 4, healthy 2, desired 2. Deployment web \
         has 3 of 4 pods, and none is being created since 2026-12-01T09:59:30Z at the latest. Unready, too: web-7d-3 on \
         node-a (CrashLoopBackOff, 5 restarts).",
        "read the events of Deployment web (kubectl describe deployment web -n shop), and check that \
         kube-controller-manager runs",
    );
    held(world().change("web-7d-2", unschedulable)).waits(
        "web-7d-0",
        Reason::ReplacementPending,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 2 of 4) allows 0 evictions now: expected 4, healthy 2, desired 2. web-7d-2 is \
         Pending, and the scheduler says: “0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod \
         anti-affinity rules.”. Unready, too: web-7d-3 on node-a (CrashLoopBackOff, 5 restarts).",
        "give web-7d-2 a node: uncordon or add one that fits, or relax the pod's affinity, selector or requests",
    );
    // One of them is only starting.
    let starting = |pod: &mut Pod| (pod.ready, pod.created) = (false, Some(ago(5)));
    let world = held(world().change("web-7d-2", starting));
    assert_eq!(world.reason("web-7d-0"), Some(Reason::BudgetExhausted));
}

/// The budget still shows the eviction of the pod that had its name before (upstream forgets it after two minutes).
#[test]
fn a_pod_reborn_without_a_node_is_pending_whatever_the_budget_shows_of_its_name() {
    let reason = |created: i64| {
        let reborn = |pod: &mut Pod| {
            unschedulable(pod);
            pod.created = Some(ago(created));
        };
        let world =
            World::new().stateful_set("web", 3).budget("web", "maxUnavailable: 1").change("web-0", reborn);
        let world = world.change_budget(|budget| {
            budget.status.disrupted_pods.insert("web-0".into(), ago(20));
            budget.status.current_healthy = 2;
            budget.status.disruptions_allowed = 0;
        });
        world.reason("web-1")
    };
    assert_eq!(reason(19), Some(Reason::ReplacementPending));
    assert_eq!(reason(20), Some(Reason::ReplacementPending), "times are in whole seconds");
    assert_eq!(reason(300), Some(Reason::BudgetExhausted), "that one was evicted");
}

#[test]
fn an_owner_that_scales_down_and_deletes_nothing() {
    let said = |world: &World| {
        let wait = world.judge("kv-0").wait.expect("it waits");
        (wait.reason, wait.outlook, wait.remedy)
    };
    let store = owner("db.example.dev/v1", "Store", "kv");
    let mut world = World::new().pod("kv-0", Some(store.clone())).pod("kv-1", Some(store.clone()));
    let uid = store.uid.clone();
    world.cluster.record_scale(uid.clone(), Scale::Replicas { uid, replicas: 0 });
    let world = world.budget("web", "maxUnavailable: 1");
    let (reason, outlook, _) = said(&world);
    assert_eq!((reason, outlook), (Reason::OwnerScalingDown, Outlook::WillClear));
    let (reason, outlook, remedy) = said(&world.seen_for(30, "kv-0"));
    assert_eq!((reason, outlook), (Reason::OwnerScalingDown, Outlook::MayClear));
    assert_eq!(remedy, "check that the controller of Store kv runs");
}

/// A finished pod that is one too many is never healthy, and not created again.
#[test]
fn a_stateful_set_does_not_scale_down_past_a_finished_pod() {
    let mut world = World::new().stateful_set("web", 4).crashing("web-1").crashing("web-2");
    world = world.change("web-3", |pod| (pod.phase, pod.ready) = (PodPhase::Failed, false));
    world.cluster.apply_workload(workload(WorkloadKind::StatefulSet, "web", 2, None));
    let world = world.change("web-1", |pod| (pod.created, pod.trouble) = (Some(ago(5)), None));
    let wait = world.budget("web", "minAvailable: 50%").judge("web-0").wait.expect("it waits");
    assert_eq!((wait.reason, wait.outlook), (Reason::OwnerScalingDown, Outlook::MayClear));
    assert!(wait.message.ends_with("it waits for web-3 on node-a (finished)."), "{}", wait.message);
    assert_eq!(wait.remedy, "delete what has finished: shop/web-3");
}

/// What stands before the missing pods of a stateful set keeps them from being created.
#[test]
fn missing_pods_behind_one_that_is_broken_or_does_not_go() {
    let said = |world: World| {
        let wait = world.without("web-2").budget("web", "minAvailable: 1").judge("web-1").wait;
        let wait = wait.expect("it waits");
        (wait.reason, wait.outlook)
    };
    let three = || World::new().stateful_set("web", 3);
    let gone = |grace_seconds| Deletion { at: ago(-20), grace_seconds, cut_short: true };
    let held = |pod: &mut Pod| {
        (pod.deletion, pod.ready) = (Some(gone(0)), false);
        pod.finalizers = ["example.com/hold"].map(Text::from).into();
    };
    assert_eq!(said(three().change("web-0", held)), (Reason::BudgetExhausted, Outlook::MayClear));
    let finished = |pod: &mut Pod| pod.phase = PodPhase::Succeeded;
    let world = three().change("web-0", held).change("web-0", finished);
    assert_eq!(said(world), (Reason::BudgetExhausted, Outlook::MayClear));
    assert_eq!(said(three().crashing("web-0")), (Reason::BudgetUnhealthy, Outlook::MayClear));
    // In time it goes, and then the others come.
    let going = |pod: &mut Pod| (pod.deletion, pod.ready) = (Some(gone(30)), false);
    assert_eq!(said(three().change("web-0", going)), (Reason::BudgetExhausted, Outlook::WillClear));
    // All at once.
    let mut world = three().change("web-0", held);
    let set = workload(WorkloadKind::StatefulSet, "web", 3, None);
    let ordinals = Ordinals { parallel: true, ..Ordinals::default() };
    world.cluster.apply_workload(Workload { ordinals, ..set });
    assert_eq!(said(world), (Reason::BudgetExhausted, Outlook::WillClear));
}
