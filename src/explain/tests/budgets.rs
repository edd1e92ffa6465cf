//! Pods whose budget has no disruption left.

use super::*;

#[test]
fn pods_in_a_crash_loop_use_the_budget_up() {
    let world = World::new().stateful_set("web", 3).crashing("web-2").budget("web", "minAvailable: 2");
    world.goes("web-2");
    world.waits(
        "web-0",
        Reason::BudgetUnhealthy,
        Outlook::MayClear,
        "Budget shop/web (minAvailable 2 of 3) allows 0 evictions now: expected 3, healthy \
         2, desired 2. Unready: web-2 on node-a (CrashLoopBackOff, 5 restarts).",
        "repair web-2 on node-a",
    );
}

#[test]
fn unready_pods_may_not_leave_a_broken_budget() {
    let world = World::new().stateful_set("web", 2).crashing("web-0").crashing("web-1");
    let world = world.budget("web", "minAvailable: 1");
    world.waits(
        "web-0",
        Reason::BudgetUnhealthy,
        Outlook::MayClear,
        "Budget shop/web (minAvailable 1 of 2) allows 0 evictions now: expected 2, healthy \
         0, desired 1. Unready: web-1 on node-a (CrashLoopBackOff, 5 restarts). This pod \
         is itself unready (CrashLoopBackOff, 5 restarts), and unhealthyPodEvictionPolicy \
         IfHealthyBudget lets unready pods go only while healthy ≥ desired > 0.",
        "repair web-0 on node-a and web-1 on node-a, or set unhealthyPodEvictionPolicy: \
         AlwaysAllow in budget shop/web",
    );
    world.change_budget(|budget| budget.unhealthy_policy = UnhealthyPolicy::AlwaysAllow).goes("web-0");
}

#[test]
fn an_unready_pod_of_a_budget_that_wants_none() {
    let world = World::new().stateful_set("web", 1).crashing("web-0").budget("web", "maxUnavailable: 1");
    world.waits(
        "web-0",
        Reason::BudgetUnhealthy,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 1) allows 0 evictions now: expected 1, \
         healthy 0, desired 0. This pod is itself unready (CrashLoopBackOff, 5 restarts), \
         and unhealthyPodEvictionPolicy IfHealthyBudget lets unready pods go only while \
         healthy ≥ desired > 0.",
        "repair web-0 on node-a, or set unhealthyPodEvictionPolicy: AlwaysAllow in budget \
         shop/web",
    );
}

#[test]
fn an_unready_pod_does_not_explain_what_a_replacement_will_end() {
    // 1 of 10 crashes, 2 are being replaced: the two alone bring the budget back.
    let world = World::new().stateful_set("web", 10).crashing("web-9");
    let going =
        |pod: &mut Pod| pod.deletion = Some(Deletion { at: ago(-20), grace_seconds: 30, cut_short: true });
    let young = |pod: &mut Pod| {
        pod.ready = false;
        pod.created = Some(ago(5));
        pod.node = Some("node-b".into());
    };
    let world = world.change("web-1", going).change("web-2", young).budget("web", "maxUnavailable: 3");
    world.waits(
        "web-0",
        Reason::BudgetExhausted,
        Outlook::WillClear,
        "Budget shop/web (maxUnavailable 3 of 10) allows 0 evictions now: expected 10, \
         healthy 7, desired 7. Being replaced or starting: web-1 on node-a (terminating, \
         gone by 2026-12-01T10:00:20Z) and web-2 on node-b (starting since \
         2026-12-01T09:59:55Z).",
        "nothing to change: wait until the replacements are Ready; to go faster let budget \
         shop/web allow more at once",
    );
    // With three crashing there is no more room when all others are back.
    let world = world.crashing("web-8").crashing("web-7").budget("web", "maxUnavailable: 3");
    world.waits(
        "web-0",
        Reason::BudgetUnhealthy,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 3 of 10) allows 0 evictions now: expected 10, \
         healthy 5, desired 7. Unready: web-7 on node-a (CrashLoopBackOff, 5 restarts), \
         web-8 on node-a (CrashLoopBackOff, 5 restarts) and web-9 on node-a \
         (CrashLoopBackOff, 5 restarts).",
        "repair web-7 on node-a, web-8 on node-a and web-9 on node-a",
    );
}

