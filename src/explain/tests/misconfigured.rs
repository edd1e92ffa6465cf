//! Budgets that allow nothing by what is written in them or beside them.

use super::*;

#[test]
fn two_budgets_on_one_pod() {
    let world = World::new()
        .deployment("web", 3)
        .budget("web", "maxUnavailable: 1")
        .budget("chart", "minAvailable: 1");
    world.waits(
        "web-7d-0",
        Reason::MultipleBudgets,
        Outlook::NeverClears,
        "2 budgets select this pod, shop/chart and shop/web, and the Eviction API answers 500 \
         for every pod with more than one, whatever they allow.",
        "keep one of shop/chart and shop/web: delete the others, or let their selectors leave this pod out",
    );
    assert_eq!(world.judge("web-7d-0").verdict.code, 500);
}

#[test]
fn a_budget_that_a_running_job_spoils() {
    let world = World::new()
        .deployment("web", 2)
        .pod("cleanup-x", Some(owner("batch/v1", "Job", "cleanup")))
        .budget("web", "minAvailable: 50%");
    for pod in ["web-7d-0", "cleanup-x"] {
        world.waits(
            pod,
            Reason::BudgetSyncFailed,
            Outlook::MayClear,
            "Budget shop/web (minAvailable 50%) allows 0 evictions because the disruption \
             controller cannot compute it: “jobs.batch does not implement the scale \
             subresource”. In the way: cleanup-x on node-a (Job cleanup).",
            "wait for Job cleanup to end and delete it (or write ttlSecondsAfterFinished), or \
             append to matchExpressions of budget shop/web: {key: \
             batch.kubernetes.io/job-name, operator: DoesNotExist}, {key: job-name, operator: \
             DoesNotExist}",
        );
    }
}

#[test]
fn a_finished_job_spoils_it_until_somebody_deletes_it() {
    let world = || {
        World::new()
            .deployment("web", 1)
            .pod("archive-x", Some(owner("batch/v1", "Job", "archive")))
            .change("archive-x", |pod| pod.phase = PodPhase::Succeeded)
            .budget("web", "maxUnavailable: 1")
    };
    world().waits(
        "web-7d-0",
        Reason::BudgetSyncFailed,
        Outlook::NeverClears,
        "Budget shop/web (maxUnavailable 1) allows 0 evictions because the disruption \
         controller cannot compute it: “jobs.batch does not implement the scale \
         subresource”. In the way: archive-x on node-a (Job archive, finished).",
        "delete Job archive, or append to matchExpressions of budget shop/web: {key: \
         batch.kubernetes.io/job-name, operator: DoesNotExist}, {key: job-name, operator: \
         DoesNotExist}",
    );
    let outlook = |finished, ttl_seconds| {
        let mut world = world();
        world.cluster.apply_job(Job {
            namespace: "shop".into(),
            name: "archive".into(),
            uid: "Job-archive".into(),
            finished,
            ttl_seconds,
        });
        world.judge("web-7d-0").wait.map(|wait| wait.outlook)
    };
    assert_eq!(outlook(true, None), Some(Outlook::NeverClears));
    assert_eq!(outlook(true, Some(60)), Some(Outlook::MayClear));
    // A pod of it has failed, another will be tried.
    assert_eq!(outlook(false, None), Some(Outlook::MayClear));
}

#[test]
fn a_budget_over_daemon_set_pods() {
    let world = World::new()
        .deployment("web", 1)
        .pod("agent-x", Some(owner("apps/v1", "DaemonSet", "agent")))
        .budget("web", "maxUnavailable: 1");
    world.waits(
        "web-7d-0",
        Reason::BudgetSyncFailed,
        Outlook::NeverClears,
        "Budget shop/web (maxUnavailable 1) allows 0 evictions because the disruption \
         controller cannot compute it: “daemonsets.apps does not implement the scale \
         subresource”. In the way: agent-x on node-a (DaemonSet agent).",
        "narrow the selector of budget shop/web so that it leaves out the pods of \
         DaemonSet agent, or in budget shop/web write minAvailable: 1 instead of maxUnavailable: 1",
    );
}

