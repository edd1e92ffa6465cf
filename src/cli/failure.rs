//! What is said when something fails: what happened, to which object, and what to do.

use std::error::Error;

use kube::config::InferConfigError;

/// An error and its causes in one sentence; what a cause repeats is said once.
pub(super) fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain() {
        let (said, last) = said(cause);
        if sentence.is_empty() {
            sentence = said;
        } else if !sentence.contains(&said) {
            sentence = format!("{sentence}: {said}");
        }
        if last {
            break;
        }
    }
    sentence
}

/// What an error says by itself, and whether its causes would add nothing.
fn said(error: &(dyn Error + 'static)) -> (String, bool) {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => (format!("{} ({})", status.message, status.code), true),
        Some(kube::Error::Service(cause)) => (cause.to_string(), false),
        _ => match error.downcast_ref::<InferConfigError>() {
            // Outside of a cluster nobody expects the service account of a pod.
            Some(infer) => (infer.source().map(ToString::to_string).unwrap_or_default(), false),
            None => (error.to_string(), false),
        },
    }
}

/// Why objects could not be listed.
pub(super) fn listing(plural: &str, server: &str, error: kube::Error) -> anyhow::Error {
    let context = match &error {
        kube::Error::Api(status) if status.code == 401 => {
            format!("the server {server} does not know who asks; renew the credentials of the kubeconfig")
        }
        kube::Error::Api(status) if status.is_forbidden() => {
            format!(
                "may not list {plural}; name a namespace that may be read with -n, or have the right granted"
            )
        }
        kube::Error::Api(_) => format!("cannot list {plural}"),
        _ => format!(
            "cannot list {plural}: no answer from the server {server}; check the kubeconfig and the network"
        ),
    };
    anyhow::Error::new(error).context(context)
}

/// The server said that whoever asks may not.
pub(super) fn is_forbidden(error: &anyhow::Error) -> bool {
    let answer = error.downcast_ref::<kube::Error>();
    matches!(answer, Some(kube::Error::Api(status)) if status.is_forbidden())
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use kube::core::Status;

    use super::*;

    #[test]
    fn an_answer_of_the_server_is_quoted_once() {
        let status = Status {
            code: 403,
            message: "pods is forbidden: User \"nobody\" cannot list resource \"pods\"".into(),
            reason: "Forbidden".into(),
            ..Status::default()
        };
        let error = listing("pods", "https://10.0.0.1", kube::Error::Api(Box::new(status)));
        assert!(is_forbidden(&error));
        assert_eq!(
            sentence(&error),
            "may not list pods; name a namespace that may be read with -n, or have the right granted: \
             pods is forbidden: User \"nobody\" cannot list resource \"pods\" (403)"
        );
    }

    #[test]
    fn a_cause_that_is_quoted_already_is_not_repeated() {
        let missing =
            std::fs::read_to_string("/nonexistent").context("cannot read /nonexistent").unwrap_err();
        let error = missing.context("cannot read /nonexistent: No such file or directory (os error 2)");
        assert_eq!(sentence(&error), "cannot read /nonexistent: No such file or directory (os error 2)");
    }
}
