//! The hands: one decided action, done on the server, and what came of it.
//!
//! Every call is bounded by the time the lease still gives, so that no request outlives leadership. Nothing here
//! retries: what failed is an outcome, and the next decision says what to do about it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::{DeserializeGuard, Status};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::sync::watch;

use super::call::{CallError, result_of, within};
use super::lease::{Leadership, Resign};
use super::metrics::Metrics;
use super::pace::Pace;
use super::watch::seen;
use super::{answers, report, rights, scales};
use crate::api::{DrainPlan, names};
use crate::cluster::{OwnerRef, PodKey, Scale, Text, Watched, kinds};
use crate::plan::{Answer, Errand, Evict, Failure, NodeChange, Outcome, StatusWrite};

/// Who writes, as `managedFields` shows it.
const FIELD_MANAGER: &str = "drainplan";
/// How long a call may take; less when the lease ends before.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Evictions pass admission webhooks, which may take their time.
const EVICTION_LIMIT: Duration = Duration::from_secs(30);
/// How long a request may wait for its turn; the errand is given up then, and decided anew.
const TURN_LIMIT: Duration = Duration::from_secs(3);

/// Does what was decided.
#[derive(Clone)]
pub struct Hands {
    client: Client,
    leadership: watch::Receiver<Leadership>,
    metrics: Metrics,
    pace: Pace,
    resign: Option<Resign>,
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl Hands {
    pub fn new(client: Client, leadership: watch::Receiver<Leadership>, metrics: Metrics) -> Self {
        Self { client, leadership, metrics, pace: Pace::default(), resign: None }
    }

    /// Sends no more than that.
    #[must_use]
    pub fn at(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Gives the lease back by that.
    #[must_use]
    pub fn resigning(self, resign: Resign) -> Self {
        Self { resign: Some(resign), ..self }
    }

    /// Waits for the turn of a request; how long it may take then. Without any time it is not sent.
    async fn limit(&self, most: Duration) -> Duration {
        self.limit_of(1, most).await
    }

    async fn limit_of(&self, requests: u32, most: Duration) -> Duration {
        if self.pace.turn(requests, TURN_LIMIT).await { self.left(most) } else { Duration::ZERO }
    }

    fn left(&self, most: Duration) -> Duration {
        self.leadership.borrow().may_act().map_or(Duration::ZERO, |left| left.min(most))
    }

    /// Carries out an errand.
    pub async fn carry_out(self, errand: Errand) -> Outcome {
        match errand {
            Errand::WriteStatus(write) => self.write_status(*write).await,
            Errand::AddFinalizer(plan) => self.add_finalizer(&plan).await,
            Errand::RemoveFinalizer(plan) => self.remove_finalizer(&plan).await,
            Errand::PatchNode { node, change, patch } => self.patch_node(node, change, patch).await,
            Errand::ListPods { node, since } => self.list_pods(node, since).await,
            Errand::ListPlans => self.list_plans().await,
            Errand::ReadScale { namespace, owner } => self.read_scale(namespace, owner).await,
            Errand::AskRight { namespace } => self.ask_right(namespace).await,
            Errand::Evict { eviction, look } => self.evict(eviction, look).await,
            Errand::HandOver => {
                if let Some(resign) = &self.resign {
                    resign.resign().await;
                }
                Outcome::HandedOver
            }
        }
    }

    /// Writes a plan's status, unless the plan has changed since it was read.
    async fn write_status(self, write: StatusWrite) -> Outcome {
        let StatusWrite { plan, status, counted, notices } = write;
        let name = plan.name_any();
        let patch = json!({
            "apiVersion": DrainPlan::api_version(&()),
            "kind": DrainPlan::kind(&()),
            "metadata": {"resourceVersion": plan.resource_version()},
            "status": status,
        });
        let plans: Api<DrainPlan> = Api::all(self.client.clone());
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let result =
            within(self.limit(CALL_LIMIT).await, plans.patch_status(&name, &params, &Patch::Apply(&patch)))
                .await;
        self.metrics.status_write(result_of(&result));
        if result.is_ok() {
            for took in report::drained(plan.status.as_ref(), &status) {
                self.metrics.node_drained(took);
            }
        }
        let uid = plan.uid().unwrap_or_default();
        Outcome::Status { uid, counted, notices, result: result.map_err(Failure::from) }
    }

    /// Puts our finalizer on a plan.
    async fn add_finalizer(self, plan: &ObjectMeta) -> Outcome {
        let mut finalizers = plan.finalizers.clone().unwrap_or_default();
        finalizers.push(names::FINALIZER.to_owned());
        self.set_finalizers(plan, finalizers).await
    }

    /// Takes our finalizer off a plan, which may end its object.
    async fn remove_finalizer(self, plan: &ObjectMeta) -> Outcome {
        let mut finalizers = plan.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != names::FINALIZER);
        self.set_finalizers(plan, finalizers).await
    }

    async fn set_finalizers(self, plan: &ObjectMeta, finalizers: Vec<String>) -> Outcome {
        // A merge patch with the resourceVersion: the list is replaced only if nobody has changed it meanwhile.
        let patch = json!({"metadata": {"resourceVersion": plan.resource_version, "finalizers": finalizers}});
        let plans: Api<DeserializeGuard<DrainPlan>> = Api::all(self.client.clone());
        let (name, params) = (
            plan.name.clone().unwrap_or_default(),
            PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..Default::default() },
        );
        let result =
            within(self.limit(CALL_LIMIT).await, plans.patch(&name, &params, &Patch::Merge(&patch))).await;
        let result = match result {
            Err(error) if error.code() == Some(404) => Ok(None),
            other => other.map(|plan| plan.0.ok()).map_err(Failure::from),
        };
        Outcome::Finalizer { uid: plan.uid.clone().unwrap_or_default(), result }
    }

