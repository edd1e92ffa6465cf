//! How plans are read by tools that do not know them: kstatus and Argo CD, in every state that a plan may be in.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says so by failing")]

#[path = "../e2e/harness/gitops.rs"]
mod gitops;

use std::fs;
use std::path::Path;
use std::time::Duration;

use drainplan::api::DrainPlan;
use drainplan::plan::Settings;
use drainplan::simulate::{Act, BudgetSetup, Fact, NodeSetup, Timing, WorkloadSetup, World};
use gitops::{Script, condition, judge, kstatus};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// Every state of the plan on a small cluster, from what the server makes of a new one on.
fn course(spec: &Value, budget: i32, more: &[(u64, Act)]) -> Vec<Value> {
    let mut world = World::new(START, Timing::default(), Settings::default(), 1);
    world.add_node(&NodeSetup::new("a", "old", 4));
    world.add_workload(WorkloadSetup::deployment("shop", "web", 2));
    world.add_budget(&BudgetSetup::max_unavailable("shop", "web", budget));
    world.run(START + SignedDuration::from_secs(20));
    world.add_node(&NodeSetup::new("spare", "new", 10));
    world.add_process();
    let plan = json!({"apiVersion": "drainplan.dev/v1alpha1", "kind": "DrainPlan", "metadata": {"name": "p"}, "spec": spec});
    let plan: DrainPlan = serde_json::from_value(plan).unwrap();
    let at = |seconds| START + SignedDuration::from_secs(seconds);
    world.plan_act(at(21), Act::CreatePlan(Box::new(plan)));
    for (seconds, act) in more {
        world.plan_act(at(i64::try_from(*seconds).unwrap()), act.clone());
    }
    world.take_facts();
    let mut states = Vec::new();
    while world.step(at(200)) {
        for fact in world.take_facts() {
            match fact {
                Fact::Acted(Act::CreatePlan(_)) => {
                    let mut new = serde_json::to_value(&**world.store().plan("p").unwrap()).unwrap();
                    new["status"] = new_status();
                    states.push(new);
                }
                Fact::StatusWritten { plan, .. } => states.push(serde_json::to_value(&*plan).unwrap()),
                _ => {}
            }
        }
        // An edit and a deletion are seen before the controller has answered them.
        if let Some(now) = world.store().plan("p") {
            let now = serde_json::to_value(&**now).unwrap();
            let known = states.last().map(|last| last["metadata"].clone());
            if now.get("status").is_some() && known != Some(now["metadata"].clone()) {
                states.push(now);
            }
        }
    }
    states
}

/// The status that the server gives a new plan.
fn new_status() -> Value {
    let crd = serde_json::to_value(drainplan::api::crd()).unwrap();
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/default").unwrap().clone()
}

