//! Drains that disturb no more than the budget allows.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{PlanPhase, names};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::interval;

use super::{PATIENCE, alone, over, shared};
use crate::harness::{
    Bed, Recorder, Request, Template, allowed, node_of, nodes, ready_pods, terminating, uid,
};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(1, six_replicas_on_three_nodes),
        shared!(2, no_spare_node),
        shared!(72, budgets_annotated_all_the_time),
        alone!(73, controller_manager_down_in_the_middle),
    ]
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
    stayed_ready(record, "web", 5)
}

/// At every event since the record began, so many pods of the workload were Ready and not going.
fn stayed_ready(record: &Recorder<Pod>, app: &str, desired: usize) -> Result<()> {
    let mut fewest = usize::MAX;
    let mut events = 0;
    record.with(|seen| {
        seen.replay(record.listed(), |pods, _| {
            fewest = fewest.min(ready_pods(pods.values().map(AsRef::as_ref), app));
            events += 1;
        });
    });
    ensure!(events > 6, "only {events} events were seen, so the pods were hardly watched");
    ensure!(
        fewest >= desired,
        "at one of {events} events only {fewest} pods of {app} were Ready and not terminating"
    );
    Ok(())
}

/// No eviction was refused.
fn none_refused(bed: &Bed) -> Result<()> {
    let evictions = bed.evictions()?;
    let refused: Vec<String> =
        evictions.iter().filter(|eviction| eviction.code != 201).map(Request::line).collect();
    ensure!(refused.is_empty(), "refused: {refused:#?}");
    Ok(())
}

async fn six_replicas_on_three_nodes(bed: Bed) -> Result<()> {
    let (nodes, pods) = two_on_each(&bed).await?;
    bed.nodes(["spare"], 110).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    five_stayed_ready(&record)?;

    none_refused(&bed)?;
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

/// The annotation that whoever writes to budgets again and again leaves on them.
const COUNTED: &str = "e2e.drainplan.dev/count";

/// Writes a number to the budget.
async fn annotate(bed: &Bed, budget: &str, count: u32) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {COUNTED: count.to_string()}}}));
    bed.space.budgets().patch(budget, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Counts on the budgets, twenty times a second; ends with an error only.
async fn count_on(bed: &Bed, budgets: &[&str]) -> Result<Infallible> {
    let mut tick = interval(Duration::from_millis(50));
    for count in 1.. {
        tick.tick().await;
        for budget in budgets {
            annotate(bed, budget, count).await?;
        }
    }
    anyhow::bail!("counted to the end")
}

async fn budgets_annotated_all_the_time(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b", "c"], 3).await?;
    let quick = Template::new().sim("ready-after", "1s");
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.budget("api", &["api"], json!({"minAvailable": "60%"})).await?;
    bed.space.deployment("web", 6, &quick).await?;
    bed.space.deployment("api", 3, &quick).await?;
    let mut pods: BTreeSet<String> = bed.space.all_ready("web", 6).await?.iter().map(uid).collect();
    pods.extend(bed.space.all_ready("api", 3).await?.iter().map(uid));
    bed.space.budget_allows("web", 6, 1).await?;
    bed.space.budget_allows("api", 3, 1).await?;
    bed.nodes(["spare"], 110).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let drained = async {
        let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
        plan.ends(PlanPhase::Completed, PATIENCE).await
    };
    tokio::select! {
        status = drained => { status?; }
        counted = count_on(&bed, &["web", "api"]) => { counted?; }
    }
    stayed_ready(&record, "web", 5)?;
    stayed_ready(&record, "api", 2)?;
    none_refused(&bed)?;
    let accepted: BTreeSet<String> = bed.accepted()?.into_iter().collect();
    ensure!(accepted == pods, "the server accepted {accepted:?}, and the pods were {pods:?}");
    for budget in ["web", "api"] {
        let budget = bed.space.budgets().get(budget).await?;
        let count: u32 = budget.annotations().get(COUNTED).context("never annotated")?.parse()?;
        ensure!(count > 20, "annotated {count} times only, so that it hardly tried anything");
    }
    Ok(())
}

async fn controller_manager_down_in_the_middle(bed: Bed) -> Result<()> {
    const MANAGER: &str = "kube-controller-manager";
    let nodes = bed.nodes(["a", "b"], 6).await?;
    // It takes seconds to stop the controller manager where there is much to do.
    let slow = Template::new().sim("ready-after", "4s");
    for (app, most) in [("web", 1), ("api", 2)] {
        bed.space.budget(app, &[app], json!({"maxUnavailable": most})).await?;
        bed.space.deployment(app, 6, &slow).await?;
    }
    for (app, most) in [("web", 1), ("api", 2)] {
        bed.space.all_ready(app, 6).await?;
        bed.space.budget_allows(app, 6, most).await?;
    }
    bed.nodes(["spare"], 110).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let mut spec = over(&nodes, "2m", "Uncordon");
    spec["pace"] = json!({"maxConcurrentNodes": "100%"});
    let plan = bed.plan("plan", spec).await?;
    bed.space.pods_until("web", "a pod is evicted", |pods| pods.iter().any(terminating)).await?;
    let testbed = &bed.installation.testbed;
    testbed.component("stop", MANAGER).await?;
    let tried = async {
        for app in ["web", "api"] {
            bed.space.budget_until(app, "no room", |budget| allowed(budget) == Some(0)).await?;
            bed.space.pods_until(app, "the evicted are gone", |pods| !pods.iter().any(terminating)).await?;
        }
        let accepted = bed.accepted()?.len();
        ensure!(accepted < 12, "all were evicted before the controller manager was stopped");
        // Each wakes the controller, and nothing has made room meanwhile.
        for count in 0..20 {
            for app in ["web", "api"] {
                annotate(&bed, app, count).await?;
            }
        }
        ensure!(bed.accepted()?.len() == accepted, "evicted without room: {:#?}", bed.evictions()?);
        anyhow::Ok(())
    };
    let tried = tried.await;
    testbed.component("start", MANAGER).await?;
    tried?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    stayed_ready(&record, "web", 5)?;
    stayed_ready(&record, "api", 4)?;
    none_refused(&bed)?;
    for node in &nodes {
        bed.node_rests(node, false, &[]).await?;
    }
    Ok(())
}
