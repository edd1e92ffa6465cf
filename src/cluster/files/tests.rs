use crate::cluster::{DaemonSet, PodKey, WorkloadKind};

use super::*;

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web, uid: d1}
spec: {replicas: 2, template: {metadata: {labels: {app: web}}}}
---
# an empty document is passed over
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  namespace: shop
  name: web-1
  uid: r1
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d1, controller: true}]
spec: {replicas: 2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
";

const LIST: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web-1-a", "uid": "p1",
   "labels": {"app": "web"}, "ownerReferences": [
     {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "x"},
     {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r1", "controller": true}]},
   "spec": {"nodeName": "node-a", "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "c", "configMap": {}}]},
   "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
  {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": "shop", "name": "web"},
   "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}}
]}
{"apiVersion": "v1", "kind": "PodList", "items": [
  {"metadata": {"namespace": "shop", "name": "web-1-b"}, "status": null}]}"#;

fn read(texts: &[(&str, &str)]) -> Result<(Cluster, Notes), FileError> {
    let mut files = Files::default();
    for (name, text) in texts {
        files.add_text(name, text)?;
    }
    Ok(files.finish())
}

fn failure(name: &str, text: &str) -> String {
    read(&[(name, text)]).expect_err("the text is wrong").to_string()
}

#[test]
fn documents_lists_and_typed_lists() {
    let (cluster, notes) = read(&[("a.yaml", DEPLOYMENT), ("b.json", LIST)]).expect("both can be read");
    let passed_over = BTreeMap::from([("ConfigMap".to_owned(), 1)]);
    assert_eq!(notes, Notes { passed_over, ..Notes::default() });
    assert_eq!(cluster.not_listed().count(), 0);
    let pod = cluster.pod(&PodKey { namespace: "shop".into(), name: "web-1-a".into() }).expect("the pod");
    assert_eq!(&*pod.empty_dirs, ["tmp".into()]);
    assert_eq!(pod.owner.as_ref().map(|owner| &*owner.name), Some("web-1"));
    assert!(pod.ready);
    assert_eq!(cluster.pods_in("shop").count(), 2);
    let budget = cluster.budgets_in("shop").next().expect("the budget");
    assert!(budget.selects(&pod.labels));
    let replica_set = cluster.workload("r1").expect("the ReplicaSet");
    assert_eq!(replica_set.owner.as_ref().map(|owner| &*owner.uid), Some("d1"));
    assert_eq!(cluster.workload("d1").map(|deployment| deployment.replicas), Some(2));
}

#[test]
fn yaml_and_json_of_the_same_objects_are_equal() {
    let documents: Vec<String> = yaml_documents(DEPLOYMENT).map(|json| json.expect("valid")).collect();
    let (yaml, _) = read(&[("a.yaml", DEPLOYMENT)]).expect("valid");
    let (json, _) = read(&[("a.json", &documents.join("\n"))]).expect("valid");
    let workloads = |cluster: &Cluster| {
        let mut all: Vec<_> = cluster.workloads().cloned().collect();
        all.sort_by(|a, b| a.uid.cmp(&b.uid));
        all
    };
    assert_eq!(workloads(&yaml), workloads(&json));
    assert_eq!(workloads(&yaml).len(), 2);
}

/// What is left out of a text.
fn left_out(name: &str, text: &str) -> Vec<String> {
    read(&[(name, text)]).expect("the text itself can be read").1.left_out
}

#[test]
fn errors_say_where_and_what() {
    let message = failure("x.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\na: [\n");
    assert!(message.starts_with("x.yaml, document 2: "), "{message}");
    let message = failure("x.json", "{\"apiVersion\": ");
    assert!(message.starts_with("x.json, document 1: EOF while parsing"), "{message}");
    let message = failure("x.json", "[1]");
    assert!(message.starts_with("x.json, document 1: this is no Kubernetes object"), "{message}");
    let missing = read_text(Path::new("/nowhere/x.yaml")).expect_err("no such file").to_string();
    assert!(missing.starts_with("cannot read /nowhere/x.yaml: "), "{missing}");
}

#[test]
fn an_object_that_cannot_be_read_is_left_out_and_named_and_the_rest_is_read() {
    let good =
        |name: &str| format!("apiVersion: v1\nkind: Pod\nmetadata: {{namespace: shop, name: {name}}}\n---\n");
    let with = |bad: &str| {
        let text = format!("{}{bad}\n---\n{}", good("a"), good("b"));
        let (cluster, notes) = read(&[("x.yaml", &text)]).expect("the rest can be read");
        assert_eq!(cluster.pods_in("shop").count(), 2, "{bad}");
        let [left_out] = notes.left_out.as_slice() else { panic!("{:?}", notes.left_out) };
        left_out.clone()
    };
    assert_eq!(
        with("kind: Pod\nmetadata: {name: b}"),
        "x.yaml, document 2, Pod b is left out: it has no apiVersion; add it"
    );
    assert_eq!(
        with("apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop}"),
        "x.yaml, document 2, Pod is left out: it has no metadata.name; add it"
    );
    for (bad, told) in [
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: shop, name: web}\nspec: {replicas: many}",
            "Deployment shop/web is left out: invalid type: string \"many\"",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: c, creationTimestamp: 9999-12-31T23:59:59Z}",
            "Pod shop/c is left out: ",
        ),
        (
            "apiVersion: example.com/v1\nkind: Fleet\nmetadata: {name: 7}",
            "is left out: invalid type: integer `7`",
        ),
    ] {
        let message = with(bad);
        assert!(message.contains(told), "{message}");
    }
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [null, {"kind": "Pod"}]}"#;
    assert_eq!(
        left_out("x.json", list),
        [
            format!("x.json, document 1, item 1 is left out: {NO_OBJECT}"),
            "x.json, document 1, item 2, Pod is left out: it has no apiVersion; add it".to_owned()
        ]
    );
}

