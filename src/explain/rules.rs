//! What the plan's rules, and labels and annotations of pods, ask for.

use jiff::Timestamp;

use super::case::Case;
use super::filters::{may_end, outlook};
use super::{Said, Wait, besides, words};
use crate::api::{Outlook, PodAction, PodPolicy, PodRequirement, PodSelector, Protected, Reason};
use crate::cluster::{Cluster, Labels, Operator, Pod, Text};

/// The label by which a pod, or whoever runs it, says how a drain treats it (Cluster API).
pub(super) const LABEL: &str = "cluster.x-k8s.io/drain";

/// What is done to a pod, and in which order.
pub(super) fn action(cluster: &Cluster, pod: &Pod, policy: &PodPolicy) -> (PodAction, i32) {
    let none = Labels::default();
    let namespace = cluster.namespace(&pod.namespace).map_or(&none, |namespace| &namespace.labels);
    let rule = policy.rules.iter().find(|rule| {
        rule.namespace_selector.as_ref().is_none_or(|selector| matches(selector, namespace))
            && rule.pod_selector.as_ref().is_none_or(|selector| matches(selector, &pod.labels))
    });
    if let Some(rule) = rule {
        return (rule.action, rule.order.unwrap_or(0));
    }
    let action = match pod.labels.get(LABEL).map(AsRef::as_ref) {
        Some("skip") => PodAction::Skip,
        Some("wait-completed") => PodAction::AwaitCompletion,
        _ => PodAction::Evict,
    };
    (action, 0)
}

fn matches(selector: &PodSelector, labels: &Labels) -> bool {
    let equal = |(key, value): (&String, &String)| labels.get(key).is_some_and(|own| **own == **value);
    selector.match_labels.iter().all(equal)
        && selector.match_expressions.iter().all(|requirement| holds(requirement, labels))
}

fn holds(requirement: &PodRequirement, labels: &Labels) -> bool {
    let listed = |value: &Text| requirement.values.iter().any(|wanted| **wanted == **value);
    Operator::from(requirement.operator).holds(labels.get(&requirement.key), listed)
}

/// Whether the pod asks not to be moved, the plan heeds it, and until when.
pub(super) fn protected(pod: &Pod, policy: &PodPolicy, now: Timestamp) -> bool {
    let until = protected_until(pod);
    policy.protected != Some(Protected::Ignore)
        && pod.protection.is_some()
        && until.is_none_or(|until| until > now)
}

/// When a protection for a while ends.
pub(super) fn protected_until(pod: &Pod) -> Option<Timestamp> {
    let lasts = pod.protection.as_ref()?.lasts?;
    Some(pod.created?.saturating_add(lasts).unwrap_or(Timestamp::MAX))
}

/// An annotation asks not to move the pod.
pub(super) fn is_protected(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    if case.action == PodAction::AwaitCompletion
        || pod.terminating()
        || !protected(pod, case.policy, case.now)
    {
        return None;
    }
    let protection = pod.protection.as_ref()?;
    let asks = format!("Its annotation {}: {} asks", protection.annotation, words::quote(&protection.value));
    let honoured = "and spec.pods.protected is Honor";
    // The template of a Job cannot be changed.
    let has_template = pod.owner.as_ref().is_some_and(|owner| &*owner.kind != "Job");
    let next = besides::next(case, Reason::Protected);
    let (outlook, message) = match protected_until(pod) {
        Some(until) => {
            let outlook = next.as_ref().map_or(Outlook::WillClear, |next| next.outlook);
            let until = words::at(until);
            (outlook, format!("{asks} not to evict this pod before {until}, {honoured}."))
        }
        None => (outlook(pod), format!("{asks} not to evict this pod, {honoured}.{}", may_end(pod))),
    };
    Some(Said {
        outlook,
        message,
        remedy: format!(
            "remove the annotation {} {} be moved, or set spec.pods.protected: Ignore in the plan{}",
            protection.annotation,
            if has_template { "from the pod template once its pods may" } else { "from the pod once it may" },
            besides::rest(next.as_ref())
        ),
    })
}

