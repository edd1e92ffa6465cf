//! What the plan's rules, and labels and annotations of pods, ask for.

use serde_json::{Value, json};

use super::*;
use crate::cluster::{NodeTerm, Placement, Protection, RestartPolicy, Toleration};

fn ruled(rules: &Value) -> World {
    let mut world = World::new().stateful_set("web", 2);
    world.policy = serde_json::from_value(json!({"rules": rules})).unwrap();
    world
}

fn labelled(world: World, pod: &str, pairs: &[(&str, &str)]) -> World {
    let labels = labels(pairs);
    world.change(pod, |pod| pod.labels = labels)
}

#[test]
fn the_first_rule_that_matches_counts() {
    let rules = json!([
        {"podSelector": {"matchLabels": {"tier": "cache"}}, "action": "Skip"},
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]},
         "podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "action": "Evict", "order": 7},
        {"action": "AwaitCompletion"},
    ]);
    let mut world = labelled(ruled(&rules), "web-1", &[("tier", "cache"), ("app", "web")]);
    assert_eq!(world.judge("web-1").treatment, Treatment::Ignore);
    let wait = world.judge("web-0").wait.unwrap();
    assert_eq!(wait.reason, Reason::AwaitingCompletion, "the namespace has no label");
    let labels = labels(&[("team", "a")]);
    world.cluster.apply_namespace(Namespace { name: "shop".into(), labels, ..Namespace::default() });
    let judgement = world.judge("web-0");
    assert_eq!((judgement.treatment, judgement.order, judgement.wait), (Treatment::Evict, 7, None));
}

#[test]
fn the_label_of_cluster_api_counts_where_no_rule_matches() {
    let label = "cluster.x-k8s.io/drain";
    let world = labelled(World::new().stateful_set("web", 3), "web-0", &[(label, "skip")]);
    let mut world = labelled(world, "web-1", &[(label, "wait-completed")]);
    assert_eq!(world.judge("web-0").treatment, Treatment::Ignore);
    let wait = world.judge("web-1").wait.unwrap();
    assert_eq!((wait.reason, wait.outlook), (Reason::AwaitingCompletion, Outlook::NeverClears));
    assert!(wait.message.contains("starts its containers again"), "{}", wait.message);
    world = world.change("web-1", |pod| pod.restart_policy = RestartPolicy::OnFailure);
    assert_eq!(world.judge("web-1").wait.unwrap().outlook, Outlook::MayClear);
    world.policy = serde_json::from_value(json!({"rules": [{"action": "Evict"}]})).unwrap();
    world.goes("web-0");
    world.goes("web-1");
}

fn protected(value: &str, lasts: Option<SignedDuration>) -> Protection {
    let annotation = "karpenter.sh/do-not-disrupt".into();
    Protection { annotation, value: value.into(), lasts }
}

#[test]
fn an_annotation_protects_a_pod_unless_the_plan_says_otherwise() {
    let mut world = World::new()
        .stateful_set("web", 2)
        .change("web-0", |pod| pod.protection = Some(Box::new(protected("true", None))));
    world.waits(
        "web-0",
        Reason::Protected,
        Outlook::NeverClears,
        "Its annotation karpenter.sh/do-not-disrupt: “true” asks not to evict this pod, and spec.pods.protected is \
         Honor.",
        "remove the annotation karpenter.sh/do-not-disrupt from the pod template once its pods may be moved, or set \
         spec.pods.protected: Ignore in the plan",
    );
    world.policy.protected = Some(crate::api::Protected::Ignore);
    world.goes("web-0");
}

#[test]
fn a_protection_for_a_while_ends() {
    let hour = |created: i64| {
        World::new().stateful_set("web", 2).change("web-0", move |pod| {
            pod.created = Some(ago(created));
            pod.protection = Some(Box::new(protected("1h", Some(SignedDuration::from_hours(1)))));
        })
    };
    let world = hour(600);
    let judgement = world.judge("web-0");
    let wait = judgement.wait.unwrap();
    assert_eq!((wait.reason, wait.outlook), (Reason::Protected, Outlook::WillClear));
    assert!(wait.message.contains("before 2026-12-01T10:50:00Z"), "{}", wait.message);
    assert_eq!(judgement.changes_at, Some(NOW + SignedDuration::from_mins(50)));
    hour(3600).goes("web-0");
}

#[test]
fn pods_without_a_budget_go_one_by_one_where_asked() {
    let mut world = World::new().stateful_set("web", 3);
    world.policy =
        serde_json::from_value(json!({"unbudgeted": "OneAtATime", "unbudgetedWait": "1m"})).unwrap();
    world.goes("web-0");
    let mut world = world.change("web-1", |pod| (pod.ready, pod.created) = (false, Some(ago(20))));
    let judgement = world.judge("web-0");
    let wait = judgement.wait.unwrap();
    assert_eq!((wait.reason, wait.outlook), (Reason::AwaitingReplacement, Outlook::WillClear));
    for part in ["StatefulSet web", "web-1 on node-a is not Ready", "until 2026-12-01T10:00:40Z", "1m"] {
        assert!(wait.message.contains(part), "{}", wait.message);
    }
    assert_eq!(judgement.changes_at, Some(NOW + SignedDuration::from_secs(40)));
    world.goes("web-1");
    world = world.change("web-1", |pod| pod.created = Some(ago(60)));
    world.goes("web-0");
    // The replacement is not created yet.
    world = world.without("web-1");
    world.goes("web-0");
    world.cluster.evictions.moved("StatefulSet-web".into(), ago(1));
    assert_eq!(world.judge("web-0").wait.unwrap().reason, Reason::AwaitingReplacement);
}

