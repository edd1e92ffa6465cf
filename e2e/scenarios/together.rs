//! What plans hold together, and pods that a cordon does not keep away.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use drainplan::api::{NodePhase, NodeReason, PlanPhase, names};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{PATIENCE, alone, over, report, shared, waiting};
use crate::harness::{Bed, Recorder, Sight, Template, cordoned, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![alone!(82, most_cordoned_of_two_plans), shared!(83, pod_that_would_return)]
}

/// Nodes that some plan has left cordoned: they count until somebody uncordons them.
async fn left_cordoned(bed: &Bed) -> Result<usize> {
    let nodes = Recorder::<Node>::start(Api::all(bed.client()), None).await?;
    let marks = [names::KEPT_CORDONED, names::LEFT_CORDONED];
    let left =
        |node: &Node| cordoned(node) && marks.iter().any(|mark| node.annotations().contains_key(*mark));
    Ok(nodes.with(|record| record.now.values().filter(|node| left(node)).count()))
}

async fn most_cordoned_of_two_plans(bed: Bed) -> Result<()> {
    const MOST: usize = 2;
    let nodes = bed.nodes(["a", "b", "c", "d"], 2).await?;
    let mut uids = Vec::new();
    for app in ["web", "api"] {
        bed.space.budget(app, &[app], json!({"maxUnavailable": 2})).await?;
        bed.space
            .deployment(app, 4, &Template::new().sim("ready-after", "1s").sim("terminate-after", "1s"))
            .await?;
        uids.extend(bed.space.all_ready(app, 4).await?.iter().map(uid));
        bed.space.budget_allows(app, 4, 2).await?;
    }
    bed.nodes(["spare"], 110).await?;
    let limit = left_cordoned(&bed).await? + MOST;
    bed.installation.kill_controller().await?;
    let limited = bed.installation.controller.with(&["--max-cordoned-nodes", &limit.to_string()])?;
    limited.start().await?;
    let watched = bed.record_nodes().await?;

    let [a, b, c, d] = nodes.clone();
    let mut both = Vec::new();
    for (name, nodes) in [("one", [a, b]), ("two", [c, d])] {
        let mut spec = over(&nodes, "2m", "Uncordon");
        spec["pace"] = json!({"maxConcurrentNodes": "100%"});
        both.push(bed.plan(name, spec).await?);
    }
    let told = format!("--max-cordoned-nodes allows {limit}");
    let two = &both[1];
    two.until("waits for its turn", PATIENCE, |status| {
        let message = &status.conditions.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("; ");
        let pending = status.node_counts.as_ref().map_or(0, |counts| counts.pending);
        if pending > 0 && message.contains(&told) {
            Sight::Found(())
        } else if status.finished_at.is_some() {
            Sight::Never(format!("it has ended: {message}"))
        } else {
            Sight::NotYet(message.clone())
        }
    })
    .await?;
    for plan in &both {
        plan.ends(PlanPhase::Completed, PATIENCE).await?;
    }
    let mut most = 0;
    watched.with(|record| {
        record.replay(watched.listed(), |all, _| {
            let held = nodes.iter().filter(|name| all.get(*name).is_some_and(|node| cordoned(node)));
            most = most.max(held.count());
        });
    });
    ensure!(most == MOST, "{most} of the nodes were cordoned together");
    let refused = bed.evictions()?.iter().filter(|eviction| eviction.code != 201).count();
    let accepted = bed.accepted()?;
    ensure!(refused == 0 && uids.iter().all(|uid| accepted.contains(uid)), "{refused} were refused");
    for node in &nodes {
        bed.node_rests(node, false, &[]).await?;
    }
    limited.terminate()?;
    let ended = limited.ends(Duration::from_secs(30)).await?;
    ensure!(ended.success(), "the controller ended with {ended}");
    Ok(())
}

async fn pod_that_would_return(bed: Bed) -> Result<()> {
    let [node] = bed.nodes(["a"], 3).await?;
    let bound = Template::new().only_on(&[&node]).tolerates("node.kubernetes.io/unschedulable");
    bed.space.deployment("agent", 1, &bound).await?;
    bed.space.deployment("web", 1, &Template::new().only_on(&[&node])).await?;
    let agent = bed.space.all_ready("agent", 1).await?;
    bed.space.all_ready("web", 1).await?;
    bed.nodes(["spare"], 110).await?;
    let watched = bed.record_nodes().await?;

    let plan = bed.plan("plan", over(std::slice::from_ref(&node), "5s", "Uncordon")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    bed.ensure_untouched(&watched, &node)?;
    let of_node = report(&status, &node)?;
    ensure!(of_node.phase == NodePhase::Failed, "{node} is {:?}", of_node.phase);
    ensure!(of_node.reason.as_deref() == Some(NodeReason::Blocked.as_str()), "{:?}", of_node.reason);
    let name = agent.iter().map(kube::ResourceExt::name_any).collect::<String>();
    bed.says("ReturnsToNode/NeverClears", waiting(of_node, &name)?)?;
    bed.explains("ReturnsToNode/NeverClears", &bed.name, &name).await?;
    let reasons: BTreeMap<&str, &str> =
        of_node.waiting.iter().map(|pod| (pod.pod.as_str(), pod.reason.as_str())).collect();
    ensure!(reasons.len() == 1, "others wait too: {reasons:?}");
    Ok(())
}
