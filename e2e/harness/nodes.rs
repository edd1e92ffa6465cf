//! Simulated nodes.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::{Recorder, Sight};

/// How long the control plane may take until pods can be scheduled on a new node.
const SETTLES: Duration = Duration::from_mins(1);

/// Creates nodes with room for so many pods each; returns when pods can be scheduled there.
pub async fn create(client: Client, names: &[String], labels: &Map<String, Value>, room: u32) -> Result<()> {
    let api: Api<Node> = Api::all(client);
    for name in names {
        let mut node = json!({
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                },
            },
            "status": {"capacity": capacity(room), "allocatable": capacity(room)},
        });
        if let Some(all) = node.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            all.extend(labels.clone());
        }
        api.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    }
    let recorder = Recorder::start(api, None).await?;
    recorder
        .until("nodes can be used", SETTLES, |record| {
            let unusable: Vec<&String> =
                names.iter().filter(|name| !record.now.get(*name).is_some_and(|node| usable(node))).collect();
            if unusable.is_empty() {
                Sight::Found(())
            } else {
                Sight::NotYet(format!("{unusable:?} are not Ready or tainted"))
            }
        })
        .await
}

/// Changes how many pods a node has room for.
pub async fn resize(client: Client, node: &str, room: u32) -> Result<()> {
    let patch = json!({"status": {"capacity": capacity(room), "allocatable": capacity(room)}});
    Api::<Node>::all(client).patch_status(node, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// What a node's kubelet tells of its machine and itself, such as `bootID`.
pub async fn tells(client: Client, node: &str, info: Value) -> Result<()> {
    let patch = json!({"status": {"nodeInfo": info}});
    Api::<Node>::all(client).patch_status(node, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn capacity(pods: u32) -> Value {
    json!({"cpu": "32", "memory": "256Gi", "pods": pods.to_string()})
}

fn usable(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True");
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    ready && taints.is_none_or(Vec::is_empty)
}

/// Whether the node is cordoned.
pub fn cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

/// The annotations, labels and taints of ours on a node.
pub fn marks(node: &Node) -> Vec<String> {
    let ours = |(key, value): (&String, &String)| {
        key.starts_with(drainplan::api::names::PREFIX).then(|| format!("{key}={value}"))
    };
    let taints = node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten();
    let taints = taints.filter(|taint| taint.key.starts_with(drainplan::api::names::PREFIX));
    node.annotations()
        .iter()
        .filter_map(ours)
        .chain(node.labels().iter().filter_map(ours))
        .chain(taints.map(|taint| format!("{}:{}", taint.key, taint.effect)))
        .collect()
}
