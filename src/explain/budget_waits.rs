//! Pods that wait for a budget.

use super::case::{Away, Case, Held};
use super::{Said, owners, sync_failed, words};
use crate::api::Outlook;
use crate::budget::Cause;
use crate::cluster::{Amount, Pdb, Pod, Scale, UnhealthyPolicy};

/// Two or more budgets select the pod.
pub(super) fn multiple_budgets(case: &Case<'_>) -> Option<Said> {
    (case.verdict.cause == Cause::SeveralBudgets).then(|| {
        let names = words::list(&case.verdict.budgets, |name| format!("{}/{name}", case.pod.namespace));
        Said {
            outlook: Outlook::NeverClears,
            message: format!(
                "{} budgets select this pod, {names}, and the Eviction API refuses every pod that has more than \
                 one (500), whatever they allow.",
                case.verdict.budgets.len()
            ),
            remedy: format!("delete budgets, or change selectors, so that only one of {names} selects the pod"),
        }
    })
}

/// The disruption controller cannot compute the budget.
pub(super) fn sync_failed(case: &Case<'_>) -> Option<Said> {
    sync_failed::said(case, case.held()?)
}

/// Arithmetic on configuration.
pub(super) fn never_allows(case: &Case<'_>) -> Option<Said> {
    let held = case.held()?;
    let (budget, attainable) = (held.budget, held.standing.attainable);
    if attainable.never && attainable.neither_field {
        return Some(Said {
            outlook: Outlook::NeverClears,
            message: format!(
                "Budget {} has neither minAvailable nor maxUnavailable, and such a budget allows nothing.",
                words::budget(budget)
            ),
            remedy: format!("write maxUnavailable: 1 in budget {}", words::budget(budget)),
        });
    }
    // Nothing required and nothing attainable is another story: no owner counts.
    if !attainable.never || attainable.required <= 0 {
        return None;
    }
    let (owners, bare) = owners::of_budget(case, budget);
    let mut providers: Vec<String> = owners.iter().map(owners::Owner::with_replicas).collect();
    if !bare.is_empty() {
        providers.push(words::count(bare.len(), "pod") + " without a controller");
    }
    let scale = owners.iter().map(|owner| owner.replicas).sum::<Option<i32>>();
    Some(Said {
        outlook: Outlook::NeverClears,
        message: format!(
            "Budget {} ({}) can never allow an eviction: it requires {}, and {} can have {} at most.",
            words::budget(budget),
            words::terms(budget, &held.standing),
            words::count(attainable.required, "healthy pod"),
            words::list(&providers, Clone::clone),
            attainable.attainable,
        ),
        remedy: never_allows_remedy(budget, attainable.attainable, scale),
    })
}

/// What would let one pod go. `maxUnavailable: 1` does so only where all pods of the scale can be healthy.
fn never_allows_remedy(budget: &Pdb, attainable: i32, scale: Option<i32>) -> String {
    let name = words::budget(budget);
    let downtime = if attainable == 1 { " (its only pod is then down while it moves)" } else { "" };
    let change = if scale.is_some_and(|scale| scale > 0 && attainable >= scale) {
        "maxUnavailable: 1".to_owned()
    } else {
        format!("minAvailable: {}", attainable.saturating_sub(1).max(0))
    };
    let more = match (&budget.max_unavailable, &budget.min_available) {
        (None, Some(Amount::Int(required))) if scale == Some(attainable) => {
            format!(", or run at least {} replicas", required.saturating_add(1))
        }
        _ => String::new(),
    };
    format!("in budget {name} write {change} instead of {}{downtime}{more}", words::field(budget))
}

/// The budget counts by its pods' controllers, and they have none.
pub(super) fn counts_none(case: &Case<'_>) -> Option<Said> {
    let held = case.held()?;
    let budget = held.budget;
    let counts_objects =
        budget.max_unavailable.is_none() && matches!(budget.min_available, Some(Amount::Int(_)));
    let (owners, bare) = owners::of_budget(case, budget);
    if counts_objects || !owners.is_empty() || bare.is_empty() {
        return None;
    }
    let alive = bare.iter().filter(|pod| !pod.finished()).count();
    Some(Said {
        outlook: Outlook::NeverClears,
        message: format!(
            "Budget {} ({}) allows 0 evictions: it counts by the scale of its pods' controllers, and none of \
             them has one ({}).",
            words::budget(budget),
            words::terms(budget, &held.standing),
            words::list(&bare, |pod| pod.name.to_string()),
        ),
        remedy: format!(
            "in budget {} write minAvailable: {} instead of {}",
            words::budget(budget),
            alive.saturating_sub(1),
            words::field(budget)
        ),
    })
}

