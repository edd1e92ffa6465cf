//! Which nodes are started: one domain after the other, no more cordons than allowed, none while nothing may be evicted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, names};
use drainplan::cluster::{Cluster, Node, Pod, Text};
use drainplan::plan::{Claim, Decisions, Plans};
use drainplan::simulate::{Act, CallKind, Fact, World};
use jiff::{SignedDuration, Timestamp};

use super::{Verdict, hold};

const DOMAIN: &str = "1 nodes in progress have one value of pace.topologyKey";
const CORDONS: &str = "1 no more nodes are cordoned than all plans together may";
const RIGHT: &str = "no node is started while nothing may be evicted";
/// An answer about rights is believed for ten seconds, and may have been under way for five.
const KNOWN: SignedDuration = SignedDuration::from_secs(16);

pub struct Pace {
    /// How many nodes may be cordoned.
    most: Option<usize>,
    /// Nodes that are cordoned for plans, since when.
    cordoned: BTreeMap<Text, Timestamp>,
    /// Since when nothing may be evicted.
    denied: Option<Timestamp>,
    /// Whether the answer about that may have been lost.
    unsure: bool,
}

impl Pace {
    pub fn new(most: Option<u32>) -> Self {
        let most = most.and_then(|most| usize::try_from(most).ok());
        Self { most, cordoned: BTreeMap::new(), denied: None, unsure: false }
    }

    /// Follows what is cordoned.
    pub fn follow(&mut self, world: &World) {
        if self.most.is_none() {
            return;
        }
        let in_progress: BTreeSet<&str> = world.store().plans().flat_map(|plan| drained(plan)).collect();
        let counts = |node: &Node| {
            let held = Claim::on(node).is_some_and(|claim| lives(world, claim.uid));
            let kept = node.unschedulable && node.annotations.contains_key(names::KEPT_CORDONED);
            held || kept || in_progress.contains(&*node.name)
        };
        let nodes = world.store().cluster().nodes().filter(|node| counts(node));
        self.cordoned = nodes
            .map(|node| {
                let since = self.cordoned.get(&node.name).copied().unwrap_or(world.now());
                (node.name.clone(), since)
            })
            .collect();
    }

    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::Acted(Act::RightTaken) => self.denied = self.denied.or(Some(world.now())),
            Fact::Acted(Act::RightGiven | Act::FaultsStop) => self.denied = None,
            Fact::Acted(Act::Call(CallKind::Right, _) | Act::Partition(..)) => self.unsure = true,
            Fact::Decided { process, moment, decisions } => {
                let Some(decider) = world.processes().get(*process) else { return Ok(()) };
                let plans = decider.agenda().plans().view();
                let started = started(&plans, decisions);
                let cluster = decider.agenda().cluster();
                let denied = |pod: &Pod| cluster.rights.denied(&pod.namespace);
                let useless = started.iter().find(|(node, plan)| has_pods(cluster, plan, node, denied));
                hold(RIGHT, useless.is_none(), || format!("{useless:?} is started, and that is known"))?;
                let all = cluster.nodes().count();
                let limit = self.most.filter(|most| *most < all && !started.is_empty());
                if let Some(limit) = limit {
                    let known = decider.behind_since(moment.wall);
                    let before = self.cordoned.iter().filter(|(_, since)| **since < known);
                    let mut cordoned: BTreeSet<&str> = before.map(|(name, _)| &**name).collect();
                    cordoned.extend(started.iter().map(|(node, _)| node.as_str()));
                    hold(CORDONS, cordoned.len() <= limit, || {
                        format!("{started:?} are started, and {cordoned:?} are cordoned then, of {limit}")
                    })?;
                }
            }
            Fact::StatusWritten { process, before, plan } => {
                let Some(status) = &plan.status else { return Ok(()) };
                let new = new(before.as_deref(), status);
                if new.is_empty() {
                    return Ok(());
                }
                one_domain(world, plan, &new)?;
                let since = self.denied.map(|at| at.max(world.led_since(*process)));
                let long = since.is_some_and(|since| world.now().duration_since(since) > KNOWN);
                let cluster = world.store().cluster();
                let useless = new.iter().find(|node| has_pods(cluster, plan, node, |_| true));
                hold(RIGHT, self.unsure || !long || useless.is_none(), || {
                    format!("{useless:?} is started for {:?}", plan.metadata.name)
                })?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn lives(world: &World, uid: &str) -> bool {
    world.store().plans().any(|plan| plan.metadata.uid.as_deref() == Some(uid))
}

/// The nodes that a plan's status calls Draining.
fn drained(plan: &DrainPlan) -> impl Iterator<Item = &str> {
    plan.status.iter().flat_map(in_progress)
}

fn in_progress(status: &DrainPlanStatus) -> impl Iterator<Item = &str> {
    let busy = |phase| matches!(phase, NodePhase::Draining | NodePhase::HandedOff);
    status.nodes.iter().filter(move |node| busy(node.phase)).map(|node| node.name.as_str())
}

/// The nodes in progress that were not.
fn new<'s>(before: Option<&DrainPlanStatus>, status: &'s DrainPlanStatus) -> Vec<&'s str> {
    let old: BTreeSet<&str> = before.into_iter().flat_map(in_progress).collect();
    in_progress(status).filter(|name| !old.contains(name)).collect()
}

/// The nodes that are started by a decision, with their plans.
fn started(plans: &Plans, decisions: &Decisions) -> Vec<(String, Arc<DrainPlan>)> {
    let mut started = Vec::new();
    for decision in &decisions.plans {
        let known = plans.readable.iter().find(|plan| plan.metadata.uid.as_ref() == Some(&decision.uid));
        if let (Some(status), Some(plan)) = (&decision.status, known) {
            let new = new(plan.status.as_ref(), status).into_iter();
            started.extend(new.map(|node| (node.to_owned(), Arc::clone(plan))));
        }
    }
    started
}

/// When nodes are started, all that are in progress are of one domain.
fn one_domain(world: &World, plan: &DrainPlan, new: &[&str]) -> Verdict {
    let Some(key) = plan.spec.topology_key() else { return Ok(()) };
    let node = |name: &str| world.store().cluster().node(name);
    let domain = |name| node(name).map(|node| node.labels.get(key).map_or("", AsRef::as_ref));
    let domains: BTreeSet<&str> = drained(plan).filter_map(domain).collect();
    hold(DOMAIN, domains.len() <= 1, || {
        format!("{new:?} are started for {:?}, and nodes of {domains:?} are in progress", plan.metadata.name)
    })
}

/// Whether such pods of a Deployment are on the node; every plan without rules evicts them.
fn has_pods(cluster: &Cluster, plan: &DrainPlan, node: &str, such: impl Fn(&Pod) -> bool) -> bool {
    let of = |pod: &Pod| {
        let kind = pod.owner.as_ref().map_or("", |owner| &*owner.kind);
        kind == "ReplicaSet" && !pod.terminating() && !pod.finished() && pod.empty_dirs.is_empty()
    };
    plan.spec.pod_policy().rules.is_empty() && cluster.pods_on(node).any(|pod| of(pod) && such(pod))
}
