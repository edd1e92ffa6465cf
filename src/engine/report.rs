//! What the loop tells dashboards: gauges over all plans, and events.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource as _, ResourceExt as _};
use tokio::time::Instant;

use super::events::{self, Publisher};
use super::metrics::Metrics;
use crate::api::{DrainPlan, DrainPlanStatus, NodeStatus};
use crate::cluster::{BudgetKey, Cluster, PodKey};
use crate::plan::{Decisions, Plans, Severity, Subject, Told, Unreadable};

/// What lies between two events on an object of somebody else's for one reason.
const APART: Duration = Duration::from_mins(5);

/// Leaves what the metrics say of plans for the next scrape.
pub fn show(metrics: &Metrics, plans: Plans, decisions: &Decisions) {
    let waits = decisions.plans.iter();
    let waits =
        waits.filter_map(|decision| Some((decision.uid.as_str(), decision.waits.as_ref()?))).collect();
    metrics.show(plans.readable, &waits);
}

/// How long the nodes took that a status calls drained and the one before did not.
pub fn drained(old: Option<&DrainPlanStatus>, new: &DrainPlanStatus) -> Vec<Duration> {
    let known = |node: &NodeStatus| {
        let old = old.into_iter().flat_map(|old| &old.nodes).find(|old| old.uid == node.uid);
        old.is_some_and(|old| old.drained_at == node.drained_at)
    };
    let new = new.nodes.iter().filter(|node| node.drained_at.is_some() && !known(node));
    let took = new.filter_map(|node| {
        let took = node.drained_at.as_ref()?.0.duration_since(node.started_at.as_ref()?.0);
        Duration::try_from(took).ok()
    });
    took.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn status(nodes: &[(&str, Option<&str>)]) -> DrainPlanStatus {
        let node = |(uid, drained): &(&str, Option<&str>)| {
            serde_json::json!({"name": uid, "uid": uid, "phase": "Done", "podsLeft": 0, "podsEvicted": 0,
                "startedAt": "2026-12-01T10:00:00Z", "drainedAt": drained})
        };
        serde_json::from_value(serde_json::json!({"nodes": nodes.iter().map(node).collect::<Vec<_>>()}))
            .unwrap()
    }

    #[test]
    fn a_node_is_drained_once_in_each_run() {
        let ten = Some("2026-12-01T10:10:00Z");
        let new = status(&[("a", ten), ("b", None)]);
        assert_eq!(drained(None, &new), [Duration::from_mins(10)]);
        assert_eq!(drained(Some(&status(&[("a", None)])), &new), [Duration::from_mins(10)]);
        assert!(drained(Some(&new), &new).is_empty(), "said before");
        let next = status(&[("a", Some("2026-12-01T10:00:05Z"))]);
        assert_eq!(drained(Some(&new), &next), [Duration::from_secs(5)], "another run");
        let odd = status(&[("a", Some("2026-12-01T09:59:00Z"))]);
        assert!(drained(None, &odd).is_empty(), "a clock that was set back says nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn one_object_is_told_of_one_reason_every_five_minutes() {
        let mut often = Often::default();
        assert_eq!(often.may("uid-a", "BudgetNeverAllows").as_deref(), Some("uid-a"));
        assert_eq!(often.may("uid-a", "BudgetNeverAllows"), None);
        assert!(often.may("uid-a", "BudgetUnhealthy").is_some(), "another reason");
        assert!(often.may("uid-b", "BudgetNeverAllows").is_some(), "another object");
        let moment = Duration::from_millis(1);
        tokio::time::advance(APART.saturating_sub(moment)).await;
        assert_eq!(often.may("uid-a", "BudgetNeverAllows"), None, "not yet");
        tokio::time::advance(moment).await;
        assert!(often.may("uid-a", "BudgetNeverAllows").is_some());
        assert_eq!(often.told.len(), 1, "what is long ago is forgotten");
    }
}
