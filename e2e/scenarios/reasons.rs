//! What is said of pods that wait for the plan itself, or for budgets and replacements, word by word.

use anyhow::{Context as _, Result, ensure};
use drainplan::api::PlanPhase;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{PATIENCE, over, shared};
use crate::harness::{Bed, PlanRun, Template, is_ready, node_of};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(130, pods_that_may_end_by_themselves),
        shared!(131, pods_that_never_go),
        shared!(132, replacements_that_are_not_created),
        shared!(133, replacements_without_a_node),
        shared!(136, waits_that_time_ends),
        shared!(138, pods_that_may_not_be_replaced),
    ]
}

/// The label by which a pod asks to be awaited.
const DRAIN: &str = "cluster.x-k8s.io/drain";

fn with_pods(nodes: &[String], node_timeout: &str, pods: Value) -> Value {
    let mut spec = over(nodes, node_timeout, "Uncordon");
    spec["pods"] = pods;
    spec
}

/// Pods of this workload go last.
fn last(app: &str) -> Value {
    json!({"podSelector": {"matchLabels": {"app": app}}, "action": "Evict", "order": 1})
}

async fn end(plan: &PlanRun) -> Result<()> {
    plan.delete().await?;
    plan.gone(PATIENCE).await
}

async fn pods_that_may_end_by_themselves(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    let asks = Template::new().annotation("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");
    bed.space.job("report", &asks).await?;
    bed.space.job("cache", &Template::new().empty_dir("scratch")).await?;
    bed.space.job("batch", &Template::new().label(DRAIN, "wait-completed")).await?;
    bed.space.pod("task", &Template::new().never_restarted()).await?;
    let for_a_while = Template::new().annotation("karpenter.sh/do-not-disrupt", "1h");
    bed.space.deployment("model", 1, &for_a_while).await?;
    bed.space.deployment("web", 1, &Template::new()).await?;
    for app in ["report", "cache", "batch", "task", "model", "web"] {
        bed.space.all_ready(app, 1).await?;
    }
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", with_pods(&nodes, "2m", json!({"rules": [last("web")]}))).await?;
    for (row, pod) in [
        ("Protected/MayClear", "report-"),
        ("Protected/WillClear", "model-"),
        ("Unmanaged/MayClear", "task"),
        ("LocalData/MayClear", "cache-"),
        ("AwaitingCompletion/MayClear", "batch-"),
    ] {
        bed.shows_and_explains(row, &plan, pod).await?;
    }
    bed.shows("AwaitingOrder/MayClear", &plan, "web-").await?;
    ensure!(bed.evictions()?.is_empty(), "evictions: {:#?}", bed.evictions()?);
    end(&plan).await
}

