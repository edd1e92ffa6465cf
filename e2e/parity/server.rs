//! The real server: plain requests, and evictions with their answers.

use anyhow::{Context as _, Result};
use http::Request;
use kube::core::Status;
use kube::{Client, Error};
use serde_json::{Value, json};

use drainplan::budget::Cause;

/// Requests by path.
#[derive(Clone)]
pub struct Server(pub Client);

/// What an eviction was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub code: u16,
    /// Causes the server tells apart; all of 201 are one to it.
    pub class: String,
    pub message: String,
}

impl Server {
    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> Result<Value, Error> {
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        self.0.request(request.body(body.to_string().into_bytes()).map_err(Error::HttpError)?).await
    }
    /// Creates an object.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value> {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
        self.send("POST", path, "application/json", object)
            .await
            .with_context(|| format!("create {name} in {path}"))
    }
    /// Creates an object that may be there already.
    pub async fn ensure(&self, path: &str, object: &Value) -> Result<()> {
        match self.send("POST", path, "application/json", object).await {
            Err(Error::Api(status)) if status.code == 409 => Ok(()),
            answer => answer.map(drop).with_context(|| format!("ensure {path}")),
        }
    }
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send("GET", path, "application/json", &Value::Null).await.with_context(|| format!("get {path}"))
    }
    /// Merges into an object; one that has gone meanwhile is no error.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<()> {
        match self.send("PATCH", path, "application/merge-patch+json", patch).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            answer => answer.map(drop).with_context(|| format!("merge {patch} into {path}")),
        }
    }
    /// Deletes an object; what it owns follows in the background.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let options = json!({"propagationPolicy": "Background"});
        match self.send("DELETE", path, "application/json", &options).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            answer => answer.map(drop).with_context(|| format!("delete {path}")),
        }
    }
    /// Evicts a pod, or asks what an eviction would be answered.
    pub async fn evict(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
        dry_run: bool,
    ) -> Result<Answer> {
        let mut options = json!({});
        if let Some(uid) = uid {
            options = json!({"preconditions": {"uid": uid}});
        }
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name}, "deleteOptions": options,
        });
        let query = if dry_run { "?dryRun=All" } else { "" };
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction{query}");
        match self.send("POST", &path, "application/json", &body).await {
            Ok(_) => Ok(Answer { code: 201, class: "evicted".to_owned(), message: String::new() }),
            Err(Error::Api(status)) => Ok(Answer::of(&status)),
            Err(error) => Err(error).context(path),
        }
    }
}

impl Answer {
    fn of(status: &Status) -> Self {
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        let (reason, said) = causes.first().map_or(("", ""), |cause| (&*cause.reason, &*cause.message));
        let cause = match (status.code, reason) {
            (403, "NamespaceTerminating") => Some(Cause::NamespaceTerminating),
            (403, "DisruptionBudget") if said.contains("is negative") => Some(Cause::NegativeAllowance),
            (403, "DisruptionBudget") if said.contains("too many pending evictions") => {
                Some(Cause::TooManyDisruptedPods)
            }
            (429, "DisruptionBudget") if said.contains("still being processed") => {
                Some(Cause::StillProcessing)
            }
            (429, "DisruptionBudget") if said.contains("failed sync") => Some(Cause::SyncFailed),
            (429, "DisruptionBudget") => Some(Cause::Exhausted),
            (500, "") if status.message.contains("more than one PodDisruptionBudget") => {
                Some(Cause::SeveralBudgets)
            }
            _ => None,
        };
        let class = cause.map_or_else(|| format!("{} {reason}", status.reason), class);
        Self { code: status.code, class, message: format!("{} {said}", status.message) }
    }
}

/// How far the server tells causes apart.
pub fn class(cause: Cause) -> String {
    if cause.evicts() { "evicted".to_owned() } else { format!("{cause:?}") }
}
