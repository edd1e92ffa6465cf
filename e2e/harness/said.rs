//! What is said of waiting pods, compared with the rows of `reasons.yaml`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use drainplan::api::{NodeStatus, WaitingPod};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::rows::{self, Explain, Row, Said};
use super::{Bed, PlanRun};

/// How long a status, or `explain`, may take to say what a row says.
const PATIENCE: Duration = Duration::from_secs(100);
/// How long `explain` is let be before it is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// The rows that were met in one case: by a plan's status, and by `explain`.
#[derive(Default)]
pub struct Compared {
    status: Mutex<BTreeSet<String>>,
    explain: Mutex<BTreeSet<String>>,
}

fn add(to: &Mutex<BTreeSet<String>>, row: &str) {
    to.lock().unwrap_or_else(PoisonError::into_inner).insert(row.to_owned());
}

fn has(set: &Mutex<BTreeSet<String>>, row: &str) -> bool {
    set.lock().unwrap_or_else(PoisonError::into_inner).contains(row)
}

fn row(name: &str) -> Result<Row> {
    let mut all = rows::all().map_err(|error| anyhow!(error))?;
    all.remove(name).with_context(|| format!("e2e/reasons.yaml has no row {name}"))
}

impl Bed {
    /// What the status says of this pod is what the row says.
    pub fn says(&self, name: &str, waiting: &WaitingPod) -> Result<()> {
        let row = row(name)?;
        row.compare(&self.of_status(waiting)).map_err(|error| anyhow!("{}: {error}", waiting.pod))?;
        add(&self.compared.status, name);
        Ok(())
    }

    /// Awaits that any status which the plan has had says of a pod what the row says; that is a pod whose name begins so.
    pub async fn shows(&self, name: &str, plan: &PlanRun, pod: &str) -> Result<(NodeStatus, WaitingPod)> {
        self.shows_in(name, plan, &self.name, pod).await
    }

    /// The same of a pod in another namespace.
    pub async fn shows_in(
        &self,
        name: &str,
        plan: &PlanRun,
        namespace: &str,
        pod: &str,
    ) -> Result<(NodeStatus, WaitingPod)> {
        let row = row(name)?;
        let differences = Mutex::new(BTreeSet::new());
        let wanted = |_: &NodeStatus, waiting: &WaitingPod| {
            if waiting.namespace != namespace || !waiting.pod.starts_with(pod) {
                return false;
            }
            match row.differs(&self.of_status(waiting)) {
                Some(difference) => {
                    add(&differences, &format!("{}: {difference}", waiting.pod));
                    false
                }
                None => true,
            }
        };
        let found = plan.shows_waiting(name, PATIENCE, wanted).await;
        let found = found.with_context(|| {
            let seen = differences.lock().unwrap_or_else(PoisonError::into_inner);
            format!("row {name} was never shown: {}", seen.iter().cloned().collect::<Vec<_>>().join("\n"))
        })?;
        self.says(name, &found.1)?;
        Ok(found)
    }

    /// Awaits that `kubectl drainplan explain` says of the pod what the row says.
    pub async fn explains(&self, name: &str, namespace: &str, pod: &str) -> Result<()> {
        let row = row(name)?;
        let verify = row.explain == Explain::Verify;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self.explain(namespace, pod, verify).await?;
            match row.compare(&said) {
                Ok(()) => break,
                Err(_) if Instant::now() < deadline => sleep(ASK_AGAIN).await,
                Err(error) => bail!("explain of {pod}: {error}"),
            }
        }
        add(&self.compared.explain, name);
        Ok(())
    }

    /// Both: a status of the plan, and then `explain`.
    pub async fn shows_and_explains(
        &self,
        name: &str,
        plan: &PlanRun,
        pod: &str,
    ) -> Result<(NodeStatus, WaitingPod)> {
        let found = self.shows(name, plan, pod).await?;
        self.explains(name, &found.1.namespace, &found.1.pod).await?;
        Ok(found)
    }

    /// Fails when a row names this case and was not met in it.
    pub fn ensure_all_compared(&self, case: u16) -> Result<()> {
        let all = rows::all().map_err(|error| anyhow!(error))?;
        let mut missing = Vec::new();
        for (name, row) in all.iter().filter(|(_, row)| row.case == Some(case)) {
            if !has(&self.compared.status, name) {
                missing.push(format!("{name} in a status"));
            }
            let asked = matches!(row.explain, Explain::Same | Explain::Verify);
            if asked && !has(&self.compared.explain, name) {
                missing.push(format!("{name} by explain"));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        bail!("e2e/reasons.yaml names this case for rows that it has not met: {}", missing.join(", "))
    }

    fn of_status(&self, waiting: &WaitingPod) -> Said {
        Said {
            reason: waiting.reason.clone(),
            outlook: format!("{:?}", waiting.outlook),
            budgets: waiting.budgets.clone(),
            message: self.retold(&waiting.namespace, &waiting.message),
            remedy: None,
        }
    }

    /// A text with this case's names as the rows have them: namespace `shop`, nodes `node-…`.
    fn retold(&self, namespace: &str, text: &str) -> String {
        let text = if namespace == self.name { text.to_owned() } else { text.replace(namespace, "shop") };
        text.replace(&format!("{}-", self.name), "node-").replace(&self.name, "shop")
    }

    async fn explain(&self, namespace: &str, pod: &str, verify: bool) -> Result<Said> {
        let asked = format!("{namespace}/{pod}");
        let mut command = Command::new(client()?);
        command.args(["explain", "pod", &asked, "-o", "json", "--kubeconfig"]);
        command.arg(self.installation.testbed.kubeconfig());
        if verify {
            command.arg("--verify");
        }
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("explain {asked}: {complaint}"))?;
        let of = |field: &str| answer.pointer(&format!("/pods/0/{field}")).cloned().unwrap_or_default();
        let text = |field: &str| of(field).as_str().map(str::to_owned);
        Ok(Said {
            reason: text("reason").unwrap_or_else(|| "nothing".to_owned()),
            outlook: text("outlook").unwrap_or_default(),
            budgets: serde_json::from_value(of("eviction/budgets"))?,
            message: self.retold(namespace, &text("message").unwrap_or_default()),
            remedy: Some(self.retold(namespace, &text("remedy").unwrap_or_default())),
        })
    }
}

/// The program beside the controller that is tried.
fn client() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    // target/debug/deps/e2e-…
    let of_build = here.parent().and_then(|deps| deps.parent()).context("no directory of programs")?;
    Ok(of_build.join("kubectl-drainplan"))
}
