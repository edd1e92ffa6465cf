//! Which pods are evicted, and which pods keep a node.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use drainplan::api::{NodeReason, NodeStatus, PlanPhase, WaitingPod};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::policy::v1::Eviction;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::{PATIENCE, over, report, shared, waiting};
use crate::harness::{Bed, Recorder, Sight, Space, Template, is_ready, node_of, terminating, uid};
use crate::runner::Case;

/// How often the server is asked about what no watch tells.
const ASK_EVERY: Duration = Duration::from_millis(50);

pub fn cases() -> Vec<Case> {
    vec![
        shared!(12, finished_pods_stay),
        shared!(13, pods_that_the_plan_refuses),
        shared!(14, finalizer_that_never_goes),
        shared!(15, pod_reborn_under_its_name),
    ]
}

async fn finished_pods_stay(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    bed.space.job("report", &Template::new().sim("complete-after", "1s")).await?;
    let finished = bed.space.pods_until("report", "Succeeded", |pods| {
        let phase = |pod: &k8s_openapi::api::core::v1::Pod| pod.status.as_ref()?.phase.clone();
        pods.len() == 1 && pods.iter().all(|pod| phase(pod).as_deref() == Some("Succeeded"))
    });
    let finished = finished.await?;
    bed.space.deployment("web", 1, &Template::new()).await?;
    bed.space.all_ready("web", 1).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "KeepCordoned")).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(bed.accepted()?.len() == 1, "evictions: {:#?}", bed.evictions()?);
    let job = finished.first().context("no pod of the Job")?;
    let still = bed.space.pods().get_opt(&job.name_any()).await?;
    ensure!(still.is_some_and(|pod| uid(&pod) == uid(job) && !terminating(&pod)), "the Job's pod is gone");
    Ok(())
}

async fn pods_that_the_plan_refuses(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b"], 110).await?;
    let [a, b] = &nodes;
    bed.space.pod("bare", &Template::new().only_on(&[a])).await?;
    let cache = Template::new().only_on(&[b]).empty_dir("scratch");
    bed.space.deployment("cache", 1, &cache).await?;
    let bare = bed.space.all_ready("bare", 1).await?;
    let cache = bed.space.all_ready("cache", 1).await?;
    let watched = bed.record_nodes().await?;

    let refusing = bed.plan("refusing", over(&nodes, "3s", "KeepCordoned")).await?;
    let status = refusing.ends(PlanPhase::Failed, PATIENCE).await?;
    for (node, pods, row) in [(a, &bare, "Unmanaged/NeverClears"), (b, &cache, "LocalData/NeverClears")] {
        let report = report(&status, node)?;
        let failed_as = report.reason.as_deref();
        ensure!(failed_as == Some(NodeReason::Blocked.as_str()), "node {node} failed as {failed_as:?}");
        let pod = pods.first().context("no pod")?.name_any();
        bed.says(row, waiting(report, &pod)?)?;
        bed.explains(row, &bed.name, &pod).await?;
        bed.ensure_untouched(&watched, node)?;
    }

    let mut allowing = over(&nodes, "2m", "KeepCordoned");
    if let Some(spec) = allowing.as_object_mut() {
        spec.insert("pods".to_owned(), json!({"unmanaged": "Evict", "emptyDir": "Evict"}));
    }
    let allowing = bed.plan("allowing", allowing).await?;
    allowing.ends(PlanPhase::Completed, PATIENCE).await?;
    let mut accepted = bed.accepted()?;
    let mut expected: Vec<String> = bare.iter().chain(&cache).map(uid).collect();
    accepted.sort();
    expected.sort();
    ensure!(accepted == expected, "evicted were {accepted:?}, and the pods are {expected:?}");
    Ok(())
}

async fn finalizer_that_never_goes(bed: Bed) -> Result<()> {
    const HELD_BY: &str = "e2e.drainplan.dev/hold";
    let nodes = bed.nodes(["a"], 1).await?;
    let [node] = &nodes;
    bed.space.deployment("web", 1, &Template::new().finalizer(HELD_BY)).await?;
    let pods = bed.space.all_ready("web", 1).await?;
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", over(&nodes, "5s", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let report = report(&status, node)?;
    let failed_as = report.reason.as_deref();
    ensure!(failed_as == Some(NodeReason::TimedOut.as_str()), "node {node} failed as {failed_as:?}");
    let pod = pods.first().context("no pod")?.name_any();
    bed.says("FinalizerHolds/MayClear", waiting(report, &pod)?)?;
    bed.explains("FinalizerHolds/MayClear", &bed.name, &pod).await?;
    ensure!(
        bed.accepted()? == pods.iter().map(uid).collect::<Vec<_>>(),
        "evictions: {:#?}",
        bed.evictions()?
    );
    bed.node_rests(node, false, &[]).await
}

