//! Controllers whose own pods are on the nodes that they drain.
//!
//! The pods are simulated and the processes are real: the harness starts, readies and ends them as kubelets would.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodeReason, PlanPhase};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::{PATIENCE, alone, over, report, slow, waiting};
use crate::harness::{
    Bed, Controller, Recorder, Request, Sight, Template, node_of, owned_by, terminating, uid,
};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        alone!(80, own_pod_is_handed_over),
        alone!(81, own_pod_without_another),
        alone!(88, own_pod_that_could_not_come_back),
        slow!(202, own_pod_whose_stand_in_is_dead),
    ]
}

/// The controllers' label and budget.
const APP: &str = "drainplan";
/// True when the pod's process says that it is ready.
const RUNS: &str = "e2e.drainplan.dev/runs";

/// The processes of the controllers' pods, by name of the pod.
struct Processes<'a> {
    bed: &'a Bed,
    running: BTreeMap<String, Controller>,
    /// The logs of those that have ended.
    logs: BTreeMap<String, String>,
}

impl Processes<'_> {
    /// Starts the process of a pod; the pod is Ready when it is.
    async fn start(&mut self, pod: &str) -> Result<()> {
        let process = self.bed.installation.controller.in_pod(&self.bed.space.name, pod)?;
        process.start().await?;
        self.running.insert(pod.to_owned(), process);
        self.bed.space.open_gate(pod, RUNS).await
    }

    /// Starts the process of a pod, and awaits that it leads.
    async fn lead(&mut self, pod: &str) -> Result<()> {
        self.start(pod).await?;
        let process = self.running.get(pod).context("it has started")?;
        process.says("/metrics", "\ndrainplan_leader 1\n", Duration::from_secs(30)).await
    }

    /// Ends the process of a pod, then confirms that to the server.
    async fn end(&mut self, pod: &str) -> Result<()> {
        self.stop(pod).await?;
        let confirmed = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.bed.space.pods().delete(pod, &confirmed).await?;
        Ok(())
    }

    async fn stop(&mut self, pod: &str) -> Result<()> {
        let process = self.running.remove(pod).with_context(|| format!("no process of pod {pod}"))?;
        process.terminate()?;
        let ended = process.ends(Duration::from_secs(30)).await?;
        ensure!(ended.success(), "the controller of {pod} ended with {ended}: {}", process.log_tail(20));
        self.logs.insert(pod.to_owned(), process.log_tail(usize::MAX));
        Ok(())
    }

    /// Does what kubelets do; ends with an error only.
    async fn tend(&mut self) -> Result<Infallible> {
        let record = Recorder::start(self.bed.space.pods(), None).await?;
        loop {
            let (name, ends) = record
                .until("a pod of the controller comes or goes", PATIENCE, |record| {
                    let started = |pod: &Pod| self.running.contains_key(&pod.name_any());
                    let to_do = record.now.values().find(|pod| {
                        owned_by(pod, APP) && !node_of(pod).is_empty() && started(pod) == terminating(pod)
                    });
                    match to_do {
                        Some(pod) => Sight::Found((pod.name_any(), terminating(pod))),
                        None => Sight::NotYet("nothing to do".to_owned()),
                    }
                })
                .await?;
            if ends { self.end(&name).await? } else { self.start(&name).await? }
        }
    }

    /// What the process of a pod has logged so far.
    fn log(&self, pod: &str) -> String {
        let running = self.running.get(pod).map(|process| process.log_tail(usize::MAX));
        running.or_else(|| self.logs.get(pod).cloned()).unwrap_or_default()
    }

    /// Ends them all, so that the lease is free.
    async fn stop_all(&mut self) -> Result<()> {
        while let Some(pod) = self.running.keys().next().cloned() {
            self.stop(&pod).await?;
        }
        Ok(())
    }
}

/// A pod of the controller whose simulated kubelet leaves its readiness and its end to the harness.
fn replica() -> Template {
    Template::new().gate(RUNS).sim("terminate", "never").apart()
}

/// Pods of the controller, bound to nodes and without processes yet.
async fn bound(bed: &Bed, count: usize) -> Result<Vec<Pod>> {
    bed.space
        .pods_until(APP, &format!("{count} bound pods"), |pods| {
            pods.len() == count && pods.iter().all(|pod| !node_of(pod).is_empty())
        })
        .await
}

/// Every record of the lease: since when, held by whom.
fn holders(leases: &Recorder<Lease>) -> Vec<(Option<Timestamp>, String)> {
    let mut holders: Vec<(Option<Timestamp>, String)> = Vec::new();
    leases.with(|record| {
        for spec in record.events.iter().filter_map(|seen| seen.object.spec.clone()) {
            let holder = spec.holder_identity.unwrap_or_default();
            if holders.last().is_none_or(|(_, last)| *last != holder) {
                let since = if holder.is_empty() { spec.renew_time } else { spec.acquire_time };
                holders.push((since.map(|time| time.0), holder));
            }
        }
    });
    holders
}

