//! The answers to eviction requests, as they are counted.

use std::borrow::Cow;

use kube::core::Status;

use super::call::CallError;
use super::metrics::EvictionCause;
use crate::api::Reason;
use crate::explain::reason_of_answer;
use crate::plan::Answer;

/// The code of an answer, or the word for there being none, and what it amounts to.
pub fn counted(answer: &Result<Answer, CallError>) -> (Cow<'static, str>, EvictionCause) {
    match answer {
        Ok(Answer::Accepted) => (Cow::Borrowed("201"), EvictionCause::None),
        // A look that shows the pod gone, going or another one counts as the 404 that it spares the server.
        Ok(Answer::Withdrawn) => (Cow::Borrowed("404"), EvictionCause::PodGone),
        Ok(Answer::Refused(status)) => (code(status.code), cause(status)),
        Err(CallError::NotSent) => (Cow::Borrowed("error"), EvictionCause::NotSent),
        Err(CallError::Timeout(_)) => (Cow::Borrowed("timeout"), EvictionCause::NoAnswer),
        // The look right before the eviction was refused: the eviction was not sent.
        Err(CallError::Kube(error)) if let kube::Error::Api(status) = &**error => {
            (code(status.code), cause(status))
        }
        Err(CallError::Kube(_)) | Ok(Answer::Unanswered(_)) => {
            (Cow::Borrowed("error"), EvictionCause::NoAnswer)
        }
    }
}

/// A webhook may answer with any number; a label takes only what is a status.
fn code(code: u16) -> Cow<'static, str> {
    if (100..600).contains(&code) { Cow::Owned(code.to_string()) } else { Cow::Borrowed("error") }
}

fn cause(status: &Status) -> EvictionCause {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<_> = causes.map(|cause| (cause.reason.as_str(), cause.message.as_str())).collect();
    match reason_of_answer(status.code, &status.message, &causes) {
        Reason::BudgetExhausted => EvictionCause::BudgetExhausted,
        Reason::BudgetStale => EvictionCause::BudgetStale,
        Reason::BudgetRefused => EvictionCause::BudgetRefused,
        Reason::MultipleBudgets => EvictionCause::MultipleBudgets,
        Reason::NamespaceTerminating => EvictionCause::NamespaceTerminating,
        Reason::AdmissionDenied => EvictionCause::AdmissionDenied,
        Reason::AdmissionUnavailable => EvictionCause::AdmissionUnavailable,
        Reason::Forbidden => EvictionCause::Forbidden,
        Reason::ApiThrottled => EvictionCause::ApiThrottled,
        _ if status.code == 409 => EvictionCause::PodChanged,
        _ => EvictionCause::ServerError,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::Failure;

    /// An answer of the server with a cause, as reason and message, if it names one.
    fn refused(code: u16, message: &str, cause: Option<(&str, &str)>) -> Answer {
        let causes: Vec<_> =
            cause.iter().map(|(reason, message)| json!({"reason": reason, "message": message})).collect();
        let details = json!({"causes": causes});
        let status =
            json!({"status": "Failure", "code": code, "message": message, "reason": "", "details": details});
        Answer::Refused(serde_json::from_value(status).unwrap())
    }

    fn as_counted(answer: &Result<Answer, CallError>) -> (String, &'static str) {
        let (code, cause) = counted(answer);
        (code.into_owned(), cause.as_str())
    }

    #[test]
    fn every_answer_is_counted_by_its_code_and_what_it_amounts_to() {
        let violates = "Cannot evict pod as it would violate the pod's disruption budget.";
        let budget = |why: &'static str| Some(("DisruptionBudget", why));
        let behind = budget("The disruption budget web is still being processed by the server.");
        let short = budget("The disruption budget web needs 3 healthy pods and has 3 currently");
        let two = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        let namespace = Some(("NamespaceTerminating", "namespace shop is being terminated"));
        let webhook = "admission webhook \"guard.example.com\" denied the request: not now";
        let policy =
            "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        let rbac = "pods \"web-1\" is forbidden: User \"x\" cannot create resource \"pods/eviction\"";
        let dead =
            "Internal error occurred: failed calling webhook \"guard.example.com\": connection refused";
        let changed = "Operation cannot be fulfilled on poddisruptionbudgets.policy \"web\": the object has been modified";
        let uid =
            "Operation cannot be fulfilled on Pod \"web-1\": the UID in the precondition (a) does not match";
        for (answer, code, cause) in [
            (Ok(Answer::Accepted), "201", "none"),
            (Ok(Answer::Withdrawn), "404", "PodGone"),
            (Ok(refused(429, violates, short)), "429", "BudgetExhausted"),
            (Ok(refused(429, violates, behind)), "429", "BudgetStale"),
            (
                Ok(refused(403, violates, budget("pdb disruptions allowed is negative"))),
                "403",
                "BudgetRefused",
            ),
            (Ok(refused(500, two, None)), "500", "MultipleBudgets"),
            (Ok(refused(403, "forbidden", namespace)), "403", "NamespaceTerminating"),
            (Ok(refused(429, webhook, None)), "429", "AdmissionDenied"),
            (Ok(refused(422, policy, None)), "422", "AdmissionDenied"),
            (Ok(refused(500, dead, None)), "500", "AdmissionUnavailable"),
            (Ok(refused(403, rbac, None)), "403", "Forbidden"),
            (Ok(refused(429, "too many requests, please try again later", None)), "429", "ApiThrottled"),
            (Ok(refused(409, changed, None)), "409", "ApiThrottled"),
            (Ok(refused(409, uid, None)), "409", "PodChanged"),
            (Ok(refused(500, "etcdserver: leader changed", None)), "500", "ServerError"),
            (Ok(refused(60_000, "a webhook's own idea", None)), "error", "ServerError"),
            (Err(CallError::NotSent), "error", "NotSent"),
            (Err(CallError::Timeout(std::time::Duration::from_secs(5))), "timeout", "NoAnswer"),
            (
                Err(CallError::Kube(Box::new(kube::Error::LinesCodecMaxLineLengthExceeded))),
                "error",
                "NoAnswer",
            ),
            (Ok(Answer::Unanswered(Failure { code: None, message: String::new() })), "error", "NoAnswer"),
        ] {
            assert_eq!(as_counted(&answer), (code.to_owned(), cause), "{answer:?}");
        }
    }
}
