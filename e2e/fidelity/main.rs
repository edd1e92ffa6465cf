//! The same drains played by the simulation and on a real control plane, compared.
//!
//! `make fidelity [ONLY="…"]`. They must end alike: the same nodes in the same way, the same pods moved, by owner and node,
//! the same reasons told; and the virtual and the real duration must be within 15% of each other, as a median. Exits 1
//! when they are not.

#[allow(dead_code, unused_imports, reason = "the end-to-end cases use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod course;
mod drains;
mod real;
mod simulated;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use course::Course;
use harness::{Installation, interrupted};

/// How far the durations may be apart, as a median.
const APART: f64 = 0.15;

fn main() -> Result<ExitCode> {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let alike = runtime.block_on(async {
        tokio::select! {
            alike = compare(&only) => alike,
            () = interrupted() => Err(anyhow::anyhow!("interrupted")),
        }
    });
    Ok(match alike {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fidelity: {error:#}");
            ExitCode::FAILURE
        }
    })
}

async fn compare(only: &[String]) -> Result<bool> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_drainplan-controller"));
    let name = format!("fidelity-{}", std::process::id());
    let installation = Arc::new(Installation::create(&name, false, program).await?);
    println!("{:<44} {:>9} {:>9} {:>6}  ends, pods moved, reasons", "", "real", "virtual", "");
    let mut apart = Vec::new();
    let mut alike = true;
    let wanted = |drain: &drains::Drain| {
        only.is_empty() || only.iter().any(|word| drain.name.split(' ').any(|part| part == word))
    };
    for (number, drain) in drains::all()?.iter().enumerate().filter(|(_, drain)| wanted(drain)) {
        let played = real::play(&installation, number, drain).await;
        let (real, placed) = played.with_context(|| format!("{} on the testbed", drain.name))?;
        let virtual_ =
            simulated::play(drain, &placed).with_context(|| format!("{} simulated", drain.name))?;
        alike &= print(drain.name, &real, &virtual_, &mut apart);
    }
    apart.sort_by(f64::total_cmp);
    let median = apart.get(apart.len() / 2).copied().context("nothing was played")?;
    let within = median <= APART;
    println!(
        "durations of the {} that evict are {:.1}% apart as a median, {:.1}% at most; {}",
        apart.len(),
        median * 100.0,
        apart.last().unwrap_or(&0.0) * 100.0,
        if alike && within { "alike" } else { "NOT ALIKE" }
    );
    Ok(alike && within)
}

/// One line, and more where they differ.
fn print(name: &str, real: &Course, virtual_: &Course, apart: &mut Vec<f64>) -> bool {
    let (there, here) = (real.took.as_secs_f64(), virtual_.took.as_secs_f64());
    // Where nothing is evicted, deadlines alone decide how long it takes.
    if !real.moved.is_empty() {
        apart.push((here / there - 1.0).abs());
    }
    let differences = real.differences(virtual_);
    println!(
        "{name:<44} {there:>7.2} s {here:>7.2} s {:>+5.1}%  {}",
        (here / there - 1.0) * 100.0,
        if differences.is_empty() { real.told() } else { "DIFFERENT".to_owned() }
    );
    for difference in &differences {
        println!("    {difference}");
    }
    differences.is_empty()
}