/// Every one of the pods was evicted exactly once, none was refused.
fn ensure_moved_once(bed: &Bed, pods: &[&Pod]) -> Result<Vec<Request>> {
    let evictions = bed.evictions()?;
    let refused: Vec<String> = evictions.iter().filter(|it| it.code != 201).map(Request::line).collect();
    ensure!(refused.is_empty(), "refused: {refused:#?}");
    let accepted: BTreeSet<String> = bed.accepted()?.into_iter().collect();
    let uids: BTreeSet<String> = pods.iter().map(|pod| uid(*pod)).collect();
    ensure!(accepted == uids, "the server accepted {accepted:?}, and the pods were {uids:?}");
    Ok(evictions)
}

/// The eviction of a pod, which must be later than those of the other pods of its node.
fn last_of_its_node<'a>(evictions: &'a [Request], own: &Pod, others: &[Pod]) -> Result<&'a Request> {
    let of = |pod: &Pod| evictions.iter().find(|it| it.precondition() == Some(uid(pod).as_str()));
    let last = of(own).with_context(|| format!("{} was not evicted", own.name_any()))?;
    for other in others.iter().filter(|other| node_of(other) == node_of(own)) {
        let earlier = of(other).with_context(|| format!("{} was not evicted", other.name_any()))?;
        ensure!(
            earlier.answered < last.received,
            "{} was evicted before {}",
            own.name_any(),
            other.name_any()
        );
    }
    Ok(last)
}

async fn own_pod_is_handed_over(bed: Bed) -> Result<()> {
    bed.nodes(["a", "b"], 3).await?;
    bed.space.budget(APP, &[APP], json!({"maxUnavailable": 1})).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment(APP, 2, &replica()).await?;
    let own = bound(&bed, 2).await?;
    bed.space.deployment("web", 4, &Template::new().sim("ready-after", "500ms")).await?;
    let web = bed.space.all_ready("web", 4).await?;
    bed.space.budget_allows("web", 4, 1).await?;
    bed.nodes(["spare"], 110).await?;

    bed.installation.kill_controller().await?;
    let mut processes = Processes { bed: &bed, running: BTreeMap::new(), logs: BTreeMap::new() };
    let [first, second] = own.as_slice() else { anyhow::bail!("{} pods of the controller", own.len()) };
    processes.lead(&first.name_any()).await?;
    processes.start(&second.name_any()).await?;
    bed.space.all_ready(APP, 2).await?;
    bed.space.budget_allows(APP, 2, 1).await?;
    let leases = Recorder::start(bed.installation.leases(), None).await?;

    let order = [node_of(first).to_owned(), node_of(second).to_owned()];
    let drained = async {
        let plan = bed.plan("plan", over(&order, "2m", "Uncordon")).await?;
        plan.ends(PlanPhase::Completed, PATIENCE).await
    };
    tokio::select! {
        status = drained => { status?; }
        failed = processes.tend() => { failed?; }
    }

    let originals: Vec<&Pod> = web.iter().chain(&own).collect();
    let evictions = ensure_moved_once(&bed, &originals)?;
    let held = holders(&leases);
    let names: Vec<&str> =
        held.iter().map(|(_, holder)| holder.rsplit_once('_').map_or("", |(name, _)| name)).collect();
    let last = names.last().copied().unwrap_or_default();
    let expected = [&first.name_any(), "", &second.name_any(), "", last];
    ensure!(names == expected && last.starts_with(APP), "the lease was held by {names:?}");
    for (own, by, taken) in [(first, second.name_any(), 2), (second, last.to_owned(), 4)] {
        let evicted = last_of_its_node(&evictions, own, &web)?;
        let since = held.get(taken).and_then(|(since, _)| *since).context("the lease was never taken")?;
        ensure!(since < evicted.received, "{} was evicted before {by} took the lease", own.name_any());
        let told = format!("evicting pod={}", own.name_any());
        ensure!(processes.log(&by).contains(&told), "{by} has not logged \"{told}\"");
        ensure!(!processes.log(&own.name_any()).contains(&told), "{} has evicted itself", own.name_any());
    }
    for node in &order {
        bed.node_rests(node, false, &[]).await?;
    }
    processes.stop_all().await
}