/// A rule waits for the pod to finish.
pub(super) fn awaiting_completion(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    (case.action == PodAction::AwaitCompletion && !pod.terminating()).then(|| {
        let outlook = outlook(pod);
        let never = "; but restartPolicy Always starts its containers again and again";
        Said {
            outlook,
            message: format!(
                "The plan waits for this pod to finish instead of evicting it (spec.pods.rules, or the label {LABEL}){}.",
                if outlook == Outlook::NeverClears { never } else { "" }
            ),
            remedy: if outlook == Outlook::NeverClears {
                format!(
                    "change the rule of spec.pods.rules or the label {LABEL} that matches it: it never finishes{}",
                    besides::also(case, Reason::AwaitingCompletion)
                )
            } else {
                "nothing to change: wait until it has finished, or change the rule that matches it to Evict".to_owned()
            },
        }
    })
}

/// Set by whoever looks at a whole node: no single pod tells.
pub(super) fn awaiting_order(_: &Case<'_, '_>) -> Option<Said> {
    None
}

/// A pod whose turn comes after those of a lower order; without an order it is the controller's own, which goes last.
pub(super) fn behind(
    cluster: &Cluster,
    pod: &Pod,
    order: Option<i32>,
    earlier: &[(&Pod, i32, Option<Outlook>)],
) -> Option<Wait> {
    let first = earlier.iter().map(|(_, order, _)| *order).min()?;
    let outlook = earlier.iter().filter_map(|(.., outlook)| *outlook).max().unwrap_or(Outlook::WillClear);
    let pods = words::count(earlier.len(), "pod");
    let are = if earlier.len() == 1 { "is" } else { "are" };
    let names = words::list(earlier, |(pod, ..)| pod.name.to_string());
    // Their own entries say what to change.
    let holding: Vec<&Pod> =
        earlier.iter().filter(|(.., of)| *of == Some(outlook)).map(|(pod, ..)| *pod).collect();
    let first_of_all = if outlook == Outlook::WillClear {
        "nothing to change: wait until those are gone".to_owned()
    } else {
        format!("do what is said of {}", words::list(&holding, |pod| pod.name.to_string()))
    };
    let (message, otherwise) = match order {
        Some(order) => (
            format!(
                "Its order is {order}, and {pods} of a lower order, from {first} on, {are} still on the node: {names}."
            ),
            ", or change the orders in spec.pods.rules",
        ),
        None => (
            format!(
                "The controller that drains the node runs in this pod, so it goes last, and {pods} {are} still on the \
                 node: {names}."
            ),
            "",
        ),
    };
    Some(Wait {
        reason: Reason::AwaitingOrder,
        outlook,
        budgets: cluster.budgets_of(pod).map(|budget| budget.name.clone()).collect(),
        message,
        remedy: format!("{first_of_all}{otherwise}"),
    })
}

/// The controller's own pod, whose lease is handed over to another replica first.
pub(super) fn awaits_replica(cluster: &Cluster, pod: &Pod, coming: &[(&Pod, Timestamp)]) -> Wait {
    Wait {
        reason: Reason::AwaitingOrder,
        outlook: Outlook::WillClear,
        budgets: cluster.budgets_of(pod).map(|budget| budget.name.clone()).collect(),
        message: format!(
            "The controller that drains the node runs in this pod and hands over to another replica before it goes; of \
             those {} {} going or starting.",
            words::list(coming, |(pod, _)| words::placed(pod)),
            if coming.len() == 1 { "is" } else { "are" },
        ),
        remedy:
            "nothing to change: wait until another replica is Ready; without one the controller evicts itself"
                .to_owned(),
    }
}

/// The controller's own pod, which nobody would replace.
pub(super) fn indispensable(cluster: &Cluster, pod: &Pod, outlook: Outlook) -> Wait {
    Wait {
        reason: Reason::ReturnsToNode,
        outlook,
        budgets: cluster.budgets_of(pod).map(|budget| budget.name.clone()).collect(),
        message: "The controller that drains the node runs in this pod, no other replica is Ready on another node, and no \
                  other Ready node may have it that is not cordoned: evicted, it could not start again, and nobody would \
                  give this node back."
            .to_owned(),
        remedy: "add or uncordon a node that the controller may be on, or run two replicas of it on different nodes; a rule \
                 with action Skip in spec.pods.rules leaves it where it is"
            .to_owned(),
    }
}
