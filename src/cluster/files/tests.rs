use crate::cluster::PodKey;

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

fn read(texts: &[(&str, &str)]) -> Result<(Cluster, BTreeMap<String, usize>), FileError> {
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
    let (cluster, skipped) = read(&[("a.yaml", DEPLOYMENT), ("b.json", LIST)]).expect("both can be read");
    assert_eq!(skipped, BTreeMap::from([("ConfigMap".to_owned(), 1)]));
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

#[test]
fn errors_say_where_and_what() {
    let name = "x.yaml";
    assert_eq!(
        failure(
            name,
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b}\n"
        ),
        "x.yaml, document 2, Pod b: it has no apiVersion; add it, or remove the object"
    );
    assert_eq!(
        failure(name, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop}\n"),
        "x.yaml, document 1, Pod: it has no metadata.name; add it, or remove the object"
    );
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: shop, name: web}\nspec: {replicas: many}\n";
    let message = failure(name, text);
    assert!(
        message.starts_with("x.yaml, document 1, Deployment shop/web: invalid type: string \"many\""),
        "{message}"
    );
    let message = failure(name, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\na: [\n");
    assert!(message.starts_with("x.yaml, document 2: "), "{message}");
    let message = failure("x.json", r#"{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod"}]}"#);
    assert_eq!(
        message,
        "x.json, document 1, item 1, Pod: it has no apiVersion; add it, or remove the object"
    );
    let message = failure("x.json", "{\"apiVersion\": ");
    assert!(message.starts_with("x.json, document 1: EOF while parsing"), "{message}");
    let missing = read_text(Path::new("/nowhere/x.yaml")).expect_err("no such file").to_string();
    assert!(missing.starts_with("cannot read /nowhere/x.yaml: "), "{missing}");
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
