//! What should have come of it, and whether it did.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use drainplan::api::{DrainPlanStatus, NodePhase, Outlook, PlanPhase, WaitingPod};
use kube::ResourceExt as _;

use super::harness::{Installation, Request, Sight, cordoned, marks, ready_pods};
use super::held::{HELD, Held};
use super::screen::{Colour, paint, say};
use super::server;
use super::story::{ON_EACH, PLAN, REPLICAS, Story, WITH_SHOP};

/// Stands before what is not as expected.
pub const DIFFERS: &str = "✗";
/// Stands behind the expectation, before what is instead.
pub const INSTEAD: &str = "; instead: ";
/// How long nodes and events may take after the plan has ended.
const SETTLES: Duration = Duration::from_secs(5);

/// What is expected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    Ended,
    Drained,
    Blocked,
    Untouched,
    Explained,
    Shown,
    OnlySlow,
    Refused,
    Moved,
    StayedReady,
    GivenBack,
    Events,
}

use Expectation as E;

/// What becomes of an expectation when the cluster is loaded with budgets that are too lax.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lax {
    Differs,
    Holds,
    /// It hangs on the moment in which a status is written.
    Either,
}

/// All of it, in the order in which it is told.
pub const EXPECTATIONS: [(Expectation, &str, Lax); 12] = [
    (E::Ended, "the plan ended Failed, 4 of 9 nodes drained", Lax::Differs),
    (E::Drained, "worker-1, -4, -8 and -9, and no other, were drained of two pods each", Lax::Differs),
    (E::Blocked, "worker-2, -3, -5, -6 and -7 failed as Blocked", Lax::Differs),
    (
        E::Untouched,
        "no other node was ever cordoned, and nothing was written to those five (audit log)",
        Lax::Differs,
    ),
    (
        E::Explained,
        "each of their pods has its reason, NeverClears, its budgets and what to change",
        Lax::Differs,
    ),
    (E::Shown, "README.md shows just that of each of these services", Lax::Differs),
    (
        E::Refused,
        "asked itself, the server refuses each of these pods, two budgets with 500 (dry run)",
        Lax::Differs,
    ),
    (E::OnlySlow, "shop/web waited for time alone: BudgetExhausted, always WillClear", Lax::Either),
    (
        E::Moved,
        "eight evictions accepted, one for each pod of the shop, none refused (audit log)",
        Lax::Differs,
    ),
    (E::StayedReady, "never fewer than 7 of 8 pods of shop/web Ready", Lax::Differs),
    (E::GivenBack, "all nodes schedulable at the end, nothing of ours left on them", Lax::Holds),
    (E::Events, "events for the start, every node's start and end, and the end", Lax::Differs),
];

/// What was found out about one expectation: nothing, or what is instead.
type Finding = Result<(), String>;

/// Prints what was expected and what differs; whether nothing does.
pub async fn print(installation: &Installation, story: &Story, status: &DrainPlanStatus) -> Result<bool> {
    let audit = installation.audit();
    // Read before the demo itself asks for evictions.
    let evictions = audit.requests(|request| request.subresource == "eviction")?;
    let mut written = Vec::new();
    for held in &HELD {
        written.extend(audit.node_writes(held.node)?.into_iter().filter(Request::is_ours));
    }
    let refused = server::refuses(installation.client(), story).await?;
    say!("\n{}", paint(Colour::Faint, "what should have come of it"));
    let mut good = true;
    for (expectation, what, _) in EXPECTATIONS {
        let finding = match expectation {
            E::Ended => plan_ended(status),
            E::Drained => drained(status),
            E::Blocked => blocked(status),
            E::Untouched => untouched(story, &written),
            E::Explained => explained(story, status),
            E::Shown => shown(story, status),
            E::OnlySlow => only_slow(story),
            E::Refused => nothing_of(&refused),
            E::Moved => moved(story, &evictions),
            E::StayedReady => stayed_ready(story),
            E::GivenBack => given_back(story).await,
            E::Events => events(story).await,
        };
        match &finding {
            Ok(()) => say!("  {} {what}", paint(Colour::Green, "✓")),
            Err(instead) => say!("  {} {what}{INSTEAD}{instead}", paint(Colour::Red, DIFFERS)),
        }
        good &= finding.is_ok();
    }
    Ok(good)
}

fn check(good: bool, instead: impl FnOnce() -> String) -> Finding {
    if good { Ok(()) } else { Err(instead()) }
}

fn nothing_of(differences: &[String]) -> Finding {
    check(differences.is_empty(), || differences.join(", "))
}

fn plan_ended(status: &DrainPlanStatus) -> Finding {
    let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
    let progress = status.progress.as_deref().unwrap_or("-");
    check(status.phase == Some(PlanPhase::Failed) && progress == "4/9", || format!("{phase} {progress}"))
}

fn drained(status: &DrainPlanStatus) -> Finding {
    let done = status.nodes.iter().filter(|node| node.phase == NodePhase::Done);
    let done: Vec<String> = done.map(|node| format!("{} of {}", node.name, node.pods_evicted)).collect();
    check(done == WITH_SHOP.map(|worker| format!("{worker} of {ON_EACH}")), || format!("{done:?}"))
}

