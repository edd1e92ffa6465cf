//! What is wrong with a budget.

use std::collections::BTreeSet;

use super::view::View;
use super::{Explainer, Said, budget_waits, misconfigured, sync_failed, words};
use crate::api::Finding;
use crate::budget::{self, Cause};
use crate::cluster::{Cluster, Pdb, Pod, Text, UnhealthyPolicy};

/// Something that is wrong with a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub finding: Finding,
    pub message: String,
    /// One line: what to change.
    pub remedy: String,
}

pub(super) fn of<'a>(explainer: &Explainer<'a>, budget: &'a Pdb) -> Vec<Found> {
    let cluster = explainer.cluster;
    let view = explainer.view(budget);
    let said =
        |finding, said: Option<Said>| said.map(|Said { message, remedy, .. }| (finding, message, remedy));
    let sync_failed = sync_failed::not_computed(cluster, &view);
    // Without numbers, or without pods, there is no arithmetic.
    let counts = sync_failed.is_none() && budget::selected(cluster, budget).next().is_some();
    let never = if counts { misconfigured::never(cluster, &view) } else { None };
    let found = [
        said(Finding::NeverAllows, never),
        said(Finding::SyncFailed, sync_failed),
        overlaps(cluster, budget),
        selects_nothing(cluster, budget),
        said(Finding::CountsNone, misconfigured::none_counted(&view)),
        blocks_unhealthy(cluster, &view),
        said(Finding::Stale, budget_waits::not_observed(budget, explainer.now, explainer.patience)),
        selects_jobs(&view),
    ];
    let found = found.into_iter().flatten();
    found
        .map(|(finding, message, remedy)| Found { finding, message: words::bounded(message), remedy })
        .collect()
}

pub(super) fn overlaps(cluster: &Cluster, budget: &Pdb) -> Option<(Finding, String, String)> {
    let mut others = BTreeSet::new();
    let mut pods = Vec::new();
    for pod in budget::selected(cluster, budget) {
        let of_pod: Vec<_> = cluster.budgets_of(pod).filter(|other| other.name != budget.name).collect();
        if !of_pod.is_empty() {
            pods.push(pod);
        }
        others.extend(of_pod.into_iter().map(|other| &other.name));
    }
    let others: Vec<&Text> = others.into_iter().collect();
    (!pods.is_empty()).then(|| {
        let names = words::list(&others, |name| format!("{}/{name}", budget.namespace));
        (
            Finding::Overlaps,
            format!(
                "Budget {} selects {} that {names} {} too, and the Eviction API refuses pods that have more than \
                 one budget (500): {}.",
                words::budget(budget),
                words::count(pods.len(), "pod"),
                if others.len() == 1 { "selects" } else { "select" },
                words::list(&pods, |pod| pod.name.to_string()),
            ),
            if others.len() == 1 {
                format!("delete one of them, or narrow a selector: {} and {names}", words::budget(budget))
            } else {
                let all: Vec<&Text> = std::iter::once(&budget.name).chain(others.iter().copied()).collect();
                let all = words::list(&all, |name| format!("{}/{name}", budget.namespace));
                format!("of {all} keep one that selects these pods: delete the others, or narrow their selectors")
            },
        )
    })
}

fn selects_nothing(cluster: &Cluster, budget: &Pdb) -> Option<(Finding, String, String)> {
    if budget::selected(cluster, budget).next().is_some() {
        return None;
    }
    let mut asleep: Vec<_> = cluster
        .workloads()
        .filter(|workload| workload.owner.is_none() && workload.replicas == 0)
        .filter(|workload| {
            workload.namespace == budget.namespace && budget.selects(&workload.template_labels)
        })
        .map(|workload| format!("{} {}", workload.kind.name(), workload.name))
        .collect();
    if !asleep.is_empty() {
        asleep.sort();
        let names = words::list(&asleep, Clone::clone);
        let has = if asleep.len() == 1 { "has" } else { "have" };
        return Some((
            Finding::SelectsNothing,
            format!(
                "Budget {} protects nothing now: {names}, whose pods it selects, {has} 0 replicas.",
                words::budget(budget)
            ),
            "nothing to change while that is meant".to_owned(),
        ));
    }
    let why = match (&budget.selector, &budget.invalid_selector) {
        (_, Some(why)) => format!("its selector cannot be used ({})", words::quote(why)),
        (None, None) => "it has no selector".to_owned(),
        (Some(selector), None) => format!("no pod in its namespace matches {}", words::selector(selector)),
    };
    Some((
        Finding::SelectsNothing,
        format!("Budget {} protects nothing: {why}.", words::budget(budget)),
        format!("correct the selector of budget {}, or delete it", words::budget(budget)),
    ))
}

/// Unready pods that the server refuses now, and would not refuse under `AlwaysAllow`.
fn blocks_unhealthy(cluster: &Cluster, view: &View<'_>) -> Option<(Finding, String, String)> {
    let budget = view.budget;
    if budget.unhealthy_policy == UnhealthyPolicy::AlwaysAllow {
        return None;
    }
    let held = |pod: &&Pod| {
        let cause = budget::verdict(cluster, pod).cause;
        matches!(cause, Cause::Exhausted | Cause::SyncFailed | Cause::StillProcessing)
    };
    let pods: Vec<&Pod> = view.away.unready.iter().copied().filter(held).collect();
    (!pods.is_empty()).then(|| {
        (
            Finding::BlocksUnhealthy,
            format!(
                "Budget {} lets unready pods go only while healthy ≥ desired > 0, and it has healthy {}, desired \
                 {}: {} may not be evicted.",
                words::budget(budget),
                budget.status.current_healthy,
                budget.status.desired_healthy,
                words::list(&pods, |pod| words::ailing(cluster, pod)),
            ),
            format!("set unhealthyPodEvictionPolicy: AlwaysAllow in budget {}", words::budget(budget)),
        )
    })
}

fn selects_jobs(view: &View<'_>) -> Option<(Finding, String, String)> {
    let jobs: Vec<_> = view.owners.iter().filter(|owner| &*owner.kind == "Job").collect();
    (!jobs.is_empty()).then(|| {
        (
            Finding::SelectsJobs,
            format!(
                "Budget {} selects pods of {}: Jobs have no scale, and their finished pods are never healthy.",
                words::budget(view.budget),
                words::list(&jobs, |owner| owner.name()),
            ),
            format!(
                "append to matchExpressions of budget {}: {}",
                words::budget(view.budget),
                sync_failed::WITHOUT_JOBS
            ),
        )
    })
}
