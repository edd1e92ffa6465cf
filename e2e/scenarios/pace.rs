//! How many nodes at once, and where the pods go meanwhile.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{DrainPlanStatus, NodePhase, PlanPhase, names};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::{PATIENCE, over, shared};
use crate::harness::{Bed, PlanRun, Recorder, Template, cordoned, marks, node_of, nodes, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(60, nodes_to_come_are_avoided),
        shared!(61, two_nodes_at_once),
        shared!(62, one_zone_after_the_other),
        shared!(63, control_plane_nodes),
        shared!(64, two_services_on_two_nodes),
        shared!(65, younger_node_gives_way),
    ]
}

/// The spec of a plan over these nodes with this pace.
fn paced(nodes: &[String], pace: &Value) -> Value {
    let mut spec = over(nodes, "2m", "Uncordon");
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("pace".to_owned(), json!({"maxConcurrentNodes": pace}));
    }
    spec
}

/// Two services of four replicas, two pods on each of four nodes, which have room for more afterwards; a spare node.
async fn eight_on_four(bed: &Bed) -> Result<([String; 4], BTreeSet<String>)> {
    let all = bed.nodes(["a", "b", "c", "d"], 2).await?;
    let mut uids = BTreeSet::new();
    for app in ["web", "api"] {
        bed.space.budget(app, &[app], json!({"maxUnavailable": 1})).await?;
        bed.space.deployment(app, 4, &Template::new().sim("ready-after", "500ms")).await?;
    }
    for app in ["web", "api"] {
        uids.extend(bed.space.all_ready(app, 4).await?.iter().map(uid));
        bed.space.budget_allows(app, 4, 1).await?;
    }
    bed.nodes(["spare"], 110).await?;
    for node in &all {
        nodes::resize(bed.client(), node, 110).await?;
    }
    Ok((all, uids))
}

/// Every pod was moved exactly once, none was refused, and nothing is left on any node.
async fn ensure_moved_once(bed: &Bed, all: &[String], uids: &BTreeSet<String>) -> Result<()> {
    let evictions = bed.evictions()?;
    ensure!(evictions.iter().all(|eviction| eviction.code == 201), "some were refused: {evictions:#?}");
    let accepted: BTreeSet<String> = bed.accepted()?.into_iter().collect();
    ensure!(accepted == *uids, "the server accepted {accepted:?}, and the pods were {uids:?}");
    for node in all {
        bed.node_rests(node, false, &[]).await?;
    }
    Ok(())
}

/// The most nodes that were in progress in any status of the plan.
fn most_at_once(plan: &PlanRun) -> usize {
    let in_progress = |phase| matches!(phase, NodePhase::Draining | NodePhase::HandedOff);
    let counts = plan
        .statuses()
        .into_iter()
        .map(|status| status.nodes.iter().filter(|node| in_progress(node.phase)).count());
    counts.max().unwrap_or_default()
}

async fn nodes_to_come_are_avoided(bed: Bed) -> Result<()> {
    let (all, uids) = eight_on_four(&bed).await?;
    let record = bed.record_nodes().await?;
    let plan = bed.plan("plan", over(&all, "2m", "Uncordon")).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(most_at_once(&plan) == 1, "{} nodes were in progress at once", most_at_once(&plan));
    ensure_moved_once(&bed, &all, &uids).await?;

    let mark = format!("{}:PreferNoSchedule", names::PENDING_TAINT);
    let marked = |record: &Recorder<Node>, name: &str| {
        record.with(|seen| {
            let of = seen.events.iter().filter(|event| event.object.name_any() == name);
            let carrying: Vec<bool> = of
                .filter(|event| marks(&event.object).contains(&mark))
                .map(|event| cordoned(&event.object))
                .collect();
            carrying
        })
    };
    for (number, node) in all.iter().enumerate() {
        let carrying = marked(&record, node);
        ensure!(carrying.is_empty() == (number == 0), "{node} carried the mark {} times", carrying.len());
        ensure!(!carrying.contains(&true), "{node} carried the mark while it was cordoned");
    }
    let writes = bed.audit().node_writes(&all[3])?;
    let ours = writes.iter().filter(|request| request.is_ours() && request.code == 200).count();
    ensure!(
        ours == 3,
        "{} is written to when it is marked, claimed and given back, not {ours} times",
        all[3]
    );
    Ok(())
}

async fn two_nodes_at_once(bed: Bed) -> Result<()> {
    let (all, uids) = eight_on_four(&bed).await?;
    let plan = bed.plan("plan", paced(&all, &json!("50%"))).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(most_at_once(&plan) == 2, "{} nodes were in progress at once", most_at_once(&plan));
    ensure_moved_once(&bed, &all, &uids).await
}

