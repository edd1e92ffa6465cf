//! The server's own word, after the plan has ended: what it answers to an eviction of each pod that is held.

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{EvictParams, PostParams};
use kube::{Api, Client, ResourceExt as _};

use super::story::Story;

/// Asks, without any effect; what differs from what the story expects.
pub async fn refuses(client: Client, story: &Story) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    for (held, pods) in &story.held {
        let api: Api<Pod> = Api::namespaced(client.clone(), held.space);
        for pod in pods {
            let answered = answer(&api, &pod.name_any()).await?;
            if answered != held.code {
                let name = pod.name_any();
                differences.push(format!("{}/{name}: {answered}, not {}", held.space, held.code));
            }
        }
    }
    Ok(differences)
}

async fn answer(api: &Api<Pod>, pod: &str) -> Result<u16> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let params = EvictParams { post_options: dry, ..EvictParams::default() };
    match api.evict(pod, &params).await {
        Ok(_) => Ok(201),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => bail!("no answer to the dry run of an eviction of {pod}: {error}"),
    }
}