/// However young a pod is, it does not become Ready where no kubelet says so.
#[test]
fn a_young_pod_on_an_ill_node_is_not_starting() {
    let world = |ready: &str| {
        let starting = |pod: &mut Pod| {
            (pod.ready, pod.created, pod.node) = (false, Some(ago(5)), Some("node-b".into()));
        };
        let mut world = World::new().stateful_set("web", 2).change("web-1", starting);
        world.cluster.apply_node(Node { name: "node-b".into(), ready: ready.into(), ..Node::default() });
        world.budget("web", "maxUnavailable: 1")
    };
    assert_eq!(world("True").reason("web-0"), Some(Reason::BudgetExhausted));
    world("Unknown").waits(
        "web-0",
        Reason::BudgetUnhealthy,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 2) allows 0 evictions now: expected 2, healthy 1, desired 1. Unready: web-1 on \
         node-b (its node is not Ready).",
        "bring node-b back",
    );
}

#[test]
fn it_is_said_since_when_a_pod_is_not_ready() {
    let unready = |trouble: ContainerTrouble| {
        let world = World::new().stateful_set("web", 2).change("web-1", |pod| {
            pod.ready = false;
            pod.trouble = Some(Box::new(ContainerTrouble { unready_since: Some(ago(90)), ..trouble }));
        });
        world
            .budget("web", "maxUnavailable: 1")
            .judge("web-0")
            .wait
            .map(|wait| wait.message)
            .unwrap_or_default()
    };
    let says =
        |message: String, part: &str| assert!(message.contains(part), "{part} is missing in: {message}");
    says(unready(ContainerTrouble::default()), "web-1 on node-a (not Ready since 2026-12-01T09:58:30Z)");
    let looping =
        ContainerTrouble { restarts: 5, waiting: Some("CrashLoopBackOff".into()), unready_since: None };
    let ails = "web-1 on node-a (CrashLoopBackOff, 5 restarts, not Ready since 2026-12-01T09:58:30Z)";
    says(unready(looping), ails);
}

#[test]
fn young_pods_are_starting_unless_a_container_fails() {
    let reason = |created, trouble: Option<(i32, &str)>| {
        let trouble = trouble.map(|(restarts, waiting)| {
            Box::new(ContainerTrouble {
                restarts,
                waiting: Some(waiting.into()),
                ..ContainerTrouble::default()
            })
        });
        let world = World::new().stateful_set("web", 2).change("web-1", |pod| {
            pod.ready = false;
            pod.created = created;
            pod.trouble = trouble;
        });
        world.budget("web", "maxUnavailable: 1").judge("web-0").wait.map(|wait| wait.reason)
    };
    let (starting, failing) = (Some(Reason::BudgetExhausted), Some(Reason::BudgetUnhealthy));
    assert_eq!(reason(Some(ago(599)), None), starting);
    assert_eq!(reason(Some(ago(599)), Some((0, "ContainerCreating"))), starting);
    assert_eq!(reason(Some(ago(599)), Some((0, "ImagePullBackOff"))), failing);
    assert_eq!(reason(Some(ago(599)), Some((1, "PodInitializing"))), failing);
    assert_eq!(reason(Some(ago(600)), None), failing);
    assert_eq!(reason(None, None), failing);
}

#[test]
fn a_pod_that_was_let_go_uses_the_budget_up() {
    let world =
        World::new().stateful_set("web", 2).budget("web", "minAvailable: 1").change_budget(|budget| {
            budget.status.disrupted_pods.insert("web-0".into(), ago(1));
            budget.status.current_healthy = 1;
            budget.status.disruptions_allowed = 0;
        });
    world.waits(
        "web-1",
        Reason::BudgetExhausted,
        Outlook::WillClear,
        "Budget shop/web (minAvailable 1 of 2) allows 0 evictions now: expected 2, healthy \
         1, desired 1. Being replaced or starting: web-0 on node-a (eviction accepted \
         2026-12-01T09:59:59Z).",
        "nothing to change: wait until the replacements are Ready; to go faster let budget \
         shop/web allow more at once",
    );
}

