//! The disruption controller: it calls the room `budget`, a little later, and its writes may be in conflict.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::setup::BudgetSetup;
use super::store::whole_second;
use super::world::{Event, World};
use crate::budget::{recompute, selected};
use crate::cluster::{BudgetKey, Operator, Pdb, PdbStatus, Pod, Requirement, Selector, Text};

/// How long a pod that the server has let go counts as going (`disruption.go: DeletionTimeout`).
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);
/// The least wait before a budget is looked at again for time alone.
const RECHECK: Duration = Duration::from_millis(10);
/// The waits after a conflict: the first, and how often it doubles.
const CONFLICT_FIRST: Duration = Duration::from_millis(5);
const CONFLICT_DOUBLINGS: u32 = 10;

impl World {
    /// Creates a budget.
    pub fn add_budget(&mut self, setup: &BudgetSetup) {
        self.put_budget(setup);
        self.react();
    }

    /// Creates a budget, or changes the spec of the one of that name.
    pub(super) fn put_budget(&mut self, setup: &BudgetSetup) {
        let key = BudgetKey { namespace: setup.namespace.as_str().into(), name: setup.name.as_str().into() };
        let old = self.store.cluster().budget(&key).cloned();
        let uid = old.as_ref().map_or_else(|| self.store.new_uid(&setup.name), |old| old.uid.clone());
        let requirement = Requirement {
            key: "app".into(),
            operator: Operator::In,
            values: setup.apps.iter().map(|app| app.as_str().into()).collect(),
        };
        let requirements = if setup.apps.is_empty() { Vec::new() } else { vec![requirement] };
        let budget = Pdb {
            namespace: key.namespace,
            name: key.name,
            uid,
            resource_version: Text::default(),
            spec_since: Some(whole_second(self.now)),
            generation: old.as_ref().map_or(1, |old| old.generation + 1),
            selector: Some(Selector { requirements }),
            invalid_selector: None,
            min_available: setup.min_available.clone(),
            max_unavailable: setup.max_unavailable.clone(),
            unhealthy_policy: setup.unhealthy_policy,
            status: old.map_or_else(PdbStatus::default, |old| old.status.clone()),
        };
        self.store.put_budget(budget);
    }

    /// The controller looks at a budget a little later.
    pub(super) fn budget_due(&mut self, key: &BudgetKey) {
        if self.budgets_due.insert(key.clone()) {
            let wait = self.takes("controller", self.timing.controller);
            self.after(wait, Event::Budget(key.clone()));
        }
    }

    /// A pod's change concerns one budget, even when several select it (`getPdbForPod`).
    pub(super) fn budget_of_pod_due(&mut self, pod: &Pod) {
        let key = self.store.cluster().budgets_of(pod).next().map(|budget| budget.key());
        if let Some(key) = key {
            self.budget_due(&key);
        }
    }

    pub(super) fn all_budgets_due(&mut self) {
        let keys: Vec<BudgetKey> = self.store.budgets().map(|budget| budget.key()).collect();
        for key in keys {
            self.budget_due(&key);
        }
    }

    /// Computes a budget; its write arrives a little later.
    pub(super) fn sync_budget(&mut self, key: &BudgetKey) {
        self.budgets_due.remove(key);
        if !self.manager_up {
            return;
        }
        let Some(budget) = self.store.cluster().budget(key).cloned() else { return };
        let computed = recompute(self.store.cluster(), &budget, self.now);
        let mut status = budget.status.clone();
        status.expected_pods = computed.numbers.expected_pods;
        status.current_healthy = computed.numbers.current_healthy;
        status.desired_healthy = computed.numbers.desired_healthy;
        status.disruptions_allowed = computed.numbers.disruptions_allowed;
        status.has_condition = true;
        status.reason = computed.condition_reason().into();
        status.sync_failed = computed.sync_error.clone().map(Text::from);
        if status.sync_failed.is_none() {
            status.observed_generation = budget.generation;
            status.disrupted_pods = self.let_go(&budget);
        }
        if let Some(at) = computed.recheck_at {
            // At the very instant it still counts, and time has to pass.
            let at = at.max(self.later(RECHECK));
            self.at(at, Event::Budget(key.clone()));
        }
        if status != budget.status {
            let wait = self.takes("write", self.timing.write);
            self.after(wait, Event::BudgetWrite(Box::new(Pdb { status, ..(*budget).clone() })));
        }
    }

    /// Pods that were evicted and do not terminate yet (`buildDisruptedPodMap`).
    fn let_go(&self, budget: &Pdb) -> BTreeMap<Text, Timestamp> {
        let kept = |pod: &Pod| {
            let since = budget.status.disrupted_pods.get(&pod.name)?;
            let believed = since.saturating_add(DELETION_TIMEOUT).is_ok_and(|until| until >= self.now);
            (believed && !pod.terminating()).then(|| (pod.name.clone(), *since))
        };
        selected(self.store.cluster(), budget).filter_map(|pod| kept(pod)).collect()
    }

    /// The controller's write arrives; it is refused when the budget has changed since it was read.
    pub(super) fn write_budget(&mut self, budget: Pdb) {
        let key = budget.key();
        let Some(present) = self.store.cluster().budget(&key) else { return };
        if present.uid != budget.uid {
            return;
        }
        if present.resource_version == budget.resource_version {
            self.conflicts.remove(&key);
            self.count_step();
            self.store.put_budget(budget);
            return;
        }
        let conflicts = self.conflicts.entry(key.clone()).or_default();
        *conflicts = (*conflicts + 1).min(CONFLICT_DOUBLINGS);
        let wait = CONFLICT_FIRST * 2_u32.pow(*conflicts);
        self.after(wait, Event::Budget(key));
    }
}
