//! What `/metrics` of a real controller says while a drain is held up, and when it no longer is.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::PlanPhase;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::{PATIENCE, over, shared};
use crate::harness::{Bed, Template, is_ready};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(120, metrics_come_and_go_with_the_wait)]
}

/// The value of a series, if it is there.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// Waits until a scrape is like this; the scrape.
async fn scrape(bed: &Bed, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
    bed.installation.controller.answers("/metrics", what, PATIENCE, wanted).await
}

async fn metrics_come_and_go_with_the_wait(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 3).await?;
    bed.space.budget("web", &["web"], json!({"minAvailable": 2})).await?;
    bed.space.deployment("web", 3, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 3).await?;
    for pod in pods.iter().skip(1) {
        bed.space.break_pod(&pod.name_any()).await?;
    }
    let ready = |pods: &[k8s_openapi::api::core::v1::Pod]| pods.iter().filter(|pod| is_ready(pod)).count();
    bed.space.pods_until("web", "one Ready pod", |all| ready(all) == 1).await?;
    bed.space.budget_allows("web", 3, 0).await?;
    bed.nodes(["spare"], 110).await?;

    let accepted = "drainplan_eviction_requests_total{code=\"201\",cause=\"none\"}";
    let drained = "drainplan_node_drain_duration_seconds_count";
    let before = scrape(&bed, "a leader", |text| value(text, "drainplan_leader") == Some(1.0)).await?;
    let plan = bed.plan("plan", over(&nodes, "5m", "Uncordon")).await?;
    let of_nodes = |phase: &str| format!("drainplan_nodes{{plan=\"{}\",phase=\"{phase}\"}}", plan.name);
    let waiting = format!(
        "drainplan_pods_waiting{{plan=\"{}\",reason=\"BudgetUnhealthy\",outlook=\"MayClear\"}}",
        plan.name
    );
    let blocking =
        format!("drainplan_budget_blocking_seconds{{namespace=\"{}\",budget=\"web\"}}", bed.space.name);
    ensure!(!before.contains(&plan.name) && !before.contains(&blocking), "too early: {before}");

    let held = scrape(&bed, "the plan, its pods and their budget", |text| {
        value(text, &of_nodes("Draining")) == Some(1.0)
            && value(text, &waiting) == Some(3.0)
            && value(text, &blocking).is_some()
    })
    .await?;
    let since = value(&held, &blocking).context("no budget")?;
    scrape(&bed, "a budget that blocks longer", |text| {
        value(text, &blocking).is_some_and(|seconds| seconds > since)
    })
    .await?;

    bed.space.budgets().delete("web", &DeleteParams::default()).await?;
    plan.ends(PlanPhase::Completed, Duration::from_mins(1)).await?;
    let after = scrape(&bed, "a node that is done", |text| {
        value(text, &of_nodes("Done")) == Some(1.0) && value(text, &blocking).is_none()
    })
    .await?;
    ensure!(value(&after, &of_nodes("Draining")) == Some(0.0), "still in progress: {after}");
    let own = format!("drainplan_pods_waiting{{plan=\"{}\"", plan.name);
    ensure!(!after.contains(&own), "pods still wait: {after}");
    // Other cases evict and drain too.
    for (series, more) in [(accepted, 3.0), (drained, 1.0)] {
        let (was, is) = (value(&before, series), value(&after, series));
        let (was, is) = (was.context(series)?, is.context(series)?);
        ensure!(is >= was + more, "{series} was {was} and is {is}");
    }

    plan.delete().await?;
    plan.gone(PATIENCE).await?;
    scrape(&bed, "nothing of the plan", |text| !text.contains(&plan.name)).await?;
    Ok(())
}
