//! Pods.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Labels, Placement, Text};

/// A pod's namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PodKey {
    pub namespace: Text,
    pub name: Text,
}

/// A pod, as far as budgets, explanations and plans read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pod {
    pub namespace: Text,
    pub name: Text,
    /// The server has drawn its name (`generateName`), so no other pod gets it.
    pub name_drawn: bool,
    pub uid: Text,
    pub created: Option<Timestamp>,
    pub labels: Labels,
    /// The node it is bound to; `None` while unscheduled.
    pub node: Option<Text>,
    /// What it asks of its node; `None` when it asks for nothing.
    pub placement: Option<Arc<Placement>>,
    pub phase: PodPhase,
    /// Its Ready condition is True.
    pub ready: bool,
    /// The owner reference with `controller: true`.
    pub owner: Option<Arc<OwnerRef>>,
    /// It is terminating.
    pub deletion: Option<Deletion>,
    pub finalizers: Box<[Text]>,
    /// A static pod's mirror (annotation `kubernetes.io/config.mirror`).
    pub mirror: bool,
    /// An annotation asks not to move it.
    pub protection: Option<Box<Protection>>,
    /// The names of its emptyDir volumes.
    pub empty_dirs: Box<[Text]>,
    /// The names of the PersistentVolumeClaims that it uses.
    pub claims: Box<[Text]>,
    pub restart_policy: RestartPolicy,
    /// What ails it, when a container has restarted or waits, or it is known since when it is not Ready.
    pub trouble: Option<Box<ContainerTrouble>>,
    /// The scheduler's message when `PodScheduled` is False with reason Unschedulable.
    pub unschedulable: Option<Text>,
}

/// What an annotation asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    pub annotation: Text,
    pub value: Text,
    /// For so long after the pod's creation; `None` for ever.
    pub lasts: Option<SignedDuration>,
}

/// When a terminating pod must be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// `deletionTimestamp`; it already contains the grace period.
    pub at: Timestamp,
    /// `deletionGracePeriodSeconds`; 0 once the kubelet has confirmed the end.
    pub grace_seconds: i64,
    /// Containers of it had not ended by then.
    pub cut_short: bool,
}

impl Deletion {
    /// When it was asked for; a shorter grace period moves `deletionTimestamp`, too (`rest/delete.go: BeforeDelete`).
    #[must_use]
    pub fn asked(&self) -> Timestamp {
        self.at.saturating_sub(SignedDuration::from_secs(self.grace_seconds)).unwrap_or(self.at)
    }
}

/// The controller of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnerRef {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Text,
}

/// A pod's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PodPhase {
    /// What the server gives a new pod.
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

/// Whether the kubelet starts ended containers again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

/// What ails a pod and its containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerTrouble {
    /// The largest restart count of a container.
    pub restarts: i32,
    /// The reason a container waits, such as `CrashLoopBackOff`: one that ails goes before one that starts.
    pub waiting: Option<Text>,
    /// Since when its Ready condition has not been True.
    pub unready_since: Option<Timestamp>,
}

impl ContainerTrouble {
    /// Whether a waiting reason says that the container cannot start, rather than that it is about to.
    #[must_use]
    pub fn is_ailment(waiting: &str) -> bool {
        matches!(waiting, "CrashLoopBackOff" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull")
            || waiting.ends_with("Error")
            || waiting == "ErrImagePull"
    }
}

/// How long a pod that nothing ails may take to become Ready.
const START_LIMIT: SignedDuration = SignedDuration::from_mins(10);

impl Pod {
    /// Created under ten minutes ago, no container restarted and none held up by its image or its creation.
    #[must_use]
    pub fn just_starting(&self, now: Timestamp) -> bool {
        let young = self.created.is_some_and(|created| now.duration_since(created) < START_LIMIT);
        let ails = self.trouble.as_ref().is_some_and(|trouble| {
            trouble.restarts > 0 || trouble.waiting.as_deref().is_some_and(ContainerTrouble::is_ailment)
        });
        young && !ails
    }
    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> PodKey {
        PodKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }
    /// Succeeded or Failed.
    #[must_use]
    pub fn finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }
    /// The same, and not because it was deleted: kubelets give deleted pods such a phase once their containers have ended
    /// (`kubelet_pods.go: generateAPIPodStatus`), a while before their objects go.
    #[must_use]
    pub fn finished_by_itself(&self) -> bool {
        self.finished() && self.deletion.is_none_or(|deletion| !deletion.cut_short)
    }
    /// Deleted, but its object is still there.
    #[must_use]
    pub fn terminating(&self) -> bool {
        self.deletion.is_some()
    }
}
