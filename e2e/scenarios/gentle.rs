//! Drains that disturb no more than the budget allows.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use drainplan::api::{PlanPhase, names};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{PATIENCE, over, shared};
use crate::harness::{Bed, Recorder, Request, Template, node_of, nodes, ready_pods, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(1, six_replicas_on_three_nodes), shared!(2, no_spare_node)]
}

/// Six replicas of `web` under maxUnavailable 1, two on each of the nodes a, b and c, which have no more room.
async fn two_on_each(bed: &Bed) -> Result<([String; 3], Vec<Pod>)> {
    let nodes = bed.nodes(["a", "b", "c"], 2).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 6, &Template::new().sim("ready-after", "500ms")).await?;
    let pods = bed.space.all_ready("web", 6).await?;
    let mut on: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in &pods {
        *on.entry(node_of(pod)).or_default() += 1;
    }
    ensure!(nodes.iter().all(|node| on.get(node.as_str()) == Some(&2)), "not two on each node: {on:?}");
    bed.space.budget_allows("web", 6, 1).await?;
    Ok((nodes, pods))
}

/// At every event since the record began, five pods were Ready and not going.
fn five_stayed_ready(record: &Recorder<Pod>) -> Result<()> {
    let mut fewest = usize::MAX;
    let mut events = 0;
    record.with(|seen| {
        seen.replay(record.listed(), |pods, _| {
            fewest = fewest.min(ready_pods(pods.values().map(AsRef::as_ref), "web"));
            events += 1;
        });
    });
    ensure!(events > 6, "only {events} events were seen, so the pods were hardly watched");
    ensure!(fewest >= 5, "at one of {events} events only {fewest} pods were Ready and not terminating");
    Ok(())
}

async fn six_replicas_on_three_nodes(bed: Bed) -> Result<()> {
    let (nodes, pods) = two_on_each(&bed).await?;
    bed.nodes(["spare"], 110).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    five_stayed_ready(&record)?;

    let evictions = bed.evictions()?;
    let refused: Vec<String> =
        evictions.iter().filter(|eviction| eviction.code != 201).map(Request::line).collect();
    ensure!(refused.is_empty(), "refused: {refused:#?}");
    let accepted: BTreeSet<String> = bed.accepted()?.into_iter().collect();
    let original: BTreeSet<String> = pods.iter().map(uid).collect();
    ensure!(accepted == original, "the server accepted {accepted:?}, and the pods were {original:?}");

    ensure!(status.progress.as_deref() == Some("3/3"), "progress {:?}", status.progress);
    for node in &nodes {
        let kept = format!("{}={}", names::KEPT_CORDONED, plan.name);
        bed.node_rests(node, true, &[kept]).await?;
    }
    bed.node_rests(&bed.named("spare"), false, &[]).await
}

async fn no_spare_node(bed: Bed) -> Result<()> {
    let (all, pods) = two_on_each(&bed).await?;
    for node in &all {
        nodes::resize(bed.client(), node, 110).await?;
    }
    let record = Recorder::start(bed.space.pods(), None).await?;

    let plan = bed.plan("plan", over(&all, "2m", "Uncordon")).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    five_stayed_ready(&record)?;

    let evictions = bed.evictions()?;
    ensure!(evictions.iter().all(|eviction| eviction.code == 201), "some were refused: {evictions:#?}");
    let accepted = bed.accepted()?;
    let missed: Vec<String> = pods.iter().map(uid).filter(|uid| !accepted.contains(uid)).collect();
    ensure!(missed.is_empty(), "never evicted: {missed:?}");
    let counted = status.pod_counts.map(|counts| counts.evicted);
    ensure!(
        counted == i32::try_from(accepted.len()).ok(),
        "the plan counts {counted:?} evicted pods, the server {}",
        accepted.len()
    );
    for node in &all {
        bed.node_rests(node, false, &[]).await?;
    }
    Ok(())
}
