//! What should have come of it, and whether it did.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use drainplan::api::{DrainPlanStatus, NodePhase, Outlook, PlanPhase};
use kube::ResourceExt as _;

use super::harness::{Installation, Request, Sight, cordoned, marks, ready_pods};
use super::screen::{Colour, paint, say};
use super::story::{HELD, PLAN, REPLICAS, Story, WITH_SHOP};

/// Stands before what is not as expected.
pub const DIFFERS: &str = "✗";
/// How long nodes and events may take after the plan has ended.
const SETTLES: Duration = Duration::from_secs(5);

/// What was found out about one expectation: nothing, or what is instead.
type Finding = Result<(), String>;

/// Prints what was expected and what differs; whether nothing does.
pub async fn print(installation: &Installation, story: &Story, status: &DrainPlanStatus) -> Result<bool> {
    let evictions = installation.audit().evictions("shop")?;
    let untouched = untouched(story, &installation.audit().evictions("billing")?);
    let findings: Vec<(&str, Finding)> = vec![
        ("the plan ended Failed, 3 of 4 nodes drained", plan_ended(status)),
        ("worker-1, worker-3 and worker-4 were drained of two pods each", drained(status)),
        ("worker-2 failed as Blocked", blocked(status)),
        ("worker-2 was never cordoned, no pod on it was asked to go", untouched),
        ("billing/ledger on worker-2: BudgetNeverAllows, NeverClears, with the numbers", explained(status)),
        ("shop/web waited for time alone: BudgetExhausted, WillClear", only_slow(story)),
        ("six evictions accepted, one for each pod, none refused (audit log)", moved(story, &evictions)),
        ("never fewer than 5 of 6 pods of shop/web Ready", stayed_ready(story)),
        ("all nodes schedulable at the end, nothing of ours left on them", given_back(story).await),
        ("events for the start, every node's start and end, and the end", events(story).await),
    ];
    say!("\n{}", paint(Colour::Faint, "what should have come of it"));
    for (what, finding) in &findings {
        match finding {
            Ok(()) => say!("  {} {what}", paint(Colour::Green, "✓")),
            Err(instead) => say!("  {} {what}; instead: {instead}", paint(Colour::Red, DIFFERS)),
        }
    }
    Ok(findings.iter().all(|(_, finding)| finding.is_ok()))
}

fn check(good: bool, instead: impl FnOnce() -> String) -> Finding {
    if good { Ok(()) } else { Err(instead()) }
}

fn plan_ended(status: &DrainPlanStatus) -> Finding {
    let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
    let progress = status.progress.as_deref().unwrap_or("-");
    check(status.phase == Some(PlanPhase::Failed) && progress == "3/4", || format!("{phase} {progress}"))
}

fn drained(status: &DrainPlanStatus) -> Finding {
    let done = status.nodes.iter().filter(|node| node.phase == NodePhase::Done && node.pods_evicted == 2);
    let done: BTreeSet<&str> = done.map(|node| node.name.as_str()).collect();
    check(WITH_SHOP.iter().all(|worker| done.contains(worker)), || format!("only {done:?}"))
}

fn blocked(status: &DrainPlanStatus) -> Finding {
    let Some(node) = status.nodes.iter().find(|node| node.name == HELD) else {
        return Err("it is not reported".to_owned());
    };
    let reason = node.reason.as_deref().unwrap_or("-");
    check(node.phase == NodePhase::Failed && reason == "Blocked", || format!("{:?}, {reason}", node.phase))
}

fn untouched(story: &Story, evictions: &[Request]) -> Finding {
    let was_cordoned = story.nodes.with(|record| {
        record.events.iter().any(|seen| seen.object.name_any() == HELD && cordoned(&seen.object))
    });
    check(!was_cordoned && evictions.is_empty(), || {
        format!("{}cordoned, {} evictions", if was_cordoned { "" } else { "not " }, evictions.len())
    })
}

fn explained(status: &DrainPlanStatus) -> Finding {
    let of_ledger = status.nodes.iter().filter(|node| node.name == HELD).flat_map(|node| &node.waiting);
    let (said, other): (Vec<_>, Vec<_>) = of_ledger.partition(|pod| {
        pod.reason == "BudgetNeverAllows"
            && pod.outlook == Outlook::NeverClears
            && pod.budgets == ["ledger"]
            && pod.message.contains("minAvailable 2")
    });
    check(said.len() == 2 && other.is_empty(), || format!("{} so, {} otherwise", said.len(), other.len()))
}

fn only_slow(story: &Story) -> Finding {
    let mut reasons = BTreeSet::new();
    for node in story.plan.statuses().iter().flat_map(|status| &status.nodes) {
        let shop = node.waiting.iter().filter(|pod| pod.namespace == "shop");
        reasons.extend(shop.map(|pod| format!("{} {:?}", pod.reason, pod.outlook)));
    }
    check(reasons.iter().eq(["BudgetExhausted WillClear"]), || format!("{reasons:?}"))
}

fn moved(story: &Story, evictions: &[Request]) -> Finding {
    let ours = |eviction: &&Request| eviction.code == 201 && eviction.user == Installation::user();
    let accepted: Vec<&str> = evictions.iter().filter(ours).filter_map(Request::precondition).collect();
    let each = story.originals.iter().all(|uid| accepted.contains(&uid.as_str()));
    check(each && accepted.len() == REPLICAS && evictions.len() == REPLICAS, || {
        format!("{} accepted of {} sent", accepted.len(), evictions.len())
    })
}

fn stayed_ready(story: &Story) -> Finding {
    let mut fewest = usize::MAX;
    story.shop.with(|record| {
        record.replay(story.shop.listed(), |pods, _| {
            fewest = fewest.min(ready_pods(pods.values().map(AsRef::as_ref), "web"));
        });
    });
    check(fewest >= REPLICAS - 1, || format!("only {fewest} at some moment"))
}

async fn given_back(story: &Story) -> Finding {
    let clean = story.nodes.until("given back", SETTLES, |record| {
        let left = record.now.values().filter(|node| cordoned(node) || !marks(node).is_empty());
        let left: Vec<String> = left.map(|node| format!("{} {:?}", node.name_any(), marks(node))).collect();
        if left.is_empty() { Sight::Found(()) } else { Sight::NotYet(left.join(", ")) }
    });
    clean.await.map_err(|error| error.to_string())
}

async fn events(story: &Story) -> Finding {
    const WANTED: [(&str, usize); 6] = [
        ("Running", 1),
        ("NodeBlocked", 1),
        ("NodeDraining", 3),
        ("NodeDrained", 3),
        ("NodeFailed", 1),
        ("Failed", 1),
    ];
    let all = story.events.until("events", SETTLES, |record| {
        let about = |reason: &str| {
            let events = record.now.values().filter(|event| event.reason.as_deref() == Some(reason));
            let regarding = events.filter_map(|event| event.regarding.as_ref());
            regarding.filter(|object| object.name.as_deref() == Some(PLAN)).count()
        };
        let short: Vec<String> = WANTED
            .iter()
            .filter(|(reason, wanted)| about(reason) != *wanted)
            .map(|(reason, wanted)| format!("{} {reason} instead of {wanted}", about(reason)))
            .collect();
        if short.is_empty() { Sight::Found(()) } else { Sight::NotYet(short.join(", ")) }
    });
    all.await.map_err(|error| error.to_string())
}
