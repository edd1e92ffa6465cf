//! Labels, and the selectors that match them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::planted::{Planted, planted};
use crate::api::RequirementOperator;

/// A shared string: names and labels repeat thousands of times in a cluster.
pub type Text = Arc<str>;

/// Labels, sorted by key, shared by all pods of a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Labels(Arc<[(Text, Text)]>);

impl Default for Labels {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl Labels {
    /// From pairs in any order.
    pub fn new(pairs: impl IntoIterator<Item = (Text, Text)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort();
        pairs.dedup_by(|a, b| a.0 == b.0);
        Self(pairs.into())
    }
    /// Whether these are the pairs of a map.
    pub(super) fn equal(&self, pairs: &BTreeMap<String, String>) -> bool {
        let equals = |((key, value), (other, text)): ((&Text, &Text), (&String, &String))| {
            **key == **other && **value == **text
        };
        self.0.len() == pairs.len() && self.iter().zip(pairs).all(equals)
    }
    /// How many hold this same copy.
    pub(super) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Text> {
        let at = self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }
    /// All pairs, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

/// A label selector. Without requirements it matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selector {
    /// All must hold.
    pub requirements: Vec<Requirement>,
}

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: Text,
    /// How its value is compared.
    pub operator: Operator,
    /// With what; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<Text>,
}

/// The operators of label selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The value is one of the list.
    In,
    /// The key is absent or its value is none of the list.
    NotIn,
    /// The key is there.
    Exists,
    /// The key is absent.
    DoesNotExist,
}

impl Selector {
    /// Whether all requirements hold.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        if planted(Planted::EmptySelectsNothing) && self.requirements.is_empty() {
            return false;
        }
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        self.operator.holds(labels.get(&self.key), |value| self.values.contains(value))
    }
}

impl Operator {
    /// Whether it holds of a label's value, if there is one; `listed` says whether a value is one of the requirement's.
    pub fn holds(self, value: Option<&Text>, listed: impl FnOnce(&Text) -> bool) -> bool {
        match self {
            Self::In => value.is_some_and(listed),
            Self::NotIn => value.map_or_else(|| !planted(Planted::NotInWantsKey), |value| !listed(value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }

    /// The operator that objects of the API write so, if label selectors have it.
    pub(super) fn parse(written: &str) -> Option<Self> {
        match written {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }
}

impl From<RequirementOperator> for Operator {
    fn from(written: RequirementOperator) -> Self {
        match written {
            RequirementOperator::In => Self::In,
            RequirementOperator::NotIn => Self::NotIn,
            RequirementOperator::Exists => Self::Exists,
            RequirementOperator::DoesNotExist => Self::DoesNotExist,
        }
    }
}
