//! What the API server answers.

use kube::core::response::{StatusCause, StatusDetails};
use kube::core::{ObjectMeta, Status};
use serde_json::{Map, Value, json};

use super::store::{Store, whole_second};
use crate::api::{DrainPlan, DrainPlanStatus, names};
use crate::budget::{self, Cause};
use crate::cluster::{Labels, Node, PodKey, Scale, Taint, Text};
use crate::plan::Evict;
use jiff::Timestamp;

/// A request that was refused, in the server's words.
pub type Refused = Box<Status>;

/// An error without details.
pub fn refused(code: u16, reason: &str, message: impl Into<String>) -> Refused {
    Box::new(Status { code, reason: reason.to_owned(), message: message.into(), ..Status::default() })
}

fn not_found(what: &str, name: &str) -> Refused {
    refused(404, "NotFound", format!("{what} \"{name}\" not found"))
}

/// Writes a plan's status if the plan is as it was read. Server-side apply: what is not said is removed.
pub fn write_status(
    store: &mut Store,
    read: &DrainPlan,
    status: &DrainPlanStatus,
) -> Result<DrainPlan, Refused> {
    let plan = as_read(store, &read.metadata)?;
    // Through JSON as on the wire: times keep whole seconds.
    let wire = serde_json::to_value(status).and_then(serde_json::from_value::<DrainPlanStatus>);
    let status = wire.map_err(|error| refused(422, "Invalid", error.to_string()))?;
    if plan.status.as_ref() == Some(&status) {
        return Ok(plan);
    }
    Ok(DrainPlan::clone(&store.put_plan(DrainPlan { status: Some(status), ..plan })))
}

/// Replaces a plan's finalizers if it is as it was read; `None` when it is gone by that.
pub fn set_finalizer(
    store: &mut Store,
    read: &ObjectMeta,
    present: bool,
) -> Result<Option<DrainPlan>, Refused> {
    let mut plan = match as_read(store, read) {
        Ok(plan) => plan,
        Err(status) if status.code == 404 => return Ok(None),
        Err(status) => return Err(status),
    };
    if present && plan.metadata.deletion_timestamp.is_some() {
        return Err(refused(422, "Invalid", "no new finalizers can be added if the object is being deleted"));
    }
    let finalizers = plan.metadata.finalizers.get_or_insert_default();
    finalizers.retain(|finalizer| finalizer != names::FINALIZER);
    if present {
        finalizers.push(names::FINALIZER.to_owned());
    }
    Ok(Some(DrainPlan::clone(&store.put_plan(plan))))
}

fn as_read(store: &Store, read: &ObjectMeta) -> Result<DrainPlan, Refused> {
    let name = read.name.clone().unwrap_or_default();
    let plan = store.plan(&name).ok_or_else(|| not_found("drainplans.drainplan.dev", &name))?;
    if plan.metadata.resource_version != read.resource_version {
        return Err(refused(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to it",
        ));
    }
    Ok(DrainPlan::clone(plan))
}

/// Patches a node by a JSON patch.
pub fn patch_node(store: &mut Store, name: &str, patch: &Value) -> Result<(), Refused> {
    let node = store.cluster().node(name).ok_or_else(|| not_found("nodes", name))?;
    let invalid = |why: String| refused(422, "Invalid", why);
    let operations: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| invalid(error.to_string()))?;
    let mut document = as_json(node);
    json_patch::patch(&mut document, &operations).map_err(|error| invalid(error.to_string()))?;
    let patched = from_json(node, &document);
    if patched != **node {
        store.put_node(patched);
    }
    Ok(())
}

/// An annotation of somebody else, which the observed node does not carry in full.
const OTHERS: &str = "example.com/other";

