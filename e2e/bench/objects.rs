//! Objects as a server of a large installation sends them.

/// Pods of one owner.
pub const REPLICAS: usize = 10;
/// Owners in one namespace.
const A_NAMESPACE: usize = 20;
/// How many nodes there are.
const NODES: usize = 5_000;

/// Namespace and name of a pod's owner.
pub fn owner(number: usize) -> (String, String) {
    let owner = number / REPLICAS;
    (format!("team-{}", owner / A_NAMESPACE), format!("service-{owner}-7d4b9c6f5"))
}

/// A ReplicaSet, by its number.
pub fn replica_set(number: usize) -> String {
    let (namespace, name) = owner(number * REPLICAS);
    format!(
        r#"{{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {{"namespace": "{namespace}", "name": "{name}",
        "uid": "{}", "ownerReferences": [{{"apiVersion": "apps/v1", "kind": "Deployment", "name": "service-{number}",
        "uid": "{}", "controller": true}}]}}, "spec": {{"replicas": {REPLICAS}, "template": {{"metadata": {{"labels":
        {{"app": "service-{number}", "tier": "backend", "pod-template-hash": "7d4b9c6f5"}}}}}}}}}}"#,
        uid("1111", number),
        uid("2222", number),
    )
}

fn uid(kind: &str, number: usize) -> String {
    format!("{number:08x}-{kind}-4abc-9def-{number:012x}")
}

/// A pod as a server sends it, managed fields, annotations and all.
pub fn pod(number: usize, ready: bool) -> String {
    let (namespace, owner_name) = owner(number);
    let owner = number / REPLICAS;
    let ready = if ready { "True" } else { "False" };
    let node = number * 31 % NODES;
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"namespace": "{namespace}", "name":
        "{owner_name}-{number:05x}", "generateName": "{owner_name}-", "uid": "{}", "resourceVersion": "{number}",
        "generation": 1, "creationTimestamp": "2026-11-30T01:02:03Z",
        "labels": {{"app": "service-{owner}", "tier": "backend", "pod-template-hash": "7d4b9c6f5"}},
        "annotations": {{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config":
        "6f1ed002ab5595859014ebf0951522d9f6f1ed002ab5595859014ebf0951522d"}},
        "ownerReferences": [{{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "{owner_name}", "uid": "{}",
        "controller": true, "blockOwnerDeletion": true}}],
        "managedFields": [{{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
        "time": "2026-11-30T01:02:03Z", "fieldsType": "FieldsV1", "fieldsV1": {{"f:metadata": {{"f:generateName": {{}},
        "f:labels": {{".": {{}}, "f:app": {{}}, "f:tier": {{}}, "f:pod-template-hash": {{}}}}}}}}}}]}},
        "spec": {{"nodeName": "ip-10-0-{node}.eu-central-1.compute.internal", "restartPolicy": "Always",
        "serviceAccountName": "service-{owner}", "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler",
        "volumes": [{{"name": "tmp", "emptyDir": {{}}}}, {{"name": "kube-api-access", "projected": {{"sources":
        [{{"serviceAccountToken": {{"expirationSeconds": 3607, "path": "token"}}}}]}}}}],
        "containers": [{{"name": "main", "image": "registry.example.com/team/service:v1.2.3",
        "resources": {{"requests": {{"cpu": "100m", "memory": "128Mi"}}, "limits": {{"memory": "256Mi"}}}},
        "env": [{{"name": "A", "value": "1"}}, {{"name": "B", "value": "2"}}]}}],
        "tolerations": [{{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 300}}]}},
        "status": {{"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.2.3", "startTime": "2026-11-30T01:02:04Z",
        "conditions": [{{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T01:02:03Z"}},
        {{"type": "Initialized", "status": "True", "lastTransitionTime": "2026-11-30T01:02:03Z"}},
        {{"type": "ContainersReady", "status": "{ready}", "lastTransitionTime": "2026-11-30T01:02:05Z"}},
        {{"type": "Ready", "status": "{ready}", "lastTransitionTime": "2026-11-30T01:02:05Z"}}],
        "containerStatuses": [{{"name": "main", "ready": true, "restartCount": 0, "started": true,
        "image": "registry.example.com/team/service:v1.2.3", "imageID": "sha256:6f1ed002ab5595859014ebf0951522d9",
        "state": {{"running": {{"startedAt": "2026-11-30T01:02:05Z"}}}}}}]}}}}"#,
        uid("3333", number),
        uid("1111", owner),
    )
}
