//! Whatever the cluster: what is told of one pod fits on a screen, and long lists stay readable.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::NOW;
use crate::cli::explain;
use crate::cluster::{Cluster, Files, Pod};

/// What ails the pods of the nasty cluster.
const AILMENTS: [&str; 6] =
    ["nothing", "crashes", "unschedulable", "unschedulable in Japanese", "no scale", "a dead node"];

/// A name of that many characters, with the parts that such names have.
fn name(start: &str, length: usize) -> String {
    let long = format!("{start}{}", "-zone.example-0".repeat(20));
    long[..length.max(start.len())].trim_end_matches(['-', '.']).to_owned()
}

struct Nasty {
    length: usize,
    pods: usize,
    budgets: usize,
    ailment: &'static str,
}

impl Nasty {
    fn pod(&self, number: usize, node: &str) -> Value {
        let unready = number > 0 && self.ailment == "crashes";
        let pending = number > 0 && self.ailment.starts_with("unschedulable");
        let scheduler =
            format!("0/5000 nodes are available: {}.", "1 node(s) had untolerated taint {a: b}, ".repeat(90));
        let scheduler =
            if self.ailment == "unschedulable" { scheduler } else { "名前空間は凍結".repeat(90) };
        let scheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": scheduler});
        let ready = json!({"type": "Ready", "status": if unready || pending { "False" } else { "True" }});
        let looping = json!([{"name": "main", "restartCount": 4711, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
        let (kind, api) =
            if self.ailment == "no scale" { ("Job", "batch/v1") } else { ("StatefulSet", "apps/v1") };
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": name("shop", 63), "name": name(&format!("web-{number}"), self.length),
                "uid": format!("pod-{number}"), "labels": {"app": "web"}, "creationTimestamp": "2026-11-01T10:00:00Z",
                "ownerReferences": [{"apiVersion": api, "kind": kind, "name": name("web", self.length), "uid": "web",
                    "controller": true}]},
            "spec": if pending { json!({"containers": []}) } else { json!({"nodeName": node, "containers": []}) },
            "status": {"phase": if pending { "Pending" } else { "Running" },
                "conditions": if pending { json!([scheduled]) } else { json!([ready]) },
                "containerStatuses": if unready { looping } else { json!([]) }}})
    }

    fn cluster(&self) -> Cluster {
        let node = name("node", self.length);
        let silent = if self.ailment == "a dead node" { "Unknown" } else { "True" };
        let mut items = vec![
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "uid": "node"},
                "status": {"conditions": [{"type": "Ready", "status": silent}]}}),
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": {"namespace": name("shop", 63), "name": name("web", self.length), "uid": "web"},
                "spec": {"replicas": self.pods, "template": {"metadata": {"labels": {"app": "web"}}}}}),
        ];
        items.extend((0..self.pods).map(|number| self.pod(number, &node)));
        for number in 0..self.budgets {
            items.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"namespace": name("shop", 63), "name": name(&format!("budget-{number}"), self.length),
                    "uid": format!("b{number}"), "generation": 1},
                "spec": {"maxUnavailable": if number == 0 && self.ailment == "nothing" { "0%" } else { "1%" },
                    "selector": {"matchLabels": {"app": "web"}}},
                "status": {"observedGeneration": 1, "expectedPods": self.pods, "currentHealthy": 1,
                    "desiredHealthy": self.pods, "disruptionsAllowed": 0}}));
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let mut files = Files::default();
        files.add_text("nasty.json", &list.to_string()).unwrap();
        files.finish().0
    }
}

/// All of them: of 1 or 40 pods, with up to ten budgets, with short names and the longest that there are.
fn nasty() -> impl Iterator<Item = Nasty> {
    let lengths = [4, 63, 130, 253];
    lengths.into_iter().flat_map(|length| {
        [1, 40].into_iter().flat_map(move |pods| {
            [0, 1, 10]
                .into_iter()
                .flat_map(move |budgets| AILMENTS.map(|ailment| Nasty { length, pods, budgets, ailment }))
        })
    })
}

/// The words of a text; one that goes on in the next line is one.
fn words(text: &str) -> Vec<String> {
    let mut joined = String::new();
    for line in text.lines() {
        match line.strip_suffix('\\') {
            Some(part) if joined.ends_with('\u{1}') => {
                joined.pop();
                joined.extend([part.trim_start(), "\u{1}"]);
            }
            Some(part) => joined.extend([part, "\u{1}"]),
            None if joined.ends_with('\u{1}') => {
                joined.pop();
                joined.extend([line.trim_start(), "\n"]);
            }
            None => joined.extend([line, "\n"]),
        }
    }
    joined.split_whitespace().map(|word| word.trim_end_matches(',').to_owned()).collect()
}