#[test]
fn our_own_evictions_in_flight_use_the_budget_up() {
    let mut world = World::new().stateful_set("web", 3).budget("web", "maxUnavailable: 1");
    world.cluster.evictions.sent(crate::cluster::InFlight {
        pod: key("web-2"),
        uid: "uid-web-2".into(),
        node: "node-a".into(),
        owner: None,
        budgets: vec![BudgetKey { namespace: "shop".into(), name: "web".into() }],
        accepted: None,
    });
    world.waits(
        "web-0",
        Reason::BudgetExhausted,
        Outlook::WillClear,
        "Budget shop/web (maxUnavailable 1 of 3) reports disruptionsAllowed 1, but 0 may \
         be spent now: expected 3, healthy 3, desired 2, 1 eviction in flight. Being \
         replaced or starting: web-2 on node-a (eviction sent).",
        "nothing to change: wait until the replacements are Ready; to go faster let budget \
         shop/web allow more at once",
    );
    assert_eq!(world.judge("web-0").verdict.code, 201);
    // The pod itself has been sent: nothing holds it.
    world.goes("web-2");
}

#[test]
fn a_missing_replacement_is_said() {
    let world = World::new().deployment("web", 3).without("web-7d-2").budget("web", "minAvailable: 2");
    world.waits(
        "web-7d-0",
        Reason::BudgetExhausted,
        Outlook::WillClear,
        "Budget shop/web (minAvailable 2 of 2) allows 0 evictions now: expected 2, healthy \
         2, desired 2. Deployment web has 2 of 3 pods.",
        "nothing to change: wait until the replacements are Ready; to go faster let budget \
         shop/web allow more at once",
    );
}

#[test]
fn a_budget_that_the_controller_has_not_looked_at() {
    let world =
        World::new().deployment("web", 3).budget("web", "maxUnavailable: 1").change_budget(|budget| {
            budget.generation = 2;
        });
    world.waits(
        "web-7d-0",
        Reason::BudgetExhausted,
        Outlook::WillClear,
        "Budget shop/web (maxUnavailable 1 of 3) allows 0 evictions now: the disruption \
         controller has not processed its present spec (generation 2, observed 1).",
        "nothing to change: wait until the disruption controller has processed budget \
         shop/web",
    );
    let late = |seconds| {
        World::new().deployment("web", 3).budget("web", "maxUnavailable: 1").change_budget(|budget| {
            budget.generation = 2;
            budget.spec_since = Some(ago(seconds));
        })
    };
    assert_eq!(late(29).judge("web-7d-0").wait.map(|wait| wait.reason), Some(Reason::BudgetExhausted));
    late(30).waits(
        "web-7d-0",
        Reason::BudgetStale,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable: 1) was written 2026-12-01T09:59:30Z and is not \
         processed since (generation 2, observed 1), so the server refuses evictions: is \
         the disruption controller down?",
        "check that kube-controller-manager runs and is not overloaded",
    );
    // A sync that failed is another story.
    let failed =
        late(30).change_budget(|budget| budget.status.sync_failed = Some("found no controllers".into()));
    assert_eq!(failed.judge("web-7d-0").wait.map(|wait| wait.reason), Some(Reason::BudgetSyncFailed));
}

#[test]
fn a_status_that_lags_behind_is_said() {
    let world = World::new().stateful_set("web", 2).change("web-1", |pod| pod.ready = false);
    let world = world.budget("web", "maxUnavailable: 1").change("web-1", |pod| pod.ready = true);
    world.waits(
        "web-0",
        Reason::BudgetExhausted,
        Outlook::WillClear,
        "Budget shop/web (maxUnavailable 1 of 2) allows 0 evictions now: expected 2, \
         healthy 2, desired 1 (its status still says expected 2, healthy 1, desired 1, \
         allowed 0).",
        "nothing to change yet: the disruption controller counts budget shop/web again within \
         seconds; if its status stays as it is, check that kube-controller-manager runs and is \
         not overloaded",
    );
}

#[test]
fn a_scale_that_could_not_be_read() {
    let store = owner("db.example.dev/v1", "Store", "kv");
    let mut world = World::new().pod("kv-0", Some(store.clone()));
    let why = "stores.db.example.dev \"kv\" is forbidden: User \"ops\" cannot get resource \
               \"stores/scale\"";
    world.cluster.record_scale(store.uid, Scale::Unreadable(why.into()));
    let world = world.budget("web", "maxUnavailable: 1");
    world.waits(
        "kv-0",
        Reason::BudgetExhausted,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1) allows 0 evictions now: expected 0, healthy 0, \
         desired 0. The scale of Store kv (“stores.db.example.dev \"kv\" is forbidden: \
         User \"ops\" cannot get resource \"stores/scale\"”) could not be read: the \
         numbers are those reported. No pod is on its way that would give the budget room.",
        UNREAD,
    );
}

