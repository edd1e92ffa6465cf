//! Runs the cases: side by side where they can share the cluster, one after the other where they disturb it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tokio::time::{Instant, timeout};

use crate::harness::{Bed, Installation, Readers, dump, interrupted};

/// The list of the cases, for people and for this program.
const LISTED: &str = include_str!("cases.md");
/// The controller that is tried, unless E2E_CONTROLLER names another one.
const CONTROLLER: &str = env!("CARGO_BIN_EXE_drainplan-controller");
/// How long one case may take.
const CASE_LIMIT: Duration = Duration::from_mins(4);
/// How many cases run side by side: they mostly wait, and the control plane has few cores.
const SIDE_BY_SIDE: usize = 4;

/// One case.
pub struct Case {
    pub number: u16,
    pub name: &'static str,
    /// Whether it disturbs what others need, so that nothing may run beside it.
    pub alone: bool,
    /// Whether it is run only when slow ones are asked for.
    pub slow: bool,
    pub run: fn(Bed) -> BoxFuture<'static, Result<()>>,
}

impl Case {
    /// `e2e_03_budget_that_never_allows`.
    fn title(&self) -> String {
        title(self.number, self.name)
    }
}

fn title(number: u16, name: &str) -> String {
    format!("e2e_{number:02}_{name}")
}

/// Which cases are wanted, in the manner of the standard test harness.
#[derive(Default)]
pub struct Choice {
    filters: Vec<String>,
    skips: Vec<String>,
    list: bool,
    /// The slow ones, and only those.
    slow: bool,
    threads: Option<usize>,
}

impl Choice {
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut choice = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => choice.list = true,
                "--slow" => choice.slow = true,
                "--nocapture" | "--no-capture" | "--quiet" | "-q" | "--exact" => {}
                "--skip" => choice.skips.push(arguments.next().context("--skip wants a name")?.clone()),
                "--test-threads" => {
                    let number = arguments.next().context("--test-threads wants a number")?;
                    choice.threads = Some(number.parse().context("--test-threads wants a number")?);
                }
                flag if flag.starts_with('-') => bail!(
                    "{flag} is not known; there are --list, --slow, --skip NAME, --test-threads N, and numbers and names of cases"
                ),
                filter => choice.filters.push(filter.to_owned()),
            }
        }
        Ok(choice)
    }

    fn wants(&self, number: u16, name: &str, slow: bool) -> bool {
        let fits = |filter: &String| match filter.parse::<u16>() {
            Ok(wanted) => wanted == number,
            Err(_) => title(number, name).contains(filter),
        };
        slow == self.slow
            && (self.filters.is_empty() || self.filters.iter().any(fits))
            && !self.skips.iter().any(fits)
    }
}

/// The cases as `cases.md` lists them, and whether they are slow.
fn listed() -> Result<BTreeMap<u16, (&'static str, bool)>> {
    let mut listed = BTreeMap::new();
    let mut slow = false;
    for line in LISTED.lines() {
        slow |= line.starts_with("## Slow");
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(number), Some(name)) = (cells.next(), cells.next()) else { continue };
        let Ok(number) = number.parse::<u16>() else { continue };
        if listed.insert(number, (name, slow)).is_some() {
            bail!("e2e/cases.md lists case {number} twice");
        }
    }
    Ok(listed)
}

