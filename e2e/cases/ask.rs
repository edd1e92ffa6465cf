//! Asks `kubectl-drainplan`, as a person would.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-drainplan");

/// The answer of `explain`, as far as it is compared.
#[derive(Debug, Clone, Deserialize)]
pub struct Explained {
    pub pods: Vec<Pod>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    pub node: Option<String>,
    pub action: String,
    pub eviction: Eviction,
    pub verified: Option<Verified>,
    pub reason: Option<String>,
    pub outlook: Option<String>,
    pub message: String,
    pub remedy: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Eviction {
    pub code: u16,
    pub budgets: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Verified {
    pub code: u16,
}

/// The answer of `budgets`, as far as it is compared.
#[derive(Debug, Clone, Deserialize)]
pub struct Budgets {
    pub budgets: Vec<Budget>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Budget {
    pub namespace: String,
    pub name: String,
    pub reported: Numbers,
    pub computed: Computed,
    pub findings: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    pub expected_pods: i64,
    pub current_healthy: i64,
    pub desired_healthy: i64,
    pub disruptions_allowed: i64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Computed {
    #[serde(flatten)]
    pub numbers: Numbers,
    pub sync_error: Option<String>,
}

pub async fn explain(kubeconfig: &Path, verify: bool) -> anyhow::Result<Explained> {
    let verify: &[&str] = if verify { &["--verify"] } else { &[] };
    ask(&[&["explain", "--all"], verify, &["--kubeconfig"]].concat(), kubeconfig).await
}

pub async fn budgets(kubeconfig: &Path) -> anyhow::Result<Budgets> {
    ask(&["budgets", "-A", "--kubeconfig"], kubeconfig).await
}

/// Runs the program with these arguments and a path behind them.
pub async fn ask<T: DeserializeOwned>(arguments: &[&str], path: &Path) -> anyhow::Result<T> {
    let mut command = Command::new(PROGRAM);
    command.args(["-o", "json"]).args(arguments).arg(path).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.with_context(|| format!("cannot run {PROGRAM}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        matches!(output.status.code(), Some(0 | 3)),
        "{PROGRAM} {}: {} {said}",
        arguments.join(" "),
        output.status
    );
    serde_json::from_slice(&output.stdout).context("the answer is no JSON of the contract")
}
