//! Every state of every plan, for those who read plans without knowing them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use drainplan::api::DrainPlan;
use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, Resource as _};
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::{gitops, rows};

/// How long after the end of a watch it begins anew: the kind itself is gone for a while in one case.
const AGAIN: Duration = Duration::from_millis(100);

/// A record of all plans while this lives.
pub struct Readers {
    /// By uid and resourceVersion.
    states: Arc<Mutex<BTreeMap<(String, String), Value>>>,
    task: AbortHandle,
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Readers {
    /// Records from now on.
    pub fn start(client: Client) -> Self {
        let states = Arc::default();
        let task = tokio::spawn(follow(client, Arc::clone(&states))).abort_handle();
        Self { states, task }
    }

    /// What kstatus and Argo CD made of all that was seen; fails when that is not what it should be.
    pub fn judge(&self) -> Result<String> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let (wrong, read) = judge_all(states.values())?;
        ensure!(wrong.is_empty(), "{} states are read wrongly:\n{}", wrong.len(), wrong.join("\n"));
        ensure!(!states.is_empty(), "no plan was seen");
        let unknown = without_row(states.values())?;
        ensure!(unknown.is_empty(), "e2e/reasons.yaml has no row for what was said: {unknown:?}");
        Ok(format!("{} states of plans by kstatus / Argo CD: {read}", states.len()))
    }
}

async fn follow(client: Client, states: Arc<Mutex<BTreeMap<(String, String), Value>>>) {
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::erase::<DrainPlan>(&()));
    let keep = |plan: DynamicObject| {
        let meta = plan.meta();
        let key = (meta.uid.clone().unwrap_or_default(), meta.resource_version.clone().unwrap_or_default());
        if let Ok(plan) = serde_json::to_value(plan) {
            states.lock().unwrap_or_else(PoisonError::into_inner).insert(key, plan);
        }
    };
    loop {
        if let Ok(list) = api.list(&ListParams::default()).await {
            let version = list.metadata.resource_version.clone().unwrap_or_default();
            list.items.into_iter().for_each(keep);
            if let Ok(stream) = api.watch(&WatchParams::default(), &version).await {
                let mut stream = std::pin::pin!(stream);
                while let Some(Ok(event)) = stream.next().await {
                    match event {
                        WatchEvent::Added(plan) | WatchEvent::Modified(plan) => keep(plan),
                        WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
                        WatchEvent::Error(_) => break,
                    }
                }
            }
        }
        sleep(AGAIN).await;
    }
}

/// What was said of a waiting pod and has no row in `reasons.yaml`.
fn without_row<'v>(plans: impl IntoIterator<Item = &'v Value>) -> Result<BTreeSet<String>> {
    let rows = rows::all().map_err(|error| anyhow!(error))?;
    let known: BTreeSet<String> =
        rows.values().map(|row| format!("{} with {}", row.reason(), row.outlook())).collect();
    let list = |of: &'v Value, field: &str| of.pointer(field).and_then(Value::as_array).into_iter().flatten();
    let mut unknown = BTreeSet::new();
    for waits in
        plans.into_iter().flat_map(|plan| list(plan, "/status/nodes")).flat_map(|node| list(node, "/waiting"))
    {
        let of = |field| waits.get(field).and_then(Value::as_str).unwrap_or_default();
        unknown.insert(format!("{} with {}", of("reason"), of("outlook")));
    }
    Ok(&unknown - &known)
}

/// All that was wrong with these plans, and how often each was read as what.
fn judge_all<'v>(plans: impl IntoIterator<Item = &'v Value>) -> Result<(Vec<String>, String)> {
    let script = gitops::Script::load()?;
    let mut wrong = BTreeSet::new();
    let mut read: BTreeMap<String, usize> = BTreeMap::new();
    for plan in plans {
        let (health, _) = script.health(plan)?;
        *read.entry(format!("{} / {health}", gitops::kstatus(plan))).or_default() += 1;
        if let Some(broken) = gitops::judge(&script, plan)? {
            let name = gitops::text(plan, "/metadata/name").unwrap_or_default();
            let said = plan.get("status").map(ToString::to_string).unwrap_or_default();
            wrong.insert(format!("plan {name}: {broken}; its status is {said}"));
        }
    }
    let told: Vec<String> = read.iter().map(|(what, count)| format!("{count} {what}")).collect();
    Ok((wrong.into_iter().collect(), told.join(", ")))
}
