//! What scripts and people read, word by word.

mod long;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::args::{self, Command, Format};
use super::source::Scope;
use super::{budgets, explain, source, windows};
use crate::cluster::{Cluster, Files, Pod};

const NOW: Timestamp = Timestamp::constant(1_796_119_200, 0);

fn shop() -> Cluster {
    let mut files = Files::default();
    files.add_text("shop.yaml", include_str!("shop.yaml")).unwrap();
    files.finish().0
}

fn pods(cluster: &Cluster) -> Vec<Arc<Pod>> {
    cluster.pods_on("node-a").cloned().collect()
}

#[test]
fn budgets_as_json() {
    let (answer, blocked) = budgets::answer(&shop(), &Scope::All, NOW);
    assert!(blocked);
    let message = "Budget shop/web (minAvailable 1 of 1) can never allow an eviction: it requires 1 healthy pod, \
                   and StatefulSet web (1 replica) can have 1 at most.";
    let remedy = "in budget shop/web write maxUnavailable: 1 instead of minAvailable: 1 (its only pod is then down \
                  while it moves), or run at least 2 replicas";
    assert_eq!(
        serde_json::to_value(&answer).unwrap(),
        json!({"budgets": [{
            "namespace": "shop",
            "name": "web",
            "reported": {"expectedPods": 2, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0},
            "computed": {
                "expectedPods": 1,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "disruptionsAllowed": 0,
                "syncError": null,
            },
            "agrees": false,
            "findings": ["NeverAllows"],
            "details": [{"finding": "NeverAllows", "message": message, "remedy": remedy}],
        }]})
    );
    let (elsewhere, blocked) = budgets::answer(&shop(), &Scope::One("tools".into()), NOW);
    assert_eq!((serde_json::to_value(&elsewhere).unwrap(), blocked), (json!({"budgets": []}), false));
}

#[test]
fn budgets_as_a_table() {
    let table = |scope: Scope| budgets::table(&budgets::answer(&shop(), &scope, NOW).0, &scope, 120);
    let expected = "\
NAMESPACE   NAME   ALLOWED   EXPECTED   HEALTHY   DESIRED   FINDINGS
shop        web    0         2→1        1         1         NeverAllows
    Budget shop/web (minAvailable 1 of 1) can never allow an eviction: it requires 1 healthy pod, and StatefulSet web (1
    replica) can have 1 at most.
  → in budget shop/web write maxUnavailable: 1 instead of minAvailable: 1 (its only pod is then down while it moves), or
    run at least 2 replicas

    2→1: the budget's status reports 2, and by its pods and owners it should report 1.
";
    assert_eq!(table(Scope::All), expected);
    assert_eq!(table(Scope::One("tools".into())), "No PodDisruptionBudgets in namespace tools.\n");
}

#[test]
fn explain_as_json() {
    let cluster = shop();
    let answer = explain::answer(&cluster, &pods(&cluster), BTreeMap::new(), NOW);
    let pod = |namespace: &str, name: &str, action: &str, code: u16, budgets: &[&str]| {
        json!({
            "namespace": namespace,
            "name": name,
            "node": "node-a",
            "action": action,
            "eviction": {"code": code, "budgets": budgets},
            "reason": null,
            "outlook": null,
            "remedy": "",
        })
    };
    let mut expected = [
        pod("shop", "agent-x", "Ignore", 201, &[]),
        pod("shop", "lone", "Refuse", 201, &[]),
        pod("shop", "web-0", "Evict", 429, &["web"]),
        pod("tools", "free", "Evict", 201, &[]),
    ];
    let [agent, lone, web, free] = &mut expected;
    agent["message"] = json!("Left alone: it belongs to DaemonSet agent.");
    lone["reason"] = json!("Unmanaged");
    lone["outlook"] = json!("NeverClears");
    lone["message"] = json!(
        "This pod has no controller, so nothing would create it again, and spec.pods.unmanaged is Refuse."
    );
    lone["remedy"] = json!(
        "let a Deployment or another controller run it, delete it by hand, or set spec.pods.unmanaged: Evict in the \
         plan"
    );
    web["reason"] = json!("BudgetNeverAllows");
    web["outlook"] = json!("NeverClears");
    web["message"] = json!(
        "Budget shop/web (minAvailable 1 of 1) can never allow an eviction: it requires 1 healthy pod, and \
         StatefulSet web (1 replica) can have 1 at most."
    );
    web["remedy"] = json!(
        "in budget shop/web write maxUnavailable: 1 instead of minAvailable: 1 (its only pod is then down while it \
         moves), or run at least 2 replicas"
    );
    free["message"] = json!("Would be evicted: no budget selects it.");
    assert_eq!(serde_json::to_value(&answer).unwrap(), json!({ "pods": expected }));
}