const UNREAD: &str = "let the scale of Store kv be read (the verb get on its scale subresource; with --from its object and \
                      its CustomResourceDefinition): only that tells whether budget shop/web ever allows an eviction";

/// Three pods of an owner whose scale nobody has read, and a budget with a status of those numbers.
fn unread(field: &str, expected: i32, healthy: i32, desired: i32) -> World {
    let store = || Some(owner("db.example.dev/v1", "Store", "kv"));
    let world = World::new().pod("kv-0", store()).pod("kv-1", store()).pod("kv-2", store());
    world.budget("web", field).change_budget(|budget| {
        budget.status.expected_pods = expected;
        budget.status.current_healthy = healthy;
        budget.status.desired_healthy = desired;
    })
}

#[test]
fn without_a_scale_only_pods_that_are_away_are_waited_for() {
    let said = |world: &World| {
        let wait = world.judge("kv-0").wait.expect("it waits");
        (wait.reason, wait.outlook)
    };
    unread("minAvailable: 3", 3, 3, 3).waits(
        "kv-0",
        Reason::BudgetExhausted,
        Outlook::MayClear,
        "Budget shop/web (minAvailable 3 of 3) allows 0 evictions now: expected 3, healthy 3, desired 3. The scale of Store \
         kv could not be read. No pod is on its way that would give the budget room.",
        UNREAD,
    );
    let slow = (Reason::BudgetExhausted, Outlook::WillClear);
    let perhaps = (Reason::BudgetExhausted, Outlook::MayClear);
    assert_eq!(said(&unread("maxUnavailable: 1", 3, 3, 2)), perhaps, "nobody knows why it allows none");
    // One starts: with it there is room, if the budget does not require it.
    let starts = |pod: &mut Pod| (pod.ready, pod.created) = (false, Some(ago(5)));
    assert_eq!(said(&unread("maxUnavailable: 1", 3, 2, 2).change("kv-2", starts)), slow);
    assert_eq!(said(&unread("minAvailable: 2", 3, 2, 2).change("kv-2", starts)), slow);
    assert_eq!(said(&unread("minAvailable: 3", 3, 2, 3).change("kv-2", starts)), perhaps);
    // One is gone: whether another one comes nobody sees.
    assert_eq!(said(&unread("maxUnavailable: 1", 3, 2, 2).without("kv-2")), perhaps);
}

#[test]
fn a_budget_that_requires_all_pods_needs_no_scale() {
    let all = |field: &str| unread(field, 3, 3, 3);
    all("maxUnavailable: 0").waits(
        "kv-0",
        Reason::BudgetNeverAllows,
        Outlook::NeverClears,
        "Budget shop/web (maxUnavailable 0) can never allow an eviction: it requires as many healthy pods as Store kv \
         wants, however many that is.",
        "in budget shop/web write maxUnavailable: 1 instead of maxUnavailable: 0",
    );
    for field in ["maxUnavailable: 0%", "minAvailable: 100%", "minAvailable: 101%"] {
        assert_eq!(all(field).reason("kv-0"), Some(Reason::BudgetNeverAllows), "{field}");
    }
    for field in ["maxUnavailable: 1%", "minAvailable: 99%", "minAvailable: 3"] {
        assert_eq!(all(field).reason("kv-0"), Some(Reason::BudgetExhausted), "{field}");
    }
    // A pod without a controller comes on top, and an owner that wants none deletes its pods.
    assert_eq!(all("maxUnavailable: 0").pod("lone", None).reason("kv-0"), Some(Reason::BudgetExhausted));
    assert_eq!(unread("maxUnavailable: 0", 0, 0, 0).reason("kv-0"), Some(Reason::BudgetExhausted));
}