async fn label(bed: &Bed, node: &str, key: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
    Api::<Node>::all(bed.client()).patch(node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The nodes that were in progress together, in any status of the plan.
fn together(plan: &PlanRun) -> BTreeSet<Vec<String>> {
    let of = |status: DrainPlanStatus| {
        let draining = status.nodes.into_iter().filter(|node| node.phase == NodePhase::Draining);
        draining.map(|node| node.name).collect()
    };
    plan.statuses().into_iter().map(of).collect()
}

async fn one_zone_after_the_other(bed: Bed) -> Result<()> {
    let (all, uids) = eight_on_four(&bed).await?;
    for (node, zone) in all.iter().zip(["one", "two", "two", "one"]) {
        label(&bed, node, "zone", zone).await?;
    }
    let mut spec = paced(&all, &json!(2));
    spec["pace"]["topologyKey"] = json!("zone");
    let plan = bed.plan("plan", spec).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let [a, b, c, d] = all.clone();
    let apart =
        [vec![a.clone(), d.clone()], vec![b.clone(), c.clone()], vec![a], vec![b], vec![c], vec![d], vec![]];
    let seen = together(&plan);
    ensure!(seen.iter().all(|nodes| apart.contains(nodes)), "in progress together: {seen:?}");
    ensure!(apart[..2].iter().all(|nodes| seen.contains(nodes)), "never two at once: {seen:?}");
    ensure_moved_once(&bed, &all, &uids).await
}

async fn control_plane_nodes(bed: Bed) -> Result<()> {
    let (all, uids) = eight_on_four(&bed).await?;
    for node in &all[..2] {
        label(&bed, node, "node-role.kubernetes.io/control-plane", "").await?;
    }
    let plan = bed.plan("plan", paced(&all, &json!("100%"))).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let both = |nodes: &Vec<String>| all[..2].iter().all(|node| nodes.contains(node));
    let seen = together(&plan);
    ensure!(!seen.iter().any(both), "both control-plane nodes were in progress together: {seen:?}");
    ensure!(seen.iter().any(|nodes| nodes.len() == 3), "the others had to wait: {seen:?}");
    ensure_moved_once(&bed, &all, &uids).await
}

/// Two services of two replicas, one pod of each on nodes a and b, which are the only ones they may be on.
async fn two_on_two(bed: &Bed) -> Result<[String; 2]> {
    let all = bed.nodes(["a", "b"], 110).await?;
    bed.nodes(["other"], 110).await?;
    let template = Template::new().sim("ready-after", "500ms").only_on(&[&all[0], &all[1]]).apart();
    for app in ["web", "api"] {
        bed.space.budget(app, &[app], json!({"maxUnavailable": 1})).await?;
        bed.space.deployment(app, 2, &template).await?;
    }
    for app in ["web", "api"] {
        bed.space.all_ready(app, 2).await?;
        bed.space.budget_allows(app, 2, 1).await?;
    }
    Ok(all)
}

/// The nodes that gave way, with those they gave way to, in order.
fn yields(plan: &PlanRun) -> Vec<(String, String)> {
    let mut known = Vec::new();
    for node in plan.statuses().into_iter().flat_map(|status| status.yielded) {
        if !known.contains(&node) {
            known.push(node);
        }
    }
    known.into_iter().map(|node| (node.name, node.to)).collect()
}

async fn two_services_on_two_nodes(bed: Bed) -> Result<()> {
    let all = two_on_two(&bed).await?;
    let plan = bed.plan("plan", paced(&all, &json!(2))).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(yields(&plan).len() <= 1, "{:?}", yields(&plan));
    let evictions = bed.evictions()?;
    ensure!(evictions.iter().all(|eviction| eviction.code == 201), "some were refused: {evictions:#?}");
    for node in &all {
        bed.node_rests(node, false, &[]).await?;
    }
    Ok(())
}

async fn younger_node_gives_way(bed: Bed) -> Result<()> {
    let all = two_on_two(&bed).await?;
    let [a, b] = all.clone();
    // A broken pod costs its budget nothing, so the younger node lets it go while the older one waits for that budget.
    let pods = bed.space.all_ready("api", 2).await?;
    let broken = pods.iter().find(|pod| node_of(pod) == b).context("no pod of api on b")?;
    bed.space.break_pod(&broken.name_any()).await?;
    bed.space.pods_until("api", "one looping pod", |pods| pods.iter().any(|pod| restarts(pod) > 0)).await?;
    bed.space.budget_allows("api", 2, 0).await?;

    let plan = bed.plan("plan", paced(&all, &json!(2))).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(yields(&plan) == [(b, a)], "gave way: {:?}", yields(&plan));
    let evictions = bed.evictions()?;
    ensure!(evictions.iter().all(|eviction| eviction.code == 201), "some were refused: {evictions:#?}");
    let counted = status.pod_counts.map(|counts| counts.evicted);
    ensure!(counted == i32::try_from(bed.accepted()?.len()).ok(), "the plan counts {counted:?} evicted pods");
    for node in &all {
        bed.node_rests(node, false, &[]).await?;
    }
    Ok(())
}

fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.iter().filter_map(|status| status.container_statuses.as_ref()).flatten();
    containers.map(|container| container.restart_count).max().unwrap_or_default()
}
