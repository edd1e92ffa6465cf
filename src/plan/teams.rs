//! What the teams are told whose pods hold up a plan: events on their pods and budgets, in their own namespaces.

use std::collections::{BTreeMap, BTreeSet};

use super::transitions::{Notice, Severity, Subject};
use super::words;
use crate::api::{DrainPlanStatus, NodePhase, NodeStatus, Outlook, Reason, WaitingPod};

/// Events about pods, and about budgets, in one decision.
const MOST: usize = 20;

/// A pod that waits for more than time on a node whose turn it is, or that is not started because of it.
struct Held<'s> {
    node: &'s NodeStatus,
    pod: &'s WaitingPod,
}

/// The events on pods and budgets that begin to hold up the plan.
pub fn notices(
    plan: &str,
    before: &BTreeMap<&str, &NodeStatus>,
    new: &DrainPlanStatus,
) -> impl Iterator<Item = Notice> {
    let old: Vec<Held<'_>> = before.values().flat_map(|node| held(node)).collect();
    let now: Vec<Held<'_>> = new.nodes.iter().flat_map(held).collect();
    let pods = on_pods(plan, &old, &now);
    pods.into_iter().take(MOST).chain(on_budgets(plan, &old, &now).into_iter().take(MOST))
}

fn held(node: &NodeStatus) -> impl Iterator<Item = Held<'_>> {
    let open = matches!(node.phase, NodePhase::Draining | NodePhase::Pending);
    let long = |pod: &&WaitingPod| pod.outlook != Outlook::WillClear;
    node.waiting.iter().filter(move |_| open).filter(long).map(move |pod| Held { node, pod })
}

impl<'s> Held<'s> {
    fn key(&self) -> (&'s str, &'s str, &'s str) {
        (&self.pod.namespace, &self.pod.pod, &self.pod.reason)
    }

    /// The budgets that are the reason.
    fn budgets(&self) -> impl Iterator<Item = (&'s str, &'s str, &'s str)> {
        let pod = self.pod;
        let about = Reason::parse(&pod.reason).is_some_and(Reason::is_about_budgets);
        pod.budgets
            .iter()
            .filter(move |_| about)
            .map(move |name| (pod.namespace.as_str(), name.as_str(), pod.reason.as_str()))
    }

    fn doing(&self, plan: &str) -> String {
        match self.node.phase {
            NodePhase::Draining => format!("plan {plan} drains node {}", self.node.name),
            _ => format!("plan {plan} cannot start node {}", self.node.name),
        }
    }
}

fn on_pods(plan: &str, old: &[Held<'_>], now: &[Held<'_>]) -> Vec<Notice> {
    let told: BTreeSet<_> = old.iter().map(Held::key).collect();
    let new = now.iter().filter(|held| !told.contains(&held.key()));
    let notice = |held: &Held<'_>| {
        let pod = held.pod;
        let subject = Subject::Pod { namespace: pod.namespace.clone(), name: pod.pod.clone() };
        warning(
            subject,
            &pod.reason,
            format!("{}, and this pod cannot go: {}", held.doing(plan), pod.message),
        )
    };
    new.filter_map(notice).collect()
}

/// One for each budget and reason, with the first of its pods.
fn on_budgets(plan: &str, old: &[Held<'_>], now: &[Held<'_>]) -> Vec<Notice> {
    let told: BTreeSet<_> = old.iter().flat_map(Held::budgets).collect();
    let mut waits: BTreeMap<(&str, &str, &str), Vec<&Held<'_>>> = BTreeMap::new();
    for held in now {
        for budget in held.budgets().filter(|budget| !told.contains(budget)) {
            waits.entry(budget).or_default().push(held);
        }
    }
    let notice = |((namespace, name, reason), held): ((&str, &str, &str), Vec<&Held<'_>>)| {
        let first = held.first()?;
        let subject = Subject::Budget { namespace: namespace.to_owned(), name: name.to_owned() };
        let pods = words::count(held.len(), "pod");
        let verb = if held.len() == 1 { "waits" } else { "wait" };
        let (doing, pod) = (first.doing(plan), first.pod);
        warning(
            subject,
            reason,
            format!("{doing}, and {pods} {verb} on this budget; {}: {}", pod.pod, pod.message),
        )
    };
    waits.into_iter().filter_map(notice).collect()
}

fn warning(subject: Subject, reason: &str, note: String) -> Option<Notice> {
    let reason = Reason::parse(reason)?.as_str();
    Some(Notice { subject, severity: Severity::Warning, reason, action: "Wait", note })
}
