//! Pods that no kubelet ends.

use super::*;
use crate::cluster::Taint;

const TAINT: &str = "node.kubernetes.io/out-of-service";

/// web-0 is going on node-a, of which Ready is as given, with the taint or without.
fn going(ready: &str, tainted: bool, at: Timestamp) -> World {
    let mut world = World::new().stateful_set("web", 2);
    let taint = Taint { key: TAINT.into(), value: "nodeshutdown".into(), effect: "NoExecute".into() };
    let taints = if tainted { vec![taint] } else { vec![] };
    world.cluster.apply_node(Node { name: "node-a".into(), ready: ready.into(), taints, ..Node::default() });
    world
        .change("web-0", |pod| pod.deletion = Some(Deletion { at, grace_seconds: 30, cut_short: true }))
        .change("web-1", |pod| pod.node = Some("node-b".into()))
}

fn held_by(mut world: World, finalizer: &str) -> World {
    world = world.change("web-0", |pod| pod.finalizers = [Text::from(finalizer)].into());
    world
}

#[test]
fn a_node_out_of_service_has_its_pods_collected() {
    const WAIT: &str = "nothing to change: wait for the pod garbage collection; if it takes longer, check that \
                        kube-controller-manager runs";
    for ready in ["Unknown", "False"] {
        let message = format!(
            "Deleted, to be gone by 2026-12-01T10:00:20Z. Its node node-a is not Ready (Ready is {ready}) and carries \
             the taint node.kubernetes.io/out-of-service, so the pod garbage collection of kube-controller-manager \
             marks it Failed and deletes it in its next round, within 20 s."
        );
        let world = going(ready, true, ago(-20));
        world.waits("web-0", Reason::KubeletUnreachable, Outlook::WillClear, &message, WAIT);
        let kept = format!("{message} Its finalizers keep the object beyond that: example.com/backup.");
        held_by(world, "example.com/backup").waits(
            "web-0",
            Reason::KubeletUnreachable,
            Outlook::MayClear,
            &kept,
            "find out why whoever set example.com/backup does not remove it; if its work is done, remove it from \
             metadata.finalizers of pod shop/web-0",
        );
    }
}

#[test]
fn a_node_that_is_gone_has_its_pods_collected() {
    let mut world = going("Unknown", false, ago(-20));
    world.cluster.delete_node("node-a");
    world.waits(
        "web-0",
        Reason::KubeletUnreachable,
        Outlook::WillClear,
        "Deleted, to be gone by 2026-12-01T10:00:20Z, and bound to node-a, a node that does not exist any more: the \
         pod garbage collection of kube-controller-manager marks it Failed and deletes it 40 to 80 s after the node \
         has gone.",
        "nothing to change: wait for the pod garbage collection; if it takes longer, check that \
         kube-controller-manager runs",
    );
}

#[test]
fn the_taint_of_a_ready_node_has_nothing_collected() {
    let reason = |world: World| world.judge("web-0").wait.map(|wait| wait.reason);
    assert_eq!(reason(going("True", true, ago(-20))), Some(Reason::Terminating));
    going("True", true, ago(600)).waits(
        "web-0",
        Reason::TerminatingOverdue,
        Outlook::MayClear,
        "Deleted, and overdue since 2026-12-01T09:50:30Z: its grace period of 30 s ended at 2026-12-01T09:50:00Z, and \
         the kubelet of node-a has not confirmed that its containers have ended. The taint \
         node.kubernetes.io/out-of-service of node-a has no pod collected while its kubelet reports (Ready is True).",
        "look at the kubelet and the container runtime of node-a: what keeps web-0 alive?",
    );
}

#[test]
fn a_pod_without_a_node_has_no_kubelet() {
    going("True", false, ago(600)).change("web-0", |pod| pod.node = None).waits(
        "web-0",
        Reason::TerminatingOverdue,
        Outlook::MayClear,
        "Deleted, and overdue since 2026-12-01T09:50:30Z: its grace period of 30 s ended at 2026-12-01T09:50:00Z. It \
         has no node, so no kubelet confirms its end; the pod garbage collection of kube-controller-manager deletes \
         such pods every 20 s.",
        "check that kube-controller-manager runs",
    );
}

