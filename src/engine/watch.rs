//! The watches: one a kind, each pumped into the loop.
//!
//! A watch that fails is started again after a while, within seconds; meanwhile the cluster stays as it was last seen,
//! and readiness says so when that lasts. A relist drops
//! what has vanished. An object that cannot be read costs itself: it is counted, logged and left out.

use std::fmt::Debug;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::metrics::{self, Metrics};
use super::parts::Parts;
use super::serve::Health;
use crate::api::DrainPlan;
use crate::cluster::{Change, Kind, ObjectKind, Watched, kinds};
use crate::plan::{Agenda, Moment, PlanChange, Random, Seen, Unreadable};

/// How many observations may wait for the loop; the watches wait beyond that.
const QUEUE: usize = 1024;

/// One event of a watch.
pub enum Observation {
    /// Of an object that decisions are made from.
    Object {
        /// What kind.
        kind: ObjectKind,
        /// What happened.
        change: Box<Change>,
    },
    /// Of a plan.
    Plan(Box<watcher::Event<DeserializeGuard<DrainPlan>>>),
}

impl Observation {
    /// Takes the event in.
    pub fn apply(self, agenda: &mut Agenda, metrics: &Metrics, now: Moment) {
        match self {
            Self::Plan(event) => {
                metrics.watch_event(metrics::Kind::DrainPlan);
                agenda.observe_plan(plan_change(*event, metrics), now);
            }
            Self::Object { kind, change } => {
                metrics.watch_event(counted(kind));
                let Some(effect) = agenda.observe(*change, now) else { return };
                if let Some(bad) = agenda.cluster().bad_objects().find(|bad| {
                    (bad.kind, &bad.namespace, &bad.name) == (effect.kind, &effect.namespace, &effect.name)
                }) {
                    tracing::warn!(kind = kind.name(), namespace = %bad.namespace, name = %bad.name, why = bad.why,
                        "cannot read the object; it is left out");
                    metrics.undecodable(counted(kind));
                }
            }
        }
    }
}

fn plan_change(event: watcher::Event<DeserializeGuard<DrainPlan>>, metrics: &Metrics) -> PlanChange {
    match event {
        watcher::Event::Init => PlanChange::Listing,
        watcher::Event::InitApply(plan) => PlanChange::Listed(seen(plan, metrics)),
        watcher::Event::InitDone => PlanChange::Complete,
        watcher::Event::Apply(plan) => PlanChange::Applied(seen(plan, metrics)),
        watcher::Event::Delete(plan) => PlanChange::Deleted { name: plan.name_any(), uid: plan.uid() },
    }
}

/// A plan as it came, or that it exists.
pub fn seen(plan: DeserializeGuard<DrainPlan>, metrics: &Metrics) -> Seen {
    match plan.0 {
        Ok(plan) => Seen::Readable(Box::new(plan)),
        Err(error) => {
            let plan = Unreadable { metadata: error.metadata, why: error.error };
            tracing::warn!(plan = plan.name(), "{}", plan.told());
            metrics.undecodable(metrics::Kind::DrainPlan);
            Seen::Unreadable(Box::new(plan))
        }
    }
}

/// Starts all watches. They end when nobody takes what they bring.
pub fn start(
    client: &Client,
    metrics: &Metrics,
    health: &Health,
    parts: &Parts,
) -> mpsc::Receiver<Observation> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let watches = Watches { client, sender, metrics, health, parts };
    let plans: Api<DeserializeGuard<DrainPlan>> = Api::all(client.clone());
    let events = move || watcher(plans.clone(), watcher::Config::default()).boxed();
    watches.pump(metrics::Kind::DrainPlan, events, |event| Observation::Plan(Box::new(event)));
    watches.watch::<kinds::Node>();
    watches.watch::<kinds::Namespace>();
    watches.watch::<kinds::Pod>();
    watches.watch::<kinds::PodDisruptionBudget>();
    watches.watch::<kinds::ReplicationController>();
    watches.watch::<kinds::ReplicaSet>();
    watches.watch::<kinds::Deployment>();
    watches.watch::<kinds::StatefulSet>();
    watches.watch::<kinds::DaemonSet>();
    watches.watch::<kinds::Job>();
    watches.watch::<kinds::PersistentVolume>();
    watches.watch::<kinds::VolumeAttachment>();
    receiver
}

/// What the watches share.
struct Watches<'a> {
    client: &'a Client,
    sender: mpsc::Sender<Observation>,
    metrics: &'a Metrics,
    health: &'a Health,
    parts: &'a Parts,
}

