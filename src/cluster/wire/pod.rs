//! Pods on the wire.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cluster::interner::Interner;
use crate::cluster::{ContainerTrouble, Deletion, Pod, PodPhase, Protection, RestartPolicy, Text};

use super::go_duration;
use super::meta::{Condition, DO_NOT_DISRUPT, MIRROR, Meta, SAFE_TO_EVICT, condition, or_default};
use super::placement;
use super::placement::{Affinity, WireToleration};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WirePod {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "or_default")]
    node_name: String,
    #[serde(deserialize_with = "or_default")]
    restart_policy: String,
    #[serde(deserialize_with = "or_default")]
    volumes: Vec<Volume>,
    #[serde(deserialize_with = "or_default")]
    node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    affinity: Affinity,
    #[serde(deserialize_with = "or_default")]
    tolerations: Vec<WireToleration>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    empty_dir: Option<IgnoredAny>,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource {
    #[serde(deserialize_with = "or_default")]
    claim_name: String,
}

impl Volume {
    /// The claim behind it; that of an ephemeral one has a name made from the pod's
    /// (`k8s.io/component-helpers/storage/ephemeral: VolumeClaimName`).
    fn claim(&self, pod: &str) -> Option<String> {
        let named = self.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone());
        named.or_else(|| self.ephemeral.as_ref().map(|_| format!("{pod}-{}", self.name)))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    phase: String,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")]
    init_container_statuses: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    container_statuses: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    #[serde(deserialize_with = "or_default")]
    restart_count: i32,
    #[serde(deserialize_with = "or_default")]
    state: State,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    finished_at: Option<Timestamp>,
}

impl Container {
    fn had_ended(&self, at: Timestamp) -> bool {
        let finished = self.state.terminated.as_ref().and_then(|terminated| terminated.finished_at);
        finished.is_some_and(|finished| finished < at)
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    #[serde(deserialize_with = "or_default")]
    reason: String,
}

impl WirePod {
    pub(in crate::cluster) fn meta(&self) -> &Meta {
        &self.metadata
    }

