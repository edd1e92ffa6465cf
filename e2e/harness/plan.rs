//! A plan and everything its status ever said.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus, PlanPhase, WaitingPod, names};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{Record, Recorder, Sight};

/// A plan that was created, recorded from before that on.
pub struct PlanRun {
    pub name: String,
    api: Api<DrainPlan>,
    recorder: Recorder<DrainPlan>,
}

impl PlanRun {
    /// Creates a plan.
    pub async fn create(client: Client, name: &str, spec: Value) -> Result<Self> {
        let run = Self::watch(client, name).await?;
        let plan = json!({
            "apiVersion": "drainplan.dev/v1alpha1",
            "kind": "DrainPlan",
            "metadata": {"name": name},
            "spec": spec,
        });
        let plan: DrainPlan = serde_json::from_value(plan)?;
        run.api.create(&PostParams::default(), &plan).await.with_context(|| format!("plan {name}"))?;
        Ok(run)
    }

    /// Watches a plan that somebody else will create.
    pub async fn watch(client: Client, name: &str) -> Result<Self> {
        let api: Api<DrainPlan> = Api::all(client);
        let recorder = Recorder::start(api.clone(), Some(&format!("metadata.name={name}"))).await?;
        Ok(Self { name: name.to_owned(), api, recorder })
    }

    /// Awaits something of the plan's status.
    pub async fn until<T>(
        &self,
        what: &str,
        within: Duration,
        mut look: impl FnMut(&DrainPlanStatus) -> Sight<T>,
    ) -> Result<T> {
        self.recorder
            .until(&format!("plan {}: {what}", self.name), within, |record: &Record<DrainPlan>| {
                let plan = record.now.get(&self.name);
                // Before the controller's first word there is only the server's default.
                let said = |status: &&DrainPlanStatus| status.phase.is_some();
                match plan.and_then(|plan| plan.status.as_ref()).filter(said) {
                    Some(status) => look(status),
                    None if plan.is_some() => Sight::NotYet("it has no status yet".to_owned()),
                    None if record.events.is_empty() => Sight::NotYet("nothing of it".to_owned()),
                    None => Sight::Never("it is gone".to_owned()),
                }
            })
            .await
    }

    /// Awaits the plan's end, which must be this one.
    pub async fn ends(&self, phase: PlanPhase, within: Duration) -> Result<DrainPlanStatus> {
        self.until(&format!("ends {phase:?}"), within, |status| match status.phase {
            Some(now) if now == phase && status.finished_at.is_some() => Sight::Found(status.clone()),
            _ if status.finished_at.is_some() => {
                Sight::Never(format!("it ended otherwise: {}", told(status)))
            }
            _ => Sight::NotYet(told(status)),
        })
        .await
    }

    /// Awaits a waiting pod that `wanted` recognises, in any status that the plan had until then.
    pub async fn shows_waiting(
        &self,
        what: &str,
        within: Duration,
        wanted: impl Fn(&NodeStatus, &WaitingPod) -> bool,
    ) -> Result<(NodeStatus, WaitingPod)> {
        let what = format!("plan {}: shows a waiting pod with {what}", self.name);
        self.recorder
            .until(&what, within, |record| {
                let mut last = "no waiting pod".to_owned();
                for status in record.events.iter().filter_map(|seen| seen.object.status.as_ref()) {
                    for node in &status.nodes {
                        if let Some(pod) = node.waiting.iter().find(|pod| wanted(node, pod)) {
                            return Sight::Found((node.clone(), pod.clone()));
                        }
                    }
                    last = told(status);
                }
                let ended = record
                    .now
                    .values()
                    .any(|plan| plan.status.as_ref().is_some_and(|status| status.finished_at.is_some()));
                if ended { Sight::Never(format!("it has ended: {last}")) } else { Sight::NotYet(last) }
            })
            .await
    }

