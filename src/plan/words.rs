//! The sentences about nodes and plans. Those about pods come from room `explain`.

use jiff::Timestamp;

use super::gates::health::Health;
use super::survey::{Survey, Surveyed};
use crate::api::{LastRun, Nodes, Outlook, PlanDuration, PlanPhase, Reason, WaitingPod, names};
use crate::cluster::Node;
use crate::explain::Wait;

/// How many pods or nodes a sentence names.
const NAMED: usize = 3;

/// An instant as people and status write it.
pub fn instant(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `a, b, c and 4 more`.
pub fn list(names: &[String]) -> String {
    let named = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// `1 pod`, `2 pods`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Why a plan without nodes does nothing.
pub fn no_nodes(nodes: &Nodes) -> String {
    if nodes.selector.is_some() {
        "nodes.selector matches no node: correct the selector, or label the nodes".to_owned()
    } else {
        format!("there is no node named {}: correct nodes.names", list(&nodes.names))
    }
}

/// Why a plan with too many nodes does nothing.
pub fn too_many_nodes(selected: usize, most: usize) -> String {
    format!("the plan has {selected} nodes and can take {most}: write several plans, each for a part of them")
}

/// Why no node is started while no window is open.
pub fn awaiting_window(excluded: bool, opens: Option<Timestamp>) -> String {
    match opens {
        Some(opens) if excluded => format!("an exclusion is in force until {}", instant(opens)),
        Some(opens) => format!("no window is open; the next one opens at {}", instant(opens)),
        None => "no window is open, and by windows and exclusions none will ever be: correct them".to_owned(),
    }
}

/// Why no node is started at the end of a window.
pub fn window_too_short(
    excluded: bool,
    closes: Timestamp,
    needed: &PlanDuration,
    opens: Option<Timestamp>,
) -> String {
    let (ends, begins) = if excluded {
        ("an exclusion begins at", "it ends at")
    } else {
        ("the window closes at", "the next one opens at")
    };
    let next = opens.map_or_else(String::new, |opens| format!("; {begins} {}", instant(opens)));
    format!("{ends} {} and a node may take {needed} (timeouts.node){next}", instant(closes))
}

/// Why a plan cannot run in each of its windows.
pub fn never_opens_again() -> String {
    "repeat: EachWindow begins a run when a window opens, and these windows touch each other, so that none ever does: \
     write windows with time between them"
        .to_owned()
}

/// When a plan may work.
pub fn window_open(closes: Option<Timestamp>) -> String {
    match closes {
        Some(closes) => format!("open until {}", instant(closes)),
        None => "open, and no end is in sight".to_owned(),
    }
}

/// How the last run has ended, and when the next one begins.
pub fn between_runs(last: &LastRun, opens: Option<Timestamp>) -> String {
    let how = if last.phase == PlanPhase::Completed { "completed" } else { "failed" };
    let next = opens.map_or_else(String::new, |opens| format!("; the next one begins at {}", instant(opens)));
    format!("run {} {how}: {}{next}", last.run, last.message)
}

/// Why a node that could be started is not.
pub fn awaiting_slot(limit: usize) -> String {
    let at_a_time = if limit == 1 { "one node is".to_owned() } else { format!("{limit} nodes are") };
    format!("{at_a_time} drained at a time (pace.maxConcurrentNodes); this one has not had its turn")
}

/// Why a node has given way to another.
pub fn gives_way(node: &str, to: &str, lacking: &str) -> String {
    bounded(
        format!(
            "node {node} gives way to {to}: both wait for budgets whose replacement {lacking} finds no node because \
             they are cordoned; it is taken up again, last, when {to} has ended"
        ),
        512,
    )
}

/// Why a node that has given way is not started.
pub fn gave_way(to: &str) -> String {
    format!(
        "it gave way to node {to}, whose pods wait for the same budgets, and is taken up when that one has ended"
    )
}

/// Why a node waits for those of another domain.
pub fn awaiting_domain(key: &str, domain: &str, node: &str) -> String {
    let these = if domain.is_empty() {
        format!("nodes without the label {key}")
    } else {
        format!("nodes with {key}={domain}")
    };
    format!("{these} are finished first (pace.topologyKey), and {node} is still in progress")
}

/// Why no node is started so soon after another one was done.
pub fn awaiting_soak(node: &str, since: Timestamp, until: Timestamp) -> String {
    format!(
        "node {node} is done since {}, and by pace.soak the next one is started at {} at the earliest",
        instant(since),
        instant(until)
    )
}

/// Why no node is started while owners are short of Ready pods.
pub fn awaiting_replacements(namespace: &str, lacks: &str) -> String {
    format!("pods of this plan are not back (pace.awaitReplacements), namespace {namespace}: {lacks}")
}

/// Why no node is started while the status can hold no more owners.
pub fn too_many_moved(owners: usize) -> String {
    format!(
        "pods of {} are being moved or not back, and a status can remember no more",
        count(owners, "owner")
    )
}

/// Which nodes are unhealthy, and how many may be.
pub fn unhealthy(health: &Health) -> String {
    let nodes: Vec<String> =
        health.unhealthy.iter().map(|(name, ailment)| format!("{name} {ailment}")).collect();
    let (are, which) = if nodes.len() == 1 { ("is", list(&nodes)) } else { ("are", list(&nodes)) };
    format!(
        "{} of {} {are} unhealthy ({which}), and pace.maxUnhealthyNodes allows {}",
        nodes.len(),
        count(health.all, "node"),
        health.limit
    )
}

/// Why the only control-plane node is never started.
pub fn only_control_plane() -> String {
    "it is the only control-plane node, so it is never drained: add another one, or take it off the plan"
        .to_owned()
}

/// Why a control-plane node waits for another.
pub fn control_plane_at_risk(other: &str, drained: bool) -> String {
    let away = if drained { "in the hands of a plan" } else { "not Ready" };
    format!("control-plane node {other} is {away}, and only one of them may be away at a time")
}

/// Why no plan starts a node.
pub fn too_many_cordoned(cordoned: usize, limit: usize) -> String {
    format!(
        "all plans together hold {} cordoned, and the controller's --max-cordoned-nodes allows {limit}",
        count(cordoned, "node")
    )
}

/// Why a node is not touched, if a pod on it never clears.
pub fn blocked(survey: &Survey) -> Option<String> {
    let blockers: Vec<&Surveyed> = survey.never_clear().collect();
    let first = blockers.first()?;
    let can = format!("not touched: {} can never go", count(blockers.len(), "pod"));
    let first = sentence(first, false);
    Some(if blockers.len() == 1 { format!("{can}: {first}") } else { format!("{can}, the first is {first}") })
}

/// A node was deleted while it was being drained, and so many pods are still bound to it.
pub fn node_gone(node: &str, pods: usize) -> String {
    let gone = format!("node {node} was deleted while it was being drained");
    if pods == 0 {
        return gone;
    }
    let (are, them) = if pods == 1 { ("is", "it") } else { ("are", "them") };
    format!(
        "{gone}; {} {are} still bound to it: the pod garbage collection of kube-controller-manager marks {them} Failed \
         and deletes {them}, 40 to 80 s after the node has gone",
        count(pods, "pod")
    )
}

/// Why a node has failed at its deadline.
pub fn timed_out(survey: &Survey) -> String {
    let left = survey.pods.len();
    if left == 0 {
        return "no pod was seen on it at the deadline, and no list of the server had confirmed that by then"
            .to_owned();
    }
    let waiting = survey.waiting().next().map(|surveyed| sentence(surveyed, true));
    let what = waiting.unwrap_or_else(|| {
        "nothing keeps them from going, and it was not seen in time that they went".to_owned()
    });
    format!("{} left at the deadline: {what}", count(left, "pod"))
}

/// Why a node without pods is not empty.
pub fn volumes_attached(attached: &[String]) -> String {
    let are = if attached.len() == 1 { "is" } else { "are" };
    format!(
        "its pods are gone, and {} {are} still attached to it: {}. They are detached when the kubelet has unmounted them; if \
         that lasts look at the CSI driver, or write handOff.awaitVolumesDetached: false",
        count(attached.len(), "volume"),
        list(attached)
    )
}

/// What a node that is handed off waits for, and until when.
pub fn handed_off(awaited: &str, deadline: Option<Timestamp>) -> String {
    match deadline {
        Some(deadline) => format!("empty and handed off until {}: {awaited}", instant(deadline)),
        None => format!("empty and handed off: {awaited}"),
    }
}

/// Why a node has failed at the end of its hand-off.
pub fn hand_off_timed_out(timeout: &PlanDuration, node: &Node, awaited: &str) -> String {
    let stays = if &*node.ready == "True" {
        String::new()
    } else {
        format!(", and it stays cordoned until somebody runs `kubectl uncordon {}`", node.name)
    };
    format!(
        "its hand-off had not ended {timeout} after it was empty (timeouts.handOff){stays}; then it was: {awaited}"
    )
}

/// Why a plan ends with the hand-off that has failed.
pub fn hand_off_ends_plan(node: &str) -> String {
    format!("node {node} did not come back from its hand-off, and the plan takes no further node after that")
}

/// A node that is awaited after a reboot, before it.
pub fn not_rebooted(boot_id: &str) -> String {
    if boot_id.is_empty() {
        return "waits until it has rebooted; its kubelet reports no boot ID".to_owned();
    }
    format!("waits until it has rebooted; its boot ID is still {boot_id}")
}

/// A node that is awaited after an upgrade, before it.
pub fn not_upgraded(version: &str) -> String {
    format!("waits until its kubelet has another version than {version}")
}

/// A node after an upgrade.
pub fn upgraded(before: &str, now: &str) -> String {
    format!("its kubelet was {before} and is {now}")
}

/// A node that has come as far as this, and is not well.
pub fn not_ready(so_far: &str, ready: &str) -> String {
    format!("{so_far}, and its condition Ready is {ready}; it is put back into service when that is True")
}

/// A node that nobody has released.
pub fn not_released(node: &str, plan: &str, by: Option<&str>) -> String {
    let (other, overwrite) = match by {
        Some(by) => (format!(" (it names plan {by} now)"), " --overwrite"),
        None => (String::new(), ""),
    };
    let how = format!("kubectl annotate{overwrite} node {node} {}={plan}", names::RELEASE);
    format!("waits until somebody releases it by an annotation{other}: {how}")
}

/// Why a node stays cordoned after its hand-off.
pub fn left_cordoned(node: &str, plan: &str, ready: &str) -> String {
    format!(
        "node {node} stays cordoned after its hand-off by plan {plan}, because its condition Ready is {ready}; once it \
         is well: kubectl uncordon {node}"
    )
}

/// Why a plan stands still when nothing is left but blocked nodes.
pub fn all_blocked(nodes: usize, until: Timestamp, which: &str) -> String {
    let fail = if nodes == 1 { "1 node fails".to_owned() } else { format!("{nodes} nodes fail") };
    format!("no node can be started; {fail} at {} unless somebody changes that; {which}", instant(until))
}

/// Why a node of another plan is not started.
pub fn held_by(plan: &str) -> String {
    format!("held by plan {plan}")
}

/// Why a node that another tool is about to take away is not started.
pub fn taken_away(taint: &str) -> String {
    format!("another tool takes it away: it carries the taint {taint}")
}

/// Another plan was here before.
pub fn drained_again(plan: &str, at: Option<Timestamp>) -> String {
    match at {
        Some(at) => format!("plan {plan} drained it at {}, so it is drained again", instant(at)),
        None => format!("plan {plan} has left it cordoned, so it is drained again"),
    }
}

/// What still is on a node that is being drained.
pub fn left(pods: usize, waiting: i32, first: Option<&WaitingPod>) -> String {
    let left = format!("{} left", count(pods, "pod"));
    match first {
        Some(first) => format!(
            "{left}, {waiting} cannot go now; first {}/{} ({})",
            first.namespace, first.pod, first.reason
        ),
        None => left,
    }
}

/// A waiting pod and what holds it.
fn sentence(surveyed: &Surveyed, ended: bool) -> String {
    let name = format!("{}/{}", surveyed.pod.namespace, surveyed.pod.name);
    match &surveyed.judgement.wait {
        Some(wait) => format!("pod {name} ({}): {}", wait.reason, pod_message(wait, ended)),
        None => format!("pod {name}"),
    }
}

/// `BudgetNeverAllows of shop/web`; budgets only where they are the reason.
pub fn cause(reason: &str, namespace: &str, budgets: &[&str]) -> String {
    let about_budgets = Reason::parse(reason).is_some_and(Reason::is_about_budgets);
    let budgets: Vec<String> = budgets.iter().map(|name| format!("{namespace}/{name}")).collect();
    if about_budgets && !budgets.is_empty() {
        format!("{reason} of {}", budgets.join(" and "))
    } else {
        reason.to_owned()
    }
}

/// The same of a pod that waits.
pub fn cause_of(pod: &WaitingPod) -> String {
    let budgets: Vec<&str> = pod.budgets.iter().map(String::as_str).collect();
    cause(&pod.reason, &pod.namespace, &budgets)
}

/// Several pods in few words, and one of them in full: the sentence about it may speak of "this pod".
pub fn of_pods(pods: &[&WaitingPod], name: impl Fn(&WaitingPod) -> String) -> String {
    let Some(first) = pods.first() else { return String::new() };
    let named: Vec<String> = pods.iter().map(|pod| name(pod)).collect();
    let names = format!("{}: {}", count(named.len(), "pod"), list(&named));
    match pods.len() {
        1 => format!("{names}: {}", first.message),
        _ => format!("{names}; {}/{}: {}", first.namespace, first.pod, first.message),
    }
}

/// A pod's message with its remedy, as two sentences. Once the node has ended there is nothing left to wait for.
pub fn pod_message(wait: &Wait, ended: bool) -> String {
    let remedy = if ended && wait.outlook == Outlook::WillClear {
        "more time may do it: write longer timeouts in the next plan"
    } else {
        wait.remedy.as_str()
    };
    let message = wait.message.trim_end_matches('.');
    let mut letters = remedy.chars();
    match letters.next() {
        Some(first) => format!("{message}. {}{}", first.to_uppercase(), letters.as_str()),
        None => message.to_owned(),
    }
}

/// The text within `limit` bytes, cut behind a word where that leaves more than half of it.
pub fn bounded(text: String, limit: usize) -> String {
    const MARK: &str = " …";
    if text.len() <= limit {
        return text;
    }
    if limit < MARK.len() {
        return String::new();
    }
    let mut end = limit - MARK.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    // Half a name is no name.
    let words = kept.rfind(char::is_whitespace).and_then(|at| kept.get(..at));
    format!("{}{MARK}", words.filter(|words| words.len() > kept.len() / 2).unwrap_or(kept))
}