#[test]
fn a_pod_that_would_return_to_its_node_is_not_evicted_in_vain() {
    let tolerates = |pod: &mut Pod| {
        let cordon = Toleration {
            key: "node.kubernetes.io/unschedulable".into(),
            exists: true,
            ..Toleration::default()
        };
        let names = Some(vec!["node-a".into()]);
        let terms = vec![NodeTerm { names, ..NodeTerm::default() }];
        let placement = Placement { tolerations: vec![cordon], terms, ..Placement::default() };
        pod.placement = Some(Arc::new(placement));
    };
    let world = World::new().stateful_set("web", 2).change("web-0", tolerates);
    let wait = world.judge("web-0").wait.unwrap();
    assert_eq!((wait.reason, wait.outlook), (Reason::ReturnsToNode, Outlook::NeverClears));
    assert!(wait.message.contains("return to node-a"), "{}", wait.message);
    assert!(wait.remedy.contains("StatefulSet web"), "{}", wait.remedy);
    // Another node may have it, or the cordon keeps it away.
    let anywhere = |pod: &mut Pod| {
        let mut placement = Placement::clone(pod.placement.as_ref().unwrap());
        placement.terms.clear();
        pod.placement = Some(Arc::new(placement));
    };
    let kept = |pod: &mut Pod| {
        let mut placement = Placement::clone(pod.placement.as_ref().unwrap());
        placement.tolerations.clear();
        pod.placement = Some(Arc::new(placement));
    };
    world.change("web-0", anywhere).goes("web-0");
    World::new().stateful_set("web", 2).change("web-0", tolerates).change("web-0", kept).goes("web-0");
}

/// That no node but its own may have a pod is said only where all nodes are known.
#[test]
fn nothing_is_said_of_nodes_that_are_missing() {
    let tolerations = vec![Toleration { exists: true, ..Toleration::default() }];
    let placement = Placement { tolerations, ..Placement::default() };
    let world = World::new().stateful_set("web", 2);
    let mut world = world.change("web-0", |pod| pod.placement = Some(Arc::new(placement)));
    world.goes("web-0");
    world.cluster.apply_node(Node { name: "node-b".into(), ready: "False".into(), ..Node::default() });
    let wait = world.judge("web-0").wait.expect("the other node is not Ready");
    assert_eq!((wait.reason, wait.outlook), (Reason::ReturnsToNode, Outlook::MayClear));
    assert!(wait.remedy.starts_with("bring node-b back, or "), "{}", wait.remedy);
    world.cluster.delete_node("node-b");
    let wait = world.judge("web-0").wait.expect("there is only one node");
    assert_eq!((wait.reason, wait.outlook), (Reason::ReturnsToNode, Outlook::NeverClears));
    world.cluster.miss_nodes();
    world.goes("web-0");
}

/// Time does not help where a budget would hold it after that time as well.
#[test]
fn a_pod_that_is_protected_for_a_while_by_a_budget_that_never_allows() {
    let hour = protected("1h", Some(SignedDuration::from_hours(1)));
    let world = World::new().stateful_set("web", 2).change("web-0", |pod| {
        (pod.created, pod.protection) = (Some(ago(60)), Some(Box::new(hour)));
    });
    let said = |world: &World| {
        let wait = world.judge("web-0").wait.expect("it waits");
        (wait.reason, wait.outlook, wait.remedy.contains("write maxUnavailable: 1"))
    };
    assert_eq!(said(&world), (Reason::Protected, Outlook::WillClear, false));
    let world = world.budget("web", "maxUnavailable: 0");
    assert_eq!(said(&world), (Reason::Protected, Outlook::NeverClears, true));
}

/// Nor where the plan would refuse it then for another reason.
#[test]
fn a_pod_that_is_protected_for_a_while_and_refused_for_good() {
    let hour = protected("1h", Some(SignedDuration::from_hours(1)));
    let world = World::new().pod("lone", None).change("lone", |pod| {
        (pod.created, pod.protection) = (Some(ago(60)), Some(Box::new(hour)));
        pod.empty_dirs = ["cache"].map(Text::from).into();
    });
    let wait = world.judge("lone").wait.expect("it waits");
    assert_eq!((wait.reason, wait.outlook), (Reason::Protected, Outlook::NeverClears));
    assert_eq!(
        wait.remedy,
        "remove the annotation karpenter.sh/do-not-disrupt from the pod once it may be moved, or set spec.pods.protected: \
         Ignore in the plan; also let a Deployment or another controller run it, delete it by hand, or set \
         spec.pods.unmanaged: Evict in the plan; also set spec.pods.emptyDir: Evict in the plan if that data may be lost"
    );
}
