//! Clusters in which things are out of order, and will not be for long.

use std::fmt;
use std::time::Duration;

use drainplan::api::{Eviction, PodPolicy, Unbudgeted};
use drainplan::cluster::{Amount, UnhealthyPolicy};
use drainplan::plan::Settings;
use drainplan::simulate::{
    Act, After, BudgetSetup, NodeSetup, OwnerKind, Template, Timing, WorkloadSetup, World,
};

use super::super::chance::Chance;
use super::super::run::{START, later};

/// Between two looks at what lasts.
pub const LOOKS: Duration = Duration::from_secs(5);
/// From the question until the end: longer than anything that only takes time.
pub const RECOVERY: Duration = Duration::from_mins(20);
/// Within this time of the question everything recovers.
const AILING: Duration = Duration::from_mins(3);
/// Nodes with room for whatever the pods ask for, which may be used in the end.
const SPARES: u32 = 6;

/// Everything that decides what is said and what becomes of it.
#[derive(Debug, Clone)]
pub struct Scenario {
    seed: u64,
    nodes: Vec<NodeSetup>,
    workloads: Vec<WorkloadSetup>,
    budgets: Vec<BudgetSetup>,
    /// What is out of order, and when, from the beginning.
    acts: Vec<(Duration, Act)>,
    pub policy: PodPolicy,
    /// When every pod is asked about.
    pub asked: Duration,
}

/// A cluster from a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed);
    let nodes: Vec<NodeSetup> = (0..chance.number(1, 4))
        .map(|number| {
            let capacity = u32::try_from(chance.number(3, 12)).unwrap_or(3);
            NodeSetup::new(&format!("node-{number}"), "old", capacity)
        })
        .collect();
    let workloads: Vec<WorkloadSetup> =
        (0..chance.number(1, 4)).map(|number| workload(&mut chance, number)).collect();
    let mut budgets = budgets(&mut chance, &workloads);
    let asked = if chance.percent(60) { chance.millis(500, 20_000) } else { chance.millis(20_000, 200_000) };
    let policy = if chance.percent(80) {
        let evict = Some(Eviction::Evict);
        PodPolicy { unmanaged: evict, empty_dir: evict, ..PodPolicy::default() }
    } else {
        PodPolicy::default()
    };
    let unbudgeted = chance.percent(25).then_some(Unbudgeted::OneAtATime);
    let policy = PodPolicy { unbudgeted, ..policy };
    let mut acts = Vec::new();
    for _ in 0..chance.number(0, 6) {
        acts.extend(ailment(&mut chance, &nodes, &workloads, asked));
    }
    if let Some(of) = workloads.iter().find(|of| of.kind == OwnerKind::Custom { has_scale: false })
        && of.replicas > 1
        && chance.percent(30)
    {
        // One of its pods is going, nobody says whether another comes, and without another the budget is used up.
        budgets.retain(|budget| !budget.apps.is_empty() && !budget.apps.contains(&of.name));
        let mut budget = BudgetSetup::max_unavailable("shop", &of.name, 1);
        (budget.max_unavailable, budget.min_available) = (None, Some(Amount::Int(of.replicas - 1)));
        budgets.push(budget);
        let at = asked.saturating_sub(chance.millis(50, 1_000));
        acts.push((at, Act::Scale(of.key(), of.replicas - 1)));
    }
    // While no controller runs, what is written is not carried out, and nobody notices that a kubelet is dead: either would
    // happen after the question, and be no recovery.
    if acts.iter().any(|(_, act)| matches!(act, Act::ManagerStops)) {
        acts.retain(|(_, act)| !matches!(act, Act::Scale(..) | Act::KubeletDies(_)));
    }
    Scenario { seed, nodes, workloads, budgets, acts, policy, asked }
}

fn workload(chance: &mut Chance, number: u64) -> WorkloadSetup {
    let name = format!("app-{number}");
    let kind = match chance.number(0, 19) {
        0..=6 => OwnerKind::Deployment,
        7 => OwnerKind::ReplicaSet,
        8..=10 => OwnerKind::StatefulSet { parallel: chance.percent(50) },
        11 | 12 => OwnerKind::Job,
        13 | 14 => OwnerKind::DaemonSet,
        15 | 16 => OwnerKind::Custom { has_scale: chance.percent(60) },
        17 | 18 => OwnerKind::Nobody,
        _ => OwnerKind::Kubelet,
    };
    let mut template = Template::new(&name);
    template.ready = After::Some(chance.millis(50, 40_000));
    template.terminates = After::Some(chance.millis(20, 10_000));
    template.empty_dir = chance.percent(10);
    template.spread = chance.percent(10);
    if kind == OwnerKind::Job && chance.percent(60) {
        template.completes = After::Some(chance.millis(5_000, 300_000));
    }
    WorkloadSetup {
        namespace: "shop".to_owned(),
        name,
        kind,
        replicas: chance.int(1, 5),
        template,
        placed: Vec::new(),
    }
}

fn budgets(chance: &mut Chance, workloads: &[WorkloadSetup]) -> Vec<BudgetSetup> {
    let mut budgets = Vec::new();
    for workload in workloads {
        if chance.percent(80) {
            budgets.push(budget(chance, vec![workload.name.clone()], workload.replicas, &workload.name));
        }
        if chance.percent(6) {
            let name = format!("{}-again", workload.name);
            budgets.push(budget(chance, vec![workload.name.clone()], workload.replicas, &name));
        }
    }
    if chance.percent(25) {
        // Over several owners, or over the whole namespace.
        let some = workloads.iter().filter(|_| chance.percent(60)).map(|of| of.name.clone()).collect();
        let pods = workloads.iter().map(|of| of.replicas).sum();
        budgets.push(budget(chance, some, pods, "wide"));
    }
    budgets
}

