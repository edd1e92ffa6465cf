//! Which pods a budget selects, without a walk over all pods of its namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{BudgetKey, Cluster, Pdb, Pod, Text, planted};

/// The pods of each budget, by name.
#[derive(Debug, Default, Clone)]
pub(super) struct Selected(HashMap<BudgetKey, BTreeMap<Text, Arc<Pod>>>);

impl Selected {
    /// A pod is new, has changed or is gone; these are the budgets of its namespace.
    pub(super) fn pod_changes<'a>(
        &mut self,
        budgets: impl Iterator<Item = &'a Arc<Pdb>>,
        old: Option<&Pod>,
        new: Option<&Arc<Pod>>,
    ) {
        for budget in budgets {
            if let Some(pod) = new.filter(|pod| budget.selects(&pod.labels)) {
                self.0.entry(budget.key()).or_default().insert(pod.name.clone(), Arc::clone(pod));
            } else if let Some(pod) = old.filter(|pod| budget.selects(&pod.labels))
                && let Some(pods) = self.0.get_mut(&budget.key())
            {
                pods.remove(&pod.name);
            }
        }
    }

    /// A budget is new, or its selector has changed; these are the pods of its namespace.
    pub(super) fn budget_comes<'a>(&mut self, budget: &Pdb, pods: impl Iterator<Item = &'a Arc<Pod>>) {
        let selected = pods.filter(|pod| budget.selects(&pod.labels));
        self.0.insert(budget.key(), selected.map(|pod| (pod.name.clone(), Arc::clone(pod))).collect());
    }

    /// A budget is gone.
    pub(super) fn budget_goes(&mut self, key: &BudgetKey) {
        self.0.remove(key);
    }
}

impl Cluster {
    /// The pods that a budget selects, by name; of a budget that is not in the cluster, too.
    pub fn pods_selected_by<'a>(&'a self, budget: &'a Pdb) -> impl Iterator<Item = &'a Arc<Pod>> {
        let key = budget.key();
        // Deliberate errors in matching take effect after the pods were put in.
        let known = self.budget(&key).filter(|known| known.selector == budget.selector);
        let known = known.filter(|_| !planted::possible());
        let pods = known.and_then(|_| self.selected.0.get(&key));
        let walk = known
            .is_none()
            .then(|| self.pods_in(&budget.namespace).filter(|pod| budget.selects(&pod.labels)));
        pods.into_iter().flat_map(BTreeMap::values).chain(walk.into_iter().flatten())
    }
}