#[test]
fn the_name_of_a_stateful_sets_pod_is_not_free_while_a_kubelet_is_silent() {
    let numbers =
        "Budget shop/web (maxUnavailable 1 of 2) allows 0 evictions now: expected 2, healthy 1, desired 1.";
    going("Unknown", false, ago(-20)).budget("web", "maxUnavailable: 1").waits(
        "web-1",
        Reason::BudgetExhausted,
        Outlook::MayClear,
        &format!(
            "{numbers} Being replaced or starting: web-0 on node-a (terminating, and the kubelet of node-a does not \
             report)."
        ),
        "bring node-a back; or, once the machine is confirmed to be off: kubectl taint node node-a \
         node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    );
    // It is collected, so that time helps.
    let world = going("Unknown", true, ago(-20)).budget("web", "maxUnavailable: 1");
    let wait = world.judge("web-1").wait.unwrap();
    assert_eq!((wait.reason, wait.outlook), (Reason::BudgetExhausted, Outlook::WillClear));
    assert!(
        wait.message.contains("(terminating, and pod garbage collection deletes it)"),
        "{}",
        wait.message
    );
    // Where more may be away, the others suffice.
    let world = going("Unknown", false, ago(-20)).budget("web", "maxUnavailable: 2");
    assert_eq!(world.judge("web-1").wait, None);
}

#[test]
fn an_unready_pod_of_a_node_that_is_gone_is_told_so() {
    let mut world = going("True", false, ago(-20)).change("web-0", |pod| {
        pod.deletion = None;
        pod.ready = false;
    });
    world.cluster.delete_node("node-a");
    let wait = world.budget("web", "maxUnavailable: 1").judge("web-1").wait.unwrap();
    assert_eq!(wait.reason, Reason::BudgetUnhealthy);
    let told = "web-0 on node-a (its node is gone, and pod garbage collection deletes it)";
    assert!(wait.message.contains(told), "{}", wait.message);
}

fn budgeted(world: World) -> World {
    world.budget("web", "maxUnavailable: 1")
}

fn overdue() -> World {
    budgeted(going("True", false, ago(600)))
}

fn held_by_a_finalizer() -> World {
    let confirmed =
        |pod: &mut Pod| pod.deletion = Some(Deletion { at: ago(600), grace_seconds: 0, cut_short: true });
    budgeted(held_by(going("True", false, ago(600)), "example.com/hold").change("web-0", confirmed))
}

/// What is said of a pod that waits for one of its stateful set that does not go.
#[test]
fn a_pod_that_does_not_go_is_no_slow_one_for_its_siblings() {
    let head = "Budget shop/web (maxUnavailable 1 of 2) allows 0 evictions now: expected 2, healthy 1, desired 1. Being \
                replaced or starting: web-0 on node-a (terminating, and";
    let perhaps = |world: World, fate: &str, remedy: &str| {
        let message = format!("{head} {fate}).");
        world.waits("web-1", Reason::BudgetExhausted, Outlook::MayClear, &message, remedy);
    };
    perhaps(
        overdue(),
        "overdue since 2026-12-01T09:50:30Z",
        "look at the kubelet and the container runtime of node-a: what keeps web-0 alive?",
    );
    let finalizer = "its object is still there, because the finalizer example.com/hold keeps it";
    let remove = "find out why whoever set example.com/hold does not remove it; if its work is done, remove it from \
                  metadata.finalizers of pod shop/web-0";
    perhaps(held_by_a_finalizer(), finalizer, remove);
    // Kubelets say of deleted pods that they have finished.
    perhaps(
        budgeted(held_by_a_finalizer().change("web-0", |pod| pod.phase = PodPhase::Succeeded)),
        finalizer,
        remove,
    );
    perhaps(budgeted(held_by(going("Unknown", true, ago(-20)), "example.com/hold")), finalizer, remove);
    // In time, it is only slow; and when it is overdue is when to look again.
    let world = budgeted(going("True", false, ago(-20)));
    let judgement = world.judge("web-1");
    assert_eq!(judgement.changes_at, Some(ago(-50)));
    assert_eq!(judgement.wait.map(|wait| wait.outlook), Some(Outlook::WillClear));
}

/// The pods of other controllers are replaced while they are going; but when they will be gone nobody knows.
#[test]
fn an_overdue_pod_that_is_replaced_is_called_overdue() {
    let world = World::new().deployment("web", 2);
    let going =
        |pod: &mut Pod| pod.deletion = Some(Deletion { at: ago(600), grace_seconds: 30, cut_short: true });
    let starts = |pod: &mut Pod| (pod.ready, pod.created) = (false, Some(ago(5)));
    let world = world.pod("web-7d-2", Some(owner("apps/v1", "ReplicaSet", "web-7d")));
    let world = world.change("web-7d-0", going).change("web-7d-2", starts).budget("web", "maxUnavailable: 1");
    let wait = world.judge("web-7d-1").wait.expect("it waits");
    assert_eq!((wait.reason, wait.outlook), (Reason::BudgetExhausted, Outlook::WillClear));
    let said = "web-7d-0 on node-a (terminating, and overdue since 2026-12-01T09:50:30Z)";
    assert!(wait.message.contains(said), "{}", wait.message);
}