#[test]
fn explain_as_a_table() {
    let cluster = shop();
    let all = pods(&cluster);
    let answer = explain::answer(&cluster, &all, BTreeMap::new(), NOW);
    let expected = "\
NAMESPACE   POD     NODE     ACTION   CODE   BUDGETS   REASON              OUTLOOK
shop        web-0   node-a   Evict    429    web       BudgetNeverAllows   NeverClears
    Budget shop/web (minAvailable 1 of 1) can never allow an eviction: it requires 1 healthy pod, and StatefulSet web (1
    replica) can have 1 at most.
  → in budget shop/web write maxUnavailable: 1 instead of minAvailable: 1 (its only pod is then down while it moves), or
    run at least 2 replicas
shop        lone    node-a   Refuse   201    -         Unmanaged           NeverClears
    This pod has no controller, so nothing would create it again, and spec.pods.unmanaged is Refuse.
  → let a Deployment or another controller run it, delete it by hand, or set spec.pods.unmanaged: Evict in the plan

2 pods wait, 1 would be evicted now, 1 is left alone.
";
    assert_eq!(explain::table(&answer, false, 120), expected);
    let free: Vec<_> = all.into_iter().filter(|pod| &*pod.name == "free").collect();
    let answer = explain::answer(&cluster, &free, BTreeMap::new(), NOW);
    let expected = "\
NAMESPACE   POD    NODE     ACTION   CODE   BUDGETS   REASON   OUTLOOK
tools       free   node-a   Evict    201    -         -        -
    Would be evicted: no budget selects it.
";
    assert_eq!(explain::table(&answer, true, 120), expected);
}

/// Parses a command line that is written with spaces.
fn parse(line: &str) -> Result<args::Cli, clap::Error> {
    args::parse(line.split(' ').map(Into::into))
}

#[test]
fn options_stand_before_and_behind_the_command() {
    let cli = parse("kubectl-drainplan --from a.yaml b.json explain --all -o json").unwrap();
    assert_eq!(cli.global.from.len(), 2);
    assert_eq!(cli.global.output, Format::Json);
    assert!(matches!(cli.command, Command::Explain(args::Explain { all: true, .. })));
    let cli = parse("kubectl-drainplan explain node n1 --from a.yaml b.json").unwrap();
    assert_eq!(cli.global.from.len(), 2);
    assert!(parse("kubectl-drainplan explain pod shop/web-0 --verify -n shop").is_ok());
    assert!(parse("kubectl-drainplan budgets -A").unwrap().global.all_namespaces);
}

#[test]
fn contradictions_are_wrong_usage() {
    for line in [
        "kubectl-drainplan",
        "kubectl-drainplan nonsense",
        "kubectl-drainplan explain",
        "kubectl-drainplan explain --all node n1",
        "kubectl-drainplan budgets -A -n shop",
        "kubectl-drainplan budgets -o wide",
        "kubectl-drainplan explain --all --verify --from a.yaml",
        "kubectl-drainplan budgets --from a.yaml --context c",
        "kubectl-drainplan status kernel --from a.yaml",
        "kubectl-drainplan windows -f plan.yaml --from a.yaml",
        "kubectl-drainplan crd --from a.yaml",
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.use_stderr(), "{line}");
    }
    assert!(!parse("kubectl-drainplan --help").unwrap_err().use_stderr());
}

#[test]
fn the_sum_says_how_many_pods_may_go_at_once() {
    let mut items = vec![json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"namespace": "shop", "name": "web", "uid": "s"},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "web"}}}}})];
    for number in 0..3 {
        items.push(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": format!("web-{number}"), "uid": format!("p{number}"),
                "labels": {"app": "web"}, "creationTimestamp": "2026-11-01T10:00:00Z", "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s", "controller": true}]},
            "spec": {"nodeName": "a", "containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
    }
    let table = |items: &[serde_json::Value]| {
        let mut files = Files::default();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        files.add_text("all.json", &list.to_string()).unwrap();
        let cluster = files.finish().0;
        let pods: Vec<_> = cluster.pods().cloned().collect();
        explain::table(&explain::answer(&cluster, &pods, BTreeMap::new(), NOW), false, 120)
    };
    assert_eq!(table(&items), "0 pods wait, 3 would be evicted now, 0 are left alone.\n");
    for (most, told) in [(1, " but their budgets allow no more than 1 of them at once,"), (3, "")] {
        let mut items = items.clone();
        items.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "shop", "name": "web", "uid": "b", "generation": 1},
            "spec": {"maxUnavailable": most, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"observedGeneration": 1, "expectedPods": 3, "currentHealthy": 3, "desiredHealthy": 3 - most,
                "disruptionsAllowed": most}}));
        assert_eq!(table(&items), format!("0 pods wait, 3 would be evicted now,{told} 0 are left alone.\n"));
    }
}

