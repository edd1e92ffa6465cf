//! Whether the one who evicts may.

use super::case::Case;
use super::{Said, Treatment, refusals, words};
use crate::api::Outlook;
use crate::cluster::Right;
use crate::cluster::planted::{Planted, planted};

/// The server has said that it would refuse, or has just refused and is asked why.
pub(super) fn forbidden(case: &Case<'_, '_>) -> Option<Said> {
    let pod = case.pod;
    if case.treatment != Treatment::Evict
        || pod.terminating()
        || case.cluster.evictions.is_in_flight(&pod.uid)
        || planted(Planted::RightIgnored)
    {
        return None;
    }
    match case.cluster.rights.of(&pod.namespace) {
        Some(Right::Denied { user, why }) => {
            let who = if user.is_empty() {
                "The user of the controller".to_owned()
            } else {
                format!("User {user}")
            };
            let whom = if user.is_empty() { "it".to_owned() } else { format!("user {user}") };
            let why = if why.is_empty() { String::new() } else { format!(": {}", words::quote(why)) };
            Some(Said {
                outlook: Outlook::NeverClears,
                message: format!(
                    "{who} may not create pods/eviction in namespace {}, so the server refuses every eviction \
                     there (403; asked with a SelfSubjectAccessReview{why}).",
                    pod.namespace
                ),
                remedy: format!("grant {whom} the verb create on pods/eviction (API group \"\")"),
            })
        }
        Some(Right::Granted | Right::Unanswered) => None,
        None => {
            let refusal = refusals::without_cause(case)?;
            Some(Said {
                outlook: Outlook::MayClear,
                message: format!(
                    "The server forbids the eviction (403): {}.",
                    words::quote(&refusal.message)
                ),
                remedy: "grant the verb create on pods/eviction (API group \"\") to the user it names"
                    .to_owned(),
            })
        }
    }
}
