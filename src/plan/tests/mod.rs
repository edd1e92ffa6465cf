//! Plans on small clusters, one decision after the other.
//!
//! [`World`] is the obedient server: it takes every decision's status and actions at their word.

mod deadlock;
mod endings;
mod gates;
mod hand_off;
mod health;
mod marks;
mod moved;
mod own_pod;
mod ownership;
mod pace;
mod preflight;
mod repeat;
mod rights;
mod rules;
mod said;
mod status;
mod table;
mod volumes;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Action, Decisions, Evict, NodeChange, Plans, Settings, decide};
use crate::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus, PlanPhase, names};
use crate::budget::recompute;
use crate::cluster::{
    Amount, BudgetKey, Cluster, InFlight, Labels, Node, Operator, Ordinals, OwnerRef, Pdb, PdbStatus, Pod,
    PodPhase, Requirement, RestartPolicy, Right, Selector, Text, UnhealthyPolicy, Workload, WorkloadKind,
};

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

struct World {
    cluster: Cluster,
    plans: Plans,
    now: Timestamp,
    settings: Settings,
    /// Every eviction that was accepted, in order.
    evicted: Vec<String>,
    /// Every change of a node, in order.
    changes: Vec<(String, NodeChange)>,
}

impl World {
    fn new() -> Self {
        let mut cluster = Cluster::new();
        cluster.rights.record(None, Right::Granted, START);
        Self {
            cluster,
            plans: Plans::default(),
            now: START,
            settings: Settings::default(),
            evicted: vec![],
            changes: vec![],
        }
    }

    fn node(mut self, name: &str) -> Self {
        self.set_node(name, |_| {});
        self
    }

    fn set_node(&mut self, name: &str, edit: impl FnOnce(&mut Node)) {
        let mut node = self.cluster.node(name).map_or_else(|| new_node(name), |node| Node::clone(node));
        edit(&mut node);
        let version: u64 = node.resource_version.parse().unwrap();
        node.resource_version = (version + 1).to_string().into();
        self.cluster.apply_node(node);
    }

    /// A Deployment's pods, Ready, on these nodes, and a budget over them.
    fn service(mut self, name: &str, nodes: &[&str], budget: Option<(&str, i32)>) -> Self {
        let replicas = i32::try_from(nodes.len()).unwrap();
        self.cluster.apply_workload(workload(name, replicas));
        for (number, node) in nodes.iter().enumerate() {
            self.cluster.apply_pod(pod(&format!("{name}-{number}"), name, Some(node)));
        }
        if let Some((field, value)) = budget {
            self.cluster.apply_budget(pdb(name, field, value));
            self.report_budgets();
        }
        self
    }

    fn plan(mut self, name: &str, spec: &Value) -> Self {
        self.plans.readable.push(Arc::new(plan(name, spec)));
        self
    }

    fn edit_plan(&mut self, name: &str, edit: impl FnOnce(&mut DrainPlan)) {
        let plan = self.plans.readable.iter_mut().find(|plan| plan.metadata.name.as_deref() == Some(name));
        edit(Arc::make_mut(plan.unwrap()));
    }

    fn status(&self, name: &str) -> &DrainPlanStatus {
        let plan = self.plans.readable.iter().find(|plan| plan.metadata.name.as_deref() == Some(name));
        plan.unwrap().status.as_ref().unwrap()
    }

    fn status_of(&self, name: &str) -> Option<DrainPlanStatus> {
        let plan = self.plans.readable.iter().find(|plan| plan.metadata.name.as_deref() == Some(name));
        plan.and_then(|plan| plan.status.clone())
    }

    fn phase(&self, plan: &str) -> PlanPhase {
        self.status(plan).phase.unwrap()
    }

    fn node_status(&self, plan: &str, node: &str) -> &NodeStatus {
        let status = self.status(plan);
        status
            .nodes
            .iter()
            .find(|of| of.name == node)
            .unwrap_or_else(|| panic!("{node} is not in {status:#?}"))
    }

