//! A plan drains nodes of a real control plane before your eyes, and what came of it is compared with what should.
//!
//! Exits 0 when everything ended as expected, 1 when something did not, 2 when it could not be found out.

#[allow(dead_code, unused_imports, reason = "the end-to-end cases use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod held;
mod live;
mod screen;
mod server;
mod stage;
mod story;
mod verdict;
mod waits;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use harness::{Installation, Testbed, interrupted};
use screen::say;
use stage::Stages;
use story::{Load, Story};
use verdict::Lax;

/// What the demo is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Demo,
    /// The demo, with budgets that let go what the demo expects them to hold.
    Lax,
    /// Whether the demo notices that.
    SelfCheck,
}

fn main() -> ExitCode {
    let task = match std::env::args().nth(1).as_deref() {
        None if asked("DEMO_SELFCHECK") => Task::SelfCheck,
        None => Task::Demo,
        Some("--lax") => Task::Lax,
        Some("--selfcheck") => Task::SelfCheck,
        Some(other) => {
            eprintln!("{other} is not known; there is --selfcheck");
            return ExitCode::from(2);
        }
    };
    let ended = if task == Task::SelfCheck { self_check() } else { demo(task) };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\nthe demo cannot go on: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn asked(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The demo must find exactly the differences that were made.
fn self_check() -> Result<bool> {
    let of = |wanted: Lax| -> Vec<&str> {
        verdict::EXPECTATIONS.iter().filter(|(.., lax)| *lax == wanted).map(|(_, what, _)| *what).collect()
    };
    let (wanted, either) = (of(Lax::Differs), of(Lax::Either));
    say!("The demo with budgets that are too lax: it must exit 1 and name what is not as it should be,");
    say!("{} of {} expectations, no other", wanted.len(), verdict::EXPECTATIONS.len());
    say!("(but, as the moment has it: {}).", either.join("; "));
    let mut child = Command::new(std::env::current_exe()?)
        .arg("--lax")
        .env_remove("DEMO_KEEP")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut differing = Vec::new();
    for line in BufReader::new(child.stdout.take().context("no output to read")?).lines() {
        let line = line?;
        say!("{}", format!("  │ {line}").trim_end());
        let differs = line.trim_start().strip_prefix(verdict::DIFFERS);
        if let Some((what, _)) = differs.and_then(|line| line.split_once(verdict::INSTEAD)) {
            let what = what.trim();
            if !either.contains(&what) {
                differing.push(what.to_owned());
            }
        }
    }
    let ended = child.wait()?;
    if ended.code() == Some(1) && differing == wanted {
        say!("\nself-check: good, the demo exited 1 and named exactly what differs");
        return Ok(true);
    }
    say!("\nself-check: FAILED, the demo ended with {ended} and named {differing:#?}, not {wanted:#?}");
    Ok(false)
}

fn demo(task: Task) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            ended = tell(task) => ended,
            () = interrupted() => bail!("interrupted"),
        }
    })
}

async fn tell(task: Task) -> Result<bool> {
    let keep = asked("DEMO_KEEP");
    let name = if keep { "demo".to_owned() } else { format!("demo-{}", std::process::id()) };
    let program = controller()?;
    say!("drainplan on a real Kubernetes control plane; only the kubelets are simulated");

    let mut stages = Stages::default();
    stages.begin("boot", "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok");
    let testbed = Testbed::up(&name, keep).await?;
    stages.begin(
        "install",
        "kubectl apply --server-side -k manifests/; the controller runs as its service account",
    );
    let installation = Installation::on(testbed, program.clone()).await?;
    stages.begin("load", "a service that is slow to be replaced, and five that can never be drained");
    let load = if task == Task::Lax { Load::Lax } else { Load::Told };
    let story = Story::load(&installation, load).await?;
    stages.begin("drain", &format!("kubectl apply --server-side -f {}", story::SAMPLE));
    let status = live::drain(&installation, &story).await?;
    stages.begin("report", "");
    waits::print(&story.plan.statuses());
    live::print_report(&installation).await?;
    let good = verdict::print(&installation, &story, &status).await?;
    stages.print();

    if keep {
        say!(
            "\nThe cluster is still there (DEMO_KEEP=1); the controller has ended with the demo. To look at it:"
        );
        say!("  export KUBECONFIG={}", installation.testbed.kubeconfig().display());
        say!("  kubectl describe drainplan {}   (or: e2e/testbed kubectl {name} …)", story::PLAN);
        say!("  {} --listen 127.0.0.1:8080", program.display());
        say!("  e2e/testbed down {name}");
    }
    Ok(good)
}

/// The controller that was built beside this program.
fn controller() -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    let built =
        me.parent().and_then(|examples| examples.parent()).context("no directory above this program")?;
    let controller = built.join("drainplan-controller");
    if !controller.exists() {
        bail!("there is no {}: run make demo, or cargo build --bins", controller.display());
    }
    Ok(controller)
}