#[test]
fn a_budget_over_a_kind_without_scale() {
    let store = owner("db.example.dev/v1", "Store", "kv");
    let mut world = World::new().pod("kv-0", Some(store.clone())).pod("kv-1", Some(store.clone()));
    let message = "stores.db.example.dev does not implement the scale subresource";
    world.cluster.record_scale(store.uid, Scale::NoScale(message.into()));
    world = world.budget("web", "maxUnavailable: 1");
    world.waits(
        "kv-0",
        Reason::BudgetSyncFailed,
        Outlook::NeverClears,
        "Budget shop/web (maxUnavailable 1) allows 0 evictions because the disruption \
         controller cannot compute it: “stores.db.example.dev does not implement the scale \
         subresource”. In the way: kv-0 on node-a (Store kv) and kv-1 on node-a (Store kv).",
        "in budget shop/web write minAvailable: 1 instead of maxUnavailable: 1, or let the kind Store serve the scale \
         subresource",
    );
    // As many as are asked for, of the pods that are there; and one less than these at most.
    for (asked, number) in [
        ("minAvailable: 50%", 1),
        ("minAvailable: 100%", 1),
        ("maxUnavailable: 0", 1),
        ("maxUnavailable: 100%", 0),
    ] {
        world = world.budget("web", asked);
        let wait = world.judge("kv-0").wait.expect("it waits");
        assert!(
            wait.remedy.starts_with(&format!("in budget shop/web write minAvailable: {number} ")),
            "{asked}"
        );
    }
    // The same, told only by the controller: from files nobody can ask for the scale.
    let world = World::new().pod("kv-0", Some(owner("db.example.dev/v1", "Store", "kv")));
    let world = world.budget("web", "maxUnavailable: 1").change_budget(|budget| {
        budget.status.sync_failed = Some(message.into());
    });
    let wait = world.judge("kv-0").wait.expect("it waits");
    assert_eq!((wait.reason, wait.outlook), (Reason::BudgetSyncFailed, Outlook::NeverClears));
}

#[test]
fn pods_whose_owner_is_gone_spoil_it_until_they_are_collected() {
    let world =
        World::new().deployment("web", 1).pod("orphan-x", Some(owner("apps/v1", "StatefulSet", "orphan")));
    let mut world = world;
    world.cluster.record_scale("StatefulSet-orphan".into(), Scale::Gone);
    world.budget("web", "maxUnavailable: 1").waits(
        "web-7d-0",
        Reason::BudgetSyncFailed,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1) allows 0 evictions because the disruption \
         controller cannot compute it: “found no controllers for pod \"orphan-x\"”. In the \
         way: orphan-x on node-a (StatefulSet orphan).",
        "delete the pods that StatefulSet orphan left behind",
    );
}

#[test]
fn a_failure_that_is_over_waits_for_the_controller_to_look_again() {
    let world =
        World::new().deployment("web", 3).budget("web", "maxUnavailable: 1").change_budget(|budget| {
            budget.status.disruptions_allowed = 0;
            budget.status.sync_failed =
                Some("no matches for kind \"Member\" in version \"x.example.dev/v1\"".into());
        });
    world.waits(
        "web-7d-0",
        Reason::BudgetSyncFailed,
        Outlook::MayClear,
        "Budget shop/web (maxUnavailable 1 of 3) allows 0 evictions because the disruption \
         controller cannot compute it: “no matches for kind \"Member\" in version \
         \"x.example.dev/v1\"”. As things stand now it could.",
        "annotate budget shop/web: the controller tries again when a pod or the budget \
         changes",
    );
}

