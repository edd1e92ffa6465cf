//! The drains that are played twice: those of the end-to-end cases, as data, and the demo's.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use drainplan::cluster::{Amount, UnhealthyPolicy};
use drainplan::simulate::{After, BudgetSetup, OwnerKind, WorkloadSetup};
use serde_json::{Value, json};

/// The room of nodes that have enough.
pub const ROOMY: u32 = 110;
/// What the simulated kubelet of the testbed takes to do what it does at once.
pub const PROMPT: Duration = Duration::from_millis(40);
/// All workloads are in one namespace.
const NAMESPACE: &str = "shop";

/// Nodes that are full when these workloads are on them.
pub struct Group {
    pub nodes: Vec<&'static str>,
    pub room: u32,
    pub workloads: Vec<WorkloadSetup>,
}

/// A plan and what is there before it.
pub struct Drain {
    /// As the table has it; it begins with where it is from.
    pub name: &'static str,
    pub groups: Vec<Group>,
    pub budgets: Vec<BudgetSetup>,
    /// A node that is not in the plan.
    pub spare: bool,
    /// The nodes get room when the pods are there.
    pub roomy: bool,
    /// Of the plan's spec, without its nodes.
    rest: Value,
}

impl Drain {
    fn new(name: &'static str, timeout: &str, then: &str) -> Self {
        let rest = json!({"timeouts": {"node": timeout}, "handOff": {"then": then}});
        Self { name, groups: Vec::new(), budgets: Vec::new(), spare: true, roomy: false, rest }
    }

    /// Nodes with exactly the room for these workloads.
    fn on(mut self, nodes: &[&'static str], workloads: Vec<WorkloadSetup>) -> Self {
        let stay = workloads.iter().filter(|workload| workload.template.completes == After::Never);
        let pods: i32 = stay.map(|workload| workload.replicas).sum();
        let room = u32::try_from(pods).unwrap_or(0) / u32::try_from(nodes.len()).unwrap_or(1);
        self.groups.push(Group { nodes: nodes.to_vec(), room: room.max(1), workloads });
        self
    }

    fn budget(mut self, name: &str, apps: &[&str], change: impl FnOnce(&mut BudgetSetup)) -> Self {
        let mut budget = BudgetSetup::max_unavailable(NAMESPACE, name, 1);
        budget.apps = apps.iter().map(|app| (*app).to_owned()).collect();
        change(&mut budget);
        self.budgets.push(budget);
        self
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        if let Some(rest) = self.rest.as_object_mut() {
            rest.insert(field.to_owned(), value);
        }
        self
    }

    pub fn workloads(&self) -> impl Iterator<Item = &WorkloadSetup> {
        self.groups.iter().flat_map(|group| &group.workloads)
    }

    /// The workload that a pod of this name is of.
    pub fn workload_of(&self, pod: &str) -> &str {
        let names = self.workloads().map(|workload| workload.name.as_str());
        names.filter(|name| pod.starts_with(name)).max_by_key(|name| name.len()).unwrap_or("?")
    }

    /// Whether that pod's end takes no time.
    pub fn ends_at_once(&self, pod: &str) -> bool {
        let name = self.workload_of(pod);
        let mut of = self.workloads().filter(|workload| workload.name == name);
        of.any(|workload| workload.template.terminates == After::Some(PROMPT))
    }

    /// The plan's spec, over nodes whose names begin so.
    pub fn spec(&self, prefix: &str) -> Value {
        let nodes = self.groups.iter().flat_map(|group| &group.nodes);
        let mut names: Vec<String> = nodes.map(|node| format!("{prefix}{node}")).collect();
        names.sort();
        let mut spec = self.rest.clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("nodes".to_owned(), json!({"names": names}));
        }
        spec
    }
}

/// A Deployment whose pods are Ready so many milliseconds after their start.
fn app(name: &str, replicas: i32, ready: u64) -> WorkloadSetup {
    let mut workload = WorkloadSetup::deployment(NAMESPACE, name, replicas);
    workload.template.starts = After::Some(PROMPT);
    workload.template.ready = After::millis(ready);
    workload.template.terminates = After::Some(PROMPT);
    workload.template.grace_seconds = 5;
    workload
}

fn of_kind(kind: OwnerKind, mut workload: WorkloadSetup) -> WorkloadSetup {
    workload.kind = kind;
    workload
}

fn finished_job(name: &str) -> WorkloadSetup {
    let mut job = of_kind(OwnerKind::Job, app(name, 1, 0));
    job.template.completes = After::Some(PROMPT * 2);
    job
}

fn max_unavailable(pods: i32) -> impl FnOnce(&mut BudgetSetup) {
    move |budget| budget.max_unavailable = Some(Amount::Int(pods))
}

fn min_available(pods: i32) -> impl FnOnce(&mut BudgetSetup) {
    move |budget| {
        budget.max_unavailable = None;
        budget.min_available = Some(Amount::Int(pods));
    }
}

/// All of them.
pub fn all() -> Result<Vec<Drain>> {
    let mut all = cases();
    all.push(demo()?);
    Ok(all)
}

