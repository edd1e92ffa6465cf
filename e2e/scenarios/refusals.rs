//! What the server refuses because of the schema, and with which sentence.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use drainplan::api::{DrainPlan, PlanPhase, syntax};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use super::shared;
use crate::harness::Bed;
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(6, wrong_plans)]
}

/// A plan that is as it should be but for one thing.
struct Wrong {
    spec: Value,
    /// What the server must say.
    says: String,
}

/// A spec that the server accepts, with some fields changed; a null takes one away.
fn spec(changes: Value) -> Value {
    let mut spec = json!({
        "nodes": {"names": ["e2e-06-nowhere"]},
        "suspend": true,
        "handOff": {"then": "KeepCordoned"},
    });
    merge(&mut spec, changes);
    spec
}

fn merge(into: &mut Value, changes: Value) {
    let (Some(fields), Value::Object(changes)) = (into.as_object_mut(), changes.clone()) else {
        *into = changes;
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert_with(|| Value::Object(Map::new())), change);
        }
    }
}

fn wrong(changes: Value, says: &str) -> Wrong {
    Wrong { spec: spec(changes), says: says.to_owned() }
}

/// A wrong selector, with nothing else wrong.
fn selector(selector: &Value, says: &str) -> Wrong {
    wrong(json!({"nodes": {"names": null, "selector": selector}}), says)
}

fn requirement(operator: &str, values: &Value, says: &str) -> Wrong {
    selector(&json!({"matchExpressions": [{"key": "pool", "operator": operator, "values": values}]}), says)
}

