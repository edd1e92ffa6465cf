//! `/livez`, `/readyz` and `/metrics`.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::metrics::Metrics;
use super::signals::Shutdown;

/// Where it listens in a cluster: the kubelet asks the pod's address.
pub const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 8080);

/// How long open requests may take once the end is requested.
const GRACE: Duration = Duration::from_secs(2);

/// How the loop is, as it says itself. Clones are the same.
#[derive(Clone, Debug)]
pub struct Health(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    silence: Duration,
    state: Mutex<Loop>,
}

#[derive(Debug)]
struct Loop {
    last_turn: Instant,
    /// What readiness waits for.
    pending: Vec<&'static str>,
    /// What is no longer in sync, and since when.
    behind: BTreeMap<&'static str, Instant>,
}

/// What is seen may be so old before the replica stops being ready: a server that restarts is back before.
const BEHIND: Duration = Duration::from_secs(10);

impl Health {
    /// A loop that turns at least every `silence`, and is not ready yet because of `pending`.
    #[must_use]
    pub fn new(silence: Duration, pending: impl IntoIterator<Item = &'static str>) -> Self {
        let pending = pending.into_iter().collect();
        let state = Mutex::new(Loop { last_turn: Instant::now(), pending, behind: BTreeMap::new() });
        Self(Arc::new(Inner { silence, state }))
    }

