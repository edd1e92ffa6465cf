//! Pods that come back to a node that is being drained.
//!
//! A pod that was created after the node's start and is on it has come back. It is written down before it is evicted, so
//! that the count outlives a crash; after two of one controller its pods on that node are left alone.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::Round;
use super::memory::Record;
use super::survey::Survey;
use crate::api::{Outlook, Reason, ReturnedPod};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Pod, Text};
use crate::explain::{Treatment, Wait};

/// So many pods of a controller that came back are enough.
const ENOUGH: usize = 2;

/// A pod that does not tolerate the cordon may have been bound while it was on its way.
const CORDON_LANDS: SignedDuration = SignedDuration::from_secs(10);

/// Takes down the pods that have come back, and holds those that would again. Returns the uids of those whose return is
/// not written down yet: they are not evicted now.
pub fn follow(
    round: &Round<'_>,
    since: Timestamp,
    record: &mut Record,
    survey: &mut Survey,
) -> BTreeSet<Text> {
    let mut new = BTreeSet::new();
    if planted(Planted::ReturnsIgnored) {
        return new;
    }
    for surveyed in survey.pods.iter().filter(|of| of.judgement.treatment == Treatment::Evict) {
        let pod = &surveyed.pod;
        let Some(owner) = pod.owner.as_ref().filter(|_| has_come_back(pod, since)) else { continue };
        let known = record.returned.iter().any(|of| *of.pod == *pod.uid);
        if !known && returned(record, &owner.uid) < ENOUGH {
            record.returned.push(ReturnedPod { pod: pod.uid.to_string(), owner: owner.uid.to_string() });
            new.insert(pod.uid.clone());
        }
    }
    if record.returned.is_empty() {
        return new;
    }
    for surveyed in &mut survey.pods {
        let (pod, judgement) = (&surveyed.pod, &mut surveyed.judgement);
        let again = pod.owner.as_ref().is_some_and(|owner| returned(record, &owner.uid) >= ENOUGH);
        if again && !pod.terminating() && judgement.wait.as_ref().is_none_or(gives_way) {
            judgement.wait = round.explainer.came_back(pod);
        }
    }
    new
}

/// What would be said of a pod that comes back is weaker, by the order of the reasons.
fn gives_way(wait: &Wait) -> bool {
    wait.outlook != Outlook::NeverClears && wait.reason > Reason::ReturnsToNode
}

fn returned(record: &Record, owner: &str) -> usize {
    record.returned.iter().filter(|of| of.owner == owner).count()
}

/// Times have whole seconds: what was created in the second of the start may have been there before.
fn has_come_back(pod: &Pod, since: Timestamp) -> bool {
    let tolerates = pod.placement.as_ref().is_some_and(|placement| placement.tolerates_cordon());
    let lands = if tolerates { SignedDuration::ZERO } else { CORDON_LANDS };
    let cordoned = since.saturating_add(lands).unwrap_or(Timestamp::MAX);
    pod.created.is_some_and(|created| created > cordoned)
}
