//! A namespace, and the workloads in it.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Record, Recorder, Sight, Template, allowed, is_ready, owned_by, pods_told, terminating};

/// How long the control plane may take to bring about what was asked for.
const SETTLES: Duration = Duration::from_mins(1);

/// A namespace whose pods go to nodes with certain labels.
#[derive(Clone)]
pub struct Space {
    pub name: String,
    client: Client,
    node_labels: Map<String, Value>,
}

impl Space {
    /// Makes the namespace; pods can be created in it then.
    pub async fn create(client: Client, name: &str, node_labels: Map<String, Value>) -> Result<Self> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        // Pods are refused until the account is there.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
        let recorder = Recorder::start(accounts, None).await?;
        recorder
            .until(&format!("namespace {name} has its service account"), SETTLES, |record| {
                if record.now.contains_key(&format!("{name}/default")) {
                    Sight::Found(())
                } else {
                    Sight::NotYet("there is none".to_owned())
                }
            })
            .await?;
        Ok(Self { name: name.to_owned(), client, node_labels })
    }

    fn api<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub fn pods(&self) -> Api<Pod> {
        self.api()
    }

    pub fn budgets(&self) -> Api<PodDisruptionBudget> {
        self.api()
    }

    /// Creates any object of the namespace.
    pub async fn add<K>(&self, object: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Serialize,
    {
        let typed: K = serde_json::from_value(object)?;
        let name = typed.meta().name.clone().unwrap_or_default();
        let created = self.api::<K>().create(&PostParams::default(), &typed).await;
        created.with_context(|| format!("cannot create {} {}/{name}", K::kind(&()), self.name))
    }

    fn template(&self, app: &str, template: &Template) -> Value {
        template.json(&json!({"app": app}), &self.node_labels)
    }

    /// A Deployment whose pods carry the label `app=<name>`.
    pub async fn deployment(&self, name: &str, replicas: u32, template: &Template) -> Result<Deployment> {
        self.add(json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self.template(name, template),
            },
        }))
        .await
    }

    /// Changes how many pods a Deployment wants.
    pub async fn scale(&self, name: &str, replicas: u32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.api::<Deployment>().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// A StatefulSet whose pods carry the label `app=<name>`.
    pub async fn stateful_set(&self, name: &str, replicas: u32, template: &Template) -> Result<StatefulSet> {
        self.add(json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "serviceName": name,
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": name}},
                "template": self.template(name, template),
            },
        }))
        .await
    }

    /// A DaemonSet whose pods carry the label `app=<name>`.
    pub async fn daemon_set(&self, name: &str, template: &Template) -> Result<DaemonSet> {
        self.add(json!({
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": self.template(name, template)},
        }))
        .await
    }

    /// A Job whose pods carry the label `app=<name>`.
    pub async fn job(&self, name: &str, template: &Template) -> Result<Job> {
        let template = self.template(name, &template.clone().never_restarted());
        self.add(json!({"metadata": {"name": name}, "spec": {"template": template}})).await
    }

    /// A pod without a controller, with the label `app=<name>`.
    pub async fn pod(&self, name: &str, template: &Template) -> Result<Pod> {
        let mut pod = self.template(name, template);
        if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), json!(name));
        }
        self.add(pod).await
    }

    /// Opens a readiness gate of a pod, which is Ready then.
    pub async fn open_gate(&self, pod: &str, condition: &str) -> Result<()> {
        let opened = json!({"status": {"conditions": [{"type": condition, "status": "True"}]}});
        self.pods().patch_status(pod, &PatchParams::default(), &Patch::Strategic(opened)).await?;
        Ok(())
    }

    /// From now on the pod breaks: it is not Ready any more and is restarted again and again.
    pub async fn break_pod(&self, name: &str) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"sim.drainplan.dev/ready": "never"}}});
        self.pods().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// A budget over the pods of these workloads.
    pub async fn budget(&self, name: &str, apps: &[&str], fields: Value) -> Result<()> {
        let mut spec = json!({"selector": {"matchExpressions": [
            {"key": "app", "operator": "In", "values": apps},
        ]}});
        if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
            spec.extend(fields);
        }
        self.add::<PodDisruptionBudget>(json!({"metadata": {"name": name}, "spec": spec})).await?;
        Ok(())
    }

    /// Awaits that exactly so many pods of the workload are there and all of them are Ready.
    pub async fn all_ready(&self, app: &str, count: usize) -> Result<Vec<Pod>> {
        self.pods_until(app, &format!("{count} Ready pods"), |all| {
            all.len() == count && all.iter().all(|pod| is_ready(pod) && !terminating(pod))
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
}

fn of_app(record: &Record<Pod>, app: &str) -> Vec<Pod> {
    record.now.values().filter(|pod| owned_by(pod, app)).map(|pod| (**pod).clone()).collect()
}
