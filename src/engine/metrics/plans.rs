//! What is known of the plans, read at the scrape: a decision only leaves the plans here, which are shared and not
//! copied, and a wait grows while nothing else happens.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kube::ResourceExt as _;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus, Outlook, PlanPhase, Reason, WaitingPod};
use crate::plan::Waits;

/// Budgets whose blocking is told, the longest: their names are labels, and a cluster has any number of them.
const BUDGETS: usize = 50;

const PLAN_PHASES: [PlanPhase; 6] = [
    PlanPhase::Pending,
    PlanPhase::Scheduled,
    PlanPhase::Running,
    PlanPhase::Suspended,
    PlanPhase::Completed,
    PlanPhase::Failed,
];

/// The plans as last seen by whoever acts. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct PlanSeries {
    shown: Arc<Mutex<Vec<Shown>>>,
    leads: Arc<AtomicBool>,
}

/// One plan.
#[derive(Debug)]
struct Shown {
    plan: Arc<DrainPlan>,
    waits: Waits,
    held: Held,
}

/// A pod that a budget holds: namespace, budget, pod.
type Hold = (String, String, String);
/// Since when: through all the reasons that the budget has had for it.
type Held = BTreeMap<Hold, Timestamp>;

impl PlanSeries {
    /// These are all plans. `waits` says of a plan, by its uid, how many pods wait for what; nothing if that is as it was.
    pub fn show(&self, plans: Vec<Arc<DrainPlan>>, waits: &HashMap<&str, &Waits>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *shown);
        let mut before: HashMap<String, Shown> =
            before.into_iter().map(|shown| (uid(&shown.plan).to_owned(), shown)).collect();
        for plan in plans {
            let old = before.remove(uid(&plan));
            let waits = waits.get(uid(&plan)).map(|waits| (*waits).clone());
            let (old_waits, held) = match old {
                Some(old) if Arc::ptr_eq(&old.plan, &plan) => (old.waits, old.held),
                Some(old) => (old.waits, held(&plan, &old.held)),
                None => (Waits::default(), held(&plan, &Held::default())),
            };
            shown.push(Shown { waits: waits.unwrap_or(old_waits), held, plan });
        }
        shown.sort_by_key(|shown| shown.plan.name_any());
    }

    /// Whether this replica acts. What it knew of plans ends with that: another one reports on them then.
    pub fn leading(&self, leads: bool) {
        self.leads.store(leads, Ordering::Relaxed);
        if !leads {
            self.shown.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    fn encode_at(&self, now: Timestamp, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // A decision that was under way when the lease ended may have left something.
        let shown = if self.leads.load(Ordering::Relaxed) { shown.as_slice() } else { &[] };
        encode_plans(shown, encoder)?;
        encode_nodes(shown, encoder)?;
        encode_waits(shown, encoder)?;
        encode_oldest(shown, now, encoder)?;
        encode_budgets(shown, now, encoder)
    }
}

impl Collector for PlanSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_at(Timestamp::now(), &mut encoder)
    }
}

fn encode_plans(shown: &[Shown], encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let mut plans = encoder.encode_descriptor("plans", "Plans by phase.", None, MetricType::Gauge)?;
    for phase in PLAN_PHASES {
        let in_phase = |shown: &&Shown| status(shown).is_some_and(|status| status.phase == Some(phase));
        gauge(shown.iter().filter(in_phase).count())
            .encode(plans.encode_family(&[("phase", of_plan(phase))])?)?;
    }
    Ok(())
}

