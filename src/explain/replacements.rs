//! Pods whose budget waits for its owners: they scale down, or their replacements do not come.

use super::case::Case;
use super::owners::{Owner, Shortage};
use super::{Said, budget_waits, words};
use crate::api::Outlook;
use crate::cluster::{Scale, Text};

/// The pod's owner wants fewer pods than there are; its controller deletes them itself.
pub(super) fn owner_scaling_down(case: &Case<'_, '_>) -> Option<Said> {
    case.held()?;
    let owner = case.pod.owner.as_ref()?;
    let replicas = match (case.cluster.workload(&owner.uid), case.cluster.scale(&owner.uid)) {
        (Some(workload), _) => workload.replicas,
        (None, Some(Scale::Replicas { replicas, .. })) => *replicas,
        _ => return None,
    };
    let present = case
        .cluster
        .pods_in(&case.pod.namespace)
        .filter(|pod| pod.owner.as_ref().is_some_and(|of| of.uid == owner.uid))
        .filter(|pod| !pod.finished() && !pod.terminating())
        .count();
    let surplus = usize::try_from(replicas).is_ok_and(|replicas| replicas < present);
    surplus.then(|| Said {
        outlook: Outlook::WillClear,
        message: format!(
            "{} {} is scaling down: it wants {} and has {present}; its controller deletes the others itself.",
            owner.kind,
            owner.name,
            words::count(replicas, "pod"),
        ),
        remedy: format!("nothing to change: wait until {} {} has scaled down", owner.kind, owner.name),
    })
}

/// An owner cannot create its pods, and says why.
pub(super) fn missing(case: &Case<'_, '_>) -> Option<Said> {
    let view = case.held_by_arithmetic()?;
    let short =
        view.owners.iter().filter_map(|owner| Some((owner, owner.failure?, owner.shortage(case.cluster)?)));
    let failing: Vec<(&Owner<'_>, &Text, Shortage)> = short.collect();
    let lacking = failing.iter().map(|(_, _, shortage)| shortage.lacking()).sum();
    if failing.is_empty() || view.suffices_without(lacking) {
        return None;
    }
    let said = words::list(&failing, |(owner, why, shortage)| {
        format!("{}: {}", shortage.of(owner), words::quote(why))
    });
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!("{} {said}.", budget_waits::head(case, view)),
        remedy: format!(
            "let {} create pods: change what the quoted words name (quota, admission, service account)",
            words::list(&failing, |(owner, ..)| owner.name())
        ),
    })
}

/// A replacement has no node.
pub(super) fn pending(case: &Case<'_, '_>) -> Option<Said> {
    let view = case.held_by_arithmetic()?;
    let pending = &view.away.unschedulable;
    if pending.is_empty() || view.suffices_without(pending.len() + view.away.unready.len()) {
        return None;
    }
    let names = words::list(pending, |pod| pod.name.to_string());
    let why = pending.iter().find_map(|pod| pod.unschedulable.as_deref()).unwrap_or_default();
    let are = if pending.len() == 1 { "is" } else { "are" };
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "{} {names} {are} Pending, and the scheduler says: {}.",
            budget_waits::head(case, view),
            words::quote(why)
        ),
        remedy: format!(
            "give {names} a node: uncordon or add one that fits, or relax the pod's affinity, selector or requests"
        ),
    })
}
