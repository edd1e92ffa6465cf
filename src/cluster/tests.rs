//! From the wire into the cluster.

use jiff::{SignedDuration, Timestamp};
use kube::core::{ObjectList, WatchEvent};

use super::*;

fn pod_json(name: &str, more: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"namespace": "shop", "name": "{name}", "uid": "u-{name}",
        "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {{"app": "web"}},
        "managedFields": [{{"manager": "x", "fieldsV1": {{"f:metadata": {{}}}}}}],
        "annotations": {{"big": "…", "kubernetes.io/config.mirror": "x"}}}}, {more}}}"#
    )
}

fn pod(name: &str) -> Raw {
    Raw::decode(
        ObjectKind::Pod,
        &pod_json(name, r#""spec": {"nodeName": "node-a"}, "status": {"phase": "Running"}"#),
    )
}

fn key(name: &str) -> PodKey {
    PodKey { namespace: "shop".into(), name: name.into() }
}

fn names(cluster: &Cluster) -> Vec<&str> {
    cluster.pods_in("shop").map(|pod| &*pod.name).collect()
}

fn read_pod(more: &str) -> Pod {
    let mut cluster = Cluster::new();
    cluster.observe(Change::Applied(Raw::decode(ObjectKind::Pod, &pod_json("a", more))));
    assert_eq!(cluster.bad_objects().collect::<Vec<_>>(), Vec::<&BadObject>::new());
    Pod::clone(cluster.pod(&key("a")).expect("the pod"))
}

#[test]
fn a_drawn_name_is_the_prefix_and_five_characters() {
    let drawn = |name: &str, prefix: &str| {
        let pod =
            format!(r#"{{"metadata": {{"namespace": "shop", "name": "{name}", "generateName": {prefix}}}}}"#);
        let mut cluster = Cluster::new();
        cluster.observe(Change::Applied(Raw::decode(ObjectKind::Pod, &pod)));
        cluster.pod(&key(name)).expect("the pod").name_drawn
    };
    assert!(drawn("web-5d4f-x7k2p", "\"web-5d4f-\""));
    let (long, cut) = ("l".repeat(70), "l".repeat(58));
    assert!(drawn(&format!("{cut}x7k2p"), &format!("\"{long}\"")));
    for (name, prefix) in
        [("db-0", "null"), ("db-0", "\"db-\""), ("x7k2p", "\"\""), ("web-x7k2p", "\"shop-\"")]
    {
        assert!(!drawn(name, prefix), "{name} {prefix}");
    }
}

#[test]
fn what_is_read_of_a_pod() {
    let pod = read_pod(
        r#""spec": {"nodeName": "node-a", "restartPolicy": "Never", "volumes": null},
        "status": {"phase": "Running", "conditions": [
          {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
          {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"},
          {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}],
        "containerStatuses": [
          {"restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}},
          {"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}"#,
    );
    assert_eq!(pod.node.as_deref(), Some("node-a"));
    assert!(!pod.ready, "the first condition of a type counts");
    assert!(pod.mirror);
    assert_eq!(pod.restart_policy, RestartPolicy::Never);
    assert_eq!(pod.unschedulable.as_deref(), Some("0/3 nodes"));
    assert_eq!(
        pod.trouble.as_deref(),
        Some(&ContainerTrouble {
            restarts: 4,
            waiting: Some("CrashLoopBackOff".into()),
            unready_since: Some("2026-01-01T00:00:00Z".parse().expect("a time")),
        })
    );
    let ready = r#"{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"}"#;
    assert_eq!(read_pod(&format!(r#""status": {{"conditions": [{ready}]}}"#)).trouble, None);
    let bare = read_pod(r#""status": null"#);
    assert_eq!((bare.phase, bare.node, bare.trouble), (PodPhase::Pending, None, None));
}

#[test]
fn finished_by_itself_or_because_it_was_deleted() {
    let finished = |deleted: &str, containers: &str| {
        let pod = format!(
            r#"{{"metadata": {{"namespace": "shop", "name": "a", {deleted}}},
            "status": {{"phase": "Failed", "containerStatuses": [{containers}]}}}}"#
        );
        let mut cluster = Cluster::new();
        cluster.observe(Change::Applied(Raw::decode(ObjectKind::Pod, &pod)));
        let pod = cluster.pod(&key("a")).expect("the pod");
        assert!(pod.finished());
        pod.finished_by_itself()
    };
    let ended = |at: &str| format!(r#"{{"state": {{"terminated": {{"finishedAt": "{at}"}}}}}}"#);
    let (before, after) = (ended("2026-01-01T09:59:59Z"), ended("2026-01-01T10:00:00Z"));
    assert!(finished(r#""uid": "u""#, &after));
    // Asked for at 10:00:00, and confirmed or not.
    for deleted in [
        r#""deletionTimestamp": "2026-01-01T10:00:30Z", "deletionGracePeriodSeconds": 30"#,
        r#""deletionTimestamp": "2026-01-01T10:00:00Z", "deletionGracePeriodSeconds": 0"#,
    ] {
        assert!(finished(deleted, ""), "a kubelet has refused it");
        assert!(finished(deleted, &before));
        assert!(!finished(deleted, &after));
        assert!(!finished(deleted, &format!("{before}, {after}")));
        assert!(!finished(deleted, r#"{"state": {"running": {}}}"#), "its node is lost");
    }
}

#[test]
fn just_starting() {
    let created: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let starting = |containers: &str, minutes| {
        let pod =
            read_pod(&format!(r#""status": {{"phase": "Running", "containerStatuses": [{containers}]}}"#));
        pod.just_starting(created + SignedDuration::from_mins(minutes))
    };
    let waits = |reason: &str| format!(r#"{{"state": {{"waiting": {{"reason": "{reason}"}}}}}}"#);
    assert!(starting("{}", 9));
    assert!(!starting("{}", 10));
    assert!(starting(&waits("ContainerCreating"), 9));
    assert!(starting(&waits("PodInitializing"), 9));
    assert!(!starting(r#"{"restartCount": 1}"#, 9));
    for reason in
        ["CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "CreateContainerError", "RunContainerError"]
    {
        assert!(!starting(&waits(reason), 9), "{reason}");
    }
}

#[test]
fn a_relist_drops_what_has_vanished() {
    let mut cluster = Cluster::new();
    cluster.observe(Change::Listing(ObjectKind::Pod));
    cluster.observe(Change::Listed(pod("a")));
    assert!(!cluster.is_listed(ObjectKind::Pod));
    cluster.observe(Change::Listed(pod("b")));
    cluster.observe(Change::Complete(ObjectKind::Pod));
    assert!(cluster.is_listed(ObjectKind::Pod));
    assert_eq!(cluster.not_listed().count(), ObjectKind::ALL.len() - 1);

    cluster.observe(Change::Applied(pod("c")));
    // A list that breaks off leaves all as it was, and so does what another kind lists.
    cluster.observe(Change::Listing(ObjectKind::Pod));
    cluster.observe(Change::Listed(pod("b")));
    cluster.observe(Change::Listing(ObjectKind::Pod));
    cluster.observe(Change::Listing(ObjectKind::Node));
    cluster.observe(Change::Complete(ObjectKind::Node));
    assert_eq!(names(&cluster), ["a", "b", "c"]);
    cluster.observe(Change::Listed(pod("c")));
    cluster.observe(Change::Complete(ObjectKind::Pod));
    assert_eq!(names(&cluster), ["c"]);
    assert_eq!(cluster.pods_on("node-a").count(), 1);
}

#[test]
fn workloads_reborn_during_a_relist() {
    let replica_set = |uid: &str| {
        let json = format!(
            r#"{{"metadata": {{"namespace": "shop", "name": "web", "uid": "{uid}"}}, "spec": {{}}}}"#
        );
        Raw::decode(ObjectKind::ReplicaSet, &json)
    };
    let deployment = Raw::decode(
        ObjectKind::Deployment,
        r#"{"metadata": {"namespace": "shop", "name": "web", "uid": "d"}}"#,
    );
    let mut cluster = Cluster::new();
    cluster.observe(Change::Applied(deployment));
    cluster.observe(Change::Applied(replica_set("old")));
    cluster.observe(Change::Listing(ObjectKind::ReplicaSet));
    cluster.observe(Change::Listed(replica_set("new")));
    cluster.observe(Change::Complete(ObjectKind::ReplicaSet));
    let mut uids: Vec<_> = cluster.workloads().map(|workload| &*workload.uid).collect();
    uids.sort_unstable();
    assert_eq!(uids, ["d", "new"]);
    assert_eq!(cluster.workload("new").map(|found| found.replicas), Some(1), "as the server defaults it");
    cluster.observe(Change::Deleted(replica_set("new")));
    assert!(cluster.workload("new").is_none());
}

#[test]
fn pods_move_and_go() {
    let mut cluster = Cluster::new();
    let on = |node: &str, ready: &str| {
        let status =
            format!(r#"{{"phase": "Running", "conditions": [{{"type": "Ready", "status": "{ready}"}}]}}"#);
        let json = pod_json("a", &format!(r#""spec": {{"nodeName": "{node}"}}, "status": {status}"#));
        Change::Applied(Raw::decode(ObjectKind::Pod, &json))
    };
    let changed = |effect: Option<Effect>| effect.expect("one object").changed;
    assert!(changed(cluster.observe(on("node-a", "False"))));
    assert!(!changed(cluster.observe(on("node-a", "False"))));
    assert!(changed(cluster.observe(on("node-a", "True"))));
    assert!(cluster.pods_on("node-a").all(|pod| pod.ready), "the index holds the new state");
    assert!(changed(cluster.observe(on("node-b", "True"))));
    assert_eq!((cluster.pods_on("node-a").count(), cluster.pods_on("node-b").count()), (0, 1));
    assert!(changed(cluster.observe(Change::Deleted(pod("a")))));
    assert_eq!((cluster.pods().count(), cluster.pods_on("node-b").count()), (0, 0));
}

#[test]
fn a_heartbeat_changes_nothing_but_the_version() {
    let node = |version: u32, status: &str| {
        let json = format!(
            r#"{{"metadata": {{"name": "n", "uid": "u", "resourceVersion": "{version}",
            "annotations": {{"drainplan.dev/plan": "p", "other": "x"}}}},
            "spec": {{"taints": [{{"key": "k", "effect": "NoSchedule"}}]}},
            "status": {{"conditions": [{{"type": "Ready", "status": "{status}", "lastHeartbeatTime": "x{version}"}}],
            "nodeInfo": {{"bootID": "b", "kubeletVersion": "v1.37.2"}}}}}}"#
        );
        Change::Applied(Raw::decode(ObjectKind::Node, &json))
    };
    let mut cluster = Cluster::new();
    cluster.observe(node(1, "True"));
    assert_eq!(cluster.observe(node(2, "True")).map(|effect| effect.changed), Some(false));
    let read = cluster.node("n").expect("the node");
    assert_eq!(&*read.resource_version, "2");
    assert_eq!((&*read.ready, &*read.boot_id, &*read.kubelet_version), ("True", "b", "v1.37.2"));
    assert_eq!(read.annotations.keys().map(|key| &**key).collect::<Vec<_>>(), ["drainplan.dev/plan"]);
    assert!(read.annotated);
    assert_eq!(read.taints.first().map(|taint| &*taint.key), Some("k"));
    assert_eq!(cluster.observe(node(3, "Unknown")).map(|effect| effect.changed), Some(true));
}

#[test]
fn a_bad_object_costs_one_entry() {
    let good = pod_json("a", r#""status": {"phase": "Running"}"#);
    let bad = pod_json("b", r#""spec": {"nodeName": 7}"#);
    let late = pod_json("c", r#""status": {"phase": "Pending"}"#);
    let list = format!(
        r#"{{"apiVersion": "v1", "kind": "PodList", "metadata": {{}}, "items": [{good}, {bad}, {late}]}}"#
    );
    let list: ObjectList<Watched<kinds::Pod>> = serde_json::from_str(&list).expect("the list can be read");
    let mut cluster = Cluster::new();
    cluster.observe(Change::Listing(ObjectKind::Pod));
    for item in list.items {
        cluster.observe(Change::Listed(item.into_raw()));
    }
    cluster.observe(Change::Complete(ObjectKind::Pod));
    assert_eq!(names(&cluster), ["a", "c"]);
    let bad: Vec<_> = cluster.bad_objects().collect();
    assert_eq!(bad.iter().map(|bad| (&*bad.namespace, &*bad.name)).collect::<Vec<_>>(), [("shop", "b")]);
    assert!(bad.iter().all(|bad| bad.why.contains("expected a string")), "{bad:?}");
    cluster.observe(Change::Applied(pod("b")));
    assert_eq!((names(&cluster), cluster.bad_objects().count()), (vec!["a", "b", "c"], 0));
    // What was known stays when the next version cannot be read.
    cluster.observe(Change::Applied(Raw::decode(ObjectKind::Pod, &pod_json("b", r#""spec": 1"#))));
    assert_eq!((names(&cluster), cluster.bad_objects().count()), (vec!["a", "b", "c"], 1));
    cluster.observe(Change::Deleted(pod("b")));
    assert_eq!((names(&cluster), cluster.bad_objects().count()), (vec!["a", "c"], 0));
}

#[test]
fn watch_events_are_decoded() {
    let line = format!(r#"{{"type": "MODIFIED", "object": {}}}"#, pod_json("a", r#""spec": {}"#));
    let event: WatchEvent<Watched<kinds::Pod>> = serde_json::from_str(&line).expect("an event");
    let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
    let meta = kube::Resource::meta(&object);
    assert_eq!((meta.name.as_deref(), meta.resource_version.as_deref()), (Some("a"), Some("7")));
    let bad =
        r#"{"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": "8", "labels": 1}}}"#;
    let event: WatchEvent<Watched<kinds::Pod>> = serde_json::from_str(bad).expect("an event, too");
    let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
    assert_eq!(kube::Resource::meta(&object).resource_version.as_deref(), Some("8"));
    let path = <Watched<kinds::PodDisruptionBudget> as kube::Resource>::url_path(&(), Some("shop"));
    assert_eq!(path, "/apis/policy/v1/namespaces/shop/poddisruptionbudgets");
}

#[test]
fn what_is_read_of_a_budget() {
    let json = r#"{"metadata": {"namespace": "shop", "name": "web", "generation": 2, "resourceVersion": "1"},
        "spec": {"minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {
          "matchLabels": {"app": "web"},
          "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}]}},
        "status": {"observedGeneration": 1, "expectedPods": 4, "currentHealthy": 3, "desiredHealthy": 2,
          "disruptionsAllowed": 1, "disruptedPods": {"a": "2026-01-01T00:00:00Z"},
          "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "why"}]}}"#;
    let mut cluster = Cluster::new();
    cluster.observe(Change::Applied(Raw::decode(ObjectKind::PodDisruptionBudget, json)));
    let budget = cluster.budgets_in("shop").next().expect("the budget").clone();
    assert_eq!(budget.min_available, Some(Amount::Text("50%".into())));
    assert_eq!(budget.unhealthy_policy, UnhealthyPolicy::AlwaysAllow);
    assert!(budget.behind());
    assert_eq!(budget.status.sync_failed.as_deref(), Some("why"));
    assert_eq!(budget.status.disrupted_pods.len(), 1);
    let labels = |pairs: &[(&str, &str)]| Labels::new(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())));
    assert!(budget.selects(&labels(&[("app", "web")])));
    assert!(!budget.selects(&labels(&[("app", "web"), ("tier", "db")])));

    let selector = |text: &str| {
        let json = format!(r#"{{"metadata": {{"namespace": "shop", "name": "x"}}, "spec": {text}}}"#);
        let mut cluster = Cluster::new();
        cluster.observe(Change::Applied(Raw::decode(ObjectKind::PodDisruptionBudget, &json)));
        let budget = cluster.budgets_in("shop").next().expect("the budget").clone();
        (budget.selects(&labels(&[("app", "web")])), budget.invalid_selector.clone())
    };
    assert_eq!(selector("{}"), (false, None), "a missing selector");
    assert_eq!(selector(r#"{"selector": {}}"#), (true, None), "an empty selector");
    for (expression, message) in [
        (r#"{"key": "a", "operator": "Foo"}"#, "\"Foo\" is not a valid label selector operator"),
        (
            r#"{"key": "a", "operator": "In"}"#,
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            r#"{"key": "a", "operator": "Exists", "values": ["x", "y"]}"#,
            "values: Invalid value: [\"x\",\"y\"]: values set must be empty for exists and does not exist",
        ),
        (
            r#"{"key": "a", "operator": "In", "values": ["x y"]}"#,
            "values[0][a]: Invalid value: \"x y\": a valid label must be an empty string or consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
    ] {
        let found = selector(&format!(r#"{{"selector": {{"matchExpressions": [{expression}]}}}}"#));
        assert_eq!(found, (false, Some(message.into())));
    }
}

#[test]
fn namespaces_daemon_sets_and_jobs() {
    let mut cluster = Cluster::new();
    let mut apply = |kind, json: &str| cluster.observe(Change::Applied(Raw::decode(kind, json)));
    apply(
        ObjectKind::Namespace,
        r#"{"metadata": {"name": "shop"}, "status": {"phase": "Terminating", "conditions": [
           {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1"}]}}"#,
    );
    apply(ObjectKind::DaemonSet, r#"{"metadata": {"namespace": "shop", "name": "agent", "uid": "d"}}"#);
    apply(
        ObjectKind::Job,
        r#"{"metadata": {"namespace": "shop", "name": "once", "uid": "j"}, "spec": {"ttlSecondsAfterFinished": 5},
           "status": {"conditions": [{"type": "Complete", "status": "True"}]}}"#,
    );
    let namespace = cluster.namespace("shop").expect("the namespace");
    assert!(namespace.terminating && namespace.content_remaining.as_deref() == Some("pods. has 1"));
    assert!(cluster.daemon_set_exists("shop", "agent") && !cluster.daemon_set_exists("other", "agent"));
    assert!(cluster.daemon_set("d").is_some());
    assert!(cluster.job("j").is_some_and(|job| job.finished && job.ttl_seconds == Some(5)));
}

/// What the namespace controller writes when admission does not let it delete a pod.
#[test]
fn what_could_not_be_deleted_remains() {
    let mut cluster = Cluster::new();
    let json = r#"{"metadata": {"name": "shop"}, "status": {"phase": "Terminating", "conditions": [
        {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "All resources successfully discovered"},
        {"type": "NamespaceDeletionContentFailure", "status": "True", "message": "1 remaining: denied"},
        {"type": "NamespaceContentRemaining", "status": "False", "message": "All content successfully removed"}]}}"#;
    cluster.observe(Change::Applied(Raw::decode(ObjectKind::Namespace, json)));
    let remaining = cluster.namespace("shop").and_then(|namespace| namespace.content_remaining.as_deref());
    assert_eq!(remaining, Some("1 remaining: denied"));
}

#[test]
fn volumes_and_what_they_are_attached_to() {
    let mut cluster = Cluster::new();
    let mut apply = |kind, json: &str| cluster.observe(Change::Applied(Raw::decode(kind, json)));
    let attachment = |attached: bool| {
        format!(
            r#"{{"metadata": {{"name": "csi-1", "uid": "a"}}, "spec": {{"attacher": "csi.example", "nodeName": "node-a",
               "source": {{"persistentVolumeName": "pv-1"}}}}, "status": {{"attached": {attached}}}}}"#
        )
    };
    let volume = r#"{"metadata": {"name": "pv-1", "uid": "v"}, "spec": {"claimRef": {"namespace": "shop", "name": "data"}}}"#;
    let changed = |effect: Option<Effect>| effect.expect("one object").changed;
    assert!(changed(apply(ObjectKind::VolumeAttachment, &attachment(true))));
    assert!(!changed(apply(ObjectKind::VolumeAttachment, &attachment(true))));
    assert!(changed(apply(ObjectKind::PersistentVolume, volume)));
    apply(
        ObjectKind::VolumeAttachment,
        r#"{"metadata": {"name": "csi-2"}, "spec": {"nodeName": "node-a", "source": {"inlineVolumeSpec": {}}}}"#,
    );
    apply(
        ObjectKind::Pod,
        r#"{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"volumes": [{"name": "a", "emptyDir": {}},
           {"name": "b", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "c", "ephemeral": {"volumeClaimTemplate": {}}}]}}"#,
    );
    let names = |cluster: &Cluster| -> Vec<Text> {
        cluster.volumes.attached_to("node-a").map(|attachment| attachment.name.clone()).collect()
    };
    assert_eq!(names(&cluster), ["csi-1".into()]);
    let data = PodKey { namespace: "shop".into(), name: "data".into() };
    assert_eq!(cluster.volumes.claim_of("pv-1"), Some(&data));
    let web = cluster.pod(&PodKey { namespace: "shop".into(), name: "web".into() }).expect("the pod");
    assert_eq!(&*web.claims, ["data".into(), "web-c".into()]);
    cluster.observe(Change::Applied(Raw::decode(ObjectKind::VolumeAttachment, &attachment(false))));
    assert!(names(&cluster).is_empty() && cluster.volumes.attachment("csi-1").is_some());
    // What a list does not contain is gone.
    cluster.observe(Change::Listing(ObjectKind::VolumeAttachment));
    cluster.observe(Change::Complete(ObjectKind::VolumeAttachment));
    assert_eq!(cluster.volumes.attachments().count(), 0);
    cluster.observe(Change::Deleted(Raw::decode(ObjectKind::PersistentVolume, volume)));
    assert_eq!(cluster.volumes.claim_of("pv-1"), None);
}

proptest::proptest! {
    /// Whatever comes and goes: what the indices hold is what a walk over all pods finds, in the state seen last.
    #[test]
    fn indices_hold_what_a_walk_finds(
        changes in proptest::collection::vec((0_u8..6, 0_u8..5, 0_u8..3, 0_u8..3, proptest::bool::ANY), 0..60),
    ) {
        let mut cluster = Cluster::new();
        for (version, (what, which, label, owner, ready)) in changes.into_iter().enumerate() {
            let json = match what {
                0..=2 => format!(
                    r#"{{"metadata": {{"namespace": "n", "name": "p{which}", "uid": "u-{which}-{owner}",
                    "resourceVersion": "{version}", "labels": {{"app": "{label}"}}, "ownerReferences": [{{"apiVersion":
                    "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o-{owner}", "controller": true}}]}},
                    "spec": {{"nodeName": "x"}},
                    "status": {{"conditions": [{{"type": "Ready", "status": "{ready}"}}]}}}}"#
                ),
                3 => format!(r#"{{"metadata": {{"namespace": "n", "name": "p{which}", "uid": "u"}}}}"#),
                _ => format!(
                    r#"{{"metadata": {{"namespace": "n", "name": "b{owner}", "uid": "b", "resourceVersion": "{version}"}},
                    "spec": {{"selector": {{"matchLabels": {{"app": "{label}"}}}}}}}}"#
                ),
            };
            let kind = if what < 4 { ObjectKind::Pod } else { ObjectKind::PodDisruptionBudget };
            let raw = Raw::decode(kind, &json);
            let gone = what == 3 || (what == 5 && ready);
            cluster.observe(if gone { Change::Deleted(raw) } else { Change::Applied(raw) });
        }
        for budget in cluster.budgets() {
            let walked: Vec<_> = cluster.pods_in("n").filter(|pod| budget.selects(&pod.labels)).collect();
            let held: Vec<_> = cluster.pods_selected_by(budget).collect();
            proptest::prop_assert_eq!(held, walked);
        }
        for owner in ["o-0", "o-1", "o-2"] {
            let of = |pod: &&Arc<Pod>| pod.owner.as_ref().is_some_and(|of| &*of.uid == owner);
            let walked: Vec<_> = cluster.pods_in("n").filter(of).collect();
            proptest::prop_assert_eq!(cluster.pods_of(owner).collect::<Vec<_>>(), walked);
        }
    }
}
