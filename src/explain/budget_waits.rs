//! Pods whose budget has no disruption left.

use jiff::Timestamp;

use super::case::Case;
use super::owners::Owner;
use super::view::{self, Away, View};
use super::{Patience, Said, findings, hanging, words};
use crate::api::Outlook;
use crate::budget::{Cause, Numbers};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{Cluster, Pdb, Pod, Scale, UnhealthyPolicy};

/// The controller has not looked at the budget for too long.
pub(super) fn stale(case: &Case<'_, '_>) -> Option<Said> {
    let written = not_observed(case.held()?.budget, case.now, case.patience);
    written.or_else(|| not_counted(case, case.held_by_arithmetic()?))
}

/// Its status has not been what it should be for longer than the controller ever takes.
fn not_counted(case: &Case<'_, '_>, view: &View<'_>) -> Option<Said> {
    let since = case.lasts(view.stale.as_ref()?)?;
    let View { budget, standing, .. } = view;
    let (name, terms) = (words::budget(budget), words::terms(budget, standing));
    if budget.behind() {
        let message = format!(
            "Budget {name} ({terms}) is not processed since {} at the latest (generation {}, observed {}), so the \
             server refuses evictions: is the disruption controller down?",
            words::at(since),
            budget.generation,
            budget.status.observed_generation
        );
        return Some(Said { outlook: Outlook::MayClear, message, remedy: RUNNING.to_owned() });
    }
    let message = format!(
        "Budget {name} ({terms}) reports {}, and by its pods and owners it should report {}, since {} at the latest",
        numbers(&Numbers::reported(budget)),
        numbers(&standing.computed.numbers),
        words::at(since),
    );
    let (why, remedy) = match findings::overlaps(case.cluster, budget) {
        // Of the budgets of one pod the controller recounts only one (`disruption.go: getPdbForPod`).
        Some((_, overlap, remedy)) => (
            format!(". The disruption controller recounts only one of the budgets of a pod: {overlap}"),
            remedy,
        ),
        None => (": is the disruption controller down?".to_owned(), RUNNING.to_owned()),
    };
    Some(Said { outlook: Outlook::MayClear, message: message + &why, remedy })
}

/// What a budget that is left alone asks for.
const RUNNING: &str = "check that kube-controller-manager runs and is not overloaded";

/// `expected 3, healthy 3, desired 2, allowed 1`.
fn numbers(of: &Numbers) -> String {
    format!(
        "expected {}, healthy {}, desired {}, allowed {}",
        of.expected_pods, of.current_healthy, of.desired_healthy, of.disruptions_allowed
    )
}

/// Its present spec is older than the controller ever takes.
pub(super) fn not_observed(budget: &Pdb, now: Timestamp, patience: &Patience) -> Option<Said> {
    let since = budget.spec_since.filter(|since| now.duration_since(*since) >= patience.stale)?;
    let late = budget.behind() && budget.status.sync_failed.is_none();
    late.then(|| Said {
        outlook: Outlook::MayClear,
        message: format!(
            "Budget {} ({}) was written {} and is not processed since (generation {}, observed {}), so the server \
             refuses evictions: is the disruption controller down?",
            words::budget(budget),
            words::field(budget),
            words::at(since),
            budget.generation,
            budget.status.observed_generation
        ),
        remedy: RUNNING.to_owned(),
    })
}

/// Pods of the budget are unready, and time alone does not repair them.
pub(super) fn unhealthy(case: &Case<'_, '_>) -> Option<Said> {
    let held = case.held_by_arithmetic()?;
    let broken = &held.away.unready;
    if broken.is_empty() || held.time_helps() {
        return None;
    }
    let itself = broken.iter().any(|pod| pod.uid == case.pod.uid);
    let others: Vec<&Pod> = broken.iter().copied().filter(|pod| pod.uid != case.pod.uid).collect();
    let unready = if others.is_empty() {
        String::new()
    } else {
        format!(" Unready: {}.", words::list(&others, |pod| words::ailing(case.cluster, pod)))
    };
    let own = if itself {
        let (ailment, policy) = (words::ailment(case.cluster, case.pod), policy_words(held.budget));
        format!(" This pod is itself unready ({ailment}), and {policy}.")
    } else {
        String::new()
    };
    Some(Said {
        outlook: Outlook::MayClear,
        message: head(case, held) + &unready + &own,
        remedy: unhealthy_remedy(case.cluster, held.budget, &others, itself.then_some(case.pod)),
    })
}

fn policy_words(budget: &Pdb) -> &'static str {
    match budget.unhealthy_policy {
        UnhealthyPolicy::AlwaysAllow => "unhealthyPodEvictionPolicy AlwaysAllow lets it go",
        UnhealthyPolicy::IfHealthyBudget | UnhealthyPolicy::Other => {
            "unhealthyPodEvictionPolicy IfHealthyBudget lets unready pods go only while healthy ≥ desired > 0"
        }
    }
}

