//! One copy of every string and label set that many objects share.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Labels, OwnerRef, Placement, Text};

/// Shares equal values. Values that nobody else holds any longer are dropped as the pools grow.
#[derive(Debug, Clone, Default)]
pub(super) struct Interner {
    texts: Pool<Text>,
    labels: Pool<Labels>,
    owners: Pool<Arc<OwnerRef>>,
    placements: Pool<Arc<Placement>>,
}

#[derive(Debug, Clone)]
struct Pool<T> {
    values: HashSet<T>,
    /// Sweep when the pool has grown to this.
    sweep_at: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), sweep_at: 1024 }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Pool<T> {
    fn share(&mut self, value: T, in_use: impl Fn(&T) -> bool) -> T {
        if let Some(known) = self.values.get(&value) {
            return known.clone();
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(in_use);
            self.sweep_at = (self.values.len() * 2).max(1024);
        }
        self.values.insert(value.clone());
        value
    }
}

impl Interner {
    /// The shared copy of a string.
    pub(super) fn text(&mut self, text: &str) -> Text {
        if let Some(known) = self.texts.values.get(text) {
            return known.clone();
        }
        self.texts.share(text.into(), |text| Arc::strong_count(text) > 1)
    }
    /// The shared copy of a label set.
    pub(super) fn labels<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Labels {
        let labels = Labels::new(pairs.into_iter().map(|(key, value)| (self.text(key), self.text(value))));
        self.labels.share(labels, |labels| labels.holders() > 1)
    }
    /// The shared copy of what pods ask of their node.
    pub(super) fn placement(&mut self, placement: Placement) -> Arc<Placement> {
        self.placements.share(Arc::new(placement), |placement| Arc::strong_count(placement) > 1)
    }
    /// The shared copy of an owner reference.
    pub(super) fn owner(&mut self, owner: OwnerRef) -> Arc<OwnerRef> {
        self.owners.share(Arc::new(owner), |owner| Arc::strong_count(owner) > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_go() {
        let mut interner = Interner::default();
        let kept = interner.labels([("app", "web")]);
        assert_eq!(interner.labels([("app", "web")]).holders(), 3, "both and the pool");
        for number in 0..10_000 {
            interner.labels([("pod", &*format!("p{number}"))]);
        }
        assert!(interner.labels.values.len() <= 2048, "{} label sets", interner.labels.values.len());
        // Texts are kept alive by the label sets until those go.
        assert!(interner.texts.values.len() <= 4096, "{} texts", interner.texts.values.len());
        assert!(interner.labels.values.contains(&kept));
    }
}
