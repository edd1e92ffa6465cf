//! What is on the cluster before the plan comes.

use std::path::Path;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use super::harness::{Installation, PlanRun, Recorder, Request, Space, Template, node_of, nodes, uid};
use super::held::{HELD, Held};
use super::screen::say;

/// The plan, as the samples have it.
pub const SAMPLE: &str = "manifests/samples/rehearsal.yaml";
pub const PLAN: &str = "rehearsal";
/// The nodes with the shop's pods, and how many are on each.
pub const WITH_SHOP: [&str; 4] = ["worker-1", "worker-4", "worker-8", "worker-9"];
pub const ON_EACH: u32 = 2;
/// The pods of the shop, and how long one takes to be Ready.
pub const REPLICAS: u32 = 8;
const READY_AFTER: &str = "2s";

/// How the cluster is loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// As the demo tells it.
    Told,
    /// The ledger's budget lets go what it should hold, and the shop's lets two pods go at once.
    Lax,
}

/// The objects, and everything that happens to them.
pub struct Story {
    pub plan: PlanRun,
    pub shop: Recorder<Pod>,
    pub nodes: Recorder<Node>,
    pub events: Recorder<Event>,
    /// The uids of the shop's pods before the plan.
    pub originals: Vec<String>,
    /// The pods that are held, by workload.
    pub held: Vec<(&'static Held, Vec<Pod>)>,
}

impl Story {
    /// The workers have no more room than their pods need, so that every pod that is evicted is moved once, to the spare
    /// node or to a worker that is done.
    pub async fn load(installation: &Installation, load: Load) -> Result<Self> {
        let client = installation.client();
        let pool = |pool: &str| Map::from_iter([("pool".to_owned(), json!(pool))]);
        let shop = Space::create(client.clone(), "shop", Map::new()).await?;
        let originals = load_shop(client.clone(), &shop, &pool("workers"), load).await?;
        let mut held = Vec::new();
        for one in &HELD {
            held.push((one, one.load(client.clone(), &pool("workers"), load).await?));
        }
        nodes::create(client.clone(), &["spare".to_owned()], &pool("spare"), 110).await?;
        tell("-", "spare", "a node that is not in the plan");

        Ok(Self {
            shop: Recorder::start(shop.pods(), None).await?,
            nodes: Recorder::start(Api::all(client.clone()), None).await?,
            events: Recorder::start(Api::all(client.clone()), None).await?,
            plan: PlanRun::watch(client, PLAN).await?,
            originals,
            held,
        })
    }

    /// Whether the request is about a pod that the shop had before the plan.
    pub fn is_original(&self, eviction: &Request) -> bool {
        eviction.precondition().is_some_and(|uid| self.originals.iter().any(|original| original == uid))
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

/// Eight replicas, two on each of four workers: slow to be replaced, and nothing is wrong with that.
async fn load_shop(
    client: Client,
    shop: &Space,
    pool: &Map<String, Value>,
    load: Load,
) -> Result<Vec<String>> {
    let at_once = if load == Load::Lax { 2 } else { 1 };
    let told = format!("{REPLICAS} replicas, maxUnavailable: {at_once}, Ready {READY_AFTER} after a start");
    tell("shop/web", "worker-1, -4, -8, -9", &told);
    nodes::create(client, &WITH_SHOP.map(ToOwned::to_owned), pool, ON_EACH).await?;
    shop.budget("web", &["web"], json!({"maxUnavailable": at_once})).await?;
    shop.deployment("web", REPLICAS, &Template::new().sim("ready-after", READY_AFTER)).await?;
    let pods = shop.all_ready("web", usize::try_from(REPLICAS)?).await?;
    for worker in WITH_SHOP {
        let there = pods.iter().filter(|pod| node_of(pod) == worker).count();
        ensure!(
            there == usize::try_from(ON_EACH)?,
            "{there} pods of shop/web are on {worker}, not {ON_EACH}"
        );
    }
    shop.budget_allows("web", i32::try_from(REPLICAS)?, at_once).await?;
    Ok(pods.iter().map(uid).collect())
}

/// One line about what is on which node.
pub fn tell(workload: &str, node: &str, what: &str) {
    say!("  {workload:<15} {node:<21} {what}");
}