    /// Patches a node by a JSON patch that tests its resourceVersion.
    async fn patch_node(self, name: Text, change: NodeChange, patch: serde_json::Value) -> Outcome {
        let nodes: Api<Watched<kinds::Node>> = Api::all(self.client.clone());
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let result = match serde_json::from_value(patch) {
            Ok(patch) => {
                within(self.limit(CALL_LIMIT).await, nodes.patch(&name, &params, &Patch::Json::<()>(patch)))
                    .await
            }
            Err(error) => Err(CallError::Kube(Box::new(kube::Error::SerdeError(error)))),
        };
        self.metrics.node_patch(result_of(&result));
        Outcome::Node { name, change, result: result.map(Watched::into_raw).map_err(Failure::from) }
    }

    /// Lists the pods of a node from the server itself.
    async fn list_pods(self, node: Text, since: jiff::Timestamp) -> Outcome {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let of_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let listed = within(self.limit(CALL_LIMIT).await, pods.list_metadata(&of_node)).await;
        let uids = listed.map(|list| list.items.into_iter().filter_map(|pod| pod.metadata.uid).collect());
        Outcome::Listed { node, since, pods: uids.map_err(Failure::from) }
    }

    /// Lists the plans from the server itself.
    async fn list_plans(self) -> Outcome {
        let plans: Api<DeserializeGuard<DrainPlan>> = Api::all(self.client.clone());
        let listed = within(self.limit(CALL_LIMIT).await, plans.list(&ListParams::default())).await;
        let seen = listed.map(|list| list.items.into_iter().map(|plan| seen(plan, &self.metrics)).collect());
        Outcome::Plans(seen.map_err(Failure::from))
    }

    /// Reads the scale of an owner that is not watched.
    async fn read_scale(self, namespace: Text, owner: OwnerRef) -> Outcome {
        let limit = self.limit(CALL_LIMIT).await;
        let read = tokio::time::timeout(limit, scales::read(&self.client, &namespace, &owner)).await;
        let scale = read.unwrap_or_else(|_| Scale::Unreadable(format!("no answer within {limit:?}").into()));
        Outcome::Scale { owner: owner.uid, scale }
    }

    /// Asks whether pods may be evicted.
    async fn ask_right(self, namespace: Option<Text>) -> Outcome {
        let answer =
            within(self.limit(CALL_LIMIT).await, rights::ask(&self.client, namespace.as_deref())).await;
        Outcome::Right { namespace, answer: answer.map_err(Failure::from) }
    }