/// Runs what is wanted and says how it went.
pub fn main(choice: &Choice, cases: &[Case]) -> ExitCode {
    if choice.list {
        for case in cases.iter().filter(|case| choice.wants(case.number, case.name, case.slow)) {
            println!("{}: test", case.title());
        }
        return ExitCode::SUCCESS;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = run(choice, cases) => ended,
            () = interrupted() => Err(anyhow::anyhow!("interrupted")),
        }
    });
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\n{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(choice: &Choice, cases: &[Case]) -> Result<bool> {
    let began = Instant::now();
    let listed = listed()?;
    let wanted: Vec<&Case> =
        cases.iter().filter(|case| choice.wants(case.number, case.name, case.slow)).collect();
    println!("\nrunning {} tests", wanted.len());

    let mut results: BTreeMap<u16, bool> = BTreeMap::new();
    let mut failures: Vec<String> = Vec::new();
    if !wanted.is_empty() {
        let program = std::env::var_os("E2E_CONTROLLER").unwrap_or_else(|| CONTROLLER.into());
        let name = format!("e2e-{}", std::process::id());
        let installation = Arc::new(Installation::create(&name, false, PathBuf::from(program)).await?);
        println!("a cluster with the product on it is up after {:.1} s", began.elapsed().as_secs_f64());

        let readers = Readers::start(installation.client());
        let threads = choice.threads.unwrap_or(SIDE_BY_SIDE).max(1);
        let (alone, shared): (Vec<&Case>, Vec<&Case>) = wanted.iter().partition(|case| case.alone);
        for (cases, threads) in [(shared, threads), (alone, 1)] {
            let running = cases.into_iter().map(|case| one(case, Arc::clone(&installation)));
            let mut ended = stream::iter(running).buffer_unordered(threads);
            while let Some((number, failure)) = ended.next().await {
                results.insert(number, failure.is_none());
                failures.extend(failure);
            }
        }
        match readers.judge() {
            Ok(read) => println!("{read}"),
            Err(error) => failures.push(format!("---- plans as GitOps tools read them\n{error:#}")),
        }
    }
    let due = listed.iter().filter(|(number, (name, slow))| choice.wants(**number, name, *slow));
    for (number, (name, _)) in due {
        if !results.contains_key(number) {
            println!("test {} ... NOT RUN", title(*number, name));
            failures.push(format!("{} is listed in e2e/cases.md and was not run", title(*number, name)));
        }
    }
    for case in &wanted {
        if listed.get(&case.number) != Some(&(case.name, case.slow)) {
            failures
                .push(format!("{} is not listed in e2e/cases.md under this number and name", case.title()));
        }
    }
    for failure in &failures {
        println!("\n{failure}");
    }
    let passed = results.values().filter(|passed| **passed).count();
    println!(
        "\ntest result: {}. {passed} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failures.is_empty() { "ok" } else { "FAILED" },
        failures.len(),
        cases.len() - wanted.len(),
        began.elapsed().as_secs_f64(),
    );
    Ok(failures.is_empty())
}

/// Runs one case; its number, and why it failed if it did.
async fn one(case: &Case, installation: Arc<Installation>) -> (u16, Option<String>) {
    let began = Instant::now();
    let title = case.title();
    let name = format!("e2e-{:02}", case.number);
    let (bed, result) = match Bed::new(Arc::clone(&installation), &name).await {
        Ok(bed) => {
            let run = AssertUnwindSafe((case.run)(bed.clone())).catch_unwind();
            let result = match timeout(CASE_LIMIT, run).await {
                Ok(Ok(result)) => result.and_then(|()| bed.ensure_all_compared(case.number)),
                Ok(Err(_)) => Err(anyhow::anyhow!("it panicked")),
                Err(_) => Err(anyhow::anyhow!("not done after {} s", CASE_LIMIT.as_secs())),
            };
            (Some(bed), result)
        }
        Err(error) => (None, Err(error)),
    };
    let took = began.elapsed().as_secs_f64();
    let failure = match result {
        Ok(()) => {
            println!("test {title} ... ok <{took:.1}s>");
            None
        }
        Err(error) => {
            println!("test {title} ... FAILED <{took:.1}s>");
            let dump = match &bed {
                Some(bed) => dump(bed).await,
                None => String::new(),
            };
            Some(format!("---- {title}\n{error:#}\n{dump}"))
        }
    };
    if !installation.controller.runs()
        && let Err(error) = installation.controller.start().await
    {
        eprintln!("after {title} the controller cannot be started again: {error:#}");
    }
    (case.number, failure)
}
