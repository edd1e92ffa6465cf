//! One call to the API server, with an end in time.

use std::time::Duration;

use super::metrics::WriteResult;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// It may have been carried out all the same.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
    #[error(transparent)]
    Kube(#[from] Box<kube::Error>),
}

/// Runs a request and gives up on its answer after `limit`.
pub async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, CallError> {
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
            Self::Timeout(_) => None,
        }
    }
    /// As a write is counted.
    #[must_use]
    pub fn result(&self) -> WriteResult {
        match self {
            Self::Timeout(_) => WriteResult::Timeout,
            Self::Kube(_) if self.code() == Some(409) => WriteResult::Conflict,
            Self::Kube(_) => WriteResult::Failed,
        }
    }
}

/// The result of a write, as it is counted.
pub fn result_of<T>(answer: &Result<T, CallError>) -> WriteResult {
    answer.as_ref().map_or_else(CallError::result, |_| WriteResult::Ok)
}
