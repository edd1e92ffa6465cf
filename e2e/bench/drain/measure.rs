//! What a drain has cost: everything from the server's audit log, by the user agent of who drained.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::Value;

use super::contender::Contender;
use super::harness::{Audit, Record, Request, node_of, uid};
use super::workload::{SPACE, Workload};

/// One drain.
pub struct Measured {
    /// From the request for it, to the last answer that it took; in seconds.
    pub wall: f64,
    pub accepted: usize,
    pub refused: usize,
    /// Evictions accepted by the pods that were on the targets.
    pub per_pod: f64,
    /// By verb.
    pub requests: BTreeMap<String, usize>,
    /// From a budget's room to the eviction that takes it.
    pub reactions: Vec<Reaction>,
}

/// A budget had room, and an eviction took it.
pub struct Reaction {
    /// From the server's answer to whoever wrote the room until it received the eviction, in milliseconds.
    pub took: f64,
    /// The same from when the server received that write: what it took to write it is in it.
    pub since_asked: f64,
    pub budget: String,
    /// Since the drain was asked for, in seconds.
    pub at: f64,
}

/// A pod that was on a target at some time.
struct Place {
    name: String,
    app: String,
    node: String,
    created: Timestamp,
}

/// Reads it off. `began` is when the drain was asked for, `pods` everything that happened to the pods since before.
pub fn measure(
    contender: Contender,
    workload: &Workload,
    audit: &Audit,
    began: Timestamp,
    pods: &Record<Pod>,
) -> Result<Measured> {
    let all = audit.requests(|request| request.answered >= began)?;
    let ours: Vec<&Request> =
        all.iter().filter(|request| request.agent.starts_with(contender.agent())).collect();
    let (start, end) = span(contender, &all, &ours)?;
    let within = |request: &&&Request| request.received >= start && request.received <= end;
    let evictions: Vec<&Request> = ours.iter().filter(|request| request.is_eviction()).copied().collect();
    let accepted = evictions.iter().filter(|request| request.code == 201).count();
    ensure_empty(workload, pods)?;
    let mut requests = BTreeMap::new();
    for request in ours.iter().filter(within) {
        *requests.entry(request.verb.clone()).or_default() += 1;
    }
    Ok(Measured {
        wall: end.duration_since(start).as_secs_f64(),
        accepted,
        refused: evictions.len() - accepted,
        per_pod: ratio(accepted, usize::try_from(workload.pods())?),
        requests,
        reactions: reactions(workload, &all, &evictions, pods, start),
    })
}

/// kubectl: from its first request to the answer of its last one. A plan: from its creation to the write of the status
/// that ends it, after which the status is frozen.
fn span(contender: Contender, all: &[Request], ours: &[&Request]) -> Result<(Timestamp, Timestamp)> {
    match contender {
        Contender::KubectlEach | Contender::KubectlAll => {
            let first = ours.iter().map(|request| request.received).min();
            let last = ours.iter().map(|request| request.answered).max();
            Ok((first.context("kubectl asked for nothing")?, last.context("kubectl asked for nothing")?))
        }
        Contender::PlanEach | Contender::PlanAll => {
            let of_plans = |request: &&Request| request.resource == "drainplans";
            let created =
                all.iter().filter(of_plans).find(|request| request.verb == "create" && request.code == 201);
            let written = ours.iter().copied().filter(of_plans);
            let ended =
                written.filter(|it| it.subresource == "status" && it.code == 200).map(|it| it.answered).max();
            let created = created.context("the plan's creation is not in the audit log")?;
            Ok((created.received, ended.context("the plan's end is not in the audit log")?))
        }
    }
}

/// No pod is left on a target.
fn ensure_empty(workload: &Workload, pods: &Record<Pod>) -> Result<()> {
    let targets = workload.target_names();
    let left = pods.now.values().filter(|pod| targets.iter().any(|target| target == node_of(pod)));
    let left: Vec<String> = left.map(|pod| format!("{} on {}", pod.name_any(), node_of(pod))).collect();
    ensure!(left.is_empty(), "it says that it is done, and these pods are left: {left:?}");
    Ok(())
}

