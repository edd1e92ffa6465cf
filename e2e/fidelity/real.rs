//! A drain on the testbed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use drainplan::api::DrainPlanStatus;
use drainplan::cluster::{Amount, UnhealthyPolicy};
use drainplan::simulate::{After, BudgetSetup, OwnerKind, WorkloadSetup};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::course::Course;
use super::drains::{Drain, PROMPT, ROOMY};
use super::harness::{Bed, Installation, Recorder, Sight, Template, is_ready, node_of, nodes};

/// Long enough for every drain.
const LIMIT: Duration = Duration::from_mins(3);

/// Where the first pods of each workload are, by their order.
pub type Placed = BTreeMap<String, Vec<String>>;

/// Plays it; also says where the pods were at the beginning.
pub async fn play(
    installation: &Arc<Installation>,
    number: usize,
    drain: &Drain,
) -> Result<(Course, Placed)> {
    let bed = Bed::new(Arc::clone(installation), &format!("fid-{number:02}")).await?;
    let prefix = bed.named("");
    for budget in &drain.budgets {
        let apps: Vec<&str> = budget.apps.iter().map(String::as_str).collect();
        bed.space.budget(&budget.name, &apps, fields(budget)).await?;
    }
    let mut placed = Placed::new();
    for group in &drain.groups {
        for node in &group.nodes {
            bed.nodes([node], group.room).await?;
        }
        for workload in &group.workloads {
            let mut pods = load(&bed, workload).await?;
            pods.sort_by_key(Pod::name_any);
            let on = |pod: &Pod| node_of(pod).strip_prefix(&prefix).unwrap_or_default().to_owned();
            placed.insert(workload.name.clone(), pods.iter().map(on).collect());
        }
    }
    for budget in &drain.budgets {
        counted(&bed, drain, budget).await?;
    }
    if drain.spare {
        bed.nodes(["spare"], ROOMY).await?;
    }
    if drain.roomy {
        for node in drain.groups.iter().flat_map(|group| &group.nodes) {
            nodes::resize(bed.client(), &bed.named(node), ROOMY).await?;
        }
    }

    let pods = Recorder::start(bed.space.pods(), None).await?;
    half_past().await;
    let began = Instant::now();
    let plan = bed.plan("plan", drain.spec(&prefix)).await?;
    let ends = |status: &DrainPlanStatus| match &status.finished_at {
        Some(_) => Sight::Found(()),
        None => Sight::NotYet(format!("{:?}", status.nodes)),
    };
    plan.until("ends", LIMIT, ends).await?;
    let mut course = Course::of(drain, &plan.statuses(), &prefix, began.elapsed())?;

    for eviction in bed.evictions()?.iter().filter(|eviction| eviction.code == 201) {
        let uid = eviction.precondition().context("an eviction without a uid")?;
        let node = pods.with(|record| {
            let of = record.events.iter().map(|seen| &seen.object);
            let mut of = of.filter(|pod| pod.metadata.uid.as_deref() == Some(uid));
            of.find(|pod| !node_of(pod).is_empty()).map(|pod| node_of(pod).to_owned())
        });
        let node = node.with_context(|| format!("a pod that was never seen: {}", eviction.line()))?;
        course.moved(drain.workload_of(&eviction.name), node.strip_prefix(&prefix).unwrap_or(&node));
    }
    Ok((course, placed))
}

/// Creates a workload and awaits its pods.
async fn load(bed: &Bed, workload: &WorkloadSetup) -> Result<Vec<Pod>> {
    let (name, replicas) = (workload.name.as_str(), u32::try_from(workload.replicas)?);
    let template = template(workload);
    match workload.kind {
        OwnerKind::Deployment => drop(bed.space.deployment(name, replicas, &template).await?),
        OwnerKind::StatefulSet { parallel: true } => {
            drop(bed.space.stateful_set(name, replicas, &template).await?);
        }
        OwnerKind::Job => drop(bed.space.job(name, &template).await?),
        OwnerKind::Nobody => drop(bed.space.pod(name, &template).await?),
        other => bail!("{name}: {other:?} is not played on the testbed"),
    }
    let count = usize::try_from(replicas)?;
    let finishes = workload.template.completes != After::Never;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    let there = |pod: &Pod| {
        if finishes { phase(pod).as_deref() == Some("Succeeded") } else { is_ready(pod) }
    };
    bed.space
        .pods_until(name, &format!("{count} pods"), |all| all.len() == count && all.iter().all(there))
        .await
}

/// What the simulated kubelet is told.
fn template(workload: &WorkloadSetup) -> Template {
    let of = &workload.template;
    let hints = [
        ("ready", of.ready),
        ("complete", if of.completes == After::Never { After::millis(0) } else { of.completes }),
        ("terminate", of.terminates),
    ];
    let mut template = Template::new();
    for (what, when) in hints {
        template = match when {
            After::Never => template.sim(what, "never"),
            After::Some(wait) if wait > PROMPT => {
                template.sim(&format!("{what}-after"), &format!("{}ms", wait.as_millis()))
            }
            After::Some(_) => template,
        };
    }
    if of.finalizer.is_some() {
        template = template.finalizer("e2e.drainplan.dev/hold");
    }
    if of.empty_dir { template.empty_dir("scratch") } else { template }
}

/// What a budget says.
fn fields(budget: &BudgetSetup) -> Value {
    let amount = |amount: &Amount| match amount {
        Amount::Int(pods) => json!(pods),
        Amount::Text(text) => json!(&**text),
    };
    let given = [("minAvailable", &budget.min_available), ("maxUnavailable", &budget.max_unavailable)];
    let given = given.into_iter().filter_map(|(name, of)| Some((name.to_owned(), amount(of.as_ref()?))));
    let mut fields: Map<String, Value> = given.collect();
    if budget.unhealthy_policy == UnhealthyPolicy::AlwaysAllow {
        fields.insert("unhealthyPodEvictionPolicy".to_owned(), json!("AlwaysAllow"));
    }
    Value::Object(fields)
}

/// Awaits that the disruption controller has counted all pods of a budget, if it ever does: of two over one pod it counts
/// one.
async fn counted(bed: &Bed, drain: &Drain, budget: &BudgetSetup) -> Result<()> {
    let of = drain.workloads().filter(|workload| budget.apps.contains(&workload.name));
    let healthy: i32 =
        of.filter(|workload| workload.template.completes == After::Never).map(|of| of.replicas).sum();
    let shares = |other: &&BudgetSetup| other.apps.iter().any(|app| budget.apps.contains(app));
    let shared = drain.budgets.iter().filter(shares).count() > 1;
    let counted = |budget: &PodDisruptionBudget| {
        let Some(status) = &budget.status else { return false };
        let failed = status.conditions.iter().flatten().any(|condition| condition.reason == "SyncFailed");
        let current = status.observed_generation == budget.metadata.generation;
        failed || (current && (shared || status.current_healthy == Some(healthy)))
    };
    bed.space.budget_until(&budget.name, &format!("{healthy} healthy, or SyncFailed"), counted).await
}

/// A status keeps whole seconds, so a plan must be created at the same part of one wherever it is played. Nothing tells
/// of it but the clock.
async fn half_past() {
    const SECOND: i32 = 1_000_000_000;
    let wait = (SECOND / 2 - Timestamp::now().subsec_nanosecond()).rem_euclid(SECOND);
    tokio::time::sleep(Duration::from_nanos(u64::try_from(wait).unwrap_or(0))).await;
}
