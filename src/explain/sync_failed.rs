//! Budgets that the disruption controller cannot compute: because of which pods, and will that pass?

use super::case::Case;
use super::owners::Owner;
use super::view::View;
use super::{Said, words};
use crate::api::Outlook;
use crate::budget;
use crate::cluster::{Amount, Cluster, Pdb, Pod, Text};

/// What a selector must also ask for to leave out the pods of Jobs.
pub(super) const WITHOUT_JOBS: &str = "{key: batch.kubernetes.io/job-name, operator: DoesNotExist}, {key: job-name, \
                                       operator: DoesNotExist}";

/// Of a budget that requires all pods.
const ALL: &str =
    " Computed, it would allow none either: it requires as many healthy pods as their owners want.";

/// An owner that keeps a budget from being computed.
struct Obstacle<'v> {
    owner: &'v Owner<'v>,
    /// Time does not remove it.
    lasting: bool,
}

/// The disruption controller cannot compute the budget.
pub(super) fn sync_failed(case: &Case<'_, '_>) -> Option<Said> {
    not_computed(case.cluster, case.held()?)
}

/// It, or we, cannot compute it.
pub(super) fn not_computed(cluster: &Cluster, held: &View<'_>) -> Option<Said> {
    let budget = held.budget;
    let (reported, computed) = (&budget.status.sync_failed, &held.standing.computed.sync_error);
    let why: &str = reported.as_deref().or(computed.as_deref())?;
    let name = words::budget(budget);
    let head = format!(
        "Budget {name} ({}) allows 0 evictions because the disruption controller cannot compute it: {}.",
        words::terms(budget, &held.standing),
        words::quote(why)
    );
    if let Some(problem) = misspelt(budget) {
        return Some(Said {
            outlook: Outlook::NeverClears,
            message: head,
            remedy: format!("in budget {name} {problem}"),
        });
    }
    let obstacles = obstacles(cluster, held);
    // It would allow nothing once it is computed, either.
    let asks_for_all = budget::asks_for_all(budget) && held.bare.is_empty();
    if obstacles.is_empty()
        && computed.is_none()
        && held.standing.attainable.unread.is_empty()
        && !asks_for_all
    {
        return Some(Said {
            outlook: Outlook::MayClear,
            message: format!("{head} As things stand now it could."),
            remedy: format!(
                "annotate budget {name}: the controller tries again when a pod or the budget changes"
            ),
        });
    }
    let pods: Vec<(&Pod, &Owner<'_>)> = obstacles
        .iter()
        .flat_map(|obstacle| obstacle.owner.pods.iter().map(|pod| (*pod, obstacle.owner)))
        .collect();
    let in_the_way = if pods.is_empty() {
        String::new()
    } else {
        let name = |pod: &Pod, owner: &Owner<'_>| {
            let finished = if pod.finished() { ", finished" } else { "" };
            format!("{} ({}{finished})", words::placed(pod), owner.name())
        };
        format!(" In the way: {}.", words::list(&pods, |(pod, owner)| name(pod, owner)))
    };
    let lasting = obstacles.iter().any(|obstacle| obstacle.lasting);
    Some(Said {
        outlook: if lasting || asks_for_all { Outlook::NeverClears } else { Outlook::MayClear },
        message: head + &in_the_way + if asks_for_all { ALL } else { "" },
        remedy: remedy(cluster, budget, &obstacles)
            + &if asks_for_all {
                format!("; also write maxUnavailable: 1 instead of {} there", words::field(budget))
            } else {
                String::new()
            },
    })
}

/// What is written cannot be used, whatever pods there are: what to write instead.
fn misspelt(budget: &Pdb) -> Option<String> {
    if budget.invalid_selector.is_some() {
        return Some("write a selector that can be used".to_owned());
    }
    let (field, amount) = match (&budget.max_unavailable, &budget.min_available) {
        (Some(amount), _) => ("maxUnavailable", amount),
        (None, Some(amount)) => ("minAvailable", amount),
        (None, None) => return None,
    };
    let negative = field == "minAvailable" && matches!(amount, Amount::Int(number) if *number < 0);
    let unusable = negative || !budget::is_amount(amount);
    unusable.then(|| {
        format!("write a number of pods, such as {field}: 1, or a whole percentage, such as {field}: \"50%\"")
    })
}

