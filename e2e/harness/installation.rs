//! The product as it is shipped, on a testbed: the manifests, and the controller as their service account.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{Audit, Controller, Testbed};

/// Where the manifests put it, and whom it is.
const NAMESPACE: &str = "drainplan-system";
const NAME: &str = "drainplan-controller";

/// A cluster with the product on it.
pub struct Installation {
    // Dropped in this order: the controller before its server.
    pub controller: Controller,
    pub testbed: Testbed,
}

impl Installation {
    /// Creates the cluster, applies the manifests and starts the controller.
    pub async fn create(name: &str, keep: bool, program: PathBuf) -> Result<Self> {
        Self::on(Testbed::up(name, keep).await?, program).await
    }

    /// Applies the manifests and starts the controller.
    pub async fn on(testbed: Testbed, program: PathBuf) -> Result<Self> {
        let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
        testbed.kubectl(&["apply", "--server-side", "-k", &manifests.display().to_string()]).await?;
        // The Deployment's pods would be simulated; the real controller runs beside the cluster.
        let deployment = format!("deployment/{NAME}");
        testbed.kubectl(&["scale", "--namespace", NAMESPACE, &deployment, "--replicas=0"]).await?;
        testbed.kubectl(&["wait", "--for=condition=Established", "crd/drainplans.drainplan.dev"]).await?;

        let kubeconfig = testbed.dir().join("controller.kubeconfig");
        let token = token(testbed.client()).await?;
        write_private(&kubeconfig, &with_token(testbed.kubeconfig(), &token)?)?;
        let log = testbed.dir().join("logs/controller.log");
        let controller = Controller::new(program, &kubeconfig, NAMESPACE, log)?;
        controller.start().await?;
        Ok(Self { controller, testbed })
    }

    /// The lease that decides which controller acts.
    pub async fn lease(&self) -> Result<LeaseSpec> {
        let lease = self.leases().get(NAME).await.context("no lease of the controller")?;
        lease.spec.context("an empty lease")
    }

    /// SIGKILL of the controller. Its lease is ended by hand, as whoever has seen the holder's end may do.
    pub async fn kill_controller(&self) -> Result<()> {
        self.controller.kill()?;
        let ended = Patch::Merge(json!({"spec": {"holderIdentity": null}}));
        self.leases().patch(NAME, &PatchParams::default(), &ended).await.context("ending the lease")?;
        Ok(())
    }

    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client(), NAMESPACE)
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.testbed.client()
    }

    /// The server's audit log.
    pub fn audit(&self) -> Audit {
        Audit::new(&self.testbed.audit_log())
    }

    /// The user that the server knows the controller by.
    pub fn user() -> String {
        format!("system:serviceaccount:{NAMESPACE}:{NAME}")
    }
}

async fn token(client: Client) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client, NAMESPACE);
    let asked: TokenRequest =
        serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 7200}}))?;
    let issued = accounts
        .create_token_request(NAME, &PostParams::default(), &asked)
        .await
        .with_context(|| format!("no token for the service account {NAMESPACE}/{NAME}"))?;
    issued.status.and_then(|status| status.token).context("the server issued no token")
}

/// The same server, with a token instead of the administrator's certificate. JSON is YAML.
fn with_token(kubeconfig: &Path, token: &str) -> Result<String> {
    let read = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let cluster = read.clusters.first().and_then(|named| named.cluster.as_ref()).context("no cluster")?;
    let cluster: Value = serde_json::to_value(cluster)?;
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "contexts": [{"name": NAME, "context": {"cluster": "testbed", "user": NAME}}],
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
    });
    Ok(config.to_string())
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}