    /// The loop has turned.
    pub fn turned(&self) {
        self.with(|state| state.last_turn = Instant::now());
    }
    /// `what` is there: a cache has synced for the first time. Ready when everything is.
    pub fn done(&self, what: &str) {
        self.with(|state| state.pending.retain(|pending| *pending != what));
    }
    /// `what` is seen as it was, not as it is: its watch has failed.
    pub fn lost(&self, what: &'static str) {
        self.with(|state| {
            state.behind.entry(what).or_insert_with(Instant::now);
        });
    }
    /// `what` is seen as it is again; for how long it was not.
    #[must_use]
    pub fn regained(&self, what: &str) -> Option<Duration> {
        self.with(|state| state.behind.remove(what)).map(|since| since.elapsed())
    }
    /// Everything is there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.with(|state| state.pending.is_empty())
    }

    pub(super) fn readiness(&self, shutdown: &Shutdown) -> Result<(), String> {
        if shutdown.is_requested() {
            return Err("shutting down".to_owned());
        }
        let (pending, behind) = self.with(|state| (state.pending.join(", "), state.behind.clone()));
        if !pending.is_empty() {
            return Err(format!("waiting for: {pending}"));
        }
        let behind = behind.into_iter().map(|(what, since)| (what, since.elapsed()));
        let told = behind.filter(|(_, age)| *age > BEHIND);
        let told: Vec<String> = told.map(|(what, age)| format!("{what} for {} s", age.as_secs())).collect();
        if told.is_empty() { Ok(()) } else { Err(format!("not in sync: {}", told.join(", "))) }
    }
    fn liveness(&self) -> Result<(), String> {
        let silent = self.with(|state| state.last_turn.elapsed());
        if silent <= self.0.silence {
            Ok(())
        } else {
            let limit = self.0.silence.as_secs();
            Err(format!("the loop has not turned for {} s, expected every {limit} s", silent.as_secs()))
        }
    }
    fn with<T>(&self, act: impl FnOnce(&mut Loop) -> T) -> T {
        act(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The server, bound to its address.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Takes the address; port 0 takes any free one.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// Serves until the end is requested, then lets open requests finish for a moment.
    pub async fn run(self, health: Health, metrics: Metrics, shutdown: Shutdown) -> io::Result<()> {
        let stop = shutdown.requested();
        let end = async {
            shutdown.requested().await;
            tokio::time::sleep(GRACE).await;
        };
        let app = Router::new()
            .route("/livez", get(livez))
            .route("/readyz", get(readyz))
            .route("/metrics", get(scrape))
            .with_state((health, metrics, shutdown.clone()));
        tokio::select! {
            ended = axum::serve(self.listener, app).with_graceful_shutdown(stop).into_future() => ended,
            () = end => Ok(()),
        }
    }
}

type Shared = State<(Health, Metrics, Shutdown)>;

async fn livez(State((health, _, _)): Shared) -> (StatusCode, String) {
    answer(health.liveness())
}

async fn readyz(State((health, _, shutdown)): Shared) -> (StatusCode, String) {
    answer(health.readiness(&shutdown))
}

fn answer(state: Result<(), String>) -> (StatusCode, String) {
    match state {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
    }
}

async fn scrape(State((_, metrics, _)): Shared) -> impl IntoResponse {
    match metrics.encode() {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, [(CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write the metrics: {error}\n"))
            .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;
    use crate::engine::signals::Trigger;

    const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    struct Serving {
        address: SocketAddr,
        trigger: Trigger,
        task: tokio::task::JoinHandle<io::Result<()>>,
    }

    async fn serve(health: &Health, metrics: &Metrics) -> Serving {
        let server = Server::bind(LOOPBACK).await.unwrap();
        let address = server.address();
        let (trigger, shutdown) = Shutdown::channel();
        let task = tokio::spawn(server.run(health.clone(), metrics.clone(), shutdown));
        Serving { address, trigger, task }
    }

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn ready_once_every_cache_has_synced() {
        let health = Health::new(Duration::from_mins(1), ["nodes", "pods"]);
        let serving = serve(&health, &Metrics::new()).await;
        let answer = ask(serving.address, "/readyz").await;
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("waiting for: nodes, pods\n"),
            "{answer}"
        );
        health.done("nodes");
        let answer = ask(serving.address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("waiting for: pods\n"), "{answer}");
        health.done("pods");
        assert!(ask(serving.address, "/readyz").await.starts_with("HTTP/1.1 200 "));
        assert!(health.is_ready());
        serving.trigger.request();
        timeout(Duration::from_secs(10), serving.task).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn not_ready_while_a_watch_is_behind_for_long() {
        let health = Health::new(Duration::from_mins(1), []);
        let (_trigger, shutdown) = Shutdown::channel();
        health.lost("Pod");
        tokio::time::advance(Duration::from_secs(4)).await;
        health.lost("DrainPlan");
        tokio::time::advance(Duration::from_secs(6)).await;
        health.lost("Pod");
        assert_eq!(health.readiness(&shutdown), Ok(()));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(
            health.readiness(&shutdown),
            Err("not in sync: DrainPlan for 11 s, Pod for 15 s".to_owned())
        );
        assert_eq!(health.regained("DrainPlan"), Some(Duration::from_secs(11)));
        assert_eq!(health.regained("Pod"), Some(Duration::from_secs(15)));
        assert_eq!((health.readiness(&shutdown), health.regained("Pod")), (Ok(()), None));
    }

    #[tokio::test(start_paused = true)]
    async fn alive_while_the_loop_turns() {
        let health = Health::new(Duration::from_mins(1), []);
        assert_eq!(health.liveness(), Ok(()));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(
            health.liveness(),
            Err("the loop has not turned for 61 s, expected every 60 s".to_owned())
        );
        health.turned();
        assert_eq!(health.liveness(), Ok(()));
    }

    #[tokio::test]
    async fn a_loop_that_never_turns_is_not_alive() {
        let health = Health::new(Duration::ZERO, []);
        let serving = serve(&health, &Metrics::new()).await;
        let answer = ask(serving.address, "/livez").await;
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("has not turned"), "{answer}");
    }

    #[tokio::test]
    async fn metrics_are_served_as_prometheus_reads_them() {
        let metrics = Metrics::new();
        metrics.leading(true);
        let serving = serve(&Health::new(Duration::from_mins(1), []), &metrics).await;
        let answer = ask(serving.address, "/metrics").await;
        assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0"), "{answer}");
        assert!(answer.contains("\ndrainplan_leader 1\n") && answer.ends_with("# EOF\n"), "{answer}");
        assert!(ask(serving.address, "/").await.starts_with("HTTP/1.1 404 "));
    }

    #[tokio::test]
    async fn not_ready_once_the_end_is_requested() {
        let health = Health::new(Duration::from_mins(1), []);
        let (trigger, shutdown) = Shutdown::channel();
        assert_eq!(health.readiness(&shutdown), Ok(()));
        trigger.request();
        assert_eq!(health.readiness(&shutdown), Err("shutting down".to_owned()));
    }

    #[tokio::test]
    async fn a_client_that_says_nothing_does_not_hold_up_the_end() {
        let serving = serve(&Health::new(Duration::from_mins(1), []), &Metrics::new()).await;
        let mut silent = TcpStream::connect(serving.address).await.unwrap();
        silent.write_all(b"GET /livez HTTP/1.1\r\n").await.unwrap();
        // The server has the half request once it answers a later one.
        ask(serving.address, "/livez").await;
        serving.trigger.request();
        timeout(Duration::from_secs(30), serving.task).await.unwrap().unwrap().unwrap();
    }
}
