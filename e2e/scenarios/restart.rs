//! A controller that dies loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use drainplan::api::{NodePhase, PlanPhase};
use serde_json::json;

use super::alone;
use crate::harness::{Bed, PlanRun, Sight, Template, uid};
use crate::runner::Case;

const MINUTES: Duration = Duration::from_mins(2);

pub fn cases() -> Vec<Case> {
    vec![alone!(5, controller_killed)]
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
    let nodes = bed.nodes(&["a"], 3).await?;
    bed.space.budget("web", json!({"app": "web"}), json!({"maxUnavailable": 1})).await?;
    // A pod that is still going when the new controller comes is the one that could be evicted twice.
    let slow = Template::new().sim("ready-after", "1s").sim("terminate-after", "2s");
    bed.space.deployment("web", 3, &slow).await?;
    let pods = bed.space.all_ready("web", 3).await?;
    bed.space.budget_allows("web", 3, 1).await?;
    bed.nodes(&["spare"], 110).await?;

    let plan = bed
        .plan(
            "plan",
            json!({
                "nodes": {"names": nodes},
                "timeouts": {"node": "2m"},
                "handOff": {"then": "Uncordon"},
            }),
        )
        .await?;
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
        plan.until("is Draining when the controller is killed", MINUTES, |status| match status.phase {
            Some(PlanPhase::Running) => Sight::Found(status.clone()),
            phase => Sight::Never(format!("it is {phase:?}")),
        });
    let before = before.await?;
    ensure!(before.nodes.iter().any(|node| node.phase == NodePhase::Draining && node.deadline.is_some()));
    ensure!(bed.accepted()?.len() < 3, "all evictions were accepted before the controller was killed");
    bed.installation.controller.start().await?;

    plan.ends(PlanPhase::Completed, MINUTES).await?;
    clocks_stand(&plan)?;
    let accepted: BTreeSet<String> = bed.accepted()?.into_iter().collect();
    ensure!(accepted == originals, "the server accepted {accepted:?}, and the pods were {originals:?}");
    for node in &nodes {
        bed.node_rests(node, false, &[]).await?;
    }
    Ok(())
}
