//! What a plan remembers of the owners whose pods it has moved, and what a node's start waits for.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{DrainPlanStatus, NodePhase, PlanPhase, condition};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Node, ResourceQuota};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::{PATIENCE, alone, over, report, shared};
use crate::harness::{Bed, PlanRun, Request, Template, allowed, node_of, nodes, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(110, owner_that_no_longer_counts),
        shared!(111, pods_that_come_back_to_their_node),
        shared!(112, replacements_are_awaited),
        shared!(113, pause_between_nodes),
        alone!(114, unhealthy_node_stops_the_plan),
    ]
}

fn find<'s>(status: &'s DrainPlanStatus, type_: &str) -> Option<&'s Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

/// Awaits a status whose Ready condition says all of this.
async fn says(plan: &PlanRun, parts: &[&str]) -> Result<()> {
    let all = |status: &DrainPlanStatus| {
        let message = find(status, condition::READY).map(|ready| ready.message.clone()).unwrap_or_default();
        parts.iter().all(|part| message.contains(part))
    };
    plan.shows(&format!("{parts:?}"), PATIENCE, all).await
}

/// The controllers wait ever longer after each refusal; a change of the ReplicaSet lets them look at once.
async fn nudge(bed: &Bed) -> Result<()> {
    let sets: Api<ReplicaSet> = Api::namespaced(bed.client(), &bed.name);
    for set in sets.list(&ListParams::default()).await? {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"e2e.drainplan.dev/nudge": "1"}}}));
        sets.patch(&set.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

async fn owner_that_no_longer_counts(bed: Bed) -> Result<()> {
    const APPS: [&str; 3] = ["one", "three", "two"];
    let [a] = bed.nodes(["a"], 110).await?;
    bed.space.budget("all", &APPS, json!({"maxUnavailable": 1})).await?;
    for app in APPS {
        bed.space.deployment(app, 1, &Template::new()).await?;
        bed.space.all_ready(app, 1).await?;
    }
    bed.space.budget_allows("all", 3, 1).await?;
    bed.nodes(["spare"], 110).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(bed.client(), &bed.name);
    let quota = json!({"metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;

    let plan = bed.plan("plan", over(&[a], "2m", "Uncordon")).await?;
    bed.shows("BudgetShrunk/MayClear", &plan, "").await?;
    bed.space.budget_until("all", "refilled", |budget| allowed(budget) == Some(1)).await?;
    ensure!(bed.accepted()?.len() == 1, "evicted although an owner is missing: {:#?}", bed.evictions()?);
    let remembers = |status: &DrainPlanStatus| {
        status.moved.iter().any(|of| (of.evicted, of.ready_before, of.budget_expected) == (1, 1, Some(3)))
    };
    plan.shows("the owner that was moved", PATIENCE, remembers).await?;

    quotas.delete("full", &DeleteParams::default()).await?;
    nudge(&bed).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(bed.accepted()?.len() == 3, "the server accepted {:?}", bed.accepted()?);
    let refused: Vec<String> =
        bed.evictions()?.iter().filter(|eviction| eviction.code != 201).map(Request::line).collect();
    ensure!(refused.is_empty(), "refused: {refused:#?}");
    ensure!(status.moved.len() <= 1, "still remembered although whole: {:?}", status.moved);
    Ok(())
}

async fn pods_that_come_back_to_their_node(bed: Bed) -> Result<()> {
    let [a] = bed.nodes(["a"], 110).await?;
    let template = Template::new().drawn_to(&a);
    bed.space.deployment("web", 1, &template).await?;
    bed.space.all_ready("web", 1).await?;
    // Between two pods the node would be empty, and be done.
    let stays =
        Template::new().only_on(&[&a]).annotation("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");
    bed.space.job("report", &stays).await?;
    bed.space.all_ready("report", 1).await?;
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", over(std::slice::from_ref(&a), "20s", "Uncordon")).await?;
    bed.shows("ReturnsToNode/MayClear", &plan, "web-").await?;
    let evicted = bed.accepted()?.len();
    // How many more depends on the machine: those created in the second of the start may have been there before.
    ensure!(evicted >= 2, "evicted {evicted} times");
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let node = report(&status, &a)?;
    ensure!(node.reason.as_deref() == Some("TimedOut"), "{node:?}");
    ensure!(bed.accepted()?.len() == evicted, "evicted again: {:#?}", bed.evictions()?);
    bed.node_rests(&a, false, &[]).await
}

async fn replacements_are_awaited(bed: Bed) -> Result<()> {
    let [a, b] = bed.nodes(["a", "b"], 2).await?;
    bed.space.deployment("web", 4, &Template::new().sim("ready-after", "500ms")).await?;
    let pods = bed.space.all_ready("web", 4).await?;
    let record = bed.record_nodes().await?;

    let plan = bed.plan("plan", over(&[a.clone(), b.clone()], "1m", "KeepCordoned")).await?;
    let short = "Deployment web has 2 of 4 pods Ready: web-";
    says(&plan, &[&format!("{b}: "), "pace.awaitReplacements", short, "the scheduler says"]).await?;
    plan.shows("that it idles", PATIENCE, |status| status.idle_since.is_some()).await?;
    let touched = record.with(|record| {
        let of_b = record.events.iter().filter(|seen| seen.object.name_any() == b);
        of_b.filter(|seen| crate::harness::cordoned(&seen.object)).count()
    });
    ensure!(touched == 0, "{b} was cordoned while pods of {a} were not back");
    let moved = |status: &DrainPlanStatus| {
        status.moved.iter().any(|of| (of.name.as_str(), of.evicted, of.ready_before) == ("web", 2, 4))
    };
    plan.shows("the owner that was moved", PATIENCE, moved).await?;

    bed.nodes(["spare"], 110).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let accepted = bed.accepted()?;
    let missed: Vec<String> = pods.iter().map(uid).filter(|uid| !accepted.contains(uid)).collect();
    ensure!(missed.is_empty() && accepted.len() == 4, "accepted {accepted:?}, never evicted: {missed:?}");
    let back = bed.space.all_ready("web", 4).await?;
    ensure!(back.iter().all(|pod| node_of(pod) == bed.named("spare")), "not all on the spare node");
    Ok(())
}

fn at(time: Option<&Time>) -> Result<jiff::Timestamp> {
    time.map(|time| time.0).context("the time is missing")
}

async fn pause_between_nodes(bed: Bed) -> Result<()> {
    let [a, b] = bed.nodes(["a", "b"], 2).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 4, &Template::new()).await?;
    bed.space.all_ready("web", 4).await?;
    for node in [&a, &b] {
        nodes::resize(bed.client(), node, 110).await?;
    }
    let mut spec = over(&[a.clone(), b.clone()], "1m", "Uncordon");
    spec["pace"] = json!({"soak": "5s"});
    let plan = bed.plan("plan", spec).await?;
    says(&plan, &[&format!("{b}: node {a} is done since"), "pace.soak"]).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let done = at(report(&status, &a)?.finished_at.as_ref())?;
    let started = at(report(&status, &b)?.started_at.as_ref())?;
    ensure!(started.duration_since(done).as_secs() >= 5, "{a} was done at {done}, {b} started at {started}");
    let idled = plan.statuses().iter().any(|status| status.idle_since.is_some());
    ensure!(!idled, "a pause is no standstill, and the idle clock ran");
    Ok(())
}

/// Sets or takes back a node's condition DiskPressure.
async fn press(bed: &Bed, node: &str, on: bool) -> Result<()> {
    let nodes: Api<Node> = Api::all(bed.client());
    let pressure = json!({"type": "DiskPressure", "status": if on { "True" } else { "False" }});
    let patch: Patch<Value> = Patch::Strategic(json!({"status": {"conditions": [pressure]}}));
    nodes.patch_status(node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The nodes of the cluster that are not Ready or lack something.
async fn unhealthy(bed: &Bed) -> Result<Vec<String>> {
    let nodes = Api::<Node>::all(bed.client()).list(&ListParams::default()).await?;
    let ill = |node: &Node| {
        let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        let pairs = conditions.map(|condition| (condition.type_.as_str(), condition.status.as_str()));
        let (ready, pressed) = pairs.fold((false, false), |(ready, pressed), (type_, status)| {
            let on = status == "True";
            (ready || (on && type_ == "Ready"), pressed || (on && type_.ends_with("Pressure")))
        });
        !ready || pressed
    };
    Ok(nodes.items.iter().filter(|node| ill(node)).map(kube::ResourceExt::name_any).collect())
}

async fn unhealthy_node_stops_the_plan(bed: Bed) -> Result<()> {
    let [a, full] = bed.nodes(["a", "full"], 110).await?;
    bed.space.deployment("web", 2, &Template::new()).await?;
    bed.space.all_ready("web", 2).await?;
    press(&bed, &full, true).await?;
    let record = bed.record_nodes().await?;
    let mut spec = over(std::slice::from_ref(&a), "1m", "Uncordon");
    // Other cases leave nodes behind.
    let ill = unhealthy(&bed).await?.len() - 1;
    spec["pace"] = json!({"maxUnhealthyNodes": ill});
    let plan = bed.plan("plan", spec).await?;
    let named = |status: &DrainPlanStatus| {
        let healthy = find(status, condition::NODES_HEALTHY);
        healthy.is_some_and(|found| {
            let parts = [format!("{full} DiskPressure"), format!("pace.maxUnhealthyNodes allows {ill}")];
            found.status == "False"
                && found.reason == "TooManyUnhealthy"
                && parts.iter().all(|part| found.message.contains(part))
        })
    };
    plan.shows("that a node is unhealthy", PATIENCE, named).await?;
    plan.shows("that it idles", PATIENCE, |status| status.idle_since.is_some()).await?;
    bed.ensure_untouched(&record, &a)?;
    press(&bed, &full, false).await?;
    let status = plan.ends(PlanPhase::Completed, Duration::from_secs(50)).await?;
    ensure!(report(&status, &a)?.phase == NodePhase::Done, "{status:?}");
    Ok(())
}
