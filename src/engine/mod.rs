//! The loop: watch → decide → act → report; leader lease, events, metrics, health.
//!
//! Everything that talks to a server or reads a clock is here. [`watch`] brings observations, [`controller`] owns the
//! cluster and calls `plan::decide`, [`act`] does what was decided.

mod act;
mod answers;
pub mod call;
mod controller;
pub mod events;
pub mod failure;
#[cfg(test)]
mod fake;
pub mod lease;
pub mod metrics;
mod pace;
mod parts;
mod report;
pub mod requests;
pub mod rights;
pub mod scales;
pub mod serve;
pub mod signals;
mod watch;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use futures::{FutureExt as _, TryFutureExt as _};
use http::header::USER_AGENT;
use http::{HeaderName, HeaderValue};
use kube::api::ListParams;
use kube::client::ClientBuilder;
use kube::{Api, Client};
use tokio::sync::oneshot;

use act::Hands;
use controller::Controller;
use events::Publisher;
use lease::{Elector, Identity, Timings};
use metrics::Metrics;
use pace::Pace;
use parts::Parts;
use requests::CountRequests;
use serve::{Health, Server};
use signals::Shutdown;

use crate::api::{DrainPlan, IntOrPercent};
use crate::cluster::{ObjectKind, PodKey};
use crate::plan::Settings;

/// A loop that has not turned for so long hangs: it turns at least every 30 s.
const SILENCE: Duration = Duration::from_mins(2);

/// How audit logs and servers see the controller.
const AGENT: &str = concat!("drainplan-controller/", env!("CARGO_PKG_VERSION"));

/// The pod that the process runs in.
pub struct OwnPod {
    pub namespace: String,
    pub name: String,
}

/// What the process is told.
pub struct Options {
    /// How to reach the API server.
    pub kube: kube::Config,
    /// Where health and metrics are served.
    pub listen: SocketAddr,
    /// The lease that decides which replica acts.
    pub lease_namespace: String,
    pub lease_name: String,
    /// How this replica signs the lease.
    pub identity: Identity,
    /// The pod that this runs in.
    pub own_pod: Option<OwnPod>,
    /// How many nodes all plans together may hold cordoned.
    pub max_cordoned_nodes: IntOrPercent,
    /// How many requests a second it may send, but for watches and the lease; 0 is no limit.
    pub kube_api_qps: u32,
}

/// A client that says who it is and never retries by itself.
///
/// # Errors
/// When the configuration cannot be used.
pub fn client(
    mut config: kube::Config,
    agent: &'static str,
    metrics: &Metrics,
) -> Result<Client, kube::Error> {
    // The default client repeats a blocked eviction for minutes; what to try again, and when, is decided here.
    config.default_retry = false;
    let headers: &mut Vec<(HeaderName, HeaderValue)> = &mut config.headers;
    headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    Ok(ClientBuilder::try_from(config)?.with_layer(&CountRequests(metrics.clone())).build())
}

/// Runs the controller until SIGTERM or SIGINT.
///
/// # Errors
/// When the server cannot be reached at the start, knows no DrainPlan, or the port is taken; later when another
/// process has this replica's name, or a part of this one has ended. The lease is given back before.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let shutdown = Shutdown::on_signals().context("cannot listen for signals")?;
    let server = options.kube.cluster_url.to_string();
    let metrics = Metrics::new();
    let client = client(options.kube, AGENT, &metrics).context("cannot use this kubeconfig")?;
    let health =
        Health::new(SILENCE, ObjectKind::ALL.map(ObjectKind::name).into_iter().chain([controller::PLANS]));
    let listener =
        Server::bind(options.listen).await.with_context(|| format!("cannot listen on {}", options.listen))?;
    tracing::info!(address = %listener.address(), server, identity = options.identity.signature(), "starting");
    knows_plans(&client, &server).await?;

    let mut parts = Parts::new();
    let observations = watch::start(&client, &metrics, &health, &parts);
    let pace = Pace::of(options.kube_api_qps);
    let (publisher, events) = Publisher::new(client.clone(), options.identity.signature(), metrics.clone());
    let events = events.at(pace.clone());
    let (elector, leadership) = Elector::new(
        client.clone(),
        &options.lease_namespace,
        &options.lease_name,
        options.identity,
        Timings::default(),
        metrics.clone(),
    );
    let controller = Controller::new(controller::Parts {
        hands: Hands::new(client, leadership.clone(), metrics.clone())
            .at(pace)
            .resigning(elector.resignation()),
        observations,
        leadership,
        publisher,
        metrics: metrics.clone(),
        health: health.clone(),
        settings: Settings {
            max_cordoned_nodes: options.max_cordoned_nodes,
            own_pod: options
                .own_pod
                .map(|own| PodKey { namespace: own.namespace.into(), name: own.name.into() }),
            ..Settings::default()
        },
    });

    // The loop ends first; only then is the lease given back and the last events sent. A request that was not answered
    // may still be carried out, so then the lease is left to expire.
    let (halt, halted) = Shutdown::channel();
    let (loop_ended, after_loop) = Shutdown::channel();
    let (all_answered, after_answers) = Shutdown::channel();
    let (answered, heard) = oneshot::channel();
    let (released, told) = (after_answers.requested(), after_loop.requested());
    let elector = parts.start("the leader lease", async { Ok(elector.run(released).await?) });
    let events = parts.start("the publisher of events", events.run(told).map(Ok));
    let serving = listener.run(health, metrics, halted.clone());
    let serving = parts.start("the server of health and metrics", serving.map_err(anyhow::Error::from));
    let running = controller.run(halted.requested()).map(|ended| {
        let _ = answered.send(ended.answered);
        ended.because
    });
    let running = parts.start("the loop", running);
    let broken = tokio::select! {
        () = shutdown.requested() => Ok(()),
        broken = parts.broken() => Err(broken),
    };
    if let Err(error) = &broken {
        tracing::error!("ending: {}", failure::sentence(error));
    }
    halt.request();
    running.await?;
    loop_ended.request();
    if heard.await.unwrap_or(false) {
        all_answered.request();
        elector.await?;
    }
    events.await?;
    serving.await?;
    broken.and_then(|()| parts.failure())
}

/// Fails early, with what to do, when the resource is not installed.
async fn knows_plans(client: &Client, server: &str) -> anyhow::Result<()> {
    let plans: Api<DrainPlan> = Api::all(client.clone());
    match plans.list(&ListParams::default().limit(1)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            anyhow::bail!(
                "{server} knows no DrainPlan: run `kubectl drainplan crd | kubectl apply --server-side -f -`"
            );
        }
        // One plan that cannot be read must not keep the others waiting; a watch says what is wrong with it.
        Ok(_) | Err(kube::Error::SerdeError(_)) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot list DrainPlans on {server}")),
    }
}
