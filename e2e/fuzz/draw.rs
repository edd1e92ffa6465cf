//! Draws a scenario from a seed: clusters as they are, and all that goes wrong with them.

use std::time::Duration;

use drainplan::api::OnNodeTimeout;
use drainplan::cluster::{Amount, ObjectKind, UnhealthyPolicy};
use drainplan::simulate::{
    Act, After, BudgetSetup, CallFault, CallKind, NodeSetup, OwnerKind, PlanEdit, Span, Stream, Template,
    Timing, WorkloadSetup,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::chance::Chance;
use super::hand_off;
use super::run::START;
use super::scenario::{FAULTY, Scenario, plan};

/// A scenario with faults.
pub fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed);
    let nodes = nodes(&mut chance);
    let singly = chance.percent(10);
    let (workloads, budgets) = if singly {
        singles(&mut chance)
    } else {
        let workloads = workloads(&mut chance);
        let budgets = budgets(&mut chance, &workloads);
        (workloads, budgets)
    };
    let spares = (0..chance.number(0, 3)).map(|number| spare(number, &mut chance)).collect();
    let mut scenario = Scenario {
        seed,
        timing: if singly && chance.percent(60) { late() } else { timing(&mut chance) },
        processes: chance.count(1, 2),
        most_cordoned: most_cordoned(&mut chance),
        housed: chance.percent(20),
        nodes,
        spares,
        workloads,
        budgets,
        plans: Vec::new(),
        actors: Vec::new(),
        acts: Vec::new(),
    };
    for number in 0..chance.number(1, 3) {
        let at = if number == 0 { Duration::ZERO } else { chance.millis(0, 20_000) };
        let mut spec = spec(&mut chance, &scenario.nodes);
        let name = format!("plan-{number}");
        if chance.percent(40) {
            let actor = hand_off::draw(&mut chance, &mut spec);
            scenario.actors.push((name.clone(), actor));
        }
        if spec.get("preflightOnly").is_some() {
            let over = Act::EditPlan(name.clone(), PlanEdit::PreflightIsOver);
            scenario.acts.push((at + chance.millis(500, 30_000), over));
        }
        if spec.get("repeat").is_some() {
            // So that it ends.
            scenario.acts.push((FAULTY, Act::EditPlan(name.clone(), PlanEdit::Repeat(false))));
        }
        scenario.plans.push((at, plan(&name, &spec)));
    }
    let tight = chance.percent(18);
    if tight {
        fill(&mut chance, &mut scenario);
    }
    // Some runs are quiet, most are not; most of what goes wrong goes wrong while there is much to do.
    let most = if tight { 8 } else { 40 };
    let quiet = if tight { 50 } else { 10 };
    let faults = if chance.percent(quiet) { 0 } else { chance.number(1, most) };
    for _ in 0..faults {
        let longest = if chance.percent(70) { 15_000 } else { 60_000 };
        let at = chance.millis(0, longest);
        let acts = fault(&mut chance, &scenario, at);
        scenario.acts.extend(acts);
    }
    scenario
}

fn timing(chance: &mut Chance) -> Timing {
    let usual = Timing::default();
    match chance.number(0, 3) {
        0 => usual,
        1 => Timing { watch: Span::millis(1, 200), request: Span::millis(1, 100), ..usual },
        2 => Timing {
            watch: Span::millis(1, 1500),
            request: Span::millis(1, 50),
            controller: Span::millis(1, 1000),
            write: Span::millis(1, 300),
            scheduler: Span::millis(5, 500),
            ..usual
        },
        _ => Timing { controller: Span::millis(1, 100), scheduler: Span::millis(5, 3000), ..usual },
    }
}

/// The controllers of owners and budgets take their time, each its own, and everybody learns of it at once.
fn late() -> Timing {
    Timing { controller: Span::millis(1, 1000), ..Timing::default() }
}

fn nodes(chance: &mut Chance) -> Vec<NodeSetup> {
    let capacity = u32::try_from(chance.number(4, 12)).unwrap_or(4);
    (0..chance.number(1, 6))
        .map(|number| {
            let mut node = NodeSetup::new(&format!("node-{number}"), "old", capacity);
            node.cordoned = chance.percent(7);
            let zone = if chance.percent(50) { "east" } else { "west" };
            node.labels.push((ZONE.to_owned(), zone.to_owned()));
            node
        })
        .collect()
}