    fn decide(&self) -> Decisions {
        let decisions = decide(&self.plans, &self.cluster, self.now, &self.settings);
        assert_eq!(decisions, decide(&self.plans, &self.cluster, self.now, &self.settings), "deterministic");
        decisions
    }

    /// One decision, done to the letter.
    fn step(&mut self) -> Vec<Action> {
        let mut decisions = self.decide();
        self.cluster.oddities.seen(std::mem::take(&mut decisions.oddities), self.now);
        let counted = self.cluster.evictions.uncounted();
        self.cluster.evictions.counted(&counted, |_| true);
        let mut done: Vec<Action> = decisions.sweep.iter().chain(&decisions.marks).cloned().collect();
        for decision in decisions.plans {
            let plan =
                self.plans.readable.iter_mut().find(|plan| plan.metadata.uid.as_ref() == Some(&decision.uid));
            let plan = Arc::make_mut(plan.unwrap());
            if let Some(status) = decision.status {
                // As the server keeps it: times have whole seconds.
                plan.status = serde_json::from_value(serde_json::to_value(status).unwrap()).unwrap();
            }
            for action in &decision.actions {
                match action {
                    Action::AddFinalizer => {
                        plan.metadata.finalizers = Some(vec![names::FINALIZER.to_owned()]);
                    }
                    Action::RemoveFinalizer => plan.metadata.finalizers = None,
                    _ => {}
                }
            }
            done.extend(decision.actions);
        }
        for action in done.clone() {
            match action {
                Action::PatchNode { node, change, patch } => self.patch(&node, change, &patch),
                Action::Evict(evict) => self.evict(&evict),
                Action::ConfirmEmpty { node, since } => {
                    self.cluster.evictions.ask_empty(node.clone(), since);
                    self.cluster.evictions.confirm_empty(&node, since);
                }
                Action::AddFinalizer | Action::RemoveFinalizer | Action::HandOver { .. } => {}
            }
        }
        done
    }

