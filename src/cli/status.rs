//! `kubectl drainplan status`: how far a plan is, and what it waits for, from its status alone.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use serde::Serialize;

use super::args::{Format, Global, Status};
use super::failure::sentence;
use super::live::Live;
use super::output::Outcome;
use super::table::{self, Table, instant};
use super::visible::warn;
use crate::api::{DrainPlan, DrainPlanStatus, NodePhase, NodeStatus, PlanPhase, WaitingPod, condition};

/// How many nodes, groups of pods, and pods of a group are named.
const NODES: usize = 20;
const GROUPS: usize = 12;
const NAMED: usize = 3;
/// How much is told of a node or a group of pods.
const LINES: usize = 5;
/// How long a bar is.
const BAR: usize = 24;

/// The answer; a contract with scripts.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    plan: String,
    status: Option<&'a DrainPlanStatus>,
}

pub(super) async fn run(global: &Global, status: &Status) -> anyhow::Result<Outcome> {
    let live = Live::connect(global).await?;
    let plans: Api<DrainPlan> = Api::all(live.once());
    let plan = plans.get(&status.plan).await.map_err(|error| missing(&status.plan, error))?;
    if status.watch { follow(global, plans, &status.plan).await } else { shown(global, &plan) }
}

fn shown(global: &Global, plan: &DrainPlan) -> anyhow::Result<Outcome> {
    let answer = Answer { plan: plan.name_any(), status: plan.status.as_ref() };
    Outcome::of(global.output, &answer, is_held(plan), || table(plan, table::width()))
}

/// Shows the plan at every change, until it has ended.
async fn follow(global: &Global, plans: Api<DrainPlan>, name: &str) -> anyhow::Result<Outcome> {
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watcher(plans, only).default_backoff());
    let mut last = None;
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            // The server may be restarting; the watch begins anew by itself.
            Err(error) => {
                warn(&format!("the watch of plan {name} is interrupted: {}", sentence(&error.into())));
                continue;
            }
        };
        match event {
            Event::Apply(plan) | Event::InitApply(plan) => {
                let outcome = shown(global, &plan)?;
                let ended = plan.status.as_ref().is_some_and(|status| status.finished_at.is_some());
                if last.as_deref() != Some(outcome.text()) {
                    show(global.output, outcome.text())?;
                    last = Some(outcome.text().to_owned());
                }
                if ended {
                    return Ok(outcome.told());
                }
            }
            Event::Delete(_) => return Ok(Outcome::fine(format!("plan {name} was deleted\n"))),
            Event::Init | Event::InitDone => {}
        }
    }
    anyhow::bail!("the watch of plan {name} has ended")
}

/// On a terminal the new picture takes the place of the old one.
fn show(format: Format, text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let before = match format {
        Format::Table if out.is_terminal() => "\x1b[H\x1b[2J",
        Format::Table | Format::Json => "",
        Format::Yaml => "---\n",
    };
    let after = if format == Format::Table && !out.is_terminal() { "\n" } else { "" };
    write!(out, "{before}{text}{after}").and_then(|()| out.flush()).context("cannot write the status")
}

fn missing(name: &str, error: kube::Error) -> anyhow::Error {
    match &error {
        kube::Error::Api(status)
            if status.code == 404 && status.reason == "NotFound" && status.details.is_some() =>
        {
            anyhow::anyhow!("there is no DrainPlan {name}: kubectl get drainplans lists those that are")
        }
        kube::Error::Api(status) if status.code == 404 => anyhow::anyhow!(
            "the server knows no DrainPlan: run `kubectl drainplan crd | kubectl apply --server-side -f -`"
        ),
        _ => anyhow::Error::new(error).context(format!("cannot read DrainPlan {name}")),
    }
}

/// Whether somebody should look: it has failed, or waits for more than time.
fn is_held(plan: &DrainPlan) -> bool {
    let Some(status) = plan.status.as_ref().filter(|status| status.phase.is_some()) else { return false };
    let holds =
        |type_: &str| status.conditions.iter().any(|found| found.type_ == type_ && found.status == "True");
    holds(condition::STALLED) || (status.finished_at.is_none() && holds(condition::DRAIN_BLOCKED))
}

