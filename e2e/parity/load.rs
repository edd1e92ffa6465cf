//! Brings the world into the cluster.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::apps;
use super::live::Live;
use super::objects::{self, GROUP};
use super::server::Server;
use super::world::Space;

/// How many namespaces are worked on at once.
pub const AT_ONCE: usize = 12;

pub const BUDGETS: &str = "apis/policy/v1";

/// A path inside a namespace.
pub fn path(root: &str, space: &str, resource: &str) -> String {
    format!("/{root}/namespaces/{space}/{resource}")
}

/// Defines the custom kinds, and waits until they are served.
pub async fn define(server: &Server) -> Result<()> {
    for (kind, plural, scaled) in
        [("Shard", "shards", true), ("Ring", "rings", false), ("Deployment", "deployments", false)]
    {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server.create(definitions, &objects::definition(kind, plural, scaled)).await?;
        let at = format!("{definitions}/{plural}.{GROUP}");
        await_that(&format!("{kind} is served"), || async {
            let conditions =
                server.get(&at).await?.pointer("/status/conditions").cloned().unwrap_or_default();
            let served = |condition: &Value| {
                condition.get("type") == Some(&json!("Established"))
                    && condition.get("status") == Some(&json!("True"))
            };
            Ok(conditions.as_array().is_some_and(|conditions| conditions.iter().any(served)))
        })
        .await?;
    }
    Ok(())
}

/// Creates the nodes.
pub async fn nodes(server: &Server) -> Result<()> {
    for number in 0..objects::NODES {
        server.create("/api/v1/nodes", &objects::node(number)).await?;
    }
    Ok(())
}

/// Looks again and again until something holds that no watch of ours shows.
async fn await_that<W: Future<Output = Result<bool>>>(what: &str, holds: impl Fn() -> W) -> Result<()> {
    let started = Instant::now();
    while !holds().await? {
        if started.elapsed() > Duration::from_mins(2) {
            bail!("waited two minutes until {what}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Namespaces, and the budgets that come before any pod.
pub async fn early(server: &Server, spaces: &[Space]) -> Result<()> {
    for_each(spaces, |space| async move {
        server.create("/api/v1/namespaces", &json!({"metadata": {"name": space.name}})).await?;
        // The controller makes one, too, in its own time; without it no pod can be created.
        let account = json!({"metadata": {"name": "default"}});
        server.ensure(&path("api/v1", &space.name, "serviceaccounts"), &account).await?;
        create_budgets(server, space, true).await
    })
    .await
}

/// Owners, pods and the other budgets.
pub async fn late(server: &Server, spaces: &[Space]) -> Result<()> {
    for_each(spaces, |space| async move {
        for app in &space.apps {
            apps::create(server, &space.name, app).await?;
        }
        create_budgets(server, space, false).await
    })
    .await
}

/// Does something for all namespaces, a few at once.
pub async fn for_each<'a, F, W>(spaces: &'a [Space], work: F) -> Result<()>
where
    F: Fn(&'a Space) -> W,
    W: Future<Output = Result<()>>,
{
    stream::iter(spaces).map(work).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

async fn create_budgets(server: &Server, space: &Space, early: bool) -> Result<()> {
    for budget in space.budgets.iter().filter(|budget| budget.early == early) {
        server.create(&path(BUDGETS, &space.name, "poddisruptionbudgets"), &objects::budget(budget)).await?;
    }
    Ok(())
}

/// Waits until a budget over a custom kind is computed: one that comes before the controller manager knows the kind
/// fails, and is not tried again by itself.
pub async fn kinds_are_known(server: &Server, live: &Live) -> Result<()> {
    const SPACE: &str = "kinds";
    server.create("/api/v1/namespaces", &json!({"metadata": {"name": SPACE}})).await?;
    server
        .ensure(&path("api/v1", SPACE, "serviceaccounts"), &json!({"metadata": {"name": "default"}}))
        .await?;
    let shards = path(&format!("apis/{GROUP}/v1"), SPACE, "shards");
    let shard = server.create(&shards, &objects::custom("Shard", "probe", Some(1))).await?;
    let pod = json!({
        "metadata": {"name": "probe", "ownerReferences": [apps::owned(&shard, "Shard")]},
        "spec": {"containers": [{"name": "main", "image": "none"}], "nodeName": objects::node_name(0)},
    });
    server.create(&path("api/v1", SPACE, "pods"), &pod).await?;
    let budget = json!({"metadata": {"name": "probe"}, "spec": {"maxUnavailable": 1, "selector": {}}});
    server.create(&path(BUDGETS, SPACE, "poddisruptionbudgets"), &budget).await?;
    let at = path(BUDGETS, SPACE, "poddisruptionbudgets/probe");
    let attempts = AtomicUsize::new(0);
    await_that("the controller manager knows the custom kinds", || async {
        // A change makes it try again.
        let attempt = attempts.fetch_add(1, Ordering::Relaxed).to_string();
        server.merge(&at, &json!({"metadata": {"annotations": {"attempt": attempt}}})).await?;
        live.quiet(Duration::from_millis(300)).await?;
        Ok(live.read(|cluster| cluster.budgets_in(SPACE).any(|known| known.status.expected_pods == 1)))
    })
    .await?;
    server.delete(&format!("/api/v1/namespaces/{SPACE}")).await
}