    /// Awaits a status like this, among all that the plan ever had.
    pub async fn shows(
        &self,
        what: &str,
        within: Duration,
        wanted: impl Fn(&DrainPlanStatus) -> bool,
    ) -> Result<()> {
        self.recorder
            .until(&format!("plan {}: shows {what}", self.name), within, |record| {
                let mut statuses = record.events.iter().filter_map(|seen| seen.object.status.as_ref());
                if statuses.any(&wanted) { Sight::Found(()) } else { Sight::NotYet("not yet".to_owned()) }
            })
            .await
    }

    /// Every status that was seen, in order.
    pub fn statuses(&self) -> Vec<DrainPlanStatus> {
        self.recorder
            .with(|record| record.events.iter().filter_map(|seen| seen.object.status.clone()).collect())
    }

    /// Awaits that the object is gone.
    pub async fn gone(&self, within: Duration) -> Result<()> {
        self.recorder
            .until(&format!("plan {} is gone", self.name), within, |record| {
                match record.now.get(&self.name) {
                    Some(plan) => Sight::NotYet(format!("finalizers {:?}", plan.metadata.finalizers)),
                    None => Sight::Found(()),
                }
            })
            .await
    }

    /// Awaits that the plan holds no node any more, which its finalizer tells.
    #[allow(dead_code, reason = "the cases use it")]
    pub async fn holds_nothing(&self, within: Duration) -> Result<()> {
        self.recorder
            .until(&format!("plan {} holds no node", self.name), within, |record| {
                let Some(plan) = record.now.get(&self.name) else {
                    return Sight::Never("it is gone".to_owned());
                };
                let holds = plan.finalizers().iter().any(|finalizer| finalizer == names::FINALIZER);
                if holds { Sight::NotYet("its finalizer is there".to_owned()) } else { Sight::Found(()) }
            })
            .await
    }

    /// Deletes the plan; its finalizer may keep it for a while.
    pub async fn delete(&self) -> Result<()> {
        self.api.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Awaits that the node is being drained.
    pub async fn drains(&self, node: &str, within: Duration) -> Result<NodeStatus> {
        self.until(&format!("drains {node}"), within, |status| {
            let of_node = status.nodes.iter().find(|it| it.name == node);
            match of_node {
                Some(now) if now.phase == NodePhase::Draining => Sight::Found(now.clone()),
                Some(now) if now.phase != NodePhase::Pending => Sight::Never(told(status)),
                _ => Sight::NotYet(told(status)),
            }
        })
        .await
    }

    /// Awaits that the node is handed off.
    pub async fn hands_off(&self, node: &str, within: Duration) -> Result<NodeStatus> {
        self.until(&format!("hands off {node}"), within, |status| {
            let of_node = status.nodes.iter().find(|it| it.name == node);
            match of_node {
                Some(now) if now.phase == NodePhase::HandedOff => Sight::Found(now.clone()),
                Some(now) if !matches!(now.phase, NodePhase::Pending | NodePhase::Draining) => {
                    Sight::Never(told(status))
                }
                _ => Sight::NotYet(told(status)),
            }
        })
        .await
    }

    /// Changes the spec by a merge patch.
    pub async fn change(&self, spec: Value) -> Result<DrainPlan, kube::Error> {
        self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
    }
}

/// A status in one line.
pub fn told(status: &DrainPlanStatus) -> String {
    let phase = status.phase.map_or_else(|| "no phase".to_owned(), |phase| format!("{phase:?}"));
    let mut told = format!("{phase} {}", status.progress.as_deref().unwrap_or("-"));
    for node in &status.nodes {
        let reason = node.reason.as_deref().unwrap_or("-");
        let _ = write!(told, "; {} {:?} {reason} {} left", node.name, node.phase, node.pods_left);
        for pod in &node.waiting {
            let _ = write!(told, ", {} {}: {}", pod.pod, pod.reason, pod.message);
        }
    }
    told
}