/// As people read it.
pub(super) fn table(plan: &DrainPlan, width: usize) -> String {
    let name = plan.name_any();
    // The server gives a new plan a status that says nothing.
    let Some(status) = plan.status.as_ref().filter(|status| status.phase.is_some()) else {
        return format!(
            "{name} has no status yet: no controller has looked at it. Is drainplan-controller running?\n"
        );
    };
    let head = [Some(headline(plan, &name, status)), overview(status)];
    let mut text: String = head.into_iter().flatten().flat_map(|line| [line, "\n".to_owned()]).collect();
    let mut told = Table::new(&[], width);
    if let Some(ready) = status.conditions.iter().find(|found| found.type_ == condition::READY) {
        told.sentence(&ready.message);
    }
    if status.observed_generation < plan.metadata.generation {
        told.sentence("The last change of its spec has not been looked at yet.");
    }
    text += &told.render();
    for part in [nodes(status, width), waiting(status, width)].into_iter().flatten() {
        text.extend(["\n", &part]);
    }
    text
}

/// `kernel is Running since 2026-12-05T22:00:00Z, run 3`.
fn headline(plan: &DrainPlan, name: &str, status: &DrainPlanStatus) -> String {
    let phase = status.phase.map_or_else(|| "not judged yet".to_owned(), |phase| format!("{phase:?}"));
    let times = match (&status.started_at, &status.finished_at, status.phase) {
        (Some(started), Some(finished), _) => {
            Some(format!(", from {} to {}", instant(started.0), instant(finished.0)))
        }
        (Some(started), None, Some(PlanPhase::Running | PlanPhase::Suspended)) => {
            Some(format!(" since {}", instant(started.0)))
        }
        _ => None,
    };
    let parts = [
        times,
        status.run.map(|run| format!(", run {run}")),
        status.next_window.as_ref().map(|next| format!(", next window {}", instant(next.0))),
        plan.metadata.deletion_timestamp.as_ref().map(|_| ", being deleted".to_owned()),
    ];
    std::iter::once(format!("{name} is {phase}")).chain(parts.into_iter().flatten()).collect()
}

/// A bar, and how many nodes are where.
fn overview(status: &DrainPlanStatus) -> Option<String> {
    let counts = status.node_counts.as_ref()?;
    let progress = counts.draining.saturating_add(counts.handed_off);
    let failed = counts.failed.saturating_add(counts.skipped);
    let bar = bar(&[(counts.done, '█'), (progress, '▓'), (failed, '×')], counts.total);
    let words = [
        (counts.draining, "draining"),
        (counts.handed_off, "handed off"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.pending, "pending"),
        (counts.blocked, "of them blocked"),
    ];
    let others = words.into_iter().filter(|(number, _)| *number > 0);
    let others = others.map(|(number, word)| format!(", {number} {word}"));
    let pods = status.pod_counts.as_ref().map(|pods| {
        format!("; pods: {} evicted, {} waiting, {} going", pods.evicted, pods.waiting, pods.terminating)
    });
    let done = format!("  {bar}  {}/{} nodes done", counts.done, counts.total);
    Some(std::iter::once(done).chain(others).chain(pods).collect())
}

/// Parts of a whole; whatever is more than nothing is seen.
fn bar(parts: &[(i32, char)], total: i32) -> String {
    let mut bar = String::new();
    let mut left = BAR;
    for (part, mark) in parts {
        let (Ok(part), Ok(total)) = (usize::try_from(*part), usize::try_from(total.max(1))) else { continue };
        let cells = (part.saturating_mul(BAR) / total).max(usize::from(part > 0)).min(left);
        bar.extend(std::iter::repeat_n(*mark, cells));
        left -= cells;
    }
    bar.extend(std::iter::repeat_n('░', left));
    bar
}

