//! A control plane that is gone when it is dropped.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

/// A running control plane.
pub struct Testbed {
    name: String,
    pub directory: PathBuf,
}

/// Starts one. A cluster belongs to this process, so a crash leaves none behind.
pub fn up(case: &str) -> anyhow::Result<Testbed> {
    let name = format!("case-{}-{}", case.to_lowercase(), std::process::id());
    let kubeconfig = run(&["up", &name])?;
    let kubeconfig = PathBuf::from(kubeconfig.lines().last().unwrap_or_default());
    let directory = kubeconfig.parent().context("the testbed names no kubeconfig")?.to_owned();
    Ok(Testbed { name, directory })
}

impl Testbed {
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }
    /// With the same rights, for what the world does.
    pub fn simulator(&self) -> PathBuf {
        self.directory.join("simulator.kubeconfig")
    }
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        run(&[&["kubectl", &self.name], arguments].concat())
    }
    pub fn stop(&self, component: &str) -> anyhow::Result<()> {
        run(&["stop", &self.name, component]).map(drop)
    }
    pub fn start(&self, component: &str) -> anyhow::Result<()> {
        run(&["start", &self.name, component]).map(drop)
    }
    /// The node's kubelet is silent from now on.
    pub fn silence(&self, node: &str) -> anyhow::Result<()> {
        run(&["kubelet", &self.name, node, "dead"]).map(drop)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if let Err(error) = run(&["down", &self.name]) {
            eprintln!("{error:#}");
        }
    }
}

fn run(arguments: &[&str]) -> anyhow::Result<String> {
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("e2e/testbed");
    let output = Command::new(&program)
        .args(arguments)
        .env("TESTBED_OWNER", std::process::id().to_string())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "e2e/testbed {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
