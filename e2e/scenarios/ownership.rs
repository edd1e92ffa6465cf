//! Whose a node is, and how it is given back.

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{DrainPlanStatus, NodePhase, NodeReason, PlanPhase, names};
use serde_json::json;

use super::{PATIENCE, over, report, shared};
use crate::harness::{Bed, PlanRun, Request, Sight, Template};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(17, plan_deleted_in_the_middle),
        shared!(18, uncordoned_by_hand),
        shared!(19, node_deleted_in_the_middle),
        shared!(20, two_plans_on_one_node),
    ]
}

/// Three replicas that take their time, on one node; they may move to the spare one.
async fn slow_service(bed: &Bed, app: &str, node: &str) -> Result<()> {
    let nodes = [node, &bed.named("spare")];
    let template = Template::new().sim("ready-after", "2s").only_on(&nodes);
    bed.space.budget(app, &[app], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment(app, 3, &template).await?;
    bed.space.all_ready(app, 3).await?;
    bed.space.budget_allows(app, 3, 1).await
}

/// Awaits that the plan has evicted a pod of the node and another one waits.
async fn in_the_middle(plan: &PlanRun, node: &str) -> Result<()> {
    plan.shows_waiting("its first pod evicted", PATIENCE, |it, _| {
        it.name == node && it.phase == NodePhase::Draining && it.pods_evicted > 0
    })
    .await?;
    Ok(())
}

fn ensure_skipped(status: &DrainPlanStatus, node: &str, reason: NodeReason) -> Result<()> {
    let report = report(status, node)?;
    ensure!(
        report.phase == NodePhase::Skipped && report.reason.as_deref() == Some(reason.as_str()),
        "node {node} is {:?}, {:?}",
        report.phase,
        report.reason
    );
    Ok(())
}

async fn plan_deleted_in_the_middle(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b"], 110).await?;
    let [a, b] = &nodes;
    slow_service(&bed, "one", a).await?;
    slow_service(&bed, "two", b).await?;
    bed.nodes(["spare"], 110).await?;
    // The second node was cordoned before, by somebody else.
    bed.set_cordon(b, true).await?;
    let first = bed.plan("first", over(std::slice::from_ref(a), "2m", "KeepCordoned")).await?;
    let second = bed.plan("second", over(std::slice::from_ref(b), "2m", "Uncordon")).await?;
    for (plan, node) in [(&first, a), (&second, b)] {
        in_the_middle(plan, node).await?;
        plan.delete().await?;
    }
    for plan in [&first, &second] {
        plan.gone(PATIENCE).await?;
    }
    bed.node_rests(a, false, &[]).await?;
    bed.node_rests(b, true, &[]).await?;
    for (node, app) in [(a, "one-"), (b, "two-")] {
        let given_back = bed.audit().node_writes(node)?.into_iter().rfind(Request::is_ours);
        let given_back = given_back.context("the node was never written to")?.received;
        let evictions = bed.evictions()?;
        let of_app: Vec<_> = evictions.iter().filter(|eviction| eviction.name.starts_with(app)).collect();
        ensure!(!of_app.is_empty() && of_app.len() < 3, "{} evictions of {app}", of_app.len());
        ensure!(
            of_app.iter().all(|it| it.received < given_back),
            "an eviction came after the node was given back"
        );
    }
    Ok(())
}

async fn uncordoned_by_hand(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    let [node] = &nodes;
    slow_service(&bed, "web", node).await?;
    bed.nodes(["spare"], 110).await?;
    let plan = bed.plan("plan", over(&nodes, "2m", "KeepCordoned")).await?;
    in_the_middle(&plan, node).await?;
    bed.set_cordon(node, false).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure_skipped(&status, node, NodeReason::UncordonedByHand)?;
    bed.node_rests(node, false, &[]).await?;
    ensure!(bed.accepted()?.len() < 3, "it went on: {:#?}", bed.evictions()?);
    Ok(())
}

async fn node_deleted_in_the_middle(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b"], 110).await?;
    let [a, b] = &nodes;
    slow_service(&bed, "one", a).await?;
    bed.space.deployment("two", 1, &Template::new().only_on(&[b, &bed.named("spare")])).await?;
    bed.space.all_ready("two", 1).await?;
    bed.nodes(["spare"], 110).await?;
    let plan = bed.plan("plan", over(&nodes, "2m", "KeepCordoned")).await?;
    in_the_middle(&plan, a).await?;
    bed.delete_node(a).await?;
    // The slot is free: the next one is drained.
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure_skipped(&status, a, NodeReason::NodeGone)?;
    ensure!(report(&status, b)?.phase == NodePhase::Done, "node {b} is {:?}", report(&status, b)?.phase);
    let kept = format!("{}={}", names::KEPT_CORDONED, plan.name);
    bed.node_rests(b, true, &[kept]).await
}

async fn two_plans_on_one_node(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    let [node] = &nodes;
    slow_service(&bed, "web", node).await?;
    bed.nodes(["spare"], 110).await?;
    let first = bed.plan("first", over(&nodes, "2m", "Uncordon")).await?;
    first.drains(node, PATIENCE).await?;
    let patient = bed.plan("patient", over(&nodes, "2m", "Uncordon")).await?;
    let impatient = bed.plan("impatient", over(&nodes, "2s", "Uncordon")).await?;

    let status = impatient.ends(PlanPhase::Failed, PATIENCE).await?;
    let refused = report(&status, node)?;
    ensure!(
        refused.reason.as_deref() == Some(NodeReason::ClaimedByOther.as_str())
            && refused.message.as_deref().is_some_and(|message| message.contains(&first.name)),
        "the node is {:?}: {:?}",
        refused.reason,
        refused.message
    );
    let waits = patient.until("says whom it waits for", PATIENCE, |status| {
        let said = status.conditions.iter().any(|condition| condition.message.contains(&first.name))
            && status.nodes.iter().any(|it| {
                it.phase == NodePhase::Pending
                    && it.reason.as_deref() == Some(NodeReason::ClaimedByOther.as_str())
                    && it.message.as_deref().is_some_and(|message| message.contains(&first.name))
            });
        if said { Sight::Found(()) } else { Sight::NotYet(format!("{:?}", status.conditions)) }
    });
    waits.await?;
    first.ends(PlanPhase::Completed, PATIENCE).await?;
    patient.ends(PlanPhase::Completed, PATIENCE).await?;
    bed.node_rests(node, false, &[]).await?;
    ensure!(bed.accepted()?.len() == 3, "evictions: {:#?}", bed.evictions()?);

    // One after the other: each claim came when the one before was taken off.
    let mut held_by = None;
    for write in bed.audit().node_writes(node)?.iter().filter(|write| write.is_ours() && write.code == 200) {
        let ops = write.body.as_array().cloned().unwrap_or_default();
        for op in ops.iter().filter(|op| op["path"] == "/metadata/annotations/drainplan.dev~1plan") {
            let claim = op["value"].as_str().map(ToOwned::to_owned);
            ensure!(
                held_by.is_none() != claim.is_none(),
                "{claim:?} came while the node was held by {held_by:?}"
            );
            held_by = claim;
        }
    }
    ensure!(held_by.is_none(), "the node is still held by {held_by:?}");
    Ok(())
}
