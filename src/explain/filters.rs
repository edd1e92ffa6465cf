//! Which pods a drain leaves alone, and which it evicts only when told to (kubectl's `pkg/drain/filters.go`).

use jiff::Timestamp;

use super::case::Case;
use super::{Said, Treatment, besides, rules, words};
use crate::api::{Eviction, Outlook, PodAction, PodPolicy, Reason};
use crate::cluster::{Cluster, OwnerRef, Pod, RestartPolicy};

/// What is done to the pod. One that is going already is not refused: nobody needs to evict it.
pub(super) fn treatment(
    cluster: &Cluster,
    pod: &Pod,
    policy: &PodPolicy,
    action: PodAction,
    now: Timestamp,
) -> Treatment {
    let refused = action == PodAction::AwaitCompletion
        || rules::protected(pod, policy, now)
        || (managed_by(cluster, pod).is_none() && refuses(policy.unmanaged))
        || (!pod.empty_dirs.is_empty() && refuses(policy.empty_dir));
    if pod.mirror || pod.finished_by_itself() || belongs_to_node(cluster, pod) || action == PodAction::Skip {
        Treatment::Ignore
    } else if refused && !pod.terminating() {
        Treatment::Refuse
    } else {
        Treatment::Evict
    }
}

/// No controller would create the pod again.
pub(super) fn unmanaged(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    let waits = case.treatment == Treatment::Refuse
        && case.action == PodAction::Evict
        && refuses(case.policy.unmanaged)
        && managed_by(case.cluster, pod).is_none();
    waits.then(|| {
        let lost = match &pod.owner {
            Some(owner) => format!("{} {} of this pod is gone", owner.kind, owner.name),
            None => "This pod has no controller".to_owned(),
        };
        Said {
            outlook: outlook(pod),
            message: format!(
                "{lost}, so nothing would create it again, and spec.pods.unmanaged is Refuse.{}",
                may_end(pod)
            ),
            remedy: format!(
                "let a Deployment or another controller run it, delete it by hand, or set spec.pods.unmanaged: Evict in \
                 the plan{}",
                besides::also(case, Reason::Unmanaged)
            ),
        }
    })
}

/// An eviction would delete data of the pod.
pub(super) fn local_data(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    let waits = case.treatment == Treatment::Refuse
        && case.action == PodAction::Evict
        && refuses(case.policy.empty_dir)
        && !pod.empty_dirs.is_empty();
    waits.then(|| Said {
        outlook: outlook(pod),
        message: format!(
            "An eviction deletes the data of this pod's emptyDir {} {}, and spec.pods.emptyDir is Refuse.{}",
            if pod.empty_dirs.len() == 1 { "volume" } else { "volumes" },
            words::list(&pod.empty_dirs, ToString::to_string),
            may_end(pod)
        ),
        remedy: format!(
            "set spec.pods.emptyDir: Evict in the plan if that data may be lost{}",
            besides::also(case, Reason::LocalData)
        ),
    })
}

fn refuses(choice: Option<Eviction>) -> bool {
    choice.unwrap_or_default() == Eviction::Refuse
}

/// A DaemonSet that exists owns it: it would be created again on the same node.
fn belongs_to_node(cluster: &Cluster, pod: &Pod) -> bool {
    pod.owner.as_ref().is_some_and(|owner| is_daemon_set(owner) && exists(cluster, pod, owner))
}

/// The controller that would create the pod again, as far as can be known: only DaemonSets are looked up.
fn managed_by<'p>(cluster: &Cluster, pod: &'p Pod) -> Option<&'p OwnerRef> {
    let owner = pod.owner.as_deref()?;
    (!is_daemon_set(owner) || exists(cluster, pod, owner)).then_some(owner)
}

fn exists(cluster: &Cluster, pod: &Pod, daemon_set: &OwnerRef) -> bool {
    cluster.daemon_set_exists(&pod.namespace, &daemon_set.name)
}

fn is_daemon_set(owner: &OwnerRef) -> bool {
    &*owner.kind == "DaemonSet" && &*owner.api_version == "apps/v1"
}

/// A pod that is not restarted may finish, and finished pods are left alone.
pub(super) fn outlook(pod: &Pod) -> Outlook {
    if pod.restart_policy == RestartPolicy::Always { Outlook::NeverClears } else { Outlook::MayClear }
}

pub(super) fn may_end(pod: &Pod) -> &'static str {
    if pod.restart_policy == RestartPolicy::Always { "" } else { " It may finish by itself." }
}
