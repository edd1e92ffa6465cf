//! What a watch is typed with: `Api<Watched<kinds::Pod>>`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{ObjectKind, Raw};

/// A watched kind.
pub trait Kind: 'static {
    /// Namespaced or not.
    type Scope;
    /// Which one.
    const KIND: ObjectKind;
}

/// The kinds to watch.
pub mod kinds {
    use kube::core::{ClusterResourceScope, NamespaceResourceScope};

    use super::{Kind, ObjectKind};

    macro_rules! kind {
        ($($name:ident, $scope:ty, $kind:ident;)*) => {$(
            #[doc = concat!("The kind ", stringify!($kind), ".")]
            #[derive(Debug, Clone, Copy)]
            pub struct $name;
            impl Kind for $name {
                type Scope = $scope;
                const KIND: ObjectKind = ObjectKind::$kind;
            }
        )*};
    }

    kind! {
        Node, ClusterResourceScope, Node;
        Namespace, ClusterResourceScope, Namespace;
        Pod, NamespaceResourceScope, Pod;
        PodDisruptionBudget, NamespaceResourceScope, PodDisruptionBudget;
        ReplicationController, NamespaceResourceScope, ReplicationController;
        ReplicaSet, NamespaceResourceScope, ReplicaSet;
        Deployment, NamespaceResourceScope, Deployment;
        StatefulSet, NamespaceResourceScope, StatefulSet;
        DaemonSet, NamespaceResourceScope, DaemonSet;
        Job, NamespaceResourceScope, Job;
        PersistentVolume, ClusterResourceScope, PersistentVolume;
        VolumeAttachment, ClusterResourceScope, VolumeAttachment;
    }
}

/// An object of a watched kind. One that cannot be read does not fail the list or the watch it comes in.
pub struct Watched<K> {
    /// Name, namespace, uid and resourceVersion.
    meta: ObjectMeta,
    raw: Raw,
    kind: PhantomData<fn() -> K>,
}

impl<K> Watched<K> {
    /// What came.
    #[must_use]
    pub fn into_raw(self) -> Raw {
        self.raw
    }
}

impl<K> Clone for Watched<K> {
    fn clone(&self) -> Self {
        Self { meta: self.meta.clone(), raw: self.raw.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Watched<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(formatter)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Watched<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is taken whole first, so that an error inside cannot leave the stream in the middle of an object.
        let json = <Box<RawValue>>::deserialize(deserializer)?;
        let raw = Raw::decode(K::KIND, json.get());
        let from = raw.meta();
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let meta = ObjectMeta {
            name: some(&from.name),
            namespace: some(&from.namespace),
            uid: some(&from.uid),
            resource_version: some(&from.resource_version),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, raw, kind: PhantomData })
    }
}

impl<K: Kind> Resource for Watched<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::KIND.name().into()
    }
    fn group((): &()) -> Cow<'_, str> {
        K::KIND.group().into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        K::KIND.plural().into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
