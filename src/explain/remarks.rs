//! Why a pod that waits for nothing would go, or is left alone.

use super::rules::LABEL;
use super::{Judgement, Treatment, words};
use crate::budget::Cause;
use crate::cluster::{Cluster, Pod};

pub(super) fn of(cluster: &Cluster, pod: &Pod, judgement: &Judgement) -> String {
    if judgement.treatment == Treatment::Ignore {
        return left_alone(pod);
    }
    let budget = || {
        let name = judgement.verdict.budgets.first().map(|name| format!("{}/{name}", pod.namespace));
        name.unwrap_or_default()
    };
    match judgement.verdict.cause {
        Cause::Allowed => {
            let allowed =
                cluster.budgets_of(pod).next().map_or(0, |budget| budget.status.disruptions_allowed);
            format!("Would be evicted: budget {} allows {}.", budget(), words::count(allowed, "disruption"))
        }
        Cause::UnhealthyAlwaysAllowed => format!(
            "Would be evicted: it is unready, and unhealthyPodEvictionPolicy of budget {} is AlwaysAllow.",
            budget()
        ),
        Cause::UnhealthyOfHealthyBudget => {
            format!("Would be evicted: it is unready, and budget {} is healthy without it.", budget())
        }
        Cause::NotCounted => "Would be evicted: budgets do not hold pods that have not started.".to_owned(),
        _ => "Would be evicted: no budget selects it.".to_owned(),
    }
}

fn left_alone(pod: &Pod) -> String {
    if pod.mirror {
        return "Left alone: it mirrors a static pod.".to_owned();
    }
    match &pod.owner {
        _ if pod.finished_by_itself() => "Left alone: it has finished.".to_owned(),
        Some(owner) if &*owner.kind == "DaemonSet" => {
            format!("Left alone: it belongs to DaemonSet {}.", owner.name)
        }
        _ => format!("Left alone: a rule of the plan, or the label {LABEL}: skip, asks for that."),
    }
}