fn unhealthy_remedy(cluster: &Cluster, budget: &Pdb, others: &[&Pod], itself: Option<&Pod>) -> String {
    let broken: Vec<&Pod> = itself.into_iter().chain(others.iter().copied()).collect();
    let repair = words::repair(cluster, &broken);
    if itself.is_some() {
        format!(
            "{repair}, or set unhealthyPodEvictionPolicy: AlwaysAllow in budget {}",
            words::budget(budget)
        )
    } else {
        repair
    }
}

/// The pods that are unready, too, where those told of before would not hold the budget alone.
pub(super) fn unready_too(case: &Case<'_, '_>, view: &View<'_>, told: usize) -> String {
    let unready = &view.away.unready;
    if unready.is_empty() || !view.suffices_without(told) {
        return String::new();
    }
    format!(" Unready, too: {}.", words::list(unready, |pod| words::ailing(case.cluster, pod)))
}

/// No disruption is left now; time brings one back.
pub(super) fn exhausted(case: &Case<'_, '_>) -> Option<Said> {
    let held = case.held_by_arithmetic()?;
    let message = head(case, held) + &being_replaced(case, held);
    if !held.hanging.is_empty() && !held.time_helps() {
        let remedy = hanging::remedy(case, &held.hanging);
        return Some(Said { outlook: Outlook::MayClear, message, remedy });
    }
    let unsure = perhaps_for_ever(case, held, &message).or_else(|| scale_unread(held, &message));
    unsure.or_else(|| {
        let remedy = exhausted_remedy(case.verdict.cause, held);
        Some(Said { outlook: Outlook::WillClear, message, remedy })
    })
}

/// Time does it only if pods that are going are replaced, and nobody says whether they are.
fn perhaps_for_ever(case: &Case<'_, '_>, held: &View<'_>, message: &str) -> Option<Said> {
    let unsure = held.perhaps_not_replaced(case.cluster);
    if unsure.is_empty() || held.suffices_without(unsure.len()) || planted(Planted::ReplacedForSure) {
        return None;
    }
    let pods = words::list(&unsure, |(_, pod)| pod.name.to_string());
    let (owner, _) = unsure.first()?;
    let (name, owner) = (words::budget(held.budget), owner.name());
    let rest =
        held.standing.attainable.attainable.saturating_sub(i32::try_from(unsure.len()).unwrap_or(i32::MAX));
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "{message} {owner} has no scale, so it is not known whether {pods} will be replaced; if not, the budget can \
             never allow an eviction."
        ),
        remedy: format!(
            "check that {owner} creates its pods again; if it does not, write minAvailable: {} instead of {} in budget \
             {name}",
            rest.saturating_sub(1).max(0),
            words::field(held.budget)
        ),
    })
}

/// Nobody knows how many pods the owners want, and those that are away would not give the budget room by what is known.
fn scale_unread(held: &View<'_>, message: &str) -> Option<Said> {
    if held.standing.attainable.unread.is_empty() || held.comes_back_into_room() {
        return None;
    }
    let unread: Vec<&Owner<'_>> = held.owners.iter().filter(|owner| owner.unread).collect();
    let owners = words::list(&unread, |owner| owner.name());
    let said = if held.standing.computed.unread_scales.is_empty() {
        format!(" The scale of {owners} could not be read.")
    } else {
        String::new()
    };
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!("{message}{said} No pod is on its way that would give the budget room."),
        remedy: format!(
            "let the scale of {owners} be read (the verb get on its scale subresource; with --from its object and its \
             CustomResourceDefinition): only that tells whether budget {} ever allows an eviction",
            words::budget(held.budget)
        ),
    })
}

fn exhausted_remedy(cause: Cause, held: &View<'_>) -> String {
    let name = words::budget(held.budget);
    if cause == Cause::StillProcessing {
        return format!(
            "nothing to change: wait until the disruption controller has processed budget {name}"
        );
    }
    if held.stale.is_some() {
        return format!(
            "nothing to change yet: the disruption controller counts budget {name} again within seconds; if its \
             status stays as it is, {RUNNING}"
        );
    }
    format!(
        "nothing to change: wait until the replacements are Ready; to go faster let budget {name} allow more at once"
    )
}

fn being_replaced(case: &Case<'_, '_>, view: &View<'_>) -> String {
    let Away { terminating, evicted, starting, .. } = &view.away;
    let named: Vec<String> = evicted
        .iter()
        .map(|pod| let_go(view.budget, pod))
        .chain(terminating.iter().map(|pod| going(case, pod)))
        .chain(starting.iter().map(|pod| starting_since(pod)))
        .collect();
    if !named.is_empty() {
        return format!(" Being replaced or starting: {}.", words::list(&named, Clone::clone));
    }
    let owners = view.owners.iter();
    let short: Vec<String> =
        owners.filter_map(|owner| Some(owner.shortage(case.cluster)?.of(owner))).collect();
    if short.is_empty() { String::new() } else { format!(" {}.", words::list(&short, Clone::clone)) }
}

