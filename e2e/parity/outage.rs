//! What the server answers while nobody computes budgets.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use drainplan::budget::MAX_DISRUPTED_PODS;
use drainplan::cluster::{Cluster, PodPhase};

use super::compare::{self, Asked, Mismatches};
use super::live::Live;
use super::load::{BUDGETS, path};
use super::objects;
use super::server::Server;
use super::world::{Amount, Budget, Space};
use drainplan::cluster::PodKey;

/// What is done to a namespace's budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// Their spec changes, and nobody observes it.
    Change,
    /// More evictions than the server bears are unconfirmed.
    Overfill,
    /// As many as it bears.
    Fill,
    /// A new budget, which nobody has seen.
    Create,
}

/// Changes budgets, fills them up, creates new ones, and compares what the server answers then.
pub async fn outage(
    server: &Server,
    live: &Live,
    spaces: &[Space],
    mismatches: &mut Mismatches,
) -> Result<Vec<(PodKey, Asked)>> {
    let deeds = [Deed::Change, Deed::Overfill, Deed::Fill, Deed::Create];
    let mut chosen = Vec::new();
    for (space, deed) in
        spaces.iter().filter(|space| live.read(|cluster| suits(cluster, space))).zip(deeds.iter().cycle())
    {
        if chosen.len() >= 64.min(spaces.len() / 4) {
            break;
        }
        disturb(server, live, space, *deed).await?;
        chosen.push(space.name.as_str());
    }
    let of_chosen = |pod: &drainplan::cluster::Pod| chosen.contains(&&*pod.namespace);
    compare::evictions(server, live, of_chosen, mismatches).await
}

/// Running pods under one budget alone.
fn suits(cluster: &Cluster, space: &Space) -> bool {
    !space.doomed
        && cluster.pods_in(&space.name).any(|pod| {
            let under = cluster.budgets_of(pod).count();
            pod.ready && pod.phase == PodPhase::Running && !pod.terminating() && under == 1
        })
}

async fn disturb(server: &Server, live: &Live, space: &Space, deed: Deed) -> Result<()> {
    if deed == Deed::Create {
        for budget in &space.budgets {
            server.delete(&at(space, &budget.name)).await?;
        }
        let fresh = Budget {
            name: "fresh".to_owned(),
            amount: Amount::MaxInt(1),
            policy: None,
            selector: Some(json!({})),
            early: false,
            later: None,
            charge: false,
        };
        server.create(&path(BUDGETS, &space.name, "poddisruptionbudgets"), &objects::budget(&fresh)).await?;
        return live
            .until("only the fresh budget is seen", |cluster| {
                cluster.budgets_in(&space.name).map(|budget| &*budget.name).eq(["fresh"])
            })
            .await;
    }
    for budget in &space.budgets {
        let at = at(space, &budget.name);
        let before = server.get(&at).await?;
        let wanted = if deed == Deed::Change {
            let spec = Value::Object(objects::amount(Amount::MinInt(97)));
            server.merge(&at, &json!({"spec": spec})).await?;
            server.get(&at).await?
        } else {
            let count = MAX_DISRUPTED_PODS + usize::from(deed == Deed::Overfill);
            let entry = |number| (format!("gone-{number:05}"), json!("2020-01-01T00:00:00Z"));
            let disrupted: Map<String, Value> = (0..count).map(entry).collect();
            // The merge adds to what is there; those entries must go.
            let old = before
                .pointer("/status/disruptedPods")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            let nulls = old.keys().map(|name| (name.clone(), Value::Null));
            let disrupted: Map<String, Value> = disrupted.into_iter().chain(nulls).collect();
            let generation = before.pointer("/metadata/generation").cloned().unwrap_or_default();
            let status = json!({
                "disruptionsAllowed": 5, "observedGeneration": generation, "disruptedPods": disrupted,
            });
            server.merge(&format!("{at}/status"), &json!({"status": status})).await?;
            server.get(&at).await?
        };
        let version =
            wanted.pointer("/metadata/resourceVersion").and_then(Value::as_str).context("no version")?;
        live.until("a changed budget is seen", |cluster| {
            cluster
                .budgets_in(&space.name)
                .any(|known| *known.name == *budget.name && &*known.resource_version == version)
        })
        .await?;
    }
    Ok(())
}

fn at(space: &Space, budget: &str) -> String {
    path(BUDGETS, &space.name, &format!("poddisruptionbudgets/{budget}"))
}
