//! What the server answered.

use super::*;
use crate::cluster::{Refusal, Right};

fn refusal(code: u16, reason: &str, message: &str, causes: &[&str]) -> Refusal {
    Refusal {
        uid: "uid-web-0".into(),
        at: ago(3),
        code,
        reason: reason.into(),
        message: message.into(),
        causes: causes.iter().map(|cause| Text::from(*cause)).collect(),
        budgets: Vec::new(),
        times: 1,
        retry_at: ago(-27),
    }
}

fn answered(code: u16, reason: &str, message: &str, causes: &[&str]) -> World {
    let mut world = World::new().stateful_set("web", 3).budget("web", "maxUnavailable: 1");
    world.cluster.evictions.refused(refusal(code, reason, message, causes));
    world
}

#[test]
fn admission_is_known_by_its_words_not_by_its_code() {
    let webhook = "admission webhook \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: Eviction \
                   triggered evacuation of VMI \"shop/web\"";
    answered(429, "TooManyRequests", webhook, &[]).waits(
        "web-0",
        Reason::AdmissionDenied,
        Outlook::MayClear,
        "Admission denied the eviction (429): “admission webhook \
         \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: Eviction \
         triggered evacuation of VMI \"shop/web\"”.",
        "ask whoever runs webhook virt-launcher-eviction-interceptor.kubevirt.io to move this pod, or to let its eviction through",
    );
    for (code, words) in [
        (
            403,
            "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'guard' with binding \
             'guard' denied request: no",
        ),
        (422, "ValidatingAdmissionPolicy 'guard' denied request: moved by their operator"),
        (500, "admission webhook \"x.example.dev\" denied the request without explanation"),
    ] {
        let wait = answered(code, "", words, &[]).judge("web-0").wait.expect("it waits");
        assert_eq!(wait.reason, Reason::AdmissionDenied, "{words}");
    }
}

#[test]
fn a_webhook_that_does_not_answer() {
    let words = "Internal error occurred: failed calling webhook \"guard.example.dev\": failed to call webhook: Post \
                 \"https://guard.ops.svc:443/\": connect: connection refused";
    answered(500, "InternalError", words, &[]).waits(
        "web-0",
        Reason::AdmissionUnavailable,
        Outlook::MayClear,
        "An admission webhook for evictions could not be asked (500): “Internal error \
         occurred: failed calling webhook \"guard.example.dev\": failed to call webhook: \
         Post \"https://guard.ops.svc:443/\": connect: connection refused”.",
        "bring the service of webhook guard.example.dev back, or set failurePolicy: Ignore in its configuration",
    );
}

/// The server has refused for want of the right, and nobody has asked yet whether that is why.
pub(super) fn before_the_authorizer_is_asked() -> World {
    let words = "pods \"web-0\" is forbidden: User \"system:serviceaccount:ops:drainer\" cannot create resource \
                 \"pods/eviction\" in API group \"\" in the namespace \"shop\"";
    answered(403, "Forbidden", words, &[])
}

#[test]
fn the_one_who_evicts_may_not() {
    let mut world = before_the_authorizer_is_asked();
    world.waits(
        "web-0",
        Reason::Forbidden,
        Outlook::MayClear,
        "The server forbids the eviction (403): “pods \"web-0\" is forbidden: User \
         \"system:serviceaccount:ops:drainer\" cannot create resource \"pods/eviction\" in \
         API group \"\" in the namespace \"shop\"”.",
        "grant the verb create on pods/eviction (API group \"\") to the user it names",
    );
    let denied = Right::Denied { user: "system:serviceaccount:ops:drainer".into(), why: Text::default() };
    world.cluster.rights.record(Some("shop".into()), denied, NOW);
    for pod in ["web-0", "web-1"] {
        world.waits(
            pod,
            Reason::Forbidden,
            Outlook::NeverClears,
            "User system:serviceaccount:ops:drainer may not create pods/eviction in namespace \
             shop, so the server refuses every eviction there (403; asked with a \
             SelfSubjectAccessReview).",
            "grant user system:serviceaccount:ops:drainer the verb create on pods/eviction (API group \"\")",
        );
    }
}

#[test]
fn a_refusal_whatever_its_words_is_not_for_want_of_a_right_that_is_there() {
    let words = "User \"drainer\" cannot create resource \"pods/eviction\"";
    let mut world = answered(403, "Forbidden", words, &[]);
    world.cluster.rights.record(None, Right::Granted, NOW);
    let wait = world.judge("web-0").wait.expect("it waits");
    assert_eq!((wait.reason, wait.outlook), (Reason::ServerError, Outlook::MayClear));
    world.goes("web-1");
}