#[test]
fn which_pod_is_meant_must_be_clear() {
    let asked = |words: &str| parse(&format!("kubectl-drainplan explain pod {words}"));
    for words in ["web-0", "web-0 -n shop", "shop/web-0", "shop/web-0 -n shop", "shop/web-0 -A"] {
        assert!(asked(words).is_ok(), "{words}");
    }
    assert!(asked("web-0 -n shop --from a.yaml").is_ok() && asked("shop/web-0 --from a.yaml").is_ok());
    for words in
        ["web-0 --from a.yaml", "web-0 -A", "shop/web-0 -n other", "a/b/c", "/web-0", "shop/", "a/b/c -n a"]
    {
        let error = asked(words).expect_err(words);
        assert!(error.use_stderr() && error.exit_code() == 2, "{words}");
    }
}

#[test]
fn a_nodes_pods_of_one_namespace() {
    let cluster = shop();
    let names = |scope: Scope| {
        let pods = explain::Asked::Node("node-a".into(), scope).pods(&cluster).unwrap();
        pods.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect::<Vec<_>>()
    };
    assert_eq!(names(Scope::All), ["shop/agent-x", "shop/lone", "shop/web-0", "tools/free"]);
    assert_eq!(names(Scope::One("tools".into())), ["tools/free"]);
    assert_eq!(names(Scope::One("empty".into())), [""; 0], "the node is there");
    let missing =
        |scope| explain::Asked::Node("node-x".into(), scope).pods(&cluster).unwrap_err().to_string();
    assert!(missing(Scope::All).starts_with("there is no node node-x and no pod on it;"));
    let of_namespace = missing(Scope::One("tools".into()));
    assert!(of_namespace.starts_with("there is no pod of namespace tools on node node-x,"), "{of_namespace}");
}

#[test]
fn files_that_lack_what_their_objects_belong_to_are_noticed() {
    let lacking = |text: &str| {
        let mut files = Files::default();
        files.add_text("dump.yaml", text).unwrap();
        source::missing(&files.finish().0)
    };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: web-1, ownerReferences: [{apiVersion: apps/v1, \
               kind: ReplicaSet, name: web, uid: r, controller: true}]}\n";
    assert_eq!(
        lacking(pod),
        ["objects in the files belong to ReplicaSets, and no ReplicaSet is there: they are taken to be gone"]
    );
    let other =
        "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {namespace: shop, name: other, uid: o}\n";
    assert_eq!(lacking(&format!("{pod}{other}")), [""; 0], "one of them may be gone");
    let budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {namespace: shop, name: web}\nspec: {}\n";
    assert_eq!(lacking(budget), ["the files hold budgets and no pods: there are taken to be none"]);
}

#[test]
fn windows_from_a_plan() {
    let read = |text: &str| windows::plan("plan.yaml", text);
    let plan = "apiVersion: drainplan.dev/v1alpha1\nkind: DrainPlan\nmetadata: {name: night}\nspec: {nodes: {names: [a]}, \
                windows: [{schedule: 0 22 * * *, duration: 10m}]}\n";
    let answer = |next| windows::answer(&read(plan).unwrap(), NOW, next).unwrap();
    let table = windows::table(&read(plan).unwrap(), &answer(0), NOW, 120);
    assert!(table.starts_with("night is shut at 2026-12-01T10:00:00Z.\n"), "{table}");
    assert!(table.contains("The server refuses this plan: window 0 22 * * * is open for 10m"), "{table}");
    let one = serde_json::to_value(answer(1)).unwrap();
    assert_eq!(
        (&one["open"], &one["closesAt"], &one["upcoming"]),
        (
            &json!(false),
            &json!(null),
            &json!([{"opens": "2026-12-01T22:00:00Z", "closes": "2026-12-01T22:10:00Z"}])
        )
    );
    let other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
    assert_eq!(read(&format!("{plan}{other}")).unwrap().metadata.name.as_deref(), Some("night"));
    assert!(read(other).unwrap_err().to_string().contains("holds no DrainPlan"));
    assert!(read(&format!("{plan}---\n{plan}")).unwrap_err().to_string().contains("holds 2 DrainPlans"));
    assert!(read("a: [").is_err());
}