fn let_go(budget: &Pdb, pod: &Pod) -> String {
    match budget.status.disrupted_pods.get(&pod.name) {
        Some(at) if view::reborn(budget, pod) => format!(
            "{} (Ready, and counted as evicted until {}, like the pod of that name before it)",
            words::placed(pod),
            words::at(at.saturating_add(view::DISRUPTED_POD_LIFE).unwrap_or(Timestamp::MAX))
        ),
        Some(at) => format!("{} (eviction accepted {})", words::placed(pod), words::at(*at)),
        None => format!("{} (eviction sent)", words::placed(pod)),
    }
}

pub(super) fn going(case: &Case<'_, '_>, pod: &Pod) -> String {
    match (pod.deletion, hanging::fate(case.cluster, case.now, case.patience, pod)) {
        (Some(_), Some(fate)) => format!("{} (terminating, and {fate})", words::placed(pod)),
        (Some(deletion), None) => {
            format!("{} (terminating, gone by {})", words::placed(pod), words::at(deletion.at))
        }
        (None, _) => words::placed(pod),
    }
}

fn starting_since(pod: &Pod) -> String {
    match pod.created {
        Some(created) => format!("{} (starting since {})", words::placed(pod), words::at(created)),
        None => words::placed(pod),
    }
}

/// The server answers 403 for the budget.
pub(super) fn refused(case: &Case<'_, '_>) -> Option<Said> {
    let held = case.held()?;
    let name = words::budget(held.budget);
    let message = match case.verdict.cause {
        Cause::TooManyDisruptedPods => format!(
            "Budget {name} lists {} evictions that the disruption controller has not confirmed, and the server \
             refuses more than 2000 (403).",
            held.budget.status.disrupted_pods.len()
        ),
        _ => format!(
            "Budget {name} reports disruptionsAllowed {}, and the server refuses evictions below 0 (403).",
            held.budget.status.disruptions_allowed
        ),
    };
    Some(Said {
        outlook: Outlook::MayClear,
        message,
        remedy:
            "check that kube-controller-manager runs: its disruption controller rewrites the budget's status"
                .to_owned(),
    })
}

/// The budget and its four numbers.
pub(super) fn head(case: &Case<'_, '_>, view: &View<'_>) -> String {
    let View { budget, standing, .. } = view;
    let (name, terms) = (words::budget(budget), words::terms(budget, standing));
    let numbers = &standing.computed.numbers;
    let counted = format!(
        "expected {}, healthy {}, desired {}",
        numbers.expected_pods, numbers.current_healthy, numbers.desired_healthy
    );
    let text = match case.verdict.cause {
        Cause::StillProcessing => format!(
            "Budget {name} ({terms}) allows 0 evictions now: the disruption controller has not processed its \
             present spec (generation {}, observed {}).",
            budget.generation, budget.status.observed_generation
        ),
        Cause::Allowed => format!(
            "Budget {name} ({terms}) reports disruptionsAllowed {}, but {} may be spent now: {counted}{}.",
            budget.status.disruptions_allowed,
            standing.room.max(0),
            in_flight(case, budget)
        ),
        _ => {
            format!("Budget {name} ({terms}) allows 0 evictions now: {counted}{}.", reported(budget, numbers))
        }
    };
    let unread: Vec<String> = standing
        .computed
        .unread_scales
        .iter()
        .map(|(_, owner)| match case.cluster.scale(&owner.uid) {
            Some(Scale::Unreadable(why)) => format!("{} {} ({})", owner.kind, owner.name, words::quote(why)),
            _ => format!("{} {}", owner.kind, owner.name),
        })
        .collect();
    if unread.is_empty() {
        return text;
    }
    let unread = words::list(&unread, Clone::clone);
    format!("{text} The scale of {unread} could not be read: the numbers are those reported.")
}

/// What the status says where it differs: the server goes by that.
fn reported(budget: &Pdb, computed: &Numbers) -> String {
    let Numbers { expected_pods, current_healthy, desired_healthy, disruptions_allowed } =
        Numbers::reported(budget);
    if Numbers::reported(budget) == *computed {
        return String::new();
    }
    format!(
        " (its status still says expected {expected_pods}, healthy {current_healthy}, desired {desired_healthy}, \
         allowed {disruptions_allowed})"
    )
}

fn in_flight(case: &Case<'_, '_>, budget: &Pdb) -> String {
    match case.cluster.evictions.of_budget(&budget.key()) {
        0 => String::new(),
        number => format!(", {} in flight", words::count(number, "eviction")),
    }
}
