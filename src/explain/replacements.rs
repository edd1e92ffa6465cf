//! Pods whose budget waits for its owners: they scale down, or their replacements do not come.

use jiff::Timestamp;

use super::case::Case;
use super::owners::{Owner, Shortage};
use super::view::View;
use super::{Said, budget_waits, hanging, ordered, owners, refusals, words};
use crate::api::Outlook;
use crate::cluster::{Cluster, Oddity, OwnerRef, Pod, Scale, Text};

/// More pods than their owner wants.
pub(super) struct Surplus {
    /// The uid of the owner.
    owner: Text,
    replicas: i32,
    present: usize,
    pub(super) oddity: Oddity,
}

/// Whether an owner wants fewer pods than there are.
pub(super) fn surplus(cluster: &Cluster, namespace: &Text, owner: &OwnerRef) -> Option<Surplus> {
    let replicas = match (cluster.workload(&owner.uid), cluster.scale(&owner.uid)) {
        (Some(workload), _) => workload.replicas,
        (None, Some(Scale::Replicas { replicas, .. })) => *replicas,
        _ => return None,
    };
    let alive = || owners::alive(cluster, namespace, &owner.uid);
    let present = alive().count();
    usize::try_from(replicas).is_ok_and(|replicas| replicas < present).then(|| {
        let mut pods: Vec<Text> = alive().map(|pod| pod.name.clone()).collect();
        pods.sort();
        let owner = owner.uid.clone();
        Surplus { owner: owner.clone(), replicas, present, oddity: Oddity::Surplus { owner, pods } }
    })
}

/// The pod's owner wants fewer pods than there are; its controller deletes them itself.
pub(super) fn owner_scaling_down(case: &Case<'_, '_>) -> Option<Said> {
    let view = case.held()?;
    let owner = case.pod.owner.as_ref()?;
    let Surplus { replicas, present, oddity, .. } = view.surplus.iter().find(|of| of.owner == owner.uid)?;
    let (own, known_as) = (format!("{} {}", owner.kind, owner.name), owners::known_as(case.cluster, owner));
    let scaled = if own == known_as { own.clone() } else { format!("{own} of {known_as}") };
    let message = format!(
        "{} {scaled} is scaling down: it wants {} and has {present}; its controller deletes the others itself",
        budget_waits::head(case, view),
        words::count(*replicas, "pod"),
    );
    let set = case.cluster.workload(&owner.uid);
    let awaited = set
        .map(|set| ordered::awaited_to_delete(case.cluster, case.now, case.patience, set))
        .unwrap_or_default();
    Some(match case.lasts(oddity) {
        _ if !awaited.is_empty() => Said {
            outlook: Outlook::MayClear,
            message: format!(
                "{message}, one by one, and none while another is not Ready: it waits for {}.",
                words::list(&awaited, |pod| in_the_way(case, pod))
            ),
            remedy: remedy_for(case, &awaited),
        },
        Some(since) => Said {
            outlook: Outlook::MayClear,
            message: format!("{message}, but has deleted none since {} at the latest.", words::at(since)),
            remedy: format!("check that {} runs", owners::run_by(case.cluster, &owner.uid, &own)),
        },
        None => Said {
            outlook: Outlook::WillClear,
            message: message + ".",
            remedy: format!("nothing to change: wait until {scaled} has scaled down"),
        },
    })
}

/// A pod that a StatefulSet waits for, and what ails or keeps it.
fn in_the_way(case: &Case<'_, '_>, pod: &Pod) -> String {
    match (&pod.node, &pod.unschedulable) {
        _ if pod.terminating() => budget_waits::going(case, pod),
        _ if pod.finished() => format!("{} (finished)", words::placed(pod)),
        (None, Some(why)) => {
            format!("{} (Pending, and the scheduler says: {})", pod.name, words::scheduler(why))
        }
        _ => words::ailing(case.cluster, pod),
    }
}

fn remedy_for(case: &Case<'_, '_>, pods: &[&Pod]) -> String {
    let (going, others): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(|pod| pod.terminating());
    let (finished, others): (Vec<&Pod>, Vec<&Pod>) = others.into_iter().partition(|pod| pod.finished());
    let (nowhere, unready): (Vec<&Pod>, Vec<&Pod>) =
        others.into_iter().partition(|pod| pod.node.is_none() && pod.unschedulable.is_some());
    let named = |pods: &[&Pod]| words::list(pods, |pod| format!("{}/{}", pod.namespace, pod.name));
    let repair = (!unready.is_empty()).then(|| words::repair(case.cluster, &unready));
    let give = (!nowhere.is_empty()).then(|| give_a_node(&nowhere));
    let delete = (!finished.is_empty()).then(|| format!("delete what has finished: {}", named(&finished)));
    let go = Some(hanging::remedy(case, &going)).filter(|remedy| !remedy.is_empty());
    repair.into_iter().chain(give).chain(delete).chain(go).collect::<Vec<_>>().join("; ")
}

