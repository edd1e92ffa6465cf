//! The model against the real disruption controller and the real Eviction API, in a random world.
//!
//! `make parity [N=300] [SEED=…] [MUTATE=n|all]`. Loads N namespaces, lets things happen to them, waits until all rests,
//! and compares every number of every budget and the answer to a dry-run eviction of every pod with what the model
//! says; once more for a few with the controller manager stopped. Prints the seed, both sides of every mismatch, and a
//! census; fails with a mismatch, or a census that is short. With `MUTATE` the model has a deliberate error, which must
//! be found.

mod apps;
mod census;
mod churn;
mod compare;
mod live;
mod load;
mod mutate;
mod objects;
mod outage;
mod rng;
mod server;
mod testbed;
mod world;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use census::Census;
use compare::Mismatches;
use drainplan::budget;
use drainplan::cluster::Pdb;
use drainplan::engine::scales;
use live::Live;
use server::Server;
use testbed::Testbed;
use world::Space;

const CONTROLLER_MANAGER: &str = "kube-controller-manager";
/// No event for so long, and all rests.
const REST: Duration = Duration::from_secs(5);
/// Enough for the steps in between.
const PAUSE: Duration = Duration::from_millis(2500);
/// Mismatches that are printed in full.
const SHOWN: usize = 10;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("parity: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn number<T: std::str::FromStr>(name: &str, default: T) -> Result<T> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            text.parse().ok().with_context(|| format!("{name}={text} is not a number that can be used"))
        }
        _ => Ok(default),
    }
}

async fn run() -> Result<bool> {
    let started = Instant::now();
    let say = |what: &str| eprintln!("parity: {:6.1} s  {what}", started.elapsed().as_secs_f64());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs());
    let (count, seed) = (number("N", 300)?, number("SEED", clock)?);
    if mutate::chosen() != [0] && !drainplan::cluster::planted::possible() {
        bail!("MUTATE needs a build with --features planted");
    }
    println!("N={count} SEED={seed}");
    let spaces = world::world(count, seed);
    let testbed = Testbed::up(std::env::var_os("KEEP").is_some())?;
    let client = testbed.client().await?;
    let server = Server(client.clone());
    let live = Live::start(&client);

    say("nodes and custom kinds");
    // It learns new kinds every 30 s, and all there are when it starts.
    testbed.stop(CONTROLLER_MANAGER)?;
    load::define(&server).await?;
    testbed.start(CONTROLLER_MANAGER)?;
    load::nodes(&server).await?;
    load::kinds_are_known(&server, &live).await?;
    say("namespaces and early budgets");
    load::early(&server, &spaces).await?;
    live.until("every early budget is synced", |cluster| {
        cluster.budgets().all(|budget| budget.status.has_condition)
    })
    .await?;
    say("owners, pods and late budgets");
    load::late(&server, &spaces).await?;
    live.quiet(PAUSE).await?;
    say("changes while it runs");
    churn::churn(&server, &live, &spaces).await?;
    live.quiet(PAUSE).await?;
    say("charged budgets");
    churn::charge(&server, &live, &spaces).await?;
    churn::touch(&server, &spaces).await?;
    live.quiet(REST).await?;
    say("all rests; comparing budgets");

    let mut census = Census::default();
    let mut mismatches = Mismatches::new();
    read_scales(&client, &live, &spaces).await;
    let now = jiff::Timestamp::now();
    live.read(|cluster| {
        compare::budgets(cluster, now, &mut mismatches);
        census.budgets(cluster, count);
    });
    say("comparing evictions");
    let asked = compare::evictions(&server, &live, |_| true, &mut mismatches).await?;
    live.read(|cluster| census.pods(cluster, &asked, count));
    if count >= 300 {
        say("charges expire");
        live.until("no budget is charged", |cluster| {
            // A failed sync leaves the charges of before, for as long as it fails.
            let settled =
                |budget: &Pdb| budget.status.sync_failed.is_some() || budget.status.disrupted_pods.is_empty();
            cluster.budgets().all(|budget| settled(budget))
        })
        .await?;
        live.quiet(PAUSE).await?;
        let now = jiff::Timestamp::now();
        live.read(|cluster| compare::budgets(cluster, now, &mut mismatches));
    }
    say("the controller manager stops");
    testbed.stop(CONTROLLER_MANAGER)?;
    let asked = outage::outage(&server, &live, &spaces, &mut mismatches).await?;
    census.outage(&asked, count);
    say("done");
    drop(live);
    drop(testbed);
    Ok(verdict(&census, &mismatches))
}

/// What the engine does for owners that are not watched.
async fn read_scales(client: &kube::Client, live: &Live, spaces: &[Space]) {
    for space in spaces {
        for (namespace, owner) in live.read(|cluster| budget::scales_wanted(cluster, &space.name)) {
            let scale = scales::read(client, &namespace, &owner).await;
            live.write(|cluster| cluster.record_scale(owner.uid.clone(), scale));
        }
    }
}

/// Prints what was found; true when it is as it should be.
fn verdict(census: &Census, mismatches: &Mismatches) -> bool {
    let short = census.print();
    let mut good = true;
    for number in mutate::chosen() {
        let found = mismatches.get(&number).map(Vec::as_slice).unwrap_or_default();
        let shown = if number == 0 { SHOWN } else { 1 };
        for mismatch in found.iter().take(shown) {
            println!("MISMATCH {mismatch}");
        }
        if number == 0 {
            println!("{} mismatches", found.len());
            good &= found.is_empty();
        } else {
            println!(
                "deliberate error {number}: {}",
                json!({"mismatches": found.len(), "found": !found.is_empty()})
            );
            good &= !found.is_empty();
        }
    }
    if !short.is_empty() {
        println!("the census is short: {}", short.join(", "));
    }
    good && short.is_empty()
}
