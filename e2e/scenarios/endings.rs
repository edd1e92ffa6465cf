//! How nodes and plans end.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodePhase, NodeReason, PlanPhase, condition};
use serde_json::json;

use super::{PATIENCE, over, report, shared};
use crate::harness::{Bed, Sight, Template};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(21, one_stuck_node_among_four), shared!(22, suspended_and_resumed)]
}

async fn one_stuck_node_among_four(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b", "c", "d"], 110).await?;
    let stuck = bed.named("b");
    for (index, node) in nodes.iter().enumerate() {
        let mut template = Template::new().only_on(&[node, &bed.named("spare")]);
        if *node == stuck {
            template = template.sim("terminate", "never");
        }
        bed.space.deployment(&format!("app-{index}"), 2, &template).await?;
    }
    for index in 0..nodes.len() {
        bed.space.all_ready(&format!("app-{index}"), 2).await?;
    }
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", over(&nodes, "5s", "Uncordon")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    for node in &nodes {
        let report = report(&status, node)?;
        let expected = if *node == stuck { NodePhase::Failed } else { NodePhase::Done };
        ensure!(report.phase == expected, "node {node} is {:?}", report.phase);
        bed.node_rests(node, false, &[]).await?;
    }
    let failed = report(&status, &stuck)?;
    ensure!(failed.reason.as_deref() == Some(NodeReason::TimedOut.as_str()), "it is {:?}", failed.reason);
    ensure!(status.progress.as_deref() == Some("3/4"), "progress {:?}", status.progress);
    let list = status.conditions.iter().find(|it| it.type_ == condition::STALLED).context("not Stalled")?;
    let named: BTreeSet<&String> = nodes.iter().filter(|node| list.message.contains(*node)).collect();
    ensure!(list.reason == "Failed" && named.iter().eq([&&stuck]), "the list is: {}", list.message);
    Ok(())
}

async fn suspended_and_resumed(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 3).await?;
    let [node] = &nodes;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 3, &Template::new().sim("ready-after", "1s")).await?;
    bed.space.all_ready("web", 3).await?;
    bed.space.budget_allows("web", 3, 1).await?;
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    plan.shows_waiting("its first pod evicted", PATIENCE, |it, _| it.pods_evicted > 0).await?;
    plan.change(json!({"suspend": true})).await?;
    plan.until("is suspended", PATIENCE, |status| match status.phase {
        Some(PlanPhase::Suspended) => Sight::Found(()),
        phase => Sight::NotYet(format!("{phase:?}")),
    })
    .await?;
    let before = bed.evictions()?.len();
    ensure!(before < 3, "all pods were evicted before it was suspended");
    // The budget has room again, and a decision is made with it: the status tells of a spec that was written later.
    bed.space.budget_allows("web", 3, 1).await?;
    let generation = plan.change(json!({"timeouts": {"node": "3m"}})).await?.metadata.generation;
    plan.until("has seen the change", PATIENCE, |status| {
        if status.observed_generation >= generation {
            Sight::Found(())
        } else {
            Sight::NotYet(format!("generation {:?}", status.observed_generation))
        }
    })
    .await?;
    ensure!(bed.evictions()?.len() == before, "evicted while suspended: {:#?}", bed.evictions()?);
    bed.node_is_cordoned(node).await?;

    plan.change(json!({"suspend": false})).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(report(&status, node)?.phase == NodePhase::Done);
    ensure!(bed.accepted()?.len() == 3 && bed.evictions()?.len() == 3, "evictions: {:#?}", bed.evictions()?);
    bed.node_rests(node, false, &[]).await
}
