//! What is said of evictions that the server refuses for reasons of its own, word by word.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use drainplan::api::PlanPhase;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::pods::Denial;
use super::{PATIENCE, over, shared};
use crate::harness::{Bed, Space, Template, Webhook};
use crate::runner::Case;

/// How often the server is asked about what no watch tells.
const ASK_EVERY: Duration = Duration::from_millis(50);

pub fn cases() -> Vec<Case> {
    vec![
        shared!(134, admission_of_evictions),
        shared!(135, namespace_that_cannot_end),
        shared!(137, server_without_time),
    ]
}

fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

fn eviction(pod: &str) -> Result<Eviction> {
    Ok(serde_json::from_value(json!({"metadata": {"name": pod}}))?)
}

/// A namespace with one pod of a Deployment `web`; the name of the pod.
async fn with_one_pod(bed: &Bed, suffix: &str) -> Result<(Space, String)> {
    let space = bed.another_space(suffix).await?;
    space.deployment("web", 1, &Template::new()).await?;
    let pods = space.all_ready("web", 1).await?;
    Ok((space, pods.first().context("no pod")?.name_any()))
}

/// Awaits that a dry-run eviction is refused with such words.
async fn is_refused(space: &Space, pod: &str, words: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer =
            space.pods().create_subresource::<_, Value>("eviction", pod, &dry_run(), &eviction(pod)?).await;
        match answer {
            Err(kube::Error::Api(status)) if status.message.contains(words) => return Ok(()),
            Ok(_) | Err(kube::Error::Api(_)) if Instant::now() < deadline => sleep(ASK_EVERY).await,
            other => bail!("evictions are not refused with \"{words}\": {other:?}"),
        }
    }
}

/// A webhook that denies with 429, one that cannot be reached, one whose condition cannot be evaluated, and a policy.
async fn admission_of_evictions(bed: Bed) -> Result<()> {
    const OWN_WORDS: &str = "virtual machine db is being migrated by its operator";
    let testbed = &bed.installation.testbed;
    let nodes = bed.nodes(["a"], 110).await?;
    let denying = Webhook::denying(testbed, 429, OWN_WORDS).await?;
    let nobody = Webhook::nobody().await?;
    let condition = Some("object.metadata.labels['team'] == 'x'");
    let mut spaces = Vec::new();
    for (suffix, webhook, condition, words, row) in [
        ("denied", &denying, None, OWN_WORDS, "AdmissionDenied/MayClear/webhook"),
        ("unserved", &nobody, None, "failed calling webhook", "AdmissionUnavailable/MayClear"),
        ("broken", &nobody, condition, "resulted in error", "ServerError/MayClear"),
    ] {
        let (space, pod) = with_one_pod(&bed, suffix).await?;
        webhook.register(testbed, &space.name, condition).await?;
        is_refused(&space, &pod, words).await?;
        spaces.push((space, pod, row));
    }
    let (space, pod) = with_one_pod(&bed, "frozen").await?;
    let denial =
        Denial::of(&bed, "pods/eviction", "CREATE", "evictions are frozen here", &[&space.name]).await?;
    is_refused(&space, &pod, "evictions are frozen here").await?;
    let by_policy = [(space, pod, "AdmissionDenied/MayClear")];
    bed.nodes(["spare"], 110).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    for (space, pod, row) in spaces.iter().chain(&by_policy) {
        bed.shows_in(row, &plan, &space.name, pod).await?;
        bed.explains(row, &space.name, pod).await?;
    }
    denial.lift().await?;
    for (space, ..) in &spaces {
        Webhook::forget(bed.client(), &space.name).await?;
    }
    plan.delete().await?;
    plan.gone(PATIENCE).await
}

/// The namespace of a pod is deleted, and a policy keeps its pods.
async fn namespace_that_cannot_end(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    let (space, pod) = with_one_pod(&bed, "leaving").await?;
    bed.nodes(["spare"], 110).await?;
    let denial = Denial::of(&bed, "pods", "DELETE", "pods are kept here", &[&space.name]).await?;
    let deadline = Instant::now() + PATIENCE;
    let asked = DeleteParams { dry_run: true, ..DeleteParams::default() };
    while space.pods().delete(&pod, &asked).await.is_ok() {
        ensure!(Instant::now() < deadline, "the policy does not take effect");
        sleep(ASK_EVERY).await;
    }

    // The namespace controller begins its work after five seconds.
    let namespaces: Api<Namespace> = Api::all(bed.client());
    namespaces.delete(&space.name, &DeleteParams::default()).await?;
    bed.explains("NamespaceTerminating/WillClear", &space.name, &pod).await?;
    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    bed.shows_in("NamespaceTerminating/WillClear", &plan, &space.name, &pod).await?;
    bed.shows_in("NamespaceTerminating/MayClear", &plan, &space.name, &pod).await?;
    bed.explains("NamespaceTerminating/MayClear", &space.name, &pod).await?;
    denial.lift().await?;
    plan.delete().await?;
    plan.gone(PATIENCE).await
}

