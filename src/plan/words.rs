//! The sentences about nodes and plans. Those about pods come from room `explain`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::survey::{Survey, Surveyed};
use crate::api::{NodeReason, Nodes};
use crate::cluster::Text;

/// How many pods or nodes a sentence names.
const NAMED: usize = 3;

/// An instant as people and status write it.
pub fn instant(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `a, b, c and 4 more`.
pub fn list(names: &[String]) -> String {
    let named = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// `1 pod`, `2 pods`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Why a plan without nodes does nothing.
pub fn no_nodes(nodes: &Nodes) -> String {
    if nodes.selector.is_some() {
        "nodes.selector matches no node: correct the selector, or label the nodes".to_owned()
    } else {
        format!("there is no node named {}: correct nodes.names", list(&nodes.names))
    }
}

/// Why a plan with too many nodes does nothing.
pub fn too_many_nodes(selected: usize, most: usize) -> String {
    format!("the plan has {selected} nodes and can take {most}: write several plans, each for a part of them")
}

/// Why a node that could be started is not.
pub fn awaiting_slot() -> String {
    "one node is drained at a time; this one has not had its turn".to_owned()
}

/// Why a node is not touched, if a pod on it never clears.
pub fn blocked(survey: &Survey) -> Option<String> {
    let blockers: Vec<&Surveyed> = survey.never_clear().collect();
    let first = blockers.first()?;
    let more = match blockers.len() - 1 {
        0 => String::new(),
        more => format!(" (and {} that can never go either)", count(more, "more pod")),
    };
    Some(format!("not touched: {}{more}", sentence(first)))
}

/// Why a node has failed at its deadline.
pub fn timed_out(survey: &Survey) -> String {
    let left = survey.pods.len();
    let waiting = survey.waiting().next().map(sentence);
    let what = waiting.unwrap_or_else(|| "their end was not seen in time".to_owned());
    format!("{} left at the deadline: {what}", count(left, "pod"))
}

/// Why a plan stands still when nothing is left but blocked nodes.
pub fn all_blocked(pending: &BTreeMap<Text, (NodeReason, String)>, until: Timestamp) -> String {
    let first =
        pending.iter().next().map(|(node, (_, message))| format!("{node}: {message}")).unwrap_or_default();
    let fail =
        if pending.len() == 1 { "1 node fails".to_owned() } else { format!("{} nodes fail", pending.len()) };
    format!("no node can be started; {fail} at {} unless somebody changes that; {first}", instant(until))
}

/// A waiting pod and what holds it.
pub fn sentence(surveyed: &Surveyed) -> String {
    let name = format!("{}/{}", surveyed.pod.namespace, surveyed.pod.name);
    match &surveyed.judgement.wait {
        Some(wait) => format!("pod {name} ({}): {}", wait.reason, pod_message(&wait.message, &wait.remedy)),
        None => format!("pod {name}"),
    }
}

/// A pod's message with its remedy, as two sentences.
pub fn pod_message(message: &str, remedy: &str) -> String {
    let message = message.trim_end_matches('.');
    let mut letters = remedy.chars();
    match letters.next() {
        Some(first) => format!("{message}. {}{}", first.to_uppercase(), letters.as_str()),
        None => message.to_owned(),
    }
}

/// The text within `limit` bytes, cut between characters.
pub fn bounded(text: String, limit: usize) -> String {
    const MARK: &str = " …";
    if text.len() <= limit {
        return text;
    }
    if limit < MARK.len() {
        return String::new();
    }
    let mut end = limit - MARK.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", text.get(..end).unwrap_or_default())
}
