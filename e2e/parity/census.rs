//! What was compared: a comparison that met too little proves too little.

use std::collections::{BTreeMap, BTreeSet};

use drainplan::budget;
use drainplan::cluster::{Amount, Cluster, Operator, Pdb, Pod, PodKey, PodPhase};

use super::compare::Asked;
use super::world::Owner;

/// Counts by name, with what is required of each.
#[derive(Default)]
pub struct Census {
    counts: BTreeMap<String, usize>,
    required: BTreeMap<String, usize>,
}

impl Census {
    fn count(&mut self, name: impl Into<String>) {
        *self.counts.entry(name.into()).or_default() += 1;
    }
    /// Requires so many of 300 namespaces or more; of fewer a third of their share, as the small numbers vary.
    fn require(&mut self, spaces: usize, of_300: usize, names: impl IntoIterator<Item = String>) {
        let least = if spaces < 300 { of_300 * spaces / 900 } else { of_300 };
        self.required.extend(names.into_iter().map(|name| (name, least)));
    }

    /// Pods by what the server answers and why.
    pub fn pods(&mut self, cluster: &Cluster, asked: &[(PodKey, Asked)], spaces: usize) {
        for (key, asked) in asked {
            self.count("pods");
            if let Some(pod) = cluster.pod(key) {
                self.count(format!("{} {}", asked.answer.code, kind(pod, asked)));
            }
        }
        let names = [
            "201 NoBudget",
            "201 Allowed",
            "201 pending",
            "201 finished",
            "201 terminating",
            "201 UnhealthyAlwaysAllowed",
            "201 UnhealthyOfHealthyBudget",
            "429 Exhausted",
            "429 SyncFailed",
            "500 SeveralBudgets",
            "403 NamespaceTerminating",
        ];
        self.require(spaces, 30, names.map(str::to_owned));
    }

    /// The pods of the time without a controller manager.
    pub fn outage(&mut self, asked: &[(PodKey, Asked)], spaces: usize) {
        for (_, asked) in asked {
            self.count(format!("outage: {} {:?}", asked.answer.code, asked.verdict.cause));
        }
        let names = ["outage: 429 StillProcessing", "outage: 403 TooManyDisruptedPods"];
        self.require(spaces, 30, names.map(str::to_owned));
    }

    /// Budgets by the owners of their pods, and by shape.
    pub fn budgets(&mut self, cluster: &Cluster, spaces: usize) {
        for budget in cluster.budgets() {
            self.count("budgets");
            for name in shapes(budget) {
                self.count(name);
            }
            let owners: BTreeSet<&str> = budget::selected(cluster, budget)
                .filter_map(|pod| pod.labels.get("owner").map(|owner| &**owner))
                .collect();
            for owner in owners {
                self.count(format!("owner {owner}"));
            }
            if budget.status.sync_failed.is_some() {
                self.count("sync failed");
            }
            if !budget.status.disrupted_pods.is_empty() {
                self.count("charged");
            }
        }
        let of = |shares: std::ops::Range<usize>| {
            Owner::SHARES
                .into_iter()
                .filter(move |(_, share)| shares.contains(share))
                .map(|(owner, _)| format!("owner {}", owner.name()))
        };
        self.require(spaces, 30, of(3..99));
        self.require(spaces, 5, of(1..3));
        let shapes = [
            "minAvailable number",
            "minAvailable percent",
            "maxUnavailable number",
            "maxUnavailable percent",
            "neither field",
        ];
        self.require(spaces, 30, shapes.map(str::to_owned));
        let selectors = ["In", "NotIn", "Exists", "DoesNotExist", "empty", "missing"];
        self.require(spaces, 30, selectors.map(|selector| format!("selector {selector}")));
        self.require(spaces, 30, ["charged", "sync failed"].map(str::to_owned));
    }

    /// Prints all counts; returns what is short.
    pub fn print(&self) -> Vec<String> {
        let mut short = Vec::new();
        for name in self.counts.keys().chain(self.required.keys()).collect::<BTreeSet<_>>() {
            let count = self.counts.get(name).copied().unwrap_or_default();
            let required = self.required.get(name).copied().unwrap_or_default();
            let note = if count < required { format!("  SHORT, {required} required") } else { String::new() };
            println!("{count:8}  {name}{note}");
            if count < required {
                short.push(format!("{name}: {count} of {required}"));
            }
        }
        short
    }
}

/// Why, told apart further where no budget matters.
fn kind(pod: &Pod, asked: &Asked) -> String {
    if asked.verdict.cause != budget::Cause::NotCounted {
        format!("{:?}", asked.verdict.cause)
    } else if pod.terminating() {
        "terminating".to_owned()
    } else if pod.phase == PodPhase::Pending {
        "pending".to_owned()
    } else {
        "finished".to_owned()
    }
}

fn shapes(budget: &Pdb) -> Vec<String> {
    let amount = match (&budget.min_available, &budget.max_unavailable) {
        (Some(Amount::Int(_)), _) => "minAvailable number",
        (Some(Amount::Text(_)), _) => "minAvailable percent",
        (None, Some(Amount::Int(_))) => "maxUnavailable number",
        (None, Some(Amount::Text(_))) => "maxUnavailable percent",
        (None, None) => "neither field",
    };
    let mut names = vec![amount.to_owned(), format!("policy {:?}", budget.unhealthy_policy)];
    match &budget.selector {
        None => names.push("selector missing".to_owned()),
        Some(selector) if selector.requirements.is_empty() => names.push("selector empty".to_owned()),
        Some(selector) => {
            let operators: BTreeSet<&str> =
                selector.requirements.iter().map(|requirement| operator(requirement.operator)).collect();
            names.extend(operators.into_iter().map(|operator| format!("selector {operator}")));
        }
    }
    names
}

fn operator(operator: Operator) -> &'static str {
    match operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
    }
}
