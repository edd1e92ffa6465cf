//! Plans as pipelines see them: waits for conditions, and changes of the spec.

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{DrainPlanStatus, NodePhase, PlanPhase};
use jiff::SignedDuration;
use serde_json::json;

use super::{PATIENCE, over, report, shared};
use crate::harness::{Bed, Template};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(86, waits_for_conditions), shared!(87, spec_changed_while_running)]
}

async fn waits_for_conditions(bed: Bed) -> Result<()> {
    let [free, held] = bed.nodes(["a", "b"], 1).await?;
    bed.space.deployment("web", 1, &Template::new().only_on(&[&free, &bed.named("spare")])).await?;
    bed.space.all_ready("web", 1).await?;
    bed.space.budget("db", &["db"], json!({"maxUnavailable": 0})).await?;
    bed.space.deployment("db", 1, &Template::new().only_on(&[&held])).await?;
    bed.space.all_ready("db", 1).await?;
    bed.space.budget_allows("db", 1, 0).await?;
    bed.nodes(["spare"], 110).await?;
    let testbed = &bed.installation.testbed;
    for (suffix, node, condition, phase) in
        [("free", free, "Ready", PlanPhase::Completed), ("held", held, "Stalled", PlanPhase::Failed)]
    {
        let plan = bed.plan(suffix, over(&[node], "5s", "Uncordon")).await?;
        let (object, wanted) = (format!("drainplan/{}", plan.name), format!("--for=condition={condition}"));
        let told = testbed.kubectl(&["wait", &object, &wanted, "--timeout=120s"]).await?;
        ensure!(told.contains("condition met"), "kubectl wait said {told}");
        let status = plan.statuses().pop().context("it has a status")?;
        let true_now = status.conditions.iter().any(|it| it.type_ == condition && it.status == "True");
        ensure!(true_now, "kubectl wait returned, and {condition} is not True: {:?}", status.conditions);
        plan.ends(phase, PATIENCE).await?;
    }
    Ok(())
}

async fn spec_changed_while_running(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b", "c"], 1).await?;
    bed.space.deployment("web", 3, &Template::new().sim("terminate-after", "8s")).await?;
    bed.space.all_ready("web", 3).await?;
    bed.nodes(["spare"], 110).await?;
    let plan = bed.plan("plan", over(&nodes, "1m", "Uncordon")).await?;
    plan.drains(&nodes[0], PATIENCE).await?;
    let mut spec = over(&nodes, "2m", "Uncordon");
    spec["pace"] = json!({"maxConcurrentNodes": 3});
    let changed = plan.change(spec).await?;
    let generation = changed.metadata.generation;
    plan.shows("the new generation", PATIENCE, |status| status.observed_generation == generation).await?;
    let known = plan.statuses().into_iter().find(|status| status.observed_generation == generation);
    let known = known.context("it has just been shown")?;
    ensure!(in_progress(&known) == 3, "{} nodes are in progress with the new spec", in_progress(&known));
    let first = report(&known, &nodes[0])?;
    let lasts =
        |at: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| at.as_ref().map(|at| at.0);
    let started = lasts(&first.started_at).context("it has started")?;
    let deadline = lasts(&first.deadline).context("it has a deadline")?;
    ensure!(deadline.duration_since(started) == SignedDuration::from_mins(2), "{started} to {deadline}");
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let before = plan.statuses().into_iter().filter(|status| status.observed_generation != generation);
    ensure!(before.map(|status| in_progress(&status)).max() == Some(1), "more than one at once before");
    Ok(())
}

fn in_progress(status: &DrainPlanStatus) -> usize {
    status.nodes.iter().filter(|node| node.phase == NodePhase::Draining).count()
}
