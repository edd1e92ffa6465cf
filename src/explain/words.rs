//! How things are named in messages.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Standing;
use crate::cluster::{Amount, Cluster, Operator, Pdb, Pod, Requirement, Selector};

/// How many names are written before "and N more".
pub(super) const NAMES: usize = 3;
/// The longest message.
const MESSAGE: usize = 600;
/// The longest quotation.
const QUOTE: usize = 240;

/// A time, in whole seconds: messages must not change from one look to the next.
pub(super) fn at(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `1 pod`, `2 pods`.
pub(super) fn count(number: impl TryInto<i64>, one: &str) -> String {
    let number = number.try_into().unwrap_or(i64::MAX);
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// The first names, and how many more there are.
pub(super) fn list<T>(items: &[T], mut name: impl FnMut(&T) -> String) -> String {
    let named: Vec<String> = items.iter().take(NAMES).map(&mut name).collect();
    let more = items.len().saturating_sub(NAMES);
    if more > 0 {
        return format!("{} and {more} more", named.join(", "));
    }
    match named.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => named.concat(),
    }
}

/// Words of others, in quotation marks and on one line.
pub(super) fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("“{}”", cut(&line, QUOTE))
}

/// The scheduler's words about the pod itself: what preemption would not help is left out.
pub(super) fn scheduler(text: &str) -> String {
    quote(text.split(" preemption: ").next().unwrap_or(text))
}

/// A message no longer than a status may carry.
pub(super) fn bounded(message: String) -> String {
    if message.chars().count() <= MESSAGE { message } else { cut(&message, MESSAGE) }
}

/// Cut behind a word: half a name is no name. One that is too long by itself is cut anywhere, with the mark right behind it.
fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let kept: String = text.chars().take(longest.saturating_sub(1)).collect();
    match kept.rfind(char::is_whitespace).and_then(|at| kept.get(..at)) {
        Some(words) if words.len() > kept.len() / 2 => format!("{} …", words.trim_end()),
        _ => format!("{kept}…"),
    }
}

/// A budget as `namespace/name`.
pub(super) fn budget(budget: &Pdb) -> String {
    format!("{}/{}", budget.namespace, budget.name)
}

/// What was written: `minAvailable: 3`.
pub(super) fn field(budget: &Pdb) -> String {
    match (&budget.max_unavailable, &budget.min_available) {
        (Some(amount), _) => format!("maxUnavailable: {}", self::amount(amount)),
        (None, Some(amount)) => format!("minAvailable: {}", self::amount(amount)),
        (None, None) => "neither minAvailable nor maxUnavailable".to_owned(),
    }
}

/// What was written and of how many pods: `minAvailable 3 of 3`.
pub(super) fn terms(budget: &Pdb, standing: &Standing) -> String {
    let numbers = &standing.computed.numbers;
    let (field, amount, pods) = match (&budget.max_unavailable, &budget.min_available) {
        // The controller reads maxUnavailable first.
        (Some(amount), _) => {
            ("maxUnavailable", amount, numbers.expected_pods.saturating_sub(numbers.desired_healthy))
        }
        (None, Some(amount)) => ("minAvailable", amount, numbers.desired_healthy),
        (None, None) => return self::field(budget),
    };
    let expected = numbers.expected_pods;
    match amount {
        _ if standing.computed.sync_error.is_some() || !standing.computed.unread_scales.is_empty() => {
            format!("{field} {}", self::amount(amount))
        }
        Amount::Int(_) => format!("{field} {} of {expected}", self::amount(amount)),
        Amount::Text(text) => format!("{field} {text} of {expected} = {pods}"),
    }
}

/// An amount as it was written.
pub(super) fn amount(amount: &Amount) -> String {
    match amount {
        Amount::Int(number) => number.to_string(),
        Amount::Text(text) => text.to_string(),
    }
}

/// A selector as kubectl writes it: `app=web,tier in (a,b),!canary`.
pub(super) fn selector(selector: &Selector) -> String {
    let requirement = |requirement: &Requirement| {
        let key = &requirement.key;
        let values = requirement.values.join(",");
        match (requirement.operator, requirement.values.len()) {
            (Operator::In, 1) => format!("{key}={values}"),
            (Operator::In, _) => format!("{key} in ({values})"),
            (Operator::NotIn, _) => format!("{key} notin ({values})"),
            (Operator::Exists, _) => key.to_string(),
            (Operator::DoesNotExist, _) => format!("!{key}"),
        }
    };
    let all: Vec<String> = selector.requirements.iter().map(requirement).collect();
    if all.is_empty() { "everything".to_owned() } else { cut(&all.join(","), QUOTE) }
}

/// A pod and its node: `web-0 on node-a`.
pub(super) fn placed(pod: &Pod) -> String {
    match &pod.node {
        Some(node) => format!("{} on {node}", pod.name),
        None => pod.name.to_string(),
    }
}

/// A pod, its node and what ails it.
pub(super) fn ailing(cluster: &Cluster, pod: &Pod) -> String {
    format!("{} ({})", placed(pod), ailment(cluster, pod))
}

/// What to do about unready pods: on a node that is ill it is the node.
pub(super) fn repair(cluster: &Cluster, pods: &[&Pod]) -> String {
    let (ill, others): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(|pod| node_ails(cluster, pod));
    let nodes: BTreeSet<&str> = ill.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let nodes: Vec<&str> = nodes.into_iter().collect();
    let bring = (!nodes.is_empty()).then(|| format!("bring {} back", list(&nodes, ToString::to_string)));
    let repair = (!others.is_empty()).then(|| format!("repair {}", list(&others, |pod| placed(pod))));
    repair.into_iter().chain(bring).collect::<Vec<_>>().join(", and ")
}

/// Its node is not Ready, and nothing else is known to ail it.
fn node_ails(cluster: &Cluster, pod: &Pod) -> bool {
    let own = pod.trouble.as_ref().is_some_and(|trouble| trouble.restarts > 0 || trouble.waiting.is_some());
    cluster.node_is_ill(pod) && !own
}

pub(super) fn ailment(cluster: &Cluster, pod: &Pod) -> String {
    let since = pod.trouble.as_ref().and_then(|trouble| trouble.unready_since);
    if let Some(trouble) = &pod.trouble {
        let restarts = (trouble.restarts > 0).then(|| count(trouble.restarts, "restart"));
        let parts: Vec<String> = trouble.waiting.iter().map(ToString::to_string).chain(restarts).collect();
        if !parts.is_empty() {
            let since = since.map(|since| format!("not Ready since {}", at(since)));
            return parts.into_iter().chain(since).collect::<Vec<_>>().join(", ");
        }
    }
    let node = pod.node.as_ref().and_then(|name| cluster.node(name));
    match (node, pod.created) {
        (Some(node), _) if &*node.ready != "True" => "its node is not Ready".to_owned(),
        (None, _) if pod.node.is_some() && cluster.knows_all_nodes() => {
            "its node is gone, and pod garbage collection deletes it".to_owned()
        }
        (_, created) => match (since, created) {
            (Some(since), _) => format!("not Ready since {}", at(since)),
            (None, Some(created)) => format!("not Ready, created {}", at(created)),
            (None, None) => "not Ready".to_owned(),
        },
    }
}