#[test]
fn arithmetic_that_never_allows_anything() {
    let said = |replicas, field: &str| {
        let wait = World::new().deployment("web", replicas).budget("web", field).judge("web-7d-0").wait;
        let wait = wait.expect("it waits");
        assert_eq!((wait.reason, wait.outlook), (Reason::BudgetNeverAllows, Outlook::NeverClears), "{field}");
        format!("{}\n{}", wait.message, wait.remedy)
    };
    assert_eq!(
        said(1, "minAvailable: 1"),
        "Budget shop/web (minAvailable 1 of 1) can never allow an eviction: it requires 1 \
         healthy pod, and Deployment web (1 replica) can have 1 at most.\nin budget \
         shop/web write maxUnavailable: 1 instead of minAvailable: 1 (its only pod is then \
         down while it moves), or run at least 2 replicas"
    );
    assert_eq!(
        said(3, "minAvailable: 3"),
        "Budget shop/web (minAvailable 3 of 3) can never allow an eviction: it requires 3 \
         healthy pods, and Deployment web (3 replicas) can have 3 at most.\nin budget \
         shop/web write maxUnavailable: 1 instead of minAvailable: 3, or run at least 4 \
         replicas"
    );
    assert_eq!(
        said(2, "minAvailable: 100%"),
        "Budget shop/web (minAvailable 100% of 2 = 2) can never allow an eviction: it \
         requires 2 healthy pods, and Deployment web (2 replicas) can have 2 at most.\nin \
         budget shop/web write maxUnavailable: 1 instead of minAvailable: 100%"
    );
    assert_eq!(
        said(1, "minAvailable: 80%"),
        "Budget shop/web (minAvailable 80% of 1 = 1) can never allow an eviction: it \
         requires 1 healthy pod, and Deployment web (1 replica) can have 1 at most.\nin \
         budget shop/web write maxUnavailable: 1 instead of minAvailable: 80% (its only \
         pod is then down while it moves)"
    );
    assert_eq!(
        said(6, "maxUnavailable: 0"),
        "Budget shop/web (maxUnavailable 0 of 6) can never allow an eviction: it requires \
         6 healthy pods, and Deployment web (6 replicas) can have 6 at most.\nin budget \
         shop/web write maxUnavailable: 1 instead of maxUnavailable: 0"
    );
    assert_eq!(
        said(3, "minAvailable: 5"),
        "Budget shop/web (minAvailable 5 of 3) can never allow an eviction: it requires 5 \
         healthy pods, and Deployment web (3 replicas) can have 3 at most.\nin budget \
         shop/web write maxUnavailable: 1 instead of minAvailable: 5, or run at least 6 \
         replicas"
    );
    assert_eq!(
        said(3, ""),
        "Budget shop/web has neither minAvailable nor maxUnavailable, and such a budget \
         allows nothing.\nwrite maxUnavailable: 1 in budget shop/web"
    );
}

#[test]
fn a_budget_over_one_pod_of_several_owners_or_none() {
    // Only one pod of the set carries the label, so maxUnavailable would count the two others as missing.
    let world =
        World::new().stateful_set("db", 3).change("db-1", |pod| pod.labels = labels(&[("role", "replica")]));
    let world = world.change("db-2", |pod| pod.labels = labels(&[("role", "replica")]));
    let mut world = world;
    let mut set = workload(WorkloadKind::StatefulSet, "db", 3, None);
    set.template_labels = labels(&[("app", "db")]);
    world.cluster.apply_workload(set);
    world.budget("web", "minAvailable: 1").waits(
        "db-0",
        Reason::BudgetNeverAllows,
        Outlook::NeverClears,
        "Budget shop/web (minAvailable 1 of 1) can never allow an eviction: it requires 1 \
         healthy pod, and StatefulSet db (3 replicas, of which the budget selects 1) can have 1 at most.",
        "in budget shop/web write minAvailable: 0 instead of minAvailable: 1 (its only pod \
         is then down while it moves)",
    );

    let mut world = World::new().stateful_set("a", 1).stateful_set("b", 1).pod("bare", None);
    world.policy.unmanaged = Some(Eviction::Evict);
    world.budget("web", "minAvailable: 3").waits(
        "a-0",
        Reason::BudgetNeverAllows,
        Outlook::NeverClears,
        "Budget shop/web (minAvailable 3 of 3) can never allow an eviction: it requires 3 \
         healthy pods, and StatefulSet a (1 replica), StatefulSet b (1 replica) and 1 pod \
         without a controller can have 3 at most.",
        "in budget shop/web write maxUnavailable: 1 instead of minAvailable: 3",
    );
}

