//! `status`, as people read it.

use serde_json::{Value, json};

use crate::api::DrainPlan;
use crate::cli::status::table;

fn plan(status: &Value) -> DrainPlan {
    serde_json::from_value(json!({
        "apiVersion": "drainplan.dev/v1alpha1", "kind": "DrainPlan",
        "metadata": {"name": "kernel", "generation": 2},
        "spec": {"nodes": {"names": ["a"]}, "handOff": {"then": "Uncordon"}},
        "status": status,
    }))
    .unwrap()
}

fn waiting(pod: &str, reason: &str, outlook: &str) -> Value {
    json!({"namespace": "shop", "pod": pod, "budgets": ["web"], "reason": reason, "outlook": outlook,
        "message": format!("{reason} is why. Change it"), "since": "2026-12-05T22:01:00Z"})
}

#[test]
fn a_plan_in_the_middle() {
    let pods: Vec<Value> =
        (0..5).map(|number| waiting(&format!("web-{number}"), "BudgetExhausted", "WillClear")).collect();
    let text = table(
        &plan(&json!({
            "observedGeneration": 1, "phase": "Running", "startedAt": "2026-12-05T22:00:00Z",
            "nodeCounts": {"total": 4, "pending": 2, "draining": 1, "handedOff": 0, "done": 1, "failed": 0,
                "skipped": 0, "blocked": 1},
            "podCounts": {"evicted": 12, "waiting": 6, "terminating": 1},
            "conditions": [{"type": "Ready", "status": "False", "reason": "Draining", "message": "1 of 4 nodes done",
                "lastTransitionTime": "2026-12-05T22:00:00Z"}],
            "nodes": [
                {"name": "b", "phase": "Draining", "deadline": "2026-12-05T22:15:00Z", "podsLeft": 5, "podsEvicted": 5,
                    "waiting": pods, "moreWaiting": 2},
                {"name": "c", "phase": "Pending", "reason": "Blocked", "message": "not touched", "podsLeft": 1,
                    "podsEvicted": 0, "waiting": [waiting("db-0", "BudgetNeverAllows", "NeverClears")]},
                {"name": "a", "phase": "Done", "podsLeft": 0, "podsEvicted": 7},
            ],
        })),
        100,
    );
    let expected = "\
kernel is Running since 2026-12-05T22:00:00Z
  ██████▓▓▓▓▓▓░░░░░░░░░░░░  1/4 nodes done, 1 draining, 2 pending, 1 of them blocked; pods: 12 evicted, 6 waiting, 1 going
    1 of 4 nodes done
    The last change of its spec has not been looked at yet.

NODE   PHASE      REASON    PODS GONE                       DEADLINE
b      Draining   -         ████████████░░░░░░░░░░░░ 5/10   2026-12-05T22:15:00Z
c      Pending    Blocked   0/1                             -

WAITING   REASON              BUDGET     OUTLOOK       SINCE
1 pod     BudgetNeverAllows   shop/web   NeverClears   2026-12-05T22:01:00Z
    shop/db-0 on c: BudgetNeverAllows is why. Change it
5 pods    BudgetExhausted     shop/web   WillClear     2026-12-05T22:01:00Z
    shop/web-0 on b, shop/web-1 on b, shop/web-2 on b, 2 more: BudgetExhausted is why. Change it
    and 2 more pods
";
    assert_eq!(text, expected);
}

#[test]
fn a_plan_that_nobody_has_looked_at_and_one_that_has_ended() {
    let new = plan(&json!({"observedGeneration": -1}));
    assert!(table(&new, 100).contains("no controller has looked at it"));
    let ended = plan(&json!({
        "observedGeneration": 2, "phase": "Failed", "startedAt": "2026-12-05T22:00:00Z", "run": 3,
        "finishedAt": "2026-12-05T23:00:00Z",
        "nodeCounts": {"total": 300, "pending": 0, "draining": 0, "handedOff": 0, "done": 299, "failed": 1,
            "skipped": 0, "blocked": 0},
        "nodes": [{"name": "x", "phase": "Failed", "reason": "TimedOut", "message": "1 pod left", "podsLeft": 1,
            "podsEvicted": 2}],
    }));
    let expected = "\
kernel is Failed, from 2026-12-05T22:00:00Z to 2026-12-05T23:00:00Z, run 3
  ███████████████████████×  299/300 nodes done, 1 failed

NODE   PHASE    REASON     PODS GONE   DEADLINE
x      Failed   TimedOut   2/3         -
    1 pod left
";
    assert_eq!(table(&ended, 100), expected);
}

#[test]
fn a_status_as_long_as_it_can_be_is_still_read() {
    let long = "worker-0.zone-a.example.com ".repeat(36);
    let nodes = (0..200).map(|number| {
        let pods = (0..20).map(|pod| {
            let reason = ["BudgetUnhealthy", "BudgetNeverAllows", "Terminating", "AdmissionDenied"][pod % 4];
            let outlook = ["MayClear", "NeverClears", "WillClear", "MayClear"][pod % 4];
            let budgets: Vec<String> = (0..pod % 7).map(|budget| format!("budget-of-a-team-{budget}")).collect();
            json!({"namespace": "shop", "pod": format!("web-{number}-{pod}"), "budgets": budgets, "reason": reason,
                "outlook": outlook, "message": long, "since": "2026-12-05T22:01:00Z"})
        });
        json!({"name": format!("node-{number}"), "phase": "Draining", "podsLeft": 25, "podsEvicted": 5,
            "message": long, "waiting": pods.collect::<Vec<_>>(), "moreWaiting": 5})
    });
    let status = json!({"observedGeneration": 2, "phase": "Running", "startedAt": "2026-12-05T22:00:00Z",
        "nodes": nodes.collect::<Vec<_>>()});
    let text = table(&plan(&status), 120);
    assert!(text.lines().count() <= 110, "{} lines\n{text}", text.lines().count());
    let mut sentences = text.lines().filter(|line| line.starts_with("    "));
    assert!(sentences.all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.contains("and 180 more"), "{text}");
    assert!(text.contains("… (kubectl drainplan explain pod shop/web-0-1)"), "{text}");
    let outlooks: Vec<&str> = text
        .lines()
        .filter_map(|line| ["NeverClears", "MayClear", "WillClear"].into_iter().find(|of| line.contains(of)))
        .collect();
    assert!(outlooks.is_sorted_by_key(|outlook| std::cmp::Reverse(outlook.len() == 11)), "{outlooks:?}");
    assert!(text.contains("budget-of-a-team-2 +3"), "{text}");
}
