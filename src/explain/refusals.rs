//! What the server answered to an eviction that its budget would have let go: told apart by cause and words,
//! since the code alone says little (a webhook may answer with any).

use super::case::Case;
use super::{Said, words};
use crate::api::{Outlook, Reason};
use crate::cluster::Refusal;

/// What a refusal is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The budget's or the namespace's business; the other rules speak of it.
    Elsewhere,
    AdmissionDenied,
    AdmissionUnavailable,
    /// 403, and nothing says why: for want of the right, or otherwise.
    WithoutCause,
    ApiThrottled,
    ServerError,
}

fn kind(code: u16, message: &str, caused_by: impl Fn(&str) -> bool) -> Kind {
    if caused_by("DisruptionBudget") || caused_by("NamespaceTerminating") {
        Kind::Elsewhere
    } else if message.contains("denied the request") || message.contains("denied request") {
        Kind::AdmissionDenied
    } else if code == 500 && message.contains("failed calling webhook") {
        Kind::AdmissionUnavailable
    } else if code == 403 {
        Kind::WithoutCause
    } else if code == 429 || (matches!(code, 409 | 504) && about_budget(message)) {
        Kind::ApiThrottled
    } else {
        Kind::ServerError
    }
}

/// The reason that an answer other than success amounts to by itself, whatever else is observed. `causes` are those of the
/// Status, as reason and message.
#[must_use]
pub fn reason_of_answer(code: u16, message: &str, causes: &[(&str, &str)]) -> Reason {
    let cause = |name: &str| causes.iter().find(|(reason, _)| *reason == name);
    match kind(code, message, |name| cause(name).is_some()) {
        Kind::Elsewhere => match cause("DisruptionBudget") {
            None => Reason::NamespaceTerminating,
            Some(_) if code == 403 => Reason::BudgetRefused,
            // `eviction.go: createTooManyRequestsError` says it when the budget was not observed since its last change.
            Some((_, why)) if why.contains("still being processed") => Reason::BudgetStale,
            Some(_) => Reason::BudgetExhausted,
        },
        Kind::AdmissionDenied => Reason::AdmissionDenied,
        Kind::AdmissionUnavailable => Reason::AdmissionUnavailable,
        Kind::WithoutCause => Reason::Forbidden,
        Kind::ApiThrottled => Reason::ApiThrottled,
        // `eviction.go: Create`, an error without a type.
        Kind::ServerError if code == 500 && message.contains("more than one PodDisruptionBudget") => {
            Reason::MultipleBudgets
        }
        Kind::ServerError => Reason::ServerError,
    }
}

/// The server gave up after its own retries on the budget's status.
fn about_budget(message: &str) -> bool {
    message.to_ascii_lowercase().contains("poddisruptionbudget")
}

fn of_kind<'a>(case: &Case<'_, 'a>, wanted: Kind) -> Option<&'a Refusal> {
    case.refusal.filter(|refusal| {
        let caused_by = |name: &str| refusal.causes.iter().any(|cause| &**cause == name);
        kind(refusal.code, &refusal.message, caused_by) == wanted
    })
}

/// A refusal that may be for want of the right: only the authorizer can tell.
pub(super) fn without_cause<'a>(case: &Case<'_, 'a>) -> Option<&'a Refusal> {
    of_kind(case, Kind::WithoutCause)
}

/// The webhook or policy that denied a request, as the server names it.
pub(super) fn named(message: &str) -> Option<String> {
    let policy = between(message, "ValidatingAdmissionPolicy '", "'");
    let policy = policy.map(|name| format!("ValidatingAdmissionPolicy {name}"));
    let webhook = || between(message, "admission webhook \"", "\"").map(|name| format!("webhook {name}"));
    policy.or_else(webhook)
}

pub(super) fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(name, _)| name).filter(|name| !name.is_empty())
}

/// A webhook or a policy denied it.
pub(super) fn admission_denied(case: &Case<'_, '_>) -> Option<Said> {
    let refusal = of_kind(case, Kind::AdmissionDenied)?;
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "Admission denied the eviction ({}): {}.",
            refusal.code,
            words::quote(&refusal.message)
        ),
        remedy: match named(&refusal.message) {
            Some(guard) => {
                format!("ask whoever runs {guard} to move this pod, or to let its eviction through")
            }
            None => {
                "let whoever runs that webhook or policy move the pod, or have the rule changed".to_owned()
            }
        },
    })
}

/// A webhook did not answer.
pub(super) fn admission_unavailable(case: &Case<'_, '_>) -> Option<Said> {
    let refusal = of_kind(case, Kind::AdmissionUnavailable)?;
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "An admission webhook for evictions could not be asked ({}): {}.",
            refusal.code,
            words::quote(&refusal.message)
        ),
        remedy: match between(&refusal.message, "failed calling webhook \"", "\"") {
            Some(name) => {
                format!(
                    "bring the service of webhook {name} back, or set failurePolicy: Ignore in its configuration"
                )
            }
            None => "bring the webhook's service back, or set failurePolicy: Ignore in its configuration"
                .to_owned(),
        },
    })
}

/// The server has too much to do.
pub(super) fn api_throttled(case: &Case<'_, '_>) -> Option<Said> {
    let refusal = of_kind(case, Kind::ApiThrottled)?;
    Some(Said {
        outlook: Outlook::WillClear,
        message: format!(
            "The server is too busy for the eviction ({}): {}.",
            refusal.code,
            words::quote(&refusal.message)
        ),
        remedy: "nothing to change: it is tried again; if it lasts, look at the API server's load".to_owned(),
    })
}

/// Anything else.
pub(super) fn server_error(case: &Case<'_, '_>) -> Option<Said> {
    let refusal = of_kind(case, Kind::ServerError).or_else(|| without_cause(case))?;
    let reason = if refusal.reason.is_empty() { String::new() } else { format!(" {}", refusal.reason) };
    Some(Said {
        outlook: Outlook::MayClear,
        message: format!(
            "The server refused the eviction ({}{reason}): {}.",
            refusal.code,
            words::quote(&refusal.message)
        ),
        remedy: "look at the API server's log for that error".to_owned(),
    })
}
