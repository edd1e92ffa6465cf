//! How a drain went, wherever it was played.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result};
use drainplan::api::{DrainPlanStatus, Reason};

use super::drains::Drain;

/// What is compared.
#[derive(Debug, Default)]
pub struct Course {
    /// How the plan has ended.
    pub ended: String,
    /// How each node has ended: phase and reason.
    pub nodes: BTreeMap<String, String>,
    /// How many pods were evicted, by workload and node.
    pub moved: BTreeMap<String, usize>,
    /// What was said of waiting pods, by workload. Of equal pods the names decide which one goes first, and they differ.
    pub reasons: BTreeSet<String>,
    /// From the plan's creation to the status that ends it.
    pub took: Duration,
}

impl Course {
    /// From all statuses of a plan, in order, without what the names of its nodes begin with.
    pub fn of(drain: &Drain, statuses: &[DrainPlanStatus], prefix: &str, took: Duration) -> Result<Self> {
        let last = statuses.last().context("the plan has no status")?;
        let short = |node: &str| node.strip_prefix(prefix).unwrap_or(node).to_owned();
        let mut course = Self { took, ended: format!("{:?}", last.phase), ..Self::default() };
        for node in &last.nodes {
            let reason = node.reason.as_deref().unwrap_or("-");
            course.nodes.insert(short(&node.name), format!("{:?} {reason}", node.phase));
        }
        for pod in statuses.iter().flat_map(|status| &status.nodes).flat_map(|node| &node.waiting) {
            // Whether a status is written in the very moment in which a pod ends is chance.
            if !(pod.reason == Reason::Terminating.as_str() && drain.ends_at_once(&pod.pod)) {
                course.reasons.insert(format!("{} {}", drain.workload_of(&pod.pod), pod.reason));
            }
        }
        Ok(course)
    }

    /// A pod was evicted.
    pub fn moved(&mut self, workload: &str, node: &str) {
        *self.moved.entry(format!("{workload} from {node}")).or_default() += 1;
    }

    /// In what two courses differ.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let differs = [
            differ("the plan ended", &self.ended, &other.ended),
            differ("nodes ended", &self.nodes, &other.nodes),
            differ("pods were moved", &self.moved, &other.moved),
            differ("reasons were told", &self.reasons, &other.reasons),
        ];
        differs.into_iter().flatten().collect()
    }

    /// In a few words.
    pub fn told(&self) -> String {
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        for end in self.nodes.values() {
            *ends.entry(end.trim_end_matches(" -")).or_default() += 1;
        }
        let ends: Vec<String> = ends.into_iter().map(|(end, count)| format!("{count} {end}")).collect();
        let reasons: BTreeSet<&str> =
            self.reasons.iter().filter_map(|said| said.split(' ').next_back()).collect();
        let reasons: Vec<&str> = reasons.into_iter().collect();
        format!("{}; {} moved; {}", ends.join(", "), self.moved.values().sum::<usize>(), reasons.join(" "))
    }
}

fn differ<T: PartialEq + Debug>(what: &str, real: &T, virtual_: &T) -> Option<String> {
    (real != virtual_).then(|| format!("{what}: really {real:?}\n        and virtually {virtual_:?}"))
}
