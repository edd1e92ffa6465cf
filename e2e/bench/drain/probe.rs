//! How long one disruption takes on the idle cluster: from an eviction's 201 until the budget has its room back.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams};
use kube::{Api, Client, ResourceExt as _};
use tokio::time::{interval, timeout};

use super::harness::{Audit, Recorder, Sight, Space, allowed, nodes};
use super::report::median;
use super::workload::{Kind, Service, pool};

/// Where the probed service is.
const SPACE: &str = "probe";
/// Single evictions.
const EVICTIONS: usize = 5;
const SETTLES: Duration = Duration::from_mins(1);
/// How often the log is read again.
const LOG: Duration = Duration::from_millis(50);

/// Evicts five pods of a service of its own, one after the other; the median time in seconds, by the audit log. Nothing of
/// it is left.
pub async fn cycle(client: &Client, audit: &Audit, like: &Service) -> Result<f64> {
    // One more for the replacement of a pod that is still going.
    nodes::create(client.clone(), &[SPACE.to_owned()], &pool(SPACE), like.replicas + 1).await?;
    let space = Space::create(client.clone(), SPACE, pool(SPACE)).await?;
    like.create(&space).await?;
    let (.., room) = like.budget.clone().context("a service without a budget has no cycle")?;
    let room = i32::try_from(room)?;
    space.budget_allows(&like.name, i32::try_from(like.replicas)?, room).await?;
    for _ in 0..EVICTIONS {
        evict_one(&space, like, room).await?;
    }

    let took =
        timeout(SETTLES, logged(audit, room)).await.context("the audit log lacks evictions or room")??;
    remove(client, &space, like).await?;
    Ok(median(&took))
}

/// The time of each eviction. A watch tells of a write before the log does: the last line is waited for.
async fn logged(audit: &Audit, room: i32) -> Result<Vec<f64>> {
    let mut look = interval(LOG);
    loop {
        look.tick().await;
        let requests = audit.requests(|request| request.namespace == SPACE)?;
        let evictions = requests.iter().filter(|request| request.is_eviction() && request.code == 201);
        let took = evictions.filter_map(|eviction| {
            let back = requests.iter().find(|request| {
                request.received > eviction.answered && request.room_written() >= Some(room)
            })?;
            Some(back.answered.duration_since(eviction.answered).as_secs_f64())
        });
        let took: Vec<f64> = took.collect();
        if took.len() >= EVICTIONS {
            ensure!(
                took.len() == EVICTIONS,
                "{} evictions are in the audit log, not {EVICTIONS}",
                took.len()
            );
            return Ok(took);
        }
    }
}

/// Evicts a Ready pod, and waits until the budget has taken note and has its room back.
async fn evict_one(space: &Space, service: &Service, room: i32) -> Result<()> {
    let pods = space.all_ready(&service.name, usize::try_from(service.replicas)?).await?;
    let pod = pods.first().context("there is no pod to evict")?.name_any();
    let budgets: Recorder<PodDisruptionBudget> = Recorder::start(space.budgets(), None).await?;
    space.pods().evict(&pod, &EvictParams::default()).await?;
    budgets
        .until("the budget's room is back", SETTLES, |record| {
            let seen = record.events.iter().skip(budgets.listed()).filter_map(|seen| allowed(&seen.object));
            let mut after = seen.skip_while(|allowed| *allowed >= room);
            if after.next().is_some() && after.any(|allowed| allowed >= room) {
                Sight::Found(())
            } else {
                Sight::NotYet(format!("{} events", record.events.len()))
            }
        })
        .await
}

async fn remove(client: &Client, space: &Space, service: &Service) -> Result<()> {
    let parameters = DeleteParams::background();
    match service.kind {
        Kind::Deployment => {
            Api::<Deployment>::namespaced(client.clone(), SPACE).delete(&service.name, &parameters).await?;
        }
        Kind::StatefulSet => {
            Api::<StatefulSet>::namespaced(client.clone(), SPACE).delete(&service.name, &parameters).await?;
        }
    }
    let pods: Recorder<Pod> = Recorder::start(space.pods(), None).await?;
    pods.until("the probed pods are gone", SETTLES, |record| match record.now.len() {
        0 => Sight::Found(()),
        left => Sight::NotYet(format!("{left} pods are left")),
    })
    .await?;
    Api::<Node>::all(client.clone()).delete(SPACE, &DeleteParams::default()).await?;
    Ok(())
}
