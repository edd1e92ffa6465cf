//! What a scrape shows.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::api::{Outlook, Reason};

mod page;

/// The value of a series.
fn sample(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

/// The series of a metric, without their values.
fn series<'t>(text: &'t str, metric: &str) -> BTreeSet<&'t str> {
    let of_metric = |line: &&str| line.starts_with(&format!("{metric}{{"));
    text.lines().filter(of_metric).filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect()
}

fn ago(seconds: i64) -> String {
    (Timestamp::now() - SignedDuration::from_secs(seconds)).to_string()
}

fn plan(name: &str, status: &Value) -> Arc<DrainPlan> {
    let plan = json!({
        "apiVersion": "drainplan.dev/v1alpha1",
        "kind": "DrainPlan",
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"nodes": {"names": ["n"]}, "handOff": {"then": "Uncordon"}},
        "status": status,
    });
    Arc::new(serde_json::from_value(plan).unwrap())
}

/// A running plan that drains a node on which these pods wait, each on a budget of its name, for a reason and since when.
fn running(name: &str, waiting: &[(&str, &str, String)]) -> Arc<DrainPlan> {
    let pods = waiting.iter().map(|(pod, reason, since)| {
        json!({"namespace": "shop", "pod": pod, "budgets": [format!("of-{pod}")], "reason": reason,
            "outlook": "WillClear", "message": "", "since": since})
    });
    let node = json!({"name": "n", "phase": "Draining", "podsLeft": 1, "podsEvicted": 0,
        "waiting": pods.collect::<Vec<_>>()});
    let counts = json!({"total": 3, "pending": 2, "draining": 1, "handedOff": 0, "done": 0, "failed": 0,
        "skipped": 0, "blocked": 1});
    plan(name, &json!({"phase": "Running", "nodeCounts": counts, "nodes": [node]}))
}

/// A replica that acts and has just seen these plans.
fn leading(plans: &[Arc<DrainPlan>]) -> Metrics {
    let metrics = Metrics::new();
    metrics.leading(true);
    show(&metrics, plans);
    metrics
}

fn show(metrics: &Metrics, plans: &[Arc<DrainPlan>]) {
    metrics.show(plans.to_vec(), &HashMap::new());
}

const EXHAUSTED: (Reason, Outlook) = (Reason::BudgetExhausted, Outlook::WillClear);

#[test]
fn a_counter_is_there_before_anything_was_counted() {
    let metrics = Metrics::new();
    let series = "drainplan_eviction_requests_total{code=\"429\",cause=\"BudgetExhausted\"}";
    assert_eq!(sample(&metrics.encode().unwrap(), series), Some(0.0));
    metrics.clone().eviction("429".into(), EvictionCause::BudgetExhausted);
    assert_eq!(sample(&metrics.encode().unwrap(), series), Some(1.0));
}

#[test]
fn a_phase_that_no_plan_is_in_any_more_goes_back_to_zero() {
    let metrics = leading(&[running("a", &[]), running("b", &[])]);
    let text = metrics.encode().unwrap();
    assert_eq!(sample(&text, "drainplan_plans{phase=\"Running\"}"), Some(2.0));
    show(&metrics, &[running("a", &[])]);
    let text = metrics.encode().unwrap();
    assert_eq!(sample(&text, "drainplan_plans{phase=\"Running\"}"), Some(1.0));
    assert_eq!(sample(&text, "drainplan_plans{phase=\"Failed\"}"), Some(0.0));
}

#[test]
fn leading_again_is_a_transition_and_going_on_is_none() {
    let metrics = Metrics::new();
    for leading in [true, true, false, false, true] {
        metrics.leading(leading);
    }
    let text = metrics.encode().unwrap();
    assert_eq!(sample(&text, "drainplan_leader_transitions_total"), Some(2.0));
    assert_eq!(sample(&text, "drainplan_leader"), Some(1.0));
}