/// The label by which nodes are of two zones.
const ZONE: &str = "zone";

fn most_cordoned(chance: &mut Chance) -> Option<u32> {
    chance.percent(12).then(|| u32::try_from(chance.number(1, 3)).unwrap_or(1))
}

/// Two nodes, each full of the pods of a service of its own, drained at once and with next to no room elsewhere: what
/// is evicted from the one waits for the other.
fn fill(chance: &mut Chance, scenario: &mut Scenario) {
    let pods = chance.int(2, 4);
    let room = u32::try_from(pods + chance.int(0, 2)).unwrap_or(4);
    scenario.nodes = ["node-0", "node-1"].map(|name| NodeSetup::new(name, "old", room)).to_vec();
    scenario.spares =
        (0..chance.number(0, 1)).map(|number| NodeSetup::new(&format!("spare-{number}"), "new", 1)).collect();
    scenario.most_cordoned = None;
    scenario.actors.clear();
    scenario.workloads = (0..2)
        .map(|number| {
            let mut workload = WorkloadSetup::deployment("shop", &format!("app-{number}"), pods);
            workload.placed = vec![format!("node-{number}"); usize::try_from(pods).unwrap_or(2)];
            workload
        })
        .collect();
    let budget = |workload: &WorkloadSetup| BudgetSetup::max_unavailable("shop", &workload.name, 1);
    scenario.budgets = scenario.workloads.iter().map(budget).collect();
    let both = json!({"nodes": {"names": ["node-0", "node-1"]}, "pace": {"maxConcurrentNodes": 2},
        "timeouts": {"node": format!("{}s", chance.number(30, 60))}, "handOff": {"then": "Uncordon"}});
    scenario.plans = vec![(Duration::ZERO, plan("plan-0", &both))];
}

fn spare(number: u64, chance: &mut Chance) -> NodeSetup {
    NodeSetup::new(&format!("spare-{number}"), "new", u32::try_from(chance.number(4, 30)).unwrap_or(4))
}

fn workloads(chance: &mut Chance) -> Vec<WorkloadSetup> {
    (0..chance.number(1, 5))
        .map(|number| {
            let name = format!("app-{number}");
            let kind = match chance.number(0, 19) {
                0..=8 => OwnerKind::Deployment,
                9 => OwnerKind::ReplicaSet,
                10..=12 => OwnerKind::StatefulSet { parallel: chance.percent(50) },
                13 => OwnerKind::Job,
                14 | 15 => OwnerKind::DaemonSet,
                16 | 17 => OwnerKind::Custom { has_scale: chance.percent(70) },
                18 => OwnerKind::Nobody,
                _ => OwnerKind::Kubelet,
            };
            let namespace = if chance.percent(80) { "shop" } else { "back" }.to_owned();
            let template = template(chance, &name, kind);
            WorkloadSetup { namespace, name, kind, replicas: chance.int(1, 9), template, placed: Vec::new() }
        })
        .collect()
}

/// Owners with one pod each under one budget: it expects fewer as soon as one of them has none.
fn singles(chance: &mut Chance) -> (Vec<WorkloadSetup>, Vec<BudgetSetup>) {
    let workloads: Vec<WorkloadSetup> = (0..chance.number(4, 8))
        .map(|number| {
            let mut of = WorkloadSetup::deployment("shop", &format!("app-{number}"), 1);
            of.kind = OwnerKind::StatefulSet { parallel: false };
            of.template.ready = After::Some(chance.millis(50, 4_000));
            of.template.terminates = After::Some(chance.millis(20, 2_000));
            of
        })
        .collect();
    let mut budget = BudgetSetup::max_unavailable("shop", "all", 1);
    budget.apps = workloads.iter().map(|of| of.name.clone()).collect();
    if chance.percent(30) {
        budget.max_unavailable = None;
        budget.min_available = Some(Amount::Text("50%".into()));
    }
    (workloads, vec![budget])
}

