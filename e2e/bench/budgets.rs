//! What `kubectl drainplan budgets -A` costs the machine, next to `kubectl get` of the same objects.
//!
//! 10,000 pods, their owners and budgets on a real server. Prints user and system time of both and the line: at most
//! half of kubectl's. Fails when it does not hold.

mod objects;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use objects::{REPLICAS, owner, pod, replica_set};

const PODS: usize = 10_000;
/// Each command runs so often, in turns.
const RUNS: usize = 5;
const MOST_TIMES: f64 = 0.5;
/// Requests at once while loading.
const AT_ONCE: usize = 16;

#[tokio::main]
async fn main() -> ExitCode {
    match measure().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<bool> {
    let testbed = Testbed::up()?;
    eprintln!("bench: creating {PODS} pods");
    load(&testbed.client().await?).await?;
    let (mut ours, mut theirs) = (0, 0);
    for _ in 0..RUNS {
        theirs += ticks_of(testbed.kubectl(["get", "pods,pdb,rs,sts", "-A", "-o", "json"]))?;
        ours += ticks_of(testbed.drainplan(["budgets", "-A", "-o", "json"]))?;
    }
    let times = f64::from(ours) / f64::from(theirs);
    let holds = times <= MOST_TIMES;
    println!(
        "user and system time on {PODS} pods, {RUNS} runs: budgets -A {ours} ticks, kubectl get {theirs} ticks, \
         {times:.2} times, at most {MOST_TIMES}: {}",
        if holds { "holds" } else { "DOES NOT HOLD" }
    );
    Ok(holds)
}

/// User and system time of a command, in clock ticks.
fn ticks_of(mut command: Command) -> Result<u32> {
    let before = children_ticks()?;
    let status = command.stdout(Stdio::null()).status().with_context(|| format!("run {command:?}"))?;
    // 3 says that some budget blocks.
    ensure!(matches!(status.code(), Some(0 | 3)), "{command:?}: {status}");
    Ok(children_ticks()? - before)
}

/// Time of the children waited for (`man proc`: cutime, cstime).
fn children_ticks() -> Result<u32> {
    let stat = fs::read_to_string("/proc/self/stat").context("read /proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let field =
        |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok()).context("no number in stat");
    Ok(field(13)? + field(14)?)
}

/// A control plane that does nothing by itself; removed when it is dropped.
struct Testbed {
    name: String,
    kubeconfig: PathBuf,
    bin: PathBuf,
}

impl Testbed {
    fn up() -> Result<Self> {
        let name = format!("bench-{}", std::process::id());
        let output = run(&["up", &name, "--no-controller-manager", "--no-scheduler", "--no-kwok"])?;
        let kubeconfig = output.lines().last().context("testbed up printed no kubeconfig")?.trim().into();
        Ok(Self { bin: run(&["bin"])?.trim().into(), name, kubeconfig })
    }
    async fn client(&self) -> Result<Client> {
        let read = Kubeconfig::read_from(&self.kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }
    fn command<const N: usize>(&self, program: &Path, arguments: [&str; N]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig);
        command
    }
    fn kubectl<const N: usize>(&self, arguments: [&str; N]) -> Command {
        self.command(&self.bin.join("kubectl"), arguments)
    }
    fn drainplan<const N: usize>(&self, arguments: [&str; N]) -> Command {
        self.command(Path::new(env!("CARGO_BIN_EXE_kubectl-drainplan")), arguments)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if let Err(error) = run(&["down", &self.name]) {
            eprintln!("bench: {error:#}");
        }
    }
}

fn run(arguments: &[&str]) -> Result<String> {
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/testbed"))
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

/// Namespaces, ReplicaSets, a budget for each, and pods with their status.
async fn load(client: &Client) -> Result<()> {
    let owners: Vec<usize> = (0..PODS / REPLICAS).collect();
    let mut namespaces: Vec<String> = owners.iter().map(|number| owner(number * REPLICAS).0).collect();
    namespaces.dedup();
    each(namespaces, |name| async move {
        send(client, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
        let account = json!({"metadata": {"name": "default"}});
        send(client, "POST", &format!("/api/v1/namespaces/{name}/serviceaccounts"), &account).await.map(drop)
    })
    .await?;
    each(owners, |number| load_owner(client, number)).await
}

async fn load_owner(client: &Client, number: usize) -> Result<()> {
    let (namespace, name) = owner(number * REPLICAS);
    let app = json!({"app": format!("service-{number}")});
    let mut set: Value = serde_json::from_str(&replica_set(number))?;
    if let Some(Value::Object(spec)) = set.pointer_mut("/spec") {
        spec.insert("selector".into(), json!({"matchLabels": app}));
    }
    if let Some(Value::Object(template)) = set.pointer_mut("/spec/template") {
        template.insert("spec".into(), json!({"containers": [{"name": "main", "image": "none"}]}));
    }
    // A Deployment that is not there: nobody looks for it here.
    let set =
        send(client, "POST", &format!("/apis/apps/v1/namespaces/{namespace}/replicasets"), &set).await?;
    let budget = json!({"metadata": {"name": name}, "spec": {"maxUnavailable": "25%", "selector": {"matchLabels": app}}});
    send(client, "POST", &format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"), &budget)
        .await?;
    let uid = set.pointer("/metadata/uid").context("a ReplicaSet without uid")?;
    for member in 0..REPLICAS {
        let mut pod: Value = serde_json::from_str(&pod(number * REPLICAS + member, true))?;
        if let Some(Value::Object(metadata)) = pod.pointer_mut("/metadata") {
            for field in ["uid", "resourceVersion", "managedFields", "generateName"] {
                metadata.remove(field);
            }
        }
        if let Some(owned) = pod.pointer_mut("/metadata/ownerReferences/0/uid") {
            *owned = uid.clone();
        }
        if let Some(Value::Object(spec)) = pod.pointer_mut("/spec") {
            spec.remove("serviceAccountName");
            spec.remove("volumes");
        }
        let status = json!({"status": pod.pointer("/status").cloned().unwrap_or_default()});
        let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        send(client, "POST", &pods, &pod).await?;
        send(client, "PATCH", &format!("{pods}/{name}/status"), &status).await?;
    }
    Ok(())
}

async fn each<T, W: Future<Output = Result<()>>>(items: Vec<T>, work: impl Fn(T) -> W) -> Result<()> {
    stream::iter(items).map(work).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(body.to_string().into_bytes())?;
    client.request(request).await.with_context(|| format!("{method} {path}"))
}
