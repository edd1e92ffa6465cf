//! The scale of an owner that is not watched, read as the disruption controller reads it.

use kube::api::DynamicObject;
use kube::core::{GroupVersion, Status};
use kube::{Api, Client, discovery};
use serde_json::Value;

use crate::cluster::{OwnerRef, Scale, Text};

/// What `…/scale` of the owner says (`disruption.go: getScaleController`).
pub async fn read(client: &Client, namespace: &str, owner: &OwnerRef) -> Scale {
    match ask(client, namespace, owner).await {
        Ok(scale) => scale,
        Err(kube::Error::Api(status)) => Scale::Unreadable(Text::from(status.message.as_str())),
        Err(error) => Scale::Unreadable(Text::from(error.to_string())),
    }
}

async fn ask(client: &Client, namespace: &str, owner: &OwnerRef) -> Result<Scale, kube::Error> {
    let no_kind = || Scale::NoScale(Scale::no_kind(owner).into());
    let Ok(version) = owner.api_version.parse::<GroupVersion>() else { return Ok(no_kind()) };
    let (resource, capabilities) = match discovery::pinned_kind(client, &version.with_kind(&owner.kind)).await
    {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(no_kind()),
        Err(kube::Error::Discovery(_)) => return Ok(no_kind()),
        Err(error) => return Err(error),
    };
    let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    match objects.get_subresource("scale", &owner.name).await {
        Ok(scale) => Ok(Scale::Replicas {
            uid: Text::from(scale.metadata.uid.as_deref().unwrap_or_default()),
            replicas: replicas(&scale.data),
        }),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let scales = capabilities
                .subresources
                .iter()
                .any(|(subresource, _)| subresource.plural.ends_with("scale"));
            let group_resource = match resource.group.as_str() {
                "" => resource.plural,
                group => format!("{}.{group}", resource.plural),
            };
            Ok(if scales {
                Scale::Gone
            } else {
                Scale::NoScale(Scale::no_subresource(&group_resource).into())
            })
        }
        // The server itself cannot read a scale there, and the controller reports its words.
        Err(kube::Error::Api(status)) if says_why(&status) => {
            Ok(Scale::NoScale(Text::from(status.message.as_str())))
        }
        Err(error) => Err(error),
    }
}

fn says_why(status: &Status) -> bool {
    status.code == 500 && !status.message.is_empty()
}

fn replicas(scale: &Value) -> i32 {
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
    i32::try_from(replicas).unwrap_or(i32::MAX)
}
