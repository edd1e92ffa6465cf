//! The objects of the world as the server takes them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::world::{Amount, App, Budget, Health};

/// The group of our custom resources.
pub const GROUP: &str = "parity.drainplan.dev";
/// Nodes the world is bound to; the first has a label for DaemonSets of one pod.
pub const NODES: usize = 4;
/// Holds objects whose owner is gone.
pub const FINALIZER: &str = "parity.drainplan.dev/hold";

pub fn node(number: usize) -> Value {
    let capacity = json!({"cpu": "1000", "memory": "1000Gi", "pods": "30000"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": node_name(number),
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": node_name(number),
                "few": if number < 2 { "two" } else { "" },
                "one": if number == 0 { "one" } else { "" },
            },
        },
        "status": {"capacity": capacity, "allocatable": capacity},
    })
}

pub fn node_name(number: usize) -> String {
    format!("node-{number}")
}

pub fn definition(kind: &str, plural: &str, scaled: bool) -> Value {
    let subresources = if scaled {
        json!({"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}})
    } else {
        json!({})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

pub fn custom(kind: &str, name: &str, replicas: Option<i32>) -> Value {
    let spec = replicas.map_or_else(|| json!({}), |replicas| json!({"replicas": replicas}));
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// An owner reference to an object that the server has answered.
pub fn reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    let meta = |field: &str| owner.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
    json!({"apiVersion": api_version, "kind": kind, "name": meta("name"), "uid": meta("uid"), "controller": true})
}

/// Annotations that make a simulated kubelet keep the pod so.
fn hints(health: Health) -> Value {
    match health {
        Health::Ready | Health::Unschedulable => json!({}),
        Health::Unready => json!({"sim.drainplan.dev/ready": "never"}),
        Health::NotStarted => json!({"sim.drainplan.dev/start": "never"}),
        Health::Finished => json!({"sim.drainplan.dev/complete-after": "1s"}),
        Health::Terminating => json!({"sim.drainplan.dev/terminate": "never"}),
    }
}

fn pod_spec(health: Health) -> Map<String, Value> {
    let mut spec = Map::new();
    spec.insert("automountServiceAccountToken".into(), json!(false));
    spec.insert("terminationGracePeriodSeconds".into(), json!(1));
    spec.insert("containers".into(), json!([{"name": "main", "image": "none"}]));
    if health == Health::Unschedulable {
        spec.insert("nodeSelector".into(), json!({"there": "none"}));
    }
    spec
}

pub fn template(app: &App, health: Health) -> Value {
    json!({"metadata": {"labels": app.labels, "annotations": hints(health)}, "spec": pod_spec(health)})
}

/// A pod that is created directly, bound to a node.
pub fn pod(app: &App, number: usize, health: Health, owners: &[Value]) -> Value {
    let mut spec = pod_spec(health);
    if health != Health::Unschedulable {
        let node = (usize::try_from(app.dice).unwrap_or_default() + number) % NODES;
        spec.insert("nodeName".into(), json!(node_name(node)));
    }
    if health == Health::Finished {
        spec.insert("restartPolicy".into(), json!("Never"));
    }
    let metadata = json!({
        "name": format!("{}-x{number}", app.id), "labels": app.labels, "annotations": hints(health),
        "ownerReferences": owners,
    });
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// A workload with a template.
pub fn workload(kind: &str, app: &App, template: &Value) -> Value {
    let api_version = if kind == "ReplicationController" { "v1" } else { "apps/v1" };
    let labels = BTreeMap::from([("id", &app.id)]);
    let selector =
        if kind == "ReplicationController" { json!(labels) } else { json!({"matchLabels": labels}) };
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": app.id},
        "spec": {"replicas": app.replicas, "selector": selector, "template": template},
    })
}

pub fn budget(budget: &Budget) -> Value {
    let mut spec = amount(budget.amount);
    if let Some(policy) = budget.policy {
        spec.insert("unhealthyPodEvictionPolicy".into(), json!(policy));
    }
    if let Some(selector) = &budget.selector {
        spec.insert("selector".into(), selector.clone());
    }
    spec.retain(|_, value| !value.is_null());
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": budget.name}, "spec": spec})
}

/// Both fields, absent ones as null.
pub fn amount(amount: Amount) -> Map<String, Value> {
    let (min, max) = match amount {
        Amount::Neither => (Value::Null, Value::Null),
        Amount::MinInt(number) => (json!(number), Value::Null),
        Amount::MinPercent(percent) => (json!(format!("{percent}%")), Value::Null),
        Amount::MaxInt(number) => (Value::Null, json!(number)),
        Amount::MaxPercent(percent) => (Value::Null, json!(format!("{percent}%"))),
    };
    Map::from_iter([("minAvailable".to_owned(), min), ("maxUnavailable".to_owned(), max)])
}
