//! What is on the cluster before the plan comes.

use std::path::Path;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use serde_json::{Map, json};

use super::harness::{Installation, PlanRun, Recorder, Space, Template, node_of, nodes, uid};
use super::screen::say;

/// The plan, as the samples have it.
pub const SAMPLE: &str = "manifests/samples/rehearsal.yaml";
pub const PLAN: &str = "rehearsal";
/// The nodes with the shop's pods.
pub const WITH_SHOP: [&str; 3] = ["worker-1", "worker-3", "worker-4"];
/// The node with the ledger.
pub const HELD: &str = "worker-2";
/// The pods of the shop.
pub const REPLICAS: usize = 6;

/// The objects, and everything that happens to them.
pub struct Story {
    pub plan: PlanRun,
    pub shop: Recorder<Pod>,
    pub nodes: Recorder<Node>,
    pub events: Recorder<Event>,
    /// The uids of the shop's pods before the plan.
    pub originals: Vec<String>,
}

impl Story {
    /// Six replicas of `shop/web`, two on each of three workers, and two of `billing/ledger` on the fourth. The workers
    /// have no more room, so that every pod is moved once, to the spare node.
    pub async fn load(installation: &Installation, drainable: bool) -> Result<Self> {
        let client = installation.client();
        let pool = |pool: &str| Map::from_iter([("pool".to_owned(), json!(pool))]);
        let least = if drainable { 1 } else { 2 };
        say!(
            "  shop/web        6 replicas on worker-1, -3 and -4, Ready 2 s after they start, maxUnavailable: 1"
        );
        say!("  billing/ledger  2 replicas on worker-2, minAvailable: {least}");
        say!("  spare           an empty node that is not in the plan");

        nodes::create(client.clone(), &WITH_SHOP.map(ToOwned::to_owned), &pool("workers"), 2).await?;
        let shop = Space::create(client.clone(), "shop", Map::new()).await?;
        shop.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
        shop.deployment("web", 6, &Template::new().sim("ready-after", "2s")).await?;
        let pods = shop.all_ready("web", REPLICAS).await?;
        for worker in WITH_SHOP {
            let there = pods.iter().filter(|pod| node_of(pod) == worker).count();
            ensure!(there == 2, "{there} pods of shop/web are on {worker}, not 2");
        }

        nodes::create(client.clone(), &[HELD.to_owned()], &pool("workers"), 2).await?;
        let billing = Space::create(client.clone(), "billing", Map::new()).await?;
        billing.budget("ledger", &["ledger"], json!({"minAvailable": least})).await?;
        billing.deployment("ledger", 2, &Template::new()).await?;
        billing.all_ready("ledger", 2).await?;
        shop.budget_allows("web", 6, 1).await?;
        billing.budget_allows("ledger", 2, 2 - least).await?;
        nodes::create(client.clone(), &["spare".to_owned()], &pool("spare"), 110).await?;

        Ok(Self {
            shop: Recorder::start(shop.pods(), None).await?,
            nodes: Recorder::start(Api::all(client.clone()), None).await?,
            events: Recorder::start(Api::all(client.clone()), None).await?,
            plan: PlanRun::watch(client, PLAN).await?,
            originals: pods.iter().map(uid).collect(),
        })
    }

    /// Applies the sample, as a user would.
    pub async fn apply(installation: &Installation) -> Result<()> {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE);
        installation
            .testbed
            .kubectl(&["apply", "--server-side", "-f", &sample.display().to_string()])
            .await?;
        Ok(())
    }
}
