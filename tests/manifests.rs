//! The manifests fit the program: rights, flags, names, labels and samples.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says so by failing")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use drainplan::api::{DrainPlan, names};
use drainplan::cluster::ObjectKind;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::de::DeserializeOwned;
use serde_json::Value;

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests").join(file)).unwrap()
}

/// The first object of a file.
fn object<T: DeserializeOwned>(file: &str) -> T {
    let first = read(file).split("\n---\n").next().map(str::to_owned).unwrap();
    serde_json::from_value(serde_saphyr::from_str::<Value>(&first).unwrap()).unwrap()
}

fn controller(arguments: &[String]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_drainplan-controller")).args(arguments).output().unwrap()
}

/// `group/resource` of the rules that have a verb.
fn with_verb(rules: &[PolicyRule], verb: &str) -> BTreeSet<String> {
    let having = rules.iter().filter(|rule| rule.verbs.iter().any(|has| has == verb || has == "*"));
    having
        .flat_map(|rule| {
            let groups = rule.api_groups.clone().unwrap_or_default();
            let resources = rule.resources.clone().unwrap_or_default();
            groups.into_iter().flat_map(move |group| {
                resources.clone().into_iter().map(move |resource| format!("{group}/{resource}"))
            })
        })
        .collect()
}

#[test]
fn the_rights_are_those_that_are_used() {
    let rules = object::<ClusterRole>("cluster-role.yaml").rules.unwrap();
    let watched: BTreeSet<String> = ObjectKind::ALL
        .iter()
        .map(|kind| format!("{}/{}", kind.group(), kind.plural()))
        .chain(["drainplan.dev/drainplans".to_owned()])
        .collect();
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(with_verb(&rules, "list"), watched);
    assert_eq!(with_verb(&rules, "watch"), watched);
    assert_eq!(with_verb(&rules, "get"), &watched | &set(&["*/*/scale"]));
    let patched = set(&["/nodes", "drainplan.dev/drainplans", "drainplan.dev/drainplans/status"]);
    assert_eq!(with_verb(&rules, "patch"), patched);
    assert_eq!(with_verb(&rules, "create"), set(&["/pods/eviction", "events.k8s.io/events"]));
    for verb in ["update", "delete", "deletecollection", "escalate", "bind", "impersonate"] {
        assert_eq!(with_verb(&rules, verb), set(&[]), "{verb}");
    }
}

#[test]
fn the_lease_that_may_be_written_is_the_one_that_is_used() {
    let role = object::<Role>("role.yaml");
    let named: BTreeSet<String> =
        role.rules.unwrap().into_iter().flat_map(|rule| rule.resource_names.unwrap_or_default()).collect();
    let help = String::from_utf8(controller(&["--help".to_owned()]).stdout).unwrap();
    let of_lease = help.split("--lease-name <").nth(1).unwrap();
    let default = of_lease.split("[default: ").nth(1).unwrap().split(']').next().unwrap();
    assert_eq!(named, BTreeSet::from([default.to_owned()]));
}

#[test]
fn the_program_knows_the_arguments_of_the_deployment() {
    let pod = object::<Deployment>("deployment.yaml").spec.template.spec.unwrap();
    let mut arguments = pod.containers[0].args.clone().unwrap();
    arguments.push("--help".to_owned());
    let output = controller(&arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let help = String::from_utf8(output.stdout).unwrap();
    let variables = pod.containers[0].env.clone().unwrap();
    for name in variables.into_iter().map(|variable| variable.name) {
        assert!(help.contains(&format!("[env: {name}")), "the program does not read {name}");
    }
}

#[test]
fn the_budget_covers_the_replicas() {
    let deployment = object::<Deployment>("deployment.yaml");
    let labels = deployment.spec.template.metadata.unwrap().labels.unwrap();
    let budget = object::<PodDisruptionBudget>("pod-disruption-budget.yaml");
    for selector in [deployment.spec.selector, budget.spec.unwrap().selector.unwrap()] {
        assert_eq!(selector.match_labels.as_ref(), Some(&labels));
        assert!(selector.match_expressions.is_none());
    }
    assert!(deployment.spec.replicas > Some(1), "a budget of one replica would never let it go");
}

/// The documents of all samples, with their files.
fn samples() -> Vec<(String, Value)> {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/samples")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let yaml = files.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let documents = yaml.flat_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.display().to_string();
        let documents = text.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap());
        documents.map(|document| (name.clone(), document)).collect::<Vec<_>>()
    });
    documents.collect()
}

#[test]
fn samples_have_only_fields_that_exist() {
    let samples = samples();
    let plans: Vec<_> = samples.iter().filter(|(_, written)| written["kind"] == "DrainPlan").collect();
    for (file, written) in &plans {
        let plan: DrainPlan = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(&serde_json::to_value(plan).unwrap(), written, "{file}");
    }
    assert!(plans.len() >= 5, "{plans:?}");
}

#[test]
fn whoever_works_on_nodes_finds_them_by_the_label() {
    let drained = [(names::STATE.to_owned(), names::DRAINED.to_owned())].into();
    let mut seen = 0;
    for (file, written) in samples().into_iter().filter(|(_, written)| written["kind"] == "DaemonSet") {
        let set: DaemonSet = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&set).unwrap(), written, "{file}");
        let pod = set.spec.template.spec.unwrap();
        assert_eq!(pod.node_selector.as_ref(), Some(&drained), "{file}");
        seen += 1;
    }
    assert_eq!(seen, 1);
    let script = read("samples/hand-off.sh");
    for name in [format!("{}={}", names::STATE, names::DRAINED), format!("{}=", names::RELEASE)] {
        assert!(script.contains(&name), "{name}");
    }
}
