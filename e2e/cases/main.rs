//! Plays situations from public bug reports on a real control plane and compares what is said about them.
//!
//! `cargo test --test cases [-- CASE…]`. Each directory of `$CASES` holds a `cluster.yaml` and an `expect.yaml`; each case
//! gets a control plane of its own, and after its waves rest `kubectl-drainplan explain` and `budgets` are asked.

mod cluster;
mod compare;
mod expect;
mod load;
mod steps;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;

use expect::Case;

/// Where the cases are, unless `CASES` says otherwise.
const CASES: &str = "../shared/cases";

/// How a case went.
struct Report {
    /// What was not as expected.
    wrong: Vec<String>,
    /// What is not compared yet.
    skipped: Vec<String>,
    compared: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    let directory = std::env::var_os("CASES").map_or_else(|| PathBuf::from(CASES), PathBuf::from);
    if !directory.is_dir() {
        println!("cases: skipped: there is no directory {}; name one with CASES=DIR", directory.display());
        return Ok(ExitCode::SUCCESS);
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let cases = cases(&directory, &wanted)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut failed = Vec::new();
    for path in &cases {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let start = Instant::now();
        let report = runtime.block_on(play(path)).with_context(|| format!("case {name}"));
        let seconds = start.elapsed().as_secs();
        match report {
            Ok(report) if report.wrong.is_empty() => {
                println!("PASS {name} {seconds} s, {} compared", report.compared);
                print_skipped(&report);
            }
            Ok(report) => {
                println!("FAIL {name} {seconds} s, {} compared", report.compared);
                report.wrong.iter().for_each(|wrong| println!("     {wrong}"));
                print_skipped(&report);
                failed.push(name);
            }
            Err(error) => {
                println!("FAIL {name} {seconds} s\n     {error:#}");
                failed.push(name);
            }
        }
    }
    println!("{} of {} cases pass", cases.len() - failed.len(), cases.len());
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_skipped(report: &Report) {
    if !report.skipped.is_empty() {
        println!("     not compared: {}", report.skipped.join(", "));
    }
}

/// The directories of the cases, all or those named.
fn cases(directory: &Path, wanted: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.join("expect.yaml").is_file() && (wanted.is_empty() || wanted.contains(&name)) {
            found.push(path);
        }
    }
    found.sort();
    anyhow::ensure!(!found.is_empty(), "no cases in {}", directory.display());
    Ok(found)
}

async fn play(path: &Path) -> anyhow::Result<Report> {
    let case = Case::read(&path.join("expect.yaml"))?;
    let cluster = cluster::up(&case.id)?;
    let mut world = world::World::connect(&cluster).await?;
    let objects = load::read(&path.join("cluster.yaml"))?;
    load::all(&mut world, objects, &case).await?;
    let mut report = Report { wrong: Vec::new(), skipped: case.not_compared(), compared: 0 };
    steps::run(&mut world, &case.before).await?;
    compare::at_rest(&mut world, &case, &mut report).await?;
    for (number, state) in case.later.iter().enumerate() {
        steps::run(&mut world, &state.steps).await.with_context(|| format!("later state {}", number + 1))?;
        compare::later(&mut world, &format!("later {}", number + 1), &state.expect, &mut report).await?;
    }
    Ok(report)
}