#[test]
fn the_right_goes_before_budgets_and_after_what_is_going_anyway() {
    let mut world = World::new().stateful_set("web", 1).budget("web", "maxUnavailable: 0");
    let denied = || Right::Denied { user: Text::default(), why: "no opinion".into() };
    world.cluster.rights.record(None, denied(), NOW);
    assert_eq!(world.judge("web-0").wait.map(|wait| wait.reason), Some(Reason::BudgetNeverAllows));
    world.cluster.rights.record(Some("shop".into()), denied(), NOW);
    let wait = world.judge("web-0").wait.expect("it waits");
    assert_eq!(wait.reason, Reason::Forbidden);
    assert!(wait.message.contains("SelfSubjectAccessReview: “no opinion”"), "{}", wait.message);
    let going =
        |pod: &mut Pod| pod.deletion = Some(Deletion { at: ago(-20), grace_seconds: 30, cut_short: true });
    let world = world.change("web-0", going);
    assert_eq!(world.judge("web-0").wait.map(|wait| wait.reason), Some(Reason::Terminating));
}

#[test]
fn a_busy_server() {
    let words = "Too many requests, please try again later.";
    answered(429, "Failed to parse error data", words, &[]).waits(
        "web-0",
        Reason::ApiThrottled,
        Outlook::WillClear,
        "The server is too busy for the eviction (429): “Too many requests, please try again later.”.",
        "nothing to change: it is tried again; if it lasts, look at the API server's load",
    );
    let conflict = "Operation cannot be fulfilled on poddisruptionbudgets.policy \"web\": the object \
                    has been modified";
    let timeout = "Timeout: couldn't update PodDisruptionBudget \"web\" due to conflicts";
    for (code, words) in [(409, conflict), (504, timeout)] {
        let wait = answered(code, "", words, &[]).judge("web-0").wait.expect("it waits");
        assert_eq!(wait.reason, Reason::ApiThrottled, "{words}");
    }
}

#[test]
fn anything_else_is_quoted() {
    answered(500, "InternalError", "etcdserver: leader changed", &[]).waits(
        "web-0",
        Reason::ServerError,
        Outlook::MayClear,
        "The server refused the eviction (500 InternalError): “etcdserver: leader changed”.",
        "look at the API server's log for that error",
    );
    for (code, words) in [
        (
            403,
            "pods \"web-0\" is forbidden: node \"node-b\" can only evict pods with \
             spec.nodeName set to itself",
        ),
        (409, "Operation cannot be fulfilled on Pod \"web-0\": the UID in the precondition does not match"),
        (
            500,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource \
             does not support.",
        ),
    ] {
        let mut world = answered(code, "", words, &[]);
        world.cluster.rights.record(None, Right::Granted, NOW);
        let wait = world.judge("web-0").wait.expect("it waits");
        assert_eq!(wait.reason, Reason::ServerError, "{words}");
    }
}

#[test]
fn a_namespace_that_began_to_terminate_unseen() {
    let words = "pods \"web-0\" is forbidden: unable to create new content in namespace shop because it is being \
                 terminated";
    let world = answered(403, "Forbidden", words, &["NamespaceTerminating"]);
    assert_eq!(world.judge("web-0").wait.map(|wait| wait.reason), Some(Reason::NamespaceTerminating));
}

#[test]
fn a_refusal_for_the_budget_holds_until_the_budget_is_seen_to_change() {
    let words = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut world = answered(429, "TooManyRequests", words, &["DisruptionBudget"]);
    assert_eq!(world.judge("web-0").wait.map(|wait| wait.reason), Some(Reason::BudgetExhausted));
    let mut again = refusal(429, "TooManyRequests", words, &["DisruptionBudget"]);
    again.retry_at = NOW;
    world.cluster.evictions.refused(again);
    world.goes("web-0");
}

#[test]
fn the_budget_is_said_before_the_refusal() {
    let world = answered(403, "Forbidden", "denied request", &[]).budget("web", "maxUnavailable: 0");
    assert_eq!(world.judge("web-0").wait.map(|wait| wait.reason), Some(Reason::BudgetNeverAllows));
}

#[test]
fn long_words_are_cut() {
    let wait = answered(500, "", &"é ".repeat(5000), &[]).judge("web-0").wait.expect("it waits");
    assert!(wait.message.chars().count() <= 600, "{}", wait.message.chars().count());
    assert!(wait.message.ends_with("…”."));
}
