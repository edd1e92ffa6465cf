//! Metadata, as far as it is read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::cluster::interner::Interner;
use crate::cluster::{Labels, OwnerRef, Text};

/// Annotations that are read; the others are skipped without being copied.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
/// Karpenter: `true`, or for how long after the pod's creation.
pub(super) const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// The cluster autoscaler: `false`.
pub(super) const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
const OURS: &str = "drainplan.dev/";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::cluster) struct Meta {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::cluster) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::cluster) generate_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::cluster) namespace: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::cluster) uid: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::cluster) resource_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) generation: i64,
    pub(super) creation_timestamp: Option<Timestamp>,
    pub(super) deletion_timestamp: Option<Timestamp>,
    pub(super) deletion_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) annotations: Annotations,
    #[serde(deserialize_with = "or_default")]
    pub(super) owner_references: Vec<Owner>,
    #[serde(deserialize_with = "or_default")]
    pub(super) finalizers: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
}

/// The annotations that are read.
#[derive(Debug, Clone, Default)]
pub(super) struct Annotations {
    pub(super) kept: BTreeMap<String, String>,
    /// There are some, kept or not.
    pub(super) any: bool,
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Wanted;
        impl<'de> Visitor<'de> for Wanted {
            type Value = Annotations;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map of annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = Annotations::default();
                while let Some(key) = map.next_key::<String>()? {
                    found.any = true;
                    let read = [MIRROR, DO_NOT_DISRUPT, SAFE_TO_EVICT];
                    if read.contains(&key.as_str()) || key.starts_with(OURS) {
                        found.kept.insert(key, map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Wanted)
    }
}

/// How long a prefix may be, and how many characters follow it (`apiserver/storage/names: simpleNameGenerator`).
const LONGEST_PREFIX: usize = 58;
const DRAWN: usize = 5;

impl Meta {
    /// The server has drawn the name: `generateName`, cut at a length, and five characters. An object that was named by
    /// hand may bring the field along.
    pub(super) fn name_drawn(&self) -> bool {
        let prefix = self.name.len().checked_sub(DRAWN).and_then(|end| self.name.get(..end));
        let wanted = self.generate_name.get(..LONGEST_PREFIX).unwrap_or(&self.generate_name);
        !wanted.is_empty() && prefix == Some(wanted)
    }
    /// The uid; hand-written files have none, and there the name stands for it.
    pub(super) fn uid(&self, kind: &str) -> Text {
        uid_or_name(&self.uid, kind, &self.namespace, &self.name).as_ref().into()
    }
    pub(super) fn labels(&self, interner: &mut Interner) -> Labels {
        interner.labels(self.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }
    /// The first reference that says it is the controller (`apimachinery: GetControllerOf`), shared with `known` when
    /// it is the same.
    pub(super) fn controller(
        &self,
        interner: &mut Interner,
        known: Option<&Arc<OwnerRef>>,
    ) -> Option<Arc<OwnerRef>> {
        let owner = self.owner_references.iter().find(|owner| owner.controller == Some(true))?;
        if let Some(known) = known.filter(|known| owner.equals(known)) {
            return Some(Arc::clone(known));
        }
        let owner = OwnerRef {
            api_version: interner.text(&owner.api_version),
            kind: interner.text(&owner.kind),
            name: interner.text(&owner.name),
            uid: interner.text(&uid_or_name(&owner.uid, &owner.kind, &self.namespace, &owner.name)),
        };
        Some(interner.owner(owner))
    }
}

/// The uid of an object or in a reference to it; the same stands in for both where none is written.
pub(in crate::cluster) fn uid_or_name<'u>(
    uid: &'u str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Cow<'u, str> {
    if uid.is_empty() { format!("{kind}/{namespace}/{name}").into() } else { uid.into() }
}

impl Owner {
    fn equals(&self, known: &OwnerRef) -> bool {
        *self.uid == *known.uid
            && *self.name == *known.name
            && *self.kind == *known.kind
            && *self.api_version == *known.api_version
    }
}

/// A status condition.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
    #[serde(rename = "lastTransitionTime", deserialize_with = "or_default")]
    pub(super) since: Option<Timestamp>,
}

/// The first condition of a type, as the control plane looks for it.
pub(super) fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// `null` is as good as absent.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
