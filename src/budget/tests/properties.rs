//! What holds for every cluster.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::cluster::{Deletion, WorkloadKind};

use super::*;
use crate::budget::{Cause, attainable, room};

fn amounts() -> impl Strategy<Value = Amount> + Clone {
    prop_oneof![
        (0_i32..10).prop_map(Amount::Int),
        (0_i32..=100).prop_map(|percent| Amount::Text(format!("{percent}%").into())),
    ]
}

fn any_amount() -> impl Strategy<Value = Amount> + Clone {
    prop_oneof![any::<i32>().prop_map(Amount::Int), ".{0,8}%?".prop_map(|text| Amount::Text(text.into()))]
}

fn budgets(amounts: impl Strategy<Value = Amount> + Clone) -> impl Strategy<Value = Pdb> {
    let policies = prop_oneof![
        Just(UnhealthyPolicy::IfHealthyBudget),
        Just(UnhealthyPolicy::AlwaysAllow),
        Just(UnhealthyPolicy::Other)
    ];
    (proptest::option::of(amounts.clone()), proptest::option::of(amounts), policies, 0_i64..3).prop_map(
        |(min_available, max_unavailable, unhealthy_policy, generation)| Pdb {
            generation,
            min_available,
            max_unavailable,
            unhealthy_policy,
            ..budget()
        },
    )
}

#[derive(Debug, Clone)]
struct AnyPod {
    owner: u8,
    phase: PodPhase,
    ready: bool,
    terminating: bool,
    disrupted: Option<i64>,
}

fn pods() -> impl Strategy<Value = Vec<AnyPod>> {
    let phases = prop_oneof![
        4 => Just(PodPhase::Running),
        1 => Just(PodPhase::Pending),
        1 => Just(PodPhase::Succeeded),
        1 => Just(PodPhase::Failed),
        1 => Just(PodPhase::Unknown)
    ];
    let disrupted = proptest::option::weighted(0.2, 0_i64..240);
    let pod = (0_u8..4, phases, any::<bool>(), proptest::bool::weighted(0.2), disrupted);
    let pod = pod.prop_map(|(owner, phase, ready, terminating, disrupted)| AnyPod {
        owner,
        phase,
        ready,
        terminating,
        disrupted,
    });
    proptest::collection::vec(pod, 0..12)
}

/// Owner 0 is nobody, 1 a StatefulSet, 2 a ReplicaSet of a Deployment, 3 a custom resource.
fn cluster(scales: [i32; 3], pods: &[AnyPod], budget: &mut Pdb) -> Cluster {
    let mut cluster = stateful_set(scales[0], 0);
    let controller = owner("apps/v1", "Deployment", "web", "web");
    cluster.apply_workload(workload(WorkloadKind::Deployment, "web", scales[1], None));
    cluster.apply_workload(workload(WorkloadKind::ReplicaSet, "web-0", 1, Some(controller)));
    cluster.record_scale("shard".into(), scale("shard", scales[2]));
    for (number, any) in pods.iter().enumerate() {
        let reference = match any.owner {
            0 => None,
            1 => Some(owner("apps/v1", "StatefulSet", "db", "db")),
            2 => Some(owner("apps/v1", "ReplicaSet", "web-0", "web-0")),
            _ => Some(owner("example.com/v1", "Shard", "shard", "shard")),
        };
        let mut pod = pod(&format!("p{number}"), reference);
        pod.phase = any.phase;
        pod.ready = any.ready;
        pod.deletion = any.terminating.then_some(Deletion { at: NOW, grace_seconds: 30, cut_short: true });
        if let Some(ago) = any.disrupted {
            let since = Timestamp::from_second(NOW.as_second() - ago).expect("a time");
            budget.status.disrupted_pods.insert(pod.name.clone(), since);
        }
        cluster.apply_pod(pod);
    }
    cluster
}

