//! Pods that are going, and namespaces that are.

use jiff::Timestamp;

use super::case::Case;
use super::{Said, collected, hanging, refusals, words};
use crate::api::Outlook;
use crate::budget::Cause;
use crate::cluster::Deletion;

/// Deleted with grace 0, so nobody waits for its containers; the object is kept by finalizers.
pub(super) fn finalizer_holds(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    let deletion = pod.deletion.filter(|deletion| deletion.grace_seconds == 0)?;
    if pod.finalizers.is_empty() {
        return None;
    }
    let names = words::list(&pod.finalizers, ToString::to_string);
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "Deleted {} with grace period 0, but its object is kept by {} {names}.",
            words::at(deletion.at),
            if pod.finalizers.len() == 1 { "the finalizer" } else { "the finalizers" },
        ),
        remedy: hanging::finalizers(pod),
    })
}

/// On its way, and not late.
pub(super) fn in_time(case: &Case<'_, '_>) -> Option<Said> {
    let (deletion, due) = due(case)?;
    (case.now < due).then(|| Said {
        outlook: Outlook::WillClear,
        message: format!(
            "Deleted, and to be gone by {} (its grace period of {} s included).",
            words::at(deletion.at),
            deletion.grace_seconds
        ),
        remedy: "nothing to change: wait for its containers to end".to_owned(),
    })
}

/// It should have gone.
pub(super) fn overdue(case: &Case<'_, '_>) -> Option<Said> {
    let (deletion, due) = due(case)?;
    let pod = case.pod;
    let (grace, ended) = (deletion.grace_seconds, words::at(deletion.at));
    let due = words::at(due);
    let Some(node) = pod.node.as_deref() else {
        return Some(Said {
            outlook: Outlook::MayClear,
            message: format!(
                "Deleted, and overdue since {due}: its grace period of {grace} s ended at {ended}. It has no node, so no \
                 kubelet confirms its end; the pod garbage collection of kube-controller-manager deletes such pods every \
                 20 s."
            ),
            remedy: hanging::kubelet(pod),
        });
    };
    let taint = collected::without_effect(case).unwrap_or_default();
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "Deleted, and overdue since {due}: its grace period of {grace} s ended at {ended}, and the \
             kubelet of {node} has not confirmed that its containers have ended.{taint}"
        ),
        remedy: hanging::kubelet(pod),
    })
}

/// The deletion of a terminating pod, and from when on it is overdue.
fn due(case: &Case<'_, '_>) -> Option<(Deletion, Timestamp)> {
    let deletion = case.pod.deletion?;
    Some((deletion, hanging::due(deletion, case.patience)))
}

/// The server refuses every eviction in the namespace.
pub(super) fn namespace(case: &Case<'_, '_>) -> Option<Said> {
    let refused = case
        .refusal
        .is_some_and(|refusal| refusal.causes.iter().any(|cause| &**cause == "NamespaceTerminating"));
    if case.verdict.cause != Cause::NamespaceTerminating && !refused {
        return None;
    }
    let name = &case.pod.namespace;
    let remaining = case.cluster.namespace(name).and_then(|namespace| namespace.content_remaining.as_ref());
    let message = format!(
        "Namespace {name} is being deleted: the server refuses evictions in it (403), and the namespace controller"
    );
    Some(match remaining {
        None => Said {
            outlook: Outlook::WillClear,
            message: format!("{message} deletes this pod itself."),
            remedy: format!("nothing to change: wait for namespace {name} to be gone"),
        },
        Some(why) => Said {
            outlook: Outlook::MayClear,
            message: format!(
                "{message}, which is to delete this pod itself, reports: {}.",
                words::quote(why)
            ),
            remedy: match refusals::named(why) {
                Some(guard) => format!("ask whoever runs {guard} to let namespace {name} be deleted"),
                None => format!("remove what keeps namespace {name} from being deleted"),
            },
        },
    })
}
