//! Nodes whose machine is off, and what the pod garbage collection of the real controller manager does there.

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodePhase, NodeReason, PlanPhase};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::{PATIENCE, over, report, shared};
use crate::harness::{Bed, Template, node_of, terminating, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(84, machine_that_is_off), shared!(85, node_deleted_under_its_pods)]
}

/// A StatefulSet of two under a budget of one, one pod on each of the nodes a and b; room elsewhere.
async fn two_of_a_set(bed: &Bed) -> Result<([String; 2], [Pod; 2])> {
    let nodes = bed.nodes(["a", "b"], 1).await?;
    bed.space.budget("db", &["db"], json!({"maxUnavailable": 1})).await?;
    bed.space.stateful_set("db", 2, &Template::new()).await?;
    let pods = bed.space.all_ready("db", 2).await?;
    bed.space.budget_allows("db", 2, 1).await?;
    bed.nodes(["spare"], 110).await?;
    let on = |node: &String| {
        let found = pods.iter().find(|pod| node_of(pod) == node).cloned();
        found.with_context(|| format!("no pod on {node}"))
    };
    let pods = [on(&nodes[0])?, on(&nodes[1])?];
    Ok((nodes, pods))
}

async fn machine_that_is_off(bed: Bed) -> Result<()> {
    let ([a, b], [lost, other]) = two_of_a_set(&bed).await?;
    bed.installation.testbed.kubelet(&a, "dead").await?;
    let mut spec = over(&[a.clone(), b.clone()], "3m", "Uncordon");
    spec["pace"] = json!({"maxConcurrentNodes": 2});
    let plan = bed.plan("plan", spec).await?;

    let name = lost.name_any();
    bed.shows_and_explains("KubeletUnreachable/MayClear", &plan, &name).await?;
    // The name is taken, so that the budget has no room for the other pod, and time alone does not help.
    bed.shows_and_explains("BudgetExhausted/MayClear", &plan, &other.name_any()).await?;

    // Somebody has made sure that the machine is off. The pods are collected every 20 s: right after a round, not before one.
    collected(&bed).await?;
    bed.installation.testbed.kubectl(&["taint", "node", &a, OUT_OF_SERVICE]).await?;
    bed.shows("KubeletUnreachable/WillClear", &plan, &name).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(status.nodes.iter().all(|node| node.phase == NodePhase::Done), "{:?}", status.nodes);
    let evictions = bed.evictions()?;
    ensure!(evictions.iter().all(|eviction| eviction.code == 201), "some were refused: {evictions:#?}");
    let accepted = bed.accepted()?;
    ensure!([&lost, &other].iter().all(|pod| accepted.contains(&uid(*pod))), "{accepted:?}");
    bed.space.all_ready("db", 2).await?;
    Ok(())
}

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";

/// Awaits a round of the pod garbage collection, by a pod on another machine that is off.
async fn collected(bed: &Bed) -> Result<()> {
    let [node] = bed.nodes(["off"], 110).await?;
    bed.space.pod("canary", &Template::new().only_on(&[&node])).await?;
    bed.space.all_ready("canary", 1).await?;
    bed.installation.testbed.kubelet(&node, "dead").await?;
    bed.space.pods().delete("canary", &DeleteParams::default()).await?;
    bed.installation.testbed.kubectl(&["taint", "node", &node, OUT_OF_SERVICE]).await?;
    bed.space.pods_until("canary", "gone", <[Pod]>::is_empty).await?;
    bed.delete_node(&node).await
}

async fn node_deleted_under_its_pods(bed: Bed) -> Result<()> {
    let [node] = bed.nodes(["a"], 2).await?;
    bed.space.deployment("web", 2, &Template::new().sim("terminate", "never")).await?;
    bed.space.all_ready("web", 2).await?;
    bed.nodes(["spare"], 110).await?;
    let plan = bed.plan("plan", over(std::slice::from_ref(&node), "2m", "Uncordon")).await?;
    bed.space
        .pods_until("web", "both are going", |pods| pods.iter().filter(|pod| terminating(pod)).count() == 2)
        .await?;
    bed.shows_and_explains("Terminating/WillClear", &plan, "web-").await?;
    bed.delete_node(&node).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let of_node = report(&status, &node)?;
    ensure!(of_node.phase == NodePhase::Skipped, "{:?}", of_node.phase);
    ensure!(of_node.reason.as_deref() == Some(NodeReason::NodeGone.as_str()), "{:?}", of_node.reason);
    let message = of_node.message.as_deref().unwrap_or_default();
    for part in ["2 pods are still bound to it", "40 to 80 s after the node has gone"] {
        ensure!(message.contains(part), "\"{part}\" is missing in: {message}");
    }
    Ok(())
}
