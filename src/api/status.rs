//! The status of a `DrainPlan`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Outlook, lenient};

/// Condition types.
pub mod condition {
    /// True when the plan has completed.
    pub const READY: &str = "Ready";
    /// Present while the plan runs.
    pub const RECONCILING: &str = "Reconciling";
    /// Present when only a person can help.
    pub const STALLED: &str = "Stalled";
    /// True while pods wait; names their budgets.
    pub const DRAIN_BLOCKED: &str = "DrainBlocked";
    /// Whether a window is open; present when the plan has windows or exclusions.
    pub const WINDOW_OPEN: &str = "WindowOpen";
    /// Whether few enough nodes are unhealthy; present until the plan ends.
    pub const NODES_HEALTHY: &str = "NodesHealthy";
    /// Whether no node is blocked; present while `preflightOnly` is true.
    pub const PREFLIGHT_PASSED: &str = "PreflightPassed";
}

/// What the controller has done and what it waits for.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainPlanStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// A summary for people; machines read the conditions.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub phase: Option<PlanPhase>,
    /// Which run this is about, counted from 1; only with `repeat: EachWindow`.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub run: Option<i32>,
    /// When the first node could have been taken.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the plan ended; never with `repeat: EachWindow`.
    #[serde(default, deserialize_with = "lenient::happened", skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// The last run that has ended; only with `repeat: EachWindow`.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// When all nodes were last judged, where they are many; only with `preflightOnly`.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub preflight_at: Option<Time>,
    /// Since when nothing is in progress and nothing can be started.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Time>,
    /// When the plan's next window opens.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub next_window: Option<Time>,
    /// Nodes done, of all, such as `5/12`.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The budgets that waiting pods are held by, such as `shop/web +2`.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub blocked_on: Option<String>,
    /// How many nodes are where.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub node_counts: Option<NodeCounts>,
    /// How many pods were moved and how many wait.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub pod_counts: Option<PodCounts>,
    /// Ready, Reconciling, Stalled, DrainBlocked, WindowOpen, NodesHealthy.
    #[serde(default, deserialize_with = "lenient::each", skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// All nodes in progress, and up to 100 others: pending ones that are blocked or held by another, and ended ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeStatus>,
    /// Names of ended nodes beyond those in `nodes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_done: Vec<String>,
    /// Names of failed nodes beyond those in `nodes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_failed: Vec<String>,
    /// Names of skipped nodes beyond those in `nodes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_skipped: Vec<String>,
    /// Nodes that gave way to older ones, which waited for the same budgets; they are taken up last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<YieldedNode>,
    /// Owners whose pods this plan evicts or has evicted, until as many of their pods are Ready again as before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedOwner>,
    /// The budgets that touch a waiting pod, with recomputed numbers.
    #[serde(default, deserialize_with = "lenient::each", skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetStatus>,
}

impl DrainPlanStatus {
    /// Whether the plan has ended, or is between two runs.
    #[must_use]
    pub fn run_has_ended(&self) -> bool {
        self.finished_at.is_some() || self.ended_run().is_some()
    }

    /// The present run, if it has ended and another one may follow.
    #[must_use]
    pub fn ended_run(&self) -> Option<&LastRun> {
        self.last_run.as_ref().filter(|last| last.run == self.present_run())
    }

    /// The number of the present run.
    #[must_use]
    pub fn present_run(&self) -> i32 {
        self.run.unwrap_or(1)
    }
}

/// A run that has ended.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Which, counted from 1.
    pub run: i32,
    /// When it started.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(deserialize_with = "lenient::in_time")]
    pub finished_at: Time,
    /// How: Completed or Failed.
    pub phase: PlanPhase,
    /// How many nodes ended how.
    #[serde(default)]
    pub node_counts: NodeCounts,
    /// How many pods it evicted.
    #[serde(default)]
    pub pods_evicted: i32,
    /// How it ended, as a sentence.
    #[serde(default)]
    pub message: String,
}

/// The phase of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PlanPhase {
    /// Not started, or nothing to do.
    Pending,
    /// Waiting for a window; no node is in progress.
    Scheduled,
    /// Nodes are being drained, or waited for.
    Running,
    /// Asked to pause.
    Suspended,
    /// All nodes are done.
    Completed,
    /// It ended with nodes that are not.
    Failed,
}

