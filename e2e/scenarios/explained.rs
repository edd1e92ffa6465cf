//! What is said about pods that wait.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodePhase, Outlook, PlanPhase};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;

use super::shared;
use crate::harness::{Bed, Recorder, Request, Template, cordoned, is_ready, terminating};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(3, budget_that_never_allows), shared!(4, slow_replacement)]
}

async fn budget_that_never_allows(bed: Bed) -> Result<()> {
    const TIMEOUT: Duration = Duration::from_secs(4);
    let nodes = bed.nodes(&["a"], 110).await?;
    let node = nodes.first().context("no node")?;
    bed.space.budget("web", json!({"app": "web"}), json!({"maxUnavailable": 0})).await?;
    bed.space.deployment("web", 2, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 2).await?;
    bed.space.budget_allows("web", 2, 0).await?;
    let watched = bed.record_nodes().await?;

    let plan = bed
        .plan(
            "plan",
            json!({
                "nodes": {"names": nodes},
                "timeouts": {"node": format!("{}s", TIMEOUT.as_secs())},
                "handOff": {"then": "KeepCordoned"},
            }),
        )
        .await?;
    let status = plan.ends(PlanPhase::Failed, Duration::from_mins(1)).await?;

    let started = status.started_at.context("no startedAt")?.0;
    let took = Duration::try_from(status.finished_at.context("no finishedAt")?.0.duration_since(started))?;
    // Status writes whole seconds.
    ensure!(
        took + Duration::from_secs(1) >= TIMEOUT,
        "it ended after {took:?}, before its timeout of {TIMEOUT:?}"
    );
    ensure!(
        took <= TIMEOUT + Duration::from_secs(3),
        "it ended only after {took:?}, with a timeout of {TIMEOUT:?}"
    );

    let touched = watched.with(|record| {
        record.events.iter().any(|seen| seen.object.name_any() == *node && cordoned(&seen.object))
    });
    ensure!(!touched, "node {node} was cordoned");
    let written = bed.audit().node_writes(node)?;
    let written: Vec<String> = written
        .iter()
        .filter(|request| request.agent.starts_with("drainplan-controller/"))
        .map(Request::line)
        .collect();
    ensure!(written.is_empty(), "the controller wrote to the node: {written:#?}");
    let evictions = bed.evictions()?;
    ensure!(evictions.is_empty(), "evictions were sent: {evictions:#?}");
    bed.node_rests(node, false, &[]).await?;

    let report =
        status.nodes.iter().find(|reported| reported.name == *node).context("no report of the node")?;
    ensure!(report.phase == NodePhase::Failed, "the node is {:?}", report.phase);
    for pod in &pods {
        let name = pod.name_any();
        let waiting = report.waiting.iter().find(|waiting| waiting.pod == name);
        let waiting = waiting.with_context(|| format!("pod {name} is not reported: {report:?}"))?;
        ensure!(waiting.namespace == bed.name && waiting.budgets == ["web"], "reported as {waiting:?}");
        ensure!(waiting.reason == "BudgetNeverAllows", "the reason is {}", waiting.reason);
        ensure!(waiting.outlook == Outlook::NeverClears, "the outlook is {:?}", waiting.outlook);
        for part in ["web", "maxUnavailable", "0", "2"] {
            ensure!(waiting.message.contains(part), "{part} is missing in: {}", waiting.message);
        }
    }
    Ok(())
}

async fn slow_replacement(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(&["a"], 2).await?;
    bed.space.budget("web", json!({"app": "web"}), json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 2, &Template::new().sim("ready-after", "3s")).await?;
    let original = bed.space.all_ready("web", 2).await?;
    bed.space.budget_allows("web", 2, 1).await?;
    bed.nodes(&["spare"], 110).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let plan = bed
        .plan(
            "plan",
            json!({
                "nodes": {"names": nodes},
                "timeouts": {"node": "2m"},
                "handOff": {"then": "Uncordon"},
            }),
        )
        .await?;
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
