//! The verdict, and the room that is left.

use crate::cluster::{BudgetKey, Deletion, InFlight, PodKey, PodPhase};

use super::*;
use crate::budget::{Cause, MAX_DISRUPTED_PODS, room};

fn cause(cluster: &Cluster, name: &str) -> (u16, Cause) {
    let verdict = answer(cluster, name);
    (verdict.code, verdict.cause)
}

fn reported(pods: usize, edit: impl FnOnce(&mut Pdb)) -> Cluster {
    let mut cluster = stateful_set(i32::try_from(pods).expect("few pods"), pods);
    let mut budget = report(&mut cluster, max_unavailable("1"));
    edit(&mut budget);
    cluster.apply_budget(budget);
    cluster
}

#[test]
fn pods_that_no_budget_holds() {
    let mut cluster = reported(3, |budget| budget.status.disruptions_allowed = 0);
    assert_eq!(cause(&cluster, "db-0"), (429, Cause::Exhausted));
    for phase in [PodPhase::Pending, PodPhase::Succeeded, PodPhase::Failed] {
        change(&mut cluster, "db-0", |pod| pod.phase = phase);
        assert_eq!(cause(&cluster, "db-0"), (201, Cause::NotCounted), "{phase:?}");
        assert_eq!(answer(&cluster, "db-0").budgets, []);
    }
    change(&mut cluster, "db-0", |pod| pod.phase = PodPhase::Unknown);
    assert_eq!(cause(&cluster, "db-0"), (429, Cause::Exhausted));
    change(&mut cluster, "db-0", |pod| {
        pod.deletion = Some(Deletion { at: NOW, grace_seconds: 30, cut_short: true });
    });
    assert_eq!(cause(&cluster, "db-0"), (201, Cause::NotCounted));
    change(&mut cluster, "db-1", |pod| pod.labels = labels(&[]));
    assert_eq!(cause(&cluster, "db-1"), (201, Cause::NoBudget));
}

#[test]
fn one_budget() {
    let cluster = reported(3, |_| ());
    assert_eq!(cause(&cluster, "db-0"), (201, Cause::Allowed));
    assert_eq!(answer(&cluster, "db-0").budgets, ["web".into()]);
    let cluster = reported(3, |budget| {
        budget.status.disruptions_allowed = 0;
        budget.status.sync_failed = Some("why".into());
    });
    assert_eq!(cause(&cluster, "db-0"), (429, Cause::SyncFailed));
    let cluster = reported(3, |budget| budget.status.disruptions_allowed = -1);
    assert_eq!(cause(&cluster, "db-0"), (403, Cause::NegativeAllowance));
    let many = |count: usize| {
        reported(3, |budget| {
            budget.status.disrupted_pods = (0..count).map(|n| (format!("p{n}").into(), NOW)).collect();
        })
    };
    assert_eq!(cause(&many(MAX_DISRUPTED_PODS), "db-0"), (201, Cause::Allowed));
    assert_eq!(cause(&many(MAX_DISRUPTED_PODS + 1), "db-0"), (403, Cause::TooManyDisruptedPods));
}

#[test]
fn a_spec_not_yet_observed_goes_before_the_allowance_and_after_unreadiness() {
    let mut cluster = reported(3, |budget| (budget.generation, budget.status.disruptions_allowed) = (2, -1));
    assert_eq!(cause(&cluster, "db-0"), (429, Cause::StillProcessing));
    change(&mut cluster, "db-0", |pod| pod.ready = false);
    assert_eq!(cause(&cluster, "db-0"), (201, Cause::UnhealthyOfHealthyBudget));
}

#[test]
fn unready_pods() {
    for (policy, healthy, desired, expected) in [
        (UnhealthyPolicy::AlwaysAllow, 0, 3, (201, Cause::UnhealthyAlwaysAllowed)),
        (UnhealthyPolicy::IfHealthyBudget, 2, 3, (429, Cause::Exhausted)),
        (UnhealthyPolicy::IfHealthyBudget, 3, 3, (201, Cause::UnhealthyOfHealthyBudget)),
        (UnhealthyPolicy::IfHealthyBudget, 0, 0, (429, Cause::Exhausted)),
        (UnhealthyPolicy::Other, 3, 3, (201, Cause::UnhealthyOfHealthyBudget)),
        (UnhealthyPolicy::Other, 2, 3, (429, Cause::Exhausted)),
    ] {
        let mut cluster = reported(3, |budget| {
            budget.unhealthy_policy = policy;
            budget.status.current_healthy = healthy;
            budget.status.desired_healthy = desired;
            budget.status.disruptions_allowed = 0;
        });
        change(&mut cluster, "db-0", |pod| pod.ready = false);
        assert_eq!(cause(&cluster, "db-0"), expected, "{policy:?} {healthy} of {desired}");
    }
    // With no pod wanted the allowance decides.
    let mut cluster = reported(3, |budget| budget.status.desired_healthy = 0);
    change(&mut cluster, "db-0", |pod| pod.ready = false);
    assert_eq!(cause(&cluster, "db-0"), (201, Cause::Allowed));
}