fn template(chance: &mut Chance, app: &str, kind: OwnerKind) -> Template {
    let mut template = Template::new(app);
    template.ready = if chance.percent(6) { After::Never } else { After::Some(chance.millis(50, 6_000)) };
    template.terminates =
        if chance.percent(4) { After::Never } else { After::Some(chance.millis(20, 4_000)) };
    template.grace_seconds = i64::from(chance.int(5, 30));
    if kind == OwnerKind::Job && chance.percent(70) {
        template.completes = After::Some(chance.millis(5_000, 60_000));
    }
    if chance.percent(5) {
        template.finalizer =
            Some(if chance.percent(20) { After::Never } else { After::Some(chance.millis(500, 20_000)) });
    }
    template.empty_dir = chance.percent(5);
    template.tolerates_cordon = chance.percent(4);
    template.spread = chance.percent(12);
    template
}

fn budgets(chance: &mut Chance, workloads: &[WorkloadSetup]) -> Vec<BudgetSetup> {
    let mut budgets: Vec<BudgetSetup> = Vec::new();
    for workload in workloads {
        if chance.percent(75) {
            budgets.push(budget(chance, workload, &workload.name));
        }
        // A second one over the same pods, or one over several owners.
        if chance.percent(5) {
            budgets.push(budget(chance, workload, &format!("{}-again", workload.name)));
        }
    }
    if chance.percent(8)
        && let Some(of) = chance.pick(workloads)
    {
        let mut wide = budget(chance, of, "wide");
        wide.apps = workloads.iter().map(|workload| workload.name.clone()).collect();
        budgets.push(wide);
    }
    budgets
}

fn budget(chance: &mut Chance, of: &WorkloadSetup, name: &str) -> BudgetSetup {
    let replicas = u32::try_from(of.replicas).unwrap_or(1);
    let mut budget = BudgetSetup::max_unavailable(&of.namespace, &of.name, 1);
    name.clone_into(&mut budget.name);
    match chance.number(0, 9) {
        0..=5 => budget.max_unavailable = Some(Amount::Int(chance.int(1, 2))),
        6 => budget.max_unavailable = Some(Amount::Text(format!("{}%", chance.number(10, 60)).into())),
        7 if chance.percent(40) => budget.max_unavailable = Some(Amount::Int(0)),
        7 => {
            budget.max_unavailable = None;
            budget.min_available = Some(Amount::Text(format!("{}%", chance.number(30, 100)).into()));
        }
        _ => {
            budget.max_unavailable = None;
            let most = if chance.percent(15) { replicas } else { replicas - 1 };
            budget.min_available = Some(Amount::Int(chance.int(0, most)));
        }
    }
    if chance.percent(25) {
        budget.unhealthy_policy = UnhealthyPolicy::AlwaysAllow;
    }
    budget
}

fn spec(chance: &mut Chance, nodes: &[NodeSetup]) -> Value {
    let selector = json!({"selector": {"matchLabels": {"pool": "old"}}});
    let mut names: Vec<&str> =
        nodes.iter().filter(|_| chance.percent(70)).map(|node| node.name.as_str()).collect();
    if chance.percent(5) {
        names.push("no-such-node");
    }
    let by_selector = names.is_empty() || chance.percent(40);
    let then = if chance.percent(70) { "Uncordon" } else { "KeepCordoned" };
    let mut spec = json!({
        "nodes": if by_selector { selector } else { json!({"names": names}) },
        "timeouts": {"node": format!("{}s", chance.number(5, 60))},
        "handOff": {"then": then},
    });
    if chance.percent(40) {
        let percent = chance.percent(50);
        spec["pace"]["maxConcurrentNodes"] =
            if percent { json!(format!("{}%", chance.number(20, 100))) } else { json!(chance.number(1, 4)) };
    }
    if chance.percent(12) {
        spec["pace"]["topologyKey"] = json!(ZONE);
    }
    gates(chance, &mut spec);
    if chance.percent(15) {
        spec["timeouts"]["plan"] = json!(format!("{}s", chance.number(10, 120)));
    }
    if chance.percent(30) {
        spec["onNodeTimeout"] = json!("Keep");
    }
    if chance.percent(20) {
        spec["maxFailedNodes"] = json!(chance.number(0, 2));
    }
    if chance.percent(5) {
        spec["suspend"] = json!(true);
    }
    if chance.percent(10) {
        spec["handOff"]["awaitVolumesDetached"] = json!(false);
    }
    let mut pods = json!({});
    for field in ["unmanaged", "emptyDir"] {
        if chance.percent(50) {
            pods[field] = json!("Evict");
        }
    }
    if chance.percent(15) {
        pods["unbudgeted"] = json!("OneAtATime");
        pods["unbudgetedWait"] = json!(format!("{}s", chance.number(1, 20)));
    }
    if chance.percent(20) {
        let actions = ["Evict", "Evict", "Skip", "AwaitCompletion"];
        let rules: Vec<Value> = (0..chance.number(1, 3))
            .map(|number| {
                let action = chance.pick(&actions).copied().unwrap_or("Evict");
                let app = json!({"matchLabels": {"app": format!("app-{number}")}});
                json!({"podSelector": app, "action": action, "order": chance.int(0, 4) - 2})
            })
            .collect();
        pods["rules"] = json!(rules);
    }
    if chance.percent(15) {
        pods["gracePeriodSeconds"] = json!(chance.number(1, 20));
    }
    spec["pods"] = pods;
    if chance.percent(20) {
        hours(chance, &mut spec);
    }
    if chance.percent(8) {
        spec["preflightOnly"] = json!(true);
    }
    spec
}