    /// Steps until nothing is done any more; pods that were evicted go at once and come back on `spare`, Ready.
    fn run(&mut self, spare: Option<&str>) {
        for _ in 0..200 {
            let before = self.plans.readable.clone();
            let done = self.step();
            self.replace_going(spare);
            if done.is_empty() && before.iter().zip(&self.plans.readable).all(|(a, b)| a.status == b.status) {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", self.decide());
    }

    fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn evict(&mut self, evict: &Evict) {
        let mut pod = Pod::clone(self.cluster.pod(&evict.pod).unwrap());
        assert_eq!(pod.uid, evict.uid);
        self.evicted.push(pod.name.to_string());
        self.cluster.evictions.sent(InFlight {
            pod: evict.pod.clone(),
            uid: evict.uid.clone(),
            node: evict.node.clone(),
            owner: evict.owner.clone(),
            budgets: evict.spends.clone(),
            accepted: None,
        });
        self.cluster.evictions.accepted(&evict.uid, self.now);
        if let Some(owner) = &pod.owner {
            self.cluster.evictions.moved(owner.uid.clone(), self.now);
        }
        pod.deletion = Some(crate::cluster::Deletion {
            at: self.now + SignedDuration::from_secs(30),
            grace_seconds: 30,
            cut_short: true,
        });
        self.cluster.apply_pod(pod);
        self.report_budgets();
    }

    /// Terminating pods end; with a spare node their replacements are Ready there.
    fn replace_going(&mut self, spare: Option<&str>) {
        let going: Vec<Arc<Pod>> = self.cluster.pods().filter(|pod| pod.terminating()).cloned().collect();
        for old in going {
            self.cluster.delete_pod(&old.key());
            if let (Some(spare), Some(owner)) = (spare, &old.owner) {
                let name = format!("{}-again", old.name);
                self.cluster.apply_pod(pod(&name, &owner.name, Some(spare)));
            }
        }
        self.report_budgets();
    }

    /// What the disruption controller does.
    fn report_budgets(&mut self) {
        let budgets: Vec<Arc<Pdb>> = self.cluster.budgets().cloned().collect();
        for budget in budgets {
            let computed = recompute(&self.cluster, &budget, self.now).numbers;
            let mut budget = Pdb::clone(&budget);
            budget.status.expected_pods = computed.expected_pods;
            budget.status.current_healthy = computed.current_healthy;
            budget.status.desired_healthy = computed.desired_healthy;
            budget.status.disruptions_allowed = computed.disruptions_allowed;
            self.cluster.evictions.expire(self.now + SignedDuration::from_secs(5));
            self.cluster.apply_budget(budget);
        }
    }

    /// Does to the node what the JSON patch says.
    fn patch(&mut self, name: &str, change: NodeChange, patch: &Value) {
        self.changes.push((name.to_owned(), change));
        let ops = patch.as_array().unwrap().clone();
        let node = self.cluster.node(name).unwrap();
        assert_eq!(
            ops[0],
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": &*node.resource_version})
        );
        self.set_node(name, |node| {
            let mut labelled = node.labels.iter().next().is_some();
            for op in &ops[1..] {
                let path = op["path"].as_str().unwrap();
                let annotation = path
                    .strip_prefix("/metadata/annotations/")
                    .map(|name| Text::from(name.replace("~1", "/")));
                match (op["op"].as_str().unwrap(), annotation) {
                    ("add", Some(annotation)) => {
                        assert!(node.annotated, "an annotation cannot be added below nothing");
                        node.annotations.insert(annotation, op["value"].as_str().unwrap().into());
                    }
                    ("remove", Some(annotation)) => {
                        node.annotations.remove(&annotation).expect("removing what is not there fails");
                    }
                    ("add", None) if path == "/metadata/annotations" => node.annotated = true,
                    ("add", None) if path == "/metadata/labels" => labelled = true,
                    (verb, None) if path.starts_with("/metadata/labels/") => {
                        assert!(labelled, "a label cannot be added below nothing");
                        label(node, verb, path, &op["value"]);
                    }
                    ("add", None) if path.starts_with("/spec/taints") => taint(node, path, &op["value"]),
                    ("remove", None) if path.starts_with("/spec/taints/") => {
                        node.taints.remove(path["/spec/taints/".len()..].parse().unwrap());
                    }
                    ("add", None) if path == "/spec/unschedulable" => node.unschedulable = true,
                    ("remove", None) if path == "/spec/unschedulable" => {
                        assert!(node.unschedulable, "removing what is not there fails");
                        node.unschedulable = false;
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
    }

    fn cordoned(&self, node: &str) -> bool {
        self.cluster.node(node).unwrap().unschedulable
    }

    fn marks(&self, node: &str) -> BTreeMap<Text, Text> {
        self.cluster.node(node).unwrap().annotations.clone()
    }

    fn marked(&self, node: &str) -> bool {
        let taints = &self.cluster.node(node).unwrap().taints;
        taints.iter().any(|taint| {
            &*taint.key == names::PENDING_TAINT
                && &*taint.effect == "PreferNoSchedule"
                && taint.value.is_empty()
        })
    }

    /// Whether the label tells that it is handed off.
    fn announced(&self, node: &str) -> bool {
        self.cluster.node(node).unwrap().labels.get(names::STATE).map(AsRef::as_ref) == Some(names::DRAINED)
    }

    fn claimed(&self, node: &str) -> bool {
        self.marks(node).contains_key(names::CLAIM)
    }
}

fn label(node: &mut Node, verb: &str, path: &str, value: &Value) {
    let key = Text::from(path["/metadata/labels/".len()..].replace("~1", "/"));
    assert!(verb == "add" || node.labels.get(&key).is_some(), "removing what is not there fails");
    let others = node.labels.iter().filter(|(known, _)| **known != key);
    let mut labels: Vec<(Text, Text)> = others.map(|(key, value)| (key.clone(), value.clone())).collect();
    labels.extend(value.as_str().map(|value| (key, value.into())));
    node.labels = Labels::new(labels);
}

fn taint(node: &mut Node, path: &str, value: &Value) {
    let new = |value: &Value| crate::cluster::Taint {
        key: value["key"].as_str().unwrap().into(),
        value: Text::default(),
        effect: value["effect"].as_str().unwrap().into(),
    };
    match value {
        Value::Array(list) => {
            assert!(node.taints.is_empty() && path == "/spec/taints", "it would replace others' taints");
            node.taints = list.iter().map(new).collect();
        }
        one => {
            assert!(!node.taints.is_empty() && path == "/spec/taints/-", "there is no list to add to");
            node.taints.push(new(one));
        }
    }
}

fn new_node(name: &str) -> Node {
    Node {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        resource_version: "1".into(),
        created: Some(START - SignedDuration::from_secs(3600)),
        deleting: false,
        labels: Labels::new([("pool".into(), "workers".into())]),
        annotations: BTreeMap::new(),
        annotated: false,
        unschedulable: false,
        taints: Vec::new(),
        ready: "True".into(),
        pressure: Box::default(),
        boot_id: "boot".into(),
        kubelet_version: "v1.37.2".into(),
    }
}

fn owner(name: &str) -> OwnerRef {
    OwnerRef { api_version: "apps/v1".into(), kind: "ReplicaSet".into(), name: name.into(), uid: name.into() }
}

fn pod(name: &str, of: &str, node: Option<&str>) -> Pod {
    Pod {
        namespace: "shop".into(),
        name: name.into(),
        name_drawn: false,
        uid: format!("uid-{name}").into(),
        created: Some(START - SignedDuration::from_secs(3600)),
        labels: Labels::new([("app".into(), of.into())]),
        node: node.map(Text::from),
        phase: PodPhase::Running,
        ready: true,
        owner: Some(Arc::new(owner(of))),
        deletion: None,
        placement: None,
        protection: None,
        finalizers: Box::default(),
        mirror: false,
        empty_dirs: Box::default(),
        claims: Box::default(),
        restart_policy: RestartPolicy::Always,
        trouble: None,
        unschedulable: None,
    }
}

fn workload(name: &str, replicas: i32) -> Workload {
    Workload {
        kind: WorkloadKind::ReplicaSet,
        namespace: "shop".into(),
        name: name.into(),
        uid: name.into(),
        replicas,
        owner: None,
        template_labels: Labels::new([("app".into(), name.into())]),
        replica_failure: None,
        ordinals: Ordinals::default(),
    }
}

fn pdb(name: &str, field: &str, value: i32) -> Pdb {
    let requirement = Requirement { key: "app".into(), operator: Operator::In, values: vec![name.into()] };
    Pdb {
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        resource_version: "1".into(),
        generation: 1,
        spec_since: None,
        selector: Some(Selector { requirements: vec![requirement] }),
        invalid_selector: None,
        min_available: (field == "minAvailable").then_some(Amount::Int(value)),
        max_unavailable: (field == "maxUnavailable").then_some(Amount::Int(value)),
        unhealthy_policy: UnhealthyPolicy::IfHealthyBudget,
        status: PdbStatus { observed_generation: 1, has_condition: true, ..PdbStatus::default() },
    }
}

fn plan(name: &str, spec: &Value) -> DrainPlan {
    let object = json!({
        "apiVersion": "drainplan.dev/v1alpha1",
        "kind": "DrainPlan",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1, "resourceVersion": "1",
            "creationTimestamp": "2027-01-15T07:00:00Z"},
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// A plan over nodes by name, with changes to the usual spec.
fn over(nodes: &[&str], changes: &Value) -> Value {
    let mut spec =
        json!({"nodes": {"names": nodes}, "timeouts": {"node": "60s"}, "handOff": {"then": "Uncordon"}});
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    // Most tests let pods go without anything in their place.
    if spec["pace"]["awaitReplacements"].is_null() {
        spec["pace"]["awaitReplacements"] = json!(false);
    }
    spec
}

fn evictions(actions: &[Action]) -> Vec<&str> {
    let names = actions.iter().filter_map(|action| match action {
        Action::Evict(evict) => Some(&*evict.pod.name),
        _ => None,
    });
    names.collect()
}