/// For every write of a status that gives a budget room while a pod of it waits on a node that is being drained: until an
/// eviction of one of its pods was received.
fn reactions(
    workload: &Workload,
    all: &[Request],
    evictions: &[&Request],
    pods: &Record<Pod>,
    start: Timestamp,
) -> Vec<Reaction> {
    let places = places(pods);
    let cordoned = cordons(workload, all);
    let gone: HashMap<&str, Timestamp> = evictions
        .iter()
        .filter(|eviction| eviction.code == 201)
        .filter_map(|eviction| Some((pod_of(eviction, &places)?, eviction.received)))
        .collect();
    let mut took = Vec::new();
    // Of a budget whose room was not taken yet a second write says nothing new.
    let mut taken: HashMap<&str, Timestamp> = HashMap::new();
    let mut written: Vec<&Request> =
        all.iter().filter(|it| it.namespace == SPACE && it.room_written() >= Some(1)).collect();
    written.sort_by_key(|write| write.received);
    for write in written {
        let at = write.received;
        // Times of pods are whole seconds.
        let there = |place: &Place| place.created + SignedDuration::from_secs(2) < at;
        let waits = places.iter().any(|(pod, place)| {
            place.app == write.name
                && there(place)
                && cordoned.get(place.node.as_str()).is_some_and(|since| *since < at)
                && gone.get(pod.as_str()).is_some_and(|gone| *gone > at)
        });
        // An eviction that was on its way takes the room that the write gives.
        let on_its_way = evictions
            .iter()
            .filter(|eviction| eviction.code == 201 && eviction.received < at && eviction.answered > at)
            .filter(|eviction| is_of(eviction, &places, &write.name))
            .count();
        let room = write.room_written().and_then(|room| usize::try_from(room).ok()).unwrap_or_default();
        if !waits || room <= on_its_way || taken.get(write.name.as_str()).is_some_and(|until| *until > at) {
            continue;
        }
        let next = evictions
            .iter()
            .filter(|eviction| eviction.received > at && is_of(eviction, &places, &write.name))
            .map(|eviction| eviction.received)
            .min();
        if let Some(next) = next {
            taken.insert(&write.name, next);
            let millis = |since: Timestamp| next.duration_since(since).as_secs_f64() * 1000.0;
            took.push(Reaction {
                // A watch may be quicker than the answer.
                took: millis(write.answered).max(0.0),
                since_asked: millis(at),
                budget: write.name.clone(),
                at: at.duration_since(start).as_secs_f64(),
            });
        }
    }
    took
}

/// Every pod that was seen bound, by uid.
fn places(pods: &Record<Pod>) -> HashMap<String, Place> {
    let bound = pods.events.iter().map(|seen| &seen.object).filter(|pod| !node_of(pod).is_empty());
    bound
        .filter_map(|pod| {
            let place = Place {
                name: pod.name_any(),
                app: pod.labels().get("app")?.clone(),
                node: node_of(pod).to_owned(),
                created: pod.creation_timestamp()?.0,
            };
            Some((uid(&**pod), place))
        })
        .collect()
}

/// The pod that an eviction is about: by its uid, or by its name and the time.
fn pod_of<'a>(eviction: &Request, places: &'a HashMap<String, Place>) -> Option<&'a str> {
    if let Some(uid) = eviction.precondition() {
        return places.get_key_value(uid).map(|(uid, _)| uid.as_str());
    }
    let named =
        places.iter().filter(|(_, place)| place.name == eviction.name && place.created <= eviction.received);
    named.max_by_key(|(_, place)| place.created).map(|(uid, _)| uid.as_str())
}

fn is_of(eviction: &Request, places: &HashMap<String, Place>, app: &str) -> bool {
    pod_of(eviction, places).and_then(|pod| places.get(pod)).is_some_and(|place| place.app == app)
}

/// Since when each target is cordoned.
fn cordons<'a>(workload: &Workload, all: &'a [Request]) -> HashMap<&'a str, Timestamp> {
    let targets = workload.target_names();
    let writes = all.iter().filter(|request| {
        request.resource == "nodes"
            && request.code == 200
            && targets.contains(&request.name)
            && cordons_node(request)
    });
    let mut since: HashMap<&str, Timestamp> = HashMap::new();
    for write in writes {
        let first = since.entry(&write.name).or_insert(write.answered);
        *first = write.answered.min(*first);
    }
    since
}

/// A merge patch, or a JSON patch.
fn cordons_node(request: &Request) -> bool {
    let merged = request.body.pointer("/spec/unschedulable").and_then(Value::as_bool);
    let operations = request.body.as_array().into_iter().flatten();
    let sets = |operation: &Value| operation["path"] == "/spec/unschedulable" && operation["value"] == true;
    merged == Some(true) || operations.into_iter().any(sets)
}

/// Counts are small.
#[allow(clippy::cast_precision_loss)]
pub fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}