/// The pod's owner wants fewer pods than there are; its controller deletes them itself.
pub(super) fn owner_scaling_down(case: &Case<'_>) -> Option<Said> {
    case.held()?;
    let owner = case.pod.owner.as_ref()?;
    let replicas = match (case.cluster.workload(&owner.uid), case.cluster.scale(&owner.uid)) {
        (Some(workload), _) => workload.replicas,
        (None, Some(Scale::Replicas { replicas, .. })) => *replicas,
        _ => return None,
    };
    let present = case
        .cluster
        .pods_in(&case.pod.namespace)
        .filter(|pod| pod.owner.as_ref().is_some_and(|of| of.uid == owner.uid))
        .filter(|pod| !pod.finished() && !pod.terminating())
        .count();
    let surplus = usize::try_from(replicas).is_ok_and(|replicas| replicas < present);
    surplus.then(|| Said {
        outlook: Outlook::WillClear,
        message: format!(
            "{} {} is scaling down: it wants {} and has {present}; its controller deletes the others itself.",
            owner.kind,
            owner.name,
            words::count(replicas, "pod"),
        ),
        remedy: format!("nothing to change: wait until {} {} has scaled down", owner.kind, owner.name),
    })
}

/// Pods of the budget are unready, and time alone does not repair them.
pub(super) fn unhealthy(case: &Case<'_>) -> Option<Said> {
    let held = case.held()?;
    let refused = matches!(case.verdict.cause, Cause::NegativeAllowance | Cause::TooManyDisruptedPods);
    let away = case.away(held.budget);
    let attainable = held.standing.attainable;
    let unready = i32::try_from(away.unready.len()).unwrap_or(i32::MAX);
    // When all others are back there will be room: then it is only a matter of time.
    let others_suffice = attainable.attainable.saturating_sub(unready) > attainable.required;
    if refused || unready == 0 || others_suffice {
        return None;
    }
    let itself = away.unready.iter().any(|pod| pod.uid == case.pod.uid);
    let others: Vec<&Pod> = away.unready.into_iter().filter(|pod| pod.uid != case.pod.uid).collect();
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
        remedy: unhealthy_remedy(held.budget, &others, itself.then_some(case.pod)),
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

fn unhealthy_remedy(budget: &Pdb, others: &[&Pod], itself: Option<&Pod>) -> String {
    let broken: Vec<&Pod> = itself.into_iter().chain(others.iter().copied()).collect();
    let repair = format!("repair {}", words::list(&broken, |pod| words::placed(pod)));
    if itself.is_some() {
        format!(
            "{repair}, or set unhealthyPodEvictionPolicy: AlwaysAllow in budget {}",
            words::budget(budget)
        )
    } else {
        repair
    }
}

/// No disruption is left now; time brings one back.
pub(super) fn exhausted(case: &Case<'_>) -> Option<Said> {
    let held = case.held()?;
    if matches!(case.verdict.cause, Cause::NegativeAllowance | Cause::TooManyDisruptedPods) {
        return None;
    }
    let message = head(case, held) + &being_replaced(case, held.budget);
    Some(Said {
        outlook: Outlook::WillClear,
        message,
        remedy: exhausted_remedy(case.verdict.cause, held.budget),
    })
}

fn exhausted_remedy(cause: Cause, budget: &Pdb) -> String {
    let name = words::budget(budget);
    if cause == Cause::StillProcessing {
        return format!(
            "nothing to change: wait until the disruption controller has processed budget {name}"
        );
    }
    format!(
        "nothing to change: wait until the replacements are Ready; to go faster let budget {name} allow more at once"
    )
}

fn being_replaced(case: &Case<'_>, budget: &Pdb) -> String {
    let Away { terminating, evicted, starting, .. } = case.away(budget);
    let named: Vec<String> = evicted
        .iter()
        .map(|pod| let_go(budget, pod))
        .chain(terminating.iter().map(|pod| going(pod)))
        .chain(starting.iter().map(|pod| starting_since(pod)))
        .collect();
    if !named.is_empty() {
        return format!(" Being replaced or starting: {}.", words::list(&named, Clone::clone));
    }
    let (owners, _) = owners::of_budget(case, budget);
    let short: Vec<String> = owners
        .iter()
        .filter_map(|owner| {
            let (present, replicas) = (owner.present(), usize::try_from(owner.replicas?).ok()?);
            (present < replicas).then(|| format!("{} has {present} of {replicas} pods", owner.name()))
        })
        .collect();
    if short.is_empty() { String::new() } else { format!(" {}.", words::list(&short, Clone::clone)) }
}

fn let_go(budget: &Pdb, pod: &Pod) -> String {
    match budget.status.disrupted_pods.get(&pod.name) {
        Some(at) => format!("{} (eviction accepted {})", words::placed(pod), words::at(*at)),
        None => format!("{} (eviction sent)", words::placed(pod)),
    }
}

fn going(pod: &Pod) -> String {
    match pod.deletion {
        Some(deletion) => format!("{} (terminating, gone by {})", words::placed(pod), words::at(deletion.at)),
        None => words::placed(pod),
    }
}

fn starting_since(pod: &Pod) -> String {
    match pod.created {
        Some(created) => format!("{} (starting since {})", words::placed(pod), words::at(created)),
        None => words::placed(pod),
    }
}

/// The server answers 403 for the budget.
pub(super) fn refused(case: &Case<'_>) -> Option<Said> {
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
fn head(case: &Case<'_>, held: &Held<'_>) -> String {
    let Held { budget, standing } = held;
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
        _ => format!("Budget {name} ({terms}) allows 0 evictions now: {counted}."),
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

fn in_flight(case: &Case<'_>, budget: &Pdb) -> String {
    match case.cluster.evictions.of_budget(&budget.key()) {
        0 => String::new(),
        number => format!(", {} in flight", words::count(number, "eviction")),
    }
}
