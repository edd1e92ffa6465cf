//! What is said when something fails: what happened, to which object, and what to do.

pub(super) use crate::engine::failure::sentence;

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
}