#[test]
fn a_plan_that_is_gone_has_no_series_and_the_others_keep_theirs() {
    let waits = |pods| Waits::from([(EXHAUSTED, pods)]);
    let (first, second) = (waits(4), waits(7));
    let plans = ["a", "b"].map(|name| running(name, &[(name, "BudgetExhausted", ago(60))]));
    let metrics = Metrics::new();
    metrics.leading(true);
    metrics.show(plans.to_vec(), &HashMap::from([("uid-a", &first), ("uid-b", &second)]));
    let text = metrics.encode().unwrap();
    assert_eq!(sample(&text, "drainplan_nodes{plan=\"a\",phase=\"Pending\"}"), Some(2.0));
    let waiting = |plan: &str| {
        let labels = "reason=\"BudgetExhausted\",outlook=\"WillClear\"";
        format!("drainplan_pods_waiting{{plan=\"{plan}\",{labels}}}")
    };
    assert_eq!(sample(&text, &waiting("a")), Some(4.0));
    assert_eq!(sample(&text, &waiting("b")), Some(7.0));
    assert_eq!(series(&text, "drainplan_nodes").len(), 2 * 6);

    metrics.show(plans[1..].to_vec(), &HashMap::new());
    let text = metrics.encode().unwrap();
    assert!(!text.contains("plan=\"a\"") && !text.contains("of-a"), "{text}");
    assert_eq!(series(&text, "drainplan_nodes").len(), 6);
    assert_eq!(sample(&text, &waiting("b")), Some(7.0), "nobody looked: it is as it was");

    metrics.show(plans[1..].to_vec(), &HashMap::from([("uid-b", &Waits::new())]));
    assert_eq!(series(&metrics.encode().unwrap(), "drainplan_pods_waiting"), BTreeSet::new());
}

#[test]
fn only_whoever_acts_reports_on_plans() {
    let metrics = leading(&[running("a", &[("web", "BudgetExhausted", ago(60))])]);
    assert!(metrics.encode().unwrap().contains("of-web"));
    metrics.leading(false);
    // A decision that was under way.
    show(&metrics, &[running("a", &[("web", "BudgetExhausted", ago(60))])]);
    let text = metrics.encode().unwrap();
    assert_eq!(sample(&text, "drainplan_plans{phase=\"Running\"}"), Some(0.0));
    assert!(!text.contains("BudgetExhausted\",outlook") && !text.contains("plan=\"a\""), "{text}");
    assert!(!text.contains("of-web"), "{text}");
}

#[test]
fn the_age_of_a_wait_is_taken_at_the_scrape_and_ends_with_it() {
    let metrics = leading(&[running("a", &[("web", "BudgetExhausted", ago(90))])]);
    let text = metrics.encode().unwrap();
    let labels = "{reason=\"BudgetExhausted\",outlook=\"WillClear\"}";
    let age = sample(&text, &format!("drainplan_oldest_waiting_pod_seconds{labels}")).unwrap();
    assert!((90.0..600.0).contains(&age), "{age}");
    show(&metrics, &[running("a", &[])]);
    assert_eq!(series(&metrics.encode().unwrap(), "drainplan_oldest_waiting_pod_seconds"), BTreeSet::new());
}

fn blocking(text: &str, budget: &str) -> Option<f64> {
    sample(text, &format!("drainplan_budget_blocking_seconds{{namespace=\"shop\",budget=\"{budget}\"}}"))
}

#[test]
fn the_fifty_budgets_that_block_longest_are_named_and_no_more() {
    let since = |minutes: i64| ago(minutes * 60);
    let names: Vec<String> = (1..=60).map(|minutes| format!("web-{minutes}")).collect();
    let pods: Vec<_> =
        names.iter().zip(1..).map(|(name, minutes)| (&**name, "BudgetUnhealthy", since(minutes))).collect();
    // Two plans, so that it is 50 of all and not 50 of each.
    let text = leading(&[running("a", &pods[..30]), running("b", &pods[30..])]).encode().unwrap();
    assert_eq!(series(&text, "drainplan_budget_blocking_seconds").len(), 50);
    assert_eq!(blocking(&text, "of-web-10"), None, "blocks for 10 minutes, and 50 others for longer");
    let age = blocking(&text, "of-web-11").unwrap();
    assert!((660.0..1200.0).contains(&age), "{age}");
    assert!(blocking(&text, "of-web-60").is_some());
}

#[test]
fn a_budget_blocks_through_all_its_reasons_and_is_dropped_when_it_does_not() {
    let web = |reason, since| running("a", &[("web", reason, since)]);
    let metrics = leading(&[web("BudgetExhausted", ago(7200))]);
    // Since a moment ago for another reason; the pod is held all the same.
    show(&metrics, &[web("ReplacementPending", ago(1))]);
    let age = blocking(&metrics.encode().unwrap(), "of-web").unwrap();
    assert!((7200.0..8000.0).contains(&age), "{age}");
    // Its webhook holds it now, and no budget does.
    show(&metrics, &[web("AdmissionDenied", ago(1))]);
    assert_eq!(blocking(&metrics.encode().unwrap(), "of-web"), None);
    show(&metrics, &[web("BudgetExhausted", ago(1))]);
    let age = blocking(&metrics.encode().unwrap(), "of-web").unwrap();
    assert!(age < 600.0, "what held it before that is over: {age}");
    show(&metrics, &[running("a", &[])]);
    assert_eq!(blocking(&metrics.encode().unwrap(), "of-web"), None);
}

