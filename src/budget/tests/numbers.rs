//! Expected, healthy, desired, allowed.

use crate::cluster::{Cluster, Deletion, OwnerRef, Pdb, PodPhase, Scale, Selector, WorkloadKind};

use super::*;
use crate::budget::{scales_of, scales_wanted, unscaled_pods};

fn terminate(pod: &mut Pod) {
    pod.deletion = Some(Deletion { at: NOW, grace_seconds: 30, cut_short: true });
}

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW.as_second() - seconds).expect("a time")
}

#[test]
fn worked_numbers() {
    for (budget, scale, numbers) in [
        (min_available("5"), 6, (6, 6, 5, 1)),
        (max_unavailable("1"), 6, (6, 6, 5, 1)),
        (min_available("50%"), 7, (7, 7, 4, 3)),
        (max_unavailable("50%"), 7, (7, 7, 3, 4)),
        (min_available("30%"), 7, (7, 7, 3, 4)),
        (max_unavailable("30%"), 7, (7, 7, 4, 3)),
        (max_unavailable("0"), 6, (6, 6, 6, 0)),
        (min_available("3"), 3, (3, 3, 3, 0)),
        (min_available("100%"), 2, (2, 2, 2, 0)),
        (min_available("0"), 3, (3, 3, 0, 3)),
        (max_unavailable("9"), 3, (3, 3, 0, 3)),
        (budget(), 3, (0, 3, 0, 0)),
    ] {
        let cluster = stateful_set(scale, usize::try_from(scale).expect("a small scale"));
        assert_eq!(
            four(&cluster, &budget),
            numbers,
            "{:?} {:?}",
            budget.min_available,
            budget.max_unavailable
        );
    }
}

#[test]
fn integer_min_available_counts_pod_objects() {
    let mut cluster = stateful_set(6, 5);
    change(&mut cluster, "db-0", |pod| (pod.phase, pod.ready) = (PodPhase::Failed, false));
    change(&mut cluster, "db-1", terminate);
    assert_eq!(four(&cluster, &min_available("2")), (5, 3, 2, 1));
    // The others follow the scale.
    assert_eq!(four(&cluster, &min_available("50%")), (6, 3, 3, 0));
    assert_eq!(four(&cluster, &max_unavailable("4")), (6, 3, 2, 1));
}

#[test]
fn max_unavailable_goes_before_min_available() {
    let both = Pdb { min_available: Some(amount("6")), ..max_unavailable("2") };
    assert_eq!(four(&stateful_set(6, 6), &both), (6, 6, 4, 2));
}

#[test]
fn selectors() {
    let mut cluster = stateful_set(3, 3);
    cluster.apply_pod(Pod { labels: labels(&[("app", "other")]), ..pod("other", None) });
    let with = |selector: Option<Selector>| Pdb { selector, ..min_available("1") };
    assert_eq!(four(&cluster, &with(Some(Selector::default()))), (4, 4, 1, 3), "an empty one selects all");
    assert_eq!(four(&cluster, &with(None)), (0, 0, 1, 0), "a missing one selects none");
    let expression = |operator, values: &[&str]| {
        let values = values.iter().map(|value| (*value).into()).collect();
        with(Some(Selector { requirements: vec![Requirement { key: "app".into(), operator, values }] }))
    };
    cluster.apply_pod(Pod { labels: labels(&[]), ..pod("bare", None) });
    for (operator, values, pods) in [
        (Operator::In, ["web", "other"].as_slice(), 4),
        (Operator::NotIn, &["web"], 2),
        (Operator::Exists, &[], 4),
        (Operator::DoesNotExist, &[], 1),
    ] {
        assert_eq!(four(&cluster, &expression(operator, values)).0, pods, "{operator:?} {values:?}");
    }
    let invalid = Pdb {
        selector: None,
        invalid_selector: Some("\"Foo\" is not a valid label selector operator".into()),
        ..min_available("1")
    };
    assert_eq!(sync_error(&cluster, &invalid), "\"Foo\" is not a valid label selector operator");
}

/// A Deployment `web` of `scale` with a ReplicaSet for each number, of that scale and with one pod.
fn deployment(scale: i32, replica_sets: &[i32]) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.apply_workload(workload(WorkloadKind::Deployment, "web", scale, None));
    for (number, replicas) in replica_sets.iter().enumerate() {
        let name = format!("web-{number}");
        let controller = owner("apps/v1", "Deployment", "web", "web");
        cluster.apply_workload(workload(WorkloadKind::ReplicaSet, &name, *replicas, Some(controller)));
        cluster.apply_pod(pod(&format!("{name}-x"), Some(owner("apps/v1", "ReplicaSet", &name, &name))));
    }
    cluster
}