/// The nodes of which there is something to say.
fn nodes(status: &DrainPlanStatus, width: usize) -> Option<String> {
    let rank = |node: &NodeStatus| match node.phase {
        NodePhase::Draining | NodePhase::HandedOff => Some(0),
        NodePhase::Failed => Some(1),
        NodePhase::Pending => Some(2),
        NodePhase::Skipped => Some(3),
        NodePhase::Done => None,
    };
    let mut shown: Vec<(i32, &NodeStatus)> =
        status.nodes.iter().filter_map(|node| Some((rank(node)?, node))).collect();
    shown.sort_by_key(|(rank, node)| (*rank, &node.name));
    let more = shown.len().saturating_sub(NODES) + status.more_failed.len() + status.more_skipped.len();
    let mut table = Table::new(&["NODE", "PHASE", "REASON", "PODS GONE", "DEADLINE"], width);
    for (_, node) in shown.iter().take(NODES) {
        let total = node.pods_evicted.saturating_add(node.pods_left);
        let active = matches!(node.phase, NodePhase::Draining | NodePhase::HandedOff);
        let gone = format!("{}/{total}", node.pods_evicted);
        table.row(vec![
            node.name.clone(),
            format!("{:?}", node.phase),
            node.reason.clone().unwrap_or_else(|| "-".to_owned()),
            if active { format!("{} {gone}", bar(&[(node.pods_evicted, '█')], total)) } else { gone },
            node.deadline.as_ref().map_or_else(|| "-".to_owned(), |at| instant(at.0)),
        ]);
        // What holds pods is told below.
        if let Some(message) = node.message.as_ref().filter(|_| !active && node.waiting.is_empty()) {
            table.shortened("  ", message, LINES, "kubectl describe drainplan has all of it");
        }
    }
    if more > 0 {
        table.sentence(&format!("and {more} more"));
    }
    (!shown.is_empty()).then(|| table.render())
}

/// Waiting pods, those that wait for the same together, the worst first.
fn waiting(status: &DrainPlanStatus, width: usize) -> Option<String> {
    // By reason and budgets: pods with their nodes.
    type Group<'s> = Vec<(&'s WaitingPod, &'s str)>;
    let mut groups: BTreeMap<(String, Vec<String>), Group<'_>> = BTreeMap::new();
    for node in &status.nodes {
        for pod in &node.waiting {
            let budgets: Vec<String> =
                pod.budgets.iter().map(|budget| format!("{}/{budget}", pod.namespace)).collect();
            groups.entry((pod.reason.clone(), budgets)).or_default().push((pod, &node.name));
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    let worst = |pods: &[(&WaitingPod, &str)]| pods.iter().map(|(pod, _)| pod.outlook).max();
    groups.sort_by_key(|(_, pods)| std::cmp::Reverse((worst(pods), pods.len())));
    let not_listed: i32 = status.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.more_waiting));
    let mut table = Table::new(&["WAITING", "REASON", "BUDGET", "OUTLOOK", "SINCE"], width);
    for ((reason, budgets), pods) in groups.iter().take(GROUPS) {
        let since = pods.iter().map(|(pod, _)| pod.since.0).min();
        let Some((first, _)) = pods.iter().rev().max_by_key(|(pod, _)| pod.outlook) else { continue };
        table.row(vec![
            if pods.len() == 1 { "1 pod".to_owned() } else { format!("{} pods", pods.len()) },
            reason.clone(),
            table::names(budgets),
            format!("{:?}", first.outlook),
            since.map_or_else(|| "-".to_owned(), instant),
        ]);
        let named = pods.iter().take(NAMED);
        let mut names: Vec<String> =
            named.map(|(pod, node)| format!("{}/{} on {node}", pod.namespace, pod.pod)).collect();
        if pods.len() > NAMED {
            names.push(format!("{} more", pods.len() - NAMED));
        }
        let whole = format!("kubectl drainplan explain pod {}/{}", first.namespace, first.pod);
        table.shortened("  ", &format!("{}: {}", names.join(", "), first.message), LINES, &whole);
    }
    let rest: usize = groups.iter().skip(GROUPS).map(|(_, pods)| pods.len()).sum();
    let rest = rest.saturating_add(usize::try_from(not_listed).unwrap_or(0));
    if rest > 0 {
        table.sentence(&format!("and {rest} more pods"));
    }
    (!groups.is_empty()).then(|| table.render())
}