/// What a node's start waits for.
fn gates(chance: &mut Chance, spec: &mut Value) {
    if chance.percent(40) {
        spec["pace"]["awaitReplacements"] = json!(false);
    }
    if chance.percent(15) {
        spec["pace"]["soak"] = json!(format!("{}s", chance.number(0, 15)));
    }
    if chance.percent(20) {
        let percent = chance.percent(50);
        spec["pace"]["maxUnhealthyNodes"] =
            if percent { json!(format!("{}%", chance.number(0, 60))) } else { json!(chance.number(0, 2)) };
    }
}

/// The longest that a node may take where there are windows: the schema refuses windows that are shorter.
const IN_WINDOW: u64 = 25;

/// Windows that open with every minute, and a time in which nothing is open.
fn hours(chance: &mut Chance, spec: &mut Value) {
    if chance.percent(75) {
        let window =
            json!({"schedule": "* * * * *", "duration": format!("{}s", chance.number(IN_WINDOW, 55))});
        spec["windows"] = json!([window]);
        spec["timeouts"]["node"] = json!(format!("{}s", chance.number(5, IN_WINDOW)));
    }
    if chance.percent(50) {
        let after = |seconds| START + SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(0));
        let begins = chance.number(20, 60);
        let ends = begins + chance.number(1, 40);
        spec["exclusions"] = json!([{"start": after(begins).to_string(), "end": after(ends).to_string()}]);
    }
    if chance.percent(40) {
        spec["onWindowEnd"] = json!("Finish");
    }
    if spec.get("windows").is_some() && chance.percent(50) {
        spec["repeat"] = json!("EachWindow");
        spec["handOff"]["then"] = json!("Uncordon");
        spec["onNodeTimeout"] = json!("Return");
    }
}

/// One thing that goes wrong, with what undoes it.
fn fault(chance: &mut Chance, of: &Scenario, at: Duration) -> Vec<(Duration, Act)> {
    let lasts = chance.millis(500, 25_000);
    let then = at + lasts;
    let act = match chance.number(0, 99) {
        0..=29 => call_fault(chance),
        30..=46 => watch_fault(chance, of),
        47..=49 => return unseen_rebirth(chance, of, at),
        50..=61 => match process_fault(chance, of) {
            Some(act) => act,
            None => return Vec::new(),
        },
        62..=77 => return by_people(chance, of, at, then),
        78 | 79 => {
            let all: Vec<&NodeSetup> = of.nodes.iter().chain(&of.spares).collect();
            let Some(node) = chance.pick(&all).map(|node| node.name.clone()) else { return Vec::new() };
            let ends = if chance.percent(10) { After::Never } else { After::Some(lasts) };
            Act::Attach(node, format!("pv-{}", chance.number(0, 9)), ends)
        }
        80..=83 if chance.percent(50) => return around(at, then, Act::ManagerStops, Act::ManagerStarts),
        80..=83 => return stale_numbers(chance, of, lasts),
        84 => return around(at, then, Act::SchedulerStops, Act::SchedulerStarts),
        85 => return around(at, at + chance.millis(500, 60_000), Act::RightTaken, Act::RightGiven),
        86..=91 => match machine_fault(chance, of, at) {
            Some(acts) => return acts,
            None => return Vec::new(),
        },
        _ => match chance.pick(&of.workloads) {
            Some(workload) => Act::PodFails(workload.key(), chance.count(0, 9), lasts),
            None => return Vec::new(),
        },
    };
    vec![(at, act)]
}

