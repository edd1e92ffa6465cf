//! The cluster that `e2e/testbed` makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// How the harness signs its own requests, so that they are told apart in the audit log.
const AGENT: &str = "drainplan-e2e";

/// A cluster of its own; it goes when this is dropped, unless it is kept.
pub struct Testbed {
    name: String,
    kubeconfig: PathBuf,
    client: Client,
    keep: bool,
}

impl Testbed {
    /// Creates a cluster; `keep` leaves it when this process is gone.
    pub async fn up(name: &str, keep: bool) -> Result<Self> {
        Self::create(name, keep, &[]).await
    }

    /// Creates a cluster with more arguments.
    pub async fn up_with(name: &str, more: &[&str]) -> Result<Self> {
        Self::create(name, false, more).await
    }

    async fn create(name: &str, keep: bool, more: &[&str]) -> Result<Self> {
        let owner = if keep { "none".to_owned() } else { std::process::id().to_string() };
        let mut up = Command::new(script());
        up.args(["up", name]).args(more).env("TESTBED_OWNER", owner);
        let printed = command(up).await?;
        let kubeconfig =
            PathBuf::from(printed.lines().last().context("e2e/testbed up printed no kubeconfig")?);
        let client = client(&kubeconfig).await?;
        Ok(Self { name: name.to_owned(), kubeconfig, client, keep })
    }

    /// What `e2e/testbed` knows it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The kubeconfig of whoever plays the world: all rights, and not in the audit log.
    #[allow(dead_code, reason = "the cases use it")]
    pub fn simulator(&self) -> PathBuf {
        self.dir().join("simulator.kubeconfig")
    }

    /// A client for that kubeconfig.
    #[allow(dead_code, reason = "the cases use it")]
    pub async fn simulator_client(&self) -> Result<Client> {
        client(&self.simulator()).await
    }

    /// A place for files that go with the cluster.
    pub fn dir(&self) -> &Path {
        self.kubeconfig.parent().unwrap_or(Path::new("/"))
    }

    /// The server's audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.dir().join("logs/audit.log")
    }

    /// `stop`, `start`, `pause` or `resume` of a component; returns when it is gone, or healthy.
    pub async fn component(&self, verb: &str, component: &str) -> Result<()> {
        let mut testbed = Command::new(script());
        testbed.args([verb, &self.name, component]);
        command(testbed).await.map(drop)
    }

    /// What a node's simulated kubelet does from now on: `dead`, `not-ready` or `alive`.
    pub async fn kubelet(&self, node: &str, state: &str) -> Result<()> {
        let mut testbed = Command::new(script());
        testbed.args(["kubelet", &self.name, node, state]);
        command(testbed).await.map(drop)
    }

    /// What a program prints that calls `kubectl`, as an administrator.
    pub async fn run(&self, program: &Path, arguments: &[&str]) -> Result<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut run = Command::new(program);
        run.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        run.env("PATH", format!("{}:{path}", self.dir().join("bin").display()));
        command(run).await
    }

    /// What `kubectl` prints.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut kubectl = Command::new(self.dir().join("bin/kubectl"));
        kubectl.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command(kubectl).await
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        let down = Command::new(script()).args(["down", &self.name]).stderr(Stdio::inherit()).status();
        if !down.is_ok_and(|status| status.success()) {
            eprintln!("cluster {0} is still there: e2e/testbed down {0} removes it", self.name);
        }
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/testbed")
}

/// A client for a kubeconfig that says who it is and sends everything once.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read the kubeconfig {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
    Ok(Client::try_from(config)?)
}

/// Runs a command; what it prints, or a failure that quotes its complaint.
pub async fn command(mut command: Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = tokio::task::spawn_blocking(move || command.stdin(Stdio::null()).output()).await?;
    let output = output.with_context(|| format!("cannot run {shown}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shown} failed with {}: {}", output.status, complaint.trim());
    match String::from_utf8(output.stdout) {
        Ok(printed) => Ok(printed),
        Err(_) => bail!("{shown} printed something that is not UTF-8"),
    }
}
