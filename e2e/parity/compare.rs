//! Both sides next to each other.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;

use drainplan::budget::{self, Cause, Numbers, Verdict};
use drainplan::cluster::{Cluster, Pdb, Pod, PodKey};

use super::live::Live;
use super::mutate;
use super::server::{Answer, Server, class};

/// How many evictions are asked at once.
const AT_ONCE: usize = 16;

/// What differs, by deliberate error; 0 is none.
pub type Mismatches = BTreeMap<u8, Vec<String>>;

/// An answered pod: what we say without an error planted, and what the server says.
pub struct Asked {
    pub verdict: Verdict,
    pub answer: Answer,
}

/// Compares the numbers, conditions and failures of all budgets.
pub fn budgets(cluster: &Cluster, now: Timestamp, mismatches: &mut Mismatches) {
    for number in mutate::chosen() {
        let _planted = mutate::Planting::of(number);
        for budget in cluster.budgets() {
            if let Some(mismatch) = differs(cluster, budget, now) {
                mismatches.entry(number).or_default().push(mismatch);
            }
        }
    }
}

fn differs(cluster: &Cluster, budget: &Pdb, now: Timestamp) -> Option<String> {
    let computed = budget::recompute(cluster, budget, now);
    let reported = Numbers::reported(budget);
    let status = &budget.status;
    let failed = status.sync_failed.as_deref();
    let agrees = match &computed.sync_error {
        // It reports any of the pods that fail.
        Some(error) => {
            let mut messages: Vec<String> =
                budget::unscaled_pods(cluster, budget).into_iter().map(|(_, message)| message).collect();
            messages.push(error.clone());
            failed.is_some_and(|said| messages.iter().any(|message| message == said))
        }
        None => failed.is_none() && !budget.behind(),
    };
    let same = agrees
        && computed.unread_scales.is_empty()
        && computed.numbers == reported
        && computed.condition_reason() == &*status.reason;
    (!same).then(|| {
        format!(
            "budget {}/{}\n  computed: {:?} {:?} unread {:?}\n  reported: {reported:?} {} {failed:?} generation {} of {}\n  spec: \
             min {:?} max {:?}\n  pods: {}",
            budget.namespace,
            budget.name,
            computed.numbers,
            computed.sync_error,
            computed.unread_scales,
            status.reason,
            status.observed_generation,
            budget.generation,
            budget.min_available,
            budget.max_unavailable,
            described(cluster, budget),
        )
    })
}

fn described(cluster: &Cluster, budget: &Pdb) -> String {
    let pods = budget::selected(cluster, budget).map(|pod| {
        let owner = pod.owner.as_ref().map_or_else(String::new, |owner| {
            format!(" of {} {} {}", owner.api_version, owner.kind, owner.name)
        });
        let charged = if budget.status.disrupted_pods.contains_key(&pod.name) { " charged" } else { "" };
        let going = if pod.terminating() { " terminating" } else { "" };
        let ready = if pod.ready { " ready" } else { "" };
        format!("{}{owner} {:?}{ready}{going}{charged}", pod.name, pod.phase)
    });
    pods.collect::<Vec<_>>().join("; ")
}

/// Asks the server for a dry-run eviction of every chosen pod and compares the answers with ours.
pub async fn evictions(
    server: &Server,
    live: &Live,
    chosen: impl Fn(&Pod) -> bool,
    mismatches: &mut Mismatches,
) -> Result<Vec<(PodKey, Asked)>> {
    let pods: Vec<PodKey> =
        live.read(|cluster| cluster.pods().filter(|pod| chosen(pod)).map(|pod| pod.key()).collect());
    let answered: Vec<(PodKey, BTreeMap<u8, Verdict>, Answer)> = stream::iter(pods)
        .map(|key| async move {
            let (verdicts, answer) = ask(server, live, &key).await?;
            anyhow::Ok((key, verdicts, answer))
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut asked = Vec::new();
    for (key, verdicts, answer) in answered {
        for (number, verdict) in &verdicts {
            let named = verdict.budgets.iter().all(|budget| answer.message.contains(&**budget));
            let names_it =
                !matches!(verdict.cause, Cause::Exhausted | Cause::SyncFailed | Cause::StillProcessing)
                    || named;
            if verdict.code != answer.code || class(verdict.cause) != answer.class || !names_it {
                let pod = live.read(|cluster| cluster.pod(&key).map(|pod| format!("{pod:?}")));
                mismatches.entry(*number).or_default().push(format!(
                    "pod {}/{}\n  ours:   {verdict:?}\n  server: {answer:?}\n  pod: {pod:?}",
                    key.namespace, key.name
                ));
            }
        }
        if let Some(verdict) = verdicts.get(&0) {
            asked.push((key, Asked { verdict: verdict.clone(), answer }));
        }
    }
    Ok(asked)
}

/// Asks about one pod, once more when what we say about it changed meanwhile.
async fn ask(server: &Server, live: &Live, key: &PodKey) -> Result<(BTreeMap<u8, Verdict>, Answer)> {
    for _ in 0..5 {
        let before = live.read(|cluster| verdicts(cluster, key));
        let answer = server.evict(&key.namespace, &key.name, None, true).await?;
        // An event of before the answer may still be on its way.
        let mut after = live.read(|cluster| verdicts(cluster, key));
        if differ(&before, &answer) && before == after {
            live.quiet(Duration::from_millis(300)).await?;
            after = live.read(|cluster| verdicts(cluster, key));
        }
        if before == after {
            return Ok((before, answer));
        }
    }
    bail!("the pod {}/{} does not come to rest", key.namespace, key.name)
}

fn differ(verdicts: &BTreeMap<u8, Verdict>, answer: &Answer) -> bool {
    verdicts.get(&0).is_none_or(|verdict| verdict.code != answer.code)
}

fn verdicts(cluster: &Cluster, key: &PodKey) -> BTreeMap<u8, Verdict> {
    let Some(pod) = cluster.pod(key) else { return BTreeMap::new() };
    let numbers = [0].into_iter().chain(mutate::chosen());
    numbers
        .map(|number| {
            let _planted = mutate::Planting::of(number);
            (number, budget::verdict(cluster, pod))
        })
        .collect()
}
