//! Whether whoever asks may evict pods. Every authenticated user may ask that (`system:basic-user`).

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::cluster::{Right, Text};

/// What the server's authorizer answers, about a namespace or about all of them.
///
/// # Errors
/// When the server does not answer the question.
pub async fn ask(client: &Client, namespace: Option<&str>) -> Result<Right, kube::Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: namespace.map(str::to_owned),
                verb: Some("create".to_owned()),
                resource: Some("pods".to_owned()),
                subresource: Some("eviction".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
    if status.allowed {
        return Ok(Right::Granted);
    }
    let why = status.reason.or(status.evaluation_error).unwrap_or_default();
    Ok(Right::Denied { user: user(client).await, why: Text::from(why) })
}

/// Who asks, as the server knows it; empty where it does not say.
async fn user(client: &Client) -> Text {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let user = answer.ok().and_then(|review| review.status?.user_info?.username);
    Text::from(user.unwrap_or_default())
}
