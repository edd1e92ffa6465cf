//! What is said about pods that wait.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodePhase, NodeReason, NodeStatus, Outlook, PlanPhase};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Map, Value, json};

use super::{PATIENCE, alone, over, report, shared, waiting};
use crate::harness::{Bed, Recorder, Sight, Template, is_ready, terminating, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(3, budget_that_never_allows),
        shared!(4, slow_replacement),
        shared!(7, min_available_equals_replicas),
        shared!(8, unready_pods_hold_a_budget),
        shared!(9, unready_pods_always_allowed),
        shared!(10, two_budgets_on_one_pod),
        shared!(11, running_job_under_a_budget),
        alone!(28, controller_manager_down),
    ]
}

/// A plan over one node on which a pod never clears: the node is not touched, and fails as soon as its timeout is over.
async fn fails_untouched(bed: &Bed, nodes: &[String; 1]) -> Result<NodeStatus> {
    const TIMEOUT: Duration = Duration::from_secs(4);
    let [node] = nodes;
    let watched = bed.record_nodes().await?;
    let plan = bed.plan("plan", over(nodes, &format!("{}s", TIMEOUT.as_secs()), "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;

    let started = status.started_at.as_ref().context("no startedAt")?.0;
    let finished = status.finished_at.as_ref().context("no finishedAt")?.0;
    let took = Duration::try_from(finished.duration_since(started))?;
    // Status writes whole seconds.
    ensure!(
        took + Duration::from_secs(1) >= TIMEOUT,
        "it ended after {took:?}, before its timeout of {TIMEOUT:?}"
    );
    ensure!(
        took <= TIMEOUT + Duration::from_secs(3),
        "it ended after {took:?}, with a timeout of {TIMEOUT:?}"
    );

    bed.ensure_untouched(&watched, node)?;
    bed.node_rests(node, false, &[]).await?;
    let report = report(&status, node)?;
    ensure!(report.phase == NodePhase::Failed, "the node is {:?}", report.phase);
    ensure!(
        report.reason.as_deref() == Some(NodeReason::Blocked.as_str()),
        "it failed as {:?}",
        report.reason
    );
    Ok(report.clone())
}

async fn budget_that_never_allows(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 0})).await?;
    bed.space.deployment("web", 2, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 2).await?;
    bed.space.budget_allows("web", 2, 0).await?;

    let of = Some("reason=BudgetNeverAllows");
    let events = Recorder::start(Api::<Event>::namespaced(bed.client(), &bed.space.name), of).await?;
    let report = fails_untouched(&bed, &nodes).await?;
    for pod in &pods {
        both_say(&bed, "BudgetNeverAllows/NeverClears", &report, pod).await?;
        tells(&events, &uid(pod), "this pod cannot go: Budget").await?;
    }
    let asked = bed.audit().requests(|request| {
        request.agent.starts_with("kubectl-drainplan/")
            && request.resource == "poddisruptionbudgets"
            && request.namespace == bed.space.name
    })?;
    ensure!(!asked.is_empty(), "explain has asked for budgets under another name");
    let budget = bed.space.budgets().get("web").await?;
    tells(&events, &uid(&budget), "2 pods wait on this budget").await
}

/// The report and `explain` say of the pod what the row says.
async fn both_say(bed: &Bed, row: &str, report: &NodeStatus, pod: &Pod) -> Result<()> {
    let name = pod.name_any();
    bed.says(row, waiting(report, &name)?)?;
    bed.explains(row, &bed.name, &name).await
}

/// There is one event on the object, in its namespace, that says so.
async fn tells(events: &Recorder<Event>, uid: &str, part: &str) -> Result<()> {
    let about = |event: &Event| event.regarding.as_ref().and_then(|of| of.uid.as_deref()) == Some(uid);
    events
        .until(&format!("one that says \"{part}\""), PATIENCE, |record| {
            let of = record.now.values().filter(|event| about(event));
            let notes: Vec<String> = of.filter_map(|event| event.note.clone()).collect();
            match notes.as_slice() {
                [] => Sight::NotYet("there is none".to_owned()),
                [note] if note.contains(part) => Sight::Found(()),
                other => Sight::Never(format!("{other:#?}")),
            }
        })
        .await
}

async fn min_available_equals_replicas(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("web", &["web"], json!({"minAvailable": 3})).await?;
    bed.space.deployment("web", 3, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 3).await?;
    bed.space.budget_allows("web", 3, 0).await?;

    let report = fails_untouched(&bed, &nodes).await?;
    for pod in &pods {
        both_say(&bed, "BudgetNeverAllows/NeverClears/minAvailable", &report, pod).await?;
    }
    Ok(())
}