/// Every word that is shown is one of the answer's, whole.
fn ensure_whole(text: &str, answer: &explain::Answer) {
    const LABELS: &str = "NAMESPACE POD NODE ACTION CODE VERIFIED BUDGETS REASON OUTLOOK - Evict; Refuse; Ignore; the server \
                          answers and more … (-o yaml has all of it) →";
    let mut known: BTreeSet<String> = words(LABELS).into_iter().collect();
    let json = serde_json::to_value(answer).unwrap();
    let mut texts = vec![&json];
    while let Some(text) = texts.pop() {
        match text {
            Value::String(text) => known.extend(words(text)),
            Value::Array(items) => {
                known.extend((0..=items.len()).flat_map(|count| [count.to_string(), format!("+{count}")]));
                let names: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                known.extend((1..=names.len()).map(|count| names[..count].join(",")));
                texts.extend(items);
            }
            Value::Object(fields) => texts.extend(fields.values()),
            other => known.extend([other.to_string()]),
        }
    }
    for word in words(text) {
        assert!(known.contains(&word), "{word:?} is part of something, in\n{text}");
    }
}

fn answer(cluster: &Cluster, pods: &[std::sync::Arc<Pod>]) -> explain::Answer {
    explain::answer(cluster, pods, BTreeMap::new(), NOW)
}

#[test]
fn one_pod_is_told_of_in_25_lines_of_120_columns_whatever_the_cluster() {
    let (mut longest, mut widest) = (0, 0);
    for nasty in nasty() {
        let cluster = nasty.cluster();
        let pods: Vec<_> = cluster.pods().take(4).cloned().collect();
        assert!(!pods.is_empty());
        for pod in pods {
            let of = answer(&cluster, std::slice::from_ref(&pod));
            let text = explain::table(&of, true, 120);
            let lines: Vec<usize> = text.lines().map(UnicodeWidthStr::width).collect();
            longest = longest.max(lines.len());
            widest = widest.max(lines.iter().copied().max().unwrap_or(0));
            assert!(
                lines.len() <= 25 && lines.iter().all(|line| *line <= 120),
                "{} lines\n{text}",
                lines.len()
            );
            ensure_whole(&text, &of);
            assert!(words(&text).contains(&pod.name.to_string()), "not named in\n{text}");
        }
    }
    assert!(longest > 15 && widest > 110, "it was not nasty enough: {longest} lines, {widest} columns");
}

#[test]
fn many_pods_with_one_reason_are_one_group() {
    let cluster = Nasty { length: 8, pods: 40, budgets: 1, ailment: "crashes" }.cluster();
    let pods: Vec<_> = cluster.pods().cloned().collect();
    let text = explain::table(&answer(&cluster, &pods), false, 120);
    assert!(text.contains("and 35 more for the same reason (-o yaml has them)"), "{text}");
    assert_eq!(text.matches("BudgetUnhealthy").count(), 5, "{text}");
    assert!(text.ends_with("\n40 pods wait, 0 would be evicted now, 0 are left alone.\n"), "{text}");
    assert!(text.lines().count() <= 20, "{text}");
}

#[test]
fn the_worst_comes_first_then_the_most_and_the_last_groups_are_counted() {
    // 30 namespaces, each with a pod without a controller and, in the last one, with a budget that allows nothing for now.
    let mut items = Vec::new();
    for number in 0..30 {
        items.push(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": format!("team-{number:02}"), "name": "lone", "uid": format!("u{number}")},
            "spec": {"nodeName": "a", "containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
    }
    for number in 0..2 {
        items.push(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "going", "name": format!("going-{number}"), "uid": format!("g{number}"),
                "deletionTimestamp": "2026-12-01T10:00:10Z", "deletionGracePeriodSeconds": 30,
                "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "f",
                    "controller": true}]},
            "spec": {"nodeName": "a", "containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
    }
    let mut files = Files::default();
    files
        .add_text("all.json", &json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
        .unwrap();
    let cluster = files.finish().0;
    let mut pods: Vec<_> = cluster.pods().cloned().collect();
    pods.reverse();
    let text = explain::table(&answer(&cluster, &pods), false, 120);
    let shown: Vec<&str> = text.lines().filter(|line| line.contains("Unmanaged")).collect();
    assert!(shown[0].starts_with("team-00") && shown.len() == 21, "{text}");
    assert!(text.contains("and 12 more pods (-o yaml has them): 10 Unmanaged, 2 Terminating"), "{text}");
}