#[test]
fn several_budgets_and_a_terminating_namespace() {
    let mut cluster = reported(3, |_| ());
    cluster.apply_budget(Pdb { name: "all".into(), ..min_available("1") });
    let verdict = answer(&cluster, "db-0");
    assert_eq!((verdict.code, verdict.cause), (500, Cause::SeveralBudgets));
    assert_eq!(verdict.budgets, ["all".into(), "web".into()]);
    // Two budgets do not matter to a pod that none holds.
    change(&mut cluster, "db-0", |pod| pod.phase = PodPhase::Pending);
    assert_eq!(cause(&cluster, "db-0"), (201, Cause::NotCounted));
    cluster.apply_namespace(terminating_namespace());
    assert_eq!(cause(&cluster, "db-0"), (403, Cause::NamespaceTerminating));
}

fn send(cluster: &mut Cluster, name: &str) {
    let key = PodKey { namespace: "shop".into(), name: name.into() };
    let web = BudgetKey { namespace: "shop".into(), name: "web".into() };
    cluster.evictions.sent(InFlight {
        pod: key,
        uid: format!("uid-{name}").into(),
        node: "node-a".into(),
        owner: None,
        budgets: vec![web],
        accepted: None,
    });
}

fn room_of(cluster: &Cluster) -> i32 {
    let key = BudgetKey { namespace: "shop".into(), name: "web".into() };
    room(cluster, cluster.budget(&key).expect("the budget"), NOW)
}

#[test]
fn room_is_the_smaller_of_both_less_what_is_in_flight() {
    let mut cluster = stateful_set(6, 6);
    report(&mut cluster, max_unavailable("4"));
    assert_eq!(room_of(&cluster), 4);
    send(&mut cluster, "db-0");
    assert_eq!(room_of(&cluster), 3);
    // The pod's own event comes before the budget's: it is not taken off twice.
    change(&mut cluster, "db-0", |pod| {
        pod.deletion = Some(Deletion { at: NOW, grace_seconds: 30, cut_short: true });
    });
    assert_eq!(room_of(&cluster), 3);
    // A pod fell ill and the controller has not said so.
    change(&mut cluster, "db-1", |pod| pod.ready = false);
    assert_eq!(room_of(&cluster), 2);
    // The budget's event shows the eviction.
    let mut budget = report(&mut cluster, max_unavailable("4"));
    budget.status.disrupted_pods.insert("db-0".into(), NOW);
    cluster.evictions.accepted("uid-db-0", NOW);
    cluster.apply_budget(budget);
    assert_eq!(room_of(&cluster), 2);
}

#[test]
fn no_room_where_the_server_would_refuse() {
    let over = |edit: fn(&mut Pdb)| room_of(&reported(3, edit));
    assert_eq!(over(|_| ()), 1);
    assert_eq!(over(|budget| budget.generation = 2), 0);
    assert_eq!(over(|budget| budget.status.disruptions_allowed = -1), 0);
    assert_eq!(over(|budget| budget.status.disruptions_allowed = 0), 0);
    assert_eq!(over(|budget| budget.status.disruptions_allowed = 3), 1, "recomputed 1");
    assert_eq!(over(|budget| budget.min_available = Some(amount("x"))), 1);
}

#[test]
fn reported_alone_decides_without_the_scale() {
    let mut cluster = Cluster::new();
    cluster.apply_pod(pod("a", Some(owner("example.com/v1", "Shard", "a", "a"))));
    let mut budget = max_unavailable("1");
    budget.status.disruptions_allowed = 2;
    cluster.apply_budget(budget);
    assert_eq!(room_of(&cluster), 2);
    send(&mut cluster, "a");
    assert_eq!(room_of(&cluster), 1);
}

#[test]
fn an_eviction_that_was_to_cost_nothing_takes_room_when_its_pod_has_become_ready() {
    let mut cluster = stateful_set(6, 6);
    report(&mut cluster, max_unavailable("2"));
    change(&mut cluster, "db-0", |pod| pod.ready = false);
    cluster.evictions.sent(InFlight {
        pod: PodKey { namespace: "shop".into(), name: "db-0".into() },
        uid: "uid-db-0".into(),
        node: "node-a".into(),
        owner: None,
        budgets: vec![],
        accepted: None,
    });
    assert_eq!(room_of(&cluster), 1);
    // The server may have found it Ready and have charged it.
    change(&mut cluster, "db-0", |pod| pod.ready = true);
    assert_eq!(room_of(&cluster), 1);
    cluster.evictions.accepted("uid-db-0", NOW);
    assert_eq!(room_of(&cluster), 1);
}