fn give_a_node(pods: &[&Pod]) -> String {
    let names = words::list(pods, |pod| pod.name.to_string());
    format!(
        "give {names} a node: uncordon or add one that fits, or relax the pod's affinity, selector or requests"
    )
}

/// An owner cannot create its pods and says why, or does not create them.
pub(super) fn missing(case: &Case<'_, '_>) -> Option<Said> {
    let view = case.held_by_arithmetic()?;
    failing(case, view).or_else(|| not_created(case, view))
}

fn failing(case: &Case<'_, '_>, view: &View<'_>) -> Option<Said> {
    let short =
        view.owners.iter().filter_map(|owner| Some((owner, owner.failure?, owner.shortage(case.cluster)?)));
    let failing: Vec<(&Owner<'_>, &Text, Shortage)> = short.collect();
    if failing.is_empty() || view.time_helps() {
        return None;
    }
    let lacking = failing.iter().map(|(_, _, shortage)| shortage.lacking()).sum();
    let said = words::list(&failing, |(owner, why, shortage)| {
        format!("{}: {}", shortage.of(owner), words::quote(why))
    });
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "{} {said}.{}",
            budget_waits::head(case, view),
            budget_waits::unready_too(case, view, lacking)
        ),
        remedy: failing_remedy(&failing, &view.budget.namespace),
    })
}

/// What the first refusal that names something asks for.
fn failing_remedy(failing: &[(&Owner<'_>, &Text, Shortage)], namespace: &str) -> String {
    let owners = words::list(failing, |(owner, ..)| owner.name());
    let quota = failing.iter().find_map(|(_, why, _)| refusals::between(why, "exceeded quota: ", ","));
    if let Some(quota) = quota {
        return format!(
            "raise ResourceQuota {namespace}/{quota}, or make room in it, so that {owners} can create pods"
        );
    }
    match failing.iter().find_map(|(_, why, _)| refusals::named(why)) {
        Some(guard) => format!("ask whoever runs {guard} to let {owners} create pods"),
        None => {
            format!(
                "let {owners} create pods: change what the quoted words name (admission, service account)"
            )
        }
    }
}

/// Pods are missing, and nobody creates them.
fn not_created(case: &Case<'_, '_>, view: &View<'_>) -> Option<Said> {
    let lasting: Vec<(&Owner<'_>, Shortage, Timestamp)> = view
        .short
        .iter()
        .filter_map(|short| Some((view.owners.get(short.owner)?, short.shortage, case.lasts(&short.oddity)?)))
        .collect();
    let (first, _, _) = lasting.first()?;
    if view.time_helps() {
        return None;
    }
    let lacking = lasting.iter().map(|(_, shortage, _)| shortage.lacking()).sum();
    let said = words::list(&lasting, |(owner, shortage, since)| {
        format!("{}, and none is being created since {} at the latest", shortage.of(owner), words::at(*since))
    });
    // A StatefulSet creates its pods in order, each when those before it are Ready.
    let sets = lasting.iter().filter_map(|(owner, ..)| case.cluster.workload(&owner.uid));
    let unready: Vec<&Pod> = sets.flat_map(|set| ordered::awaited_to_create(case.cluster, set)).collect();
    let (order, remedy) = if unready.is_empty() {
        let namespace = &view.budget.namespace;
        let (kind, name) = (first.kind.to_lowercase(), &first.name);
        let remedy = format!(
            "read the events of {} (kubectl describe {kind} {name} -n {namespace}), and check that {} runs",
            first.name(),
            first.run_by(case.cluster)
        );
        (budget_waits::unready_too(case, view, lacking), remedy)
    } else {
        let pods = words::list(&unready, |pod| in_the_way(case, pod));
        let remedy = remedy_for(case, &unready);
        (format!(" A StatefulSet creates its pods in order, and waits for {pods}."), remedy)
    };
    let message = format!("{} {said}.{order}", budget_waits::head(case, view));
    Some(Said { outlook: Outlook::MayClear, message, remedy })
}

/// A replacement has no node.
pub(super) fn pending(case: &Case<'_, '_>) -> Option<Said> {
    let view = case.held_by_arithmetic()?;
    let pending = &view.away.unschedulable;
    if pending.is_empty() || view.time_helps() {
        return None;
    }
    let names = words::list(pending, |pod| pod.name.to_string());
    let why = pending.iter().find_map(|pod| pod.unschedulable.as_deref()).unwrap_or_default();
    let are = if pending.len() == 1 { "is" } else { "are" };
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "{} {names} {are} Pending, and the scheduler says: {}.{}",
            budget_waits::head(case, view),
            words::scheduler(why),
            budget_waits::unready_too(case, view, pending.len()),
        ),
        remedy: give_a_node(pending),
    })
}