/// Nobody counts any more, pods fail, and a plan begins.
fn stale_numbers(chance: &mut Chance, of: &Scenario, lasts: Duration) -> Vec<(Duration, Act)> {
    let begins = chance.pick(&of.plans).map_or(Duration::ZERO, |(at, _)| *at);
    let mut acts = around(begins, begins + lasts, Act::ManagerStops, Act::ManagerStarts);
    for workload in &of.workloads {
        if chance.percent(40) {
            continue;
        }
        let at = begins + chance.millis(0, 20);
        acts.push((at, Act::PodFails(workload.key(), chance.count(0, 9), lasts)));
    }
    acts
}

/// Pods are deleted, and nobody who acts hears of it; a StatefulSet's are soon there again under their names.
fn unseen_rebirth(chance: &mut Chance, of: &Scenario, at: Duration) -> Vec<(Duration, Act)> {
    let pods = Stream::Objects(ObjectKind::Pod);
    let stalls = |process| (at, Act::WatchStalls(process, pods, chance.millis(2_000, 15_000)));
    let mut acts: Vec<_> = (0..of.processes).map(stalls).collect();
    for workload in of.workloads.iter().filter(|of| matches!(of.kind, OwnerKind::StatefulSet { .. })) {
        for number in 0..chance.count(1, 3) {
            acts.push((at + chance.millis(10, 500), Act::DeletePod(workload.key(), number)));
        }
    }
    acts
}

fn around(at: Duration, then: Duration, begins: Act, ends: Act) -> Vec<(Duration, Act)> {
    vec![(at, begins), (then, ends)]
}

fn call_fault(chance: &mut Chance) -> Act {
    let kind = *chance.pick(&CallKind::ALL).unwrap_or(&CallKind::Evict);
    let fault = match chance.number(0, 9) {
        0 | 1 => CallFault::Lost,
        2..=4 => CallFault::AnswerLost,
        5 | 6 => CallFault::Slow(chance.millis(100, 4_000)),
        7 | 8 => CallFault::Refused(*chance.pick(&[403, 409, 422, 429, 500, 503]).unwrap_or(&500)),
        _ => CallFault::Misreported(*chance.pick(&[500, 503]).unwrap_or(&500)),
    };
    Act::Call(kind, fault)
}

fn watch_fault(chance: &mut Chance, of: &Scenario) -> Act {
    let kinds = [
        Stream::Plans,
        Stream::Objects(ObjectKind::Pod),
        Stream::Objects(ObjectKind::Pod),
        Stream::Objects(ObjectKind::PodDisruptionBudget),
        Stream::Objects(ObjectKind::Node),
        Stream::Objects(ObjectKind::ReplicaSet),
        Stream::Objects(ObjectKind::Deployment),
        Stream::Objects(ObjectKind::VolumeAttachment),
    ];
    let stream = *chance.pick(&kinds).unwrap_or(&Stream::Plans);
    let process = chance.count(0, of.processes as u64 - 1);
    match chance.number(0, 2) {
        0 => Act::WatchStalls(process, stream, chance.millis(100, 10_000)),
        1 => Act::WatchBreaks(process, stream, chance.millis(100, 15_000)),
        _ => Act::WatchRepeats(process, stream, chance.count(1, 6)),
    }
}

fn process_fault(chance: &mut Chance, of: &Scenario) -> Option<Act> {
    let process = chance.count(0, of.processes as u64 - 1);
    let back = chance.millis(200, 8_000);
    Some(match chance.number(0, 3) {
        0 => Act::Crash(process, back),
        1 => Act::CrashAfterCalls(u32::try_from(chance.number(1, 12)).ok()?, back),
        2 => Act::Partition(process, chance.millis(500, 30_000)),
        _ => Act::HandOver(back),
    })
}

