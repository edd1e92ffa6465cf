//! The controller: watches plans and drains their nodes.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, ValueEnum};
use drainplan::engine;
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
    /// Where /livez, /readyz and /metrics are served.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    /// The namespace of the lease that decides which replica acts.
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "drainplan-system")]
    lease_namespace: String,
    /// The name of that lease.
    #[arg(long, value_name = "NAME", default_value = "drainplan-controller")]
    lease_name: String,
    /// How this replica signs the lease. Without it: the host's name and a random part.
    /// No two that run at the same time may have the same: each would take the other's lease for its own.
    #[arg(long, value_name = "NAME", env = "POD_NAME", value_parser = NonEmptyStringValueParser::new())]
    identity: Option<String>,
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
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    start_log(&arguments)?;
    let kube = kube_config(&arguments).await?;
    let identity = arguments.identity.unwrap_or_else(|| engine::lease::identity(&host_name()));
    let options = engine::Options {
        kube,
        listen: arguments.listen,
        lease_namespace: arguments.lease_namespace,
        lease_name: arguments.lease_name,
        identity,
    };
    engine::run(options).await
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
