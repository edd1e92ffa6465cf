//! Whether pods may be evicted by whoever asks: what the server's authorizer has answered.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::Text;

/// How long an answer is believed that lets evictions be sent. A refusal is believed until another answer comes.
const BELIEVED: SignedDuration = SignedDuration::from_secs(10);

/// How many namespaces are asked about at once.
const AT_ONCE: usize = 10;

/// The answer about one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// The verb create on pods/eviction is granted.
    Granted,
    /// It is not.
    Denied {
        /// Who asked, as the server knows it; empty when it did not say.
        user: Text,
        /// The authorizer's own words; most have none.
        why: Text,
    },
    /// There is no answer: what an eviction is answered has to tell.
    Unanswered,
}

/// All answers. The right may be granted in the whole cluster, or in some namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    everywhere: Option<(Right, Timestamp)>,
    namespaces: HashMap<Text, (Right, Timestamp)>,
}

impl Rights {
    /// The server has answered, about a namespace or about all of them.
    pub fn record(&mut self, namespace: Option<Text>, right: Right, now: Timestamp) {
        match namespace {
            Some(namespace) => {
                self.namespaces.insert(namespace, (right, now));
            }
            None => self.everywhere = Some((right, now)),
        }
    }
    /// The right in a namespace; `None` when it is not known.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Option<&Right> {
        let everywhere = self.everywhere.as_ref().map(|(right, _)| right);
        match everywhere {
            Some(Right::Granted) => everywhere,
            Some(Right::Unanswered) => self.in_namespace(namespace).or(everywhere),
            Some(Right::Denied { .. }) | None => self.in_namespace(namespace),
        }
    }
    /// The server's last answer was that pods of the namespace may not be evicted.
    #[must_use]
    pub fn denied(&self, namespace: &str) -> bool {
        matches!(self.of(namespace), Some(Right::Denied { .. }))
    }
    /// What to ask so that the rights in these namespaces are known, and refusals are taken back when they are no longer
    /// true: `None` is the whole cluster.
    #[must_use]
    pub fn questions<'a>(&self, namespaces: impl Iterator<Item = &'a Text>) -> Vec<Option<Text>> {
        let mut asked: Vec<(Option<Timestamp>, &Text)> = namespaces
            .filter_map(|namespace| match self.namespaces.get(namespace) {
                Some((Right::Denied { .. }, at)) => Some((Some(*at), namespace)),
                Some(_) => None,
                None => Some((None, namespace)),
            })
            .collect();
        asked.sort();
        match &self.everywhere {
            _ if asked.is_empty() => Vec::new(),
            Some((Right::Granted | Right::Unanswered, _)) => Vec::new(),
            None => vec![None],
            Some((Right::Denied { .. }, _)) => {
                let oldest = asked.into_iter().take(AT_ONCE).map(|(_, namespace)| Some(namespace.clone()));
                [None].into_iter().chain(oldest).collect()
            }
        }
    }
    /// An eviction in the namespace was refused without a cause: what was granted may have been taken away.
    pub fn doubt(&mut self, namespace: &str) {
        let denied = |right: &Right| matches!(right, Right::Denied { .. });
        self.everywhere.take_if(|(right, _)| !denied(right));
        if self.namespaces.get(namespace).is_some_and(|(right, _)| !denied(right)) {
            self.namespaces.remove(namespace);
        }
    }
    /// Drops what is too old to be believed.
    pub fn expire(&mut self, now: Timestamp) {
        let old = |right: &Right, at: Timestamp| {
            !matches!(right, Right::Denied { .. })
                && at.saturating_add(BELIEVED).is_ok_and(|until| until <= now)
        };
        self.everywhere.take_if(|(right, at)| old(right, *at));
        self.namespaces.retain(|_, (right, at)| !old(right, *at));
    }

    fn in_namespace(&self, namespace: &str) -> Option<&Right> {
        self.namespaces.get(namespace).map(|(right, _)| right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn denied() -> Right {
        Right::Denied { user: "drainer".into(), why: Text::default() }
    }

    fn questions(rights: &Rights, namespaces: &[&str]) -> Vec<Option<Text>> {
        let namespaces: Vec<Text> = namespaces.iter().map(|name| Text::from(*name)).collect();
        rights.questions(namespaces.iter())
    }

    #[test]
    fn the_whole_cluster_is_asked_about_first_and_namespaces_when_that_is_denied() {
        let mut rights = Rights::default();
        assert_eq!(questions(&rights, &[]), []);
        assert_eq!(questions(&rights, &["shop", "ops"]), [None]);
        rights.record(None, denied(), NOW);
        assert_eq!(rights.of("shop"), None);
        assert_eq!(questions(&rights, &["ops", "shop"]), [None, Some("ops".into()), Some("shop".into())]);
        rights.record(Some("shop".into()), Right::Granted, NOW);
        rights.record(Some("ops".into()), denied(), NOW);
        assert_eq!((rights.of("shop"), rights.denied("ops")), (Some(&Right::Granted), true));
        // What is denied is asked about again.
        assert_eq!(questions(&rights, &["ops", "shop"]), [None, Some("ops".into())]);
        rights.record(None, Right::Granted, NOW);
        assert!(!rights.denied("ops"));
        assert_eq!(questions(&rights, &["ops", "shop"]), []);
    }

    #[test]
    fn what_is_granted_is_believed_for_a_while_or_until_a_refusal_and_what_is_denied_until_the_next_answer() {
        let mut rights = Rights::default();
        rights.record(None, Right::Granted, NOW);
        rights.expire(NOW + SignedDuration::from_secs(9));
        assert_eq!(rights.of("shop"), Some(&Right::Granted));
        rights.expire(NOW + SignedDuration::from_secs(10));
        assert_eq!(rights.of("shop"), None);
        rights.record(None, Right::Unanswered, NOW);
        rights.doubt("shop");
        assert_eq!(rights.of("shop"), None);
        rights.record(None, denied(), NOW);
        rights.record(Some("shop".into()), denied(), NOW);
        rights.doubt("shop");
        rights.expire(NOW + SignedDuration::from_secs(3600));
        assert!(rights.denied("shop"));
    }
}
