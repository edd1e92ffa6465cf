//! What is expected of a case: `expect.yaml`, read strictly. A key that nobody knows is an error, never skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, ensure};
use drainplan::api::{NodePhase, PlanPhase};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `expect.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub id: String,
    pub source: String,
    pub summary: String,
    /// The nodes to drain.
    pub nodes: Vec<String>,
    /// What differs from the defaults in the plan's spec.
    #[serde(default)]
    pub plan: Map<String, Value>,
    /// Every control plane here can do all of them.
    #[serde(default, rename = "needs")]
    _needs: Vec<Need>,
    #[serde(default)]
    pub before: Vec<String>,
    #[serde(default)]
    pub at_rest: Vec<PodExpectation>,
    #[serde(default)]
    pub budgets: Vec<BudgetExpectation>,
    #[serde(default)]
    pub later: Vec<Later>,
    #[serde(default)]
    pub end: Option<End>,
    #[serde(default)]
    pub variants: Vec<Variant>,
    #[serde(default)]
    pub note: Option<String>,
}

/// What a harness must be able to do.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Need {
    StoppedControllerManager,
    DeadKubelet,
}

/// A further state.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Later {
    #[serde(rename = "do", default)]
    pub steps: Vec<String>,
    #[serde(default)]
    pub expect: Vec<PodExpectation>,
}

/// The same cluster under another plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub plan: Map<String, Value>,
    /// More steps before the plan is created.
    #[serde(default)]
    pub before: Vec<String>,
    /// Steps once the plan has judged the nodes.
    #[serde(default)]
    pub during: Vec<String>,
    pub end: End,
}

/// What must be said about a pod. A key that is absent is not asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodExpectation {
    pub pod: Which,
    #[serde(default)]
    pub verify: bool,
    #[serde(rename = "as", default)]
    pub subject: Option<String>,
    #[serde(default)]
    pub action: Option<String>,
    #[serde(default)]
    pub code: Option<u16>,
    #[serde(default)]
    pub budgets: Option<Vec<String>>,
    #[serde(default)]
    pub reason: Wanted,
    #[serde(default)]
    pub outlook: Wanted,
    #[serde(default)]
    pub mentions: Vec<Mention>,
}

/// Which pods an expectation is about.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    pub namespace: String,
    /// A name, or how names begin.
    pub name: String,
    #[serde(default)]
    pub node: Option<String>,
    #[serde(default)]
    pub terminating: Option<bool>,
}

/// What a message must contain.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Mention {
    Number(i64),
    Text(String),
}

/// What a budget's status must show.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetExpectation {
    pub namespace: String,
    pub name: String,
    pub expected_pods: Option<i64>,
    pub current_healthy: Option<i64>,
    pub desired_healthy: Option<i64>,
    pub disruptions_allowed: Option<i64>,
    #[serde(default)]
    pub sync_failed: bool,
    /// What is wrong with it, in any order; these and no others.
    #[serde(default)]
    pub findings: Option<BTreeSet<String>>,
}

/// How a plan over the case's nodes must end. A key that is absent is not asked for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    #[serde(default)]
    pub plan: Option<PlanPhase>,
    #[serde(default)]
    pub nodes: BTreeMap<String, NodeEnd>,
    /// Pods of the plan's nodes that are gone, by uid: all of these, and no others but those of `left`.
    #[serde(default)]
    pub moved: Option<Vec<String>>,
    /// Pods that are all still there, by uid.
    #[serde(default)]
    pub stays: Option<Vec<String>>,
    /// How many of them, at least and at most, are still there.
    #[serde(default)]
    pub left: BTreeMap<String, (usize, usize)>,
    /// Reasons that the status has shown for waiting pods, among others.
    #[serde(default)]
    pub reasons: Option<Vec<String>>,
    /// What the messages with those reasons contain.
    #[serde(default)]
    pub mentions: Vec<Mention>,
    /// Evictions that the server has accepted.
    #[serde(default)]
    pub evictions: Option<usize>,
}

/// How a node must end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeEnd {
    #[serde(default)]
    pub phase: Option<NodePhase>,
    #[serde(default)]
    pub cordoned: Option<bool>,
    /// Whether it was cordoned, written to, or a pod of it asked to go, at any time.
    #[serde(default)]
    pub touched: Option<bool>,
}

/// A key that may be absent, and whose null is a value.
#[derive(Debug, Clone, Default)]
pub enum Wanted {
    #[default]
    Anything,
    Exactly(Option<String>),
}

impl<'de> Deserialize<'de> for Wanted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::Exactly)
    }
}

impl Case {
    /// Reads the `expect.yaml` of a case's directory.
    pub fn read(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join("expect.yaml");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let case: Self =
            serde_saphyr::from_str(&text).with_context(|| format!("cannot use {}", path.display()))?;
        case.check().with_context(|| format!("cannot use {}", path.display()))?;
        ensure!(
            directory.file_name().is_some_and(|name| *name == *case.id),
            "{} calls itself {}",
            path.display(),
            case.id
        );
        Ok(case)
    }

    /// What no type can say.
    fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.at_rest.is_empty(), "nothing is asked at rest");
        ensure!(!self.nodes.is_empty(), "no node is to be drained");
        for end in self.end.iter().chain(self.variants.iter().map(|variant| &variant.end)) {
            let strange: Vec<&String> = end.nodes.keys().filter(|node| !self.nodes.contains(node)).collect();
            ensure!(strange.is_empty(), "{strange:?} are not among the nodes to drain");
            let mut names = BTreeSet::new();
            let twice = end.entries().find(|name| !names.insert(*name));
            ensure!(twice.is_none(), "{twice:?} stands twice in moved, stays and left");
            ensure!(
                end.mentions.is_empty() || end.reasons.is_some(),
                "mentions without reasons, whose messages are meant"
            );
        }
        Ok(())
    }
}

impl End {
    /// The names in `moved`, `stays` and `left`.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        let listed = self.moved.iter().chain(&self.stays).flatten();
        listed.chain(self.left.keys()).map(String::as_str)
    }
}
