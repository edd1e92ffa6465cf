//! What pod garbage collection does, as `docs/pod-gc.md` says it: the real controller manager's, in its own time.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::PlanPhase;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{PATIENCE, over, slow};
use crate::harness::{Bed, Recorder, Sight, Space, Template, Testbed, nodes, terminating, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![slow!(200, orphans_are_collected), slow!(201, finished_pods_beyond_the_threshold)]
}

/// Awaits that the pods are gone; their last states.
async fn gone(record: &Recorder<Pod>, uids: &BTreeSet<String>, within: Duration) -> Result<Vec<Pod>> {
    record
        .until("the pods are collected", within, |record| {
            let left = record.now.values().filter(|pod| uids.contains(&uid(&***pod))).count();
            if left > 0 {
                return Sight::NotYet(format!("{left} are left"));
            }
            let last = |uid: &String| {
                let mut of = record.events.iter().filter(|seen| self::uid(&*seen.object) == *uid);
                of.next_back().map(|seen| (*seen.object).clone())
            };
            Sight::Found(uids.iter().filter_map(last).collect())
        })
        .await
}

/// What pod garbage collection has written to a pod.
fn collected(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    phase == Some("Failed")
        && conditions
            .any(|it| it.type_ == "DisruptionTarget" && it.reason.as_deref() == Some("DeletionByPodGC"))
}

async fn orphans_are_collected(bed: Bed) -> Result<()> {
    // Longer than 80 s, and long enough for a busy machine.
    const COLLECTS: Duration = Duration::from_mins(3);
    let [drained, other] = bed.nodes(["a", "b"], 2).await?;
    let never = Template::new().sim("terminate", "never");
    bed.space.deployment("web", 2, &never.clone().only_on(&[&drained, &bed.named("spare")])).await?;
    bed.space.deployment("db", 2, &never.only_on(&[&other, &bed.named("spare")])).await?;
    let going = bed.space.all_ready("web", 2).await?;
    let running = bed.space.all_ready("db", 2).await?;
    bed.nodes(["spare"], 110).await?;
    let record = Recorder::start(bed.space.pods(), None).await?;

    let plan = bed.plan("plan", over(std::slice::from_ref(&drained), "2m", "Uncordon")).await?;
    bed.space
        .pods_until("web", "both are going", |pods| pods.iter().filter(|pod| terminating(pod)).count() == 2)
        .await?;
    bed.delete_node(&drained).await?;
    bed.delete_node(&other).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;

    let uids: BTreeSet<String> = going.iter().chain(&running).map(uid).collect();
    let last = gone(&record, &uids, COLLECTS).await?;
    for pod in &last {
        ensure!(collected(pod), "{} was not collected but ended as {:?}", pod.name_any(), pod.status);
    }
    ensure!(last.len() == 4, "{} pods were seen to go", last.len());
    Ok(())
}

async fn finished_pods_beyond_the_threshold(bed: Bed) -> Result<()> {
    const ARGUMENT: &str = "kube-controller-manager:terminated-pod-gc-threshold=3";
    let testbed =
        Testbed::up_with(&format!("{}-gc", bed.installation.testbed.name()), &["--arg", ARGUMENT]).await?;
    let labels = serde_json::Map::from_iter([("pool".to_owned(), json!("gc"))]);
    nodes::create(testbed.client(), &["gc-node".to_owned()], &labels, 110).await?;
    let space = Space::create(testbed.client(), "gc", labels).await?;
    let template = Template::new().never_restarted().sim("complete-after", "0s");
    let record = Recorder::start(space.pods(), None).await?;
    let mut uids = Vec::new();
    for number in 0..3 {
        uids.push(uid(&space.pod(&format!("pod-{number}"), &template).await?));
    }
    finished(&record, 3).await?;
    // Nothing is beyond the threshold yet; the newest of them counts as evicted by its kubelet.
    let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
    space.pods().patch_status("pod-2", &PatchParams::default(), &Patch::Merge(evicted)).await?;
    for number in 3..5 {
        uids.push(uid(&space.pod(&format!("pod-{number}"), &template).await?));
    }
    // Two are too many: the evicted one goes first, then the oldest.
    let going = [0, 2].iter().filter_map(|number| uids.get(*number).cloned()).collect();
    gone(&record, &going, Duration::from_mins(1)).await?;
    let left: BTreeSet<String> =
        record.with(|record| record.now.values().map(|pod| pod.name_any()).collect());
    let expected = ["pod-1", "pod-3", "pod-4"].map(str::to_owned);
    ensure!(left == BTreeSet::from(expected), "{left:?} are left");
    Ok(())
}

async fn finished(record: &Recorder<Pod>, count: usize) -> Result<()> {
    record
        .until(&format!("{count} finished pods"), PATIENCE, |record| {
            let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
            let done = record.now.values().filter(|pod| phase(pod).as_deref() == Some("Succeeded")).count();
            if done == count { Sight::Found(()) } else { Sight::NotYet(format!("{done} are")) }
        })
        .await
        .context("pods that finish at once")
}
