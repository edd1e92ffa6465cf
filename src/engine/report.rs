//! What the loop tells dashboards: gauges over all plans, and events.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource as _, ResourceExt as _};
use tokio::time::Instant;

use super::events::{self, Publisher};
use super::metrics::{Metrics, Waiting};
use crate::api::{DrainPlan, NodePhase, Outlook, PlanPhase, Reason, WaitingPod};
use crate::cluster::{BudgetKey, Cluster, PodKey};
use crate::plan::{Plans, Severity, Subject, Told, Unreadable};

/// What lies between two events on an object of somebody else's for one reason.
const APART: Duration = Duration::from_mins(5);

/// Sets the gauges from what the plans' statuses say.
pub fn gauges(metrics: &Metrics, plans: &Plans) {
    let mut phases: BTreeMap<&'static str, i64> = BTreeMap::new();
    let mut nodes: BTreeMap<&'static str, i64> = BTreeMap::new();
    let mut waiting: BTreeMap<(&'static str, &'static str), (i64, Timestamp)> = BTreeMap::new();
    for plan in &plans.readable {
        let Some(status) = &plan.status else { continue };
        if let Some(phase) = status.phase {
            *phases.entry(plan_phase(phase)).or_default() += 1;
        }
        if let Some(counts) = &status.node_counts {
            for (phase, count) in [
                (NodePhase::Pending, counts.pending),
                (NodePhase::Draining, counts.draining),
                (NodePhase::HandedOff, counts.handed_off),
                (NodePhase::Done, counts.done),
                (NodePhase::Failed, counts.failed),
                (NodePhase::Skipped, counts.skipped),
            ] {
                *nodes.entry(node_phase(phase)).or_default() += i64::from(count);
            }
        }
        if status.run_has_ended() {
            continue;
        }
        for pod in status.nodes.iter().flat_map(|node| &node.waiting) {
            let entry = waiting.entry((reason(pod), outlook(pod.outlook))).or_insert((0, pod.since.0));
            *entry = (entry.0 + 1, entry.1.min(pod.since.0));
        }
    }
    metrics.set_plans(&phases.into_iter().collect::<Vec<_>>());
    metrics.set_nodes(&nodes.into_iter().collect::<Vec<_>>());
    let waiting = waiting.into_iter().map(|((reason, outlook), (pods, since))| Waiting {
        reason,
        outlook,
        pods,
        since,
    });
    metrics.set_waiting(waiting.collect());
}

/// Publishes that a plan cannot be read.
pub fn unreadable(publisher: &Publisher, plan: &Unreadable) {
    publisher.publish(events::Notice {
        regarding: ObjectReference {
            name: plan.metadata.name.clone(),
            uid: plan.metadata.uid.clone(),
            resource_version: plan.metadata.resource_version.clone(),
            api_version: Some(DrainPlan::api_version(&()).into_owned()),
            kind: Some(DrainPlan::kind(&()).into_owned()),
            ..ObjectReference::default()
        },
        type_: events::EventType::Warning,
        reason: "Unreadable",
        action: if plan.is_going() { "GiveBack" } else { "Hold" },
        note: plan.told(),
    });
}

/// Publishes what an outcome is worth saying. What is about a plan that is gone is told of its nodes only.
pub fn publish(publisher: &Publisher, cluster: &Cluster, often: &mut Often, Told { plan, notices }: Told) {
    for notice in notices {
        if notice.subject == Subject::Plan {
            let plan = plan.as_ref().map(|plan| plan.name_any());
            tracing::info!(plan, reason = notice.reason, "{}", notice.note);
        }
        let regarding = match (notice.subject, &plan) {
            (Subject::Plan, None) => continue,
            (Subject::Plan, Some(plan)) => plan.object_ref(&()),
            (Subject::Node { name, uid }, _) => reference("v1", "Node", None, name, uid),
            (Subject::Pod { namespace, name }, _) => {
                let key = PodKey { namespace: namespace.as_str().into(), name: name.as_str().into() };
                let Some(pod) = cluster.pod(&key) else { continue };
                let Some(uid) = often.may(&pod.uid, notice.reason) else { continue };
                reference("v1", "Pod", Some(namespace), name, uid)
            }
            (Subject::Budget { namespace, name }, _) => {
                let key = BudgetKey { namespace: namespace.as_str().into(), name: name.as_str().into() };
                let Some(budget) = cluster.budget(&key) else { continue };
                let Some(uid) = often.may(&budget.uid, notice.reason) else { continue };
                reference("policy/v1", "PodDisruptionBudget", Some(namespace), name, uid)
            }
        };
        publisher.publish(events::Notice {
            regarding,
            type_: match notice.severity {
                Severity::Normal => events::EventType::Normal,
                Severity::Warning => events::EventType::Warning,
            },
            reason: notice.reason,
            action: notice.action,
            note: notice.note,
        });
    }
}

fn reference(
    api_version: &str,
    kind: &str,
    namespace: Option<String>,
    name: String,
    uid: String,
) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace,
        name: Some(name),
        uid: Some(uid),
        ..ObjectReference::default()
    }
}

/// Keeps events on objects of others apart: what comes and goes is told once in a while.
#[derive(Default)]
pub struct Often {
    told: HashMap<(String, &'static str), Instant>,
}

impl Often {
    /// The object's uid, if nothing was told of it for that reason within the last minutes.
    fn may(&mut self, uid: &str, reason: &'static str) -> Option<String> {
        let now = Instant::now();
        self.told.retain(|_, at| now.duration_since(*at) < APART);
        if self.told.contains_key(&(uid.to_owned(), reason)) {
            return None;
        }
        self.told.insert((uid.to_owned(), reason), now);
        Some(uid.to_owned())
    }
}

fn plan_phase(phase: PlanPhase) -> &'static str {
    match phase {
        PlanPhase::Pending => "Pending",
        PlanPhase::Scheduled => "Scheduled",
        PlanPhase::Running => "Running",
        PlanPhase::Suspended => "Suspended",
        PlanPhase::Completed => "Completed",
        PlanPhase::Failed => "Failed",
    }
}

fn node_phase(phase: NodePhase) -> &'static str {
    match phase {
        NodePhase::Pending => "Pending",
        NodePhase::Draining => "Draining",
        NodePhase::HandedOff => "HandedOff",
        NodePhase::Done => "Done",
        NodePhase::Failed => "Failed",
        NodePhase::Skipped => "Skipped",
    }
}

fn outlook(outlook: Outlook) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_object_is_told_of_one_reason_every_five_minutes() {
        let mut often = Often::default();
        assert_eq!(often.may("uid-a", "BudgetNeverAllows").as_deref(), Some("uid-a"));
        assert_eq!(often.may("uid-a", "BudgetNeverAllows"), None);
        assert!(often.may("uid-a", "BudgetUnhealthy").is_some(), "another reason");
        assert!(often.may("uid-b", "BudgetNeverAllows").is_some(), "another object");
        tokio::time::advance(APART).await;
        assert!(often.may("uid-a", "BudgetNeverAllows").is_some());
        assert_eq!(often.told.len(), 1, "what is long ago is forgotten");
    }
}
