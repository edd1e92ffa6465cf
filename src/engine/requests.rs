//! Counts the requests a client sends.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::metrics::Metrics;

/// A layer for `kube::client::ClientBuilder::with_layer`. Watches count once, when they begin.
#[derive(Clone, Debug)]
pub struct CountRequests(pub Metrics);

/// The service with its requests counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    metrics: Metrics,
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, metrics: self.0.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let method = label(request.method());
        let metrics = self.metrics.clone();
        let start = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().ok().map(|response| response.status().as_u16());
            metrics.api_request(method, code, start.elapsed());
            answer
        })
    }
}

fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn answers_and_failures_are_counted_by_method_and_code() {
        let metrics = Metrics::new();
        let service = service_fn(async |request: Request<u16>| match *request.body() {
            0 => Err("connection refused"),
            code => Ok(Response::builder().status(code).body(()).unwrap()),
        });
        let service = CountRequests(metrics.clone()).layer(service);
        for (method, answer) in
            [(Method::POST, 201), (Method::POST, 429), (Method::POST, 429), (Method::GET, 0)]
        {
            let request = Request::builder().method(method).body(answer).unwrap();
            let _ = service.clone().oneshot(request).await;
        }
        let text = metrics.encode().unwrap();
        for series in [
            "drainplan_api_requests_total{method=\"POST\",code=\"201\"} 1\n",
            "drainplan_api_requests_total{method=\"POST\",code=\"429\"} 2\n",
            "drainplan_api_requests_total{method=\"GET\",code=\"error\"} 1\n",
            "drainplan_api_request_seconds_count{method=\"POST\"} 3\n",
        ] {
            assert!(text.contains(series), "{series} in {text}");
        }
    }
}