#[test]
fn the_server_forbids_below_zero_and_beyond_two_thousand() {
    let world = || World::new().deployment("web", 3).budget("web", "maxUnavailable: 1");
    world().change_budget(|budget| budget.status.disruptions_allowed = -1).waits(
        "web-7d-0",
        Reason::BudgetRefused,
        Outlook::MayClear,
        "Budget shop/web reports disruptionsAllowed -1, and the server refuses evictions below 0 (403).",
        "check that kube-controller-manager runs: its disruption controller rewrites the budget's status",
    );
    let crowded = world().change_budget(|budget| {
        budget.status.disrupted_pods = (0..2001).map(|number| (format!("x-{number}").into(), NOW)).collect();
    });
    crowded.waits(
        "web-7d-0",
        Reason::BudgetRefused,
        Outlook::MayClear,
        "Budget shop/web lists 2001 evictions that the disruption controller has not \
         confirmed, and the server refuses more than 2000 (403).",
        "check that kube-controller-manager runs: its disruption controller rewrites the \
         budget's status",
    );
}

#[test]
fn what_is_said_changes_with_time() {
    let world = World::new().stateful_set("web", 2).change("web-1", |pod| {
        pod.ready = false;
        pod.created = Some(ago(590));
    });
    let world = world.budget("web", "maxUnavailable: 1");
    assert_eq!(world.judge("web-0").changes_at, Some(ago(-10)));
    let let_go = |budget: &mut Pdb| {
        budget.status.disrupted_pods.insert("web-0".into(), ago(115));
    };
    assert_eq!(world.change_budget(let_go).judge("web-0").changes_at, Some(ago(-5)));
    let late = |budget: &mut Pdb| {
        budget.generation = 2;
        budget.spec_since = Some(ago(29));
    };
    let world = World::new().stateful_set("web", 2).budget("web", "maxUnavailable: 1").change_budget(late);
    assert_eq!(world.judge("web-0").changes_at, Some(ago(-1)));
    let world = World::new().stateful_set("web", 2).budget("web", "maxUnavailable: 1");
    assert_eq!(world.judge("web-0").changes_at, None);
}

/// Four pods of a custom resource of which the server knows no scale, so many of them going.
fn fleet(going: usize) -> World {
    let mut world = World::new();
    for number in 0..4 {
        world = world.pod(&format!("fleet-{number}"), Some(owner("example.com/v1", "Fleet", "web")));
    }
    for number in 0..going {
        world = world.change(&format!("fleet-{number}"), |pod| {
            pod.deletion = Some(Deletion { at: ago(-30), grace_seconds: 30, cut_short: true });
        });
    }
    let none = Scale::NoScale("fleets.example.com does not implement the scale subresource".into());
    world.cluster.record_scale("Fleet-web".into(), none);
    world.budget("web", "minAvailable: 3")
}

#[test]
fn pods_that_are_perhaps_not_replaced_are_no_matter_of_time() {
    fleet(1).waits(
        "fleet-3",
        Reason::BudgetExhausted,
        Outlook::MayClear,
        "Budget shop/web (minAvailable 3 of 4) allows 0 evictions now: expected 4, healthy 3, desired 3. Being replaced \
         or starting: fleet-0 on node-a (terminating, gone by 2026-12-01T10:00:30Z). Fleet web has no scale, so it is not \
         known whether fleet-0 will be replaced; if not, the budget can never allow an eviction.",
        "check that Fleet web creates its pods again; if it does not, write minAvailable: 2 instead of minAvailable: 3 in \
         budget shop/web",
    );
    // A scale says that it will be.
    let scale = Scale::Replicas { uid: "Fleet-web".into(), replicas: 4 };
    let mut world = fleet(1);
    world.cluster.record_scale("Fleet-web".into(), scale);
    let wait = world.judge("fleet-3").wait.unwrap();
    assert_eq!((wait.reason, wait.outlook), (Reason::BudgetExhausted, Outlook::WillClear));
}

/// The controller counts a pod as evicted when the one of its name before it was.
#[test]
fn a_ready_pod_that_is_counted_as_evicted() {
    let world = World::new().stateful_set("web", 2).change("web-0", |pod| pod.created = Some(ago(20)));
    let world = world.budget("web", "maxUnavailable: 1").change_budget(|budget| {
        budget.status.disrupted_pods = [(Text::from("web-0"), ago(30))].into();
        (budget.status.current_healthy, budget.status.disruptions_allowed) = (1, 0);
    });
    let wait = world.judge("web-1").wait.expect("it waits");
    assert_eq!((wait.reason, wait.outlook), (Reason::BudgetExhausted, Outlook::WillClear));
    let said = "web-0 on node-a (Ready, and counted as evicted until 2026-12-01T10:01:30Z, like the pod of that name before it)";
    assert!(wait.message.contains(said), "{}", wait.message);
}
