//! What happens to the world while it runs.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use drainplan::cluster::Pod;

use super::live::Live;
use super::load::{BUDGETS, for_each, path};
use super::objects;
use super::server::Server;
use super::world::{App, Churn, Health, Owner, Space};

/// Rollouts, scales, deletions, ailments, and changed budgets.
pub async fn churn(server: &Server, live: &Live, spaces: &[Space]) -> Result<()> {
    for_each(spaces, |space| async move {
        if space.doomed {
            return server.delete(&format!("/api/v1/namespaces/{}", space.name)).await;
        }
        for app in &space.apps {
            churn_app(server, live, &space.name, app).await?;
        }
        for budget in &space.budgets {
            if let Some(later) = budget.later {
                let spec = Value::Object(objects::amount(later));
                let at = path(BUDGETS, &space.name, &format!("poddisruptionbudgets/{}", budget.name));
                server.merge(&at, &json!({"spec": spec})).await?;
            }
        }
        Ok(())
    })
    .await
}

/// Charges budgets with evictions that are not carried out: a wrong uid is answered 409, and the pod's name stays in
/// disruptedPods for two minutes.
pub async fn charge(server: &Server, live: &Live, spaces: &[Space]) -> Result<()> {
    for_each(spaces, |space| async move {
        for budget in space.budgets.iter().filter(|budget| budget.charge && !space.doomed) {
            let chosen = live.read(|cluster| {
                let budget = cluster.budgets_in(&space.name).find(|known| *known.name == *budget.name)?;
                let ready = |pod: &&Arc<Pod>| pod.ready && !pod.terminating() && budget.selects(&pod.labels);
                cluster.pods_in(&space.name).find(ready).map(|pod| pod.name.clone())
            });
            if let Some(name) = chosen {
                let wrong = "00000000-0000-0000-0000-000000000000";
                server.evict(&space.name, &name, Some(wrong), false).await?;
            }
        }
        Ok(())
    })
    .await
}

/// Lets the controller look at every budget once more: it does not by itself when only a scale has changed.
pub async fn touch(server: &Server, spaces: &[Space]) -> Result<()> {
    for_each(spaces, |space| async move {
        for budget in space.budgets.iter().filter(|_| !space.doomed) {
            let at = path(BUDGETS, &space.name, &format!("poddisruptionbudgets/{}", budget.name));
            server.merge(&at, &json!({"metadata": {"annotations": {"touched": "once"}}})).await?;
        }
        Ok(())
    })
    .await
}

async fn churn_app(server: &Server, live: &Live, space: &str, app: &App) -> Result<()> {
    let own = |resource: &str, root: &str| path(root, space, &format!("{resource}/{}", app.id));
    let ours = format!("apis/{}/v1", objects::GROUP);
    match app.owner {
        Owner::Rollout => {
            let template = json!({"metadata": {"annotations": {"sim.drainplan.dev/ready": "never"}}});
            server
                .merge(&own("deployments", "apis/apps/v1"), &json!({"spec": {"template": template}}))
                .await?;
        }
        Owner::GoneShard => server.delete(&own("shards", &ours)).await?,
        Owner::GoneReplicaSet => server.delete(&own("replicasets", "apis/apps/v1")).await?,
        Owner::RebornReplicaSet => {
            server.delete(&own("replicasets", "apis/apps/v1")).await?;
            live.until("a ReplicaSet is gone", |cluster| {
                !cluster.workloads().any(|known| *known.namespace == *space && *known.name == *app.id)
            })
            .await?;
            let mut reborn = objects::workload("ReplicaSet", app, &objects::template(app, Health::Ready));
            if let Some(replicas) = reborn.pointer_mut("/spec/replicas") {
                *replicas = json!(0);
            }
            server.create(&path("apis/apps/v1", space, "replicasets"), &reborn).await?;
        }
        _ => {}
    }
    for (number, _) in app.pods.iter().enumerate().filter(|(_, health)| **health == Health::Terminating) {
        server.delete(&path("api/v1", space, &format!("pods/{}-x{number}", app.id))).await?;
    }
    let pods: Vec<Arc<Pod>> = live.read(|cluster| {
        let mine =
            |pod: &&Arc<Pod>| pod.labels.get("id").is_some_and(|id| **id == *app.id) && !pod.terminating();
        cluster.pods_in(space).filter(mine).cloned().collect()
    });
    let chosen = usize::try_from(app.dice).ok().and_then(|dice| pods.get(dice % pods.len().max(1)));
    let annotate = |pod: &Pod, key: &str, value: &str| {
        let at = path("api/v1", space, &format!("pods/{}", pod.name));
        let patch = json!({"metadata": {"annotations": {format!("sim.drainplan.dev/{key}"): value}}});
        async move { server.merge(&at, &patch).await }
    };
    match (app.churn, chosen) {
        (Churn::UnreadyOne, Some(pod)) => annotate(pod, "ready", "never").await,
        (Churn::FinishOne, Some(pod)) => annotate(pod, "complete-after", "1s").await,
        (Churn::DeleteOne, Some(pod)) => {
            server.delete(&path("api/v1", space, &format!("pods/{}", pod.name))).await
        }
        (Churn::EvictOne, Some(pod)) => server.evict(space, &pod.name, Some(&pod.uid), false).await.map(drop),
        (Churn::Rescale, _) => rescale(server, space, app, &ours).await,
        _ => Ok(()),
    }
}

async fn rescale(server: &Server, space: &str, app: &App, ours: &str) -> Result<()> {
    let (root, resource) = match app.owner {
        Owner::ReplicationController => ("api/v1", "replicationcontrollers"),
        Owner::ReplicaSet => ("apis/apps/v1", "replicasets"),
        Owner::Deployment | Owner::Rollout => ("apis/apps/v1", "deployments"),
        Owner::StatefulSet => ("apis/apps/v1", "statefulsets"),
        Owner::Shard => (ours, "shards"),
        _ => return Ok(()),
    };
    let at = path(root, space, &format!("{resource}/{}", app.id));
    server.merge(&at, &json!({"spec": {"replicas": app.dice % 6}})).await
}
