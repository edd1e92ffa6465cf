//! A controller that dies loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodePhase, PlanPhase};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use serde_json::json;
use tokio::time::sleep;

use super::{PATIENCE, alone, over, shared};
use crate::harness::{Bed, PlanRun, Sight, Template, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        alone!(5, controller_killed),
        alone!(16, controller_killed_again_and_again),
        shared!(24, two_of_one_name),
    ]
}

/// The deadlines and starts that the plan ever had, by node; each must have been written once.
fn clocks_stand(plan: &PlanRun) -> Result<()> {
    let mut clocks: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for status in plan.statuses() {
        for node in status.nodes.iter().filter(|node| node.phase == NodePhase::Draining) {
            let clock = format!("started {:?}, deadline {:?}", node.started_at, node.deadline);
            clocks.entry(node.name.clone()).or_default().insert(clock);
        }
    }
    ensure!(!clocks.is_empty(), "no node was ever Draining");
    for (node, clocks) in &clocks {
        ensure!(clocks.len() == 1, "node {node} had more than one clock: {clocks:#?}");
    }
    let starts: BTreeSet<String> = plan
        .statuses()
        .iter()
        .filter_map(|status| status.started_at.as_ref().map(|at| format!("{at:?}")))
        .collect();
    ensure!(starts.len() == 1, "the plan started more than once: {starts:?}");
    Ok(())
}

async fn controller_killed(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 3).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    // A pod that is still going when the new controller comes is the one that could be evicted twice.
    let slow = Template::new().sim("ready-after", "1s").sim("terminate-after", "2s");
    bed.space.deployment("web", 3, &slow).await?;
    let pods = bed.space.all_ready("web", 3).await?;
    bed.space.budget_allows("web", 3, 1).await?;
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    let originals: BTreeSet<String> = pods.iter().map(uid).collect();
    bed.space
        .pods_until("web", "the first of the three is evicted", |now| {
            let left = now
                .iter()
                .filter(|pod| originals.contains(&uid(*pod)) && pod.metadata.deletion_timestamp.is_none());
            left.count() < 3
        })
        .await?;
    bed.installation.controller.kill()?;
    let before =
        plan.until("is Draining when the controller is killed", PATIENCE, |status| match status.phase {
            Some(PlanPhase::Running) => Sight::Found(status.clone()),
            phase => Sight::Never(format!("it is {phase:?}")),
        });
    let before = before.await?;
    ensure!(before.nodes.iter().any(|node| node.phase == NodePhase::Draining && node.deadline.is_some()));
    ensure!(bed.accepted()?.len() < 3, "all evictions were accepted before the controller was killed");
    bed.installation.controller.start().await?;

    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    clocks_stand(&plan)?;
    let accepted: BTreeSet<String> = bed.accepted()?.into_iter().collect();
    ensure!(accepted == originals, "the server accepted {accepted:?}, and the pods were {originals:?}");
    for node in &nodes {
        bed.node_rests(node, false, &[]).await?;
    }
    Ok(())
}

/// Any moment may be the last one; E2E_SEED repeats a run's moments.
async fn controller_killed_again_and_again(bed: Bed) -> Result<()> {
    const KILLS: u32 = 20;
    const LONGEST_LIFE: u64 = 1500;
    let seed = match std::env::var("E2E_SEED") {
        Ok(seed) => seed.parse().context("E2E_SEED is no number")?,
        Err(_) => RandomState::new().hash_one("seed"),
    };
    let again = || format!("E2E_SEED={seed} has the same moments");

    let nodes = bed.nodes(["a", "b"], 8).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    // 16 pods, one after the other, 2 s each: that outlasts 20 lives of 0.75 s on average.
    bed.space
        .deployment("web", 16, &Template::new().sim("ready-after", "2s").sim("terminate-after", "1s"))
        .await?;
    let pods = bed.space.all_ready("web", 16).await?;
    bed.space.budget_allows("web", 16, 1).await?;
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", over(&nodes, "10m", "Uncordon")).await?;
    let mut random = seed;
    for kill in 1..=KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        sleep(Duration::from_millis((random >> 33) % LONGEST_LIFE)).await;
        bed.installation.kill_controller().await?;
        let ended = plan.statuses().last().is_some_and(|status| status.finished_at.is_some());
        ensure!(!ended, "the plan had ended before the {kill}th of {KILLS} kills; {}", again());
        bed.installation.controller.spawn()?;
    }
    bed.installation.controller.ready().await?;

    plan.ends(PlanPhase::Completed, PATIENCE).await.with_context(again)?;
    clocks_stand(&plan).with_context(again)?;
    let originals: BTreeSet<String> = pods.iter().map(uid).collect();
    let accepted: BTreeSet<String> = bed.accepted().with_context(again)?.into_iter().collect();
    ensure!(
        accepted == originals,
        "the server accepted {accepted:?}, and the pods were {originals:?}; {}",
        again()
    );
    for node in &nodes {
        bed.node_rests(node, false, &[]).await.with_context(again)?;
    }
    Ok(())
}

/// Two processes with one name are not both the one that acts, and the second says what is wrong.
async fn two_of_one_name(bed: Bed) -> Result<()> {
    let first = &bed.installation.controller;
    first.says("/metrics", "\ndrainplan_leader 1\n", Duration::from_secs(30)).await?;
    let before = bed.installation.lease().await?;
    let second = first.another()?;
    second.spawn()?;
    let ended = second.ends(Duration::from_secs(30)).await?;
    ensure!(ended.code() == Some(1), "the second ended with {ended}");
    let told = second.log_tail(1);
    for part in ["another process uses the identity e2e", "give each replica its own --identity"] {
        ensure!(told.contains(part), "\"{part}\" is missing in its last words: {told}");
    }
    let after = bed.installation.lease().await?;
    let who = |lease: &LeaseSpec| (lease.holder_identity.clone(), lease.lease_transitions);
    ensure!(who(&before) == who(&after), "the lease was {:?} and is {:?}", who(&before), who(&after));
    ensure!(after.renew_time > before.renew_time, "the first has not renewed its lease meanwhile");
    let metrics = first.get("/metrics").await?;
    ensure!(metrics.contains("\ndrainplan_leader 1\n"), "the first does not act any more: {metrics}");
    Ok(())
}
