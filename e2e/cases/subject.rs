//! Asks as somebody else.

use std::path::PathBuf;

use anyhow::Context as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::json;

use crate::world::World;

/// A kubeconfig of a service account, which may read everything besides what it may anyway.
pub async fn kubeconfig(world: &mut World<'_>, subject: &str) -> anyhow::Result<PathBuf> {
    let mut parts = subject.strip_prefix("system:serviceaccount:").unwrap_or(subject).split(':');
    let (Some(namespace), Some(name)) = (parts.next(), parts.next()) else {
        anyhow::bail!("{subject} is no service account");
    };
    let role = format!("case-reader-{namespace}-{name}");
    if !world.created.iter().any(|object| object.name == role) {
        let may = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
        });
        world.create(&serde_json::from_value(may)?).await?;
        let bound = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
        });
        world.create(&serde_json::from_value(bound)?).await?;
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), namespace);
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts.create_token_request(name, &PostParams::default(), &request).await?;
    let token = token.status.and_then(|status| status.token).context("a token request without a token")?;
    let mut kubeconfig = Kubeconfig::read_from(world.plane.testbed().simulator())?;
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()) {
        *user = AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() };
    }
    let path = world.plane.testbed().dir().join(format!("{role}.kubeconfig"));
    std::fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
    Ok(path)
}
