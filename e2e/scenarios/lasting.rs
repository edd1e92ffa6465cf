//! What is said when a pod, or its absence, lasts.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::{PATIENCE, over, shared, slow};
use crate::harness::{Bed, Recorder, Sight, Template, terminating};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(139, scaled_down_behind_a_broken_pod),
        shared!(140, stateful_set_pod_that_is_held),
        slow!(203, containers_that_do_not_end),
        slow!(204, stateful_set_that_waits_for_a_pod),
        slow!(205, stateful_set_pod_that_does_not_end),
    ]
}

async fn containers_that_do_not_end(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.deployment("web", 1, &Template::new().sim("terminate", "never")).await?;
    bed.space.all_ready("web", 1).await?;
    bed.nodes(["spare"], 110).await?;
    let plan = bed.plan("plan", over(&nodes, "3m", "Uncordon")).await?;
    bed.shows_and_explains("TerminatingOverdue/MayClear", &plan, "web-").await?;
    plan.delete().await?;
    plan.gone(PATIENCE).await
}

/// Its first pod breaks, its last one is evicted and not created again.
async fn stateful_set_that_waits_for_a_pod(bed: Bed) -> Result<()> {
    let [a, b] = bed.nodes(["a", "b"], 110).await?;
    bed.space.budget("db", &["db"], json!({"maxUnavailable": 2})).await?;
    let first = in_order(&bed, "db", &b, &a).await?;
    for pod in &first {
        bed.space.break_pod(&pod.name_any()).await?;
    }
    bed.space.budget_allows("db", 3, 1).await?;

    let plan = bed.plan("plan", over(&[a], "3m", "Uncordon")).await?;
    bed.shows("ReplacementMissing/MayClear/order", &plan, "db-").await?;
    ensure!(bed.accepted()?.len() == 1, "evictions: {:#?}", bed.evictions()?);
    plan.delete().await?;
    plan.gone(PATIENCE).await
}

/// A StatefulSet that takes its pods one by one: three of them, the first on a node of its own.
async fn in_order(bed: &Bed, name: &str, first: &str, others: &str) -> Result<Vec<Pod>> {
    let template = |node: &str| Template::new().only_on(&[node]).json(&json!({"app": name}), &Map::new());
    let set = json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"app": name}},
            "template": template(first),
        },
    });
    bed.space.add::<StatefulSet>(set).await?;
    let pods = bed.space.all_ready(name, 1).await?;
    change(bed, name, json!({"replicas": 3, "template": template(others)})).await?;
    bed.space.all_ready(name, 3).await?;
    Ok(pods)
}

async fn change(bed: &Bed, set: &str, spec: Value) -> Result<()> {
    let sets: Api<StatefulSet> = Api::namespaced(bed.client(), &bed.name);
    sets.patch(set, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await?;
    Ok(())
}

/// Awaits that the controller of the only StatefulSet has seen so many Ready pods.
async fn sees_ready(bed: &Bed, pods: i32) -> Result<()> {
    let sets = Recorder::start(Api::<StatefulSet>::namespaced(bed.client(), &bed.name), None).await?;
    sets.until(&format!("{pods} Ready pods seen"), PATIENCE, |record| {
        let statuses = record.now.values().filter_map(|set| set.status.as_ref());
        let ready: Vec<_> = statuses.map(|status| status.ready_replicas.unwrap_or(0)).collect();
        if ready == [pods] { Sight::Found(()) } else { Sight::NotYet(format!("{ready:?}")) }
    })
    .await
}

/// Its last pod is one too many, and stays while the one before is broken.
async fn scaled_down_behind_a_broken_pod(bed: Bed) -> Result<()> {
    let [a, b] = bed.nodes(["a", "b"], 110).await?;
    bed.space.budget("web", &["web"], json!({"minAvailable": "50%"})).await?;
    in_order(&bed, "web", &b, &a).await?;
    for pod in ["web-1", "web-2"] {
        bed.space.break_pod(pod).await?;
    }
    sees_ready(&bed, 1).await?;
    change(&bed, "web", json!({"replicas": 2})).await?;
    // The disruption controller counts again when a pod changes, or the budget.
    let poke = json!({"metadata": {"annotations": {"e2e.drainplan.dev/counted": "again"}}});
    bed.space.budgets().patch("web", &PatchParams::default(), &Patch::Merge(poke)).await?;
    bed.space.budget_allows("web", 2, 0).await?;

    let plan = bed.plan("plan", over(&[b], "3m", "Uncordon")).await?;
    bed.shows_and_explains("OwnerScalingDown/MayClear", &plan, "web-0").await?;
    ensure!(bed.evictions()?.is_empty(), "evictions: {:#?}", bed.evictions()?);
    plan.delete().await?;
    plan.gone(PATIENCE).await
}

/// Its containers have ended, and a finalizer keeps its name: the set's other pod waits for more than time.
async fn stateful_set_pod_that_is_held(bed: Bed) -> Result<()> {
    let confirmed = |pod: &Pod| pod.metadata.deletion_grace_period_seconds == Some(0);
    waits_for_web_0(
        &bed,
        &Template::new().finalizer("example.com/hold"),
        confirmed,
        "BudgetExhausted/MayClear/finalizer",
    )
    .await
}

async fn stateful_set_pod_that_does_not_end(bed: Bed) -> Result<()> {
    let template = Template::new().sim("terminate", "never");
    waits_for_web_0(&bed, &template, terminating, "BudgetExhausted/MayClear/overdue").await
}

async fn waits_for_web_0(bed: &Bed, template: &Template, goes: fn(&Pod) -> bool, row: &str) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.stateful_set("web", 2, template).await?;
    bed.space.all_ready("web", 2).await?;
    bed.space.pods().delete("web-0", &DeleteParams::default().grace_period(1)).await?;
    let held = |pods: &[Pod]| pods.iter().any(|pod| pod.name_any() == "web-0" && goes(pod));
    bed.space.pods_until("web", "web-0 is going", held).await?;
    bed.space.budget_allows("web", 2, 0).await?;

    let plan = bed.plan("plan", over(&nodes, "3m", "Uncordon")).await?;
    bed.shows_and_explains(row, &plan, "web-1").await?;
    ensure!(bed.evictions()?.is_empty(), "evictions: {:#?}", bed.evictions()?);
    plan.delete().await?;
    plan.gone(PATIENCE).await
}