    /// The pod as it is kept. What is as in `known`, its former state, is shared with it.
    pub(in crate::cluster) fn into_pod(self, interner: &mut Interner, known: Option<&Pod>) -> Pod {
        let Self { metadata, spec, status } = self;
        let ready = condition(&status.conditions, "Ready").is_some_and(|found| found.status == "True");
        let scheduled = condition(&status.conditions, "PodScheduled");
        let unschedulable =
            scheduled.filter(|found| found.status == "False" && found.reason == "Unschedulable");
        let labels = known.map(|known| &known.labels).filter(|known| known.equal(&metadata.labels));
        let uid = known.map(|known| &known.uid).filter(|known| ***known == *metadata.uid);
        let node = known.and_then(|known| known.node.as_ref()).filter(|known| ***known == *spec.node_name);
        // It does not change once the pod is bound.
        let placement = match known.filter(|known| uid.is_some() && known.node.is_some()) {
            Some(known) => known.placement.clone(),
            None => placement::read(spec.node_selector, spec.affinity, &spec.tolerations, interner),
        };
        let deletion = metadata.deletion_timestamp.map(|at| {
            let grace_seconds = metadata.deletion_grace_period_seconds.unwrap_or_default();
            let deletion = Deletion { at, grace_seconds, cut_short: false };
            let lives = |container: &Container| !container.had_ended(deletion.asked());
            Deletion { cut_short: status.container_statuses.iter().any(lives), ..deletion }
        });
        Pod {
            namespace: known
                .map_or_else(|| interner.text(&metadata.namespace), |known| known.namespace.clone()),
            name: known.map_or_else(|| metadata.name.as_str().into(), |known| known.name.clone()),
            name_drawn: metadata.name_drawn(),
            uid: uid.map_or_else(|| metadata.uid("Pod"), Clone::clone),
            created: metadata.creation_timestamp,
            labels: labels.map_or_else(|| metadata.labels(interner), Clone::clone),
            node: match node {
                Some(known) => Some(known.clone()),
                None => (!spec.node_name.is_empty()).then(|| interner.text(&spec.node_name)),
            },
            placement,
            protection: protection(&metadata, interner),
            phase: phase(&status.phase),
            ready,
            owner: metadata.controller(interner, known.and_then(|known| known.owner.as_ref())),
            deletion,
            finalizers: texts(metadata.finalizers.iter(), interner),
            mirror: metadata.annotations.kept.contains_key(MIRROR),
            empty_dirs: texts(
                spec.volumes.iter().filter(|volume| volume.empty_dir.is_some()).map(|volume| &volume.name),
                interner,
            ),
            claims: claims(&metadata.name, &spec.volumes, known),
            restart_policy: restart_policy(&spec.restart_policy),
            trouble: trouble(&status, interner),
            unschedulable: unschedulable.map(|found| interner.text(&found.message)),
        }
    }
}

/// The first annotation that asks not to move the pod. Other values ask for nothing, as the tools read them.
fn protection(metadata: &Meta, interner: &mut Interner) -> Option<Box<Protection>> {
    let written = |key: &'static str| Some((key, metadata.annotations.kept.get(key)?.as_str()));
    let (annotation, value, lasts) = match (written(DO_NOT_DISRUPT), written(SAFE_TO_EVICT)) {
        (Some((key, "true")), _) | (_, Some((key, "false"))) => {
            (key, if key == SAFE_TO_EVICT { "false" } else { "true" }, None)
        }
        (Some((key, value)), _) => (key, value, Some(go_duration::parse(value)?)),
        _ => return None,
    };
    let (annotation, value) = (interner.text(annotation), interner.text(value));
    Some(Box::new(Protection { annotation, value, lasts }))
}

fn texts<'a>(texts: impl Iterator<Item = &'a String>, interner: &mut Interner) -> Box<[Text]> {
    texts.map(|text| interner.text(text)).collect()
}

/// They do not change.
fn claims(pod: &str, volumes: &[Volume], known: Option<&Pod>) -> Box<[Text]> {
    let claims: Vec<String> = volumes.iter().filter_map(|volume| volume.claim(pod)).collect();
    match known {
        Some(known) if known.claims.iter().map(AsRef::as_ref).eq(claims.iter().map(String::as_str)) => {
            known.claims.clone()
        }
        _ => claims.iter().map(|claim| claim.as_str().into()).collect(),
    }
}

/// The server gives a new pod the phase Pending; a phase it does not know of is held by budgets like Running.
fn phase(text: &str) -> PodPhase {
    match text {
        "" | "Pending" => PodPhase::Pending,
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        _ => PodPhase::Unknown,
    }
}

fn restart_policy(text: &str) -> RestartPolicy {
    match text {
        "Never" => RestartPolicy::Never,
        "OnFailure" => RestartPolicy::OnFailure,
        _ => RestartPolicy::Always,
    }
}

fn trouble(status: &Status, interner: &mut Interner) -> Option<Box<ContainerTrouble>> {
    let containers = || status.init_container_statuses.iter().chain(&status.container_statuses);
    let restarts = containers().map(|container| container.restart_count).max().unwrap_or_default();
    let waiting = || {
        containers().filter_map(|container| container.state.waiting.as_ref()).map(|waiting| &*waiting.reason)
    };
    // A container that ails says more than one that is about to be created.
    let reason = waiting().find(|reason| ContainerTrouble::is_ailment(reason)).or_else(|| waiting().next());
    let unready = condition(&status.conditions, "Ready").filter(|ready| ready.status != "True");
    let unready_since = unready.and_then(|ready| ready.since);
    (restarts > 0 || reason.is_some() || unready_since.is_some()).then(|| {
        let waiting = reason.filter(|reason| !reason.is_empty()).map(|reason| interner.text(reason));
        Box::new(ContainerTrouble { restarts, waiting, unready_since })
    })
}
