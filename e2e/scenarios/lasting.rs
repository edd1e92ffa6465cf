//! What is said only after a pod, or its absence, has lasted for half a minute.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt as _;
use serde_json::json;

use super::{PATIENCE, over, slow};
use crate::harness::{Bed, Template};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![slow!(203, containers_that_do_not_end), slow!(204, stateful_set_that_waits_for_a_pod)]
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
    let template = Template::new().only_on(&[&b]).json(&json!({"app": "db"}), &serde_json::Map::new());
    let set = json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1,
            "serviceName": "db",
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
        },
    });
    bed.space.add::<StatefulSet>(set).await?;
    let first = bed.space.all_ready("db", 1).await?;
    // The others are on the node that is drained.
    let others = Template::new().only_on(&[&a]).json(&json!({"app": "db"}), &serde_json::Map::new());
    let sets: kube::Api<StatefulSet> = kube::Api::namespaced(bed.client(), &bed.name);
    let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": 3, "template": others}}));
    sets.patch("db", &kube::api::PatchParams::default(), &patch).await?;
    bed.space.all_ready("db", 3).await?;
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
