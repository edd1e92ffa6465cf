//! What a drain leaves alone and what it is not allowed to evict.

use super::*;
use crate::cluster::RestartPolicy;

fn mirror(pod: &mut Pod) {
    pod.mirror = true;
}

#[test]
fn daemon_set_mirror_and_finished_pods_are_left_alone() {
    let daemon = owner("apps/v1", "DaemonSet", "agent");
    let mut world = World::new()
        .pod("agent-x", Some(daemon.clone()))
        .pod("kube-proxy-node-a", Some(owner("v1", "Node", "node-a")))
        .change("kube-proxy-node-a", mirror)
        .pod("done", None)
        .change("done", |pod| pod.phase = PodPhase::Succeeded)
        .pod("failed", None)
        .change("failed", |pod| pod.phase = PodPhase::Failed);
    world.cluster.apply_daemon_set(DaemonSet {
        namespace: "shop".into(),
        name: daemon.name,
        uid: daemon.uid,
    });
    for pod in ["agent-x", "kube-proxy-node-a", "done", "failed"] {
        let judgement = world.judge(pod);
        assert_eq!((judgement.treatment, judgement.wait), (Treatment::Ignore, None), "{pod}");
    }
}

#[test]
fn a_pod_without_a_controller_would_not_come_back() {
    let mut world = World::new().pod("lone", None);
    world.waits(
        "lone",
        Reason::Unmanaged,
        Outlook::NeverClears,
        "This pod has no controller, so nothing would create it again, and \
         spec.pods.unmanaged is Refuse.",
        "let a Deployment or another controller run it, delete it by hand, or set \
         spec.pods.unmanaged: Evict in the plan",
    );
    assert_eq!(world.judge("lone").treatment, Treatment::Refuse);
    assert_eq!(world.judge("lone").verdict.code, 201);
    world.policy.unmanaged = Some(Eviction::Evict);
    world.goes("lone");
}

#[test]
fn a_pod_that_is_not_restarted_may_finish() {
    let world =
        World::new().pod("lone", None).change("lone", |pod| pod.restart_policy = RestartPolicy::OnFailure);
    world.waits(
        "lone",
        Reason::Unmanaged,
        Outlook::MayClear,
        "This pod has no controller, so nothing would create it again, and \
         spec.pods.unmanaged is Refuse. It may finish by itself.",
        "let a Deployment or another controller run it, delete it by hand, or set \
         spec.pods.unmanaged: Evict in the plan",
    );
}

#[test]
fn a_pod_whose_daemon_set_is_gone_is_unmanaged() {
    let world = World::new().pod("agent-x", Some(owner("apps/v1", "DaemonSet", "agent")));
    world.waits(
        "agent-x",
        Reason::Unmanaged,
        Outlook::NeverClears,
        "DaemonSet agent of this pod is gone, so nothing would create it again, and \
         spec.pods.unmanaged is Refuse.",
        "let a Deployment or another controller run it, delete it by hand, or set \
         spec.pods.unmanaged: Evict in the plan",
    );
}

#[test]
fn a_kind_of_another_group_named_daemon_set_is_not_looked_up() {
    World::new().pod("agent-x", Some(owner("apps.kruise.io/v1alpha1", "DaemonSet", "agent"))).goes("agent-x");
}

#[test]
fn empty_dir_data_would_be_lost() {
    let mut world = World::new()
        .stateful_set("web", 1)
        .change("web-0", |pod| pod.empty_dirs = ["cache", "tmp"].map(Text::from).into());
    world.waits(
        "web-0",
        Reason::LocalData,
        Outlook::NeverClears,
        "An eviction deletes the data of this pod's emptyDir volumes cache and tmp, and \
         spec.pods.emptyDir is Refuse.",
        "set spec.pods.emptyDir: Evict in the plan if that data may be lost",
    );
    world.policy.empty_dir = Some(Eviction::Evict);
    world.goes("web-0");
}

#[test]
fn each_permission_stands_for_itself() {
    let mut world = World::new()
        .pod("lone", None)
        .change("lone", |pod| pod.empty_dirs = ["cache"].map(Text::from).into());
    assert_eq!(world.judge("lone").wait.map(|wait| wait.reason), Some(Reason::Unmanaged));
    world.policy.unmanaged = Some(Eviction::Evict);
    world.waits(
        "lone",
        Reason::LocalData,
        Outlook::NeverClears,
        "An eviction deletes the data of this pod's emptyDir volume cache, and \
         spec.pods.emptyDir is Refuse.",
        "set spec.pods.emptyDir: Evict in the plan if that data may be lost",
    );
    assert_eq!(world.judge("lone").treatment, Treatment::Refuse);
}

/// One change is not followed by the discovery of the next.
#[test]
fn what_budgets_have_against_it_is_said_at_once() {
    let in_plan = "set spec.pods.emptyDir: Evict in the plan if that data may be lost";
    let remedy = |world: World| {
        let world = world.change("web-0", |pod| pod.empty_dirs = ["cache"].map(Text::from).into());
        let wait = world.judge("web-0").wait.expect("it waits");
        assert_eq!(wait.reason, Reason::LocalData);
        wait.remedy.strip_prefix(in_plan).expect("the plan comes first").to_owned()
    };
    let web = || World::new().stateful_set("web", 2);
    assert_eq!(remedy(web().budget("web", "maxUnavailable: 1")), "");
    assert_eq!(
        remedy(web().budget("web", "maxUnavailable: 0")),
        "; also in budget shop/web write maxUnavailable: 1 instead of maxUnavailable: 0"
    );
    assert_eq!(
        remedy(web().budget("gold", "maxUnavailable: 1").budget("silver", "maxUnavailable: 1")),
        "; also keep one of shop/gold and shop/silver: delete the others, or let their \
         selectors leave this pod out"
    );
    // Of a budget that counts none the plan's leave alone would be no help.
    let wait = World::new().pod("lone", None).budget("web", "maxUnavailable: 1").judge("lone").wait;
    assert_eq!(
        wait.map(|wait| wait.remedy).as_deref(),
        Some(
            "let a Deployment or another controller run it, delete it by hand, or set spec.pods.unmanaged: Evict in the \
             plan; also in budget shop/web write minAvailable: 0 instead of \
             maxUnavailable: 1"
        )
    );
}

#[test]
fn a_pod_that_goes_already_is_not_refused() {
    let deletion = Deletion { at: ago(-20), grace_seconds: 30, cut_short: true };
    let world = World::new().pod("lone", None).change("lone", |pod| pod.deletion = Some(deletion));
    let judgement = world.judge("lone");
    assert_eq!(judgement.treatment, Treatment::Evict);
    assert_eq!(judgement.wait.map(|wait| wait.reason), Some(Reason::Terminating));
}

/// Kubelets give deleted pods a final phase when their containers have ended, and their objects go later, or never.
#[test]
fn a_pod_that_was_deleted_counts_until_it_is_gone() {
    let held = |cut_short| {
        let world = World::new().stateful_set("web", 2).change("web-0", |pod| {
            (pod.phase, pod.ready) = (PodPhase::Failed, false);
            pod.deletion = Some(Deletion { at: ago(20), grace_seconds: 0, cut_short });
            pod.finalizers = ["example.com/hold"].map(Text::from).into();
        });
        let judgement = world.judge("web-0");
        (judgement.treatment, judgement.wait.map(|wait| wait.reason))
    };
    assert_eq!(held(true), (Treatment::Evict, Some(Reason::FinalizerHolds)));
    assert_eq!(held(false), (Treatment::Ignore, None), "it had finished before");
}
