//! A cluster of our own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A running control plane; removed when it is dropped.
pub struct Testbed {
    name: String,
    kubeconfig: PathBuf,
    keep: bool,
}

impl Testbed {
    /// Creates a cluster that belongs to this process.
    pub fn up(keep: bool) -> Result<Self> {
        let name = format!("parity-{}", std::process::id());
        let output = run(&["up", &name])?;
        let kubeconfig = output.lines().last().context("testbed up printed no kubeconfig")?.trim();
        Ok(Self { kubeconfig: kubeconfig.into(), name, keep })
    }
    /// A client that says who it is and retries nothing.
    pub async fn client(&self) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }
    pub fn stop(&self, component: &str) -> Result<()> {
        run(&["stop", &self.name, component]).map(drop)
    }
    pub fn start(&self, component: &str) -> Result<()> {
        run(&["start", &self.name, component]).map(drop)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if self.keep {
            eprintln!("parity: kept {} ({})", self.name, self.kubeconfig.display());
        } else if let Err(error) = run(&["down", &self.name]) {
            eprintln!("parity: {error:#}");
        }
    }
}

fn run(arguments: &[&str]) -> Result<String> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/testbed");
    let output = Command::new(program)
        .args(arguments)
        .env("TESTBED_OWNER", std::process::id().to_string())
        .stderr(Stdio::inherit())
        .output()
        .context("run e2e/testbed")?;
    if !output.status.success() {
        bail!("e2e/testbed {} failed: {}", arguments.join(" "), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
