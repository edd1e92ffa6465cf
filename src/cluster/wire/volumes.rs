//! VolumeAttachments and PersistentVolumes on the wire.

use serde::Deserialize;

use crate::cluster::interner::Interner;
use crate::cluster::{PersistentVolume, PodKey, VolumeAttachment};

use super::meta::{Meta, or_default};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WireVolumeAttachment {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    spec: AttachmentSpec,
    #[serde(deserialize_with = "or_default")]
    status: AttachmentStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AttachmentSpec {
    #[serde(deserialize_with = "or_default")]
    node_name: String,
    #[serde(deserialize_with = "or_default")]
    source: Source,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    persistent_volume_name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AttachmentStatus {
    #[serde(deserialize_with = "or_default")]
    attached: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WirePersistentVolume {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    spec: VolumeSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    claim_ref: Option<ClaimRef>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ClaimRef {
    #[serde(deserialize_with = "or_default")]
    namespace: String,
    #[serde(deserialize_with = "or_default")]
    name: String,
}

impl WireVolumeAttachment {
    pub(super) fn into_attachment(self, interner: &mut Interner) -> VolumeAttachment {
        let Self { metadata, spec, status } = self;
        VolumeAttachment {
            name: metadata.name.as_str().into(),
            uid: metadata.uid("VolumeAttachment"),
            node: interner.text(&spec.node_name),
            volume: spec.source.persistent_volume_name.map(|name| interner.text(&name)),
            attached: status.attached,
        }
    }
}

impl WirePersistentVolume {
    pub(super) fn into_volume(self, interner: &mut Interner) -> PersistentVolume {
        let Self { metadata, spec } = self;
        let claim = spec.claim_ref.map(|claim| PodKey {
            namespace: interner.text(&claim.namespace),
            name: claim.name.as_str().into(),
        });
        PersistentVolume { name: interner.text(&metadata.name), uid: metadata.uid("PersistentVolume"), claim }
    }
}
