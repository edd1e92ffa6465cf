//! Every event of a watch, in order, from a list on; and conditions awaited on it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

/// What a look at a record says.
pub enum Sight<T> {
    /// The condition holds.
    Found(T),
    /// It may still come; what is there now.
    NotYet(String),
    /// It cannot come any more, and why.
    Never(String),
}

/// What a watch has shown.
pub struct Record<K> {
    /// Every event, in order; the first ones are those of the list.
    pub events: Vec<Seen<K>>,
    /// The objects as they are now, by namespace and name.
    pub now: BTreeMap<String, Arc<K>>,
    /// Why there will be no more.
    broken: Option<String>,
}

/// One event.
pub struct Seen<K> {
    /// Whether this is the object's last state.
    pub deleted: bool,
    pub object: Arc<K>,
}

impl<K: Resource<DynamicType = ()>> Record<K> {
    fn apply(&mut self, object: K, deleted: bool) {
        let object = Arc::new(object);
        if deleted {
            self.now.remove(&key(&*object));
        } else {
            self.now.insert(key(&*object), Arc::clone(&object));
        }
        self.events.push(Seen { deleted, object });
    }

    /// Calls `look` with all objects as they were after each event since the first list.
    pub fn replay(&self, listed: usize, mut look: impl FnMut(&BTreeMap<String, Arc<K>>, &Seen<K>)) {
        let mut objects = BTreeMap::new();
        for (index, seen) in self.events.iter().enumerate() {
            if seen.deleted {
                objects.remove(&key(&*seen.object));
            } else {
                objects.insert(key(&*seen.object), Arc::clone(&seen.object));
            }
            if index + 1 >= listed {
                look(&objects, seen);
            }
        }
    }
}

fn key<K: Resource<DynamicType = ()>>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

/// A watch that is recorded while this lives.
pub struct Recorder<K> {
    record: Arc<Mutex<Record<K>>>,
    changed: watch::Receiver<()>,
    task: AbortHandle,
    listed: usize,
}

impl<K> Drop for Recorder<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<K> Recorder<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Lists, and records everything that happens after that list.
    pub async fn start(api: Api<K>, fields: Option<&str>) -> Result<Self> {
        let list_params =
            ListParams { field_selector: fields.map(ToOwned::to_owned), ..ListParams::default() };
        let list = api.list(&list_params).await.with_context(|| format!("cannot list {}", kind::<K>()))?;
        let version = list.metadata.resource_version.clone().unwrap_or_default();
        let mut record = Record { events: Vec::new(), now: BTreeMap::new(), broken: None };
        for object in list.items {
            record.apply(object, false);
        }
        let listed = record.events.len();
        let record = Arc::new(Mutex::new(record));
        let (tell, changed) = watch::channel(());
        let params = WatchParams { field_selector: fields.map(ToOwned::to_owned), ..WatchParams::default() };
        let task = tokio::spawn(follow(api, params, version, Arc::clone(&record), tell)).abort_handle();
        Ok(Self { record, changed, task, listed })
    }

    /// What was seen so far.
    pub fn with<T>(&self, look: impl FnOnce(&Record<K>) -> T) -> T {
        look(&self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many events are those of the first list.
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// Awaits a condition; `look` is asked again after every event.
    pub async fn until<T>(
        &self,
        what: &str,
        within: Duration,
        mut look: impl FnMut(&Record<K>) -> Sight<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + within;
        let mut changed = self.changed.clone();
        loop {
            changed.borrow_and_update();
            let (sight, broken) = self.with(|record| (look(record), record.broken.clone()));
            let last = match sight {
                Sight::Found(found) => return Ok(found),
                Sight::Never(why) => bail!("{what}: {why}"),
                Sight::NotYet(last) => last,
            };
            if let Some(broken) = broken {
                bail!("{what}: the watch of {} has ended: {broken}; seen last: {last}", kind::<K>());
            }
            match timeout_at(deadline, changed.changed()).await {
                Ok(_) => {}
                Err(_) => bail!("{what}: not within {} s; seen last: {last}", within.as_secs()),
            }
        }
    }
}

fn kind<K: Resource<DynamicType = ()>>() -> String {
    K::plural(&()).into_owned()
}

async fn follow<K>(
    api: Api<K>,
    params: WatchParams,
    mut version: String,
    record: Arc<Mutex<Record<K>>>,
    tell: watch::Sender<()>,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let broken = loop {
        // The server ends a watch now and then; it goes on where it was, so that the record has no gap.
        let stream = match api.watch(&params, &version).await {
            Ok(stream) => stream,
            Err(error) => break error.to_string(),
        };
        let mut stream = std::pin::pin!(stream);
        let mut failed = None;
        while let Some(event) = stream.next().await {
            let (object, deleted) = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
                Ok(WatchEvent::Deleted(object)) => (object, true),
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(status)) => {
                    failed = Some(status.to_string());
                    break;
                }
                Err(error) => {
                    failed = Some(error.to_string());
                    break;
                }
            };
            version = object.resource_version().unwrap_or(version);
            record.lock().unwrap_or_else(PoisonError::into_inner).apply(object, deleted);
            tell.send_replace(());
        }
        if let Some(failed) = failed {
            break failed;
        }
    };
    record.lock().unwrap_or_else(PoisonError::into_inner).broken = Some(broken);
    tell.send_replace(());
}
