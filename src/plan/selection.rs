//! Which nodes a plan is about, in the order in which they are taken.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::{NodeSelector, Nodes};
use crate::cluster::{Cluster, Node, Operator, Requirement, Selector, Text};

/// The nodes of a plan.
#[derive(Debug, Default)]
pub struct Selection {
    /// Those that exist and were there when the run started.
    pub nodes: Vec<Arc<Node>>,
    /// Names that were asked for and have no such node.
    pub missing: Vec<Text>,
}

/// The nodes that the plan selects. A node created after the run's start never joins the run.
pub fn select(nodes: &Nodes, cluster: &Cluster, started_at: Timestamp) -> Selection {
    let joins = |node: &Node| node.created.is_none_or(|created| created <= started_at);
    if let Some(selector) = &nodes.selector {
        let selector = compile(selector);
        let matching = cluster.nodes().filter(|node| selector.matches(&node.labels) && joins(node));
        return Selection { nodes: matching.cloned().collect(), missing: Vec::new() };
    }
    let mut selection = Selection::default();
    let mut seen = HashSet::new();
    for name in nodes.names.iter().filter(|name| seen.insert(name.as_str())) {
        match cluster.node(name).filter(|node| joins(node)) {
            Some(node) => selection.nodes.push(Arc::clone(node)),
            None => selection.missing.push(Text::from(name.as_str())),
        }
    }
    selection
}

fn compile(selector: &NodeSelector) -> Selector {
    let equal = selector.match_labels.iter().map(|(key, value)| Requirement {
        key: Text::from(key.as_str()),
        operator: Operator::In,
        values: vec![Text::from(value.as_str())],
    });
    let written = selector.match_expressions.iter().map(|requirement| Requirement {
        key: Text::from(requirement.key.as_str()),
        operator: requirement.operator.into(),
        values: requirement.values.iter().map(|value| Text::from(value.as_str())).collect(),
    });
    Selector { requirements: equal.chain(written).collect() }
}
