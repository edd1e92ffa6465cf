//! What plans say about pods: order, exceptions, and those without a budget.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodeReason, PlanPhase};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{PATIENCE, over, report, shared, waiting};
use crate::harness::{Bed, PlanRun, Recorder, Template, ready_pods, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(66, rules_say_what_goes_when),
        shared!(67, one_pod_at_a_time),
        shared!(68, pods_that_ask_not_to_be_moved),
    ]
}

fn with_pods(nodes: &[String], node_timeout: &str, pods: Value) -> Value {
    let mut spec = over(nodes, node_timeout, "Uncordon");
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("pods".to_owned(), pods);
    }
    spec
}

/// The reasons that any status of the plan gave for pods of a workload.
fn reasons(plan: &PlanRun, app: &str) -> BTreeSet<String> {
    let nodes = plan.statuses().into_iter().flat_map(|status| status.nodes);
    let pods = nodes.flat_map(|node| node.waiting).filter(|pod| pod.pod.starts_with(&format!("{app}-")));
    pods.map(|pod| pod.reason).collect()
}

async fn rules_say_what_goes_when(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    let slow = Template::new().sim("terminate-after", "2s");
    let mut uids = Vec::new();
    for (app, template) in [("proxy", &slow), ("web", &Template::new()), ("agent", &Template::new())] {
        bed.space.deployment(app, 1, template).await?;
        uids.push(bed.space.all_ready(app, 1).await?.first().map(uid).context("no pod")?);
    }
    bed.space.job("report", &Template::new().sim("complete-after", "5s")).await?;
    bed.space.all_ready("report", 1).await?;
    bed.nodes(["spare"], 110).await?;

    let rule = |app: &str, action: &str, order: i32| json!({"podSelector": {"matchLabels": {"app": app}}, "action": action, "order": order});
    let rules = [rule("proxy", "Evict", -1), rule("agent", "Skip", 0), rule("report", "AwaitCompletion", 0)];
    let plan = bed.plan("plan", with_pods(&nodes, "2m", json!({"rules": rules}))).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let [proxy, web, agent] = uids.as_slice() else { anyhow::bail!("{uids:?}") };
    ensure!(bed.accepted()? == [proxy.clone(), web.clone()], "evicted were {:?}", bed.accepted()?);
    let pods = bed.space.all_ready("agent", 1).await?;
    ensure!(pods.first().map(uid).as_ref() == Some(agent), "the skipped pod is gone");
    bed.shows("AwaitingOrder/WillClear", &plan, "web-").await?;
    for (app, reason) in [("web", "AwaitingOrder"), ("report", "AwaitingCompletion")] {
        ensure!(reasons(&plan, app).contains(reason), "{app} waited for {:?}", reasons(&plan, app));
    }
    Ok(())
}

async fn one_pod_at_a_time(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.deployment("web", 3, &Template::new().sim("ready-after", "500ms")).await?;
    let pods = bed.space.all_ready("web", 3).await?;
    bed.nodes(["spare"], 110).await?;
    let record: Recorder<Pod> = Recorder::start(bed.space.pods(), None).await?;
    let plan = bed.plan("plan", with_pods(&nodes, "2m", json!({"unbudgeted": "OneAtATime"}))).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let mut fewest = usize::MAX;
    record.with(|seen| {
        seen.replay(record.listed(), |pods, _| {
            fewest = fewest.min(ready_pods(pods.values().map(AsRef::as_ref), "web"));
        });
    });
    ensure!(fewest == 2, "at some event only {fewest} of 3 pods were Ready");
    let accepted: BTreeSet<String> = bed.accepted()?.into_iter().collect();
    ensure!(accepted == pods.iter().map(uid).collect(), "evicted were {accepted:?}");
    ensure!(reasons(&plan, "web").contains("AwaitingReplacement"), "{:?}", reasons(&plan, "web"));
    Ok(())
}

async fn pods_that_ask_not_to_be_moved(bed: Bed) -> Result<()> {
    const ASKS: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
    let nodes = bed.nodes(["a"], 110).await?;
    let [node] = &nodes;
    bed.space.deployment("web", 1, &Template::new().annotation(ASKS, "false")).await?;
    let pods = bed.space.all_ready("web", 1).await?;
    bed.nodes(["spare"], 110).await?;
    let watched = bed.record_nodes().await?;

    let honouring = bed.plan("honouring", over(&nodes, "3s", "Uncordon")).await?;
    let status = honouring.ends(PlanPhase::Failed, PATIENCE).await?;
    let failed = report(&status, node)?;
    ensure!(failed.reason.as_deref() == Some(NodeReason::Blocked.as_str()), "failed as {:?}", failed.reason);
    let pod = pods.first().context("no pod")?.name_any();
    bed.says("Protected/NeverClears", waiting(failed, &pod)?)?;
    bed.explains("Protected/NeverClears", &bed.name, &pod).await?;
    bed.ensure_untouched(&watched, node)?;

    let ignoring = bed.plan("ignoring", with_pods(&nodes, "2m", json!({"protected": "Ignore"}))).await?;
    ignoring.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(bed.accepted()? == pods.iter().map(uid).collect::<Vec<_>>(), "{:?}", bed.accepted()?);
    Ok(())
}
