//! attainable, required, never.

use crate::cluster::{Deletion, WorkloadKind};

use super::*;
use crate::budget::{Attainable, attainable, attainable_after};

fn after_report(cluster: &mut Cluster, budget: Pdb) -> Attainable {
    let budget = report(cluster, budget);
    attainable(cluster, &budget, NOW)
}

/// required, attainable, never.
fn three(cluster: &mut Cluster, budget: Pdb) -> (i32, i32, bool) {
    let found = after_report(cluster, budget);
    (found.required, found.attainable, found.never)
}

#[test]
fn worked_numbers() {
    for (budget, scale, expected) in [
        (min_available("5"), 6, (5, 6, false)),
        (max_unavailable("1"), 6, (5, 6, false)),
        (min_available("50%"), 7, (4, 7, false)),
        (max_unavailable("30%"), 7, (4, 7, false)),
        (max_unavailable("0"), 6, (6, 6, true)),
        (min_available("3"), 3, (3, 3, true)),
        (min_available("100%"), 2, (2, 2, true)),
        (min_available("1"), 1, (1, 1, true)),
        (min_available("80%"), 1, (1, 1, true)),
        (max_unavailable("20%"), 1, (0, 1, false)),
    ] {
        let pods = usize::try_from(scale).expect("a small scale");
        let name = format!("{:?} {:?} of {scale}", budget.min_available, budget.max_unavailable);
        assert_eq!(three(&mut stateful_set(scale, pods), budget), expected, "{name}");
    }
}

#[test]
fn a_rebirth_is_a_moment() {
    // Five of six pods are there: expected 5 = desired 5, allowed 0, and yet the sixth comes back.
    let mut cluster = stateful_set(6, 5);
    let budget = report(&mut cluster, min_available("5"));
    assert_eq!(budget.status.expected_pods, 5);
    assert_eq!(budget.status.disruptions_allowed, 0);
    assert_eq!(three(&mut cluster, budget), (5, 6, false));
    // All pods unready is a moment, too.
    let mut cluster = stateful_set(6, 6);
    for number in 0..6 {
        change(&mut cluster, &format!("db-{number}"), |pod| pod.ready = false);
    }
    assert_eq!(three(&mut cluster, max_unavailable("1")), (5, 6, false));
}

#[test]
fn an_allowance_is_not_never() {
    // A pod that is there beyond the scale: 6 required of 6, and still one may go.
    let mut cluster = stateful_set(6, 7);
    assert_eq!(three(&mut cluster, max_unavailable("0")), (6, 6, false));
    let mut cluster = stateful_set(6, 6);
    cluster.apply_pod(pod("extra", None));
    assert_eq!(three(&mut cluster, max_unavailable("0")), (6, 7, false));
    // Unready is a moment, gone is not: nobody creates it again.
    change(&mut cluster, "extra", |pod| pod.ready = false);
    assert_eq!(three(&mut cluster, max_unavailable("0")), (6, 7, false));
    change(&mut cluster, "extra", |pod| {
        pod.deletion = Some(Deletion { at: NOW, grace_seconds: 30, cut_short: true });
    });
    assert_eq!(three(&mut cluster, max_unavailable("0")), (6, 6, true));
}

#[test]
fn an_unready_pod_without_a_controller_may_be_ready_again() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.apply_pod(pod(name, None));
    }
    change(&mut cluster, "b", |pod| pod.ready = false);
    assert_eq!(three(&mut cluster, min_available("1")), (1, 2, false));
    assert_eq!(three(&mut cluster, min_available("2")), (2, 2, true));
    change(&mut cluster, "b", |pod| pod.phase = PodPhase::Failed);
    assert_eq!(three(&mut cluster, min_available("1")), (1, 1, true));
}

#[test]
fn neither_field() {
    let found = after_report(&mut stateful_set(3, 3), budget());
    assert!(found.never && found.neither_field);
}

#[test]
fn a_selector_that_picks_some_pods_of_an_owner() {
    let mut cluster = stateful_set(3, 3);
    let mut primary = min_available("1");
    primary.selector = Some(Selector { requirements: vec![equals("role", "primary")] });
    change(&mut cluster, "db-0", |pod| pod.labels = labels(&[("app", "web"), ("role", "primary")]));
    assert_eq!(three(&mut cluster, primary), (1, 1, true));
}

#[test]
fn owners_whose_template_is_unknown() {
    let shard = || Some(owner("example.com/v1", "Shard", "a", "a"));
    let mut cluster = Cluster::new();
    cluster.apply_pod(pod("a-0", shard()));
    let unread = report(&mut cluster, min_available("1"));
    assert!(!attainable(&cluster, &unread, NOW).never, "nothing is known of its scale");
    cluster.record_scale("a".into(), scale("a", 3));
    assert_eq!(three(&mut cluster, min_available("1")), (1, 3, false));
    cluster.apply_pod(Pod { labels: labels(&[("app", "replica")]), ..pod("a-1", shard()) });
    assert_eq!(three(&mut cluster, min_available("1")), (1, 1, true));
    // Without a scale its pods are counted.
    let mut cluster = Cluster::new();
    cluster.apply_pod(pod("d-0", Some(owner("apps/v1", "DaemonSet", "d", "d"))));
    cluster.apply_pod(pod("d-1", Some(owner("apps/v1", "DaemonSet", "d", "d"))));
    assert_eq!(three(&mut cluster, min_available("2")), (2, 2, true));
    assert_eq!(three(&mut cluster, min_available("1")), (1, 2, false));
}

#[test]
fn several_owners_add_up() {
    let mut cluster = stateful_set(1, 1);
    let controller = owner("apps/v1", "Deployment", "web", "web");
    cluster.apply_workload(workload(WorkloadKind::Deployment, "web", 2, None));
    cluster.apply_workload(workload(WorkloadKind::ReplicaSet, "web-0", 2, Some(controller)));
    cluster.apply_pod(pod("web-0-x", Some(owner("apps/v1", "ReplicaSet", "web-0", "web-0"))));
    change(&mut cluster, "db-0", |pod| pod.ready = false);
    assert_eq!(three(&mut cluster, min_available("2")), (2, 3, false));
    assert_eq!(three(&mut cluster, min_available("100%")), (3, 3, true));
}

#[test]
fn an_owner_whose_pods_were_evicted_still_counts() {
    let mut cluster = stateful_set(1, 0);
    cluster.apply_workload(workload(WorkloadKind::StatefulSet, "cache", 1, None));
    cluster.apply_pod(pod("cache-0", Some(owner("apps/v1", "StatefulSet", "cache", "cache"))));
    let budget = report(&mut cluster, min_available("1"));
    assert!(attainable(&cluster, &budget, NOW).never);
    let found = attainable_after(&cluster, &budget, &recompute(&cluster, &budget, NOW), &["db".into()]);
    assert_eq!((found.required, found.attainable, found.never), (1, 2, false));
    // Gone altogether: it never comes back.
    cluster.delete_workload("db");
    assert!(attainable_after(&cluster, &budget, &recompute(&cluster, &budget, NOW), &["db".into()]).never);
}

#[test]
fn a_scale_of_zero_clears_by_itself() {
    let mut cluster = stateful_set(0, 2);
    change(&mut cluster, "db-0", |pod| {
        pod.deletion = Some(Deletion { at: NOW, grace_seconds: 30, cut_short: true });
    });
    for budget in [max_unavailable("1"), min_available("50%"), min_available("2")] {
        assert!(!after_report(&mut cluster, budget).never);
    }
}