fn encode_nodes(shown: &[Shown], encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Nodes of a plan by phase.";
    let mut nodes = encoder.encode_descriptor("nodes", help, None, MetricType::Gauge)?;
    for one in shown {
        let name = one.plan.name_any();
        for (phase, count) in status(one).map(by_phase).into_iter().flatten() {
            let labels = [("plan", name.as_str()), ("phase", of_node(phase))];
            ConstGauge::new(i64::from(count)).encode(nodes.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_waits(shown: &[Shown], encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Pods that wait on nodes of a plan that are in progress or blocked, by reason and outlook.";
    let mut pods = encoder.encode_descriptor("pods_waiting", help, None, MetricType::Gauge)?;
    for one in shown {
        let name = one.plan.name_any();
        for ((reason, outlook), count) in &one.waits {
            let labels =
                [("plan", name.as_str()), ("reason", reason.as_str()), ("outlook", of_outlook(*outlook))];
            gauge(*count).encode(pods.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_oldest(
    shown: &[Shown],
    now: Timestamp,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let mut oldest: BTreeMap<(&str, &str), Timestamp> = BTreeMap::new();
    for pod in shown.iter().flat_map(|shown| waiting(&shown.plan)) {
        let since = oldest.entry((reason(pod), of_outlook(pod.outlook))).or_insert(pod.since.0);
        *since = (*since).min(pod.since.0);
    }
    let help = "How long the pod that waits longest has been waiting for this reason.";
    let unit = Some(&Unit::Seconds);
    let mut ages = encoder.encode_descriptor("oldest_waiting_pod", help, unit, MetricType::Gauge)?;
    for ((reason, outlook), since) in oldest {
        let labels = [("reason", reason), ("outlook", outlook)];
        ConstGauge::new(age(since, now)).encode(ages.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_budgets(
    shown: &[Shown],
    now: Timestamp,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let help = "How long a budget has been holding up the pod that waits longest on it; the 50 longest.";
    let unit = Some(&Unit::Seconds);
    let mut blocking = encoder.encode_descriptor("budget_blocking", help, unit, MetricType::Gauge)?;
    let mut budgets: BTreeMap<(&str, &str), Timestamp> = BTreeMap::new();
    for ((namespace, budget, _), since) in shown.iter().flat_map(|shown| &shown.held) {
        let first = budgets.entry((namespace, budget)).or_insert(*since);
        *first = (*first).min(*since);
    }
    let mut longest: Vec<_> = budgets.into_iter().collect();
    longest.sort_by_key(|(_, since)| *since);
    for ((namespace, budget), since) in longest.into_iter().take(BUDGETS) {
        let labels = [("namespace", namespace), ("budget", budget)];
        ConstGauge::new(age(since, now)).encode(blocking.encode_family(&labels)?)?;
    }
    Ok(())
}

fn uid(plan: &DrainPlan) -> &str {
    plan.metadata.uid.as_deref().unwrap_or_default()
}

fn status(shown: &Shown) -> Option<&DrainPlanStatus> {
    shown.plan.status.as_ref()
}

/// The pods that something is still done about: what held a node that has ended is history, and a plan that only looks is not
/// held up.
fn waiting(plan: &DrainPlan) -> impl Iterator<Item = &WaitingPod> {
    let status = plan.status.as_ref().filter(|status| !plan.spec.preflight_only && !status.run_has_ended());
    let goes_on =
        |node: &&NodeStatus| !matches!(node.phase, NodePhase::Done | NodePhase::Failed | NodePhase::Skipped);
    let nodes = status.into_iter().flat_map(|status| &status.nodes);
    nodes.filter(goes_on).flat_map(|node| &node.waiting)
}

/// The pods that budgets hold. One that was held before has been held since then, although the reason may be another.
fn held(plan: &DrainPlan, before: &Held) -> Held {
    let by_budget = |pod: &&WaitingPod| Reason::parse(&pod.reason).is_some_and(Reason::is_about_budgets);
    let mut held = Held::new();
    for pod in waiting(plan).filter(by_budget) {
        for budget in &pod.budgets {
            let hold = (pod.namespace.clone(), budget.clone(), pod.pod.clone());
            let since = before.get(&hold).map_or(pod.since.0, |since| pod.since.0.min(*since));
            held.insert(hold, since);
        }
    }
    held
}

/// A `since` in the future is another machine's clock: nothing has been waiting less than 0 s.
fn age(since: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(since).as_secs_f64().max(0.0)
}

fn gauge(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

fn by_phase(status: &DrainPlanStatus) -> [(NodePhase, i32); 6] {
    let counts = status.node_counts.clone().unwrap_or_default();
    [
        (NodePhase::Pending, counts.pending),
        (NodePhase::Draining, counts.draining),
        (NodePhase::HandedOff, counts.handed_off),
        (NodePhase::Done, counts.done),
        (NodePhase::Failed, counts.failed),
        (NodePhase::Skipped, counts.skipped),
    ]
}

fn of_plan(phase: PlanPhase) -> &'static str {
    match phase {
        PlanPhase::Pending => "Pending",
        PlanPhase::Scheduled => "Scheduled",
        PlanPhase::Running => "Running",
        PlanPhase::Suspended => "Suspended",
        PlanPhase::Completed => "Completed",
        PlanPhase::Failed => "Failed",
    }
}

fn of_node(phase: NodePhase) -> &'static str {
    match phase {
        NodePhase::Pending => "Pending",
        NodePhase::Draining => "Draining",
        NodePhase::HandedOff => "HandedOff",
        NodePhase::Done => "Done",
        NodePhase::Failed => "Failed",
        NodePhase::Skipped => "Skipped",
    }
}

fn of_outlook(outlook: Outlook) -> &'static str {
    match outlook {
        Outlook::WillClear => "WillClear",
        Outlook::MayClear => "MayClear",
        Outlook::NeverClears => "NeverClears",
    }
}

/// A label takes only reasons that this version knows.
fn reason(pod: &WaitingPod) -> &'static str {
    Reason::parse(&pod.reason).map_or("Other", Reason::as_str)
}