fn blocked(status: &DrainPlanStatus) -> Finding {
    let failed = status.nodes.iter().filter(|node| node.phase == NodePhase::Failed);
    let failed: Vec<String> =
        failed.map(|node| format!("{} {}", node.name, node.reason.as_deref().unwrap_or("-"))).collect();
    check(failed == HELD.map(|held| format!("{} Blocked", held.node)), || format!("{failed:?}"))
}

fn untouched(story: &Story, written: &[Request]) -> Finding {
    let cordoned: BTreeSet<String> = story.nodes.with(|record| {
        let cordoned = record.events.iter().filter(|seen| cordoned(&seen.object));
        cordoned.map(|seen| seen.object.name_any()).collect()
    });
    check(cordoned.iter().eq(WITH_SHOP.iter()) && written.is_empty(), || {
        let written: Vec<String> = written.iter().map(Request::line).collect();
        format!("cordoned were {cordoned:?}, and written was {written:?}")
    })
}

fn explained(story: &Story, status: &DrainPlanStatus) -> Finding {
    let mut otherwise = Vec::new();
    for (held, pods) in &story.held {
        for pod in pods {
            let of_node = status.nodes.iter().filter(|node| node.name == held.node);
            let said = of_node.flat_map(|node| &node.waiting).find(|said| said.pod == pod.name_any());
            if !said.is_some_and(|said| says(held, said)) {
                let instead = said.map_or_else(
                    || "not mentioned".to_owned(),
                    |said| {
                        format!("{} {:?} of {:?}: {}", said.reason, said.outlook, said.budgets, said.message)
                    },
                );
                otherwise.push(format!("{}/{} on {}: {instead}", held.space, pod.name_any(), held.node));
            }
        }
    }
    nothing_of(&otherwise)
}

fn says(held: &Held, said: &WaitingPod) -> bool {
    said.namespace == held.space
        && said.reason == held.reason
        && said.outlook == Outlook::NeverClears
        && said.budgets.iter().eq(held.budgets.iter().map(|(name, ..)| name))
        && held.parts.iter().all(|part| said.message.contains(part))
}

/// The page that everybody reads first must not tell of another program.
fn shown(story: &Story, status: &DrainPlanStatus) -> Finding {
    let readme = comparable(include_str!("../../README.md"));
    let mut otherwise = Vec::new();
    for (held, _) in &story.held {
        let of_node = status.nodes.iter().filter(|node| node.name == held.node);
        match of_node.flat_map(|node| &node.waiting).next() {
            Some(said) if readme.contains(&comparable(&said.message)) => {}
            Some(said) => otherwise.push(format!("it lacks “{}”", said.message)),
            None => otherwise.push(format!("nothing is said of {}", held.name())),
        }
    }
    nothing_of(&otherwise)
}

/// In one line, and without the five characters at the end of a pod's name, which nobody knows before.
fn comparable(text: &str) -> String {
    let word = |word: &str| match word.rsplit_once('-') {
        Some((name, end)) if end.len() == 5 => format!("{name}-…"),
        _ => word.to_owned(),
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn only_slow(story: &Story) -> Finding {
    let (mut exhausted, mut otherwise) = (false, BTreeSet::new());
    for node in story.plan.statuses().iter().flat_map(|status| &status.nodes) {
        for pod in node.waiting.iter().filter(|pod| pod.namespace == "shop") {
            exhausted |= pod.reason == "BudgetExhausted";
            if pod.outlook != Outlook::WillClear {
                otherwise.insert(format!("{} {:?}", pod.reason, pod.outlook));
            }
        }
    }
    check(exhausted && otherwise.is_empty(), || format!("BudgetExhausted {exhausted}, {otherwise:?}"))
}

fn moved(story: &Story, evictions: &[Request]) -> Finding {
    let ours = |eviction: &&Request| eviction.code == 201 && eviction.is_ours();
    let accepted: Vec<&str> = evictions.iter().filter(ours).filter_map(Request::precondition).collect();
    let each = story.originals.iter().all(|uid| accepted.contains(&uid.as_str()));
    check(each && accepted.len() == story.originals.len() && evictions.len() == accepted.len(), || {
        let other = evictions.iter().filter(|eviction| !story.is_original(eviction));
        let other: Vec<String> =
            other.map(|it| format!("{}/{} {}", it.namespace, it.name, it.code)).collect();
        format!("{} accepted of {} sent; other pods: {other:?}", accepted.len(), evictions.len())
    })
}

fn stayed_ready(story: &Story) -> Finding {
    let mut fewest = usize::MAX;
    story.shop.with(|record| {
        record.replay(story.shop.listed(), |pods, _| {
            fewest = fewest.min(ready_pods(pods.values().map(AsRef::as_ref), "web"));
        });
    });
    check(fewest + 1 >= story.originals.len(), || format!("only {fewest} of {REPLICAS} at some moment"))
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
        ("NodeBlocked", HELD.len()),
        ("NodeDraining", WITH_SHOP.len()),
        ("NodeDrained", WITH_SHOP.len()),
        ("NodeFailed", HELD.len()),
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