fn machine_fault(chance: &mut Chance, of: &Scenario, at: Duration) -> Option<Vec<(Duration, Act)>> {
    let all: Vec<&NodeSetup> = of.nodes.iter().chain(&of.spares).collect();
    let node = (*chance.pick(&all)?).clone();
    let then = at + chance.millis(1_000, 70_000);
    Some(match chance.number(0, 5) {
        0 => {
            let back = Act::AddNode(node.clone());
            let mut acts = vec![(at, Act::DeleteNode(node.name))];
            if chance.percent(50) {
                acts.push((then, back));
            }
            acts
        }
        1 => {
            let name = format!("late-{}", chance.number(0, 2));
            vec![(at, Act::AddNode(NodeSetup { name, cordoned: false, ..node }))]
        }
        2 | 3 => around(at, then, Act::NodePressed(node.name.clone()), Act::NodeRelieved(node.name)),
        _ => around(at, then, Act::KubeletDies(node.name.clone()), Act::KubeletReturns(node.name)),
    })
}

fn by_people(chance: &mut Chance, of: &Scenario, at: Duration, then: Duration) -> Vec<(Duration, Act)> {
    people(chance, of, at, then).unwrap_or_default()
}

fn people(chance: &mut Chance, of: &Scenario, at: Duration, then: Duration) -> Option<Vec<(Duration, Act)>> {
    let node = chance.pick(&of.nodes)?.name.clone();
    let workload = chance.pick(&of.workloads)?.clone();
    let plan = &chance.pick(&of.plans)?.1;
    let (name, has_windows) = (plan.metadata.name.clone()?, !plan.spec.windows.is_empty());
    let repeats = plan.spec.repeats();
    Some(match chance.number(0, 15) {
        13 if chance.percent(30) => vec![(at, Act::StripAnnotations(node))],
        14 => vec![(at, Act::Release(node, name))],
        15 if chance.percent(30) => vec![(at, Act::StripLabel(node))],
        15 => {
            let (away, well) = (chance.millis(200, 20_000), After::Some(chance.millis(0, 10_000)));
            vec![(at, Act::Reboot { node, away, well })]
        }
        0 => vec![(at, Act::Cordon(node))],
        1 => vec![(at, Act::Uncordon(node)), (then, Act::Uncordon(chance.pick(&of.nodes)?.name.clone()))],
        2 => around(
            at,
            then,
            Act::Taint(node.clone(), "medik8s.io/drain".to_owned()),
            Act::Untaint(node, "medik8s.io/drain".to_owned()),
        ),
        3 => vec![(at, Act::Scale(workload.key(), chance.int(0, 7)))],
        4 | 5 => vec![(at, Act::DeletePod(workload.key(), chance.count(0, 9)))],
        6 => vec![(at, Act::PutBudget(budget(chance, &workload, &workload.name)))],
        7 => vec![(at, Act::DeleteBudget(workload.namespace, workload.name))],
        8 if chance.percent(50) => vec![(at, Act::DeletePlan(name))],
        9 => around(
            at,
            then,
            Act::EditPlan(name.clone(), PlanEdit::Suspend(true)),
            Act::EditPlan(name, PlanEdit::Suspend(false)),
        ),
        _ => match edit(chance, of) {
            PlanEdit::NodeTimeout(seconds) if has_windows => {
                vec![(at, Act::EditPlan(name, PlanEdit::NodeTimeout(seconds.min(IN_WINDOW))))]
            }
            // The server would refuse it.
            PlanEdit::OnNodeTimeout(OnNodeTimeout::Keep) if repeats => Vec::new(),
            edit => vec![(at, Act::EditPlan(name, edit))],
        },
    })
}

fn edit(chance: &mut Chance, of: &Scenario) -> PlanEdit {
    match chance.number(0, 6) {
        6 => PlanEdit::HandOffTimeout(chance.number(3, 60)),
        0 => PlanEdit::NodeTimeout(chance.number(3, 60)),
        1 => PlanEdit::PlanTimeout(chance.percent(80).then(|| chance.number(5, 120))),
        2 => PlanEdit::OnNodeTimeout(if chance.percent(50) {
            OnNodeTimeout::Keep
        } else {
            OnNodeTimeout::Return
        }),
        3 => PlanEdit::MaxFailedNodes(chance.int(0, 2)),
        4 => PlanEdit::AllowAll,
        _ => {
            let all = || of.nodes.iter().map(|node| node.name.clone());
            let mut names: Vec<String> = all().filter(|_| chance.percent(60)).collect();
            if names.is_empty() {
                names.extend(all().next());
            }
            PlanEdit::Names(names)
        }
    }
}
