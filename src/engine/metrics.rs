//! What the controller counts. `docs/metrics.md` describes every metric; a test compares the two, both ways.
//!
//! Labels take only values that are listed here or in the API's documentation: a metric labelled with an object's
//! name would grow with the cluster and outlive the object.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

type Label = [(&'static str, &'static str); 1];
type Counters = Family<Label, Counter>;
type RequestLabels = [(&'static str, Cow<'static, str>); 2];

/// An enum whose values are the values of a label.
macro_rules! label_values {
    ($(#[$of_enum:meta])* $name:ident { $($(#[$of_value:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$of_value])* $value,)+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$value,)+];
            /// As it stands in the label.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

label_values! {
    /// The watched kinds.
    Kind {
        DrainPlan = "DrainPlan",
        Node = "Node",
        Namespace = "Namespace",
        Pod = "Pod",
        PodDisruptionBudget = "PodDisruptionBudget",
        ReplicationController = "ReplicationController",
        ReplicaSet = "ReplicaSet",
        Deployment = "Deployment",
        StatefulSet = "StatefulSet",
        DaemonSet = "DaemonSet",
        Job = "Job",
        PersistentVolume = "PersistentVolume",
        VolumeAttachment = "VolumeAttachment",
    }
}

label_values! {
    /// What became of an eviction request.
    EvictionResult {
        /// 201.
        Accepted = "accepted",
        /// A budget forbids it: 429 or 403 with the cause DisruptionBudget, or 500 because several budgets select the pod.
        Refused = "refused",
        /// Admission, rights or a terminating namespace forbid it.
        Denied = "denied",
        /// 429 without a budget's cause.
        Throttled = "throttled",
        /// 409: the pod is another one by now, or its budget changed too often.
        Conflict = "conflict",
        /// 404, or not sent: the pod, or the right to act, was gone.
        Gone = "gone",
        /// Any other answer, or none because the connection failed.
        Failed = "failed",
        /// No answer in time; it may have been accepted.
        Timeout = "timeout",
    }
}

label_values! {
    /// What became of a write.
    WriteResult {
        Ok = "ok",
        /// 409: the object had changed, or existed already.
        Conflict = "conflict",
        Failed = "failed",
        /// No answer in time; it may have been done.
        Timeout = "timeout",
    }
}

label_values! {
    /// What became of an Event.
    EventResult {
        Published = "published",
        Failed = "failed",
        /// The queue was full.
        Dropped = "dropped",
    }
}

/// Pods that wait for the same reason with the same outlook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub reason: &'static str,
    pub outlook: &'static str,
    pub pods: i64,
    /// Since when the one that waits longest has been waiting.
    pub since: Timestamp,
}

/// The phases of plans, as in `status.phase`.
const PLAN_PHASES: [&str; 6] = ["Pending", "Scheduled", "Running", "Suspended", "Completed", "Failed"];
/// The phases of nodes, as in `status.nodes[].phase`.
const NODE_PHASES: [&str; 6] = ["Pending", "Draining", "HandedOff", "Done", "Failed", "Skipped"];

/// All metrics of the process. Cheap to clone; clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    watch_events: Counters,
    watch_restarts: Counters,
    undecodable: Counters,
    decision: Histogram,
    evictions: Counters,
    status_writes: Counters,
    node_patches: Counters,
    events: Counters,
    lease_writes: Counters,
    leader: Gauge,
    leader_transitions: Counter,
    plans: Family<Label, Gauge>,
    nodes: Family<Label, Gauge>,
    waiting: WaitingPods,
    api_requests: Family<RequestLabels, Counter>,
    api_request: Family<Label, Histogram, fn() -> Histogram>,
    was_leader: Arc<AtomicBool>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry of its own with every metric at zero, so that a rate is right from the first increment on.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("drainplan");
        let metrics = Self {
            registry: Arc::default(),
            watch_events: counters(&mut registry, WATCH_EVENTS, "kind", Kind::ALL, Kind::as_str),
            watch_restarts: counters(&mut registry, WATCH_RESTARTS, "kind", Kind::ALL, Kind::as_str),
            undecodable: counters(&mut registry, UNDECODABLE, "kind", Kind::ALL, Kind::as_str),
            decision: seconds(&mut registry, "decision", "Time that one decision over all plans took"),
            evictions: results(&mut registry, EVICTIONS, EvictionResult::ALL, EvictionResult::as_str),
            status_writes: results(&mut registry, STATUS_WRITES, WriteResult::ALL, WriteResult::as_str),
            node_patches: results(&mut registry, NODE_PATCHES, WriteResult::ALL, WriteResult::as_str),
            events: results(&mut registry, EVENTS, EventResult::ALL, EventResult::as_str),
            lease_writes: results(&mut registry, LEASE_WRITES, WriteResult::ALL, WriteResult::as_str),
            leader: Gauge::default(),
            leader_transitions: Counter::default(),
            plans: gauges(&mut registry, "plans", "Plans by phase", &PLAN_PHASES),
            nodes: gauges(&mut registry, "nodes", "Nodes of all plans by phase", &NODE_PHASES),
            waiting: WaitingPods::default(),
            api_requests: Family::default(),
            api_request: Family::new_with_constructor(latency),
            was_leader: Arc::default(),
        };
        registry.register("leader", "1 while this replica may act, else 0", metrics.leader.clone());
        registry.register(
            "leader_transitions",
            "Times this replica became the one that acts",
            metrics.leader_transitions.clone(),
        );
        registry.register_collector(Box::new(metrics.waiting.clone()));
        registry.register(
            "api_requests",
            "Requests to the API server by method and status code",
            metrics.api_requests.clone(),
        );
        registry.register_with_unit(
            "api_request",
            "Time until the API server began to answer",
            Unit::Seconds,
            metrics.api_request.clone(),
        );
        registry.register(
            "build",
            "The running version",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self { registry: Arc::new(registry), ..metrics }
    }

    /// The text that a scrape gets.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }

    /// A watch delivered an object or its deletion.
    pub fn watch_event(&self, kind: Kind) {
        count(&self.watch_events, "kind", kind.as_str());
    }
    /// A watch failed and was started again.
    pub fn watch_restart(&self, kind: Kind) {
        count(&self.watch_restarts, "kind", kind.as_str());
    }
    /// An object could not be read and was left out.
    pub fn undecodable(&self, kind: Kind) {
        count(&self.undecodable, "kind", kind.as_str());
    }
    /// One decision over all plans was made.
    pub fn decision(&self, took: Duration) {
        self.decision.observe(took.as_secs_f64());
    }
    /// An eviction request ended.
    pub fn eviction(&self, result: EvictionResult) {
        count(&self.evictions, "result", result.as_str());
    }
    /// A write of a plan's status ended.
    pub fn status_write(&self, result: WriteResult) {
        count(&self.status_writes, "result", result.as_str());
    }
    /// A patch of a node ended.
    pub fn node_patch(&self, result: WriteResult) {
        count(&self.node_patches, "result", result.as_str());
    }
    /// An Event was published or lost.
    pub fn event(&self, result: EventResult) {
        count(&self.events, "result", result.as_str());
    }
    /// A write of the leader lease ended.
    pub fn lease_write(&self, result: WriteResult) {
        count(&self.lease_writes, "result", result.as_str());
    }
    /// This replica may act, or may not. What it knew of plans ends with that: another replica reports on them then.
    pub fn leading(&self, leading: bool) {
        self.leader.set(i64::from(leading));
        if !leading {
            self.set_plans(&[]);
            self.set_nodes(&[]);
            self.set_waiting(Vec::new());
        }
        let was_leading = self.was_leader.swap(leading, Ordering::Relaxed);
        if leading && !was_leading {
            self.leader_transitions.inc();
        }
    }
    /// How many plans are in each phase; a phase that is not named has none.
    pub fn set_plans(&self, by_phase: &[(&'static str, i64)]) {
        set(&self.plans, &PLAN_PHASES, by_phase);
    }
    /// How many nodes of all plans are in each phase; a phase that is not named has none.
    pub fn set_nodes(&self, by_phase: &[(&'static str, i64)]) {
        set(&self.nodes, &NODE_PHASES, by_phase);
    }
    /// The waiting pods of all plans; what is not named no longer waits.
    pub fn set_waiting(&self, waiting: Vec<Waiting>) {
        *self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
    }
    /// A request to the API server was answered, or failed (`None`).
    pub fn api_request(&self, method: &'static str, code: Option<u16>, took: Duration) {
        let code = code.map_or(Cow::Borrowed("error"), |code| Cow::Owned(code.to_string()));
        self.api_requests.get_or_create(&[("method", Cow::Borrowed(method)), ("code", code)]).inc();
        self.api_request.get_or_create(&[("method", method)]).observe(took.as_secs_f64());
    }
}

const WATCH_EVENTS: (&str, &str) = ("watch_events", "Objects and deletions that watches delivered");
const WATCH_RESTARTS: (&str, &str) = ("watch_restarts", "Watches that failed and were started again");
const UNDECODABLE: (&str, &str) = ("undecodable_objects", "Objects that could not be read and were left out");
const EVICTIONS: (&str, &str) = ("evictions", "Eviction requests by what became of them");
const STATUS_WRITES: (&str, &str) = ("status_writes", "Writes of plans' status");
const NODE_PATCHES: (&str, &str) =
    ("node_patches", "Patches of nodes: claims, cordons, taints and their removal");
const EVENTS: (&str, &str) = ("events", "Kubernetes Events");
const LEASE_WRITES: (&str, &str) = ("lease_writes", "Writes of the leader lease");

fn counters<V: Copy>(
    registry: &mut Registry,
    (name, help): (&str, &str),
    label: &'static str,
    values: &[V],
    as_str: fn(V) -> &'static str,
) -> Counters {
    let family = Counters::default();
    for value in values {
        let _ = family.get_or_create(&[(label, as_str(*value))]);
    }
    registry.register(name, help, family.clone());
    family
}

fn results<V: Copy>(
    registry: &mut Registry,
    named: (&str, &str),
    values: &[V],
    as_str: fn(V) -> &'static str,
) -> Counters {
    counters(registry, named, "result", values, as_str)
}

fn gauges(registry: &mut Registry, name: &str, help: &str, phases: &[&'static str]) -> Family<Label, Gauge> {
    let family = Family::<Label, Gauge>::default();
    set(&family, phases, &[]);
    registry.register(name, help, family.clone());
    family
}

fn seconds(registry: &mut Registry, name: &str, help: &str) -> Histogram {
    let histogram = latency();
    registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
    histogram
}

/// From a decision over an idle cluster (well under a millisecond) to an API server that is about to time out.
fn latency() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

fn count(family: &Counters, label: &'static str, value: &'static str) {
    family.get_or_create(&[(label, value)]).inc();
}

fn set(family: &Family<Label, Gauge>, phases: &[&'static str], by_phase: &[(&'static str, i64)]) {
    for phase in phases {
        family.get_or_create(&[("phase", *phase)]).set(0);
    }
    for (phase, number) in by_phase {
        family.get_or_create(&[("phase", *phase)]).set(*number);
    }
}

/// Read at the scrape, because a wait grows while nothing else happens.
#[derive(Debug, Clone, Default)]
struct WaitingPods(Arc<Mutex<Vec<Waiting>>>);

impl Collector for WaitingPods {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let labels = |waiting: &Waiting| [("reason", waiting.reason), ("outlook", waiting.outlook)];
        let help = "Pods that wait, by reason and outlook";
        let mut pods = encoder.encode_descriptor("waiting_pods", help, None, MetricType::Gauge)?;
        for of_reason in &waiting {
            ConstGauge::new(of_reason.pods).encode(pods.encode_family(&labels(of_reason))?)?;
        }
        let help = "How long the pod that waits longest has been waiting, by reason and outlook";
        let mut oldest =
            encoder.encode_descriptor("oldest_waiting_pod", help, Some(&Unit::Seconds), MetricType::Gauge)?;
        let now = Timestamp::now();
        for of_reason in &waiting {
            // A `since` in the future is another machine's clock: nothing has been waiting less than 0 s.
            let age = now.duration_since(of_reason.since).as_secs_f64().max(0.0);
            ConstGauge::new(age).encode(oldest.encode_family(&labels(of_reason))?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn sample(text: &str, series: &str) -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }

    #[test]
    fn a_counter_is_there_before_anything_was_counted() {
        let metrics = Metrics::new();
        let series = "drainplan_evictions_total{result=\"refused\"}";
        assert_eq!(sample(&metrics.encode().unwrap(), series), Some(0.0));
        metrics.clone().eviction(EvictionResult::Refused);
        assert_eq!(sample(&metrics.encode().unwrap(), series), Some(1.0));
    }

    #[test]
    fn a_phase_that_no_plan_is_in_any_more_goes_back_to_zero() {
        let metrics = Metrics::new();
        metrics.set_plans(&[("Running", 2), ("Failed", 1)]);
        metrics.set_plans(&[("Failed", 3)]);
        let text = metrics.encode().unwrap();
        assert_eq!(sample(&text, "drainplan_plans{phase=\"Running\"}"), Some(0.0));
        assert_eq!(sample(&text, "drainplan_plans{phase=\"Failed\"}"), Some(3.0));
    }

    #[test]
    fn leading_again_is_a_transition_and_going_on_is_none() {
        let metrics = Metrics::new();
        for leading in [true, true, false, false, true] {
            metrics.leading(leading);
        }
        let text = metrics.encode().unwrap();
        assert_eq!(sample(&text, "drainplan_leader_transitions_total"), Some(2.0));
        assert_eq!(sample(&text, "drainplan_leader"), Some(1.0));
    }

    #[test]
    fn only_the_leader_reports_on_plans() {
        let metrics = Metrics::new();
        metrics.leading(true);
        metrics.set_plans(&[("Running", 2)]);
        metrics.set_nodes(&[("Draining", 2)]);
        let since = Timestamp::now();
        metrics.set_waiting(vec![Waiting {
            reason: "BudgetExhausted",
            outlook: "WillClear",
            pods: 4,
            since,
        }]);
        metrics.leading(false);
        let text = metrics.encode().unwrap();
        assert_eq!(sample(&text, "drainplan_plans{phase=\"Running\"}"), Some(0.0));
        assert_eq!(sample(&text, "drainplan_nodes{phase=\"Draining\"}"), Some(0.0));
        assert!(!text.contains("BudgetExhausted"));
    }

    #[test]
    fn the_age_of_a_wait_is_taken_at_the_scrape_and_ends_with_it() {
        let metrics = Metrics::new();
        let since = Timestamp::now() - jiff::SignedDuration::from_secs(90);
        let waiting = Waiting { reason: "BudgetExhausted", outlook: "WillClear", pods: 4, since };
        metrics.set_waiting(vec![waiting]);
        let text = metrics.encode().unwrap();
        let labels = "{reason=\"BudgetExhausted\",outlook=\"WillClear\"}";
        assert_eq!(sample(&text, &format!("drainplan_waiting_pods{labels}")), Some(4.0));
        let age = sample(&text, &format!("drainplan_oldest_waiting_pod_seconds{labels}")).unwrap();
        assert!((90.0..600.0).contains(&age), "{age}");
        metrics.set_waiting(Vec::new());
        assert!(!metrics.encode().unwrap().contains("BudgetExhausted"));
    }

    /// Per metric its type, and per label its values; those of free labels are left out.
    type Described = BTreeMap<String, (String, BTreeMap<String, BTreeSet<String>>)>;

    /// Labels whose values are not known beforehand.
    const FREE: [&str; 5] = ["version", "reason", "outlook", "method", "code"];

    fn registered() -> Described {
        let metrics = Metrics::new();
        let since = Timestamp::now();
        metrics.set_waiting(vec![Waiting { reason: "x", outlook: "x", pods: 1, since }]);
        metrics.api_request("x", None, Duration::ZERO);
        let text = metrics.encode().unwrap();
        let mut types = BTreeMap::new();
        let mut described = Described::new();
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("# TYPE ") {
                let (family, kind) = line.split_once(' ').unwrap();
                types.insert(family, kind);
            }
            let Some((series, _)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else {
                continue;
            };
            let (sample, labels) = series.split_once('{').unwrap_or((series, ""));
            let family =
                |suffix: &str| sample.strip_suffix(suffix).filter(|family| types.contains_key(family));
            // A histogram's samples are one metric under the family's name; else the sample's name is the metric's.
            let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| family(suffix));
            let counter = ["_total", "_info"].iter().find_map(|suffix| family(suffix));
            let kind = types[histogram.or(counter).unwrap_or(sample)].to_owned();
            let entry =
                described.entry(histogram.unwrap_or(sample).to_owned()).or_insert((kind, BTreeMap::new()));
            let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
            for (label, value) in labels.filter(|(label, _)| *label != "le") {
                let values = entry.1.entry(label.to_owned()).or_default();
                if !FREE.contains(&label) {
                    values.insert(value.trim_matches('"').to_owned());
                }
            }
        }
        described
    }

    fn documented() -> Described {
        let page = include_str!("../../docs/metrics.md");
        let rows = page.lines().filter(|line| line.starts_with("| `drainplan_"));
        let quoted =
            |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        rows.map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let labels = cells[3].split(';').filter(|label| !label.is_empty()).map(|label| {
                let mut words = quoted(label).into_iter();
                (words.next().unwrap(), words.collect())
            });
            (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), labels.collect()))
        })
        .collect()
    }

    #[test]
    fn the_page_on_metrics_and_the_registry_say_the_same() {
        let (registered, documented) = (registered(), documented());
        assert!(registered.len() > 10, "{registered:?}");
        for (name, what) in &registered {
            assert_eq!(
                documented.get(name),
                Some(what),
                "{name}: docs/metrics.md (left), the program (right)"
            );
        }
        for name in documented.keys() {
            assert!(registered.contains_key(name), "docs/metrics.md describes {name}, which does not exist");
        }
    }
}
