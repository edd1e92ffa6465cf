//! Terminating pods and namespaces.

use super::*;

fn going(at: Timestamp, grace_seconds: i64) -> World {
    World::new()
        .stateful_set("web", 1)
        .change("web-0", |pod| pod.deletion = Some(Deletion { at, grace_seconds, cut_short: true }))
}

#[test]
fn a_terminating_pod_is_waited_for() {
    let world = going(ago(-20), 30);
    world.waits(
        "web-0",
        Reason::Terminating,
        Outlook::WillClear,
        "Deleted, and to be gone by 2026-12-01T10:00:20Z (its grace period of 30 s included).",
        "nothing to change: wait for its containers to end",
    );
}

#[test]
fn overdue_begins_thirty_seconds_after_the_deletion_time() {
    let reason = |world: World| world.judge("web-0").wait.map(|wait| (wait.reason, wait.outlook));
    assert_eq!(reason(going(ago(29), 5)), Some((Reason::Terminating, Outlook::WillClear)));
    assert_eq!(reason(going(ago(30), 5)), Some((Reason::TerminatingOverdue, Outlook::MayClear)));
    assert_eq!(going(ago(29), 5).judge("web-0").changes_at, Some(ago(-1)));
    assert_eq!(going(ago(30), 5).judge("web-0").changes_at, None);
}

#[test]
fn an_overdue_pod_is_the_kubelets_business() {
    going(ago(600), 30).waits(
        "web-0",
        Reason::TerminatingOverdue,
        Outlook::MayClear,
        "Deleted, and overdue since 2026-12-01T09:50:30Z: its grace period of 30 s \
         ended at 2026-12-01T09:50:00Z, and the kubelet of node-a has not confirmed that \
         its containers have ended.",
        "look at the kubelet and the container runtime of node-a: what keeps web-0 alive?",
    );
}

#[test]
fn finalizers_keep_an_object_whose_containers_have_ended() {
    let with = |names: &[&str], grace| {
        let names: Vec<Text> = names.iter().map(|name| Text::from(*name)).collect();
        going(ago(600), grace).change("web-0", |pod| pod.finalizers = names.into())
    };
    let world = with(&["reports.example.dev/upload"], 0);
    world.waits(
        "web-0",
        Reason::FinalizerHolds,
        Outlook::MayClear,
        "Deleted 2026-12-01T09:50:00Z with grace period 0, but its object is kept by the \
         finalizer reports.example.dev/upload.",
        "find out why whoever set reports.example.dev/upload does not remove it; if its \
         work is done, remove it from metadata.finalizers of pod shop/web-0",
    );
    // While containers may run, it is not the finalizer that is waited for.
    let reason = with(&["reports.example.dev/upload"], 30).judge("web-0").wait.map(|wait| wait.reason);
    assert_eq!(reason, Some(Reason::TerminatingOverdue));
}

#[test]
fn a_silent_kubelet_confirms_nothing() {
    let mut world = going(ago(-20), 30);
    world.cluster.apply_node(Node { name: "node-a".into(), ready: "Unknown".into(), ..Node::default() });
    world.waits(
        "web-0",
        Reason::KubeletUnreachable,
        Outlook::MayClear,
        "Deleted, to be gone by 2026-12-01T10:00:20Z, but the kubelet of node-a does not \
         report (Ready is Unknown), so nobody confirms that its containers have ended.",
        "bring node-a back; or, once the machine is confirmed to be off: kubectl taint \
         node node-a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    );
}

#[test]
fn a_terminating_namespace_refuses_and_deletes() {
    let with = |content_remaining: Option<&str>| {
        let mut world = World::new().stateful_set("web", 1);
        world.cluster.apply_namespace(Namespace {
            name: "shop".into(),
            terminating: true,
            content_remaining: content_remaining.map(Text::from),
            ..Namespace::default()
        });
        world
    };
    with(None).waits(
        "web-0",
        Reason::NamespaceTerminating,
        Outlook::WillClear,
        "Namespace shop is being deleted: the server refuses evictions in it (403), and \
         the namespace controller deletes this pod itself.",
        "nothing to change: wait for namespace shop to be gone",
    );
    let remaining =
        "Some content in the namespace has finalizers remaining: x.example.dev in 1 resource instances";
    with(Some(remaining)).waits(
        "web-0",
        Reason::NamespaceTerminating,
        Outlook::MayClear,
        "Namespace shop is being deleted: the server refuses evictions in it (403), and \
         the namespace controller, which is to delete this pod itself, reports: “Some content in \
         the namespace has finalizers remaining: x.example.dev in 1 resource instances”.",
        "remove what keeps namespace shop from being deleted",
    );
    // A budget does not count there.
    let world = with(None).budget("web", "maxUnavailable: 0");
    assert_eq!(world.judge("web-0").wait.map(|wait| wait.reason), Some(Reason::NamespaceTerminating));
    // Once the pod is marked, it is Terminating.
    let world = with(None).change("web-0", |pod| {
        pod.deletion = Some(Deletion { at: ago(-20), grace_seconds: 30, cut_short: true });
    });
    assert_eq!(world.judge("web-0").wait.map(|wait| wait.reason), Some(Reason::Terminating));
}
