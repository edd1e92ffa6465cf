//! The cluster as the watches show it, through the same functions as in the controller.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use drainplan::cluster::{Change, Cluster, Kind, ObjectKind, Watched, kinds};

/// Nothing takes longer than this, unless it will never come.
const LIMIT: Duration = Duration::from_mins(30);

/// The observed cluster, shared with the tasks that watch.
#[derive(Clone)]
pub struct Live {
    cluster: Arc<Mutex<Cluster>>,
    last: watch::Receiver<Instant>,
    /// The watches end with the last of us.
    _watches: Arc<JoinSet<()>>,
}

impl Live {
    /// Starts all watches.
    pub fn start(client: &Client) -> Self {
        let cluster = Arc::new(Mutex::new(Cluster::new()));
        let (sender, last) = watch::channel(Instant::now());
        let sender = Arc::new(sender);
        let mut watches = JoinSet::new();
        watches.spawn(pump::<kinds::Node>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::Namespace>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::Pod>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::PodDisruptionBudget>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::ReplicationController>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::ReplicaSet>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::Deployment>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::StatefulSet>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::DaemonSet>(client, &cluster, &sender));
        watches.spawn(pump::<kinds::Job>(client, &cluster, &sender));
        Self { cluster, last, _watches: Arc::new(watches) }
    }

    /// Asks the cluster.
    pub fn read<T>(&self, question: impl FnOnce(&Cluster) -> T) -> T {
        question(&lock(&self.cluster))
    }
    /// Changes what is observed.
    pub fn write<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        change(&mut lock(&self.cluster))
    }

    /// Waits until something holds.
    pub async fn until(&self, what: &str, holds: impl Fn(&Cluster) -> bool) -> Result<()> {
        let mut last = self.last.clone();
        let wait = async {
            while !self.read(&holds) {
                if last.changed().await.is_err() {
                    break;
                }
            }
        };
        if timeout(LIMIT, wait).await.is_err() || !self.read(&holds) {
            bail!("waited {} s until {what}", LIMIT.as_secs());
        }
        Ok(())
    }

    /// Waits until no event has come for so long.
    pub async fn quiet(&self, silence: Duration) -> Result<()> {
        let started = Instant::now();
        let mut last = self.last.clone();
        loop {
            let since = *last.borrow_and_update();
            let left = silence.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            if started.elapsed() > LIMIT {
                bail!("after {} s there are still events: {:?}", LIMIT.as_secs(), self.read(phases));
            }
            // Woken by the next event, or the silence has lasted.
            let _ = timeout(left, last.changed()).await;
        }
    }
}

fn phases(cluster: &Cluster) -> BTreeMap<String, usize> {
    let mut phases = BTreeMap::new();
    for pod in cluster.pods() {
        *phases.entry(format!("{:?}", pod.phase)).or_default() += 1;
    }
    phases
}

fn lock(cluster: &Mutex<Cluster>) -> MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pump<K: Kind>(
    client: &Client,
    cluster: &Arc<Mutex<Cluster>>,
    last: &Arc<watch::Sender<Instant>>,
) -> impl Future<Output = ()> + Send + 'static
where
    Watched<K>: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let api: Api<Watched<K>> = Api::all(client.clone());
    let (cluster, last) = (Arc::clone(cluster), Arc::clone(last));
    async move {
        let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
        while let Some(event) = events.next().await {
            let change = match event {
                Ok(watcher::Event::Init) => Change::Listing(K::KIND),
                Ok(watcher::Event::InitApply(object)) => Change::Listed(object.into_raw()),
                Ok(watcher::Event::InitDone) => Change::Complete(K::KIND),
                Ok(watcher::Event::Apply(object)) => Change::Applied(object.into_raw()),
                Ok(watcher::Event::Delete(object)) => Change::Deleted(object.into_raw()),
                Err(error) => {
                    eprintln!("parity: a watch of {} failed and is started again: {error}", K::KIND.name());
                    continue;
                }
            };
            lock(&cluster).observe(change);
            // What happens to nodes and namespaces changes no budget's numbers.
            if matches!(K::KIND, ObjectKind::Node | ObjectKind::Namespace) {
                last.send_modify(|_| ());
            } else {
                last.send_replace(Instant::now());
            }
        }
    }
}