/// The node of the controller's own pod is drained, each pod moved once and that one last.
async fn drains_its_own_node(
    bed: &Bed,
    processes: &mut Processes<'_>,
    node: &str,
    own: &Pod,
    web: &[Pod],
) -> Result<()> {
    let drained = async {
        let plan = bed.plan("plan", over(&[node.to_owned()], "2m", "Uncordon")).await?;
        plan.ends(PlanPhase::Completed, PATIENCE).await
    };
    tokio::select! {
        status = drained => { status?; }
        failed = processes.tend() => { failed?; }
    }
    let originals: Vec<&Pod> = web.iter().chain([own]).collect();
    let evictions = ensure_moved_once(bed, &originals)?;
    last_of_its_node(&evictions, own, web).map(drop)
}

async fn own_pod_without_another(bed: Bed) -> Result<()> {
    let [node] = bed.nodes(["a"], 3).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment(APP, 1, &replica()).await?;
    let own = bound(&bed, 1).await?.pop().context("a pod of the controller")?;
    bed.space.deployment("web", 2, &Template::new().sim("ready-after", "500ms")).await?;
    let web = bed.space.all_ready("web", 2).await?;
    bed.space.budget_allows("web", 2, 1).await?;
    bed.nodes(["spare"], 110).await?;

    bed.installation.kill_controller().await?;
    let mut processes = Processes { bed: &bed, running: BTreeMap::new(), logs: BTreeMap::new() };
    processes.lead(&own.name_any()).await?;
    let leases = Recorder::start(bed.installation.leases(), None).await?;
    drains_its_own_node(&bed, &mut processes, &node, &own, &web).await?;
    let told = "released the lease";
    ensure!(processes.log(&own.name_any()).contains(told), "it has not logged \"{told}\"");
    let held: Vec<String> = holders(&leases).into_iter().map(|(_, holder)| holder).collect();
    ensure!(held.len() == 3 && held.get(1).is_some_and(String::is_empty), "the lease was held by {held:?}");
    bed.node_rests(&node, false, &[]).await?;
    processes.stop_all().await
}

async fn own_pod_that_could_not_come_back(bed: Bed) -> Result<()> {
    let [node] = bed.nodes(["a"], 3).await?;
    bed.space.deployment(APP, 1, &replica()).await?;
    let own = bound(&bed, 1).await?.pop().context("a pod of the controller")?;
    bed.space.deployment("web", 1, &Template::new()).await?;
    bed.space.all_ready("web", 1).await?;
    bed.installation.kill_controller().await?;
    let mut processes = Processes { bed: &bed, running: BTreeMap::new(), logs: BTreeMap::new() };
    processes.lead(&own.name_any()).await?;
    let watched = bed.record_nodes().await?;

    let plan = bed.plan("plan", over(std::slice::from_ref(&node), "5s", "Uncordon")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    bed.ensure_untouched(&watched, &node)?;
    let of_node = report(&status, &node)?;
    ensure!(of_node.reason.as_deref() == Some(NodeReason::Blocked.as_str()), "{:?}", of_node.reason);
    bed.says("ReturnsToNode/NeverClears/controller", waiting(of_node, &own.name_any())?)?;
    processes.stop_all().await
}

/// The other replica's pod is Ready, and its process hangs: the lease comes back to the one that gave it away.
async fn own_pod_whose_stand_in_is_dead(bed: Bed) -> Result<()> {
    let [node] = bed.nodes(["a"], 2).await?;
    bed.space.deployment(APP, 1, &replica()).await?;
    let own = bound(&bed, 1).await?.pop().context("a pod of the controller")?;
    bed.space.deployment("web", 1, &Template::new().sim("ready-after", "500ms")).await?;
    let web = bed.space.all_ready("web", 1).await?;
    bed.nodes(["spare", "another"], 110).await?;
    bed.installation.kill_controller().await?;
    let mut processes = Processes { bed: &bed, running: BTreeMap::new(), logs: BTreeMap::new() };
    processes.lead(&own.name_any()).await?;
    bed.space.scale(APP, 2).await?;
    let both = bound(&bed, 2).await?;
    let other = both.iter().find(|pod| uid(*pod) != uid(&own)).context("another pod")?;
    processes.start(&other.name_any()).await?;
    bed.space.all_ready(APP, 2).await?;
    processes.running.get(&other.name_any()).context("it has started")?.kill()?;
    let leases = Recorder::start(bed.installation.leases(), None).await?;

    drains_its_own_node(&bed, &mut processes, &node, &own, &web).await?;
    let held: Vec<String> = holders(&leases).into_iter().map(|(_, holder)| holder).collect();
    let [first, free, again, ..] = held.as_slice() else { anyhow::bail!("the lease was held by {held:?}") };
    ensure!(free.is_empty() && first == again, "the lease was held by {held:?}");
    let log = processes.log(&own.name_any());
    let handed_over = log.matches("handing over to another replica").count();
    ensure!(handed_over == 1, "it was handed over {handed_over} times");
    processes.running.remove(&other.name_any());
    processes.stop_all().await
}