    /// Evicts exactly the pod that was decided on.
    async fn evict(self, eviction: Evict, look: bool) -> Outcome {
        let answer = self.ask(&eviction, look).await;
        let (code, cause) = answers::counted(&answer);
        self.metrics.eviction(code, cause);
        let answer = answer.unwrap_or_else(|error| match error {
            CallError::NotSent => Answer::Withdrawn,
            other => Answer::Unanswered(other.into()),
        });
        Outcome::Eviction { eviction, answer }
    }

    /// An error is no answer that says whether it was carried out.
    async fn ask(&self, eviction: &Evict, look: bool) -> Result<Answer, CallError> {
        let PodKey { namespace, name } = &eviction.pod;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        // Both requests have one turn, so that the look is always fresh.
        let limit = self.limit_of(1 + u32::from(look), EVICTION_LIMIT).await;
        if look {
            match within(limit.min(CALL_LIMIT), pods.get_metadata_opt(name)).await? {
                Some(pod) if is_still(&pod.metadata, eviction) => {}
                _ => return Ok(Answer::Withdrawn),
            }
        }
        let body = Eviction {
            metadata: ObjectMeta {
                name: Some(name.to_string()),
                namespace: Some(namespace.to_string()),
                ..ObjectMeta::default()
            },
            delete_options: Some(DeleteOptions {
                preconditions: Some(Preconditions {
                    uid: Some(eviction.uid.to_string()),
                    resource_version: None,
                }),
                grace_period_seconds: eviction.grace_period_seconds,
                ..DeleteOptions::default()
            }),
        };
        let params = PostParams::default();
        match within(self.left(limit), pods.create_subresource::<_, Status>("eviction", name, &params, &body))
            .await
        {
            Ok(_) => Ok(Answer::Accepted),
            Err(CallError::Kube(error)) => match *error {
                kube::Error::Api(status) if status.code == 404 => Ok(Answer::Withdrawn),
                kube::Error::Api(status) => Ok(Answer::Refused(status)),
                other => Err(CallError::Kube(Box::new(other))),
            },
            Err(no_answer) => Err(no_answer),
        }
    }
}

fn is_still(pod: &ObjectMeta, eviction: &Evict) -> bool {
    eviction.is_about(pod.uid.as_deref(), pod.deletion_timestamp.is_some())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::engine::fake::FakeApi;
    use crate::engine::lease::{Elector, Identity, Timings};

    #[tokio::test(start_paused = true)]
    async fn no_more_requests_than_allowed_and_the_lease_waits_for_none() {
        let api = FakeApi::default();
        let metrics = Metrics::new();
        let (elector, leadership) = Elector::new(
            api.client().0,
            "system",
            "lease",
            Identity::of_host("a"),
            Timings::default(),
            metrics.clone(),
        );
        tokio::spawn(elector.run(std::future::pending()));
        leadership.clone().wait_for(|lead| lead.may_act().is_some()).await.unwrap();
        let hands = Hands::new(api.client().0, leadership.clone(), metrics).at(Pace::of(1));
        let start = Instant::now();
        let outcomes = futures::future::join_all((0..10).map(|_| hands.clone().carry_out(Errand::ListPlans)));
        let mut given_up = 0;
        for outcome in outcomes.await {
            let Outcome::Plans(Err(failure)) = outcome else {
                panic!("the server lists nothing: {outcome:?}")
            };
            given_up += usize::from(failure.message.contains("--kube-api-qps"));
        }
        assert_eq!((given_up, start.elapsed().as_secs()), (10 - 5, 3), "a burst of two, then one a second");
        let log = api.take_log();
        let count = |method: &str| log.iter().filter(|line| line.starts_with(method)).count();
        assert_eq!(count("GET /apis/drainplan.dev"), 5, "{log:?}");
        assert!(count("PUT /apis/coordination.k8s.io") >= 1, "no renewal in {TURN_LIMIT:?}: {log:?}");
        assert!(leadership.borrow().may_act().is_some());
    }
}