/// A policy refuses the eviction, so that it is tried again and again; meanwhile the pod comes back elsewhere.
async fn pod_reborn_under_its_name(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 1).await?;
    let [node] = &nodes;
    bed.space.stateful_set("db", 1, &Template::new()).await?;
    let pods = bed.space.all_ready("db", 1).await?;
    let [held] = pods.as_slice() else { bail!("{} pods instead of 1", pods.len()) };
    bed.nodes(["spare"], 110).await?;
    deny_evictions(&bed).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "KeepCordoned")).await?;
    let name = held.name_any();
    let refused = |_: &NodeStatus, it: &WaitingPod| it.pod == name && it.reason == "AdmissionDenied";
    plan.shows_waiting("the pod that is refused", PATIENCE, refused).await?;
    bed.space.pods().delete(&name, &DeleteParams::default()).await?;

    let key = format!("{}/{name}", bed.name);
    let reborn = record.until("the pod is there again", PATIENCE, |record| match record.now.get(&key) {
        Some(pod) if uid(&**pod) != uid(held) && is_ready(pod) => Sight::Found(pod.clone()),
        _ => Sight::NotYet("it is not".to_owned()),
    });
    let reborn = reborn.await?;
    ensure!(node_of(&reborn) == bed.named("spare"), "it is on {}", node_of(&reborn));
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    bed.node_is_cordoned(node).await?;

    let evictions = bed.evictions()?;
    ensure!(!evictions.is_empty(), "no eviction was ever refused");
    for eviction in &evictions {
        ensure!(eviction.precondition() == Some(&uid(held)), "the pod was followed: {}", eviction.line());
    }
    let now = bed.space.pods().get(&name).await?;
    ensure!(uid(&now) == uid(&*reborn) && !terminating(&now), "the reborn pod was evicted");
    Ok(())
}

/// What the policy says.
const DENIED: &str = "evictions are frozen here";

/// A policy that denies something in some namespaces.
pub struct Denial {
    name: String,
    client: Client,
}

impl Denial {
    /// Denies an operation on a resource; the policy has the case's name. The server needs some time to know it.
    pub async fn of(
        bed: &Bed,
        resource: &str,
        operation: &str,
        words: &str,
        spaces: &[&str],
    ) -> Result<Self> {
        let denial = Self { name: bed.name.clone(), client: bed.client() };
        let policy = json!({
            "metadata": {"name": denial.name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource],
                }]},
                "validations": [{"expression": "false", "message": words}],
            },
        });
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(bed.client());
        policies.create(&PostParams::default(), &serde_json::from_value(policy)?).await?;
        let binding = json!({
            "metadata": {"name": denial.name},
            "spec": {
                "policyName": denial.name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": spaces},
                ]}},
            },
        });
        denial.bindings().create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
        Ok(denial)
    }

    /// Denies nothing any more.
    pub async fn lift(self) -> Result<()> {
        self.bindings().delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    fn bindings(&self) -> Api<ValidatingAdmissionPolicyBinding> {
        Api::all(self.client.clone())
    }
}

/// Denies all evictions in the case's namespace; returns when the server does so.
async fn deny_evictions(bed: &Bed) -> Result<()> {
    // The server is asked in another namespace, so that the case's own holds the controller's evictions alone.
    let probe = format!("{}-probe", bed.name);
    // On no node at all, least of all on one of another case.
    let nowhere = Map::from_iter([("e2e.drainplan.dev/case".to_owned(), json!("none"))]);
    let space = Space::create(bed.client(), &probe, nowhere).await?;
    space.pod("probe", &Template::new()).await?;
    Denial::of(bed, "pods/eviction", "CREATE", DENIED, &[&bed.name, &probe]).await?;

    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let eviction: Eviction =
        serde_json::from_value(json!({"metadata": {"name": "probe", "namespace": probe}}))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match space.pods().create_subresource::<_, Value>("eviction", "probe", &dry_run, &eviction).await {
            Err(kube::Error::Api(status)) if status.message.contains(DENIED) => return Ok(()),
            Ok(_) | Err(kube::Error::Api(_)) if Instant::now() < deadline => sleep(ASK_EVERY).await,
            other => bail!("the policy does not take effect: {other:?}"),
        }
    }
}