#[test]
fn what_cannot_be_read_is_known_as_it_is_live() {
    let bad = "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: c, labels: 7}\n";
    let (cluster, _) = read(&[("x.yaml", bad)]).expect("valid YAML");
    let known: Vec<_> = cluster.bad_objects().map(|bad| (bad.kind, &*bad.namespace, &*bad.name)).collect();
    assert_eq!(known, [(ObjectKind::Pod, "shop", "c")]);
}

#[test]
fn no_more_than_twenty_are_named() {
    let items = vec!["null"; 25].join(", ");
    let text = format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}"#);
    let notes = read(&[("x.json", &text)]).expect("a list").1;
    assert_eq!((notes.left_out.len(), notes.more_left_out), (20, 5));
}

#[test]
fn lists_in_lists_without_end_are_left_out() {
    let nested = |depth: usize| {
        let start = r#"{"apiVersion": "v1", "kind": "List", "items": ["#.repeat(depth);
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "a"}}"#;
        format!("{start}{pod}{}", "]}".repeat(depth))
    };
    let (cluster, notes) = read(&[("x.json", &nested(16))]).expect("a list");
    assert_eq!((cluster.pods().count(), notes), (1, Notes::default()));
    for depth in [17, 8_000] {
        let (cluster, notes) = read(&[("x.json", &nested(depth))]).expect("a list");
        assert_eq!(cluster.pods().count(), 0);
        assert_eq!(
            notes.left_out,
            [
                "x.json, document 1, item 1, List is left out: it is a list in a list, and so on, more than 16 deep"
            ]
        );
    }
    let deep = |depth: usize| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert!(failure("x.yaml", &deep(10_000)).contains("recursion limit"), "as JSON has one");
}

#[test]
fn what_looks_like_a_pod_or_a_budget_and_is_none_is_named() {
    let of = |api_version: &str, kind: &str| {
        let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "VERSION", "kind": "KIND", "metadata": {"namespace": "shop", "name": "web", "uid": "u"}}]}"#;
        left_out("x.json", &list.replace("VERSION", api_version).replace("KIND", kind))
    };
    assert_eq!(
        of("policy/v1beta1", "PodDisruptionBudget"),
        [
            "x.json, document 1, item 1, PodDisruptionBudget shop/web is left out: a PodDisruptionBudget is read as \
          policy/v1, and this one says policy/v1beta1; write it anew with kubectl get -o yaml, or correct its apiVersion"
        ]
    );
    assert_eq!(
        of("policy/v1", "PodDisruptionBudgets"),
        [
            "x.json, document 1, item 1, PodDisruptionBudgets shop/web is left out: its kind is PodDisruptionBudgets, and \
          PodDisruptionBudget of policy/v1 is what is read; correct its kind if that is meant"
        ]
    );
    assert_eq!(of("v1", "ConfigMap"), [""; 0]);
    assert_eq!(of("batch.volcano.sh/v1alpha1", "Job"), [""; 0]);
    let typed = r#"{"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudgetList", "items": [{"metadata": {"name": "b"}}]}"#;
    assert_eq!(left_out("x.json", typed).len(), 1);
    assert_eq!(left_out("x.json", &typed.replace("BudgetList", "Budgetlist")).len(), 1);
    assert_eq!(
        left_out("x.json", r#"{"apiVersion": "v1", "kind": "list", "items": []}"#),
        ["x.json, document 1, list is left out: it holds items, and list is no List; correct its kind"]
    );
}

fn shards(subresources: &str, spec: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\n\
         kind: CustomResourceDefinition\n\
         metadata: {{name: shards.example.com}}\n\
         spec:\n\
         \x20 group: example.com\n\
         \x20 names: {{kind: Shard, plural: shards}}\n\
         \x20 versions: [{{name: v1, served: true, subresources: {subresources}}}]\n\
         ---\n\
         apiVersion: example.com/v1\n\
         kind: Shard\n\
         metadata: {{namespace: shop, name: a, uid: s1}}\n\
         spec: {spec}\n\
         ---\n\
         apiVersion: v1\n\
         kind: Pod\n\
         metadata:\n\
         \x20 {{namespace: shop, name: a-0, labels: {{app: a}}, ownerReferences: [{{apiVersion: example.com/v1, kind: Shard, \
         name: a, uid: s1, controller: true}}]}}\n"
    )
}