impl Watches<'_> {
    fn watch<K: Kind>(&self)
    where
        Watched<K>: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
    {
        let objects = Api::<Watched<K>>::all(self.client.clone());
        let events = move || watcher(objects.clone(), watcher::Config::default()).boxed();
        self.pump(counted(K::KIND), events, |event: watcher::Event<Watched<K>>| {
            let change = match event {
                watcher::Event::Init => Change::Listing(K::KIND),
                watcher::Event::InitApply(object) => Change::Listed(object.into_raw()),
                watcher::Event::InitDone => Change::Complete(K::KIND),
                watcher::Event::Apply(object) => Change::Applied(object.into_raw()),
                watcher::Event::Delete(object) => Change::Deleted(object.into_raw()),
            };
            Observation::Object { kind: K::KIND, change: Box::new(change) }
        });
    }

    fn pump<T: Send + 'static>(
        &self,
        kind: metrics::Kind,
        start: impl Fn() -> Events<T> + Send + 'static,
        observe: impl Fn(watcher::Event<T>) -> Observation + Send + 'static,
    ) {
        let pump = Pump {
            kind,
            sender: self.sender.clone(),
            metrics: self.metrics.clone(),
            health: self.health.clone(),
        };
        self.parts.start(kind.as_str(), pump.run(start, observe));
    }
}

type Events<T> = BoxStream<'static, watcher::Result<watcher::Event<T>>>;

/// Sends the events of one watch to the loop.
struct Pump {
    kind: metrics::Kind,
    sender: mpsc::Sender<Observation>,
    metrics: Metrics,
    health: Health,
}

impl Pump {
    /// Runs until the loop is gone. `start` begins a watch with a list.
    async fn run<T: Send + 'static>(
        self,
        start: impl Fn() -> Events<T>,
        observe: impl Fn(watcher::Event<T>) -> Observation,
    ) -> anyhow::Result<()> {
        let what = self.kind.as_str();
        let mut events = start();
        let mut pauses = Pauses::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let listed = matches!(event, watcher::Event::InitDone);
                    if self.sender.send(observe(event)).await.is_err() {
                        return Ok(());
                    }
                    if listed && let Some(time) = self.health.regained(what) {
                        tracing::info!(kind = what, "the watch is in sync again after {time:.1?}");
                    }
                }
                Err(error) => {
                    self.metrics.watch_restart(self.kind);
                    let (resumes, pause) = (resumes(&error), pauses.next());
                    if pauses.first() {
                        tracing::warn!(kind = what, %error, "a watch failed; it is tried again until it works");
                    } else {
                        tracing::debug!(kind = what, %error, "a watch failed again");
                    }
                    if !resumes {
                        self.health.lost(what);
                    }
                    // A watch that cannot go on where it was is begun anew, with a list: its kind may have gone and
                    // come back, and then nobody tells what has vanished meanwhile.
                    if matches!(error, watcher::Error::WatchStartFailed(_)) && !resumes {
                        events = start();
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Ok(())
    }
}

/// Whether the watch goes on after this error with nothing missed: a connection that broke off, a server that is busy.
fn resumes(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchFailed(_) => true,
        watcher::Error::WatchError(status) => status.code != 410,
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 429,
        watcher::Error::WatchStartFailed(_)
        | watcher::Error::InitialListFailed(_)
        | watcher::Error::NoResourceVersion => false,
    }
}

/// Waits between failures of one watch: a moment at first, a few seconds soon.
struct Pauses {
    random: Random,
    failures: u32,
    last: Option<Instant>,
}

impl Pauses {
    const FIRST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(4);
    /// A failure so long after the one before begins a new row.
    const CALM: Duration = Duration::from_secs(15);

    fn new() -> Self {
        Self { random: Random::new(RandomState::new().build_hasher().finish()), failures: 0, last: None }
    }

    /// How long to wait after a failure now; up to a quarter longer, so that watches do not come all at once.
    fn next(&mut self) -> Duration {
        let now = Instant::now();
        if self.last.replace(now).is_none_or(|last| now.duration_since(last) > Self::CALM) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let doubled = Self::FIRST.saturating_mul(2_u32.saturating_pow((self.failures - 1).min(10)));
        let wait = doubled.min(Self::LONGEST);
        let jitter = u32::try_from(self.random.below(250)).unwrap_or(0);
        wait + wait * jitter / 1000
    }

    /// Whether the last failure was the first of its row.
    fn first(&self) -> bool {
        self.failures == 1
    }
}

