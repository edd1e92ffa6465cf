//! Plays situations from public bug reports on real control planes, and compares what is said about them and how a plan
//! over their nodes ends with what is expected (`README.md`).
//!
//! `cargo test --test cases [-- CASE…]`. A few control planes run side by side; each plays one part of a case after the
//! other and is emptied in between.

#[allow(dead_code, unused_imports, reason = "the end-to-end cases use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod ask;
mod compare;
mod end;
mod ended;
mod expect;
mod falsify;
mod load;
mod mention;
mod offline;
mod plane;
mod play;
mod steps;
mod subject;
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;

use expect::Case;
use plane::Plane;
use play::{Part, Report, Situation};

/// Where the cases are, unless `CASES` says otherwise.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/cases");
/// How many control planes run side by side, unless `PLANES` says otherwise: mostly they wait.
const PLANES: usize = 6;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cases: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all cases pass.
fn run() -> anyhow::Result<bool> {
    let began = Instant::now();
    let directory = std::env::var_os("CASES").map_or_else(|| PathBuf::from(CASES), PathBuf::from);
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let situations = situations(&directory, &wanted)?;
    let planes = match std::env::var("PLANES") {
        Ok(number) => number.parse().context("PLANES wants a number")?,
        Err(_) => PLANES,
    };
    let parts: Vec<Part> = situations.iter().flat_map(Situation::parts).collect();
    let (played, planes) = (parts.len(), planes.clamp(1, parts.len()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let tally = runtime.block_on(async {
        tokio::select! {
            tally = all(parts, planes) => tally,
            () = harness::interrupted() => Err(anyhow::anyhow!("interrupted")),
        }
    })?;
    println!(
        "{played} parts on {planes} control planes in {} s, {} compared, {} falsified ones noticed",
        began.elapsed().as_secs(),
        tally.compared,
        tally.noticed
    );
    println!("{} of {} cases pass", tally.passed, situations.len());
    Ok(tally.passed == situations.len())
}

/// The cases, all or those named; one that cannot be read is an error.
fn situations(directory: &Path, wanted: &[String]) -> anyhow::Result<Vec<Arc<Situation>>> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read the directory of the cases, {}", directory.display()))?;
    let mut found = Vec::new();
    let mut missing: Vec<&String> = wanted.iter().collect();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (expected, cluster) = (path.join("expect.yaml"), path.join("cluster.yaml"));
        if !expected.exists() && !cluster.exists() {
            continue;
        }
        missing.retain(|wanted| **wanted != name);
        if wanted.is_empty() || wanted.contains(&name) {
            let case = Case::read(&path)?;
            let defines = load::defines(&load::read(&cluster)?);
            found.push(Arc::new(Situation { case, cluster, defines }));
        }
    }
    ensure!(missing.is_empty(), "{} has no cases {missing:?}", directory.display());
    ensure!(!found.is_empty(), "there are no cases in {}", directory.display());
    found.sort_by(|one, other| one.case.id.cmp(&other.case.id));
    Ok(found)
}

type Result = anyhow::Result<Report>;

/// What is to be played, the longest last, how the rest went, and how many parts each case has.
struct Board {
    due: Vec<Part>,
    ended: BTreeMap<String, Vec<(Part, Result)>>,
    parts: BTreeMap<String, usize>,
    tally: Tally,
}

/// How all of it went so far.
#[derive(Clone, Copy, Default)]
struct Tally {
    passed: usize,
    compared: usize,
    noticed: usize,
}

/// Plays all parts.
async fn all(mut due: Vec<Part>, planes: usize) -> anyhow::Result<Tally> {
    let mut parts = BTreeMap::new();
    for part in &due {
        *parts.entry(part.situation.case.id.clone()).or_default() += 1;
    }
    due.sort_by_key(Part::waits);
    let board = Arc::new(Mutex::new(Board { due, ended: BTreeMap::new(), parts, tally: Tally::default() }));
    let mut workers = JoinSet::new();
    for number in 1..=planes {
        workers.spawn(work(number, Arc::clone(&board)));
    }
    while let Some(worked) = workers.join_next().await {
        worked.context("a control plane")??;
    }
    Ok(board.lock().unwrap_or_else(PoisonError::into_inner).tally)
}

/// Plays one part after the other on a control plane.
async fn work(number: usize, board: Arc<Mutex<Board>>) -> anyhow::Result<()> {
    let lock = || board.lock().unwrap_or_else(PoisonError::into_inner);
    let mut plane = None;
    while let Some(part) = { lock().due.pop() } {
        let here = match plane.take() {
            Some(plane) => plane,
            None => Plane::up(number).await.with_context(|| format!("control plane {number}"))?,
        };
        let result = part.play(&here).await;
        // What could not be played may have left anything behind.
        plane = result.is_ok().then_some(here);
        let id = part.situation.case.id.clone();
        let mut board = lock();
        let results = board.ended.entry(id.clone()).or_default();
        results.push((part, result));
        if Some(results.len()) == board.parts.get(&id).copied() {
            let results = board.ended.remove(&id).unwrap_or_default();
            let whole = tell(&id, results);
            board.tally.passed += usize::from(whole.wrong.is_empty());
            board.tally.compared += whole.compared;
            board.tally.noticed += whole.noticed;
        }
    }
    Ok(())
}

/// Prints how a case went.
fn tell(id: &str, results: Vec<(Part, Result)>) -> Report {
    let mut whole = Report::default();
    let mut about = None;
    for (part, result) in results {
        match result {
            Ok(report) => {
                whole.wrong.extend(report.wrong);
                whole.compared += report.compared;
                whole.noticed += report.noticed;
                whole.took += report.took;
            }
            Err(error) => whole.wrong.push(format!("{}: {error:#}", part.title())),
        }
        about = Some(part.situation);
    }
    println!(
        "{} {id} {} s, {} compared, {} falsified ones noticed",
        if whole.wrong.is_empty() { "PASS" } else { "FAIL" },
        whole.took.as_secs(),
        whole.compared,
        whole.noticed
    );
    if let (Some(situation), false) = (about, whole.wrong.is_empty()) {
        for wrong in &whole.wrong {
            println!("     {wrong}");
        }
        let case = &situation.case;
        println!("     {} ({})", case.summary, case.source);
        if let Some(note) = &case.note {
            println!("     {note}");
        }
    }
    whole
}