fn budget(chance: &mut Chance, apps: Vec<String>, pods: i32, name: &str) -> BudgetSetup {
    let mut budget = BudgetSetup::max_unavailable("shop", name, 1);
    budget.apps = apps;
    let most = u32::try_from(pods).unwrap_or(1) + 1;
    let percent = |chance: &mut Chance| Amount::Text(format!("{}%", chance.number(0, 100)).into());
    match chance.number(0, 19) {
        0..=5 => {}
        6..=8 => budget.max_unavailable = Some(Amount::Int(0)),
        9..=11 => budget.max_unavailable = Some(percent(chance)),
        12 => budget.max_unavailable = None,
        13..=15 => (budget.max_unavailable, budget.min_available) = (None, Some(percent(chance))),
        _ => {
            (budget.max_unavailable, budget.min_available) = (None, Some(Amount::Int(chance.int(0, most))));
        }
    }
    if chance.percent(30) {
        budget.unhealthy_policy = UnhealthyPolicy::AlwaysAllow;
    }
    budget
}

/// One thing that is out of order when the question is asked, and what undoes it.
fn ailment(
    chance: &mut Chance,
    nodes: &[NodeSetup],
    workloads: &[WorkloadSetup],
    asked: Duration,
) -> Vec<(Duration, Act)> {
    let at = chance.millis(0, u64::try_from(asked.as_millis()).unwrap_or(0));
    let until = asked + chance.millis(0, u64::try_from(AILING.as_millis()).unwrap_or(0));
    let (Some(workload), Some(node)) = (chance.pick(workloads), chance.pick(nodes)) else {
        return Vec::new();
    };
    let (workload, node) = (workload.key(), node.name.clone());
    match chance.number(0, 11) {
        0..=5 => vec![(at, Act::PodFails(workload, chance.count(0, 4), until.saturating_sub(at)))],
        6 => vec![(at, Act::DeletePod(workload, chance.count(0, 4)))],
        // Often so that its controller has not carried it out when the question is asked.
        7 => {
            let just = asked.saturating_sub(chance.millis(0, 15));
            let at = if chance.percent(50) { just } else { at };
            vec![(at, Act::Scale(workload, chance.int(0, 5)))]
        }
        8 => vec![(at, Act::ManagerStops), (until, Act::ManagerStarts)],
        9 => vec![(at, Act::SchedulerStops), (until, Act::SchedulerStarts)],
        // Its pods must be known to be unready when the question is asked, and not become so afterwards.
        10 if asked > at + Timing::default().unreachable => {
            vec![(at, Act::KubeletDies(node.clone())), (until, Act::KubeletReturns(node))]
        }
        _ => vec![(at, Act::Cordon(node))],
    }
}

impl Scenario {
    /// The cluster at its beginning, with all that is going to happen.
    pub fn world(&self) -> World {
        let mut world = World::new(START, Timing::default(), Settings::default(), self.seed);
        for node in &self.nodes {
            world.add_node(node);
        }
        // They are there from the beginning, since a DaemonSet has as many pods as there are nodes.
        for number in 0..SPARES {
            let name = format!("spare-{number}");
            world.add_node(&NodeSetup { cordoned: true, ..NodeSetup::new(&name, "old", 30) });
            world.plan_act(later(START, self.asked + AILING), Act::Uncordon(name));
        }
        for workload in &self.workloads {
            world.add_workload(workload.clone());
        }
        for budget in &self.budgets {
            world.add_budget(budget);
        }
        for (at, act) in &self.acts {
            world.plan_act(later(START, *at), act.clone());
        }
        world.plan_act(later(START, self.asked + AILING), Act::FaultsStop);
        world
    }

    /// The smallest that is like this one in that.
    pub fn shrunk(&self, like: impl Fn(&Self) -> bool) -> Self {
        let mut best = self.clone();
        loop {
            let smaller = best.parts().into_iter().find(|smaller| like(smaller));
            match smaller {
                Some(smaller) => best = smaller,
                None => return best,
            }
        }
    }

    /// Each with one thing less.
    fn parts(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut without = |count: usize, change: &dyn Fn(&mut Self, usize)| {
            for at in 0..count {
                let mut less = self.clone();
                change(&mut less, at);
                parts.push(less);
            }
        };
        without(self.acts.len(), &|of, at| drop(of.acts.remove(at)));
        without(self.workloads.len(), &|of, at| drop(of.workloads.remove(at)));
        without(self.budgets.len(), &|of, at| drop(of.budgets.remove(at)));
        without(self.nodes.len(), &|of, at| drop(of.nodes.remove(at)));
        let many = |at: usize| self.workloads.get(at).is_some_and(|of| of.replicas > 1);
        let fewer = (0..self.workloads.len()).filter(|at| many(*at)).collect::<Vec<_>>();
        without(fewer.len(), &|of, at| of.workloads[fewer[at]].replicas -= 1);
        parts
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, asked after {:?}, {:?}", self.seed, self.asked, self.policy)?;
        self.nodes.iter().try_for_each(|node| writeln!(f, "node     {node:?}"))?;
        self.workloads.iter().try_for_each(|workload| writeln!(f, "workload {workload:?}"))?;
        self.budgets.iter().try_for_each(|budget| writeln!(f, "budget   {budget:?}"))?;
        let mut acts: Vec<_> = self.acts.iter().collect();
        acts.sort_by_key(|(at, _)| *at);
        acts.into_iter().try_for_each(|(at, act)| writeln!(f, "at {:>7.3} s {act:?}", at.as_secs_f64()))
    }
}
