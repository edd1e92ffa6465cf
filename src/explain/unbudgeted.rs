//! Pods that no budget selects, when a plan moves those of one owner one by one.

use jiff::Timestamp;

use super::case::Case;
use super::{Said, Treatment, owners, words};
use crate::api::Outlook;
use crate::budget::Cause;
use crate::cluster::{OwnerRef, Pod};

/// Another pod of the owner is away, and its time to come back is not over.
pub(super) fn awaiting_replacement(case: &Case<'_, '_>) -> Option<Said> {
    let (owner, until, away) = away(case)?;
    let wait = case.policy.one_at_a_time()?;
    let named = match away {
        Some(pod) if pod.terminating() || case.cluster.evictions.is_in_flight(&pod.uid) => {
            format!("{} is going", words::placed(pod))
        }
        Some(pod) => format!("{} is not Ready", words::placed(pod)),
        None => "one is missing".to_owned(),
    };
    let owner = owners::known_as(case.cluster, owner);
    Some(Said {
        outlook: Outlook::WillClear,
        message: format!(
            "No budget selects this pod, and spec.pods.unbudgeted is OneAtATime: of the pods of {owner} {named}, and all of \
             them have until {} to be Ready (spec.pods.unbudgetedWait, {wait}).",
            words::at(until)
        ),
        remedy: format!(
            "nothing to change: wait for the replacement; a budget for the pods of {owner} would say how many may be away"
        ),
    })
}

/// When the wait for the pods that are away ends.
pub(super) fn until(case: &Case<'_, '_>) -> Option<Timestamp> {
    away(case).map(|(_, until, _)| until)
}

/// The owner, until when it is given time, and one of its pods that are away.
fn away<'c>(case: &'c Case<'_, '_>) -> Option<(&'c OwnerRef, Timestamp, Option<&'c Pod>)> {
    let wait = case.policy.one_at_a_time()?.value();
    let pod = case.pod;
    let evictions = &case.cluster.evictions;
    if case.treatment != Treatment::Evict
        || case.verdict.cause != Cause::NoBudget
        || evictions.is_in_flight(&pod.uid)
    {
        return None;
    }
    let owner = pod.owner.as_deref()?;
    let after = |at: Timestamp| at.saturating_add(wait).unwrap_or(Timestamp::MAX);
    let mut latest: Option<(Timestamp, Option<&Pod>)> = None;
    let mut consider = |until: Timestamp, pod: Option<&'c Pod>| {
        if latest.is_none_or(|(known, _)| known < until) {
            latest = Some((until, pod));
        }
    };
    let mut alive = 0_usize;
    let siblings = case.cluster.pods_in(&pod.namespace).filter(|other| {
        other.owner.as_ref().is_some_and(|of| of.uid == owner.uid) && !other.finished_by_itself()
    });
    for sibling in siblings {
        if let Some(deletion) = sibling.deletion {
            consider(after(deletion.asked()), Some(sibling));
            continue;
        }
        alive += 1;
        if sibling.uid == pod.uid {
            continue;
        }
        if evictions.is_in_flight(&sibling.uid) {
            consider(after(case.now), Some(sibling));
        } else if !sibling.ready {
            consider(after(sibling.created.unwrap_or(Timestamp::MIN)), Some(sibling));
        }
    }
    let wants =
        case.cluster.workload(&owner.uid).and_then(|workload| usize::try_from(workload.replicas).ok());
    if wants.is_some_and(|wants| alive < wants)
        && let Some(moved) = evictions.last_moved(&owner.uid)
    {
        consider(after(moved), None);
    }
    let (until, away) = latest?;
    (until > case.now).then_some((owner, until, away))
}