fn counted(kind: ObjectKind) -> metrics::Kind {
    match kind {
        ObjectKind::Node => metrics::Kind::Node,
        ObjectKind::Namespace => metrics::Kind::Namespace,
        ObjectKind::Pod => metrics::Kind::Pod,
        ObjectKind::PodDisruptionBudget => metrics::Kind::PodDisruptionBudget,
        ObjectKind::ReplicationController => metrics::Kind::ReplicationController,
        ObjectKind::ReplicaSet => metrics::Kind::ReplicaSet,
        ObjectKind::Deployment => metrics::Kind::Deployment,
        ObjectKind::StatefulSet => metrics::Kind::StatefulSet,
        ObjectKind::DaemonSet => metrics::Kind::DaemonSet,
        ObjectKind::Job => metrics::Kind::Job,
        ObjectKind::PersistentVolume => metrics::Kind::PersistentVolume,
        ObjectKind::VolumeAttachment => metrics::Kind::VolumeAttachment,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use futures::stream;
    use kube::core::Status;

    use super::*;

    type Told = watcher::Result<watcher::Event<DeserializeGuard<DrainPlan>>>;

    fn answer(code: u16) -> Box<Status> {
        Box::new(Status { code, ..Status::default() })
    }

    /// Runs a watch that is told this, one script for each time that it is begun; then it says nothing more.
    fn watching(scripts: Vec<Vec<Told>>) -> (mpsc::Receiver<Observation>, Health, Arc<Mutex<usize>>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let health = Health::new(Duration::from_hours(1), []);
        let pump =
            Pump { kind: metrics::Kind::DrainPlan, sender, metrics: Metrics::new(), health: health.clone() };
        let begun = Arc::new(Mutex::new(0));
        let (scripts, count) = (Mutex::new(VecDeque::from(scripts)), Arc::clone(&begun));
        let start = move || {
            *count.lock().unwrap() += 1;
            let script = scripts.lock().unwrap().pop_front().unwrap_or_default();
            stream::iter(script).chain(stream::pending()).boxed()
        };
        tokio::spawn(pump.run(start, |event| Observation::Plan(Box::new(event))));
        (receiver, health, begun)
    }

    async fn listed(receiver: &mut mpsc::Receiver<Observation>) {
        loop {
            let observation = tokio::time::timeout(Duration::from_hours(1), receiver.recv()).await;
            let Some(Observation::Plan(event)) = observation.expect("no list") else { panic!("no watch") };
            if matches!(*event, watcher::Event::InitDone) {
                // What follows the event is done before anything else is.
                tokio::task::yield_now().await;
                return;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_whose_kind_has_gone_is_listed_again_and_out_of_sync_until_then() {
        use watcher::Error::{InitialListFailed, WatchStartFailed};
        use watcher::Event::{Init, InitDone};
        let gone = || kube::Error::Api(answer(404));
        let mut again: Vec<Told> = Vec::new();
        for _ in 0..20 {
            again.extend([Ok(Init), Err(InitialListFailed(gone()))]);
        }
        again.extend([Ok(Init), Ok(InitDone)]);
        let first = vec![Ok(Init), Ok(InitDone), Err(WatchStartFailed(gone()))];
        let (mut receiver, health, begun) = watching(vec![first, again]);
        let (_trigger, shutdown) = crate::engine::signals::Shutdown::channel();
        listed(&mut receiver).await;
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(12)).await;
        tokio::task::yield_now().await;
        assert!(health.readiness(&shutdown).unwrap_err().starts_with("not in sync: DrainPlan for "));
        listed(&mut receiver).await;
        assert_eq!((health.readiness(&shutdown), *begun.lock().unwrap()), (Ok(()), 2));
        // 21 failures, at most 5 s each.
        assert!(start.elapsed() <= Duration::from_secs(105), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_has_expired_is_in_sync_again_at_once() {
        use watcher::Error::WatchError;
        use watcher::Event::{Init, InitDone};
        let script = vec![Ok(Init), Ok(InitDone), Err(WatchError(answer(410))), Ok(Init), Ok(InitDone)];
        let (mut receiver, health, begun) = watching(vec![script]);
        listed(&mut receiver).await;
        let start = Instant::now();
        listed(&mut receiver).await;
        assert!(start.elapsed() <= Duration::from_millis(250), "{:?}", start.elapsed());
        assert_eq!((health.regained("DrainPlan"), *begun.lock().unwrap()), (None, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_breaks_off_goes_on_where_it_was() {
        use watcher::Error::{WatchFailed, WatchStartFailed};
        use watcher::Event::{Init, InitDone};
        let script = vec![
            Ok(Init),
            Ok(InitDone),
            Err(WatchFailed(kube::Error::LinesCodecMaxLineLengthExceeded)),
            Err(WatchStartFailed(kube::Error::Api(answer(429)))),
            Ok(Init),
            Ok(InitDone),
        ];
        let (mut receiver, health, begun) = watching(vec![script]);
        listed(&mut receiver).await;
        listed(&mut receiver).await;
        assert_eq!((health.regained("DrainPlan"), *begun.lock().unwrap()), (None, 1));
    }
}
