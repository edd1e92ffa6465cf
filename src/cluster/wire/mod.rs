//! Objects as the API server sends them: only the fields that are read are decoded.

mod go_duration;
mod meta;
mod node;
mod pdb;
mod placement;
mod pod;
mod scaleless;
mod selector;
mod volumes;
mod watched;
mod workload;

use serde::Deserialize;

use super::interner::Interner;
use super::{
    DaemonSet, Job, Namespace, Node, Pdb, PersistentVolume, Pod, Text, VolumeAttachment, Workload,
    WorkloadKind,
};
use meta::Meta;
pub(super) use meta::uid_or_name;
use node::{WireNamespace, WireNode};
use pdb::WirePdb;
pub(super) use pod::WirePod;
use scaleless::{WireDaemonSet, WireJob};
use volumes::{WirePersistentVolume, WireVolumeAttachment};
use workload::WireWorkload;

pub use watched::{Kind, Watched, kinds};

/// The kinds that are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectKind {
    Node,
    Namespace,
    Pod,
    PodDisruptionBudget,
    ReplicationController,
    ReplicaSet,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    PersistentVolume,
    VolumeAttachment,
}

impl ObjectKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Node,
        Self::Namespace,
        Self::Pod,
        Self::PodDisruptionBudget,
        Self::ReplicationController,
        Self::ReplicaSet,
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::PersistentVolume,
        Self::VolumeAttachment,
    ];
    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Namespace => "Namespace",
            Self::Pod => "Pod",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::ReplicationController => "ReplicationController",
            Self::ReplicaSet => "ReplicaSet",
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
            Self::PersistentVolume => "PersistentVolume",
            Self::VolumeAttachment => "VolumeAttachment",
        }
    }
    /// The API group, empty for the core.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Node
            | Self::Namespace
            | Self::Pod
            | Self::ReplicationController
            | Self::PersistentVolume => "",
            Self::VolumeAttachment => "storage.k8s.io",
            Self::PodDisruptionBudget => "policy",
            Self::Job => "batch",
            Self::ReplicaSet | Self::Deployment | Self::StatefulSet | Self::DaemonSet => "apps",
        }
    }
    /// The resource's name in URLs.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Namespace => "namespaces",
            Self::Pod => "pods",
            Self::PodDisruptionBudget => "poddisruptionbudgets",
            Self::ReplicationController => "replicationcontrollers",
            Self::ReplicaSet => "replicasets",
            Self::Deployment => "deployments",
            Self::StatefulSet => "statefulsets",
            Self::DaemonSet => "daemonsets",
            Self::Job => "jobs",
            Self::PersistentVolume => "persistentvolumes",
            Self::VolumeAttachment => "volumeattachments",
        }
    }
    /// The kind of an apiVersion and kind, if it is observed. All are served as v1.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let group = match api_version {
            "v1" => "",
            grouped => grouped.strip_suffix("/v1")?,
        };
        Self::ALL.into_iter().find(|known| known.name() == kind && known.group() == group)
    }
}

/// An object as it came, or why it cannot be read.
#[derive(Debug, Clone)]
pub struct Raw {
    pub(super) kind: ObjectKind,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Node(WireNode),
    Namespace(WireNamespace),
    Pod(Box<WirePod>),
    Pdb(WirePdb),
    Workload(WorkloadKind, WireWorkload),
    DaemonSet(WireDaemonSet),
    Job(WireJob),
    PersistentVolume(WirePersistentVolume),
    VolumeAttachment(WireVolumeAttachment),
    /// Already in the form that is kept.
    Kept(Box<(Meta, Object)>),
    /// Cannot be read: what can be said of it, and why.
    Bad(Meta, String),
}

/// An object in the form that is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    Node(Node),
    Namespace(Namespace),
    Pod(Pod),
    Pdb(Pdb),
    Workload(Workload),
    DaemonSet(DaemonSet),
    Job(Job),
    PersistentVolume(PersistentVolume),
    VolumeAttachment(VolumeAttachment),
    /// Cannot be read.
    Bad(String),
}

impl Object {
    /// Its kind; `None` when it cannot be read.
    #[must_use]
    pub fn kind(&self) -> Option<ObjectKind> {
        Some(match self {
            Self::Node(_) => ObjectKind::Node,
            Self::Namespace(_) => ObjectKind::Namespace,
            Self::Pod(_) => ObjectKind::Pod,
            Self::Pdb(_) => ObjectKind::PodDisruptionBudget,
            Self::Workload(workload) => workload.kind.object_kind(),
            Self::DaemonSet(_) => ObjectKind::DaemonSet,
            Self::Job(_) => ObjectKind::Job,
            Self::PersistentVolume(_) => ObjectKind::PersistentVolume,
            Self::VolumeAttachment(_) => ObjectKind::VolumeAttachment,
            Self::Bad(_) => return None,
        })
    }

    /// Its uid; empty when it has none.
    #[must_use]
    pub fn uid(&self) -> Text {
        match self {
            Self::Node(node) => node.uid.clone(),
            Self::Pod(pod) => pod.uid.clone(),
            Self::Pdb(budget) => budget.uid.clone(),
            Self::Workload(workload) => workload.uid.clone(),
            Self::DaemonSet(set) => set.uid.clone(),
            Self::Job(job) => job.uid.clone(),
            Self::PersistentVolume(volume) => volume.uid.clone(),
            Self::VolumeAttachment(attachment) => attachment.uid.clone(),
            Self::Namespace(_) | Self::Bad(_) => Text::default(),
        }
    }