proptest! {
    #[test]
    fn the_numbers_fit_together(
        mut budget in budgets(amounts()), scales in proptest::array::uniform3(0_i32..9), pods in pods(),
    ) {
        let cluster = cluster(scales, &pods, &mut budget);
        let found = computed(&cluster, &budget);
        prop_assert_eq!(&found.sync_error, &None);
        let Numbers { expected_pods, current_healthy, desired_healthy, disruptions_allowed } = found.numbers;
        let ready = pods.iter().filter(|pod| pod.ready && !pod.terminating).count();
        prop_assert!(usize::try_from(current_healthy).expect("not negative") <= ready);
        prop_assert!(disruptions_allowed >= 0 && desired_healthy >= 0 && expected_pods >= 0);
        if disruptions_allowed > 0 {
            prop_assert_eq!(current_healthy - disruptions_allowed, desired_healthy);
        }
        if budget.max_unavailable.is_some() {
            // The scale of an owner counts once, however many pods it has, and not at all without one.
            let per_owner: BTreeMap<u8, i32> = pods.iter().filter(|pod| pod.owner > 0)
                .map(|pod| (pod.owner, *scales.get(usize::from(pod.owner) - 1).expect("three owners"))).collect();
            prop_assert_eq!(expected_pods, per_owner.values().sum::<i32>());
            prop_assert!(desired_healthy <= expected_pods);
        }
    }

    #[test]
    fn one_more_healthy_pod_never_allows_less(
        mut budget in budgets(amounts()), scales in proptest::array::uniform3(0_i32..9), pods in pods(),
    ) {
        let before = cluster(scales, &pods, &mut budget);
        let Some(first) = pods.iter().position(|pod| !pod.ready) else { return Ok(()) };
        let mut after = before.clone();
        change(&mut after, &format!("p{first}"), |pod| pod.ready = true);
        prop_assert!(
            computed(&before, &budget).numbers.disruptions_allowed
                <= computed(&after, &budget).numbers.disruptions_allowed
        );
    }

    #[test]
    fn the_order_of_events_does_not_matter(
        mut budget in budgets(amounts()), scales in proptest::array::uniform3(0_i32..9), pods in pods(),
    ) {
        let forward = cluster(scales, &pods, &mut budget);
        let mut backward = forward.clone();
        let all: Vec<Pod> = forward.pods_in("shop").map(|pod| Pod::clone(pod)).collect();
        for pod in &all {
            backward.delete_pod(&pod.key());
        }
        for pod in all.into_iter().rev() {
            backward.apply_pod(pod);
        }
        prop_assert_eq!(computed(&forward, &budget), computed(&backward, &budget));
    }

    #[test]
    fn nothing_panics_and_room_is_what_the_server_grants(
        mut budget in budgets(any_amount()), scales in proptest::array::uniform3(any::<i32>()), pods in pods(),
        allowed in any::<i32>(),
    ) {
        let mut cluster = cluster(scales, &pods, &mut budget);
        budget.status.disruptions_allowed = allowed;
        cluster.apply_budget(budget.clone());
        let _ = attainable(&cluster, &budget, NOW);
        let room = room(&cluster, &budget, NOW);
        prop_assert!(room >= 0 && room <= allowed.max(0));
        for (number, pod) in pods.iter().enumerate() {
            let verdict = answer(&cluster, &format!("p{number}"));
            prop_assert_eq!(verdict.code, verdict.cause.code());
            if room > 0 && pod.phase == PodPhase::Running && !pod.terminating {
                prop_assert!(verdict.cause.evicts());
            }
            prop_assert!(verdict.cause != Cause::NoBudget);
        }
    }

    #[test]
    fn never_means_that_full_health_allows_nothing(
        mut budget in budgets(amounts()), scale in 1_i32..9, pods in pods(),
    ) {
        // Whatever ails the pods now: with the owner at full health the budget must still allow nothing.
        let pods: Vec<AnyPod> = pods.into_iter().map(|pod| AnyPod { owner: 1, ..pod }).collect();
        prop_assume!(!pods.is_empty());
        let mut now = cluster([scale, 0, 0], &pods, &mut budget);
        let reported = report(&mut now, budget.clone());
        let found = attainable(&now, &reported, NOW);
        let mut healthy = stateful_set(scale, usize::try_from(scale).expect("small"));
        budget.status.disrupted_pods.clear();
        let budget = report(&mut healthy, budget);
        if found.never {
            prop_assert_eq!(budget.status.disruptions_allowed, 0);
        } else {
            prop_assert!(budget.status.disruptions_allowed > 0 || reported.status.disruptions_allowed > 0);
        }
    }
}