#[test]
fn what_held_a_node_that_has_ended_holds_nothing_any_more() {
    for (phase, there) in [("Pending", true), ("Draining", true), ("Failed", false), ("Done", false)] {
        let mut status =
            serde_json::to_value(running("a", &[("web", "BudgetNeverAllows", ago(60))]).status.clone())
                .unwrap();
        status["nodes"][0]["phase"] = json!(phase);
        let text = leading(&[plan("a", &status)]).encode().unwrap();
        assert_eq!(blocking(&text, "of-web").is_some(), there, "{phase}");
        status["finishedAt"] = json!(ago(0));
        assert_eq!(blocking(&leading(&[plan("a", &status)]).encode().unwrap(), "of-web"), None, "{phase}");
    }
}

#[test]
fn a_plan_that_only_looks_is_not_held_up() {
    let mut looks = DrainPlan::clone(&running("a", &[("web", "BudgetNeverAllows", ago(60))]));
    looks.spec.preflight_only = true;
    let text = leading(&[Arc::new(looks)]).encode().unwrap();
    assert_eq!(blocking(&text, "of-web"), None);
    assert_eq!(series(&text, "drainplan_oldest_waiting_pod_seconds"), BTreeSet::new());
    assert_eq!(series(&text, "drainplan_nodes").len(), 6);
}

#[test]
fn a_drain_is_counted_from_seconds_to_hours() {
    let metrics = Metrics::new();
    for seconds in [3, 20 * 60, 3 * 3600, 24 * 3600] {
        metrics.node_drained(Duration::from_secs(seconds));
    }
    let text = metrics.encode().unwrap();
    let within =
        |le: &str| sample(&text, &format!("drainplan_node_drain_duration_seconds_bucket{{le=\"{le}\"}}"));
    assert_eq!([within("1.0"), within("5.0"), within("1800.0")], [Some(0.0), Some(1.0), Some(2.0)]);
    assert_eq!([within("14400.0"), within("+Inf")], [Some(3.0), Some(4.0)]);
}

/// A line of an exposition, taken apart as strictly as the format has it.
fn parse(line: &str) -> (String, Vec<(String, String)>, f64) {
    let name = |text: &str| {
        let good = |at: usize, c: char| c.is_ascii_alphabetic() || c == '_' || (at > 0 && c.is_ascii_digit());
        assert!(!text.is_empty() && text.chars().enumerate().all(|(at, c)| good(at, c)), "{line}");
        text.to_owned()
    };
    let Some((series, rest)) = line.split_once('{') else {
        let (series, value) = line.split_once(' ').unwrap();
        return (name(series), Vec::new(), value.parse().unwrap());
    };
    let (labels, value) = rest.rsplit_once("} ").unwrap_or_else(|| panic!("{line}"));
    let labels = labels.split("\",").map(|label| {
        let (label, value) = label.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        (name(label), value.trim_end_matches('"').to_owned())
    });
    (name(series), labels.collect(), value.parse().unwrap())
}

#[test]
fn an_exposition_parses_and_every_metric_has_a_help_text_and_a_type() {
    let metrics = leading(&[running("a", &[("web", "BudgetExhausted", ago(60))])]);
    metrics.api_request("GET", Some(200), Duration::ZERO);
    let text = metrics.encode().unwrap();
    assert!(text.ends_with("\n# EOF\n"));
    let (mut helped, mut typed, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (family, words) = help.split_once(' ').unwrap();
            assert!(words.len() > 10 && words.ends_with('.'), "{line}");
            assert!(helped.insert(family), "twice: {line}");
        } else if let Some(of_type) = line.strip_prefix("# TYPE ") {
            assert!(typed.insert(of_type.split_once(' ').unwrap().0), "twice: {line}");
        } else if !line.starts_with("# UNIT ") {
            let (series, labels, value) = parse(line);
            let suffixes = ["_bucket", "_sum", "_count", "_total", "_info", ""];
            let stems = suffixes.iter().filter_map(|suffix| series.strip_suffix(suffix));
            let family = stems.into_iter().find(|stem| typed.contains(stem));
            assert!(family.is_some_and(|family| helped.contains(family)), "no HELP and TYPE before {line}");
            assert!(value >= 0.0, "{line}");
            assert!(seen.insert((series, labels)), "twice: {line}");
        }
    }
    assert!(helped.len() > 15 && helped == typed, "{helped:?} {typed:?}");
}
