//! Asks the server with dry-run evictions: only it knows what admission and access rights say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as WirePod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::PostParams;
use kube::core::Status;
use kube::{Api, Client};
use serde::Serialize;

use super::live::Live;
use crate::cluster::{Cluster, Pod, PodKey, Refusal, Text};
use crate::engine::rights;

/// How many evictions are asked for at once.
const PARALLEL: usize = 8;
/// How often, and how long apart, a server that throttles is asked again.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// What the server answered.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Verified {
    pub(super) code: u16,
    reason: String,
    message: String,
}

/// Asks for each pod. Refusals become part of what is observed, so that they are explained.
pub(super) async fn all(
    live: &Live,
    pods: &[Arc<Pod>],
    cluster: &mut Cluster,
) -> anyhow::Result<BTreeMap<PodKey, Verified>> {
    let client = live.once();
    let asked = stream::iter(pods.to_vec()).map(|pod| {
        let client = client.clone();
        async move {
            let answer = ask(client, &pod).await;
            answer
                .with_context(|| {
                    format!("cannot ask for a dry-run eviction of pod {}/{}", pod.namespace, pod.name)
                })
                .map(|answer| (pod, answer))
        }
    });
    let answers: Vec<_> = asked.buffer_unordered(PARALLEL).collect().await;
    let mut verified = BTreeMap::new();
    for answer in answers {
        let (pod, answer) = answer?;
        let Some(status) = answer else {
            let (reason, message) = (String::new(), String::new());
            verified.insert(pod.key(), Verified { code: 201, reason, message });
            continue;
        };
        verified.insert(
            pod.key(),
            Verified { code: status.code, reason: status.reason.clone(), message: status.message.clone() },
        );
        // A pod that has gone since waits for nothing.
        if !status.is_not_found() {
            cluster.evictions.refused(refusal(&pod, &status));
        }
    }
    ask_rights(live, cluster, &verified).await?;
    Ok(verified)
}

/// Asks the authorizer about every namespace where the server answered 403: only it knows whether that is for want of
/// the right.
async fn ask_rights(
    live: &Live,
    cluster: &mut Cluster,
    verified: &BTreeMap<PodKey, Verified>,
) -> anyhow::Result<()> {
    let refused = verified.iter().filter(|(_, answer)| answer.code == 403);
    let namespaces: BTreeSet<Text> = refused.map(|(key, _)| key.namespace.clone()).collect();
    for namespace in namespaces {
        let right = rights::ask(&live.once(), Some(&namespace)).await;
        let right = right.with_context(|| format!("cannot ask for the right to evict in {namespace}"))?;
        cluster.rights.record(Some(namespace), right, Timestamp::now());
    }
    Ok(())
}

/// What the server says of an eviction that it is asked not to carry out; nothing when it would.
async fn ask(client: Client, pod: &Pod) -> Result<Option<Status>, kube::Error> {
    let api: Api<WirePod> = Api::namespaced(client, &pod.namespace);
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let preconditions = Preconditions { uid: Some(pod.uid.to_string()), resource_version: None };
    let eviction = Eviction {
        metadata: ObjectMeta { name: Some(pod.name.to_string()), ..ObjectMeta::default() },
        delete_options: Some(DeleteOptions {
            preconditions: Some(preconditions),
            ..DeleteOptions::default()
        }),
    };
    let mut attempt = 1;
    loop {
        let answer: Result<Status, _> =
            api.create_subresource("eviction", &pod.name, &params, &eviction).await;
        match answer {
            Ok(_) => return Ok(None),
            Err(kube::Error::Api(status)) if throttled(&status) && attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(kube::Error::Api(status)) => return Ok(Some(*status)),
            Err(error) => return Err(error),
        }
    }
}

/// The server had no time; with a cause, or in an admission webhook's words, it is an answer.
fn throttled(status: &Status) -> bool {
    status.code == 429 && status.reason == "Failed to parse error data"
}

fn refusal(pod: &Pod, status: &Status) -> Refusal {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    Refusal {
        uid: pod.uid.clone(),
        at: Timestamp::now(),
        code: status.code,
        reason: status.reason.as_str().into(),
        message: status.message.as_str().into(),
        causes: causes.map(|cause| cause.reason.as_str().into()).collect(),
        budgets: Vec::new(),
        times: 1,
        // Nobody tries again: this is the server's last word.
        retry_at: Timestamp::MAX,
    }
}