fn over(changes: &Value) -> Value {
    let mut spec =
        json!({"nodes": {"names": ["a"]}, "timeouts": {"node": "20s"}, "handOff": {"then": "Uncordon"}});
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

/// What was read, one after the other, without repetition.
fn read(states: &[Value], by: impl Fn(&Value) -> String) -> Vec<String> {
    let mut read: Vec<String> = states.iter().map(by).collect();
    read.dedup();
    read
}

#[test]
fn every_state_is_read_as_what_it_is() {
    let none = json!({"nodes": {"selector": {"matchLabels": {"pool": "nobody"}}}});
    let invalid = json!({"windows": [{"schedule": "99 * * * *", "duration": "1h"}]});
    // 1 January of each year; the clock shows 15 January.
    let closed = json!({"windows": [{"schedule": "0 0 1 1 *", "duration": "1h"}]});
    let suspended = json!({"suspend": true});
    let edit = |seconds, edit| vec![(seconds, Act::EditPlan("p".to_owned(), edit))];
    let resumed = edit(60, drainplan::simulate::PlanEdit::Suspend(false));
    let named = edit(60, drainplan::simulate::PlanEdit::Names(vec!["a".to_owned()]));
    let table = [
        ("it completes", json!({}), 1, vec![], vec!["InProgress", "Current"], vec!["Progressing", "Healthy"]),
        (
            "its pods never clear",
            json!({}),
            0,
            vec![],
            vec!["InProgress", "Failed"],
            vec!["Progressing", "Degraded"],
        ),
        (
            "it selects no node",
            none,
            1,
            vec![],
            vec!["InProgress", "Failed"],
            vec!["Progressing", "Degraded"],
        ),
        (
            "it selects no node and is told better",
            json!({"nodes": {"names": ["nowhere"]}, "windows": [], "suspend": false}),
            1,
            named,
            vec!["InProgress", "Failed", "InProgress", "Current"],
            vec!["Progressing", "Degraded", "Progressing", "Healthy"],
        ),
        (
            "nobody can read it",
            invalid,
            1,
            vec![],
            vec!["InProgress", "Failed"],
            vec!["Progressing", "Degraded"],
        ),
        ("its window is shut", closed, 1, vec![], vec!["InProgress"], vec!["Progressing", "Suspended"]),
        (
            "it is suspended",
            suspended.clone(),
            1,
            vec![],
            vec!["InProgress"],
            vec!["Progressing", "Suspended"],
        ),
        (
            "it is suspended and goes on",
            suspended,
            1,
            resumed,
            vec!["InProgress", "Current"],
            vec!["Progressing", "Suspended", "Progressing", "Healthy"],
        ),
        (
            "it is deleted",
            json!({}),
            1,
            vec![(22, Act::DeletePlan("p".to_owned()))],
            vec!["InProgress", "Terminating"],
            vec!["Progressing"],
        ),
    ];
    let script = Script::load().unwrap();
    for (what, changes, budget, more, by_kstatus, by_argo) in table {
        let states = course(&over(&changes), budget, &more);
        let wrong = states.iter().find_map(|plan| judge(&script, plan).unwrap().map(|wrong| (wrong, plan)));
        assert!(wrong.is_none(), "{what}: {wrong:#?}");
        assert_eq!(read(&states, |plan| kstatus(plan).to_owned()), by_kstatus, "{what}");
        assert_eq!(read(&states, |plan| script.health(plan).unwrap().0), by_argo, "{what}");
    }
}

#[test]
fn a_spec_that_nobody_has_read_yet_is_in_progress_whatever_was_said_before() {
    let states = course(&over(&json!({"nodes": {"selector": {"matchLabels": {"pool": "nobody"}}}})), 1, &[]);
    let mut stalled = states.last().unwrap().clone();
    assert_eq!((kstatus(&stalled), condition(&stalled, "Stalled")), ("Failed", Some("True")));
    let generation = stalled["metadata"]["generation"].as_i64().unwrap();
    stalled["metadata"]["generation"] = json!(generation + 1);
    assert_eq!(kstatus(&stalled), "InProgress");
    assert_eq!(Script::load().unwrap().health(&stalled).unwrap().0, "Progressing");
}

#[test]
fn a_plan_that_was_just_created_is_not_taken_for_one_that_is_current() {
    let plan = json!({"metadata": {"name": "p", "generation": 1}, "status": new_status()});
    assert_eq!(kstatus(&plan), "InProgress");
    assert_eq!(
        kstatus(&json!({"metadata": {"name": "p", "generation": 1}})),
        "Current",
        "what the default is for"
    );
}

#[test]
fn a_rule_that_is_broken_is_noticed() {
    let states = course(&over(&json!({})), 1, &[]);
    let done = states.last().unwrap();
    let script = Script::load().unwrap();
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut plan = done.clone();
        edit(&mut plan);
        judge(&script, &plan).unwrap()
    };
    assert_eq!(with(&|_| {}), None);
    let more = |kind: &'static str, status: &'static str| {
        move |plan: &mut Value| {
            let condition = json!({"type": kind, "status": status, "reason": "X", "message": "x",
                "observedGeneration": plan["status"]["observedGeneration"]});
            plan["status"]["conditions"].as_array_mut().unwrap().push(condition);
        }
    };
    for (kind, status) in
        [("Stalled", "True"), ("Stalled", "False"), ("Reconciling", "True"), ("Reconciling", "False")]
    {
        assert!(with(&more(kind, status)).is_some(), "{kind} {status}");
    }
    assert!(with(&|plan| plan["status"]["phase"] = json!("Running")).is_some());
    assert!(with(&|plan| plan["status"]["conditions"][0]["observedGeneration"] = json!(7)).is_some());
}

/// The examples are about this kind and name what is there.
#[test]
fn the_examples_fit() {
    let read = |file: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests").join(file);
        serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let written = read("gitops/workers.yaml");
    let plan: DrainPlan = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(plan).unwrap(), written);
    assert_eq!(read("gitops/kustomization.yaml")["resources"], json!(["workers.yaml"]));
    let check = &read("flux/kustomization.yaml")["spec"]["healthCheckExprs"][0];
    assert_eq!((&check["apiVersion"], &check["kind"]), (&written["apiVersion"], &written["kind"]));
    for key in ["current", "inProgress", "failed"] {
        assert!(check[key].as_str().unwrap().contains("status.observedGeneration"), "{key}");
    }
    let timeout: drainplan::api::PlanDuration =
        read("flux/kustomization.yaml")["spec"]["timeout"].as_str().unwrap().parse().unwrap();
    assert!(Duration::try_from(timeout.value()).unwrap() > Duration::from_hours(1));
    assert_eq!(read("argocd/application.yaml")["kind"], "Application");
}
