//! Plans that run more than once, and plans that only look.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use drainplan::api::{DrainPlanStatus, LastRun, PlanPhase, condition};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{PATIENCE, over, shared};
use crate::harness::{Bed, PlanRun, Sight, Template, told};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(100, run_in_each_window), shared!(101, preflight)]
}

/// Awaits that the plan has ended that run.
async fn ends_run(plan: &PlanRun, number: i32) -> Result<(DrainPlanStatus, LastRun)> {
    plan.until(&format!("ends run {number}"), PATIENCE, |status| match &status.last_run {
        Some(last) if last.run == number => Sight::Found((status.clone(), last.clone())),
        _ => Sight::NotYet(told(status)),
    })
    .await
}

fn said(status: &DrainPlanStatus, type_: &str) -> Option<(String, String)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.clone(), found.message.clone()))
}

fn with(spec: Value, more: Value) -> Value {
    let mut spec = spec;
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    spec
}

/// Windows that touch are one: what opens here is the end of an exclusion.
async fn run_in_each_window(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 4).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 2, &Template::new()).await?;
    bed.space.all_ready("web", 2).await?;
    bed.space.budget_allows("web", 2, 1).await?;
    bed.nodes(["spare"], 110).await?;
    let window = json!({"schedule": "*/30 * * * *", "duration": "30m"});
    let spec = with(over(&nodes, "1m", "Uncordon"), json!({"repeat": "EachWindow", "windows": [window]}));
    // For ever open, nothing ever opens.
    let endless = bed.plan("endless", spec.clone()).await?;
    endless.shows("InvalidSpec", PATIENCE, |status| said(status, condition::STALLED).is_some()).await?;
    endless.delete().await?;
    let far = Timestamp::from_second(Timestamp::now().as_second() + 36_000)?;
    let far = json!({"start": far, "end": Timestamp::from_second(far.as_second() + 60)?});
    let plan = bed.plan("plan", with(spec, json!({"exclusions": [far]}))).await?;
    let (status, last) = ends_run(&plan, 1).await?;
    ensure!(
        (last.phase, last.pods_evicted, last.node_counts.done) == (PlanPhase::Completed, 2, 1),
        "{last:?}"
    );
    ensure!(status.phase == Some(PlanPhase::Scheduled) && status.finished_at.is_none(), "{}", told(&status));
    let ready = said(&status, condition::READY).context("no Ready")?;
    ensure!(ready.0 == "True" && ready.1.starts_with("run 1 completed: 1 of 1 node"), "Ready is {ready:?}");
    bed.node_rests(&nodes[0], false, &[]).await?;

    // A pod for the second run, on the same node and nowhere else.
    bed.space.deployment("tied", 1, &Template::new().only_on(&[&nodes[0]])).await?;
    bed.space.all_ready("tied", 1).await?;
    let start = Timestamp::from_second(Timestamp::now().as_second() + 2)?;
    let end = Timestamp::from_second(start.as_second() + 4)?;
    plan.change(json!({"exclusions": [{"start": start, "end": end}, far]})).await?;
    let (status, last) = ends_run(&plan, 2).await?;
    ensure!(
        (last.phase, last.pods_evicted, last.node_counts.done) == (PlanPhase::Completed, 1, 1),
        "{last:?}"
    );
    let started = last.started_at.as_ref().map(|time| time.0);
    ensure!(started.is_some_and(|at| at >= end), "it began at {started:?}, and the exclusion ends at {end}");
    ensure!(status.run == Some(2) && status.finished_at.is_none(), "{}", told(&status));
    bed.node_rests(&nodes[0], false, &[]).await?;
    bed.space.all_ready("tied", 1).await?;
    let evictions = bed.evictions()?;
    let refused = evictions.iter().find(|eviction| eviction.code != 201);
    ensure!(evictions.len() == 3 && refused.is_none(), "{evictions:#?}");

    // No more of it: the plan ends as its last run did.
    plan.change(json!({"repeat": "Once"})).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(status.finished_at == Some(last.finished_at), "{:?}", status.finished_at);
    plan.delete().await?;
    plan.gone(PATIENCE).await
}

async fn preflight(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b"], 4).await?;
    let spare = bed.named("spare");
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.budget("ledger", &["ledger"], json!({"minAvailable": 2})).await?;
    bed.space.deployment("web", 2, &Template::new().only_on(&[&nodes[0], &spare])).await?;
    bed.space.deployment("ledger", 2, &Template::new().only_on(&[&nodes[1], &spare])).await?;
    bed.space.all_ready("web", 2).await?;
    bed.space.all_ready("ledger", 2).await?;
    bed.space.budget_allows("web", 2, 1).await?;
    bed.space.budget_allows("ledger", 2, 0).await?;
    bed.nodes(["spare"], 110).await?;
    let watched = bed.record_nodes().await?;
    let looks = with(over(&nodes, "30s", "Uncordon"), json!({"preflightOnly": true}));
    let plan = bed.plan("plan", looks).await?;

    let (passed, message) = judged(&plan, "False").await?;
    let named = format!("{}/ledger", bed.space.name);
    ensure!(passed == "False" && message.contains(&named) && message.contains("1 of 2 nodes"), "{message}");
    bed.space.budgets().delete("ledger", &kube::api::DeleteParams::default()).await?;
    let (_, message) = judged(&plan, "True").await?;
    ensure!(message.contains("2 of 2 nodes can be drained, by 4 evictions"), "{message}");
    for node in &nodes {
        bed.ensure_untouched(&watched, node)?;
    }
    let started = plan.statuses().iter().any(|status| status.started_at.is_some());
    ensure!(!started, "a plan that only looks has started");

    plan.change(json!({"preflightOnly": false, "suspend": true})).await?;
    plan.change(json!({"preflightOnly": true, "suspend": false})).await.context("it has not started")?;
    plan.change(json!({"preflightOnly": false})).await?;
    let mut command = status_command(&bed, &plan);
    let watched = tokio::task::spawn_blocking(move || command.output());
    plan.drains(&nodes[0], PATIENCE).await?;
    match plan.change(json!({"preflightOnly": true})).await {
        Err(kube::Error::Api(status)) if status.message.contains("write suspend: true to hold it") => {}
        other => bail!("a plan that has started went back to looking: {other:?}"),
    }
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(said(&status, condition::PREFLIGHT_PASSED).is_none(), "PreflightPassed is still said");
    let watched = timeout(PATIENCE, watched).await.context("status --watch goes on")???;
    let text = String::from_utf8(watched.stdout)?;
    ensure!(watched.status.success(), "status --watch ended with {}: {text}", watched.status);
    for phase in ["Running", "Completed"] {
        ensure!(text.contains(&format!("{} is {phase}", plan.name)), "{phase} is not in:\n{text}");
    }
    ensure!(text.contains("2/2 nodes done; pods: 4 evicted, 0 waiting, 0 going"), "{text}");
    Ok(())
}

/// `kubectl drainplan status PLAN --watch`.
fn status_command(bed: &Bed, plan: &PlanRun) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-drainplan"));
    command
        .args(["status", &plan.name, "--watch", "--kubeconfig"])
        .arg(bed.installation.testbed.kubeconfig());
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

async fn judged(plan: &PlanRun, passed: &str) -> Result<(String, String)> {
    plan.until(&format!("says PreflightPassed {passed}"), PATIENCE, |status| {
        match said(status, condition::PREFLIGHT_PASSED) {
            Some(said) if said.0 == passed => Sight::Found(said),
            other => Sight::NotYet(format!("{other:?}")),
        }
    })
    .await
}