async fn pods_that_never_go(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b"], 110).await?;
    let (on_a, on_b) = (Template::new().only_on(&[&nodes[0]]), Template::new().only_on(&[&nodes[1]]));
    bed.space.budget("lone", &["lone"], json!({"maxUnavailable": 1})).await?;
    bed.space.pod("lone", &on_a).await?;
    bed.space.budget("empty", &["empty"], json!({})).await?;
    bed.space.deployment("empty", 1, &on_a).await?;
    bed.space.budget("mixed", &["mixed", "import"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("mixed", 1, &on_a).await?;
    bed.space.job("import", &on_a.clone().sim("complete-after", "500ms")).await?;
    bed.space.budget("tier", &["edge", "agent"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("edge", 1, &on_a).await?;
    bed.space.daemon_set("agent", &on_a).await?;
    bed.space.deployment("server", 1, &on_b.clone().label(DRAIN, "wait-completed")).await?;
    bed.space.deployment("web", 1, &on_b).await?;
    for app in ["lone", "empty", "mixed", "edge", "agent", "server", "web"] {
        bed.space.all_ready(app, 1).await?;
    }
    let finished = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Succeeded"))
    };
    bed.space.pods_until("import", "it has finished", |pods| pods.iter().any(finished)).await?;
    let failed = |budget: &k8s_openapi::api::policy::v1::PodDisruptionBudget| {
        let conditions = budget.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.reason == "SyncFailed")
    };
    for budget in ["mixed", "tier"] {
        bed.space.budget_until(budget, "SyncFailed", failed).await?;
    }
    let watched = bed.record_nodes().await?;

    let pods = json!({"unmanaged": "Evict", "rules": [last("web")]});
    let plan = bed.plan("plan", with_pods(&nodes, "3s", pods)).await?;
    for (row, pod) in [
        ("BudgetNeverAllows/NeverClears/neither", "empty-"),
        ("BudgetSyncFailed/NeverClears", "mixed-"),
        ("BudgetSyncFailed/NeverClears/daemonset", "edge-"),
        ("AwaitingCompletion/NeverClears", "server-"),
    ] {
        bed.shows_and_explains(row, &plan, pod).await?;
    }
    bed.shows("BudgetCountsNone/NeverClears", &plan, "lone").await?;
    bed.shows("AwaitingOrder/NeverClears", &plan, "web-").await?;
    plan.ends(PlanPhase::Failed, PATIENCE).await?;
    for node in &nodes {
        bed.ensure_untouched(&watched, node)?;
    }
    Ok(())
}

async fn replacements_that_are_not_created(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 3, &Template::new()).await?;
    bed.space.all_ready("web", 3).await?;
    bed.space.budget_allows("web", 3, 1).await?;
    bed.nodes(["spare"], 110).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(bed.client(), &bed.name);
    let quota = json!({"metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    bed.shows_and_explains("ReplacementMissing/MayClear", &plan, "web-").await?;
    ensure!(bed.accepted()?.len() == 1, "evictions: {:#?}", bed.evictions()?);
    end(&plan).await
}

async fn replacements_without_a_node(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("web", &["web"], json!({"minAvailable": 2})).await?;
    bed.space.deployment("web", 3, &Template::new()).await?;
    bed.space.all_ready("web", 3).await?;
    bed.space.budget_allows("web", 3, 1).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    bed.shows_and_explains("ReplacementPending/MayClear", &plan, "web-").await?;
    ensure!(bed.accepted()?.len() == 1, "evictions: {:#?}", bed.evictions()?);
    end(&plan).await
}

/// Replacements that are not Ready until they are told to be.
async fn waits_that_time_ends(bed: Bed) -> Result<()> {
    const GATE: &str = "e2e.drainplan.dev/warm";
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    for app in ["web", "free"] {
        bed.space.deployment(app, 2, &Template::new().gate(GATE)).await?;
        let bound = bed.space.pods_until(app, "two bound pods", |pods| {
            pods.len() == 2 && pods.iter().all(|pod| !node_of(pod).is_empty())
        });
        for pod in bound.await? {
            bed.space.open_gate(&pod.name_any(), GATE).await?;
        }
        bed.space.all_ready(app, 2).await?;
    }
    bed.space.budget_allows("web", 2, 1).await?;
    let [spare] = bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", with_pods(&nodes, "2m", json!({"unbudgeted": "OneAtATime"}))).await?;
    bed.shows_and_explains("BudgetExhausted/WillClear", &plan, "web-").await?;
    bed.shows("AwaitingReplacement/WillClear", &plan, "free-").await?;
    // Both go on when the replacements are Ready.
    for app in ["web", "free"] {
        let coming = bed.space.pods_until(app, "a replacement", |pods| {
            pods.iter().any(|pod| node_of(pod) == spare && !is_ready(pod))
        });
        let coming = coming.await?;
        let new = coming.iter().find(|pod| node_of(pod) == spare).context("a replacement")?;
        bed.space.open_gate(&new.name_any(), GATE).await?;
    }
    let both = |pods: &[k8s_openapi::api::core::v1::Pod]| {
        pods.len() == 2 && pods.iter().all(|pod| node_of(pod) == spare)
    };
    for app in ["web", "free"] {
        bed.space.pods_until(app, "the other one has gone, too", both).await?;
    }
    ensure!(bed.accepted()?.len() == 4, "evictions: {:#?}", bed.evictions()?);
    plan.ends(PlanPhase::Completed, PATIENCE).await.map(drop)
}

/// Two Jobs under a budget that counts pods: nobody says whether a new pod comes for the one that is going.
async fn pods_that_may_not_be_replaced(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("jobs", &["left", "right"], json!({"minAvailable": 1})).await?;
    for job in ["left", "right"] {
        bed.space.job(job, &Template::new().sim("terminate", "never")).await?;
        bed.space.all_ready(job, 1).await?;
    }
    bed.space.budget_allows("jobs", 2, 1).await?;
    bed.nodes(["spare"], 110).await?;
    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    let (_, waits) = bed.shows("BudgetExhausted/MayClear/perhaps", &plan, "").await?;
    bed.explains("BudgetExhausted/MayClear/perhaps", &bed.name, &waits.pod).await?;
    end(&plan).await
}
