//! The workloads whose pods can never be evicted, each for a reason of its own, and what the plan must say of them.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use super::harness::{Recorder, Sight, Space, Template, node_of, nodes};
use super::story::{Load, tell};

/// A workload that holds its node.
pub struct Held {
    pub node: &'static str,
    /// The namespace.
    pub space: &'static str,
    /// The Deployment.
    pub app: &'static str,
    pub replicas: u32,
    /// Its budgets: name, field and amount.
    pub budgets: &'static [(&'static str, &'static str, u32)],
    /// The amount of the first budget for the demo's check of itself.
    pub lax: Option<u32>,
    /// A Job under the first budget, finished before the plan comes.
    pub job: Option<&'static str>,
    /// What the plan must say of each of its pods.
    pub reason: &'static str,
    pub parts: &'static [&'static str],
    /// What the server answers to an eviction.
    pub code: u16,
}

/// All of them, by node.
pub const HELD: [Held; 5] = [
    Held {
        node: "worker-2",
        space: "billing",
        app: "ledger",
        replicas: 2,
        budgets: &[("ledger", "minAvailable", 2)],
        lax: Some(1),
        job: None,
        reason: "BudgetNeverAllows",
        parts: &["minAvailable 2 of 2", "write maxUnavailable: 1", "at least 3 replicas"],
        code: 429,
    },
    Held {
        node: "worker-3",
        space: "auth",
        app: "sessions",
        replicas: 3,
        budgets: &[("sessions", "maxUnavailable", 0)],
        lax: None,
        job: None,
        reason: "BudgetNeverAllows",
        parts: &["maxUnavailable 0 of 3", "write maxUnavailable: 1"],
        code: 429,
    },
    Held {
        node: "worker-5",
        space: "mail",
        app: "queue",
        replicas: 1,
        budgets: &[("queue", "minAvailable", 1)],
        lax: None,
        job: None,
        reason: "BudgetNeverAllows",
        parts: &["minAvailable 1 of 1", "at least 2 replicas"],
        code: 429,
    },
    Held {
        node: "worker-6",
        space: "reports",
        app: "api",
        replicas: 2,
        budgets: &[("reports", "maxUnavailable", 1)],
        lax: None,
        job: Some("export"),
        reason: "BudgetSyncFailed",
        parts: &["jobs.batch does not implement the scale subresource", "elete Job export"],
        code: 429,
    },
    Held {
        node: "worker-7",
        space: "media",
        app: "thumbs",
        replicas: 2,
        budgets: &[("chart", "maxUnavailable", 1), ("team", "minAvailable", 1)],
        lax: None,
        job: None,
        reason: "MultipleBudgets",
        parts: &["media/chart", "media/team"],
        code: 500,
    },
];

impl Held {
    /// The Deployment as `namespace/name`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.space, self.app)
    }

    /// Creates the node, with no more room than it needs, and the workload; returns its pods when they are Ready.
    pub async fn load(&self, client: Client, pool: &Map<String, Value>, load: Load) -> Result<Vec<Pod>> {
        let budgets: Vec<(&str, &str, u32)> = self
            .budgets
            .iter()
            .map(|(name, field, amount)| match (load, self.lax) {
                (Load::Lax, Some(lax)) => (*name, *field, lax),
                _ => (*name, *field, *amount),
            })
            .collect();
        tell(&self.name(), self.node, &self.told(&budgets));

        nodes::create(client.clone(), &[self.node.to_owned()], pool, self.replicas).await?;
        let space = Space::create(client.clone(), self.space, Map::new()).await?;
        let apps: Vec<&str> = self.job.into_iter().chain([self.app]).collect();
        for (name, field, amount) in &budgets {
            space.budget(name, &apps, json!({*field: amount})).await?;
        }
        if let Some(job) = self.job {
            space.job(job, &Template::new().sim("complete-after", "0s")).await?;
            // A finished pod takes no room.
            space.pods_until(job, "a finished pod", |all| all.iter().any(finished)).await?;
        }
        space.deployment(self.app, self.replicas, &Template::new()).await?;
        let pods = space.all_ready(self.app, usize::try_from(self.replicas)?).await?;
        let elsewhere = pods.iter().any(|pod| node_of(pod) != self.node);
        ensure!(!elsewhere, "pods of {} are not on {}", self.name(), self.node);
        if let Some(job) = self.job {
            job_ends(Api::namespaced(client, self.space), job).await?;
            for (name, ..) in &budgets {
                space.budget_until(name, "SyncFailed", sync_failed).await?;
            }
        }
        Ok(pods)
    }

    fn told(&self, budgets: &[(&str, &str, u32)]) -> String {
        let replicas = if self.replicas == 1 { "replica" } else { "replicas" };
        let fields: Vec<String> =
            budgets.iter().map(|(_, field, amount)| format!("{field}: {amount}")).collect();
        let several = if fields.len() > 1 { "two budgets: " } else { "" };
        let job = if self.job.is_some() { ", a finished Job under the same budget" } else { "" };
        format!("{} {replicas}, {several}{}{job}", self.replicas, fields.join(" and "))
    }
}

fn finished(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded")
}

fn sync_failed(budget: &PodDisruptionBudget) -> bool {
    let conditions = budget.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.reason == "SyncFailed")
}

/// Awaits that the Job says that it has ended, which it does a while after its pod: until then it might still clear.
async fn job_ends(jobs: Api<Job>, name: &str) -> Result<()> {
    let jobs = Recorder::start(jobs, None).await?;
    jobs.until(&format!("the Job {name} has ended"), Duration::from_mins(1), |record| {
        let ended = |job: &Job| job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
        if record.now.values().any(|job| job.metadata.name.as_deref() == Some(name) && ended(job)) {
            Sight::Found(())
        } else {
            Sight::NotYet("not yet".to_owned())
        }
    })
    .await
}
