//! What one case has of the cluster: a namespace, nodes that only its pods can be on, plans under its name.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Audit, Installation, PlanRun, Record, Recorder, Request, Sight, Template, allowed, cordoned, holder,
    is_ready, node_of, owned_by, terminating, uid,
};

/// How long the control plane may take to bring about what was asked for.
const SETTLES: Duration = Duration::from_mins(1);
/// The label of a case's nodes.
const OF_CASE: &str = "e2e.drainplan.dev/case";

/// One case's part of the cluster.
#[derive(Clone)]
pub struct Bed {
    /// The case's name; also its namespace and the beginning of its nodes' and plans' names.
    pub name: String,
    pub installation: Arc<Installation>,
}

impl Bed {
    /// Makes the namespace.
    pub async fn new(installation: Arc<Installation>, name: &str) -> Result<Self> {
        let bed = Self { name: name.to_owned(), installation };
        bed.namespace(name).await?;
        Ok(bed)
    }

    /// Another namespace that pods can be created in.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        // Pods are refused until the account is there.
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), name);
        let recorder = Recorder::start(accounts, None).await?;
        recorder
            .until(&format!("namespace {name} has its service account"), SETTLES, |record| {
                if record.now.contains_key(&format!("{name}/default")) {
                    Sight::Found(())
                } else {
                    Sight::NotYet("there is none".to_owned())
                }
            })
            .await
    }

    pub fn client(&self) -> Client {
        self.installation.client()
    }

    pub fn audit(&self) -> Audit {
        self.installation.audit()
    }

    fn api<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self) -> Api<K> {
        Api::namespaced(self.client(), &self.name)
    }

    pub fn pods(&self) -> Api<Pod> {
        self.api()
    }

    pub fn budgets(&self) -> Api<PodDisruptionBudget> {
        self.api()
    }

    // === nodes ===

    /// The name of a node of this case.
    pub fn node(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    /// Creates nodes with room for so many pods each; returns their names when pods can be scheduled there.
    pub async fn nodes(&self, suffixes: &[&str], room: u32) -> Result<Vec<String>> {
        let api: Api<Node> = Api::all(self.client());
        let mut names = Vec::new();
        for suffix in suffixes {
            let name = self.node(suffix);
            let node: Node = serde_json::from_value(json!({
                "metadata": {
                    "name": name,
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                    "labels": {
                        OF_CASE: self.name,
                        "kubernetes.io/hostname": name,
                        "kubernetes.io/os": "linux",
                        "kubernetes.io/arch": "amd64",
                    },
                },
                "status": {"capacity": capacity(room), "allocatable": capacity(room)},
            }))?;
            api.create(&PostParams::default(), &node).await?;
            names.push(name);
        }
        let recorder = Recorder::start(api, None).await?;
        recorder
            .until("nodes can be used", SETTLES, |record| {
                let unusable =
                    names.iter().filter(|name| !record.now.get(*name).is_some_and(|node| usable(node)));
                let unusable: Vec<&String> = unusable.collect();
                if unusable.is_empty() {
                    Sight::Found(())
                } else {
                    Sight::NotYet(format!("{unusable:?} are not Ready or tainted"))
                }
            })
            .await?;
        Ok(names)
    }

    /// Changes how many pods a node has room for.
    pub async fn resize(&self, node: &str, room: u32) -> Result<()> {
        let api: Api<Node> = Api::all(self.client());
        let patch = json!({"status": {"capacity": capacity(room), "allocatable": capacity(room)}});
        api.patch_status(node, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Records all nodes of the cluster.
    pub async fn record_nodes(&self) -> Result<Recorder<Node>> {
        Recorder::start(Api::all(self.client()), None).await
    }

    /// Awaits that a node is cordoned or not, and what of ours is on it.
    pub async fn node_rests(&self, name: &str, on: bool, ours: &[String]) -> Result<()> {
        let recorder =
            Recorder::<Node>::start(Api::all(self.client()), Some(&format!("metadata.name={name}"))).await?;
        let what =
            format!("node {name} is {} and carries {ours:?}", if on { "cordoned" } else { "schedulable" });
        recorder
            .until(&what, SETTLES, |record| match record.now.get(name) {
                Some(node) if cordoned(node) == on && holder(node) == ours => Sight::Found(()),
                Some(node) => Sight::NotYet(format!("cordoned {}, {:?}", cordoned(node), holder(node))),
                None => Sight::Never("it is gone".to_owned()),
            })
            .await
    }

    // === workloads ===

    async fn create<K>(&self, object: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Serialize,
    {
        let typed: K = serde_json::from_value(object)?;
        let name = typed.meta().name.clone().unwrap_or_default();
        let created = self.api::<K>().create(&PostParams::default(), &typed).await;
        created.with_context(|| format!("cannot create {} {}/{name}", K::kind(&()), self.name))
    }

    fn template(&self, app: &str, template: &Template) -> Value {
        template.json(&json!({"app": app}), &json!({OF_CASE: self.name}))
    }

    /// A Deployment whose pods carry the label `app=<name>`.
    pub async fn deployment(&self, name: &str, replicas: u32, template: &Template) -> Result<Deployment> {
        self.create(json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self.template(name, template),
            },
        }))
        .await
    }

    /// A budget over the pods with these labels.
    pub async fn budget(&self, name: &str, labels: Value, fields: Value) -> Result<()> {
        let mut spec = json!({"selector": {"matchLabels": labels}});
        if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
            spec.extend(fields.clone());
        }
        self.create::<PodDisruptionBudget>(json!({"metadata": {"name": name}, "spec": spec})).await?;
        Ok(())
    }

    /// Awaits that exactly so many pods of the workload are there and all of them are Ready.
    pub async fn all_ready(&self, app: &str, count: usize) -> Result<Vec<Pod>> {
        let pods = Recorder::start(self.pods(), None).await?;
        let what = format!("{}/{app} has {count} Ready pods", self.name);
        pods.until(&what, SETTLES, |record| {
            let all: Vec<Pod> = of_app(record, app);
            let good = all.iter().filter(|pod| is_ready(pod) && !terminating(pod)).count();
            if good == count && all.len() == count {
                Sight::Found(all)
            } else {
                Sight::NotYet(pods_told(&all))
            }
        })
        .await
    }

    /// Awaits a state of the workload's pods.
    pub async fn pods_until(
        &self,
        app: &str,
        what: &str,
        mut look: impl FnMut(&[Pod]) -> bool,
    ) -> Result<Vec<Pod>> {
        let pods = Recorder::start(self.pods(), None).await?;
        pods.until(&format!("{}/{app}: {what}", self.name), SETTLES, |record| {
            let all = of_app(record, app);
            if look(&all) { Sight::Found(all) } else { Sight::NotYet(pods_told(&all)) }
        })
        .await
    }

    /// Awaits that the budget reports these numbers for its present spec.
    pub async fn budget_allows(&self, name: &str, expected_pods: i32, allows: i32) -> Result<()> {
        self.budget_until(name, &format!("{expected_pods} expected, {allows} allowed"), |budget| {
            let expected = budget.status.as_ref().and_then(|status| status.expected_pods);
            allowed(budget) == Some(allows) && expected == Some(expected_pods)
        })
        .await
    }

    /// Awaits a state of a budget.
    pub async fn budget_until(
        &self,
        name: &str,
        what: &str,
        mut look: impl FnMut(&PodDisruptionBudget) -> bool,
    ) -> Result<()> {
        let budgets = Recorder::start(self.budgets(), None).await?;
        let key = format!("{}/{name}", self.name);
        budgets
            .until(&format!("budget {key}: {what}"), SETTLES, |record| match record.now.get(&key) {
                Some(budget) if look(budget) => Sight::Found(()),
                Some(budget) => Sight::NotYet(format!("{:?}", budget.status)),
                None => Sight::NotYet("it is not there".to_owned()),
            })
            .await
    }

    // === plans ===

    /// Creates a plan of this case.
    pub async fn plan(&self, suffix: &str, spec: Value) -> Result<PlanRun> {
        PlanRun::create(self.client(), &self.node(suffix), spec).await
    }

    /// The evictions that the controller asked for in this case's namespace. Nobody else may have asked for any.
    pub fn evictions(&self) -> Result<Vec<Request>> {
        let evictions = self.audit().evictions(&self.name)?;
        for eviction in &evictions {
            ensure!(
                eviction.user == Installation::user() && eviction.agent.starts_with("drainplan-controller/"),
                "an eviction that is not the controller's: {}",
                eviction.line()
            );
            ensure!(eviction.precondition().is_some(), "an eviction without a uid: {}", eviction.line());
        }
        Ok(evictions)
    }

    /// The uids whose eviction was accepted; fails when one of them was accepted twice.
    pub fn accepted(&self) -> Result<Vec<String>> {
        let mut accepted: Vec<String> = Vec::new();
        for eviction in self.evictions()?.iter().filter(|eviction| eviction.code == 201) {
            let uid = eviction.precondition().unwrap_or_default().to_owned();
            ensure!(!accepted.contains(&uid), "accepted a second time: {}", eviction.line());
            accepted.push(uid);
        }
        Ok(accepted)
    }
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

fn of_app(record: &Record<Pod>, app: &str) -> Vec<Pod> {
    record.now.values().filter(|pod| owned_by(pod, app)).map(|pod| (**pod).clone()).collect()
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
