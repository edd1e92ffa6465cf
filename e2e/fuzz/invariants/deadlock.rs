//! Nodes that wait on each other do not do so for long: the younger gives way.
//!
//! Two nodes wait on each other when on both nothing moves, each has a pod whose budget has no room because a replacement has
//! no node, and each such replacement might be on the other node, were that given back. Only budgets are looked at of
//! which nothing else can be said: of one pod at a time, over one Deployment that has all its pods.

use std::collections::BTreeMap;

use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, names};
use drainplan::budget;
use drainplan::budget::Cause;
use drainplan::cluster::{Amount, Node, Pdb, Pod, Text};
use drainplan::plan::Decisions;
use drainplan::simulate::{Act, Fact, World};
use jiff::{SignedDuration, Timestamp};

use super::evictions::holder;
use super::seen::Seen;
use super::{Verdict, hold};

const GIVES_WAY: &str = "7 of two nodes that wait on each other the younger gives way";
/// So long a replacement must wait before a node gives way for it, and what else it may take to be known.
const LONG: SignedDuration = SignedDuration::from_secs(5);

#[derive(Default)]
pub struct Deadlocks {
    /// Since when two nodes wait on each other.
    since: BTreeMap<(Text, Text), Timestamp>,
    /// When the youngest pod without a node was created.
    newest: Option<Timestamp>,
    /// When each process has begun to act, and when it decided first after that: it reads the plans before.
    decides: BTreeMap<usize, (Timestamp, Timestamp)>,
    /// Without the right to evict other things are said first.
    unsure: bool,
}

impl Deadlocks {
    /// Follows which nodes wait on each other.
    pub fn follow(&mut self, world: &World, seen: &mut Seen) {
        let unbound = |pod: &&std::sync::Arc<Pod>| pod.unschedulable.is_some() && pod.node.is_none();
        self.newest = world.store().pods().filter(unbound).filter_map(|pod| pod.created).max();
        let waiting: Vec<(&Node, Vec<&Pod>)> = if self.newest.is_some() { stuck(world) } else { Vec::new() };
        let mut since = BTreeMap::new();
        for (number, (one, lacking)) in waiting.iter().enumerate() {
            for (other, others) in waiting.iter().skip(number + 1) {
                if helps(other, lacking) && helps(one, others) {
                    let pair = (one.name.clone(), other.name.clone());
                    let known = self.since.get(&pair).copied();
                    if known.is_none() {
                        seen.one("two nodes wait on each other".to_owned());
                    }
                    since.insert(pair, known.unwrap_or(world.now()));
                }
            }
        }
        self.since = since;
    }