/// The owners whose scale the controller does not find; those that last first.
fn obstacles<'v>(cluster: &Cluster, held: &'v View<'_>) -> Vec<Obstacle<'v>> {
    let unscaled = unscaled(cluster, held);
    let mut obstacles: Vec<Obstacle<'v>> =
        held.owners
            .iter()
            .filter_map(|owner| {
                let why = owner.pods.iter().find_map(|pod| {
                    unscaled.iter().find(|(name, _)| *name == pod.name).map(|(_, why)| why)
                })?;
                Some(Obstacle { lasting: lasts(cluster, owner, why), owner })
            })
            .collect();
    obstacles.sort_by_key(|obstacle| !obstacle.lasting);
    obstacles
}

/// Pods without a scale, by our own look, or, where a scale was not read, by what the controller reported.
fn unscaled(cluster: &Cluster, held: &View<'_>) -> Vec<(Text, String)> {
    let mut unscaled = budget::unscaled_pods(cluster, held.budget);
    if let Some(reported) = held.budget.status.sync_failed.as_deref().filter(|why| no_scale(why)) {
        let unread = &held.standing.computed.unread_scales;
        let of_unread = budget::selected(cluster, held.budget).filter(|pod| {
            pod.owner.as_ref().is_some_and(|owner| unread.iter().any(|(_, unread)| unread.uid == owner.uid))
        });
        unscaled.extend(of_unread.map(|pod| (pod.name.clone(), reported.to_owned())));
    }
    unscaled
}

/// The kind has no scale, or is not known: it stays so. Otherwise the owner is gone, and its pods will be, too.
fn no_scale(why: &str) -> bool {
    why.contains("does not implement the scale subresource") || why.contains("no matches for kind")
}

/// A running Job ends, and a finished one may delete itself.
fn lasts(cluster: &Cluster, owner: &Owner<'_>, why: &str) -> bool {
    if &*owner.kind != "Job" {
        return no_scale(why);
    }
    match cluster.job(&owner.uid) {
        Some(job) => job.finished && job.ttl_seconds.is_none(),
        None => owner.pods.iter().all(|pod| pod.finished()),
    }
}

/// What asks no scale: about as many pods as before, and one less than there are at most.
fn as_a_number(cluster: &Cluster, budget: &Pdb) -> String {
    let pods = budget::selected(cluster, budget).filter(|pod| !pod.finished()).count();
    let pods = i32::try_from(pods).unwrap_or(i32::MAX);
    let number = budget::desired_of(budget, pods).unwrap_or(0).min(pods.saturating_sub(1)).max(0);
    format!(
        "in budget {} write minAvailable: {number} instead of {}",
        words::budget(budget),
        words::field(budget)
    )
}

fn remedy(cluster: &Cluster, budget: &Pdb, obstacles: &[Obstacle<'_>]) -> String {
    let as_a_number = || as_a_number(cluster, budget);
    let budget = words::budget(budget);
    let Some(Obstacle { owner, lasting }) = obstacles.first() else {
        return format!("repair what the controller names, or {}", as_a_number());
    };
    let name = owner.name();
    match &*owner.kind {
        "Job" => {
            let job = cluster.job(&owner.uid);
            let ttl = job.is_some_and(|job| job.ttl_seconds.is_some());
            let finished = job.is_some_and(|job| job.finished);
            let passing = match (lasting, ttl) {
                (true, _) => format!("delete {name}"),
                (false, true) if finished => {
                    format!("wait until its ttlSecondsAfterFinished deletes {name}")
                }
                (false, true) => {
                    format!("wait for {name} to end: its ttlSecondsAfterFinished then deletes it")
                }
                (false, false) => {
                    format!("wait for {name} to end and delete it (or write ttlSecondsAfterFinished)")
                }
            };
            format!("{passing}, or append to matchExpressions of budget {budget}: {WITHOUT_JOBS}")
        }
        "DaemonSet" => format!(
            "narrow the selector of budget {budget} so that it leaves out the pods of {name}, or {}",
            as_a_number()
        ),
        "ReplicaSet" | "Deployment" | "StatefulSet" | "ReplicationController" if !*lasting => {
            format!("delete the pods that {name} left behind")
        }
        _ if !*lasting => format!(
            "look at {name}: if it is gone, delete the pods that it left behind; if it is there, let it say how many \
             replicas it wants, or {}",
            as_a_number()
        ),
        kind => format!("{}, or let the kind {kind} serve the scale subresource", as_a_number()),
    }
}
