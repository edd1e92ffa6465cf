//! Kubernetes Events: what `kubectl describe` and `kubectl get events` show about plans and nodes.
//!
//! Events are told on transitions only, so each is one object of its own. kube's `Recorder` is not used: it folds
//! events of one reason within six minutes into a series, and the series keeps the first note, whereas the news
//! is in the note here (which budget, which numbers).

use std::pin::pin;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use super::call::within;
use super::metrics::{EventResult, Metrics};
use super::pace::Pace;

/// `reportingController` of every event.
const REPORTER: &str = "drainplan.dev/controller";
/// Events of objects without a namespace belong here.
const CLUSTER_NAMESPACE: &str = "default";
/// The server's limit for notes, in bytes.
const NOTE_LIMIT: usize = 1024;
/// The server keeps 58 bytes of a name's prefix.
const PREFIX_LIMIT: usize = 57;
/// The server's limit for `reportingInstance`, in bytes.
const INSTANCE_LIMIT: usize = 128;
/// Enough for every node of a large plan to change phase at once.
const QUEUE: usize = 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the queue may still be emptied once the end is requested.
const FLUSH: Duration = Duration::from_secs(3);

/// Whether the event tells of something that went as meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    Normal,
    Warning,
}

impl EventType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something to tell about an object.
#[derive(Debug, Clone)]
pub struct Notice {
    /// The plan or node; with its uid, `kubectl describe` finds the event.
    pub regarding: ObjectReference,
    pub type_: EventType,
    /// Why, such as `TimedOut`.
    pub reason: &'static str,
    /// What was done, such as `GiveBack`.
    pub action: &'static str,
    /// The sentence for people; cut at 1 kB.
    pub note: String,
}

/// Takes notices. Never waits and never fails: an event is a courtesy, the status is the record.
#[derive(Clone)]
pub struct Publisher {
    queue: mpsc::Sender<Notice>,
    metrics: Metrics,
}

/// Sends what publishers take.
pub struct Worker {
    queue: mpsc::Receiver<Notice>,
    client: Client,
    instance: String,
    metrics: Metrics,
    pace: Pace,
}

impl Publisher {
    /// A publisher, and the worker to run beside it. `instance` names this replica.
    #[must_use]
    pub fn new(client: Client, instance: &str, metrics: Metrics) -> (Self, Worker) {
        let (sender, queue) = mpsc::channel(QUEUE);
        let instance = cut(instance, INSTANCE_LIMIT);
        let worker = Worker { queue, client, instance, metrics: metrics.clone(), pace: Pace::default() };
        (Self { queue: sender, metrics }, worker)
    }

    /// Tells it. When the queue is full the notice is dropped, logged and counted.
    pub fn publish(&self, notice: Notice) {
        if let Err(lost) = self.queue.try_send(notice) {
            self.metrics.event(EventResult::Dropped);
            let (mpsc::error::TrySendError::Full(notice) | mpsc::error::TrySendError::Closed(notice)) = lost;
            warn!("dropped an event, the queue is full or closed: {}", Line(&notice));
        }
    }
}

impl Worker {
    /// Sends no more than that.
    #[must_use]
    pub fn at(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Sends until `stop`, then what is queued, for a few seconds at most.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut end = None;
        loop {
            let notice = tokio::select! {
                biased;
                () = &mut stop, if end.is_none() => {
                    self.queue.close();
                    end = Some(Instant::now() + FLUSH);
                    continue;
                }
                notice = self.queue.recv() => notice,
            };
            let Some(notice) = notice else { return };
            let left = end.map_or(REQUEST_TIMEOUT, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                self.metrics.event(EventResult::Dropped);
                warn!("dropped an event at the end: {}", Line(&notice));
            } else {
                self.send(&notice, left).await;
            }
        }
    }

