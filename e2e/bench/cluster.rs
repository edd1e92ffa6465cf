//! How much memory a pod takes in the observed cluster, and how long an update does.
//!
//! Prints both with the lines they must hold: at 150,000 pods at most 1 KiB of resident memory a pod, and a median
//! update at most three times as long as at 1,000 pods. Fails when one does not.

mod objects;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kube::core::WatchEvent;

use objects::{REPLICAS, pod, replica_set};

use drainplan::cluster::{Change, Cluster, ObjectKind, Raw, Watched, kinds};

const FEW: usize = 1_000;
const MANY: usize = 150_000;
const UPDATES: usize = 20_000;

const MOST_BYTES: usize = 1024;
const MOST_TIMES: f64 = 3.0;

fn main() -> ExitCode {
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<bool> {
    let few = median_update(&mut loaded(FEW), FEW)?;
    let before = resident()?;
    let mut cluster = loaded(MANY);
    let bytes = resident()?.saturating_sub(before) / MANY;
    let many = median_update(&mut cluster, MANY)?;
    let times = many.whole.as_secs_f64() / few.whole.as_secs_f64();
    let holds = |good| if good { "holds" } else { "DOES NOT HOLD" };
    let (small, quick) = (bytes <= MOST_BYTES, times <= MOST_TIMES);
    println!("resident memory a pod at {MANY} pods: {bytes} B, at most {MOST_BYTES} B: {}", holds(small));
    println!(
        "median update, from the line of a watch: {} ns at {FEW} pods, {} ns at {MANY} pods, {times:.2} times, at most \
         {MOST_TIMES}: {}",
        few.whole.as_nanos(),
        many.whole.as_nanos(),
        holds(quick)
    );
    println!(
        "  of these, once it is decoded: {} ns and {} ns",
        few.observing.as_nanos(),
        many.observing.as_nanos()
    );
    Ok(small && quick)
}

/// Bytes of this process in memory.
fn resident() -> Result<usize> {
    let status = fs::read_to_string("/proc/self/status").context("read /proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no VmRSS in /proc/self/status")?;
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().context("VmRSS is no number")?;
    Ok(kibibytes * 1024)
}

/// A cluster with so many pods and their owners, decoded from JSON one after the other as a watch does.
fn loaded(pods: usize) -> Cluster {
    let mut cluster = Cluster::new();
    for number in 0..pods.div_ceil(REPLICAS) {
        cluster.observe(Change::Listed(Raw::decode(ObjectKind::ReplicaSet, &replica_set(number))));
    }
    for number in 0..pods {
        cluster.observe(Change::Listed(Raw::decode(ObjectKind::Pod, &pod(number, true))));
    }
    cluster
}

/// Median times of an update.
struct Update {
    whole: Duration,
    /// Without decoding.
    observing: Duration,
}

/// Takes in pods that have become unready or ready again, as a watch reports them.
fn median_update(cluster: &mut Cluster, pods: usize) -> Result<Update> {
    let (mut whole, mut observing) = (Vec::new(), Vec::new());
    for update in 0..UPDATES {
        // A step that shares no factor with the number of pods visits them in no order.
        let number = update * 7919 % pods;
        let line = format!(r#"{{"type": "MODIFIED", "object": {}}}"#, pod(number, update / pods % 2 == 1));
        let started = Instant::now();
        let WatchEvent::Modified(object) = serde_json::from_str::<WatchEvent<Watched<kinds::Pod>>>(&line)?
        else {
            bail!("the line is another event");
        };
        let decoded = Instant::now();
        cluster.observe(Change::Applied(object.into_raw()));
        whole.push(started.elapsed());
        observing.push(decoded.elapsed());
    }
    Ok(Update { whole: median(whole), observing: median(observing) })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
