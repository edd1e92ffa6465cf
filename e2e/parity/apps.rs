//! The owners of pods, and pods that nobody else creates.

use anyhow::Result;
use serde_json::{Value, json};

use super::load::path;
use super::objects::{self, GROUP};
use super::server::Server;
use super::world::{App, Churn, Health, Owner};

/// Creates an app: its owner, and the pods that no controller creates.
pub async fn create(server: &Server, space: &str, app: &App) -> Result<()> {
    // Whoever is deleted later must not be confirmed then.
    let health = match app.health {
        Health::Ready if app.churn == Churn::DeleteOne => Health::Terminating,
        health => health,
    };
    let template = objects::template(app, health);
    match app.owner {
        Owner::ReplicationController
        | Owner::ReplicaSet
        | Owner::GoneReplicaSet
        | Owner::RebornReplicaSet
        | Owner::Deployment
        | Owner::Rollout
        | Owner::StatefulSet
        | Owner::DaemonSet
        | Owner::Job
        | Owner::RingsReplicaSet => workload(server, space, app, template).await,
        Owner::Shard
        | Owner::GoneShard
        | Owner::UnservedShard
        | Owner::ShardWithoutReplicas
        | Owner::HugeShards
        | Owner::Ring => custom_resource(server, space, app).await,
        Owner::ForeignDeployment
        | Owner::OrphanedReplicaSet
        | Owner::ReplacedDeployment
        | Owner::PodsOfDeployment
        | Owner::LowerCase
        | Owner::OldStatefulSet => unusual_workload(server, space, app, &template).await,
        Owner::Bare | Owner::BareOwned | Owner::Ghost | Owner::Node | Owner::ConfigMap => {
            let owners = odd_owner(server, space, app).await?;
            create_pods(server, space, app, owners.as_slice()).await
        }
    }
}

/// Controllers that create their pods from a template.
async fn workload(server: &Server, space: &str, app: &App, template: Value) -> Result<()> {
    let apps = |resource: &str| path("apis/apps/v1", space, resource);
    match app.owner {
        Owner::ReplicationController => {
            let object = objects::workload("ReplicationController", app, &template);
            server.create(&path("api/v1", space, "replicationcontrollers"), &object).await.map(drop)
        }
        Owner::ReplicaSet | Owner::GoneReplicaSet | Owner::RebornReplicaSet => server
            .create(&apps("replicasets"), &objects::workload("ReplicaSet", app, &template))
            .await
            .map(drop),
        Owner::Deployment | Owner::Rollout => {
            let mut object = objects::workload("Deployment", app, &template);
            if app.owner == Owner::Rollout {
                let strategy =
                    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
                set_in(&mut object, "/spec", "strategy", strategy);
            }
            server.create(&apps("deployments"), &object).await.map(drop)
        }
        Owner::StatefulSet => {
            let mut object = objects::workload("StatefulSet", app, &template);
            let policy = if app.dice % 2 == 0 { "Parallel" } else { "OrderedReady" };
            set_in(&mut object, "/spec", "podManagementPolicy", json!(policy));
            server.create(&apps("statefulsets"), &object).await.map(drop)
        }
        Owner::DaemonSet => {
            let mut object = objects::workload("DaemonSet", app, &template);
            set_in(&mut object, "/spec", "replicas", Value::Null);
            let nodes = if app.dice % 2 == 0 { json!({"one": "one"}) } else { json!({"few": "two"}) };
            set_in(&mut object, "/spec/template/spec", "nodeSelector", nodes);
            server.create(&apps("daemonsets"), &object).await.map(drop)
        }
        Owner::Job => {
            let mut template = template;
            set_in(&mut template, "/spec", "restartPolicy", json!("Never"));
            let spec =
                json!({"parallelism": app.replicas, "completions": app.replicas, "template": template});
            let object =
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": app.id}, "spec": spec});
            server.create(&path("apis/batch/v1", space, "jobs"), &object).await.map(drop)
        }
        Owner::RingsReplicaSet => {
            let ring = server
                .create(
                    &path(&format!("apis/{GROUP}/v1"), space, "rings"),
                    &objects::custom("Ring", &app.id, None),
                )
                .await?;
            let mut object = objects::workload("ReplicaSet", app, &template);
            set_in(&mut object, "/metadata", "ownerReferences", json!([owned(&ring, "Ring")]));
            server.create(&apps("replicasets"), &object).await.map(drop)
        }
        _ => Ok(()),
    }
}

/// Custom resources of our own kinds, and their pods.
async fn custom_resource(server: &Server, space: &str, app: &App) -> Result<()> {
    let ours = |resource: &str| path(&format!("apis/{GROUP}/v1"), space, resource);
    let custom = |kind: &str, replicas| objects::custom(kind, &app.id, replicas);
    match app.owner {
        Owner::Shard | Owner::GoneShard => {
            let scale = if app.dice % 4 == 0 { app.dice % 7 } else { app.replicas };
            let object = server.create(&ours("shards"), &custom("Shard", Some(scale))).await?;
            create_pods(server, space, app, &[owned(&object, "Shard")]).await
        }
        Owner::UnservedShard => {
            let object = server.create(&ours("shards"), &custom("Shard", Some(app.replicas))).await?;
            let owner = objects::reference(&object, &format!("{GROUP}/v0"), "Shard");
            create_pods(server, space, app, &[owner]).await
        }
        Owner::ShardWithoutReplicas => {
            let object = server.create(&ours("shards"), &custom("Shard", None)).await?;
            create_pods(server, space, app, &[owned(&object, "Shard")]).await
        }
        Owner::HugeShards => {
            let most = Some(i32::MAX);
            let one = server.create(&ours("shards"), &custom("Shard", most)).await?;
            let name = format!("{}-two", app.id);
            let two = server.create(&ours("shards"), &objects::custom("Shard", &name, most)).await?;
            let pods = path("api/v1", space, "pods");
            server.create(&pods, &objects::pod(app, 100, Health::Ready, &[owned(&two, "Shard")])).await?;
            create_pods(server, space, app, &[owned(&one, "Shard")]).await
        }
        Owner::Ring => {
            let object = server.create(&ours("rings"), &custom("Ring", None)).await?;
            create_pods(server, space, app, &[owned(&object, "Ring")]).await
        }
        _ => Ok(()),
    }
}

