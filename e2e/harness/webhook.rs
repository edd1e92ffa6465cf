//! Admission webhooks for evictions: one that denies, one that never answers, one that nobody serves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use axum::serve::Listener;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use super::Testbed;

/// What is served at an address, while this lives.
pub struct Webhook {
    address: SocketAddr,
    /// How many have connected so far.
    connected: watch::Receiver<usize>,
    task: Option<AbortHandle>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Webhook {
    /// Denies whatever it is asked about, with this code and these words.
    pub async fn denying(testbed: &Testbed, code: u16, message: &'static str) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let answer = move |asked: Bytes| async move {
            let review: Value = serde_json::from_slice(&asked).unwrap_or_default();
            let uid = review.pointer("/request/uid").cloned().unwrap_or_default();
            let answer = json!({
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": uid, "allowed": false, "status": {"code": code, "message": message}},
            });
            ([("content-type", "application/json")], answer.to_string())
        };
        let router = Router::new().route("/", post(answer));
        let listener = Tls { listener, acceptor: acceptor(testbed)? };
        let task = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Ok(Self { address, connected: watch::channel(0).1, task: Some(task) })
    }

    /// Takes every connection and never says a word.
    pub async fn silent() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (tell, connected) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
                tell.send_replace(held.len());
            }
        });
        Ok(Self { address, connected, task: Some(task.abort_handle()) })
    }

    /// Nobody listens there.
    pub async fn nobody() -> Result<Self> {
        let address = TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?;
        Ok(Self { address, connected: watch::channel(0).1, task: None })
    }

    /// Whether somebody connects within that time, from now on.
    pub async fn is_called(&self, within: Duration) -> bool {
        let mut connected = self.connected.clone();
        connected.borrow_and_update();
        timeout(within, connected.changed()).await.is_ok_and(|changed| changed.is_ok())
    }

    /// Registers it for the evictions in a namespace; the registration has the namespace's name. Where there is a condition,
    /// it decides whether the webhook is asked.
    pub async fn register(&self, testbed: &Testbed, namespace: &str, condition: Option<&str>) -> Result<()> {
        let authority = std::fs::read(testbed.dir().join("pki/ca.crt")).context("the testbed's authority")?;
        let conditions: Vec<Value> =
            condition.iter().map(|expression| json!({"name": "asks", "expression": expression})).collect();
        let mut registered: ValidatingWebhookConfiguration = serde_json::from_value(json!({
            "metadata": {"name": namespace},
            "webhooks": [{
                "name": "guard.example.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 30,
                "matchConditions": conditions,
                "clientConfig": {"url": format!("https://{}/", self.address)},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
                }],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            }],
        }))?;
        for webhook in registered.webhooks.iter_mut().flatten() {
            webhook.client_config.ca_bundle = Some(k8s_openapi::ByteString(authority.clone()));
        }
        registrations(testbed.client()).create(&PostParams::default(), &registered).await?;
        Ok(())
    }

    /// Takes the registration for a namespace back.
    pub async fn forget(client: Client, namespace: &str) -> Result<()> {
        registrations(client).delete(namespace, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn registrations(client: Client) -> Api<ValidatingWebhookConfiguration> {
    Api::all(client)
}

/// The testbed's own certificate is good for 127.0.0.1, too.
fn acceptor(testbed: &Testbed) -> Result<TlsAcceptor> {
    let pki = testbed.dir().join("pki");
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(pki.join("admin.crt"))?.collect();
    let key = PrivateKeyDer::from_pem_file(pki.join("admin.key"))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates?, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, peer)) = self.listener.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
