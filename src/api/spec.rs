//! The spec of a `DrainPlan`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    DrainPlanStatus, Exclusion, HandOff, OnWindowEnd, Pace, PlanDuration, PodPolicy, Repeat, Window,
    names_rules,
};

/// Empties nodes for maintenance, one after the other, as their pods' budgets allow.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "drainplan.dev",
    version = "v1alpha1",
    kind = "DrainPlan",
    shortname = "dp",
    status = "DrainPlanStatus",
    derive = "PartialEq",
    doc = "Empties nodes for maintenance and says, for every pod still waiting, which budget it waits on and why.",
    validation = Rule::new("!has(oldSelf.status) || !has(oldSelf.status.finishedAt) || self.spec == oldSelf.spec")
        .message("the plan has ended and its spec is frozen: delete it and create a new one"),
    validation = Rule::new("!has(self.spec.preflightOnly) || !self.spec.preflightOnly || \
        (has(oldSelf.spec.preflightOnly) && oldSelf.spec.preflightOnly) || \
        !has(oldSelf.status) || !has(oldSelf.status.startedAt)")
        .message("the plan has started, so a preflight is too late: write suspend: true to hold it"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.progress", description = "nodes done, of all"),
    printcolumn(name = "Waiting", type_ = "integer", json_path = ".status.podCounts.waiting", description = "pods that cannot be evicted now"),
    printcolumn(name = "Blocked On", type_ = "string", json_path = ".status.blockedOn", description = "the budgets they wait on"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Next Window", type_ = "string", json_path = ".status.nextWindow", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.handOff) && (has(self.handOff.then) || \
        (has(self.handOff.until) && self.handOff.until != 'Drained'))")
    .message("handOff.then says what happens to an empty node: write KeepCordoned or Uncordon"))]
// A duration that cannot be read is refused by its own rule.
#[x_kube(validation = Rule::new("!has(self.windows) || (has(self.onWindowEnd) && self.onWindowEnd == 'Finish') || \
        self.windows.all(w, !w.duration.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(w.duration) >= \
        (has(self.timeouts) && has(self.timeouts.node) && self.timeouts.node.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') \
        ? duration(self.timeouts.node) : duration('15m')))")
    .message("a window is shorter than timeouts.node, so no node would ever be started: write a longer window, a shorter timeouts.node, or onWindowEnd: Finish"))]
#[x_kube(validation = Rule::new("!has(self.repeat) || self.repeat != 'EachWindow' || (has(self.windows) && size(self.windows) > 0)")
    .message("repeat: EachWindow starts a run whenever a window opens: write windows"))]
#[x_kube(validation = Rule::new("!has(self.repeat) || self.repeat != 'EachWindow' || \
        !(has(self.handOff) && has(self.handOff.then) && self.handOff.then == 'KeepCordoned')")
    .message("repeat: EachWindow takes the same nodes again and again: write handOff.then: Uncordon"))]
#[x_kube(validation = Rule::new("!has(self.repeat) || self.repeat != 'EachWindow' || \
        !(has(self.onNodeTimeout) && self.onNodeTimeout == 'Keep')")
    .message("repeat: EachWindow takes the same nodes again and again: write onNodeTimeout: Return"))]
pub struct DrainPlanSpec {
    /// Which nodes to drain.
    pub nodes: Nodes,
    /// Start nothing and evict nothing while true; deadlines go on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
    /// Judge all nodes and their pods, write that to the status, and touch nothing; false starts the run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub preflight_only: bool,
    /// How often the plan runs. Default: Once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    /// How fast, and in which steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// When nodes may be started and pods evicted; without any, at any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub windows: Vec<Window>,
    /// Times in which nothing is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub exclusions: Vec<Exclusion>,
    /// What happens to nodes that are being drained when a window ends or an exclusion begins. Default: Return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_window_end: Option<OnWindowEnd>,
    /// How long things may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
    /// What happens to a node that is not empty at its deadline; it is Failed either way. Default: Return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_node_timeout: Option<OnNodeTimeout>,
    /// How many nodes may fail, as a number or a percentage of the selected nodes, rounded down; one more ends the
    /// plan at once. A node whose hand-off fails always does. Default: 100%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failed_nodes: Option<IntOrPercent>,
    /// Which pods may be evicted, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodPolicy>,
    /// What happens on the empty node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_off: Option<HandOff>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Which nodes, by labels or by names.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.selector) || (has(self.names) && size(self.names) > 0)")
    .message("nodes: write either selector or names"))]