/// What of a node a patch may be about.
fn as_json(node: &Node) -> Value {
    let mut annotations: Map<String, Value> =
        node.annotations.iter().map(|(name, value)| (name.to_string(), json!(&**value))).collect();
    if node.annotated && annotations.is_empty() {
        annotations.insert(OTHERS.to_owned(), json!(""));
    }
    let labels: Map<String, Value> =
        node.labels.iter().map(|(key, value)| (key.to_string(), json!(&**value))).collect();
    let mut metadata = Map::new();
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    metadata.insert("resourceVersion".to_owned(), json!(&*node.resource_version));
    if node.annotated {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    let mut spec = Map::new();
    if node.unschedulable {
        spec.insert("unschedulable".to_owned(), json!(true));
    }
    if !node.taints.is_empty() {
        spec.insert("taints".to_owned(), node.taints.iter().map(taint_json).collect());
    }
    json!({"metadata": metadata, "spec": spec})
}

fn taint_json(taint: &Taint) -> Value {
    json!({"key": &*taint.key, "value": &*taint.value, "effect": &*taint.effect})
}

fn from_json(node: &Node, document: &Value) -> Node {
    let text =
        |value: &Value, key: &str| Text::from(value.get(key).and_then(Value::as_str).unwrap_or_default());
    let annotations = document.pointer("/metadata/annotations").and_then(Value::as_object);
    let ours = annotations.into_iter().flatten().filter(|(name, _)| *name != OTHERS);
    let taints = document.pointer("/spec/taints").and_then(Value::as_array);
    let labels = document.pointer("/metadata/labels").and_then(Value::as_object);
    let label =
        |(key, value): (&String, &Value)| (key.as_str().into(), value.as_str().unwrap_or_default().into());
    Node {
        labels: Labels::new(labels.into_iter().flatten().map(label)),
        annotations: ours
            .map(|(name, value)| (name.as_str().into(), value.as_str().unwrap_or_default().into()))
            .collect(),
        annotated: annotations.is_some_and(|annotations| !annotations.is_empty()),
        unschedulable: document.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or(false),
        taints: taints
            .into_iter()
            .flatten()
            .map(|taint| Taint {
                key: text(taint, "key"),
                value: text(taint, "value"),
                effect: text(taint, "effect"),
            })
            .collect(),
        ..node.clone()
    }
}

/// The uids of the pods of a node.
pub fn list_pods(store: &Store, node: &str) -> Vec<String> {
    store.cluster().pods_on(node).map(|pod| pod.uid.to_string()).collect()
}

/// The uid of a pod, and whether it is terminating.
pub fn look(store: &Store, key: &PodKey) -> Option<(String, bool)> {
    store.cluster().pod(key).map(|pod| (pod.uid.to_string(), pod.terminating()))
}

/// What `*/scale` of an owner answers.
pub fn read_scale(store: &Store, owner: &str) -> Scale {
    store.cluster().scale(owner).cloned().unwrap_or(Scale::Gone)
}

/// Evicts a pod as `eviction.go: Create` does it; returns whether that was charged to a budget.
///
/// A wrong uid is found out only by the deletion at the end, after the budget was charged.
pub fn evict(
    store: &mut Store,
    eviction: &Evict,
    own_grace_seconds: i64,
    now: Timestamp,
) -> Result<bool, Refused> {
    let key = &eviction.pod;
    let pod = store.cluster().pod(key).cloned().ok_or_else(|| not_found("pods", &key.name))?;
    let verdict = budget::verdict(store.cluster(), &pod);
    let charged = match verdict.cause {
        Cause::NotCounted
        | Cause::NoBudget
        | Cause::UnhealthyAlwaysAllowed
        | Cause::UnhealthyOfHealthyBudget => false,
        Cause::Allowed => {
            charge(store, key, now);
            true
        }
        other => return Err(why_not(store, other, key)),
    };
    if pod.uid != eviction.uid {
        return Err(refused(
            409,
            "Conflict",
            format!(
                "the UID in the precondition ({}) does not match the UID in record ({})",
                eviction.uid, pod.uid
            ),
        ));
    }
    store.delete_pod(key, eviction.grace_period_seconds.unwrap_or(own_grace_seconds), now);
    Ok(charged)
}

/// `checkAndDecrement`.
fn charge(store: &mut Store, key: &PodKey, now: Timestamp) {
    let Some(pod) = store.cluster().pod(key) else { return };
    let Some(mut budget) = store.cluster().budgets_of(pod).next().map(|budget| (**budget).clone()) else {
        return;
    };
    budget.status.disruptions_allowed -= 1;
    budget.status.disrupted_pods.insert(key.name.clone(), whole_second(now));
    store.put_budget(budget);
}

fn why_not(store: &Store, cause: Cause, key: &PodKey) -> Refused {
    let names: Vec<&str> = store
        .cluster()
        .pod(key)
        .into_iter()
        .flat_map(|pod| store.cluster().budgets_of(pod))
        .map(|budget| &*budget.name)
        .collect();
    let name = names.first().copied().unwrap_or_default();
    let budget_says = |code, reason: &str, retry_after_seconds, why: String| {
        let cause = StatusCause { reason: "DisruptionBudget".to_owned(), message: why, field: String::new() };
        let details = details(cause, retry_after_seconds);
        let message = "Cannot evict pod as it would violate the pod's disruption budget.".to_owned();
        let status = Status { code, reason: reason.to_owned(), message, ..Status::default() };
        Box::new(Status { details: Some(details), ..status })
    };
    match cause {
        Cause::SeveralBudgets => refused(
            500,
            "",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ),
        Cause::StillProcessing => budget_says(
            429,
            "TooManyRequests",
            10,
            format!("The disruption budget {name} is still being processed by the server."),
        ),
        Cause::NegativeAllowance | Cause::TooManyDisruptedPods => budget_says(
            403,
            "Forbidden",
            0,
            format!("The disruption budget {name} does not allow evicting pods currently"),
        ),
        Cause::NamespaceTerminating => {
            let cause = StatusCause {
                reason: "NamespaceTerminating".to_owned(),
                message: String::new(),
                field: String::new(),
            };
            let details = details(cause, 0);
            Box::new(Status {
                details: Some(details),
                ..*refused(403, "Forbidden", "the namespace is being terminated")
            })
        }
        _ => budget_says(
            429,
            "TooManyRequests",
            0,
            format!("The disruption budget {name} does not allow evicting pods currently"),
        ),
    }
}

fn details(cause: StatusCause, retry_after_seconds: u32) -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: vec![cause],
        retry_after_seconds,
    }
}
