//! Budgets that allow nothing by what is written in them.

use super::case::Case;
use super::owners::Owner;
use super::view::View;
use super::{Said, words};
use crate::api::Outlook;
use crate::budget::Cause;
use crate::cluster::{Amount, Cluster, Pdb};

/// Two or more budgets select the pod.
pub(super) fn multiple_budgets(case: &Case<'_, '_>) -> Option<Said> {
    (case.verdict.cause == Cause::SeveralBudgets).then(|| {
        let names = words::list(&case.verdict.budgets, |name| format!("{}/{name}", case.pod.namespace));
        Said {
            outlook: Outlook::NeverClears,
            message: format!(
                "{} budgets select this pod, {names}, and the Eviction API answers 500 for every pod with more than one, \
                 whatever they allow.",
                case.verdict.budgets.len()
            ),
            remedy: format!("keep one of {names}: delete the others, or let their selectors leave this pod out"),
        }
    })
}

/// Arithmetic on configuration.
pub(super) fn never_allows(case: &Case<'_, '_>) -> Option<Said> {
    never(case.cluster, case.held()?)
}

/// What is written can never be met with a pod less.
pub(super) fn never(cluster: &Cluster, held: &View<'_>) -> Option<Said> {
    let (budget, attainable) = (held.budget, &held.standing.attainable);
    if attainable.never && attainable.neither_field {
        return Some(Said {
            outlook: Outlook::NeverClears,
            message: format!(
                "Budget {} has neither minAvailable nor maxUnavailable, and such a budget allows nothing.",
                words::budget(budget)
            ),
            remedy: format!("write maxUnavailable: 1 in budget {}", words::budget(budget)),
        });
    }
    if attainable.never && !attainable.unread.is_empty() {
        let owners = words::list(&held.owners, Owner::name);
        return Some(Said {
            outlook: Outlook::NeverClears,
            message: format!(
                "Budget {} ({}) can never allow an eviction: it requires as many healthy pods as {owners} {}, however \
                 many that is.",
                words::budget(budget),
                words::terms(budget, &held.standing),
                if held.owners.len() == 1 { "wants" } else { "want" },
            ),
            remedy: format!(
                "in budget {} write maxUnavailable: 1 instead of {}",
                words::budget(budget),
                words::field(budget)
            ),
        });
    }
    // Nothing required and nothing attainable is another story: no owner counts.
    if !attainable.never || attainable.required <= 0 {
        return None;
    }
    let mut providers: Vec<String> =
        held.owners.iter().map(|owner| owner.with_replicas_selected(cluster, budget)).collect();
    let absent = &held.standing.absent;
    providers.extend(
        absent.iter().map(|of| format!("{} {} (all its pods are away)", of.owner.kind, of.owner.name)),
    );
    if !held.bare.is_empty() {
        providers.push(words::count(held.bare.len(), "pod") + " without a controller");
    }
    let mut replicas =
        held.owners.iter().map(|owner| owner.replicas).chain(absent.iter().map(|of| of.replicas));
    let scale = replicas.try_fold(0_i32, |sum, replicas| Some(sum.saturating_add(replicas?)));
    Some(Said {
        outlook: Outlook::NeverClears,
        message: format!(
            "Budget {} ({}) can never allow an eviction: it requires {}, and {} can have {} at most.",
            words::budget(budget),
            words::terms(budget, &held.standing),
            words::count(attainable.required, "healthy pod"),
            words::list(&providers, Clone::clone),
            attainable.attainable,
        ),
        remedy: never_allows_remedy(budget, attainable.attainable, scale),
    })
}

/// What would let one pod go. `maxUnavailable: 1` does so only where all pods of the scale can be healthy.
fn never_allows_remedy(budget: &Pdb, attainable: i32, scale: Option<i32>) -> String {
    let name = words::budget(budget);
    let downtime = if attainable == 1 { " (its only pod is then down while it moves)" } else { "" };
    let change = if scale.is_some_and(|scale| scale > 0 && attainable >= scale) {
        "maxUnavailable: 1".to_owned()
    } else {
        format!("minAvailable: {}", attainable.saturating_sub(1).max(0))
    };
    let more = match (&budget.max_unavailable, &budget.min_available) {
        (None, Some(Amount::Int(required))) if scale == Some(attainable) => {
            format!(", or run at least {} replicas", required.saturating_add(1))
        }
        _ => String::new(),
    };
    format!("in budget {name} write {change} instead of {}{downtime}{more}", words::field(budget))
}

/// The budget counts by its pods' controllers, and they have none, or want no pods.
pub(super) fn counts_none(case: &Case<'_, '_>) -> Option<Said> {
    let held = case.held()?;
    // A controller that wants none deletes its pods itself; one without a controller stays, and nothing is expected.
    let wants_none = held.owners.iter().all(|owner| owner.replicas == Some(0));
    if case.pod.owner.is_none() && wants_none { nothing_expected(held) } else { none_counted(held) }
}

/// It counts by scale, and nothing it selects has one.
pub(super) fn none_counted(held: &View<'_>) -> Option<Said> {
    if held.owners.is_empty() { nothing_expected(held) } else { None }
}

/// It expects no pods, and such a budget allows nothing (`disruption.go: updatePdbStatus`).
fn nothing_expected(held: &View<'_>) -> Option<Said> {
    let budget = held.budget;
    let counts_objects =
        budget.max_unavailable.is_none() && matches!(budget.min_available, Some(Amount::Int(_)));
    if counts_objects || held.bare.is_empty() {
        return None;
    }
    let bare = words::list(&held.bare, |pod| pod.name.to_string());
    let counted = if held.owners.is_empty() {
        format!("none of them has one ({bare})")
    } else {
        let owners = words::list(&held.owners, Owner::with_replicas);
        format!("{owners} and nobody for {bare} add up to 0")
    };
    let alive = held.bare.iter().filter(|pod| !pod.finished()).count();
    Some(Said {
        outlook: Outlook::NeverClears,
        message: format!(
            "Budget {} ({}) allows 0 evictions: it counts by the scale of its pods' controllers, and {counted}.",
            words::budget(budget),
            words::terms(budget, &held.standing),
        ),
        remedy: format!(
            "in budget {} write minAvailable: {} instead of {}",
            words::budget(budget),
            alive.saturating_sub(1),
            words::field(budget)
        ),
    })
}
