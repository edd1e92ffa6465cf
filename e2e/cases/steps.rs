//! The steps of a case: `cordon N`, `evict NS/PREFIX on N`, `settle`, ….

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{DeleteParams, PostParams};
use kube::core::Status;
use kube::{Api, ResourceExt as _};

use crate::expect::Which;
use crate::load;
use crate::plane::MANAGER;
use crate::world::{World, node_of};

pub async fn run(world: &mut World<'_>, steps: &[String]) -> anyhow::Result<()> {
    for step in steps {
        one(world, step).await.with_context(|| format!("step {step:?}"))?;
    }
    Ok(())
}

async fn one(world: &mut World<'_>, step: &str) -> anyhow::Result<()> {
    let (step, code) = match step.split_once(" -> ") {
        Some((step, code)) => (step, code.parse()?),
        None => (step, 201),
    };
    let words: Vec<&str> = step.split_whitespace().collect();
    match words.as_slice() {
        ["settle"] => world.settle().await,
        ["wait", time] => {
            let seconds = time.strip_suffix('s').context("a time in seconds")?.parse()?;
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(())
        }
        ["wave", number] => load::wave(world, number.parse()?).await,
        ["cordon", node] => world.cordon(node, true).await,
        ["uncordon", node] => world.cordon(node, false).await,
        ["stop", component @ MANAGER] => {
            world.controlled = false;
            world.plane.testbed().component("stop", component).await
        }
        ["start", component @ MANAGER] => {
            world.controlled = true;
            world.plane.testbed().component("start", component).await
        }
        ["delete", "Namespace", name] => {
            Api::<Namespace>::all(world.client.clone()).delete(name, &DeleteParams::default()).await?;
            Ok(())
        }
        ["delete", "Node", name] => {
            Api::<Node>::all(world.client.clone()).delete(name, &DeleteParams::default()).await?;
            Ok(())
        }
        ["delete", "Pod", pod, rest @ ..] => {
            let pod = first(world, &which(pod, rest)?).await?;
            pods(world, &pod).delete(&pod.name_any(), &DeleteParams::default()).await?;
            Ok(())
        }
        ["confirm", pod, rest @ ..] => confirm(world, &which(pod, rest)?).await,
        ["evict", pod, rest @ ..] => {
            let uid = rest.iter().position(|word| *word == "uid").and_then(|at| rest.get(at + 1));
            evict(world, &which(pod, rest)?, uid.map(|uid| (*uid).to_owned()), code).await
        }
        ["await", state, pod, rest @ ..] => wait_for(world, state, &which(pod, rest)?).await,
        _ => bail!("this step is not known"),
    }
}

/// `NS/PREFIX [on N]`.
fn which(pod: &str, rest: &[&str]) -> anyhow::Result<Which> {
    let (namespace, name) = pod.split_once('/').context("a pod as NS/PREFIX")?;
    let on = rest.iter().position(|word| *word == "on").and_then(|at| rest.get(at + 1));
    Ok(Which {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        node: on.map(|node| (*node).to_owned()),
        terminating: None,
    })
}

fn pods(world: &World<'_>, pod: &Pod) -> Api<Pod> {
    Api::namespaced(world.client.clone(), &pod.namespace().unwrap_or_default())
}

async fn first(world: &World<'_>, which: &Which) -> anyhow::Result<Pod> {
    let mut found = world.pods(which).await?;
    found.sort_by_key(|pod| (pod.metadata.deletion_timestamp.is_some(), pod.name_any()));
    found.into_iter().next().with_context(|| format!("there is no pod {}/{}", which.namespace, which.name))
}

async fn evict(world: &World<'_>, which: &Which, uid: Option<String>, code: u16) -> anyhow::Result<()> {
    let pod = first(world, which).await?;
    let name = pod.name_any();
    let options = DeleteOptions {
        preconditions: Some(Preconditions { uid: uid.or_else(|| pod.uid()), resource_version: None }),
        ..DeleteOptions::default()
    };
    let eviction = Eviction {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        delete_options: Some(options),
    };
    let answer: Result<Status, _> =
        pods(world, &pod).create_subresource("eviction", &name, &PostParams::default(), &eviction).await;
    let answered = match answer {
        Ok(_) => 201,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => return Err(error.into()),
    };
    ensure!(answered == code, "the eviction of {name} was answered {answered}");
    Ok(())
}

/// The kubelet's last word on terminating pods.
async fn confirm(world: &World<'_>, which: &Which) -> anyhow::Result<()> {
    let going = Which { terminating: Some(true), ..which.clone() };
    for pod in world.pods(&going).await? {
        if pod.metadata.deletion_grace_period_seconds == Some(0) {
            continue;
        }
        let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        match pods(world, &pod).delete(&pod.name_any(), &params).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            answer => drop(answer?),
        }
    }
    Ok(())
}

async fn wait_for(world: &World<'_>, state: &str, which: &Which) -> anyhow::Result<()> {
    let condition = |pod: &Pod, kind: &str, value: &str| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|found| found.type_ == kind && found.status == value))
    };
    world
        .until(state, |_| async {
            let found = world.pods(which).await?;
            Ok(match state {
                "pending" => {
                    found.iter().any(|pod| node_of(pod).is_none() && condition(pod, "PodScheduled", "False"))
                }
                "ready" => !found.is_empty() && found.iter().all(|pod| condition(pod, "Ready", "True")),
                "terminating" => found.iter().any(|pod| pod.metadata.deletion_timestamp.is_some()),
                "gone" => found.is_empty(),
                other => bail!("pods are not awaited {other}"),
            })
        })
        .await
}
