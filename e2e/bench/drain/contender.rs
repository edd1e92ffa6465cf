//! Who drains, and how.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use drainplan::api::{DrainPlan, PlanPhase};
use jiff::Timestamp;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use super::harness::{Installation, PlanRun, Testbed};
use super::workload::{TARGETS, Workload};

/// How long a plan may take.
const LIMIT: Duration = Duration::from_mins(10);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// `kubectl drain NODE`, one after the other.
    KubectlEach,
    /// `kubectl drain --selector`.
    KubectlAll,
    /// A plan, one node at a time.
    PlanEach,
    /// A plan, all nodes at once.
    PlanAll,
}

pub const ALL: [Contender; 4] =
    [Contender::KubectlEach, Contender::KubectlAll, Contender::PlanEach, Contender::PlanAll];

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::KubectlEach => "kubectl drain, node by node",
            Self::KubectlAll => "kubectl drain -l",
            Self::PlanEach => "plan, maxConcurrentNodes 1",
            Self::PlanAll => "plan, maxConcurrentNodes 100%",
        }
    }

    /// How its requests are signed.
    pub fn agent(self) -> &'static str {
        match self {
            Self::KubectlEach | Self::KubectlAll => "kubectl/",
            Self::PlanEach | Self::PlanAll => "drainplan-controller/",
        }
    }

    /// Why it cannot take part.
    pub fn missing(self) -> Option<&'static str> {
        let lacks = self == Self::PlanAll && !has_field("/pace/properties/maxConcurrentNodes");
        lacks.then_some("the schema has no pace.maxConcurrentNodes, so a plan takes one node at a time")
    }

    /// Makes ready what is there before the drain begins.
    pub async fn prepare(self, testbed: Testbed, controller: &Path) -> Result<Ready> {
        match self {
            Self::KubectlEach | Self::KubectlAll => Ok(Ready::Testbed(testbed)),
            Self::PlanEach | Self::PlanAll => {
                Installation::on(testbed, controller.to_owned()).await.map(Ready::Installation)
            }
        }
    }

    /// Drains the targets; returns when whoever drains says that they are empty. When it was asked for.
    pub async fn drain(self, ready: &Ready, workload: &Workload) -> Result<Timestamp> {
        let began = Timestamp::now();
        match self {
            Self::KubectlEach => {
                for node in workload.target_names() {
                    ready.testbed().kubectl(&["drain", &node]).await?;
                }
            }
            Self::KubectlAll => {
                let selector = format!("pool={TARGETS}");
                ready.testbed().kubectl(&["drain", "--selector", &selector]).await?;
            }
            Self::PlanEach | Self::PlanAll => {
                let plan = PlanRun::create(ready.testbed().client(), "bench", self.spec()).await?;
                plan.ends(PlanPhase::Completed, LIMIT).await.context("the plan")?;
            }
        }
        Ok(began)
    }

    fn spec(self) -> Value {
        let mut spec = json!({
            "nodes": {"selector": {"matchLabels": {"pool": TARGETS}}},
            "handOff": {"until": "Drained", "then": "KeepCordoned"},
        });
        let mut pace = serde_json::Map::new();
        if has_field("/pace/properties/maxConcurrentNodes") {
            let nodes = if self == Self::PlanAll { json!("100%") } else { json!(1) };
            pace.insert("maxConcurrentNodes".to_owned(), nodes);
        }
        // kubectl does not wait for replacements between nodes either.
        if has_field("/pace/properties/awaitReplacements") {
            pace.insert("awaitReplacements".to_owned(), json!(false));
        }
        if let Some(spec) = spec.as_object_mut().filter(|_| !pace.is_empty()) {
            spec.insert("pace".to_owned(), Value::Object(pace));
        }
        spec
    }
}

/// Whether the schema of a plan's spec has a field.
fn has_field(path: &str) -> bool {
    let schema = serde_json::to_value(DrainPlan::crd()).unwrap_or_default();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    schema.pointer(&format!("{spec}{path}")).is_some()
}

/// A cluster, with the controller on it where one drains.
pub enum Ready {
    Testbed(Testbed),
    Installation(Installation),
}

impl Ready {
    pub fn testbed(&self) -> &Testbed {
        match self {
            Self::Testbed(testbed) => testbed,
            Self::Installation(installation) => &installation.testbed,
        }
    }

    /// Fails when whoever drains is not there any more.
    pub fn ensure_alive(&self) -> Result<()> {
        match self {
            Self::Installation(installation) if !installation.controller.runs() => {
                bail!("the controller has ended: {}", installation.controller.log_tail(20))
            }
            _ => Ok(()),
        }
    }
}
