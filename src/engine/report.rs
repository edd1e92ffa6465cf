//! What the loop tells dashboards: gauges over all plans, and events.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource as _, ResourceExt as _};

use super::events::{self, Publisher};
use super::metrics::{Metrics, Waiting};
use crate::api::{DrainPlan, NodePhase, Outlook, PlanPhase, Reason, WaitingPod};
use crate::plan::{Plans, Severity, Subject, Told, Unreadable};

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
pub fn publish(publisher: &Publisher, Told { plan, notices }: Told) {
    for notice in notices {
        if notice.subject == Subject::Plan {
            let plan = plan.as_ref().map(|plan| plan.name_any());
            tracing::info!(plan, reason = notice.reason, "{}", notice.note);
        }
        let regarding = match (notice.subject, &plan) {
            (Subject::Plan, None) => continue,
            (Subject::Plan, Some(plan)) => plan.object_ref(&()),
            (Subject::Node { name, uid }, _) => ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(name),
                uid: Some(uid),
                ..ObjectReference::default()
            },
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
