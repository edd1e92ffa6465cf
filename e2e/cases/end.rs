//! Runs a plan over a case's nodes to its end, and looks at everything that happens meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context as _;
use drainplan::api::{DrainPlanStatus, PlanPhase};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Map, Value, json};

use crate::ended::{self, Ended, Said};
use crate::expect::Case;
use crate::harness::{PlanRun, Recorder, Request, Sight, cordoned, told, uid};
use crate::steps;
use crate::world::{World, node_of};

/// How long a plan may take: 30 s for each node and once more for those not started, or what keeps one from completing, and
/// room to spare.
const ENDS: Duration = Duration::from_mins(5);
/// How long it may hold nodes after its end.
const LETS_GO: Duration = Duration::from_secs(30);

/// The spec: what the README of the cases says, with what the case says in its place. A plan that is to complete has more
/// time: the disruption controller may count a pod that was reborn under its name at once as evicted for two minutes.
fn spec(nodes: &[String], plan: &Map<String, Value>, expected: Option<PlanPhase>) -> Value {
    let timeout = if expected == Some(PlanPhase::Completed) { "3m" } else { "30s" };
    let mut spec = json!({
        "nodes": {"names": nodes},
        "timeouts": {"node": timeout},
        "handOff": {"until": "Drained", "then": "Uncordon"},
    });
    merge(&mut spec, &Value::Object(plan.clone()));
    spec
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Creates the plan, does what is to be done meanwhile, awaits its end, and tells how it was.
pub async fn play(
    world: &mut World<'_>,
    case: &Case,
    plan: &Map<String, Value>,
    during: &[String],
    expected: Option<PlanPhase>,
) -> anyhow::Result<Ended> {
    let client = world.plane.testbed().client();
    let pods = Recorder::<Pod>::start(Api::all(client.clone()), None).await?;
    let nodes = Recorder::<Node>::start(Api::all(client.clone()), None).await?;
    let on_node = |pod: &Pod| node_of(pod).is_some_and(|node| case.nodes.contains(node));
    let there: Vec<Pod> = pods
        .with(|record| record.now.values().filter(|pod| on_node(pod)).map(|pod| Pod::clone(pod)).collect());

    let began = Timestamp::now();
    let run =
        PlanRun::create(client.clone(), &case.id.to_lowercase(), spec(&case.nodes, plan, expected)).await?;
    if !during.is_empty() {
        let judged = |status: &DrainPlanStatus| {
            if status.nodes.is_empty() { Sight::NotYet(told(status)) } else { Sight::Found(()) }
        };
        run.until("has judged the nodes", ENDS, judged).await.with_context(|| log(world))?;
        steps::run(world, during).await.context("while the plan runs")?;
    }
    let ends = |status: &DrainPlanStatus| match &status.finished_at {
        Some(_) => Sight::Found(status.clone()),
        None => Sight::NotYet(told(status)),
    };
    let status = run.until("ends", ENDS, ends).await.with_context(|| log(world))?;
    run.holds_nothing(LETS_GO).await.with_context(|| log(world))?;

    let now = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?;
    let uids: BTreeSet<String> = now.items.iter().map(uid).collect();
    let namespaces: BTreeSet<String> = there.iter().filter_map(ResourceExt::namespace).collect();
    let ours = world.plane.audit().requests(|request| request.received >= began && request.is_ours())?;
    let mut ended_nodes = BTreeMap::new();
    for name in &case.nodes {
        let node = Api::<Node>::all(client.clone()).get_opt(name).await?;
        let phase = status.nodes.iter().find(|node| node.name == *name).map(|node| node.phase);
        let of_node = there.iter().filter(|pod| node_of(pod) == Some(name));
        let touched = touched(&nodes, name, &of_node.collect::<Vec<_>>(), &ours);
        let cordoned = node.as_ref().map(cordoned);
        ended_nodes.insert(name.clone(), ended::Node { phase, cordoned, touched });
    }
    let names: BTreeSet<String> = pods.with(|record| {
        let seen = record.events.iter().map(|seen| &seen.object);
        let seen = seen.filter(|pod| pod.namespace().is_some_and(|it| namespaces.contains(&it)));
        seen.map(|pod| pod.name_any()).collect()
    });
    let allowed = plan.get("pods").and_then(|pods| pods.get("gracePeriodSeconds"));
    let mut broken = improper(&ours, allowed, |uid| {
        pods.with(|record| {
            let mut seen = record.events.iter().map(|seen| &seen.object);
            seen.any(|pod| pod.metadata.uid.as_deref() == Some(uid) && on_node(pod))
        })
    });
    broken.extend(unseen(&status, &nodes, &ours));
    let at_rest = |pod: &Pod| ended::Pod { name: pod.name_any(), gone: !uids.contains(&uid(pod)) };
    Ok(Ended {
        plan: status.phase,
        nodes: ended_nodes,
        pods: there.iter().map(at_rest).collect(),
        said: said(&run.statuses()),
        names: names.into_iter().collect(),
        evictions: ours.iter().filter(|request| request.is_eviction() && request.code == 201).count(),
        broken,
        told: told(&status),
    })
}

/// What the statuses have said about waiting pods, each sentence once.
fn said(statuses: &[DrainPlanStatus]) -> Vec<Said> {
    let waiting = statuses.iter().flat_map(|status| &status.nodes).flat_map(|node| &node.waiting);
    let all: BTreeSet<(&str, &str, &str)> =
        waiting.map(|pod| (pod.pod.as_str(), pod.reason.as_str(), pod.message.as_str())).collect();
    let owned = |(pod, reason, message): (&str, &str, &str)| Said {
        pod: pod.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    all.into_iter().map(owned).collect()
}

/// What no eviction may be, in any case: without the pod's uid, a second one of the same pod, one of a pod elsewhere, or
/// with another grace period than the plan's.
fn improper(ours: &[Request], grace: Option<&Value>, on_nodes: impl Fn(&str) -> bool) -> Vec<String> {
    let mut accepted = BTreeSet::new();
    let mut wrong = Vec::new();
    for request in ours.iter().filter(|request| request.is_eviction()) {
        let uid = request.precondition();
        let asked = request.body.pointer("/deleteOptions/gracePeriodSeconds").filter(|it| !it.is_null());
        let flaw = match uid {
            None => Some("without a uid"),
            Some(uid) if !on_nodes(uid) => Some("of a pod on no node of the plan"),
            Some(uid) if request.code == 201 && !accepted.insert(uid) => Some("accepted a second time"),
            Some(_) if asked != grace => Some("with another grace period"),
            Some(_) => None,
        };
        wrong.extend(flaw.map(|flaw| format!("an eviction {flaw}: {}", request.line())));
    }
    wrong
}

/// What was started must have been seen: nodes that neither the watch nor the audit log shows as touched would be no
/// proof that others were not.
fn unseen(status: &DrainPlanStatus, watched: &Recorder<Node>, ours: &[Request]) -> Vec<String> {
    let started = status.nodes.iter().filter(|node| node.started_at.is_some());
    let unseen = started.filter(|node| {
        let on = watched.with(|record| {
            let mut of_node = record.events.iter().map(|seen| &seen.object);
            of_node.any(|seen| seen.name_any() == node.name && cordoned(seen))
        });
        !on || !ours.iter().any(|request| writes(request, &node.name))
    });
    unseen.map(|node| format!("{} was started, and was not seen being cordoned", node.name)).collect()
}

/// Everything that was done to a node: it became cordoned, it was written to, a pod of it was asked to go. The watch
/// shows the first of these whoever did it, the audit log what the controller asked for, also where it was refused.
fn touched(watched: &Recorder<Node>, name: &str, pods: &[&Pod], ours: &[Request]) -> Vec<String> {
    let mut all: Vec<String> = watched.with(|record| {
        let of_node = record.events.iter().filter(|seen| seen.object.name_any() == name);
        let states: Vec<bool> = of_node.map(|seen| cordoned(&seen.object)).collect();
        let became = states.windows(2).any(|pair| matches!(pair, [false, true]));
        became.then(|| "it was cordoned".to_owned()).into_iter().collect()
    });
    let uids: BTreeSet<String> = pods.iter().map(|pod| uid(*pod)).collect();
    let evicts = |request: &Request| {
        request.is_eviction() && request.precondition().is_some_and(|uid| uids.contains(uid))
    };
    let done = ours.iter().filter(|request| writes(request, name) || evicts(request));
    all.extend(done.map(Request::line));
    all
}

/// Whether a request changes the node.
fn writes(request: &Request, node: &str) -> bool {
    let changes = ["create", "update", "patch", "delete"].contains(&request.verb.as_str());
    changes && request.resource == "nodes" && request.name == node
}

fn log(world: &World<'_>) -> String {
    format!("the end of the controller's log:\n{}", world.plane.controller().log_tail(30))
}
