//! An error as it is told: one sentence, to the bottom, without saying anything twice.

use std::error::Error;

use kube::config::{InferConfigError, KubeconfigError};

/// An error and its causes in one sentence; what a cause repeats is said once.
#[must_use]
pub fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain() {
        let (said, last) = said(cause, &sentence);
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
fn said(error: &(dyn Error + 'static), before: &str) -> (String, bool) {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return (format!("{} ({})", status.message, status.code), true);
    }
    if let Some(kube::Error::Service(cause)) = error.downcast_ref() {
        return (cause.to_string(), false);
    }
    if let Some(KubeconfigError::ReadConfig(cause, path)) = error.downcast_ref() {
        let path = path.display().to_string();
        let named = before.contains(&path);
        return (if named { cause.to_string() } else { format!("cannot read {path}: {cause}") }, true);
    }
    match error.downcast_ref::<InferConfigError>() {
        // Outside of a cluster nobody expects the service account of a pod.
        Some(infer) => (infer.source().map(ToString::to_string).unwrap_or_default(), false),
        None => (error.to_string(), false),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use kube::config::Kubeconfig;

    use super::*;

    #[test]
    fn a_cause_that_is_quoted_already_is_not_repeated() {
        let missing =
            std::fs::read_to_string("/nonexistent").context("cannot read /nonexistent").unwrap_err();
        let error = missing.context("cannot read /nonexistent: No such file or directory (os error 2)");
        assert_eq!(sentence(&error), "cannot read /nonexistent: No such file or directory (os error 2)");
    }

    #[test]
    fn the_path_of_a_kubeconfig_is_said_once() {
        let missing = || Kubeconfig::read_from("/nonexistent");
        let error = missing().context("cannot read the kubeconfig /nonexistent").unwrap_err();
        assert_eq!(
            sentence(&error),
            "cannot read the kubeconfig /nonexistent: No such file or directory (os error 2)"
        );
        let error = missing().context("cannot use the kubeconfig").unwrap_err();
        assert_eq!(
            sentence(&error),
            "cannot use the kubeconfig: cannot read /nonexistent: No such file or directory (os error 2)"
        );
    }
}