    fn meta(&self) -> Meta {
        let uid = self.uid();
        let (namespace, name, version): (&str, &str, &str) = match self {
            Self::Node(node) => ("", &node.name, &node.resource_version),
            Self::Namespace(namespace) => ("", &namespace.name, ""),
            Self::Pod(pod) => (&pod.namespace, &pod.name, ""),
            Self::Pdb(budget) => (&budget.namespace, &budget.name, &budget.resource_version),
            Self::Workload(workload) => (&workload.namespace, &workload.name, ""),
            Self::DaemonSet(set) => (&set.namespace, &set.name, ""),
            Self::Job(job) => (&job.namespace, &job.name, ""),
            Self::PersistentVolume(volume) => ("", &volume.name, ""),
            Self::VolumeAttachment(attachment) => ("", &attachment.name, ""),
            Self::Bad(_) => ("", "", ""),
        };
        Meta {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            uid: uid.to_string(),
            resource_version: version.to_owned(),
            ..Meta::default()
        }
    }
}

impl Raw {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }
    /// Decodes the JSON of one object. Never fails: what cannot be read says so.
    #[must_use]
    pub fn decode(kind: ObjectKind, json: &str) -> Self {
        let content = Content::decode(kind, json).unwrap_or_else(|error| {
            #[derive(Deserialize)]
            struct Head {
                metadata: HeadMeta,
            }
            #[derive(Deserialize, Default)]
            #[serde(rename_all = "camelCase", default)]
            struct HeadMeta {
                name: String,
                namespace: String,
                uid: String,
                resource_version: String,
            }
            let head = serde_json::from_str::<Head>(json).map(|head| head.metadata).unwrap_or_default();
            let HeadMeta { name, namespace, uid, resource_version } = head;
            Content::Bad(
                Meta { name, namespace, uid, resource_version, ..Meta::default() },
                error.to_string(),
            )
        });
        Self { kind, content }
    }
    /// An object that needs no decoding, as a simulation has it; `None` when it cannot be read.
    #[must_use]
    pub fn kept(object: Object) -> Option<Self> {
        let (kind, meta) = (object.kind()?, object.meta());
        Some(Self { kind, content: Content::Kept(Box::new((meta, object))) })
    }
    /// Its uid; empty when it has none.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.meta().uid
    }
    pub(super) fn meta(&self) -> &Meta {
        match &self.content {
            Content::Node(object) => &object.metadata,
            Content::Namespace(object) => &object.metadata,
            Content::Pod(object) => &object.metadata,
            Content::Pdb(object) => &object.metadata,
            Content::Workload(_, object) => &object.metadata,
            Content::DaemonSet(object) => &object.metadata,
            Content::Job(object) => &object.metadata,
            Content::PersistentVolume(object) => &object.metadata,
            Content::VolumeAttachment(object) => &object.metadata,
            Content::Kept(kept) => &kept.0,
            Content::Bad(meta, _) => meta,
        }
    }
    pub(super) fn into_object(self, interner: &mut Interner) -> Object {
        if self.meta().name.is_empty() {
            return Object::Bad("it has no metadata.name".into());
        }
        match self.content {
            Content::Node(object) => Object::Node(object.into_node(interner)),
            Content::Namespace(object) => Object::Namespace(object.into_namespace(interner)),
            Content::Pod(_) => Object::Bad("it is a pod without a name".into()),
            Content::Pdb(object) => Object::Pdb(object.into_pdb(interner)),
            Content::Workload(kind, object) => Object::Workload(object.into_workload(kind, interner)),
            Content::DaemonSet(object) => Object::DaemonSet(object.into_daemon_set(interner)),
            Content::Job(object) => Object::Job(object.into_job(interner)),
            Content::PersistentVolume(object) => Object::PersistentVolume(object.into_volume(interner)),
            Content::VolumeAttachment(object) => Object::VolumeAttachment(object.into_attachment(interner)),
            Content::Kept(kept) => kept.1,
            Content::Bad(_, why) => Object::Bad(why),
        }
    }
}

impl Content {
    fn decode(kind: ObjectKind, json: &str) -> Result<Self, serde_json::Error> {
        let workload = |kind| serde_json::from_str(json).map(|object| Self::Workload(kind, object));
        match kind {
            ObjectKind::Node => serde_json::from_str(json).map(Self::Node),
            ObjectKind::Namespace => serde_json::from_str(json).map(Self::Namespace),
            ObjectKind::Pod => serde_json::from_str(json).map(Self::Pod),
            ObjectKind::PodDisruptionBudget => WirePdb::decode(json).map(Self::Pdb),
            ObjectKind::ReplicationController => workload(WorkloadKind::ReplicationController),
            ObjectKind::ReplicaSet => workload(WorkloadKind::ReplicaSet),
            ObjectKind::Deployment => workload(WorkloadKind::Deployment),
            ObjectKind::StatefulSet => workload(WorkloadKind::StatefulSet),
            ObjectKind::DaemonSet => serde_json::from_str(json).map(Self::DaemonSet),
            ObjectKind::Job => serde_json::from_str(json).map(Self::Job),
            ObjectKind::PersistentVolume => serde_json::from_str(json).map(Self::PersistentVolume),
            ObjectKind::VolumeAttachment => serde_json::from_str(json).map(Self::VolumeAttachment),
        }
    }
}
