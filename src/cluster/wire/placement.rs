//! Node selectors, node affinity and tolerations on the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::cluster::interner::Interner;
use crate::cluster::{NodeTerm, Operator, Placement, Selector, Text, Toleration};

use super::meta::or_default;
use super::selector::{Expression, requirement};

/// A pod's affinity, as far as it is read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Affinity {
    #[serde(deserialize_with = "or_default")]
    node_affinity: NodeAffinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "or_default")]
    required: Required,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Required {
    #[serde(deserialize_with = "or_default")]
    node_selector_terms: Vec<Term>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    #[serde(deserialize_with = "or_default")]
    match_expressions: Vec<Expression>,
    #[serde(deserialize_with = "or_default")]
    match_fields: Vec<Expression>,
}

/// A toleration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireToleration {
    #[serde(deserialize_with = "or_default")]
    key: String,
    #[serde(deserialize_with = "or_default")]
    operator: String,
    #[serde(deserialize_with = "or_default")]
    value: String,
    #[serde(deserialize_with = "or_default")]
    effect: String,
}

/// What the pod asks of its node; `None` when it asks for nothing.
pub(super) fn read(
    node_selector: BTreeMap<String, String>,
    affinity: Affinity,
    tolerations: &[WireToleration],
    interner: &mut Interner,
) -> Option<Arc<Placement>> {
    let terms = affinity.node_affinity.required.node_selector_terms;
    if node_selector.is_empty() && terms.is_empty() && tolerations.is_empty() {
        return None;
    }
    let labels =
        node_selector.into_iter().map(|(key, value)| requirement(&key, Operator::In, &[value], interner));
    let placement = Placement {
        labels: Selector { requirements: labels.collect() },
        terms: terms.into_iter().map(|term| term.read(interner)).collect(),
        tolerations: tolerations.iter().map(|toleration| toleration.read(interner)).collect(),
    };
    Some(interner.placement(placement))
}

impl Term {
    fn read(self, interner: &mut Interner) -> NodeTerm {
        let mut requirements = Vec::new();
        for Expression { key, operator, values } in self.match_expressions {
            // Gt and Lt compare numbers: taken to hold.
            if let Some(operator) = Operator::parse(&operator) {
                requirements.push(requirement(&key, operator, &values, interner));
            }
        }
        let names = self
            .match_fields
            .into_iter()
            .find(|field| field.key == "metadata.name" && field.operator == "In")
            .map(|field| field.values.iter().map(|name| Text::from(name.as_str())).collect());
        NodeTerm { labels: Selector { requirements }, names }
    }
}

impl WireToleration {
    fn read(&self, interner: &mut Interner) -> Toleration {
        Toleration {
            key: interner.text(&self.key),
            exists: self.operator == "Exists",
            value: interner.text(&self.value),
            effect: interner.text(&self.effect),
        }
    }
}