    async fn send(&self, notice: &Notice, limit: Duration) {
        let namespace = notice.regarding.namespace.as_deref().unwrap_or(CLUSTER_NAMESPACE);
        let api = Api::<Event>::namespaced(self.client.clone(), namespace);
        let event = event(notice, namespace, &self.instance, Timestamp::now());
        let params = PostParams::default();
        let create = async {
            // Without a turn in time the limit is over too, and nothing is sent.
            if !self.pace.turn(1, limit).await {
                std::future::pending::<()>().await;
            }
            api.create(&params, &event).await
        };
        match within(limit, create).await {
            Ok(_) => self.metrics.event(EventResult::Published),
            Err(error) => {
                self.metrics.event(EventResult::Failed);
                warn!("cannot publish an event: {error}: {}", Line(notice));
            }
        }
    }
}

fn event(notice: &Notice, namespace: &str, instance: &str, now: Timestamp) -> Event {
    Event {
        metadata: ObjectMeta {
            generate_name: Some(generate_name(notice.regarding.name.as_deref().unwrap_or("drainplan"))),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        reporting_controller: Some(REPORTER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        regarding: Some(notice.regarding.clone()),
        type_: Some(notice.type_.as_str().to_owned()),
        reason: Some(notice.reason.to_owned()),
        action: Some(notice.action.to_owned()),
        note: Some(cut(&notice.note, NOTE_LIMIT)),
        ..Event::default()
    }
}

/// A prefix that the server completes. It must be a name but for a dash at its end; of a long one only the beginning
/// is kept in any case.
fn generate_name(name: &str) -> String {
    let start = name.get(..name.floor_char_boundary(PREFIX_LIMIT)).unwrap_or_default();
    format!("{}-", start.trim_end_matches(['.', '-']))
}

/// At most `limit` bytes, cut between characters, and shown to be cut.
fn cut(text: &str, limit: usize) -> String {
    const MORE: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit.saturating_sub(MORE.len()));
    format!("{}{MORE}", text.get(..end).unwrap_or_default())
}

/// A notice in a log line.
struct Line<'a>(&'a Notice);

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Notice { regarding, reason, note, .. } = self.0;
        let (kind, name) = (regarding.kind.as_deref(), regarding.name.as_deref());
        write!(f, "{reason} of {} {}: {note}", kind.unwrap_or("object"), name.unwrap_or("without a name"))
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use super::*;
    use crate::engine::fake::{FakeApi, Mode};

    fn notice(note: &str) -> Notice {
        let regarding = ObjectReference {
            api_version: Some("drainplan.dev/v1alpha1".to_owned()),
            kind: Some("DrainPlan".to_owned()),
            name: Some("kernel".to_owned()),
            uid: Some("u1".to_owned()),
            ..ObjectReference::default()
        };
        let (reason, action) = ("TimedOut", "GiveBack");
        Notice { regarding, type_: EventType::Warning, reason, action, note: note.to_owned() }
    }

    fn counted(metrics: &Metrics, result: &str) -> Option<u64> {
        let series = format!("drainplan_events_total{{result=\"{result}\"}}");
        metrics.encode().unwrap().lines().find_map(|line| line.strip_prefix(&series)?.trim().parse().ok())
    }

    #[tokio::test]
    async fn an_event_of_a_cluster_scoped_object_goes_to_default() {
        let (api, metrics) = (FakeApi::default(), Metrics::new());
        let (publisher, worker) = Publisher::new(api.client().0, "pod-1", metrics.clone());
        publisher.publish(notice("node-a was given back after 15 min: shop/web allows 0 disruptions"));
        publisher.publish(notice("node-a was given back after 15 min: shop/db allows 0 disruptions"));
        drop(publisher);
        worker.run(std::future::pending()).await;
        let events = api.list("/apis/events.k8s.io/v1/namespaces/default/events/");
        assert_eq!(events.len(), 2, "{events:?}");
        let event = &events[0];
        assert!(event["metadata"]["name"].as_str().unwrap().starts_with("kernel-"));
        assert_eq!(event["metadata"]["namespace"], "default");
        assert_eq!((&event["type"], &event["reason"]), (&"Warning".into(), &"TimedOut".into()));
        assert_eq!((&event["action"], &event["regarding"]["uid"]), (&"GiveBack".into(), &"u1".into()));
        assert_eq!(event["reportingController"], REPORTER);
        assert_eq!(event["reportingInstance"], "pod-1");
        assert!(event["note"].as_str().unwrap().contains("shop/web"));
        assert!(events[1]["note"].as_str().unwrap().contains("shop/db"));
        assert_eq!(counted(&metrics, "published"), Some(2));
    }

    #[tokio::test]
    async fn an_event_of_a_namespaced_object_goes_to_its_namespace() {
        let api = FakeApi::default();
        let (publisher, worker) = Publisher::new(api.client().0, "pod-1", Metrics::new());
        let mut about_a_budget = notice("allows 0 disruptions");
        about_a_budget.regarding.namespace = Some("shop".to_owned());
        publisher.publish(about_a_budget);
        drop(publisher);
        worker.run(std::future::pending()).await;
        assert_eq!(api.list("/apis/events.k8s.io/v1/namespaces/shop/events/").len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_counted_and_the_next_event_goes_out() {
        for fault in [Mode::Refusing(403), Mode::Silent] {
            let (api, metrics) = (FakeApi::default(), Metrics::new());
            let (client, line) = api.client();
            let (publisher, worker) = Publisher::new(client, "pod-1", metrics.clone());
            line.set(fault);
            publisher.publish(notice("first"));
            let task = tokio::spawn(worker.run(std::future::pending()));
            while counted(&metrics, "failed") == Some(0) {
                tokio::time::advance(Duration::from_millis(100)).await;
            }
            line.set(Mode::Serving);
            publisher.publish(notice("second"));
            drop(publisher);
            task.await.unwrap();
            assert_eq!(counted(&metrics, "published"), Some(1), "{fault:?}");
        }
    }

    #[tokio::test]
    async fn a_full_queue_drops_and_does_not_wait() {
        let (api, metrics) = (FakeApi::default(), Metrics::new());
        let (publisher, worker) = Publisher::new(api.client().0, "pod-1", metrics.clone());
        repeat_n(notice("again"), QUEUE + 3).for_each(|notice| publisher.publish(notice));
        assert_eq!(counted(&metrics, "dropped"), Some(3));
        drop(publisher);
        worker.run(std::future::pending()).await;
        assert_eq!(counted(&metrics, "published"), Some(QUEUE as u64));
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_the_queue_is_emptied_for_a_moment() {
        let (api, metrics) = (FakeApi::default(), Metrics::new());
        let (publisher, worker) = Publisher::new(api.client().0, "pod-1", metrics.clone());
        publisher.publish(notice("last words"));
        worker.run(std::future::ready(())).await;
        assert_eq!(counted(&metrics, "published"), Some(1));
        publisher.publish(notice("too late"));
        assert_eq!(counted(&metrics, "dropped"), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_does_not_hold_up_the_end() {
        let (api, metrics) = (FakeApi::default(), Metrics::new());
        let (client, line) = api.client();
        line.set(Mode::Silent);
        let (publisher, worker) = Publisher::new(client, "pod-1", metrics.clone());
        repeat_n(notice("again"), 5).for_each(|notice| publisher.publish(notice));
        let start = Instant::now();
        worker.run(std::future::ready(())).await;
        assert!(start.elapsed() <= FLUSH, "{:?}", start.elapsed());
        assert_eq!((counted(&metrics, "failed"), counted(&metrics, "dropped")), (Some(1), Some(4)));
    }

    #[test]
    fn a_name_is_a_valid_prefix_for_any_object() {
        assert_eq!(generate_name("node-a.example.com"), "node-a.example.com-");
        let long = format!("{}.example.com", "a".repeat(56));
        assert_eq!(generate_name(&long), format!("{}-", "a".repeat(56)));
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let note = "é".repeat(600);
        let short = cut(&note, NOTE_LIMIT);
        assert!(short.len() <= NOTE_LIMIT && short.ends_with("é…"), "{}", short.len());
        assert_eq!(cut("short", NOTE_LIMIT), "short");
        assert_eq!(cut(&"x".repeat(NOTE_LIMIT), NOTE_LIMIT).len(), NOTE_LIMIT);
    }
}
