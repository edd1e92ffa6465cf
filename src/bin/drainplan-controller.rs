//! The controller: watches plans and drains their nodes.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, ValueEnum};
use drainplan::api::IntOrPercent;
use drainplan::api::syntax;
use drainplan::engine::failure::sentence;
use drainplan::engine::lease::Identity;
use drainplan::engine::{self, OwnPod};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tracing_subscriber::EnvFilter;

/// Drains nodes as DrainPlans ask, and says what every pod waits on.
#[derive(Parser)]
#[command(name = "drainplan-controller", version)]
struct Arguments {
    /// The kubeconfig to use. Without it: $KUBECONFIG, ~/.kube/config, or the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Where /livez, /readyz and /metrics are served; in a pod 0.0.0.0:8080, for the kubelet and for Prometheus.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The namespace of the lease that decides which replica acts.
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "drainplan-system", value_parser = namespace)]
    lease_namespace: String,
    /// The name of that lease.
    #[arg(long, value_name = "NAME", default_value = "drainplan-controller", value_parser = object_name)]
    lease_name: String,
    /// The name that this replica signs the lease with, next to a random part. Without it: the pod's or the host's.
    /// Give each replica its own: one that sees the lease renewed by another process of its name ends with an error.
    /// After a crash it waits until its predecessor's lease is over, 15 s.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    identity: Option<String>,
    /// The pod that this runs in; it signs the lease with it. As a container is started again only after its end,
    /// a restarted one takes the lease of its predecessor after 4 s. On a node that is drained this pod goes last, and
    /// another replica evicts it when one is Ready on another node.
    #[arg(long, value_name = "NAME", env = "POD_NAME", value_parser = object_name)]
    pod_name: Option<String>,
    /// The namespace of that pod. Without it: the lease's.
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", value_parser = namespace)]
    pod_namespace: Option<String>,
    /// How many nodes all plans together may hold cordoned, as a number or a percentage of all nodes, rounded down and at
    /// least 1. Nodes that a plan has left cordoned count until somebody uncordons them.
    #[arg(long, value_name = "NODES", default_value = "100%")]
    max_cordoned_nodes: IntOrPercent,
    /// How many requests a second it sends to the API server, with a burst of twice as many; an eviction takes one or two.
    /// Watches and the lease do not count and never wait.
    #[arg(long, value_name = "REQUESTS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    kube_api_qps: u32,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// What is logged, such as `info` or `drainplan=debug`.
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = "info,kube_client=off")]
    log: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[tokio::main]
async fn main() -> ExitCode {
    // By hand, because the error that `main` returns is printed with a backtrace when one is asked for.
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drainplan-controller: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    start_log(&arguments)?;
    let kube = kube_config(&arguments).await?;
    let options = engine::Options {
        kube,
        listen: arguments.listen,
        identity: identity(&arguments),
        own_pod: own_pod(&arguments),
        lease_namespace: arguments.lease_namespace,
        lease_name: arguments.lease_name,
        max_cordoned_nodes: arguments.max_cordoned_nodes,
        kube_api_qps: arguments.kube_api_qps,
    };
    engine::run(options).await
}

fn identity(arguments: &Arguments) -> Identity {
    match (&arguments.identity, &arguments.pod_name) {
        (Some(name), _) => Identity::named(name),
        (None, Some(pod)) => Identity::of_pod(pod),
        (None, None) => Identity::of_host(&host_name()),
    }
}

fn own_pod(arguments: &Arguments) -> Option<OwnPod> {
    let name = arguments.pod_name.clone()?;
    let namespace = arguments.pod_namespace.as_ref().unwrap_or(&arguments.lease_namespace).clone();
    Some(OwnPod { namespace, name })
}

fn namespace(name: &str) -> Result<String, &'static str> {
    const RULE: &str = "a namespace's name has up to 63 small letters, digits and dashes, no dash first or last, such as drainplan-system";
    syntax::is_dns_label(name).then(|| name.to_owned()).ok_or(RULE)
}

fn object_name(name: &str) -> Result<String, &'static str> {
    const RULE: &str = "an object's name has up to 253 small letters, digits, dashes and dots, a letter or digit first and last, such as drainplan-controller";
    syntax::is_subdomain(name).then(|| name.to_owned()).ok_or(RULE)
}

async fn kube_config(arguments: &Arguments) -> anyhow::Result<kube::Config> {
    let options = KubeConfigOptions { context: arguments.context.clone(), ..KubeConfigOptions::default() };
    let Some(path) = &arguments.kubeconfig else {
        if arguments.context.is_some() {
            return kube::Config::from_kubeconfig(&options).await.context("cannot use the kubeconfig");
        }
        return kube::Config::infer().await.context("found neither a kubeconfig nor a pod's service account");
    };
    let kubeconfig = Kubeconfig::read_from(path)
        .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.with_context(|| format!("cannot use the kubeconfig {}", path.display()))
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "drainplan".to_owned() } else { name.trim().to_owned() }
}

fn start_log(arguments: &Arguments) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&arguments.log)
        .with_context(|| format!("{:?} is no log filter; write for example info", arguments.log))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match arguments.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