/// Evictions have one place of their own at the server, and somebody's eviction does not end.
async fn server_without_time(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 110).await?;
    let (space, pod) = with_one_pod(&bed, "busy").await?;
    bed.nodes(["spare"], 110).await?;
    let holder = somebody(&bed, &space).await?;
    one_place(&bed, &space, &holder).await?;
    let silent = Webhook::silent().await?;
    silent.register(&bed.installation.testbed, &space.name, None).await?;
    let client = impersonating(&bed, &holder).await?;
    let held = hold(client, &space.name, &pod, &silent).await?;

    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    bed.shows_in("ApiThrottled/WillClear", &plan, &space.name, &pod).await?;
    // Both the place and the webhook are free again, and the eviction is tried again.
    Webhook::forget(bed.client(), &space.name).await?;
    held.abort();
    drop(silent);
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let schemas: Api<FlowSchema> = Api::all(bed.client());
    schemas.delete(&space.name, &DeleteParams::default()).await?;
    let levels: Api<PriorityLevelConfiguration> = Api::all(bed.client());
    levels.delete(&space.name, &DeleteParams::default()).await?;
    Ok(())
}

/// Somebody who may evict in that namespace.
async fn somebody(bed: &Bed, space: &Space) -> Result<String> {
    let user = bed.named("somebody");
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(bed.client(), &space.name);
    bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
    Ok(user)
}

/// Evictions in the namespace, by the controller and that user, are served one at a time, and none waits.
async fn one_place(bed: &Bed, space: &Space, user: &str) -> Result<()> {
    let level = json!({
        "metadata": {"name": space.name},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }},
    });
    let levels: Api<PriorityLevelConfiguration> = Api::all(bed.client());
    levels.create(&PostParams::default(), &serde_json::from_value(level)?).await?;
    let schema = json!({
        "metadata": {"name": space.name},
        "spec": {
            "matchingPrecedence": 2,
            "priorityLevelConfiguration": {"name": space.name},
            "rules": [{
                "subjects": [
                    {"kind": "ServiceAccount",
                     "serviceAccount": {"namespace": "drainplan-system", "name": "drainplan-controller"}},
                    {"kind": "User", "user": {"name": user}},
                ],
                "resourceRules": [{
                    "verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction"], "namespaces": [space.name],
                }],
            }],
        },
    });
    let schemas: Api<FlowSchema> = Api::all(bed.client());
    schemas.create(&PostParams::default(), &serde_json::from_value(schema)?).await?;
    Ok(())
}

async fn impersonating(bed: &Bed, user: &str) -> Result<Client> {
    let mut read = Kubeconfig::read_from(bed.installation.testbed.kubeconfig())?;
    for named in &mut read.auth_infos {
        if let Some(info) = named.auth_info.as_mut() {
            info.impersonate = Some(user.to_owned());
        }
    }
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Has an eviction asked for that the silent webhook holds up, in the one place there is.
async fn hold(
    client: Client,
    namespace: &str,
    pod: &str,
    silent: &Webhook,
) -> Result<tokio::task::AbortHandle> {
    /// Long enough for the server to call the webhook, or to refuse.
    const TAKES: Duration = Duration::from_secs(1);
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(client, namespace);
    let deadline = Instant::now() + PATIENCE;
    let mut last = "nothing was asked".to_owned();
    while Instant::now() < deadline {
        let (asking, of, asked) = (pods.clone(), pod.to_owned(), eviction(pod)?);
        let called = silent.is_called(TAKES);
        let first = tokio::spawn(async move {
            asking.create_subresource::<_, Value>("eviction", &of, &dry_run(), &asked).await
        })
        .abort_handle();
        if called.await {
            let (params, asked) = (dry_run(), eviction(pod)?);
            let second = pods.create_subresource::<_, Value>("eviction", pod, &params, &asked);
            match timeout(TAKES, second).await {
                Ok(Err(kube::Error::Api(status))) if status.code == 429 => return Ok(first),
                other => last = format!("{other:?}"),
            }
        } else {
            "the webhook is not called".clone_into(&mut last);
        }
        first.abort();
    }
    bail!("the server has time for more than one eviction: {last}")
}