/// Workloads that are referred to in ways that only the scale subresource resolves, or none does.
async fn unusual_workload(server: &Server, space: &str, app: &App, template: &Value) -> Result<()> {
    let apps = |resource: &str| path("apis/apps/v1", space, resource);
    match app.owner {
        Owner::ForeignDeployment => {
            let deployment = server
                .create(
                    &path(&format!("apis/{GROUP}/v1"), space, "deployments"),
                    &objects::custom("Deployment", &app.id, None),
                )
                .await?;
            replica_set_of(server, space, app, owned(&deployment, "Deployment")).await
        }
        Owner::OrphanedReplicaSet | Owner::ReplacedDeployment => {
            if app.owner == Owner::ReplacedDeployment {
                idle_deployment(server, space, app).await?;
            }
            let gone = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "name": app.id,
                "uid": format!("{space}-{}", app.id), "controller": true,
            });
            replica_set_of(server, space, app, gone).await
        }
        Owner::PodsOfDeployment => {
            let object = idle_deployment(server, space, app).await?;
            create_pods(server, space, app, &[objects::reference(&object, "apps/v1", "Deployment")]).await
        }
        Owner::LowerCase => {
            let object =
                server.create(&apps("replicasets"), &objects::workload("ReplicaSet", app, template)).await?;
            create_pods(server, space, app, &[objects::reference(&object, "apps/v1", "replicaset")]).await
        }
        Owner::OldStatefulSet => {
            let mut object = objects::workload("StatefulSet", app, template);
            set_in(&mut object, "/spec", "replicas", json!(app.replicas / 2));
            let object = server.create(&apps("statefulsets"), &object).await?;
            create_pods(server, space, app, &[objects::reference(&object, "apps/v1beta1", "StatefulSet")])
                .await
        }
        _ => Ok(()),
    }
}

/// References to what has no scale, or is no controller, or nothing at all.
async fn odd_owner(server: &Server, space: &str, app: &App) -> Result<Vec<Value>> {
    Ok(match app.owner {
        Owner::BareOwned => {
            let mut owner = objects::reference(&config_map(server, space, app).await?, "v1", "ConfigMap");
            set_in(&mut owner, "", "controller", Value::Null);
            vec![owner]
        }
        Owner::Ghost => vec![json!({
            "apiVersion": "nowhere.drainplan.dev/v1", "kind": "Ghost", "name": app.id,
            "uid": format!("{space}-{}", app.id), "controller": true,
        })],
        Owner::Node => {
            let object = server.get(&format!("/api/v1/nodes/{}", objects::node_name(0))).await?;
            vec![objects::reference(&object, "v1", "Node")]
        }
        Owner::ConfigMap => {
            vec![objects::reference(&config_map(server, space, app).await?, "v1", "ConfigMap")]
        }
        _ => Vec::new(),
    })
}

pub fn owned(object: &Value, kind: &str) -> Value {
    objects::reference(object, &format!("{GROUP}/v1"), kind)
}

async fn create_pods(server: &Server, space: &str, app: &App, owners: &[Value]) -> Result<()> {
    for (number, health) in app.pods.iter().enumerate() {
        server.create(&path("api/v1", space, "pods"), &objects::pod(app, number, *health, owners)).await?;
    }
    Ok(())
}

async fn config_map(server: &Server, space: &str, app: &App) -> Result<Value> {
    server.create(&path("api/v1", space, "configmaps"), &json!({"metadata": {"name": app.id}})).await
}

/// A ReplicaSet with a controller, and its pods. The controller's absence deletes it; a finalizer holds it.
async fn replica_set_of(server: &Server, space: &str, app: &App, owner: Value) -> Result<()> {
    let mut object = objects::workload("ReplicaSet", app, &objects::template(app, Health::Ready));
    set_in(&mut object, "/metadata", "ownerReferences", json!([owner]));
    set_in(&mut object, "/metadata", "finalizers", json!([objects::FINALIZER]));
    let object = server.create(&path("apis/apps/v1", space, "replicasets"), &object).await?;
    create_pods(server, space, app, &[objects::reference(&object, "apps/v1", "ReplicaSet")]).await
}

/// A Deployment that creates nothing, since it is paused from the start.
async fn idle_deployment(server: &Server, space: &str, app: &App) -> Result<Value> {
    let mut object = objects::workload("Deployment", app, &objects::template(app, Health::Ready));
    set_in(&mut object, "/spec", "paused", json!(true));
    set_in(&mut object, "/spec", "replicas", json!(app.replicas + 3));
    server.create(&path("apis/apps/v1", space, "deployments"), &object).await
}

/// Sets a field of the object at a pointer; null removes it.
fn set_in(object: &mut Value, pointer: &str, key: &str, value: Value) {
    let Some(Value::Object(fields)) = object.pointer_mut(pointer) else { return };
    if value.is_null() {
        fields.remove(key);
    } else {
        fields.insert(key.to_owned(), value);
    }
}