#[test]
fn a_budget_over_pods_without_controllers() {
    let mut world = World::new().pod("one", None).pod("two", None);
    world.policy.unmanaged = Some(Eviction::Evict);
    let world = world.budget("web", "maxUnavailable: 1");
    world.waits(
        "one",
        Reason::BudgetCountsNone,
        Outlook::NeverClears,
        "Budget shop/web (maxUnavailable 1 of 0) allows 0 evictions: it counts by the \
         scale of its pods' controllers, and none of them has one (one and two).",
        "in budget shop/web write minAvailable: 1 instead of maxUnavailable: 1",
    );
    // Unready ones, too: they could recover, and nothing would change.
    let world = world.crashing("one").crashing("two");
    assert_eq!(world.judge("one").wait.map(|wait| wait.reason), Some(Reason::BudgetCountsNone));
}

#[test]
fn a_pod_without_a_controller_stays_when_all_owners_want_none() {
    let mut world = World::new().stateful_set("web", 1).pod("lone", None);
    world.policy.unmanaged = Some(Eviction::Evict);
    world.cluster.apply_workload(workload(WorkloadKind::StatefulSet, "web", 0, None));
    let world = world.budget("web", "maxUnavailable: 0");
    world.waits(
        "lone",
        Reason::BudgetCountsNone,
        Outlook::NeverClears,
        "Budget shop/web (maxUnavailable 0 of 0) allows 0 evictions: it counts by the scale of its pods' controllers, and \
         StatefulSet web (0 replicas) and nobody for lone add up to 0.",
        "in budget shop/web write minAvailable: 0 instead of maxUnavailable: 0",
    );
    assert_eq!(world.reason("web-0"), Some(Reason::OwnerScalingDown));
}

#[test]
fn what_is_misspelt_in_a_budget_only_a_person_can_mend() {
    for field in ["maxUnavailable: 1.5%", "maxUnavailable: x", "minAvailable: %", "minAvailable: -1"] {
        let wait = World::new().stateful_set("web", 3).budget("web", field).judge("web-0").wait;
        let wait = wait.expect("it waits");
        assert_eq!((wait.reason, wait.outlook), (Reason::BudgetSyncFailed, Outlook::NeverClears), "{field}");
        let written = field.split(':').next().unwrap_or_default();
        let remedy = format!(
            "in budget shop/web write a number of pods, such as {written}: 1, or a whole percentage, such as {written}: \
             \"50%\""
        );
        assert_eq!(wait.remedy, remedy, "{field}");
    }
}

#[test]
fn a_budget_over_one_pod_of_several_says_that_it_is_one() {
    let mut world = World::new().deployment("web", 3);
    let other = labels(&[("app", "other")]);
    for (kind, name, of) in [
        (WorkloadKind::ReplicaSet, "web-7d", Some(owner("apps/v1", "Deployment", "web"))),
        (WorkloadKind::Deployment, "web", None),
    ] {
        let template_labels = other.clone();
        world.cluster.apply_workload(Workload { template_labels, ..workload(kind, name, 3, of) });
    }
    for pod in ["web-7d-1", "web-7d-2"] {
        let labels = other.clone();
        world = world.change(pod, |pod| pod.labels = labels);
    }
    let wait = world.budget("web", "maxUnavailable: 1").judge("web-7d-0").wait.expect("it waits");
    assert_eq!(
        wait.message,
        "Budget shop/web (maxUnavailable 1 of 3) can never allow an eviction: it requires 2 healthy pods, and Deployment web \
         (3 replicas, of which the budget selects 1) can have 1 at most."
    );
}

/// What cannot be computed, and would allow nothing if it could, is no matter of repairing the first of both.
#[test]
fn a_budget_that_is_not_computed_and_requires_all_pods() {
    let said = |field: &str| {
        let job = Some(owner("batch/v1", "Job", "report"));
        let world = World::new().stateful_set("web", 2).pod("report-x", job).budget("web", field);
        let wait = world.judge("web-0").wait.expect("it waits");
        assert_eq!(wait.reason, Reason::BudgetSyncFailed);
        (wait.outlook, wait.remedy.contains("; also write maxUnavailable: 1 instead of"))
    };
    assert_eq!(said("maxUnavailable: 1"), (Outlook::MayClear, false));
    for field in ["maxUnavailable: 0", "maxUnavailable: 0%", "minAvailable: 100%"] {
        assert_eq!(said(field), (Outlook::NeverClears, true), "{field}");
    }
}
