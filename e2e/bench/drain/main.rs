//! The same drain by kubectl and by a plan, on a fresh control plane each time, next to what the budgets allow at best.
//!
//! `--controller FILE [--rounds N] [--workload A|B] [--only WORDS] [--record FILE]`: `--only` those
//! whose name has these words; the figures are written to the page FILE. Prints a table and the bounds; exits 0 when all hold, 1 when one
//! does not, 2 when it could not be found out.

#[allow(dead_code, unused_imports, reason = "the end-to-end cases use the rest of it")]
#[path = "../../harness/mod.rs"]
mod harness;

mod contender;
mod journal;
mod measure;
mod probe;
mod report;
mod workload;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use contender::{ALL, Contender};
use harness::{Audit, Recorder, Testbed, interrupted};
use journal::Journal;
use measure::{Measured, measure};
use report::Rounds;
use workload::Workload;

/// What it is told.
struct Arguments {
    controller: PathBuf,
    rounds: usize,
    workloads: Vec<Workload>,
    only: String,
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    let done = arguments().and_then(|arguments| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::select! {
                good = run(&arguments) => good,
                () = interrupted() => bail!("interrupted"),
            }
        })
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        controller: PathBuf::new(),
        rounds: 5,
        workloads: Vec::new(),
        only: String::new(),
        record: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} wants a value"));
        match word.as_str() {
            "--controller" => parsed.controller = value()?.into(),
            "--rounds" => parsed.rounds = value()?.parse().context("--rounds wants a number")?,
            "--workload" => match value()?.as_str() {
                "A" => parsed.workloads.push(Workload::a()),
                "B" => parsed.workloads.push(Workload::b()),
                other => bail!("there is no workload {other}, there are A and B"),
            },
            "--only" => parsed.only = value()?,
            "--record" => parsed.record = Some(value()?.into()),
            // cargo bench says what it is.
            "--bench" => {}
            other => bail!("{other} is not known"),
        }
    }
    ensure!(parsed.controller.is_file(), "--controller names no program: {}", parsed.controller.display());
    ensure!(ALL.iter().any(|it| it.name().contains(&parsed.only)), "nobody is called {}", parsed.only);
    ensure!(parsed.rounds > 0, "--rounds wants at least 1");
    if parsed.workloads.is_empty() {
        parsed.workloads = vec![Workload::a(), Workload::b()];
    }
    Ok(parsed)
}

/// How long is looked at what the machine does otherwise, and how much of it is too much.
const LOOK: Duration = Duration::from_secs(3);
const BUSY: f64 = 0.1;

/// Of what and under which conditions the figures are.
fn say_conditions(journal: &mut Journal) -> Result<()> {
    let git = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = !git(&["status", "--porcelain"])?.is_empty();
    let cores = std::thread::available_parallelism()?;
    journal.say(&format!(
        "commit {}{}, {}, {cores} cores",
        git(&["rev-parse", "--short", "HEAD"])?,
        if changed { " with changes" } else { "" },
        Timestamp::now().strftime("%Y-%m-%d %H:%M UTC"),
    ));
    let before = cpu_time()?;
    std::thread::sleep(LOOK);
    let after = cpu_time()?;
    let busy = 1.0 - (after.idle - before.idle) / (after.all - before.all);
    if busy > BUSY {
        journal.say(&format!(
            "PROVISIONAL: the machine has other things to do, {:.0} % of it before anything begins",
            busy * 100.0
        ));
    }
    Ok(())
}

struct CpuTime {
    all: f64,
    idle: f64,
}

/// Of all cores since they were started, in ticks (`man proc`: /proc/stat).
fn cpu_time() -> Result<CpuTime> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let fields: Vec<f64> =
        stat.lines().next().unwrap_or_default().split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let idle = fields.iter().skip(3).take(2).sum();
    // Guests are counted in user time already.
    let all: f64 = fields.iter().take(8).sum();
    ensure!(all > 0.0, "no times in /proc/stat");
    Ok(CpuTime { all, idle })
}

async fn run(arguments: &Arguments) -> Result<bool> {
    let mut journal = Journal::default();
    say_conditions(&mut journal)?;
    let mut good = true;
    for workload in &arguments.workloads {
        journal.say(&workload.told());
        let mut all: Vec<Rounds> = Vec::new();
        for contender in ALL.into_iter().filter(|it| it.name().contains(&arguments.only)) {
            match contender.missing() {
                Some(why) => journal.say(&format!("{} does not take part: {why}", contender.name())),
                None => all.push(Rounds { contender, measured: Vec::new(), cycles: Vec::new() }),
            }
        }
        for round in 0..arguments.rounds {
            // Whoever is first in one round is last in the next.
            let len = all.len();
            for at in (0..len).map(|place| (place + round) % len) {
                let Some(rounds) = all.get_mut(at) else { continue };
                let (cycle, measured) = once(rounds.contender, workload, &arguments.controller).await?;
                journal.say(&format!(
                    "round {}, {}: {:.1} s, {} accepted, {} refused, cycle {cycle:.2} s",
                    round + 1,
                    rounds.contender.name(),
                    measured.wall,
                    measured.accepted,
                    measured.refused
                ));
                rounds.cycles.push(cycle);
                rounds.measured.push(measured);
            }
        }
        let turns = workload.slowest().map_or(0, workload::Service::turns);
        good &= report::print(&mut journal, workload.name, turns, &all);
    }
    if let Some(page) = &arguments.record {
        let rounds = arguments.rounds;
        journal.record(page, &format!("make bench-drain ROUNDS={rounds}"))?;
    }
    Ok(good)
}

/// Where the logs of a round go, to look at what the figures do not tell.
const LOGS: &str = "BENCH_LOGS";

/// One drain by one contender, on a cluster of its own.
async fn once(contender: Contender, workload: &Workload, controller: &Path) -> Result<(f64, Measured)> {
    let testbed = Testbed::up(&format!("bench-{}", std::process::id()), false).await?;
    let client = testbed.client();
    let audit = Audit::new(&testbed.audit_log());
    let space = workload.load(&client).await?;
    let slowest = workload.slowest().context("no service has a budget")?;
    let ready = contender.prepare(testbed, controller).await?;
    let cycle = probe::cycle(&client, &audit, slowest).await?;
    let pods: Recorder<Pod> = Recorder::start(space.pods(), None).await?;
    workload.open_spares(&client).await?;
    let began = contender.drain(&ready, workload).await?;
    ready.ensure_alive()?;
    if let Some(logs) = std::env::var_os(LOGS) {
        std::fs::copy(ready.testbed().audit_log(), Path::new(&logs).join("audit.log"))?;
    }
    let measured = pods.with(|record| measure(contender, workload, &audit, began, record))?;
    Ok((cycle, measured))
}
