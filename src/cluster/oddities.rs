//! What passes by itself in moments unless something is broken, and since when it is seen.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{BudgetKey, Text};

/// Something that should not last. One that changes is another one: whoever works on it is alive.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Oddity {
    /// The status of a budget is not what it should be.
    Stale {
        /// The budget.
        budget: BudgetKey,
        /// The generation and the numbers it reports.
        reported: [i64; 5],
    },
    /// An owner has more pods than it wants.
    Surplus {
        /// Its uid.
        owner: Text,
        /// The pods it has, by name.
        pods: Vec<Text>,
    },
    /// An owner has fewer pods than it wants, and none is starting.
    Short {
        /// Its uid.
        owner: Text,
        /// The pods it has, by name.
        pods: Vec<Text>,
    },
}

/// Since when oddities are seen. Kept by whoever acts, and begun anew by the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oddities {
    first_seen: HashMap<Oddity, Timestamp>,
}

impl Oddities {
    /// These are seen now, and no others.
    pub fn seen(&mut self, oddities: Vec<Oddity>, now: Timestamp) {
        let before = std::mem::take(&mut self.first_seen);
        let since = |oddity: &Oddity| before.get(oddity).copied().unwrap_or(now);
        self.first_seen = oddities.into_iter().map(|oddity| (since(&oddity), oddity)).map(swap).collect();
    }
    /// Since when it has been seen again and again.
    #[must_use]
    pub fn since(&self, oddity: &Oddity) -> Option<Timestamp> {
        self.first_seen.get(oddity).copied()
    }
}

fn swap<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn what_is_not_seen_for_a_moment_begins_anew() {
        let now = Timestamp::constant(1_800_000_000, 0);
        let at = |seconds| now + SignedDuration::from_secs(seconds);
        let short = |pods: &[&str]| Oddity::Short {
            owner: "uid-web".into(),
            pods: pods.iter().map(|name| Text::from(*name)).collect(),
        };
        let mut oddities = Oddities::default();
        oddities.seen(vec![short(&["a"])], at(0));
        oddities.seen(vec![short(&["a"])], at(10));
        assert_eq!(oddities.since(&short(&["a"])), Some(at(0)));
        oddities.seen(vec![short(&["b"])], at(20));
        assert_eq!((oddities.since(&short(&["a"])), oddities.since(&short(&["b"]))), (None, Some(at(20))));
        oddities.seen(vec![], at(30));
        oddities.seen(vec![short(&["b"])], at(40));
        assert_eq!(oddities.since(&short(&["b"])), Some(at(40)));
    }
}
