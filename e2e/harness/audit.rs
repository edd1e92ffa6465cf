//! The server's audit log: one JSON object a line, an answered request each.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde_json::Value;

use super::Installation;

/// The log of one cluster.
#[derive(Clone)]
pub struct Audit {
    path: PathBuf,
}

/// One answered request.
#[derive(Debug, Clone)]
pub struct Request {
    pub received: Timestamp,
    /// When the answer was complete.
    pub answered: Timestamp,
    pub verb: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub user: String,
    pub agent: String,
    pub code: u16,
    pub message: String,
    /// What was sent, where the policy keeps it.
    pub body: Value,
    /// What was answered, where the policy keeps it.
    #[allow(dead_code, reason = "the benchmarks read it")]
    pub response: Value,
}

impl Audit {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The requests that `wanted` lets through, in the order in which they were answered.
    pub fn requests(&self, wanted: impl Fn(&Request) -> bool) -> Result<Vec<Request>> {
        let log = std::fs::read_to_string(&self.path)
            .with_context(|| format!("cannot read the audit log {}", self.path.display()))?;
        // The server may be writing the last line.
        let complete = log.rfind('\n').map_or("", |end| log.get(..end).unwrap_or_default());
        let mut requests = Vec::new();
        for line in complete.lines() {
            let request = Request::parse(line).with_context(|| format!("a line of the audit log: {line}"))?;
            if wanted(&request) {
                requests.push(request);
            }
        }
        Ok(requests)
    }

    /// All evictions in a namespace, whoever asked for them.
    pub fn evictions(&self, namespace: &str) -> Result<Vec<Request>> {
        self.requests(|request| request.is_eviction() && request.namespace == namespace)
    }

    /// All writes to a node, whoever made them.
    pub fn node_writes(&self, node: &str) -> Result<Vec<Request>> {
        self.requests(|request| {
            request.resource == "nodes"
                && request.name == node
                && matches!(request.verb.as_str(), "create" | "update" | "patch" | "delete")
        })
    }
}

impl Request {
    fn parse(line: &str) -> Result<Self> {
        let mut event: Value = serde_json::from_str(line)?;
        let text =
            |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let at = |pointer: &str| text(pointer).parse::<Timestamp>().with_context(|| format!("no {pointer}"));
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
        let request = Self {
            received: at("/requestReceivedTimestamp")?,
            answered: at("/stageTimestamp")?,
            verb: text("/verb"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            user: text("/user/username"),
            agent: text("/userAgent"),
            code: u16::try_from(code)?,
            message: text("/responseStatus/message"),
            body: Value::Null,
            response: Value::Null,
        };
        let mut take = |key| event.get_mut(key).map(Value::take).unwrap_or_default();
        Ok(Self { body: take("requestObject"), response: take("responseObject"), ..request })
    }

    /// Whether the controller has sent it, as its service account.
    pub fn is_ours(&self) -> bool {
        self.user == Installation::user() && self.agent.starts_with("drainplan-controller/")
    }

    /// Whether it asks for an eviction.
    pub fn is_eviction(&self) -> bool {
        self.resource == "pods" && self.subresource == "eviction" && self.verb == "create"
    }

    /// The disruptions that a budget allows by this write of its status.
    #[allow(dead_code, reason = "the benchmarks read it")]
    pub fn room_written(&self) -> Option<i32> {
        let written =
            self.resource == "poddisruptionbudgets" && self.subresource == "status" && self.code == 200;
        let allowed = self.response.pointer("/status/disruptionsAllowed").filter(|_| written);
        allowed.and_then(Value::as_i64).and_then(|allowed| i32::try_from(allowed).ok())
    }

    /// The uid that an eviction names as its precondition.
    pub fn precondition(&self) -> Option<&str> {
        self.body.pointer("/deleteOptions/preconditions/uid").and_then(Value::as_str)
    }

    /// One line about it.
    pub fn line(&self) -> String {
        let object = [&self.namespace, &self.name].map(String::as_str).join("/");
        let what = if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        };
        let message = if self.message.is_empty() { String::new() } else { format!(" {}", self.message) };
        let body = if self.body.is_null() { String::new() } else { format!(" {}", self.body) };
        format!(
            "{} {} {} {what} {object} by {} ({}){message}{body}",
            self.received, self.code, self.verb, self.user, self.agent
        )
    }
}
