//! What else holds a pod that the plan does not let go: one change is not followed by the discovery of the next.

use super::case::Case;
use super::{RULES, Said};
use crate::api::{Outlook, Reason};

/// What is written somewhere, and keeps holding the pod when the plan lets it go.
const WRITTEN: [Reason; 8] = [
    Reason::Unmanaged,
    Reason::LocalData,
    Reason::AwaitingCompletion,
    Reason::MultipleBudgets,
    Reason::BudgetSyncFailed,
    Reason::BudgetNeverAllows,
    Reason::BudgetCountsNone,
    Reason::ReturnsToNode,
];

/// The next reason after this one that takes more than time.
pub(super) fn next(case: &Case<'_, '_>, after: Reason) -> Option<Said> {
    let later = RULES.iter().filter(|(reason, _)| *reason > after && WRITTEN.contains(reason));
    let said = later.into_iter().find_map(|(_, rule)| rule(case))?;
    (said.outlook != Outlook::WillClear).then_some(said)
}

/// The rest of a remedy.
pub(super) fn also(case: &Case<'_, '_>, after: Reason) -> String {
    rest(next(case, after).as_ref())
}

/// The same, of what is known already.
pub(super) fn rest(next: Option<&Said>) -> String {
    next.map_or_else(String::new, |said| format!("; also {}", said.remedy))
}
