//! What happens when the controller may not do what it has to.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodeReason, PlanPhase, WaitingPod};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{PATIENCE, alone, over, report, slow, waiting};
use crate::harness::{Bed, Installation, Template, cordoned};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        alone!(23, no_right_to_evict),
        alone!(25, right_to_evict_taken_away),
        slow!(206, scale_that_may_not_be_read),
    ]
}

async fn no_right_to_evict(bed: Bed) -> Result<()> {
    TO_EVICT.take(&bed).await?;
    let tried = without_the_right(&bed).await;
    TO_EVICT.give_back(&bed).await?;
    tried?;

    // With the right back, all is well.
    let plan = bed.plan("after", over(&[bed.named("a")], "2m", "Uncordon")).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(bed.accepted()?.len() == 2, "evictions: {:#?}", bed.evictions()?);
    Ok(())
}

async fn without_the_right(bed: &Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 2).await?;
    let [node] = &nodes;
    bed.space.deployment("web", 2, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 2).await?;
    bed.nodes(["spare"], 110).await?;

    let watched = bed.record_nodes().await?;
    // What it has been told before the right was taken away is believed for a while.
    forgotten(bed).await?;
    let plan = bed.plan("without", over(&nodes, "5s", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let report = report(&status, node)?;
    let failed_as = report.reason.as_deref();
    ensure!(failed_as == Some(NodeReason::Blocked.as_str()), "node {node} failed as {failed_as:?}");
    for pod in &pods {
        bed.says("Forbidden/NeverClears", waiting(report, &pod.name_any())?)?;
    }
    ensure!(bed.evictions()?.is_empty(), "evictions: {:#?}", bed.evictions()?);
    bed.ensure_untouched(&watched, node)?;
    bed.node_rests(node, false, &[]).await
}

/// Restarts the controller, which then knows nothing of its rights.
async fn forgotten(bed: &Bed) -> Result<()> {
    bed.installation.controller.kill()?;
    bed.installation.controller.start().await
}

async fn right_to_evict_taken_away(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b"], 110).await?;
    let [a, b] = &nodes;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    let template = Template::new().sim("ready-after", "1s").only_on(&[a, &bed.named("spare")]);
    bed.space.deployment("web", 3, &template).await?;
    bed.space.deployment("other", 1, &Template::new().only_on(&[b])).await?;
    bed.space.all_ready("web", 3).await?;
    bed.space.all_ready("other", 1).await?;
    bed.space.budget_allows("web", 3, 1).await?;
    bed.nodes(["spare"], 110).await?;

    let watched = bed.record_nodes().await?;
    let plan = bed.plan("plan", over(&nodes, "8s", "Uncordon")).await?;
    plan.shows_waiting("its first pod evicted", PATIENCE, |it, _| it.pods_evicted > 0).await?;
    TO_EVICT.take(&bed).await?;
    let tried = async {
        let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
        let (first, second) = (report(&status, a)?, report(&status, b)?);
        let reasons = (first.reason.as_deref(), second.reason.as_deref());
        let expected = (Some(NodeReason::TimedOut.as_str()), Some(NodeReason::Blocked.as_str()));
        ensure!(reasons == expected, "the nodes failed as {reasons:?}");
        for node in [first, second] {
            let said = node.waiting.iter().any(|pod| pod.reason == "Forbidden");
            ensure!(said, "no pod of node {} is Forbidden: {:?}", node.name, node.waiting);
        }
        let refused = bed.evictions()?.into_iter().filter(|eviction| eviction.code == 403).count();
        ensure!(refused <= 2, "{refused} evictions were refused before it asked");
        let was_cordoned = watched.with(|record| {
            record.events.iter().any(|seen| seen.object.name_any() == *b && cordoned(&seen.object))
        });
        ensure!(!was_cordoned, "node {b} was cordoned");
        bed.node_rests(a, false, &[]).await?;
        bed.node_rests(b, false, &[]).await
    };
    let tried = tried.await;
    TO_EVICT.give_back(&bed).await?;
    tried
}

const ROLE: &str = "drainplan-controller";

/// A rule of the controller's role, and what nothing but it allows.
struct Right {
    groups: &'static str,
    resources: &'static str,
    verb: &'static str,
    /// Group, resource, subresource.
    asked: [&'static str; 3],
}

const TO_EVICT: Right =
    Right { groups: "", resources: "pods/eviction", verb: "create", asked: ["", "pods", "eviction"] };

const TO_READ_SCALES: Right =
    Right { groups: "*", resources: "*/scale", verb: "get", asked: [stores::GROUP, "stores", "scale"] };

impl Right {
    /// Takes it away from the controller, and awaits that the server knows.
    async fn take(&self, bed: &Bed) -> Result<()> {
        let (roles, mut role) = role(bed).await?;
        let rules = role.rules.as_mut().context("the role has no rules")?;
        let before = rules.len();
        rules.retain(|rule| !rule.resources.iter().flatten().any(|resource| resource == self.resources));
        ensure!(rules.len() < before, "no rule of the role is about {}", self.resources);
        roles.replace(ROLE, &PostParams::default(), &role).await?;
        self.becomes(bed, false).await
    }

    async fn give_back(&self, bed: &Bed) -> Result<()> {
        let (roles, mut role) = role(bed).await?;
        let rule = json!({"apiGroups": [self.groups], "resources": [self.resources], "verbs": [self.verb]});
        role.rules.as_mut().context("the role has no rules")?.push(serde_json::from_value(rule)?);
        roles.replace(ROLE, &PostParams::default(), &role).await?;
        self.becomes(bed, true).await
    }

    /// Awaits that the server's authorizer has learned of a changed role; it can only be asked.
    async fn becomes(&self, bed: &Bed, wanted: bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.is_there(bed).await? != wanted {
            ensure!(Instant::now() < deadline, "the role was changed, and the server does not see it");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn is_there(&self, bed: &Bed) -> Result<bool> {
        let [group, resource, subresource] = self.asked;
        let review = json!({"spec": {"user": Installation::user(), "resourceAttributes": {
            "namespace": bed.name, "verb": self.verb,
            "group": group, "resource": resource, "subresource": subresource,
        }}});
        let reviews: Api<SubjectAccessReview> = Api::all(bed.client());
        let answer = reviews.create(&PostParams::default(), &serde_json::from_value(review)?).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

async fn role(bed: &Bed) -> Result<(Api<ClusterRole>, ClusterRole)> {
    let roles: Api<ClusterRole> = Api::all(bed.client());
    let role = roles.get(ROLE).await?;
    Ok((roles, role))
}

/// Without the right to read scales a budget is judged by what is written and by what the server has reported.
async fn scale_that_may_not_be_read(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    let [node] = &nodes;
    stores::define(&bed).await?;
    stores::with_pods(&bed, "kv", 3, node).await?;
    bed.space.budget("web", &["kv"], json!({"maxUnavailable": 0})).await?;
    stores::learned(&bed, "web", 3).await?;

    TO_READ_SCALES.take(&bed).await?;
    let tried = async {
        let plan = bed.plan("plan", over(&nodes, "4m", "Uncordon")).await?;
        bed.shows("BudgetNeverAllows/NeverClears/unread", &plan, "kv-").await?;
        let spec = json!({"spec": {"maxUnavailable": null, "minAvailable": 3}});
        bed.space.budgets().patch("web", &PatchParams::default(), &Patch::Merge(spec)).await?;
        bed.shows("BudgetExhausted/MayClear/unread", &plan, "kv-").await?;
        anyhow::Ok(plan)
    };
    let tried = tried.await;
    TO_READ_SCALES.give_back(&bed).await?;
    let plan = tried?;
    // It asks again by itself.
    let counted = |_: &_, pod: &WaitingPod| pod.message.contains("Store kv (3 replicas) can have 3 at most");
    plan.shows_waiting("the arithmetic", PATIENCE, counted).await?;
    ensure!(bed.evictions()?.is_empty(), "evictions: {:#?}", bed.evictions()?);
    plan.delete().await?;
    plan.gone(PATIENCE).await?;
    stores::forget(&bed).await
}

/// A kind that the control plane knows by its definition only, with a scale.
mod stores {
    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    };
    use kube::{Api, ResourceExt as _};
    use serde_json::{Map, Value, json};

    use anyhow::Context as _;

    use super::{Bed, Duration, Instant, PATIENCE, Result, Template, ensure, sleep};

    pub const GROUP: &str = "db.example.dev";
    const NAME: &str = "stores.db.example.dev";
    /// The controller manager learns of kinds from time to time, and nothing tells when.
    const ASK_AGAIN: Duration = Duration::from_secs(1);

    fn definitions(bed: &Bed) -> Api<CustomResourceDefinition> {
        Api::all(bed.client())
    }

    pub async fn define(bed: &Bed) -> Result<()> {
        let definition = json!({
            "metadata": {"name": NAME},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": "Store", "plural": "stores", "singular": "store"},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                    "subresources": {
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                }],
            },
        });
        definitions(bed).create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
        Ok(())
    }

    pub async fn forget(bed: &Bed) -> Result<()> {
        definitions(bed).delete(NAME, &DeleteParams::default()).await?;
        Ok(())
    }

    /// A store and its pods.
    pub async fn with_pods(bed: &Bed, name: &str, replicas: usize, node: &str) -> Result<()> {
        let kind = GroupVersionKind::gvk(GROUP, "v1", "Store");
        let stores: Api<DynamicObject> = Api::namespaced_with(
            bed.client(),
            &bed.name,
            &ApiResource::from_gvk_with_plural(&kind, "stores"),
        );
        let store = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": {"name": name}, "spec": {"replicas": replicas},
        });
        let store: DynamicObject = serde_json::from_value(store)?;
        let deadline = Instant::now() + PATIENCE;
        let store = loop {
            match stores.create(&PostParams::default(), &store).await {
                Ok(store) => break store,
                // The server does not serve the kind yet.
                Err(kube::Error::Api(status)) if status.code == 404 && Instant::now() < deadline => {
                    sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(error).context("cannot create a store"),
            }
        };
        for number in 0..replicas {
            let mut pod = Template::new().only_on(&[node]).json(&json!({"app": name}), &Map::new());
            if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
                let owner = json!({
                    "apiVersion": kind.api_version(), "kind": kind.kind, "name": name,
                    "uid": store.uid().context("a store without a uid")?, "controller": true,
                });
                metadata.extend(Map::from_iter([
                    ("name".to_owned(), json!(format!("{name}-{number}"))),
                    ("ownerReferences".to_owned(), json!([owner])),
                ]));
            }
            bed.space.add::<Pod>(pod).await?;
        }
        bed.space.all_ready(name, replicas).await?;
        Ok(())
    }

    /// Awaits that the disruption controller has read the scale. It looks again when the budget changes.
    pub async fn learned(bed: &Bed, budget: &str, expected: i32) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        for attempt in 0_u32.. {
            let poke = json!({"metadata": {"annotations": {"attempt": attempt.to_string()}}});
            let now = bed.space.budgets().patch(budget, &PatchParams::default(), &Patch::Merge(poke)).await?;
            if now.status.as_ref().and_then(|status| status.expected_pods) == Some(expected) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the disruption controller reads no scale: {:?}", now.status);
            sleep(ASK_AGAIN).await;
        }
        Ok(())
    }
}
