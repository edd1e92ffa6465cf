//! What users write and read: the `DrainPlan`, its status, its reasons and the names it leaves on nodes.

mod duration;
mod hand_off;
mod lenient;
mod names_rules;
mod pace;
mod pods;
mod reasons;
mod spec;
mod status;
pub mod syntax;
mod window;

pub use duration::{Pause, PlanDuration};
pub use hand_off::{HandOff, Then, Until};
pub use pace::Pace;
pub use pods::{Eviction, PodAction, PodPolicy, PodRequirement, PodRule, PodSelector, Protected, Unbudgeted};
pub use reasons::{Finding, NodeReason, Outlook, Reason};
pub use spec::{
    DrainPlan, DrainPlanSpec, IntOrPercent, NodeRequirement, NodeSelector, Nodes, OnNodeTimeout,
    RequirementOperator, Timeouts,
};
pub use status::{
    BudgetNumbers, BudgetStatus, DrainPlanStatus, LastRun, MovedOwner, NodeCounts, NodePhase, NodeStatus,
    PlanPhase, PodCounts, ReturnedPod, WaitingPod, YieldedNode, condition,
};
pub use window::{Exclusion, OnWindowEnd, Repeat, Window};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt as _;

/// Names that the controller leaves on other objects.
pub mod names {
    /// Annotation on a node that a plan holds: `<plan name>/<plan uid>/<run>/<since>`.
    pub const CLAIM: &str = "drainplan.dev/plan";
    /// Annotation on a claimed node that somebody had cordoned before us.
    pub const WAS_CORDONED: &str = "drainplan.dev/was-cordoned";
    /// Annotation on a node that a plan left cordoned as it was told to; the value is the plan's name.
    pub const KEPT_CORDONED: &str = "drainplan.dev/kept-cordoned";
    /// Annotation on a node that a plan left cordoned because it was not Ready after its hand-off; the value is the
    /// plan's name.
    pub const LEFT_CORDONED: &str = "drainplan.dev/left-cordoned";
    /// Annotation by which somebody ends the hand-off of a node; the value is the plan's name.
    pub const RELEASE: &str = "drainplan.dev/release";
    /// Label of nodes that are handed off, for whoever works on them to select.
    pub const STATE: &str = "drainplan.dev/state";
    /// Its value.
    pub const DRAINED: &str = "drained";
    /// Key of the taint, with the effect `PreferNoSchedule`, on nodes whose turn comes soon.
    pub const PENDING_TAINT: &str = "drainplan.dev/pending";
    /// Finalizer on a plan that may hold nodes.
    pub const FINALIZER: &str = "drainplan.dev/nodes";
    /// All annotations of ours begin so.
    pub const PREFIX: &str = "drainplan.dev/";
}

/// The `CustomResourceDefinition`.
///
/// Nothing is nullable: the server then drops a null as if the field were absent, and no rule needs to think of it.
///
/// A new plan has a status about no generation of it: tools that go by kstatus would take one without any status for one
/// that is as it should be (`pkg/kstatus/status` of cli-utils).
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    let mut crd = DrainPlan::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            forbid_null(schema);
            let status = schema.properties.as_mut().and_then(|properties| properties.get_mut("status"));
            if let Some(status) = status {
                status.default = Some(JSON(serde_json::json!({"observedGeneration": -1})));
            }
        }
    }
    crd
}

fn forbid_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        forbid_null(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => forbid_null(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(forbid_null),
        None => {}
    }
}
