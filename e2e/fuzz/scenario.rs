//! A course of events as data: a cluster, plans, and what goes wrong. It is drawn from a seed, and can be made smaller.

use std::time::Duration;

use drainplan::api::DrainPlan;
use drainplan::simulate::{Act, ActorSetup, BudgetSetup, NodeSetup, Timing, WorkloadSetup};
use serde_json::{Value, json};

/// Everything that decides how a run goes.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub timing: Timing,
    /// Of the controller.
    pub processes: usize,
    /// So many nodes may be cordoned by all plans together.
    pub most_cordoned: Option<u32>,
    /// The controller's processes run in pods of the cluster.
    pub housed: bool,
    pub nodes: Vec<NodeSetup>,
    /// Nodes that are added when the pods have come to rest, so that they start empty.
    pub spares: Vec<NodeSetup>,
    pub workloads: Vec<WorkloadSetup>,
    pub budgets: Vec<BudgetSetup>,
    /// With the time after which each is created.
    pub plans: Vec<(Duration, DrainPlan)>,
    /// Who works on what a plan hands off, by the plan's name.
    pub actors: Vec<(String, ActorSetup)>,
    /// What happens, and when, counted from when the controller starts.
    pub acts: Vec<(Duration, Act)>,
}

/// How long a cluster comes to rest before the controller starts.
pub const SETTLING: Duration = Duration::from_secs(20);
/// Faults happen in this time.
pub const FAULTY: Duration = Duration::from_secs(90);

/// A plan by its spec.
pub fn plan(name: &str, spec: &Value) -> DrainPlan {
    let object = json!({"apiVersion": "drainplan.dev/v1alpha1", "kind": "DrainPlan",
        "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).expect("the spec of a plan")
}

impl Scenario {
    /// How much there is to look at, for people.
    pub fn size(&self) -> String {
        format!(
            "{} nodes, {} workloads, {} budgets, {} plans, {} acts",
            self.nodes.len() + self.spares.len(),
            self.workloads.len(),
            self.budgets.len(),
            self.plans.len(),
            self.acts.len()
        )
    }

    /// As one reads it.
    pub fn describe(&self) -> String {
        let mut lines = vec![format!(
            "seed {}, {} processes, most cordoned {:?}, in pods {}, {:?}",
            self.seed, self.processes, self.most_cordoned, self.housed, self.timing
        )];
        lines.extend(self.nodes.iter().map(|node| format!("node     {node:?}")));
        lines.extend(self.spares.iter().map(|node| format!("spare    {node:?}")));
        lines.extend(self.workloads.iter().map(|workload| format!("workload {workload:?}")));
        lines.extend(self.budgets.iter().map(|budget| format!("budget   {budget:?}")));
        for (at, plan) in &self.plans {
            let spec = serde_json::to_string(&plan.spec).unwrap_or_default();
            let name = plan.metadata.name.as_deref().unwrap_or_default();
            lines.push(format!("at {:>7.3} s plan {name} {spec}", at.as_secs_f64()));
        }
        lines.extend(self.actors.iter().map(|(plan, actor)| format!("actor of {plan} {actor:?}")));
        let mut acts: Vec<_> = self.acts.iter().collect();
        acts.sort_by_key(|(at, _)| *at);
        lines.extend(acts.into_iter().map(|(at, act)| format!("at {:>7.3} s {act:?}", at.as_secs_f64())));
        lines.join("\n")
    }
}