fn wrong_plans_table() -> Vec<Wrong> {
    const DURATION: &str = "write a duration as numbers with h, m, s or ms, such as 15m or 1h30m";
    const PAUSE: &str = "write a duration as numbers with h, m, s or ms, such as 90s, or 0s for none";
    const ZERO: &str = "write a duration above zero, such as 15m";
    const NUMBER: &str = "write a number of nodes, such as 2, or a percentage up to 100%, such as 25%";
    const THEN: &str = "handOff.then says what happens to an empty node: write KeepCordoned or Uncordon";
    const EMPTY: &str = "an empty selector would take every node; if that is meant write matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]";
    const VALUES: &str = "write the values for operator In or NotIn";
    const NO_VALUES: &str = "write no values for operator Exists or DoesNotExist";
    let long = "x".repeat(400);
    let label = json!({"matchLabels": {"pool": "workers"}});
    let many = |count: usize| (0..count).map(|number| format!("node-{number}")).collect::<Vec<_>>();
    let labels: Map<String, Value> = many(65).into_iter().map(|name| (name, json!("x"))).collect();
    let requirements: Vec<Value> =
        many(65).iter().map(|name| json!({"key": name, "operator": "Exists"})).collect();

    let mut table = vec![
        wrong(json!({"nodes": {"names": null}}), "nodes: write either selector or names"),
        wrong(json!({"nodes": {"names": []}}), "nodes: write either selector or names"),
        wrong(json!({"nodes": {"selector": label}}), "nodes: write either selector or names, not both"),
        wrong(json!({"nodes": {"names": ["a", "a"]}}), "Duplicate value"),
        wrong(json!({"nodes": {"names": [""]}}), "should be at least 1 chars long"),
        wrong(json!({"nodes": {"names": [long]}}), "may not be more than 253"),
        wrong(json!({"nodes": {"names": many(5001)}}), "must have at most 5000 items"),
        wrong(json!({"nodes": null}), "Required value"),
    ];
    table.extend(impossible_names());
    table.extend(rules_of_pods());
    table.extend([
        // The rest of the selector.
        selector(&json!({}), EMPTY),
        selector(&json!({"matchLabels": {}, "matchExpressions": []}), EMPTY),
        selector(&json!({"matchLabels": labels}), "must have at most 64 items"),
        selector(&json!({"matchExpressions": requirements}), "must have at most 64 items"),
        selector(
            &json!({"matchExpressions": [{"key": "", "operator": "Exists"}]}),
            "should be at least 1 chars long",
        ),
        selector(
            &json!({"matchExpressions": [{"key": long, "operator": "Exists"}]}),
            "may not be more than 317",
        ),
        requirement("In", &json!([]), VALUES),
        requirement("NotIn", &Value::Null, VALUES),
        requirement("Exists", &json!(["x"]), NO_VALUES),
        requirement("DoesNotExist", &json!(["x"]), NO_VALUES),
        requirement("Is", &json!(["x"]), r#"supported values: "In", "NotIn", "Exists", "DoesNotExist""#),
        requirement("In", &json!(many(257)), "must have at most 256 items"),
        requirement("In", &json!([long]), "may not be more than 63"),
        wrong(json!({"handOff": null}), THEN),
        wrong(json!({"handOff": {"then": null, "until": "Drained"}}), THEN),
        wrong(json!({"handOff": {"then": "Reboot"}}), r#"supported values: "KeepCordoned", "Uncordon""#),
        wrong(
            json!({"handOff": {"until": "Monday"}}),
            r#"supported values: "Drained", "Released", "Rebooted", "Upgraded", "Deleted""#,
        ),
        wrong(json!({"onNodeTimeout": "Delete"}), r#"supported values: "Return", "Keep""#),
        wrong(json!({"pods": {"unmanaged": "Delete"}}), r#"supported values: "Refuse", "Evict""#),
        wrong(json!({"pods": {"emptyDir": "Delete"}}), r#"supported values: "Refuse", "Evict""#),
        wrong(json!({"pods": {"gracePeriodSeconds": 0}}), "should be greater than or equal to 1"),
        wrong(json!({"pods": {"protected": "Maybe"}}), r#"supported values: "Honor", "Ignore""#),
        wrong(json!({"pods": {"unbudgeted": "Two"}}), r#"supported values: "AllAtOnce", "OneAtATime""#),
        wrong(json!({"pods": {"unbudgetedWait": "0s"}}), ZERO),
        wrong(json!({"pods": {"unbudgetedWait": "soon"}}), DURATION),
        wrong(json!({"pods": {"rules": [{"action": "Delete"}]}}), r#""Evict", "Skip", "AwaitCompletion""#),
        wrong(json!({"pods": {"rules": [{"action": "Evict", "order": 1001}]}}), "less than or equal to 1000"),
        wrong(json!({"pods": {"rules": vec![json!({"action": "Evict"}); 51]}}), "must have at most 50 items"),
        wrong(json!({"maxFailedNodes": "1000%"}), "may not be more than 4"),
        wrong(json!({"pace": {"maxUnhealthyNodes": "1000%"}}), "may not be more than 4"),
        wrong(json!({"pace": {"maxConcurrentNodes": 0}}), "pace.maxConcurrentNodes: write at least 1"),
        wrong(json!({"pace": {"topologyKey": "not a label"}}), "write the key of a node label"),
        wrong(json!({"pace": {"maxConcurrentNodes": "0%"}}), "pace.maxConcurrentNodes: write at least 1"),
        wrong(json!({"pace": {"awaitReplacements": "no"}}), "must be of type boolean"),
        wrong(json!({"pace": {"soak": "a while"}}), PAUSE),
        wrong(json!({"pace": {"soak": "99999h99999h99999h99999h"}}), "may not be more than 20"),
        wrong(json!({"suspend": "yes"}), "must be of type boolean"),
    ]);
    table.extend(wrong_windows());
    for number in [json!(-1), json!(3_000_000_000_i64), json!("101%"), json!("5"), json!("%"), json!("-1%")] {
        table.push(wrong(json!({"maxFailedNodes": number}), NUMBER));
        table.push(wrong(json!({"pace": {"maxConcurrentNodes": number}}), NUMBER));
        table.push(wrong(json!({"pace": {"maxUnhealthyNodes": number}}), NUMBER));
    }
    for field in ["node", "handOff", "plan"] {
        for (text, says) in [
            ("15", DURATION),
            ("1d", DURATION),
            ("-5m", DURATION),
            ("1.5h", DURATION),
            ("", DURATION),
            ("1m1m1m1m1m", DURATION),
            ("0s", ZERO),
            ("0h0m", ZERO),
            ("99999h99999h99999h99999h", "may not be more than 20"),
        ] {
            table.push(wrong(json!({"timeouts": {field: text}}), says));
        }
    }
    table
}

/// Nodes and labels that cannot exist.
fn impossible_names() -> Vec<Wrong> {
    const NODE: &str = "a node's name has small letters, digits, dashes and dots, and begins and ends with a letter or digit, such as node-1.example";
    const KEY: &str = "a label's key is up to 63 letters, digits, dashes, underscores and dots, perhaps after a domain and a slash, such as pool or kubernetes.io/hostname";
    const VALUE: &str = "a label's value is up to 63 letters, digits, dashes, underscores and dots, and begins and ends with a letter or digit, such as workers";
    let mut table = Vec::new();
    for name in ["Node-1", "node_1", "-node", "node.", "a..b", "a b", "a/b", "*"] {
        assert!(!syntax::is_subdomain(name), "{name}");
        table.push(wrong(json!({"nodes": {"names": [name]}}), NODE));
    }
    let prefix = format!("{}/pool", ["a"; 128].join("."));
    let long = "x".repeat(64);
    for key in ["a b", "-a", "a/b/c", "/a", "a/", "A.example/a", "*", &prefix, &long] {
        assert!(!syntax::is_label_key(key), "{key}");
        table.push(selector(&json!({"matchLabels": {key: "x"}}), KEY));
        table.push(selector(&json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}), KEY));
    }
    for value in ["a b", "-a", "a.", "a/b", "*"] {
        assert!(!syntax::is_label_value(value), "{value}");
        table.push(selector(&json!({"matchLabels": {"pool": value}}), VALUE));
        table.push(requirement("In", &json!([value]), VALUE));
    }
    table.push(selector(&json!({"matchLabels": {"pool": long}}), "may not be more than 63"));
    table
}

/// Nodes and labels that may look odd and can exist.
fn odd_names() -> Vec<Value> {
    let (name, part) = (["a"; 127].join("."), "x".repeat(63));
    assert!(syntax::is_subdomain(&name) && syntax::is_label_key(&format!("{name}/{part}")));
    vec![
        spec(json!({"nodes": {"names": ["1", "ip-10-0-0-1.eu-west-1.compute.internal", name]}})),
        spec(json!({"nodes": {"names": null, "selector": {
            "matchLabels": {format!("{name}/{part}"): part, "a_B.c-1": "", "kubernetes.io/os": "v1.2_3-X"},
            "matchExpressions": [{"key": "node.kubernetes.io/X", "operator": "In", "values": ["", "1", part]}],
        }}})),
    ]
}

fn wrong_windows() -> Vec<Wrong> {
    const FIELDS: &str =
        "write five cron fields, minute hour day-of-month month day-of-week, such as 0 22 * * SAT";
    const ZONE: &str = "write an IANA time zone, such as Europe/Berlin or UTC";
    const SHORT: &str = "a window is shorter than timeouts.node, so no node would ever be started: write a longer window, a shorter timeouts.node, or onWindowEnd: Finish";
    const ENDS: &str = "an exclusion ends after its start: write a later end";
    let window = |changes: Value| {
        let mut window = json!({"schedule": "0 22 * * SAT", "duration": "6h"});
        merge(&mut window, changes);
        json!({"windows": [window]})
    };
    let exclusion = |start: &str, end: &str| json!({"exclusions": [{"start": start, "end": end}]});
    let mut table = vec![
        wrong(window(json!({"schedule": null})), "Required value"),
        wrong(window(json!({"duration": null})), "Required value"),
        wrong(window(json!({"schedule": "0 ".repeat(60)})), "may not be more than 100"),
        wrong(window(json!({"duration": "0s"})), "write a duration above zero, such as 15m"),
        wrong(window(json!({"duration": "10m"})), SHORT),
        wrong(
            json!({"timeouts": {"node": "2h"}, "windows": [{"schedule": "0 22 * * *", "duration": "1h"}]}),
            SHORT,
        ),
        wrong(json!({"onWindowEnd": "Stop"}), r#"supported values: "Return", "Finish""#),
        wrong(json!({"repeat": "Daily"}), r#"supported values: "Once", "EachWindow""#),
        wrong(
            json!({"repeat": "EachWindow"}),
            "repeat: EachWindow starts a run whenever a window opens: write windows",
        ),
        wrong(each_window(json!({"handOff": {"then": "KeepCordoned"}})), "write handOff.then: Uncordon"),
        wrong(each_window(json!({"onNodeTimeout": "Keep"})), "write onNodeTimeout: Return"),
        wrong(exclusion("2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"), ENDS),
        wrong(exclusion("2027-01-01T00:00:00Z", "2026-12-31T00:00:00Z"), ENDS),
        wrong(exclusion("2027-01-01T00:00:00Z", "9999-12-31T23:59:59Z"), "between the years 1000 and 9999"),
        wrong(exclusion("tomorrow", "2026-12-31T00:00:00Z"), "date-time"),
        wrong(
            json!({"windows": vec![json!({"schedule": "0 22 * * *", "duration": "1h"}); 21]}),
            "must have at most 20 items",
        ),
        wrong(
            json!({"exclusions": vec![json!({"start": "2027-01-01T00:00:00Z", "end": "2027-01-02T00:00:00Z"}); 101]}),
            "must have at most 100 items",
        ),
    ];
    for schedule in ["", "@daily", "0 22 * *", "0 22 * * SAT *", "0 22 * * 5#2", "TZ=UTC 22 * * *"] {
        table.push(wrong(window(json!({"schedule": schedule})), FIELDS));
    }
    for zone in ["", "Europe Berlin", "../etc", "+01:00", "Europe/"] {
        table.push(wrong(window(json!({"timeZone": zone})), ZONE));
    }
    table
}

fn each_window(changes: Value) -> Value {
    let windows = json!([{"schedule": "0 22 * * SAT", "duration": "6h"}]);
    let mut spec = json!({"repeat": "EachWindow", "windows": windows, "handOff": {"then": "Uncordon"}});
    merge(&mut spec, changes);
    spec
}

/// Selectors in pods.rules.
fn rules_of_pods() -> Vec<Wrong> {
    let mut table = Vec::new();
    for of in ["namespaceSelector", "podSelector"] {
        let mut rule = |selector: Value, says: &str| {
            table.push(wrong(json!({"pods": {"rules": [{"action": "Skip", of: selector}]}}), says));
        };
        let nine = (0..9).map(|number| (format!("key-{number}"), json!("x")));
        rule(json!({"matchLabels": nine.clone().collect::<Map<_, _>>()}), "must have at most 8 items");
        rule(json!({"matchLabels": {"app": "-x"}}), "a label's value is up to 63 letters");
        rule(json!({"matchLabels": {"-app": "x"}}), "a label's key is up to 63 letters");
        let keys: Vec<Value> = nine.map(|(key, _)| json!({"key": key, "operator": "Exists"})).collect();
        rule(json!({"matchExpressions": keys}), "must have at most 8 items");
        let mut expression = |key: &str, operator: &str, values: Value, says: &str| {
            rule(json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}), says);
        };
        expression("-app", "Exists", json!([]), "a label's key is up to 63 letters");
        expression("app", "Is", json!(["x"]), r#""In", "NotIn", "Exists", "DoesNotExist""#);
        expression("app", "In", json!([]), "write the values for operator In or NotIn");
        expression("app", "Exists", json!(["x"]), "write no values for operator Exists or DoesNotExist");
        expression("app", "In", json!(vec!["x"; 17]), "must have at most 16 items");
        expression("app", "In", json!(["-x"]), "a label's value is up to 63 letters");
    }
    table
}

/// The plan as the API server is asked for it, whatever is in it.
fn untyped(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &ApiResource::erase::<DrainPlan>(&()))
}

async fn create(
    api: &Api<DynamicObject>,
    name: &str,
    spec: &Value,
) -> Result<Result<DynamicObject, Box<Status>>> {
    let plan: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "drainplan.dev/v1alpha1",
        "kind": "DrainPlan",
        "metadata": {"name": name},
        "spec": spec,
    }))?;
    match api.create(&PostParams::default(), &plan).await {
        Ok(created) => Ok(Ok(created)),
        Err(kube::Error::Api(status)) => Ok(Err(status)),
        Err(error) => bail!("the server could not be asked about {spec}: {error}"),
    }
}

async fn wrong_plans(bed: Bed) -> Result<()> {
    let api = untyped(bed.client());
    let mut faults = Vec::new();
    let mut said = BTreeSet::new();
    let mut fields = BTreeSet::new();
    for wrong in wrong_plans_table() {
        let Err(status) = create(&api, &bed.named("wrong"), &wrong.spec).await? else {
            faults.push(format!("accepted: {}", wrong.spec));
            api.delete(&bed.named("wrong"), &DeleteParams::default()).await?;
            continue;
        };
        if status.code != 422 || !status.message.contains(&wrong.says) {
            let line = format!("{} instead of \"{}\" for {}", status.message, wrong.says, wrong.spec);
            faults.push(format!("{}: {line}", status.code));
        }
        for cause in status.details.iter().flat_map(|details| &details.causes) {
            said.insert(cause.message.clone());
            fields.insert(without_numbers(&cause.field));
        }
    }

    for spec in odd_names() {
        match create(&api, &bed.named("odd"), &spec).await? {
            Ok(_) => drop(api.delete(&bed.named("odd"), &DeleteParams::default()).await?),
            Err(status) => faults.push(format!("refused: {spec}: {}", status.message)),
        }
    }

    // No rule of the schema without a plan that breaks it: each sentence was said, each bounded field was refused.
    let schema = spec_schema()?;
    let mut rules = Rules::default();
    rules.collect("spec", &schema);
    for sentence in &rules.sentences {
        if !said.iter().any(|message| message.contains(sentence)) {
            faults.push(format!("no plan was refused with: {sentence}"));
        }
    }
    for field in rules.bounded.difference(&fields) {
        faults.push(format!("no plan was refused for {field}"));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    ensure!(rules.sentences.len() >= 8, "only {} sentences found in the schema", rules.sentences.len());

    a_plan_that_has_ended(&bed, &api).await
}

/// The spec of an ended plan is frozen; the rest of it is not.
async fn a_plan_that_has_ended(bed: &Bed, api: &Api<DynamicObject>) -> Result<()> {
    const FROZEN: &str = "the plan has ended and its spec is frozen: delete it and create a new one";
    let nodes = bed.nodes(["a"], 10).await?;
    let plan = bed
        .plan("ended", json!({"nodes": {"names": nodes}, "suspend": true, "handOff": {"then": "Uncordon"}}))
        .await?;
    plan.change(json!({"suspend": false})).await.context("a plan that has not ended was changed")?;
    plan.ends(PlanPhase::Completed, Duration::from_mins(1)).await?;
    for change in
        [json!({"suspend": true}), json!({"timeouts": {"node": "2m"}}), json!({"nodes": {"names": ["x"]}})]
    {
        match plan.change(change.clone()).await {
            Err(kube::Error::Api(status)) if status.code == 422 && status.message.contains(FROZEN) => {}
            Err(error) => bail!("{error} instead of \"{FROZEN}\" for the change {change}"),
            Ok(_) => bail!("the ended plan took the change {change}"),
        }
    }
    let label = json!({"metadata": {"labels": {"team": "platform"}}});
    let labelled = api.patch(&plan.name, &PatchParams::default(), &Patch::Merge(label)).await;
    labelled.context("a label on an ended plan")?;
    Ok(())
}

fn spec_schema() -> Result<Value> {
    let crd = serde_json::to_value(drainplan::api::crd())?;
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
        .cloned()
        .context("no schema of the spec")
}

/// What a schema refuses.
#[derive(Default)]
struct Rules {
    /// The sentences of its CEL rules.
    sentences: BTreeSet<String>,
    /// The fields with limits or a fixed choice of values.
    bounded: BTreeSet<String>,
}

impl Rules {
    fn collect(&mut self, path: &str, schema: &Value) {
        const LIMITS: [&str; 9] = [
            "enum",
            "minimum",
            "maximum",
            "maxLength",
            "minLength",
            "maxItems",
            "minItems",
            "maxProperties",
            "pattern",
        ];
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            self.sentences.extend(rule.get("message").and_then(Value::as_str).map(ToOwned::to_owned));
        }
        if LIMITS.iter().any(|limit| schema.get(limit).is_some()) {
            self.bounded.insert(path.to_owned());
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.collect(&format!("{path}.{name}"), property);
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(inner) {
                self.collect(&format!("{path}[]"), inner);
            }
        }
    }
}

/// `spec.nodes.names[3]` is about any of the names.
fn without_numbers(field: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for letter in field.chars() {
        inside = (inside || letter == '[') && letter != ']';
        if !inside || letter == '[' {
            text.push(letter);
        }
    }
    text
}
