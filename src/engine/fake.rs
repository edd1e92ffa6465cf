//! An API server for tests: objects in memory, resourceVersions that are checked, and faults on demand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

/// How the server behaves towards a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Serving,
    /// Every request gets this status code.
    Refusing(u16),
    /// Requests are not carried out and never answered.
    Silent,
    /// Requests are carried out and never answered.
    Deaf,
    /// Whoever asks panics, as with a bug in what carries out the request.
    Panicking,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    log: Vec<String>,
}

/// The server. Clones are the same server.
#[derive(Clone, Default)]
pub struct FakeApi(Arc<Mutex<State>>);

/// A client's view of the server, which can be disturbed without disturbing other clients.
#[derive(Clone, Default)]
pub struct Line(Arc<Mutex<Mode>>);

impl Line {
    pub fn set(&self, mode: Mode) {
        *self.0.lock().unwrap() = mode;
    }
}

impl FakeApi {
    /// A client, and the line it reaches the server on.
    pub fn client(&self) -> (Client, Line) {
        let (api, line) = (self.clone(), Line::default());
        let mode = line.clone();
        let service = service_fn(move |request: Request<Body>| {
            let (api, mode) = (api.clone(), *mode.0.lock().unwrap());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let answer = match mode {
                    Mode::Silent => None,
                    Mode::Panicking => panic!("a bug"),
                    Mode::Refusing(code) => Some(status(code, "out of order")),
                    Mode::Serving | Mode::Deaf => {
                        let body = serde_json::from_slice(&body).unwrap_or_default();
                        Some(api.answer(&parts.method, parts.uri.path(), body))
                    }
                };
                match answer {
                    Some((code, body)) if mode != Mode::Deaf => Ok::<_, kube::Error>(
                        Response::builder()
                            .status(code)
                            .body(Body::from(body.to_string().into_bytes()))
                            .unwrap(),
                    ),
                    _ => std::future::pending().await,
                }
            }
        });
        (Client::new(service, "default"), line)
    }

    /// The object at a path, as stored.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().unwrap().objects.get(path).cloned()
    }
    /// All objects below a path.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let state = self.0.lock().unwrap();
        state
            .objects
            .iter()
            .filter(|(at, _)| at.starts_with(path))
            .map(|(_, object)| object.clone())
            .collect()
    }
    /// Somebody changes an object.
    pub fn edit(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.0.lock().unwrap();
        state.version += 1;
        let version = state.version.to_string();
        let object = state.objects.get_mut(path).unwrap();
        change(object);
        object["metadata"]["resourceVersion"] = json!(version);
    }
    /// What was asked since the last call, as `METHOD path`.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().log)
    }

    fn answer(&self, method: &Method, path: &str, mut body: Value) -> (u16, Value) {
        let mut state = self.0.lock().unwrap();
        state.log.push(format!("{method} {path}"));
        state.version += 1;
        let version = json!(state.version.to_string());
        match *method {
            Method::GET => match state.objects.get(path) {
                Some(object) => (200, object.clone()),
                None => status(404, "not found"),
            },
            Method::POST => {
                let named = body["metadata"]["name"].as_str().map(str::to_owned);
                let prefix = body["metadata"]["generateName"].as_str().unwrap_or_default();
                if named.is_none() && !is_prefix(prefix) {
                    return status(422, "metadata.generateName is no valid prefix of a name");
                }
                let name = named.unwrap_or_else(|| format!("{prefix}{}", state.version));
                let at = format!("{path}/{name}");
                if state.objects.contains_key(&at) {
                    return status(409, "already exists");
                }
                body["metadata"]["name"] = json!(name);
                body["metadata"]["resourceVersion"] = version;
                state.objects.insert(at, body.clone());
                (201, body)
            }
            Method::PUT => {
                let Some(stored) = state.objects.get_mut(path) else { return status(404, "not found") };
                if stored["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
                    return status(409, "the object has been modified");
                }
                body["metadata"]["resourceVersion"] = version;
                *stored = body.clone();
                (200, body)
            }
            _ => status(405, "not served here"),
        }
    }
}

/// As the server checks it: a DNS subdomain, but for a dash at its end.
fn is_prefix(prefix: &str) -> bool {
    let name = prefix.strip_suffix('-').unwrap_or(prefix);
    let label = |label: &str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    prefix.len() <= 253 && name.split('.').all(label)
}

fn status(code: u16, message: &str) -> (u16, Value) {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        422 => "Invalid",
        _ => "InternalError",
    };
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                      "code": code, "reason": reason, "message": message});
    (code, body)
}
