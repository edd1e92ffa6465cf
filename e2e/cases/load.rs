//! Loads the objects of a case, wave by wave.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Map, Value};

use crate::expect::Case;
use crate::world::{HINT, World};

/// How long the controller manager may take to learn a new kind.
pub const LEARNS_KINDS: Duration = Duration::from_secs(32);
/// How long the server may take to pick up admission rules.
pub const LEARNS_ADMISSION: Duration = Duration::from_secs(4);
/// The hints that there are.
const HINTS: [&str; 9] = [
    "wave",
    "ready",
    "ready-after",
    "start",
    "complete-after",
    "terminate",
    "terminate-after",
    "owner",
    "kubelet",
];

/// The objects of a file, by wave.
pub fn read(path: &Path) -> anyhow::Result<BTreeMap<u32, Vec<DynamicObject>>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut waves: BTreeMap<u32, Vec<DynamicObject>> = BTreeMap::new();
    for object in serde_saphyr::from_multiple::<Option<DynamicObject>>(&text)
        .with_context(|| format!("cannot use {}", path.display()))?
        .into_iter()
        .flatten()
    {
        check(&object).with_context(|| format!("cannot use {}", path.display()))?;
        let wave = object.annotations().get(&format!("{HINT}wave")).map_or(Ok(0), |wave| wave.parse())?;
        waves.entry(wave).or_default().push(object);
    }
    Ok(waves)
}

/// Whether kinds are among these objects.
pub fn defines(waves: &BTreeMap<u32, Vec<DynamicObject>>) -> bool {
    waves.values().flatten().any(|object| kind(object) == "CustomResourceDefinition")
}

/// A hint that nobody knows is an error: it would be a situation other than the one that is meant.
fn check(object: &DynamicObject) -> anyhow::Result<()> {
    let template = object.data.pointer("/spec/template/metadata/annotations").and_then(Value::as_object);
    let keys = object.annotations().keys().chain(template.into_iter().flat_map(Map::keys));
    for key in keys {
        let Some(hint) = key.strip_prefix(HINT) else { continue };
        anyhow::ensure!(HINTS.contains(&hint), "{} {}: unknown hint {hint}", kind(object), object.name_any());
    }
    Ok(())
}

/// Creates all waves that no step creates, each after the one before rests.
pub async fn all(
    world: &mut World<'_>,
    waves: BTreeMap<u32, Vec<DynamicObject>>,
    case: &Case,
) -> anyhow::Result<()> {
    world.waves = waves;
    let by_step = |wave: &u32| {
        let later = case.later.iter().flat_map(|state| &state.steps);
        case.before.iter().chain(later).any(|step| *step == format!("wave {wave}"))
    };
    let numbers: Vec<u32> = world.waves.keys().copied().filter(|number| !by_step(number)).collect();
    for number in numbers {
        wave(world, number).await?;
        world.settle().await.with_context(|| format!("after wave {number}"))?;
    }
    silence(world).await
}

/// Creates one wave: definitions and nodes first, then everything else in the order of the file.
pub async fn wave(world: &mut World<'_>, number: u32) -> anyhow::Result<()> {
    let objects = world.waves.remove(&number).with_context(|| format!("there is no wave {number}"))?;
    let order = |object: &DynamicObject| match kind(object) {
        "CustomResourceDefinition" => 0,
        "Node" => 1,
        "Namespace" => 2,
        _ => 3,
    };
    let mut objects = objects;
    objects.sort_by_key(order);
    let mut defined = false;
    for object in &objects {
        if kind(object) == "Pod" {
            let mut pod = object.clone();
            own(world, &mut pod).await?;
            world.create(&pod).await?;
        } else {
            if order(object) > 1 {
                nodes_are_ready(world).await?;
            }
            if order(object) > 0 && std::mem::take(&mut defined) {
                // Nothing tells when it has.
                tokio::time::sleep(LEARNS_KINDS).await;
            }
            defined |= kind(object) == "CustomResourceDefinition";
            world.create(object).await?;
        }
    }
    if objects.iter().any(|object| is_admission(kind(object))) {
        tokio::time::sleep(LEARNS_ADMISSION).await;
    }
    Ok(())
}

/// The server picks these up, and lets go of them, a while later.
pub fn is_admission(kind: &str) -> bool {
    ["AdmissionPolicy", "WebhookConfiguration"].iter().any(|part| kind.contains(part))
}

fn kind(object: &DynamicObject) -> &str {
    object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default()
}

/// Nodes that are not ready yet would let pods land unevenly.
async fn nodes_are_ready(world: &World<'_>) -> anyhow::Result<()> {
    let controlled = world.controlled;
    world
        .until("the nodes", |snapshot| async move {
            Ok(snapshot.nodes.iter().all(|node| {
                let status = node.status.as_ref();
                let conditions = status.and_then(|status| status.conditions.as_ref());
                let ready = conditions.is_some_and(|all| {
                    all.iter().any(|found| found.type_ == "Ready" && found.status == "True")
                });
                let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
                // Without the controller manager nobody takes the taint of a new node away.
                ready && (!controlled || taints.is_none_or(Vec::is_empty))
            }))
        })
        .await
}

/// `<apiVersion>/<Kind>/<name>`, with `?controller=false` at the end for a mere owner.
async fn own(world: &mut World<'_>, pod: &mut DynamicObject) -> anyhow::Result<()> {
    let Some(hint) = pod.annotations().get(&format!("{HINT}owner")).cloned() else { return Ok(()) };
    let (path, controller) = match hint.strip_suffix("?controller=false") {
        Some(path) => (path, false),
        None => (hint.as_str(), true),
    };
    let mut parts = path.rsplitn(3, '/');
    let (name, kind, api_version) = (parts.next(), parts.next(), parts.next());
    let (Some(name), Some(kind), Some(api_version)) = (name, kind, api_version) else {
        anyhow::bail!("the hint {hint} names no owner");
    };
    let namespace = pod.namespace();
    let owner = world.api(api_version, kind, namespace.as_deref()).await?.get(name).await?;
    pod.owner_references_mut().push(OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: owner.uid().context("an owner without a uid")?,
        controller: Some(controller),
        block_owner_deletion: None,
    });
    Ok(())
}

/// Kubelets that fall silent once everything rests.
async fn silence(world: &World<'_>) -> anyhow::Result<()> {
    for node in world.snapshot().await?.nodes {
        if node.annotations().get(&format!("{HINT}kubelet")).is_some_and(|hint| hint == "dead-after-settle") {
            world.plane.testbed().kubelet(&node.name_any(), "dead").await?;
        }
    }
    Ok(())
}