#[test]
fn custom_resources_bring_their_scales() {
    let scale = |text: &str| {
        let (cluster, _) = read(&[("x.yaml", text)]).expect("valid");
        cluster.scale("s1").cloned()
    };
    let with = "{scale: {specReplicasPath: .spec.size.pods}}";
    assert_eq!(
        scale(&shards(with, "{size: {pods: 3}}")),
        Some(super::super::Scale::Replicas { uid: "s1".into(), replicas: 3 })
    );
    assert_eq!(
        scale(&shards(with, "{}")),
        Some(super::super::Scale::NoScale(
            "Internal error occurred: the spec replicas field \".spec.size.pods\" does not exist".into()
        ))
    );
    assert_eq!(
        scale(&shards("{}", "{}")),
        Some(super::super::Scale::NoScale(
            "shards.example.com does not implement the scale subresource".into()
        ))
    );
    let unserved = shards(with, "{size: {pods: 3}}")
        .replace("apiVersion: example.com/v1, kind", "apiVersion: example.com/v2, kind");
    assert_eq!(
        scale(&unserved),
        Some(super::super::Scale::NoScale(
            "no matches for kind \"Shard\" in version \"example.com/v2\"".into()
        ))
    );
}

#[test]
fn large_yaml_is_no_bomb() {
    let annotations: Vec<String> = (0..40).map(|number| format!("k{number}: v")).collect();
    let annotations = annotations.join(", ");
    let pod = |number| {
        format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: p{number}\n  annotations: {{{annotations}}}\n")
    };
    let text = (0..1_100).map(pod).collect::<Vec<_>>().join("---\n");
    let (cluster, _) = read(&[("big.yaml", &text)]).expect("valid");
    assert_eq!(cluster.pods().count(), 1_100);
}

#[test]
fn what_has_no_uid_is_known_by_its_name_in_references_too() {
    let without = |text: &str| text.replace(", uid: d1", "").replace("  uid: r1\n", "");
    let pods = LIST.replace(", \"uid\": \"r1\"", "");
    let custom = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stores.db.example.dev}
spec:
  group: db.example.dev
  names: {kind: Store, plural: stores}
  versions: [{name: v1, served: true, subresources: {scale: {specReplicasPath: .spec.replicas}}}]
---
apiVersion: db.example.dev/v1
kind: Store
metadata: {namespace: shop, name: kv}
spec: {replicas: 3}
---
apiVersion: v1
kind: Pod
metadata:
  namespace: shop
  name: kv-0
  ownerReferences: [{apiVersion: db.example.dev/v1, kind: Store, name: kv, controller: true}]
";
    let files = [("a.yaml", &*without(DEPLOYMENT)), ("b.json", &*pods), ("c.yaml", custom)];
    let (cluster, _) = read(&files).expect("all can be read");
    let owner = |name: &str| {
        let key = PodKey { namespace: "shop".into(), name: name.into() };
        cluster.pod(&key).and_then(|pod| pod.owner.clone()).expect("it has an owner")
    };
    let set = cluster.workload(&owner("web-1-a").uid).expect("its ReplicaSet");
    let deployment = set.owner.as_ref().and_then(|owner| cluster.workload(&owner.uid));
    assert_eq!(deployment.map(|deployment| &*deployment.name), Some("web"));
    let store = owner("kv-0");
    assert!(matches!(cluster.scale(&store.uid), Some(crate::cluster::Scale::Replicas { replicas: 3, .. })));
}

/// A pod on a node that no file describes: there are others, too. One that is going, or has finished, outlives its node.
#[test]
fn files_that_lack_nodes() {
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}}"#;
    let pod = |node: &str, rest: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"namespace": "shop", "name": "web"{rest}}},
            "spec": {{"nodeName": "{node}"}}}}"#
        )
    };
    let knows = |texts: &[&str]| {
        let texts: Vec<_> = texts.iter().map(|text| ("a.json", *text)).collect();
        read(&texts).expect("they can be read").0.knows_all_nodes()
    };
    assert!(knows(&[node]));
    assert!(knows(&[node, &pod("node-a", "")]));
    assert!(!knows(&[node, &pod("node-b", "")]));
    assert!(knows(&[node, &pod("node-b", r#", "deletionTimestamp": "2026-12-01T10:00:00Z""#)]));
    assert!(!knows(&[&pod("node-a", "")]));
}

/// That an owner is gone nobody can tell who has only files, unless they hold another one of its name.
#[test]
fn files_that_lack_owners() {
    let (mut cluster, _) = read(&[("a.yaml", DEPLOYMENT)]).expect("they can be read");
    let may_exist = |cluster: &Cluster, name: &str| cluster.may_exist("shop", WorkloadKind::ReplicaSet, name);
    assert!(!may_exist(&cluster, "web-1"));
    assert!(may_exist(&cluster, "web-2"));
    assert!(cluster.daemon_set_exists("shop", "agent"));
    cluster.apply_daemon_set(DaemonSet { namespace: "shop".into(), name: "other".into(), uid: "d".into() });
    assert!(!cluster.daemon_set_exists("shop", "agent"));
    assert!(!may_exist(&Cluster::new(), "web-2"), "a server has all");
}