async fn two_budgets_on_one_pod(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("gold", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.budget("silver", &["web", "other"], json!({"minAvailable": 1})).await?;
    bed.space.deployment("web", 2, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 2).await?;

    let report = fails_untouched(&bed, &nodes).await?;
    for pod in &pods {
        both_say(&bed, "MultipleBudgets/NeverClears", &report, pod).await?;
    }
    Ok(())
}

/// Three replicas of which two break, under a budget that wants two.
async fn one_of_three_ready(bed: &Bed, policy: &str) -> Result<([String; 1], Vec<Pod>, Vec<String>)> {
    let nodes = bed.nodes(["a"], 3).await?;
    let fields = json!({"minAvailable": 2, "unhealthyPodEvictionPolicy": policy});
    bed.space.budget("web", &["web"], fields).await?;
    bed.space.deployment("web", 3, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 3).await?;
    let broken: Vec<String> = pods.iter().skip(1).map(ResourceExt::name_any).collect();
    for pod in &broken {
        bed.space.break_pod(pod).await?;
    }
    bed.space
        .pods_until("web", "one Ready pod", |all| all.iter().filter(|pod| is_ready(pod)).count() == 1)
        .await?;
    bed.space
        .budget_until("web", "1 healthy", |budget| {
            budget.status.as_ref().is_some_and(|status| status.current_healthy == Some(1))
        })
        .await?;
    bed.nodes(["spare"], 110).await?;
    Ok((nodes, pods, broken))
}

async fn unready_pods_hold_a_budget(bed: Bed) -> Result<()> {
    let (nodes, pods, broken) = one_of_three_ready(&bed, "IfHealthyBudget").await?;
    let [node] = &nodes;
    let plan = bed.plan("plan", over(&nodes, "4s", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let report = report(&status, node)?;
    let reason = report.reason.as_deref();
    ensure!(reason == Some(NodeReason::TimedOut.as_str()), "node {node} failed as {reason:?}");
    both_say(&bed, "BudgetUnhealthy/MayClear", report, pods.first().context("no pod")?).await?;
    for pod in pods.iter().filter(|pod| broken.contains(&pod.name_any())) {
        both_say(&bed, "BudgetUnhealthy/MayClear/itself", report, pod).await?;
    }
    ensure!(bed.accepted()?.is_empty(), "evictions were accepted: {:#?}", bed.evictions()?);
    bed.node_rests(node, false, &[]).await
}

async fn unready_pods_always_allowed(bed: Bed) -> Result<()> {
    let (nodes, pods, _) = one_of_three_ready(&bed, "AlwaysAllow").await?;
    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(bed.accepted()?.len() == pods.len(), "evictions: {:#?}", bed.evictions()?);
    ensure!(bed.evictions()?.len() == pods.len(), "some were refused: {:#?}", bed.evictions()?);
    Ok(())
}

async fn running_job_under_a_budget(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.nodes(["spare"], 110).await?;
    let on_a = Template::new().only_on(&[&bed.named("a")]);
    bed.space.budget("web", &["web", "report"], json!({"maxUnavailable": 1})).await?;
    bed.space.job("report", &on_a).await?;
    bed.space.deployment("web", 2, &on_a).await?;
    let web = bed.space.all_ready("web", 2).await?;
    let job = bed.space.all_ready("report", 1).await?;
    bed.space
        .budget_until("web", "SyncFailed", |budget| {
            let conditions = budget.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.into_iter().flatten().any(|condition| condition.reason == "SyncFailed")
        })
        .await?;

    let plan = bed.plan("plan", over(&nodes, "4s", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let report = report(&status, nodes.first().context("no node")?)?;
    for pod in web.iter().chain(&job) {
        both_say(&bed, "BudgetSyncFailed/MayClear", report, pod).await?;
    }
    ensure!(bed.accepted()?.is_empty(), "evictions were accepted: {:#?}", bed.evictions()?);
    Ok(())
}

async fn slow_replacement(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 2).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 2, &Template::new().sim("ready-after", "3s")).await?;
    let original = bed.space.all_ready("web", 2).await?;
    bed.space.budget_allows("web", 2, 1).await?;
    bed.nodes(["spare"], 110).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    let names: Vec<String> = original.iter().map(ResourceExt::name_any).collect();
    // The pod that is being replaced is the evicted one, or the new one that is not Ready yet.
    let replaced = |waiting: &str| -> Vec<String> {
        record.with(|record| {
            let away = |pod: &Pod| terminating(pod) || !is_ready(pod);
            let away =
                record.events.iter().filter(|seen| away(&seen.object)).map(|seen| seen.object.name_any());
            away.filter(|name| name != waiting).collect()
        })
    };
    let (node, waiting) = plan
        .shows_waiting("BudgetExhausted and the pod being replaced", Duration::from_mins(1), |_, waiting| {
            waiting.reason == "BudgetExhausted"
                && replaced(&waiting.pod).iter().any(|name| waiting.message.contains(name.as_str()))
        })
        .await?;
    ensure!(node.phase == NodePhase::Draining, "the node is {:?}", node.phase);
    ensure!(names.contains(&waiting.pod), "pod {} is none of {names:?}", waiting.pod);
    ensure!(waiting.budgets == ["web"], "the budgets are {:?}", waiting.budgets);
    ensure!(waiting.outlook == Outlook::WillClear, "the outlook is {:?}", waiting.outlook);

    plan.ends(PlanPhase::Completed, Duration::from_mins(1)).await?;
    let accepted = bed.accepted()?;
    ensure!(accepted.len() == 2 && bed.evictions()?.len() == 2, "evictions: {:#?}", bed.evictions()?);
    Ok(())
}

async fn controller_manager_down(bed: Bed) -> Result<()> {
    const MANAGER: &str = "kube-controller-manager";
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 3, &Template::new()).await?;
    bed.space.all_ready("web", 3).await?;
    bed.space.budget_allows("web", 3, 1).await?;
    bed.space.budget("db", &["db"], json!({"maxUnavailable": 1})).await?;
    // Reborn before the disruption controller has looked, a pod is counted as evicted for two minutes.
    bed.space.stateful_set("db", 2, &Template::new().sim("terminate-after", "1s")).await?;
    bed.space.all_ready("db", 2).await?;
    bed.space.budget_allows("db", 2, 1).await?;
    bed.nodes(["spare"], 110).await?;

    let testbed = &bed.installation.testbed;
    testbed.component("stop", MANAGER).await?;
    let tried = async {
        many_unconfirmed(&bed, "db").await?;
        let plan = bed.plan("plan", over(&nodes, "5m", "Uncordon")).await?;
        bed.shows("BudgetStale/MayClear", &plan, "web-").await?;
        bed.shows_and_explains("BudgetRefused/MayClear", &plan, "db-").await?;
        scale_down(&bed, 1).await?;
        bed.shows_and_explains("OwnerScalingDown/WillClear", &plan, "web-").await?;
        bed.shows("OwnerScalingDown/MayClear/idle", &plan, "web-").await?;
        let told_before = plan.statuses();
        let called_slow = told_before.iter().flat_map(|status| &status.nodes).flat_map(|node| &node.waiting);
        let early = called_slow.filter(|pod| pod.reason == "BudgetExhausted");
        ensure!(
            early.into_iter().all(|it| it.message.contains(MANAGER)),
            "said to be slow: {told_before:#?}"
        );
        ensure!(bed.accepted()?.len() == 1, "evictions: {:#?}", bed.evictions()?);
        scale_down(&bed, 3).await?;
        anyhow::Ok(plan)
    };
    let tried = tried.await;
    testbed.component("start", MANAGER).await?;
    let status = tried?.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(report(&status, &nodes[0])?.phase == NodePhase::Done);
    ensure!(bed.accepted()?.len() == 5, "evictions: {:#?}", bed.evictions()?);
    bed.node_rests(&nodes[0], false, &[]).await
}

/// The ReplicaSet of the Deployment web wants so many pods; with the controller manager down nobody acts on it.
async fn scale_down(bed: &Bed, replicas: u32) -> Result<()> {
    let sets: Api<ReplicaSet> = Api::namespaced(bed.client(), &bed.name);
    for set in sets.list(&ListParams::default()).await? {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        sets.patch(&set.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

/// The budget's status has more evictions that nobody has confirmed than the server takes.
async fn many_unconfirmed(bed: &Bed, budget: &str) -> Result<()> {
    let now = Timestamp::now().to_string();
    let pods: Map<String, Value> = (0..2001).map(|number| (format!("gone-{number}"), json!(now))).collect();
    let patch = Patch::Merge(json!({"status": {"disruptedPods": pods}}));
    bed.space.budgets().patch_status(budget, &PatchParams::default(), &patch).await?;
    Ok(())
}
