//! Pods whose budget would let them go only because it has forgotten others.

use super::case::Case;
use super::{Said, owners, words};
use crate::api::Outlook;
use crate::budget::{self, Cause};
use crate::cluster::OwnerRef;

/// The budget has room by its own numbers, and none when the owners count whose last pods were evicted.
pub(super) fn refilled(case: &Case<'_, '_>) -> Option<Said> {
    let view = case.held_by_arithmetic().filter(|_| case.verdict.cause == Cause::Allowed)?;
    let (budget, standing) = (view.budget, &view.standing);
    let shrunk = standing.shrunk.as_ref()?;
    if standing.room > 0 || budget::room_after(case.cluster, budget, &standing.computed, None) <= 0 {
        return None;
    }
    let away: Vec<&OwnerRef> = standing.absent.iter().map(|of| &of.owner).collect();
    let absent = words::list(&away, |owner| format!("{} {}", owner.kind, owner.name));
    let [has, counts, with] = if away.len() == 1 {
        ["has", "it no longer counts", "it"]
    } else {
        ["have", "they no longer count", "them"]
    };
    let why = away.iter().find_map(|owner| owners::failure(case.cluster, owner));
    let why = why.map_or_else(String::new, |why| format!(" No pod is created: {}.", words::quote(why)));
    let numbers = &standing.computed.numbers;
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "Budget {} ({}) reports disruptionsAllowed {}, but only because {absent} {has} no pod left since pods of this \
             budget were evicted, so that {counts}: it expects {} instead of {}. With {with} the budget would want {} and has \
             {}, so nothing more is evicted under it.{why}",
            words::budget(budget),
            words::terms(budget, standing),
            budget.status.disruptions_allowed,
            words::count(numbers.expected_pods, "pod"),
            shrunk.expected,
            words::count(shrunk.desired, "healthy pod"),
            numbers.current_healthy,
        ),
        remedy: remedy(&away, &budget.namespace, &absent),
    })
}

fn remedy(owners: &[&OwnerRef], namespace: &str, named: &str) -> String {
    let read = owners.first().map_or_else(String::new, |owner| {
        let kind = owner.kind.to_lowercase();
        format!(" (kubectl describe {kind} {} -n {namespace} says why there is none)", owner.name)
    });
    let its = if owners.len() == 1 { "its pod" } else { "their pods" };
    format!("let {named} create {its}{read}, or scale to 0 what is not wanted any more")
}