    pub fn judge(&mut self, world: &World, fact: &Fact) -> Verdict {
        match fact {
            Fact::Acted(Act::RightTaken) => {
                self.unsure = true;
                Ok(())
            }
            Fact::Decided { process, moment, decisions } if !self.unsure => {
                let Some(decider) = world.processes().get(*process) else { return Ok(()) };
                let known = decider.behind_since(moment.wall);
                let yields = world.store().plans().filter_map(|plan| plan.status.as_ref());
                let last = yields.flat_map(|status| &status.yielded).map(|node| node.at.0).max();
                let led = world.led_since(*process);
                let first = self.decides.entry(*process).or_insert((led, moment.wall));
                if first.0 != led {
                    *first = (led, moment.wall);
                }
                let changed = [Some(first.1.max(led)), self.newest, last].into_iter().flatten().max();
                for ((one, other), since) in &self.since {
                    let since = changed.map_or(*since, |changed| changed.max(*since));
                    let long = known.duration_since(since) > LONG;
                    hold(GIVES_WAY, !(long && goes_on(decisions, one) && goes_on(decisions, other)), || {
                        format!(
                            "{one} and {other} wait on each other since {since}, and both go on at {known}"
                        )
                    })?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn goes_on(decisions: &Decisions, node: &str) -> bool {
    let drains = |status: &DrainPlanStatus| {
        status.nodes.iter().any(|of| of.name == *node && of.phase == NodePhase::Draining)
    };
    decisions.plans.iter().filter_map(|decision| decision.status.as_ref()).any(drains)
}

/// The nodes that are drained and stand still, each with the replacements that it waits for.
fn stuck(world: &World) -> Vec<(&Node, Vec<&Pod>)> {
    let cluster = world.store().cluster();
    let mut stuck = Vec::new();
    for node in cluster.nodes() {
        let is_drained = holder(world, &node.name).is_some_and(|plan| drains(plan, node));
        if !is_drained || cluster.pods_on(&node.name).any(|pod| pod.terminating()) {
            continue;
        }
        let lacking: Vec<&Pod> =
            cluster.pods_on(&node.name).flat_map(|pod| replacements(world, pod)).collect();
        if !lacking.is_empty() {
            stuck.push((&**node, lacking));
        }
    }
    stuck
}

/// Whether the plan drains the node, evicts from it now, and does nothing out of the ordinary.
fn drains(plan: &DrainPlan, node: &Node) -> bool {
    let spec = &plan.spec;
    let selected = match &spec.nodes.selector {
        Some(selector) => selector
            .match_labels
            .iter()
            .all(|(key, value)| node.labels.get(key).is_some_and(|found| **found == **value)),
        None => spec.nodes.names.iter().any(|name| **name == *node.name),
    };
    let record = plan.status.iter().flat_map(|status| &status.nodes).find(|of| *of.uid == *node.uid);
    selected
        && node.unschedulable
        && !spec.suspend
        && spec.windows.is_empty()
        && spec.exclusions.is_empty()
        && spec.pod_policy().rules.is_empty()
        && plan.metadata.deletion_timestamp.is_none()
        && record.is_some_and(|record| record.phase == NodePhase::Draining)
}

/// The pods without a node for the sake of which a pod cannot go, where nothing else can be said.
fn replacements<'w>(world: &'w World, pod: &'w Pod) -> Vec<&'w Pod> {
    let cluster = world.store().cluster();
    let plain = pod.owner.as_ref().is_some_and(|owner| &*owner.kind == "ReplicaSet")
        && pod.empty_dirs.is_empty()
        && pod.placement.is_none();
    let mut budgets = cluster.budgets_of(pod);
    let (Some(budget), None) = (budgets.next(), budgets.next()) else { return Vec::new() };
    if !plain || !is_plain(world, budget, pod) || budget::verdict(cluster, pod).cause != Cause::Exhausted {
        return Vec::new();
    }
    let lacks = |of: &&Pod| of.node.is_none() && of.unschedulable.is_some() && !of.terminating();
    budget::selected(cluster, budget).map(AsRef::as_ref).filter(lacks).collect()
}

/// One pod at a time, of one owner that has all its pods, as it is counted.
fn is_plain(world: &World, budget: &Pdb, pod: &Pod) -> bool {
    let cluster = world.store().cluster();
    let pods: Vec<&Pod> = budget::selected(cluster, budget).map(AsRef::as_ref).collect();
    let living = pods.iter().filter(|of| !of.terminating() && !of.finished()).count();
    let wanted = pod.owner.as_ref().and_then(|owner| cluster.workload(&owner.uid));
    let reported = budget.status.disruptions_allowed;
    budget.max_unavailable == Some(Amount::Int(1))
        && pods.iter().all(|of| of.owner == pod.owner)
        && wanted.is_some_and(|wanted| usize::try_from(wanted.replicas) == Ok(living))
        && budget::recompute(cluster, budget, world.now()).numbers.disruptions_allowed == reported
}

/// Whether one of the pods may be on the node once that is given back.
fn helps(node: &Node, lacking: &[&Pod]) -> bool {
    let ours = !node.annotations.contains_key(names::WAS_CORDONED);
    let may = |pod: &&Pod| pod.placement.as_ref().is_none_or(|placement| placement.admits(node));
    ours && &*node.ready == "True" && lacking.iter().any(may)
}