#[test]
fn a_deployment_counts_once_and_not_its_replica_sets() {
    assert_eq!(four(&deployment(4, &[3, 2]), &max_unavailable("3")), (4, 2, 1, 1));
}

#[test]
fn a_replica_set_counts_when_its_deployment_does_not() {
    // Gone, or reborn under another uid: its own /scale answers.
    let mut cluster = deployment(4, &[3]);
    cluster.delete_workload("web");
    assert_eq!(four(&cluster, &max_unavailable("3")).0, 3);
    // A controller of another kind.
    let controller = owner("argoproj.io/v1alpha1", "Rollout", "web", "rollout");
    cluster.apply_workload(workload(WorkloadKind::ReplicaSet, "web-0", 5, Some(controller)));
    assert_eq!(four(&cluster, &max_unavailable("3")).0, 5);
    // A Deployment of a foreign group is none.
    let controller = owner("example.com/v1", "Deployment", "web", "foreign");
    cluster.apply_workload(workload(WorkloadKind::ReplicaSet, "web-0", 6, Some(controller)));
    assert_eq!(four(&cluster, &max_unavailable("3")).0, 6);
}

fn of_owner(reference: OwnerRef) -> Cluster {
    let mut cluster = stateful_set(2, 0);
    cluster.apply_pod(pod("web-x", Some(reference)));
    cluster
}

#[test]
fn owners_that_are_gone_or_others() {
    let none = "found no controllers for pod \"web-x\"";
    for reference in [
        owner("apps/v1", "ReplicaSet", "gone", "gone"),
        owner("apps/v1", "Deployment", "gone", "gone"),
        owner("v1", "ReplicationController", "gone", "gone"),
        owner("apps/v1", "StatefulSet", "db", "another uid"),
        owner("apps/v1", "StatefulSet", "another name", "db"),
        owner("apps/v1", "ReplicaSet", "db", "db"),
    ] {
        assert_eq!(sync_error(&of_owner(reference.clone()), &max_unavailable("1")), none, "{reference:?}");
    }
}

#[test]
fn owners_without_a_scale() {
    for (api_version, kind, message) in [
        ("apps/v1", "DaemonSet", "daemonsets.apps does not implement the scale subresource"),
        ("batch/v1", "Job", "jobs.batch does not implement the scale subresource"),
        ("v1", "Node", "nodes does not implement the scale subresource"),
        ("apps/v1beta2", "DaemonSet", "no matches for kind \"DaemonSet\" in version \"apps/v1beta2\""),
        (
            "extensions/v1beta1",
            "ReplicaSet",
            "no matches for kind \"ReplicaSet\" in version \"extensions/v1beta1\"",
        ),
        ("apps/v1beta1", "StatefulSet", "no matches for kind \"StatefulSet\" in version \"apps/v1beta1\""),
        ("a/b/c", "Any", "unexpected GroupVersion string: a/b/c"),
    ] {
        let cluster = of_owner(owner(api_version, kind, "x", "x"));
        assert_eq!(sync_error(&cluster, &max_unavailable("1")), message);
        assert_eq!(sync_error(&cluster, &min_available("1%")), message);
        assert_eq!(unscaled_pods(&cluster, &max_unavailable("1")), [("web-x".into(), message.to_string())]);
        // Integer minAvailable asks no owner.
        assert_eq!(four(&cluster, &min_available("1")), (1, 1, 1, 0));
        assert_eq!(unscaled_pods(&cluster, &min_available("1")), []);
    }
}

#[test]
fn a_failed_sync_leaves_the_other_numbers() {
    let mut budget = max_unavailable("1");
    budget.status.expected_pods = 4;
    budget.status.current_healthy = 3;
    budget.status.desired_healthy = 2;
    budget.status.disruptions_allowed = 1;
    let computed = computed(&of_owner(owner("batch/v1", "Job", "x", "x")), &budget);
    let left = Numbers { expected_pods: 4, current_healthy: 3, desired_healthy: 2, disruptions_allowed: 0 };
    assert_eq!(computed.numbers, left);
}

#[test]
fn versions_and_groups_of_known_owners() {
    for (api_version, kind) in [
        ("apps/v1", "StatefulSet"),
        ("apps/v1beta1", "StatefulSet"),
        // In lower case only the scale subresource finds it.
        ("apps/v1", "statefulset"),
        ("apps/__internal", "statefulset"),
    ] {
        assert_eq!(four(&of_owner(owner(api_version, kind, "db", "db")), &max_unavailable("1")).0, 2);
    }
    let mut cluster = of_owner(owner("v1", "ReplicationController", "rc", "rc"));
    cluster.apply_workload(workload(WorkloadKind::ReplicationController, "rc", 3, None));
    assert_eq!(four(&cluster, &max_unavailable("1")).0, 3);
}

