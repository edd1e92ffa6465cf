//! A control plane with the product on it, on which one case is played after the other.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use drainplan::api::DrainPlan;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::harness::{Audit, Controller, Installation, Testbed};
use crate::load::{LEARNS_ADMISSION, is_admission};
use crate::world::{Created, World};

/// What recounts budgets, replaces pods and ends namespaces.
pub const MANAGER: &str = "kube-controller-manager";
/// How long everything may take to be gone.
const GOES: Duration = Duration::from_secs(90);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// What a case may leave behind: group, version, kind, plural.
const KINDS: [(&str, &str, &str, &str); 12] = [
    ("", "v1", "Node", "nodes"),
    ("", "v1", "Namespace", "namespaces"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "PersistentVolume", "persistentvolumes"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
    ("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("drainplan.dev", "v1alpha1", "DrainPlan", "drainplans"),
];

/// A running control plane and the controller beside it.
pub struct Plane {
    installation: Installation,
    /// With all rights, and not in the audit log.
    pub simulator: Client,
    /// What was there before any case.
    before: BTreeSet<String>,
}

impl Plane {
    /// Starts one. It belongs to this process, so a crash leaves none behind.
    pub async fn up(number: usize) -> anyhow::Result<Self> {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_drainplan-controller"));
        let name = format!("cases-{}-{number}", std::process::id());
        let installation = Installation::create(&name, false, program).await?;
        let simulator = installation.testbed.simulator_client().await?;
        let before = census(&simulator).await?;
        Ok(Self { installation, simulator, before })
    }

    pub fn testbed(&self) -> &Testbed {
        &self.installation.testbed
    }

    pub fn controller(&self) -> &Controller {
        &self.installation.controller
    }

    pub fn audit(&self) -> Audit {
        self.installation.audit()
    }

    /// Removes what a case has left, and awaits it gone.
    pub async fn clean(&self, world: World<'_>) -> anyhow::Result<()> {
        let World { controlled, created, .. } = world;
        if !controlled {
            self.testbed().component("start", MANAGER).await?;
        }
        ensure!(
            self.controller().runs(),
            "the controller has ended; the end of its log:\n{}",
            self.controller().log_tail(20)
        );
        let plans: Api<DrainPlan> = Api::all(self.simulator.clone());
        for plan in plans.list(&ListParams::default()).await?.items {
            ignore_missing(plans.delete(&plan.name_any(), &DeleteParams::default()).await)?;
        }
        // The controller gives back what it holds; nodes go afterwards.
        self.gone("plans", |name| name.starts_with("DrainPlan ")).await?;
        // What the pods belong to goes first, else they come back.
        let (definitions, others): (Vec<&Created>, Vec<&Created>) =
            created.iter().rev().partition(|object| object.kind == "CustomResourceDefinition");
        for object in others {
            ignore_missing(object.api.delete(&object.name, &DeleteParams::background()).await)?;
        }
        self.gone("all but definitions", |name| !name.starts_with("CustomResourceDefinition ")).await?;
        for object in definitions {
            ignore_missing(object.api.delete(&object.name, &DeleteParams::background()).await)?;
        }
        self.gone("everything", |_| true).await?;
        if created.iter().any(|object| is_admission(&object.kind)) {
            // Nothing tells when the server has let go of it.
            sleep(LEARNS_ADMISSION).await;
        }
        Ok(())
    }

    /// Awaits that nothing of this is there but what was before any case; pods do not go by themselves.
    async fn gone(&self, what: &str, of: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + GOES;
        loop {
            let now = census(&self.simulator).await?;
            let left: Vec<&String> = now.difference(&self.before).filter(|name| of(name)).collect();
            if left.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{what}: not gone after {} s: {left:?}", GOES.as_secs());
            if left.iter().any(|name| name.starts_with("Pod ")) {
                self.end_pods().await?;
            }
            sleep(LOOK).await;
        }
    }

    /// Ends all pods, whatever would keep them.
    async fn end_pods(&self) -> anyhow::Result<()> {
        let pods = Api::<Pod>::all(self.simulator.clone()).list(&ListParams::default()).await?;
        for pod in pods.items {
            let name = pod.name_any();
            let api = Api::<Pod>::namespaced(self.simulator.clone(), &pod.namespace().unwrap_or_default());
            if !pod.finalizers().is_empty() {
                let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                ignore_missing(api.patch(&name, &PatchParams::default(), &patch).await)?;
            }
            let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            ignore_missing(api.delete(&name, &params).await)?;
        }
        Ok(())
    }
}

/// Everything that cases must not leave to each other, as "Kind namespace/name".
async fn census(client: &Client) -> anyhow::Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for (group, version, kind, plural) in KINDS {
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let list = api.list_metadata(&ListParams::default()).await;
        for object in list.with_context(|| format!("cannot list {plural}"))? {
            all.insert(format!("{kind} {}/{}", object.namespace().unwrap_or_default(), object.name_any()));
        }
    }
    Ok(all)
}

fn ignore_missing<T>(answer: Result<T, kube::Error>) -> anyhow::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        answer => Ok(answer.map(drop)?),
    }
}
