//! Objects of the cases, and what is read off them.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

/// The pod template of a workload.
#[derive(Clone)]
pub struct Template {
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    finalizers: Vec<String>,
    volumes: Vec<Value>,
    affinity: Option<Value>,
    apart: bool,
    gates: Vec<Value>,
    tolerations: Vec<Value>,
    restart_policy: &'static str,
}

impl Template {
    pub fn new() -> Self {
        Self {
            labels: Map::new(),
            annotations: Map::new(),
            finalizers: Vec::new(),
            volumes: Vec::new(),
            affinity: None,
            apart: false,
            gates: Vec::new(),
            tolerations: Vec::new(),
            restart_policy: "Always",
        }
    }

    /// What the simulated kubelet does with the pods, such as `ready-after: 3s`.
    #[must_use]
    pub fn sim(mut self, hint: &str, value: &str) -> Self {
        self.annotations.insert(format!("sim.drainplan.dev/{hint}"), json!(value));
        self
    }

    /// A label beside that of the workload.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), json!(value));
        self
    }

    /// Any other annotation.
    #[must_use]
    pub fn annotation(mut self, name: &str, value: &str) -> Self {
        self.annotations.insert(name.to_owned(), json!(value));
        self
    }

    /// A finalizer that nobody removes.
    #[must_use]
    pub fn finalizer(mut self, finalizer: &str) -> Self {
        self.finalizers.push(finalizer.to_owned());
        self
    }

    /// An emptyDir volume.
    #[must_use]
    pub fn empty_dir(mut self, name: &str) -> Self {
        self.volumes.push(json!({"name": name, "emptyDir": {}}));
        self
    }

    /// Only on nodes of these names.
    #[must_use]
    pub fn only_on(mut self, nodes: &[&str]) -> Self {
        self.affinity = Some(json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes},
            ]}],
        }}}));
        self
    }

    /// On this node rather than on others, whether it is cordoned or not.
    #[must_use]
    pub fn drawn_to(mut self, node: &str) -> Self {
        self.affinity = Some(json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
            ]}},
        ]}}));
        self.tolerates("node.kubernetes.io/unschedulable")
    }

    /// No two on one node.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    /// A taint of this key does not keep it away.
    #[must_use]
    pub fn tolerates(mut self, taint: &str) -> Self {
        self.tolerations.push(json!({"key": taint, "operator": "Exists"}));
        self
    }

    /// Not Ready before this condition of the pod is True.
    #[must_use]
    pub fn gate(mut self, condition: &str) -> Self {
        self.gates.push(json!({"conditionType": condition}));
        self
    }

    /// Containers that are not started again, as Jobs want them.
    #[must_use]
    pub fn never_restarted(mut self) -> Self {
        self.restart_policy = "Never";
        self
    }

    /// As JSON, with the labels that a workload selects by, on nodes with these labels.
    pub fn json(&self, labels: &Value, node_labels: &Map<String, Value>) -> Value {
        let mut spec = json!({
            "nodeSelector": node_labels,
            "restartPolicy": self.restart_policy,
            "terminationGracePeriodSeconds": 5,
            "automountServiceAccountToken": false,
            "volumes": self.volumes,
            "readinessGates": self.gates,
            "tolerations": self.tolerations,
            "containers": [{"name": "main", "image": "registry.example/main:1"}],
        });
        let mut affinity = self.affinity.clone().unwrap_or_else(|| json!({}));
        if let (true, Some(affinity)) = (self.apart, affinity.as_object_mut()) {
            let siblings = json!({"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}},
            ]});
            affinity.insert("podAntiAffinity".to_owned(), siblings);
        }
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("affinity".to_owned(), affinity);
        }
        let mut all_labels = self.labels.clone();
        all_labels.extend(labels.as_object().cloned().unwrap_or_default());
        json!({
            "metadata": {"labels": all_labels, "annotations": self.annotations, "finalizers": self.finalizers},
            "spec": spec,
        })
    }
}

/// Whether the pod's Ready condition is True.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether the pod has been deleted and is not gone yet.
pub fn terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Pods that serve: Ready, and not on their way out.
pub fn ready_pods<'a>(pods: impl Iterator<Item = &'a Pod>, app: &str) -> usize {
    pods.filter(|pod| owned_by(pod, app) && is_ready(pod) && !terminating(pod)).count()
}

/// Whether the pod carries the workload's label.
pub fn owned_by(pod: &Pod, app: &str) -> bool {
    pod.labels().get("app").is_some_and(|label| label == app)
}

/// The node that the pod is bound to, or nothing.
pub fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The object's uid.
pub fn uid<K: kube::Resource>(object: &K) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// What a budget reports as allowed, once it is about its present spec.
pub fn allowed(budget: &PodDisruptionBudget) -> Option<i32> {
    let status = budget.status.as_ref()?;
    (status.observed_generation == budget.metadata.generation).then_some(status.disruptions_allowed).flatten()
}

/// Pods in one line.
pub fn pods_told(pods: &[Pod]) -> String {
    if pods.is_empty() {
        return "no pods".to_owned();
    }
    let told = pods.iter().map(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("-");
        let ready = if is_ready(pod) { "Ready" } else { "unready" };
        let going = if terminating(pod) { " terminating" } else { "" };
        format!("{name} {} on {} {phase} {ready}{going}", uid(pod), node_of(pod))
    });
    told.collect::<Vec<_>>().join("; ")
}