#[x_kube(validation = Rule::new("!(has(self.selector) && has(self.names) && size(self.names) > 0)")
    .message("nodes: write either selector or names, not both"))]
pub struct Nodes {
    /// By labels; taken by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<NodeSelector>,
    /// By names; taken in the order written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000), inner(length(min = 1, max = 253)), transform = names_rules::node_names)]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Vec<String>,
}

/// A label selector.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)")
    .message("an empty selector would take every node; if that is meant write matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]"))]
pub struct NodeSelector {
    /// Labels that must be there with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64), transform = names_rules::labels)]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements that must all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<NodeRequirement>,
}

/// One requirement of a selector.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.operator in ['Exists', 'DoesNotExist'] || (has(self.values) && size(self.values) > 0)")
    .message("write the values for operator In or NotIn"))]
#[x_kube(validation = Rule::new("self.operator in ['In', 'NotIn'] || !has(self.values) || size(self.values) == 0")
    .message("write no values for operator Exists or DoesNotExist"))]
pub struct NodeRequirement {
    /// The label's key.
    #[schemars(length(min = 1, max = 317), transform = names_rules::label_key)]
    pub key: String,
    /// How the value is compared.
    pub operator: RequirementOperator,
    /// With what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 63)), transform = names_rules::label_values)]
    pub values: Vec<String>,
}

/// The operators of label selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequirementOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// How long things may take.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// From the start of a node until it must be empty; also how long a plan of which no node can be started
    /// waits. Default: 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<PlanDuration>,
    /// From a node's hand-off until it must be back, released or gone, as handOff.until says. Default: 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_off: Option<PlanDuration>,
    /// From the plan's start until it is ended. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanDuration>,
}

/// What happens to a node that is not empty at its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnNodeTimeout {
    /// Give it back: uncordoned, unless it was cordoned before.
    #[default]
    Return,
    /// Leave it cordoned.
    Keep,
}

/// A number or a percentage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrPercent {
    /// A number.
    Int(i32),
    /// `50%`.
    Percent(String),
}

impl IntOrPercent {
    /// The number, or the percentage of `total` rounded down; `None` when it is neither.
    #[must_use]
    pub fn of(&self, total: usize) -> Option<usize> {
        self.hundredths(total).map(|hundredths| hundredths / 100)
    }

    /// The same, rounded up.
    #[must_use]
    pub fn rounded_up(&self, total: usize) -> Option<usize> {
        self.hundredths(total).map(|hundredths| hundredths.div_ceil(100))
    }

    fn hundredths(&self, total: usize) -> Option<usize> {
        match self {
            Self::Int(number) => usize::try_from(*number).ok().map(|number| number.saturating_mul(100)),
            Self::Percent(text) => {
                let percent: usize = text.strip_suffix('%')?.parse().ok()?;
                Some(total.saturating_mul(percent))
            }
        }
    }
}

impl FromStr for IntOrPercent {
    type Err = String;

    /// As it is written on a command line.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let most = if text.ends_with('%') { 100 } else { i32::MAX };
        match number.parse::<i32>() {
            Ok(number) if (0..=most).contains(&number) => {
                Ok(if text.ends_with('%') { Self::Percent(text.to_owned()) } else { Self::Int(number) })
            }
            _ => {
                Err("write a number of nodes, such as 2, or a percentage up to 100%, such as 25%".to_owned())
            }
        }
    }
}

impl JsonSchema for IntOrPercent {
    fn schema_name() -> Cow<'static, str> {
        "IntOrPercent".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "maxLength": 4,
            "x-kubernetes-validations": [{
                "rule": "type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[0-9]{1,2})%$')",
                "message": "write a number of nodes, such as 2, or a percentage up to 100%, such as 25%",
            }],
        })
    }
}

impl DrainPlanSpec {
    /// How long a node may take.
    #[must_use]
    pub fn node_timeout(&self) -> PlanDuration {
        let written = self.timeouts.as_ref().and_then(|timeouts| timeouts.node.clone());
        written.unwrap_or_else(|| PlanDuration::minutes(15))
    }

    /// Whether nodes in progress go on when a window ends.
    #[must_use]
    pub fn finishes_after_window(&self) -> bool {
        self.on_window_end == Some(OnWindowEnd::Finish)
    }

    /// Whether a run that has ended is followed by another.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.repeat == Some(Repeat::EachWindow)
    }

    /// Whether pods are held back by the plan.
    #[must_use]
    pub fn pod_policy(&self) -> PodPolicy {
        self.pods.clone().unwrap_or_default()
    }
}
