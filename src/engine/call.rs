//! One call to the API server, with an end in time.

use std::time::Duration;

use super::metrics::WriteResult;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// It may have been carried out all the same.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
    #[error("it was not sent: this replica may not act any more, or --kube-api-qps leaves no room for it")]
    NotSent,
    #[error("{}", words(.0))]
    Kube(#[source] Box<kube::Error>),
}

/// Runs a request and gives up on its answer after `limit`. Without any time it is not sent: that is how a replica
/// which no longer leads is kept from acting.
pub async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, CallError> {
    if limit.is_zero() {
        return Err(CallError::NotSent);
    }
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => answer.map_err(|error| CallError::Kube(Box::new(error))),
        Err(_) => Err(CallError::Timeout(limit)),
    }
}

impl CallError {
    /// The code of the server's answer, when it answered.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Kube(error) => match &**error {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Timeout(_) | Self::NotSent => None,
        }
    }
    /// As a write is counted.
    #[must_use]
    pub fn result(&self) -> WriteResult {
        match self {
            Self::Timeout(_) => WriteResult::Timeout,
            Self::Kube(_) if self.code() == Some(409) => WriteResult::Conflict,
            Self::Kube(_) | Self::NotSent => WriteResult::Failed,
        }
    }
}

/// The server's own sentence, or what broke on the way to it.
fn words(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return format!("{} ({})", status.message, status.code);
    }
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        let said = source.to_string();
        // Some errors already say what their source says.
        if !words.contains(&said) {
            words = format!("{words}: {said}");
        }
        cause = source.source();
    }
    words
}

/// The result of a write, as it is counted.
pub fn result_of<T>(answer: &Result<T, CallError>) -> WriteResult {
    answer.as_ref().map_or_else(CallError::result, |_| WriteResult::Ok)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use kube::{Api, Client, Config};

    use super::*;
    use crate::engine::fake::{FakeApi, Mode};

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn an_answer_is_quoted_with_its_code() {
        let (client, line) = FakeApi::default().client();
        line.set(Mode::Refusing(403));
        let error = within(LIMIT, Api::<Node>::all(client).get("a")).await.unwrap_err();
        assert_eq!(error.to_string(), "out of order (403)");
        assert_eq!((error.code(), error.result()), (Some(403), WriteResult::Failed));
    }

    #[tokio::test]
    async fn a_broken_connection_is_explained_to_the_bottom() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut config = Config::new(format!("http://{address}").parse().unwrap());
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let error = within(LIMIT, Api::<Node>::all(client).get("a")).await.unwrap_err();
        assert!(error.to_string().contains("Connection refused"), "{error}");
        assert_eq!((error.code(), error.result()), (None, WriteResult::Failed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_is_not_awaited() {
        let (client, line) = FakeApi::default().client();
        line.set(Mode::Silent);
        let error = within(LIMIT, Api::<Node>::all(client).get("a")).await.unwrap_err();
        assert_eq!(error.to_string(), "the API server did not answer within 30s");
        assert_eq!((error.code(), error.result()), (None, WriteResult::Timeout));
    }

    #[tokio::test]
    async fn without_time_nothing_is_sent() {
        let api = FakeApi::default();
        let error = within(Duration::ZERO, Api::<Node>::all(api.client().0).get("a")).await.unwrap_err();
        assert!(matches!(error, CallError::NotSent), "{error}");
        tokio::task::yield_now().await;
        assert_eq!(api.take_log(), Vec::<String>::new());
    }
}