#[test]
fn custom_owners_go_by_their_scale() {
    let reference = owner("example.com/v1", "Shard", "a", "shard-a");
    let budget = max_unavailable("1");
    let mut cluster = of_owner(reference.clone());
    cluster.apply_budget(budget.clone());
    let wanted = vec![("shop".into(), reference)];
    assert_eq!(computed(&cluster, &budget).unread_scales, wanted);
    assert_eq!(scales_wanted(&cluster, "shop"), wanted);

    cluster.record_scale("shard-a".into(), scale("shard-a", 5));
    assert_eq!(four(&cluster, &budget), (5, 1, 4, 0));
    assert_eq!(scales_wanted(&cluster, "shop"), []);
    assert_eq!(scales_of(&cluster, &budget), wanted);

    cluster.record_scale("shard-a".into(), scale("reborn", 5));
    assert_eq!(sync_error(&cluster, &budget), "found no controllers for pod \"web-x\"");
    cluster.record_scale("shard-a".into(), Scale::Gone);
    assert_eq!(sync_error(&cluster, &budget), "found no controllers for pod \"web-x\"");
    cluster.record_scale("shard-a".into(), Scale::NoScale("shards.example.com does not …".into()));
    assert_eq!(sync_error(&cluster, &budget), "shards.example.com does not …");
    cluster.record_scale("shard-a".into(), Scale::Unreadable("403".into()));
    assert_eq!(computed(&cluster, &budget).unread_scales, wanted);
}

#[test]
fn scales_beyond_32_bits_make_the_status_invalid() {
    let mut cluster = of_owner(owner("example.com/v1", "Shard", "a", "a"));
    cluster.apply_pod(pod("web-y", Some(owner("example.com/v1", "Shard", "b", "b"))));
    cluster.record_scale("a".into(), scale("a", i32::MAX));
    cluster.record_scale("b".into(), scale("b", i32::MAX));
    assert_eq!(
        sync_error(&cluster, &max_unavailable("1")),
        "PodDisruptionBudget.policy \"web\" is invalid: status.expectedPods: Invalid value: -2: must be greater than \
         or equal to 0"
    );
    assert_eq!(
        sync_error(&cluster, &min_available("100%")),
        "PodDisruptionBudget.policy \"web\" is invalid: [status.desiredHealthy: Invalid value: -2: must be greater \
         than or equal to 0, status.expectedPods: Invalid value: -2: must be greater than or equal to 0]"
    );
}

#[test]
fn pods_without_a_controller() {
    let mut cluster = Cluster::new();
    cluster.apply_pod(pod("a", None));
    cluster.apply_pod(pod("b", None));
    assert_eq!(four(&cluster, &max_unavailable("1")), (0, 2, 0, 0), "nothing expected, nothing allowed");
    assert_eq!(four(&cluster, &min_available("50%")), (0, 2, 0, 0));
    assert_eq!(four(&cluster, &min_available("1")), (2, 2, 1, 1));
    let mut cluster = stateful_set(6, 6);
    cluster.apply_pod(pod("extra", None));
    assert_eq!(four(&cluster, &max_unavailable("0")), (6, 7, 6, 1), "an extra Ready pod is one to spare");
}

#[test]
fn pods_that_were_let_go() {
    let cluster = stateful_set(3, 3);
    let mut budget = max_unavailable("1");
    budget.status.disrupted_pods.insert("db-0".into(), ago(119));
    budget.status.disrupted_pods.insert("not selected".into(), ago(1));
    assert_eq!(four(&cluster, &budget), (3, 2, 2, 0));
    assert_eq!(computed(&cluster, &budget).recheck_at, Timestamp::from_second(NOW.as_second() + 1).ok());
    // After two minutes it counts again.
    budget.status.disrupted_pods.insert("db-0".into(), ago(120));
    assert_eq!(four(&cluster, &budget), (3, 3, 2, 1));
    assert_eq!(computed(&cluster, &budget).recheck_at, Some(NOW));
    budget.status.disrupted_pods.insert("db-0".into(), ago(121));
    assert_eq!(four(&cluster, &budget), (3, 3, 2, 1));
    assert_eq!(computed(&cluster, &budget).recheck_at, None);
}

#[test]
fn readiness_and_termination() {
    let mut cluster = stateful_set(4, 4);
    change(&mut cluster, "db-0", |pod| pod.ready = false);
    change(&mut cluster, "db-1", terminate);
    assert_eq!(four(&cluster, &max_unavailable("3")), (4, 2, 1, 1));
    // Ready alone counts, whatever the phase says.
    change(&mut cluster, "db-2", |pod| pod.phase = PodPhase::Succeeded);
    assert_eq!(four(&cluster, &max_unavailable("3")), (4, 2, 1, 1));
}