/// How many nodes are where; `total` is the sum of the others without `blocked`, which is part of `pending`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    pub total: i32,
    pub pending: i32,
    pub draining: i32,
    pub handed_off: i32,
    pub done: i32,
    pub failed: i32,
    pub skipped: i32,
    pub blocked: i32,
}

/// Pods of the plan's nodes.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodCounts {
    /// Pods whose eviction the server accepted and that are gone, or going.
    pub evicted: i32,
    /// Pods that cannot be evicted now.
    pub waiting: i32,
    /// Pods that are going.
    pub terminating: i32,
}

/// The phase of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NodePhase {
    /// Not started.
    Pending,
    /// Cordoned; its pods are being evicted.
    Draining,
    /// Empty, in the hands of whoever works on it.
    HandedOff,
    /// Ended well.
    Done,
    /// Ended at a deadline.
    Failed,
    /// Left alone.
    Skipped,
}

/// One node of the plan.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Its uid: a node reborn under the same name is another node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Where it is.
    pub phase: NodePhase,
    /// Why, as one word.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Z][A-Za-z]{0,63}$"))]
    pub reason: Option<String>,
    /// Why, as a sentence.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was started.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it must be empty or, once it is handed off, back.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When it was empty; its hand-off begins then.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub drained_at: Option<Time>,
    /// Its boot ID when it was handed off.
    #[serde(
        default,
        rename = "bootID",
        deserialize_with = "lenient::or_absent",
        skip_serializing_if = "Option::is_none"
    )]
    pub boot_id: Option<String>,
    /// The version of its kubelet when it was handed off.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub kubelet_version: Option<String>,
    /// When it ended.
    #[serde(default, deserialize_with = "lenient::or_absent", skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Pods still to go, waiting and terminating ones included.
    pub pods_left: i32,
    /// Pods evicted from it so far.
    pub pods_evicted: i32,
    /// The pods that wait, at most 20.
    #[serde(default, deserialize_with = "lenient::each", skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingPod>,
    /// How many more wait.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_waiting: i32,
    /// Pods that came back to this node although it was cordoned, at most two of an owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<ReturnedPod>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(value: &i32) -> bool {
    *value == 0
}

/// A node that gave way to an older one and is pending again.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct YieldedNode {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The older node; while that one is in progress this one is not started.
    pub to: String,
    /// When it gave way.
    pub at: Time,
    /// Pods evicted from it until then.
    pub pods_evicted: i32,
    /// Why, as a sentence.
    pub message: String,
}

/// A pod that came back to a node that was being drained.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnedPod {
    /// Its uid.
    pub pod: String,
    /// The uid of its controller.
    pub owner: String,
}

/// An owner of pods that a plan moves. It is written down in the status that says that the first of its nodes is
/// started, before any of its pods is evicted.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovedOwner {
    /// The owner's namespace.
    pub namespace: String,
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind: a Deployment instead of its ReplicaSets.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Pods of it that the plan has evicted.
    #[serde(default)]
    pub evicted: i32,
    /// How many of its pods were Ready before.
    #[serde(default)]
    pub ready_before: i32,
    /// The budget that selects its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// How many pods that budget expected before, where it counts by its owners' scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_expected: Option<i32>,
}

/// A pod that waits, and why.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingPod {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The budgets that select it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<String>,
    /// Why it waits, as one word.
    #[schemars(regex(pattern = "^[A-Z][A-Za-z]{0,63}$"))]
    pub reason: String,
    /// Whether waiting will help.
    pub outlook: Outlook,
    /// Why, with the numbers and the names, and what to change.
    pub message: String,
    /// Since when it waits for this reason.
    pub since: Time,
}

/// A budget that touches a waiting pod.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// The budget's namespace.
    pub namespace: String,
    /// The budget's name.
    pub name: String,
    /// The numbers, recomputed.
    #[serde(flatten)]
    pub numbers: BudgetNumbers,
    /// The reported numbers, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<BudgetNumbers>,
    /// How many pods of the plan wait on it.
    pub waiting_pods: i32,
}

/// The four numbers of a budget.
#[derive(KubeSchema, Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetNumbers {
    pub expected_pods: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub disruptions_allowed: i32,
}
