//! What the controller counts. `docs/metrics.md` describes every metric; a test compares the two, both ways.
//!
//! Labels take only values that are listed here or in the API's documentation, but for the names of plans and of the
//! 50 budgets that block longest: series with a name are made at the scrape, and are gone with what they are about.

mod labels;
mod plans;
#[cfg(test)]
mod tests;

pub use labels::{EventResult, EvictionCause, Kind, WriteResult};

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::api::DrainPlan;
use crate::plan::Waits;
use plans::PlanSeries;

type Label = [(&'static str, &'static str); 1];
type Counters = Family<Label, Counter>;
type TwoLabels = [(&'static str, Cow<'static, str>); 2];

/// All metrics of the process. Cheap to clone; clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    watch_events: Counters,
    watch_restarts: Counters,
    undecodable: Counters,
    decide: Histogram,
    node_drain: Histogram,
    evictions: Family<TwoLabels, Counter>,
    status_writes: Counters,
    node_patches: Counters,
    events: Counters,
    lease_writes: Counters,
    leader: Gauge,
    leader_transitions: Counter,
    plans: PlanSeries,
    api_requests: Family<TwoLabels, Counter>,
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
            decide: seconds(&mut registry, DECIDE, latency()),
            node_drain: seconds(&mut registry, NODE_DRAIN, drains()),
            evictions: evictions(&mut registry),
            status_writes: results(&mut registry, STATUS_WRITES, WriteResult::ALL, WriteResult::as_str),
            node_patches: results(&mut registry, NODE_PATCHES, WriteResult::ALL, WriteResult::as_str),
            events: results(&mut registry, EVENTS, EventResult::ALL, EventResult::as_str),
            lease_writes: results(&mut registry, LEASE_WRITES, WriteResult::ALL, WriteResult::as_str),
            leader: Gauge::default(),
            leader_transitions: Counter::default(),
            plans: PlanSeries::default(),
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
        registry.register_collector(Box::new(metrics.plans.clone()));
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
        self.decide.observe(took.as_secs_f64());
    }
    /// A status was written that says that a node was drained, so long after it was started.
    pub fn node_drained(&self, took: Duration) {
        self.node_drain.observe(took.as_secs_f64());
    }
    /// An eviction request ended with this code, or the word for there being none.
    pub fn eviction(&self, code: Cow<'static, str>, cause: EvictionCause) {
        self.evictions.get_or_create(&eviction_labels(code, cause)).inc();
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
        self.plans.leading(leading);
        let was_leading = self.was_leader.swap(leading, Ordering::Relaxed);
        if leading && !was_leading {
            self.leader_transitions.inc();
        }
    }
    /// These are all plans that can be read. `waits` says of a plan, by its uid, how many pods wait for what; a plan that is
    /// not in it is as it was.
    pub fn show(&self, plans: Vec<Arc<DrainPlan>>, waits: &HashMap<&str, &Waits>) {
        self.plans.show(plans, waits);
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
const EVICTIONS: (&str, &str) =
    ("eviction_requests", "Eviction requests by code and by what the answer amounts to");
const DECIDE: (&str, &str) = ("decide_duration", "Time that one decision over all plans took");
const NODE_DRAIN: (&str, &str) =
    ("node_drain_duration", "Time from the start of a node until it was drained; failed ones do not count");
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

/// The usual code of each cause is there from the start.
fn evictions(registry: &mut Registry) -> Family<TwoLabels, Counter> {
    let family = Family::<TwoLabels, Counter>::default();
    for cause in EvictionCause::ALL {
        let _ = family.get_or_create(&eviction_labels(Cow::Borrowed(cause.usual_code()), *cause));
    }
    let _ = family.get_or_create(&eviction_labels(Cow::Borrowed("timeout"), EvictionCause::NoAnswer));
    registry.register(EVICTIONS.0, EVICTIONS.1, family.clone());
    family
}

fn eviction_labels(code: Cow<'static, str>, cause: EvictionCause) -> TwoLabels {
    [("code", code), ("cause", Cow::Borrowed(cause.as_str()))]
}

fn seconds(registry: &mut Registry, (name, help): (&str, &str), histogram: Histogram) -> Histogram {
    registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
    histogram
}

/// From a node that has no pods to one whose budgets take all night.
fn drains() -> Histogram {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    Histogram::new([
        1.0,
        5.0,
        15.0,
        30.0,
        MINUTE,
        2.0 * MINUTE,
        5.0 * MINUTE,
        10.0 * MINUTE,
        15.0 * MINUTE,
        30.0 * MINUTE,
        HOUR,
        2.0 * HOUR,
        4.0 * HOUR,
        8.0 * HOUR,
    ])
}

/// From a decision over an idle cluster (well under a millisecond) to an API server that is about to time out.
fn latency() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

fn count(family: &Counters, label: &'static str, value: &'static str) {
    family.get_or_create(&[(label, value)]).inc();
}
