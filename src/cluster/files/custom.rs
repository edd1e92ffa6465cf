//! Scales of custom resources, from their definitions and objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::cluster::wire::uid_or_name;
use crate::cluster::{Cluster, OwnerRef, Scale, Text};

/// Definitions, and objects of groups that are not built in.
#[derive(Debug, Default)]
pub(super) struct CustomResources {
    /// By group and kind.
    definitions: BTreeMap<(String, String), Definition>,
    /// By group, kind, namespace and name.
    objects: BTreeMap<[String; 4], Object>,
}

#[derive(Debug)]
struct Object {
    uid: Text,
    json: Value,
}

#[derive(Debug, Deserialize)]
struct Wire {
    spec: Definition,
}

#[derive(Debug, Deserialize)]
struct Definition {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Debug, Deserialize)]
struct Version {
    name: String,
    served: bool,
    #[serde(default)]
    subresources: Option<Subresources>,
}

#[derive(Debug, Deserialize, Default)]
struct Subresources {
    scale: Option<ScalePaths>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScalePaths {
    spec_replicas_path: String,
}

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
}

impl CustomResources {
    /// Keeps a definition or an object that may own pods; says whether it did.
    pub(super) fn add(&mut self, api_version: &str, kind: &str, json: &str) -> Result<bool, String> {
        let Some((group, _)) = api_version.split_once('/') else { return Ok(false) };
        if group == "apiextensions.k8s.io" && kind == "CustomResourceDefinition" {
            let definition = serde_json::from_str::<Wire>(json).map_err(|error| error.to_string())?.spec;
            self.definitions.insert((definition.group.clone(), definition.names.kind.clone()), definition);
            return Ok(true);
        }
        if !group.contains('.') || group.ends_with(".k8s.io") {
            return Ok(false);
        }
        let Metadata { namespace, name, uid } =
            serde_json::from_str::<Named>(json).map_err(|error| error.to_string())?.metadata;
        let uid = uid_or_name(&uid, kind, &namespace, &name).into_owned();
        let json = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let key = [group.to_owned(), kind.to_owned(), namespace, name];
        self.objects.insert(key, Object { uid: uid.into(), json });
        Ok(true)
    }

    /// Records the scale of every owner of a pod that a definition tells something about. Where the files hold the
    /// definition and not the owner, nothing is known of it.
    pub(super) fn record_scales(&self, cluster: &mut Cluster) {
        let owners: BTreeMap<Text, (Text, OwnerRef)> = cluster
            .pods()
            .filter_map(|pod| pod.owner.as_ref().map(|owner| (pod, owner)))
            .map(|(pod, owner)| (owner.uid.clone(), (pod.namespace.clone(), OwnerRef::clone(owner))))
            .collect();
        for (uid, (namespace, owner)) in owners {
            if let Some(scale) = self.scale(&namespace, &owner) {
                cluster.record_scale(uid, scale);
            }
        }
    }

    /// What GET `…/scale` would answer.
    fn scale(&self, namespace: &str, owner: &OwnerRef) -> Option<Scale> {
        let (group, version) = owner.api_version.split_once('/')?;
        let definition = self.definitions.get(&(group.to_owned(), owner.kind.to_string()))?;
        let served = definition.versions.iter().find(|known| known.name == version && known.served);
        let Some(served) = served else { return Some(Scale::NoScale(Scale::no_kind(owner).into())) };
        let Some(paths) = served.subresources.as_ref().and_then(|subresources| subresources.scale.as_ref())
        else {
            let resource = format!("{}.{group}", definition.names.plural);
            return Some(Scale::NoScale(Scale::no_subresource(&resource).into()));
        };
        let key = [group, &*owner.kind, namespace, &*owner.name].map(str::to_owned);
        let object = self.objects.get(&key)?;
        let path = &paths.spec_replicas_path;
        let replicas =
            path.split('.').filter(|step| !step.is_empty()).try_fold(&object.json, |at, step| at.get(step));
        let replicas = replicas.and_then(Value::as_i64).and_then(|replicas| i32::try_from(replicas).ok());
        Some(match replicas {
            Some(replicas) => Scale::Replicas { uid: object.uid.clone(), replicas },
            // `apiextensions-apiserver/pkg/registry/customresource/etcd.go: ScaleREST.Get`
            None => Scale::NoScale(
                format!("Internal error occurred: the spec replicas field \"{path}\" does not exist").into(),
            ),
        })
    }
}
