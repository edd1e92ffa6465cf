//! Volumes that are still attached to a node whose pods are gone.

use std::collections::HashSet;

use super::words;
use crate::api::DrainPlanSpec;
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, PodKey, VolumeAttachment};

/// Which volumes keep a node from being empty, as a sentence. The pods that are on it are those that stay.
pub fn attached(spec: &DrainPlanSpec, cluster: &Cluster, node: &str) -> Option<String> {
    let awaits = spec.awaits_volumes_detached() && !planted(Planted::VolumesIgnored);
    if !awaits || cluster.volumes.attached_to(node).next().is_none() {
        return None;
    }
    // The volumes of finished pods are detached like those of pods that are gone.
    let staying = cluster.pods_on(node).filter(|pod| !pod.finished());
    let claims: HashSet<PodKey> = staying
        .flat_map(|pod| {
            let claim = |name: &_| PodKey { namespace: pod.namespace.clone(), name: Clone::clone(name) };
            pod.claims.iter().map(claim).collect::<Vec<_>>()
        })
        .collect();
    let stays = |attachment: &VolumeAttachment| {
        let claim = attachment.volume.as_ref().and_then(|volume| cluster.volumes.claim_of(volume));
        claim.is_some_and(|claim| claims.contains(claim))
    };
    let attached: Vec<String> = cluster
        .volumes
        .attached_to(node)
        .filter(|attachment| !stays(attachment))
        .map(|attachment| match &attachment.volume {
            Some(volume) => format!("PersistentVolume {volume} (VolumeAttachment {})", attachment.name),
            None => format!("VolumeAttachment {}", attachment.name),
        })
        .collect();
    (!attached.is_empty()).then(|| words::volumes_attached(&attached))
}