fn cases() -> Vec<Drain> {
    let mut stuck = app("app-b", 2, 0);
    stuck.template.terminates = After::Never;
    let mut held = app("web", 1, 0);
    held.template.finalizer = Some(After::Never);
    let mut cache = app("cache", 1, 0);
    cache.template.empty_dir = true;
    let mut slow_end = app("web", 4, 500);
    slow_end.template.terminates = After::millis(2000);
    let allowed = json!({"unmanaged": "Evict", "emptyDir": "Evict"});
    let mut no_spare =
        Drain::new("2 no_spare_node", "2m", "Uncordon").on(&["a", "b", "c"], vec![app("web", 6, 1000)]);
    (no_spare.spare, no_spare.roomy) = (false, true);
    let eight = |name, pace: &str| {
        let apps = vec![app("web", 4, 1500), app("api", 4, 1500)];
        let drain = Drain::new(name, "2m", "Uncordon").on(&["a", "b", "c", "d"], apps);
        let drain = drain.budget("web", &["web"], max_unavailable(1));
        let mut drain = drain.budget("api", &["api"], max_unavailable(1));
        drain.roomy = true;
        drain.with(
            "pace",
            json!({"maxConcurrentNodes": pace.parse::<i32>().map_or(json!(pace), |n| json!(n))}),
        )
    };
    vec![
        Drain::new("1 six_replicas_on_three_nodes", "2m", "KeepCordoned")
            .on(&["a", "b", "c"], vec![app("web", 6, 1000)])
            .budget("web", &["web"], max_unavailable(1)),
        no_spare.budget("web", &["web"], max_unavailable(1)),
        Drain::new("3 budget_that_never_allows", "5s", "KeepCordoned")
            .on(&["a"], vec![app("web", 2, 0)])
            .budget("web", &["web"], max_unavailable(0)),
        Drain::new("4 slow_replacement", "2m", "KeepCordoned").on(&["a"], vec![app("web", 2, 3000)]).budget(
            "web",
            &["web"],
            max_unavailable(1),
        ),
        Drain::new("7 min_available_equals_replicas", "5s", "KeepCordoned")
            .on(&["a"], vec![app("web", 3, 0)])
            .budget("web", &["web"], min_available(3)),
        Drain::new("10 two_budgets_on_one_pod", "5s", "KeepCordoned")
            .on(&["a"], vec![app("web", 2, 0)])
            .budget("gold", &["web"], max_unavailable(1))
            .budget("silver", &["web", "other"], min_available(1)),
        Drain::new("12 finished_pods_stay", "2m", "KeepCordoned")
            .on(&["a"], vec![finished_job("report"), app("web", 3, 2000)])
            .budget("web", &["web"], max_unavailable(1)),
        Drain::new("13 pods_that_the_plan_refuses", "4s", "KeepCordoned")
            .on(&["a"], vec![of_kind(OwnerKind::Nobody, app("bare", 1, 0))])
            .on(&["b"], vec![cache.clone()]),
        Drain::new("13 pods_that_the_plan_allows", "2m", "KeepCordoned")
            .on(&["a"], vec![of_kind(OwnerKind::Nobody, app("bare", 1, 0))])
            .on(&["b"], vec![cache, app("web", 2, 2000)])
            .budget("web", &["web"], max_unavailable(1))
            .with("pods", allowed),
        Drain::new("14 finalizer_that_never_goes", "5s", "KeepCordoned").on(&["a"], vec![held]),
        Drain::new("15 stateful_pods", "2m", "KeepCordoned")
            .on(&["a", "b"], vec![of_kind(OwnerKind::StatefulSet { parallel: true }, app("db", 4, 1500))])
            .budget("db", &["db"], min_available(3)),
        Drain::new("21 one_stuck_node_among_four", "5s", "Uncordon")
            .on(&["a"], vec![app("app-a", 2, 0)])
            .on(&["b"], vec![stuck])
            .on(&["c"], vec![app("app-c", 2, 0)])
            .on(&["d"], vec![app("app-d", 2, 0)]),
        Drain::new("slow_ends", "2m", "KeepCordoned").on(&["a", "b"], vec![slow_end]).budget(
            "web",
            &["web"],
            |budget| {
                budget.max_unavailable = Some(Amount::Text("50%".into()));
                budget.unhealthy_policy = UnhealthyPolicy::AlwaysAllow;
            },
        ),
        eight("60 nodes_to_come_are_avoided", "1"),
        eight("61 two_nodes_at_once", "50%"),
    ]
}

/// What the demo loads, with the plan of its sample.
fn demo() -> Result<Drain> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/samples/rehearsal.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let sample: Value = serde_saphyr::from_str(&text)?;
    let mut rest = sample.get("spec").cloned().context("the sample has no spec")?;
    if let Some(rest) = rest.as_object_mut() {
        rest.remove("nodes");
    }
    let shop = ["worker-1", "worker-4", "worker-8", "worker-9"];
    let mut drain = Drain::new("demo", "1m", "Uncordon")
        .on(&shop, vec![app("web", 8, 2000)])
        .on(&["worker-2"], vec![app("ledger", 2, 0)])
        .on(&["worker-3"], vec![app("sessions", 3, 0)])
        .on(&["worker-5"], vec![app("queue", 1, 0)])
        .on(&["worker-6"], vec![finished_job("export"), app("reports-api", 2, 0)])
        .on(&["worker-7"], vec![app("thumbs", 2, 0)])
        .budget("web", &["web"], max_unavailable(1))
        .budget("ledger", &["ledger"], min_available(2))
        .budget("sessions", &["sessions"], max_unavailable(0))
        .budget("queue", &["queue"], min_available(1))
        .budget("reports", &["export", "reports-api"], max_unavailable(1))
        .budget("chart", &["thumbs"], max_unavailable(1))
        .budget("team", &["thumbs"], min_available(1));
    drain.rest = rest;
    Ok(drain)
}
