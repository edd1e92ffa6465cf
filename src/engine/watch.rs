//! The watches: one a kind, each pumped into the loop.
//!
//! A watch that fails is started again after a while; meanwhile the cluster stays as it was last seen. A relist drops
//! what has vanished. An object that cannot be read costs itself: it is counted, logged and left out.

use std::fmt::Debug;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::core::DeserializeGuard;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::metrics::{self, Metrics};
use super::parts::Parts;
use crate::api::DrainPlan;
use crate::cluster::{Change, Kind, ObjectKind, Watched, kinds};
use crate::plan::{Agenda, Moment, PlanChange, Seen};

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
    let (name, uid) = (plan.name_any(), plan.uid().unwrap_or_default());
    match plan.0 {
        Ok(plan) => Seen::Readable(Box::new(plan)),
        Err(error) => {
            tracing::warn!(
                plan = name,
                error = error.error,
                "cannot read the plan; what it holds stays as it is"
            );
            metrics.undecodable(metrics::Kind::DrainPlan);
            Seen::Unreadable { name, uid }
        }
    }
}

/// Starts all watches. They end when nobody takes what they bring.
pub fn start(client: &Client, metrics: &Metrics, parts: &Parts) -> mpsc::Receiver<Observation> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let plans: Api<DeserializeGuard<DrainPlan>> = Api::all(client.clone());
    let events = watcher(plans, watcher::Config::default()).default_backoff().boxed();
    let observe = |event| Observation::Plan(Box::new(event));
    parts.start(
        "the watch of DrainPlans",
        pump(events, metrics::Kind::DrainPlan, observe, sender.clone(), metrics.clone()),
    );
    watch::<kinds::Node>(client, &sender, metrics, parts);
    watch::<kinds::Namespace>(client, &sender, metrics, parts);
    watch::<kinds::Pod>(client, &sender, metrics, parts);
    watch::<kinds::PodDisruptionBudget>(client, &sender, metrics, parts);
    watch::<kinds::ReplicationController>(client, &sender, metrics, parts);
    watch::<kinds::ReplicaSet>(client, &sender, metrics, parts);
    watch::<kinds::Deployment>(client, &sender, metrics, parts);
    watch::<kinds::StatefulSet>(client, &sender, metrics, parts);
    watch::<kinds::DaemonSet>(client, &sender, metrics, parts);
    watch::<kinds::Job>(client, &sender, metrics, parts);
    receiver
}

fn watch<K: Kind>(client: &Client, sender: &mpsc::Sender<Observation>, metrics: &Metrics, parts: &Parts)
where
    Watched<K>: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let events =
        watcher(Api::<Watched<K>>::all(client.clone()), watcher::Config::default()).default_backoff();
    let observe = |event: watcher::Event<Watched<K>>| {
        let change = match event {
            watcher::Event::Init => Change::Listing(K::KIND),
            watcher::Event::InitApply(object) => Change::Listed(object.into_raw()),
            watcher::Event::InitDone => Change::Complete(K::KIND),
            watcher::Event::Apply(object) => Change::Applied(object.into_raw()),
            watcher::Event::Delete(object) => Change::Deleted(object.into_raw()),
        };
        Observation::Object { kind: K::KIND, change: Box::new(change) }
    };
    let pumped = pump(events.boxed(), counted(K::KIND), observe, sender.clone(), metrics.clone());
    parts.start(counted(K::KIND).as_str(), pumped);
}

/// Sends the events of a watch to the loop until the loop is gone.
async fn pump<T: Send + 'static>(
    mut events: BoxStream<'static, watcher::Result<watcher::Event<T>>>,
    kind: metrics::Kind,
    observe: impl Fn(watcher::Event<T>) -> Observation + Send + 'static,
    sender: mpsc::Sender<Observation>,
    metrics: Metrics,
) -> anyhow::Result<()> {
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if sender.send(observe(event)).await.is_err() {
                    return Ok(());
                }
            }
            Err(error) => {
                metrics.watch_restart(kind);
                tracing::warn!(kind = kind.as_str(), %error, "a watch failed and is started again");
            }
        }
    }
    Ok(())
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
    }
}
