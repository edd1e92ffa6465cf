//! How a plan ended, and whether it was to end so. What was seen is compared, and compared again with falsified
//! expectations.

use std::collections::BTreeMap;
use std::fmt::Debug;

use drainplan::api::{NodePhase, PlanPhase};

use crate::expect::{End, Mention, NodeEnd};
use crate::mention::said as mentions;

/// How a plan ended.
pub struct Ended {
    pub plan: Option<PlanPhase>,
    pub nodes: BTreeMap<String, Node>,
    /// The pods that were on the plan's nodes at rest.
    pub pods: Vec<Pod>,
    /// What the statuses have said about waiting pods.
    pub said: Vec<Said>,
    /// The names of all pods that there were meanwhile.
    pub names: Vec<String>,
    /// Evictions that the server has accepted.
    pub evictions: usize,
    /// What must not be in any case.
    pub broken: Vec<String>,
    /// The last status and the course of things, for people.
    pub told: String,
}

/// How a node ended.
pub struct Node {
    pub phase: Option<NodePhase>,
    pub cordoned: Option<bool>,
    /// What was done to it.
    pub touched: Vec<String>,
}

/// A pod that was there at rest.
pub struct Pod {
    pub name: String,
    /// No object has its uid any more.
    pub gone: bool,
}

/// What a status has said about a waiting pod.
pub struct Said {
    pub pod: String,
    pub reason: String,
    pub message: String,
}

impl Ended {
    /// What is wrong; `compared` counts what was looked at.
    pub fn differences(&self, end: &End, compared: &mut usize) -> Vec<String> {
        let mut wrong = self.broken.clone();
        if let Some(expected) = end.plan {
            equal(&mut wrong, compared, "the plan", expected, self.plan);
        }
        for (name, expected) in &end.nodes {
            self.node(name, expected, compared, &mut wrong);
        }
        self.whereabouts(end, compared, &mut wrong);
        self.words(end, compared, &mut wrong);
        if let Some(expected) = end.evictions {
            equal(&mut wrong, compared, "the number of accepted evictions", expected, Some(self.evictions));
        }
        wrong
    }

    fn node(&self, name: &str, expected: &NodeEnd, compared: &mut usize, wrong: &mut Vec<String>) {
        let Some(node) = self.nodes.get(name) else {
            return wrong.push(format!("there was no node {name}"));
        };
        if let Some(phase) = expected.phase {
            equal(wrong, compared, &format!("the phase of {name}"), phase, node.phase);
        }
        if let Some(cordoned) = expected.cordoned {
            equal(wrong, compared, &format!("whether {name} is cordoned"), cordoned, node.cordoned);
        }
        if let Some(touched) = expected.touched {
            *compared += 1;
            if touched == node.touched.is_empty() {
                wrong.push(format!("{name} was {}", if touched { "not touched" } else { "touched" }));
                wrong.extend(node.touched.iter().map(|how| format!("    {how}")));
            }
        }
    }

    /// Which pods are gone and which are still there.
    fn whereabouts(&self, end: &End, compared: &mut usize, wrong: &mut Vec<String>) {
        let lists = [("moved", &end.moved, true), ("stays", &end.stays, false)];
        for (key, entry, gone) in
            lists.iter().flat_map(|(key, list, gone)| list.iter().flatten().map(move |it| (key, it, *gone)))
        {
            *compared += 1;
            if self.of(end, entry).next().is_none() {
                wrong.push(format!("{key}: no pod {entry} was on the plan's nodes at rest"));
            }
            for pod in self.of(end, entry).filter(|pod| pod.gone != gone) {
                let is = if pod.gone { "is gone" } else { "is still there" };
                wrong.push(format!("{key} {entry}: {} {is}", pod.name));
            }
        }
        for (entry, (least, most)) in &end.left {
            *compared += 1;
            if self.of(end, entry).next().is_none() {
                wrong.push(format!("left: no pod {entry} was on the plan's nodes at rest"));
            }
            let left = self.of(end, entry).filter(|pod| !pod.gone).count();
            if left < *least || left > *most {
                wrong.push(format!("left {entry}: {left}, expected {least} to {most}"));
            }
        }
        if end.moved.is_some() {
            *compared += 1;
            let unexpected = self.pods.iter().filter(|pod| pod.gone && entry_of(end, &pod.name).is_none());
            wrong.extend(unexpected.map(|pod| format!("moved: {} is gone, too", pod.name)));
        }
    }

    /// The pods of an entry.
    fn of<'s>(&'s self, end: &'s End, entry: &'s str) -> impl Iterator<Item = &'s Pod> {
        self.pods.iter().filter(move |pod| entry_of(end, &pod.name) == Some(entry))
    }

    /// What was said.
    fn words(&self, end: &End, compared: &mut usize, wrong: &mut Vec<String>) {
        let reasons = end.reasons.as_deref().unwrap_or_default();
        for reason in reasons {
            *compared += 1;
            if !self.said.iter().any(|said| said.reason == *reason) {
                let others: Vec<&str> = self.said.iter().map(|said| said.reason.as_str()).collect();
                wrong.push(format!("{reason} was never shown, but {others:?}"));
            }
        }
        for mention in &end.mentions {
            *compared += 1;
            let meant = || self.said.iter().filter(|said| reasons.contains(&said.reason));
            if !meant().any(|said| self.mentions(said, mention)) {
                wrong.push(format!("{} is not mentioned", mention.shown()));
                wrong.extend(meant().map(|said| format!("    said: {}", said.message)));
            }
        }
    }

    fn mentions(&self, said: &Said, mention: &Mention) -> bool {
        let others: Vec<&str> =
            self.names.iter().map(String::as_str).filter(|name| *name != said.pod).collect();
        mentions(&said.message, mention, &others)
    }
}

/// The entry that a pod belongs to: the one with the longest name that fits.
fn entry_of<'e>(end: &'e End, pod: &str) -> Option<&'e str> {
    end.entries().filter(|entry| pod.starts_with(entry)).max_by_key(|entry| entry.len())
}

fn equal<T: PartialEq + Debug + Copy>(
    wrong: &mut Vec<String>,
    compared: &mut usize,
    what: &str,
    expected: T,
    found: Option<T>,
) {
    *compared += 1;
    if found != Some(expected) {
        let found = found.map_or_else(|| "unknown".to_owned(), |found| format!("{found:?}"));
        wrong.push(format!("{what} is {found}, expected {expected:?}"));
    }
}
