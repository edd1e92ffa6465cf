//! The cases, one file for each theme.

mod answers;
mod dead_nodes;
mod endings;
mod explained;
mod gates;
mod gentle;
mod gitops;
mod hand_off;
mod lasting;
mod metrics;
mod own_pod;
mod ownership;
mod pace;
mod pod_gc;
mod pods;
mod reasons;
mod refusals;
mod restart;
mod rights;
mod rules;
mod runs;
mod together;
mod versions;
mod windows;

use std::time::Duration;

use anyhow::{Context as _, Result};
use drainplan::api::{DrainPlanStatus, NodeStatus, WaitingPod};
use serde_json::{Value, json};

use crate::runner::Case;

/// Long enough for everything that is not awaited to fail.
const PATIENCE: Duration = Duration::from_mins(2);

/// All cases.
pub fn all() -> Vec<Case> {
    let themes = [
        answers::cases(),
        gentle::cases(),
        gitops::cases(),
        explained::cases(),
        pods::cases(),
        lasting::cases(),
        own_pod::cases(),
        ownership::cases(),
        dead_nodes::cases(),
        endings::cases(),
        restart::cases(),
        reasons::cases(),
        refusals::cases(),
        rights::cases(),
        pace::cases(),
        gates::cases(),
        pod_gc::cases(),
        rules::cases(),
        runs::cases(),
        together::cases(),
        versions::cases(),
        windows::cases(),
        hand_off::cases(),
        metrics::cases(),
    ];
    let mut all: Vec<Case> = themes.into_iter().flatten().collect();
    all.sort_by_key(|case| case.number);
    all
}

/// The spec of a plan over these nodes.
fn over(nodes: &[String], node_timeout: &str, then: &str) -> Value {
    json!({"nodes": {"names": nodes}, "timeouts": {"node": node_timeout}, "handOff": {"then": then}})
}

/// What the status says of a node.
fn report<'a>(status: &'a DrainPlanStatus, node: &str) -> Result<&'a NodeStatus> {
    status.nodes.iter().find(|it| it.name == node).with_context(|| format!("node {node} is not reported"))
}

/// What the node's report says of a pod.
fn waiting<'a>(node: &'a NodeStatus, pod: &str) -> Result<&'a WaitingPod> {
    let found = node.waiting.iter().find(|it| it.pod == pod);
    found.with_context(|| format!("pod {pod} is not reported on {}: {:?}", node.name, node.waiting))
}

/// A case that others may run beside.
macro_rules! shared {
    ($number:literal, $name:ident) => {
        crate::runner::Case {
            number: $number,
            name: stringify!($name),
            alone: false,
            slow: false,
            run: |bed| Box::pin($name(bed)),
        }
    };
}

/// A case that disturbs what others need.
macro_rules! alone {
    ($number:literal, $name:ident) => {
        crate::runner::Case {
            number: $number,
            name: stringify!($name),
            alone: true,
            slow: false,
            run: |bed| Box::pin($name(bed)),
        }
    };
}

/// A case that waits for minutes; others may run beside it.
macro_rules! slow {
    ($number:literal, $name:ident) => {
        crate::runner::Case { slow: true, ..super::shared!($number, $name) }
    };
}

pub(crate) use {alone, shared, slow};
