//! Nodes in the hands of whoever works on them.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{DrainPlanStatus, NodePhase, PlanPhase, condition, names};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::windows::from_now;
use super::{PATIENCE, alone, report, shared};
use crate::harness::{Bed, PlanRun, Recorder, Sight, Template, cordoned, marks, node_of, nodes};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![
        shared!(90, released_by_an_annotation),
        alone!(91, rebooted_while_the_controller_was_down),
        shared!(92, node_that_comes_back_not_ready),
        shared!(93, upgraded_and_deleted),
        shared!(94, plan_deleted_while_nodes_are_handed_off),
        shared!(95, sample_script_releases_nodes),
        shared!(96, sample_daemon_set_finds_its_node),
        shared!(97, volumes_are_awaited),
        shared!(98, kubectl_waits_for_a_plan),
        shared!(99, exclusion_and_suspension_while_handed_off),
    ]
}

/// A plan over these nodes that hands them off.
fn handing_off(nodes: &[String], until: &str, timeout: &str) -> Value {
    json!({
        "nodes": {"names": nodes},
        "timeouts": {"node": "2m", "handOff": timeout},
        "handOff": {"until": until},
    })
}

/// Nodes with a pod of one service each, and room elsewhere.
async fn with_pods<const N: usize>(bed: &Bed, suffixes: [&str; N]) -> Result<[String; N]> {
    let nodes = bed.nodes(suffixes, 1).await?;
    let count = u32::try_from(N)?;
    bed.space.deployment("web", count, &Template::new()).await?;
    bed.space.all_ready("web", N).await?;
    bed.nodes(["spare"], 110).await?;
    Ok(nodes)
}

async fn node(bed: &Bed, name: &str) -> Result<Node> {
    Ok(Api::<Node>::all(bed.client()).get(name).await?)
}

fn boot_id(node: &Node) -> Option<&str> {
    Some(node.status.as_ref()?.node_info.as_ref()?.boot_id.as_str())
}

fn ready(status: &DrainPlanStatus) -> (String, String, String) {
    let found = status.conditions.iter().find(|condition| condition.type_ == condition::READY);
    found.map_or_else(Default::default, |it| (it.status.clone(), it.reason.clone(), it.message.clone()))
}

/// Its kubelet says that it is not ready.
async fn falls_ill(bed: &Bed, node: &str) -> Result<()> {
    bed.annotate_node(node, "sim.drainplan.dev/kubelet", Some("not-ready")).await?;
    let node = format!("node/{node}");
    let wait = ["wait", "--for=condition=Ready=False", &node, "--timeout=60s"];
    bed.installation.testbed.kubectl(&wait).await.map(drop)
}

async fn release(bed: &Bed, plan: &PlanRun, node: &str) -> Result<()> {
    bed.annotate_node(node, names::RELEASE, Some(&plan.name)).await
}

async fn released_by_an_annotation(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a", "b"]).await?;
    let [a, b] = &nodes;
    let watched = bed.record_nodes().await?;
    let plan = bed.plan("plan", handing_off(&nodes, "Released", "10m")).await?;
    let status = plan.hands_off(a, PATIENCE).await?;
    ensure!(status.drained_at.is_some() && status.deadline.is_some(), "it is {status:?}");
    let message = status.message.unwrap_or_default();
    let how = format!("kubectl annotate node {a} drainplan.dev/release={}", plan.name);
    ensure!(message.ends_with(&how), "\"{how}\" is missing in: {message}");
    bed.node_is_announced(a).await?;
    plan.until("says that it waits for the hand-off", PATIENCE, |status| {
        let said = ready(status);
        if said.1 == "AwaitingHandOff" { Sight::Found(()) } else { Sight::NotYet(format!("{said:?}")) }
    })
    .await?;
    ensure!(!cordoned(&node(&bed, b).await?), "{b} has its turn while {a} is handed off");

    // Whoever works on it may uncordon it.
    bed.set_cordon(a, false).await?;
    bed.annotate_node(a, names::RELEASE, Some("another-plan")).await?;
    plan.until("says whose release that is", PATIENCE, |status| match report(status, a) {
        Ok(node) if node.message.as_ref().is_some_and(|it| it.contains("it names plan another-plan now")) => {
            Sight::Found(())
        }
        other => Sight::NotYet(format!("{other:?}")),
    })
    .await?;
    release(&bed, &plan, a).await?;
    bed.node_rests(a, false, &[]).await?;
    plan.hands_off(b, PATIENCE).await?;
    bed.node_is_announced(b).await?;
    release(&bed, &plan, b).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    for node in &nodes {
        ensure!(report(&status, node)?.phase == NodePhase::Done);
        bed.node_rests(node, false, &[]).await?;
    }
    // The label is never there without the claim.
    let lone = watched.with(|record| {
        let ours = record.events.iter().filter(|seen| nodes.contains(&seen.object.name_any()));
        let lone = |node: &Node| {
            node.labels().contains_key(names::STATE) && !node.annotations().contains_key(names::CLAIM)
        };
        ours.filter(|seen| lone(&seen.object)).count()
    });
    ensure!(lone == 0, "{lone} times the label was there without a claim");
    Ok(())
}

async fn rebooted_while_the_controller_was_down(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a"]).await?;
    let [a] = &nodes;
    let plan = bed.plan("plan", handing_off(&nodes, "Rebooted", "10m")).await?;
    let before = plan.hands_off(a, PATIENCE).await?;
    bed.node_is_announced(a).await?;
    let boot = boot_id(&node(&bed, a).await?).map(str::to_owned);
    ensure!(before.boot_id.is_some() && before.boot_id == boot, "{:?} is not {boot:?}", before.boot_id);
    bed.installation.controller.kill()?;
    nodes::tells(bed.client(), a, json!({"bootID": "another-boot"})).await?;
    bed.installation.controller.start().await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let report = report(&status, a)?;
    ensure!(report.message.as_deref() == Some("it has rebooted and is Ready"), "{report:?}");
    ensure!(report.boot_id == boot, "{:?} was compared with instead of {boot:?}", report.boot_id);
    bed.node_rests(a, false, &[]).await
}

/// The event of that reason about an object of that name.
async fn event(told: &Recorder<Event>, reason: &str, about: &str) -> Result<Event> {
    told.until(&format!("an event {reason} about {about}"), PATIENCE, |record| {
        let found = record.now.values().find(|event| {
            event.reason.as_deref() == Some(reason)
                && event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(about)
        });
        match found {
            Some(event) => Sight::Found((**event).clone()),
            None => Sight::NotYet(format!("{} events", record.now.len())),
        }
    })
    .await
}

async fn node_that_comes_back_not_ready(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a", "b"]).await?;
    let [a, b] = &nodes;
    let told = Recorder::start(Api::<Event>::all(bed.client()), None).await?;
    let plan = bed.plan("plan", handing_off(&nodes, "Rebooted", "10m")).await?;
    plan.hands_off(a, PATIENCE).await?;
    bed.node_is_announced(a).await?;
    falls_ill(&bed, a).await?;
    nodes::tells(bed.client(), a, json!({"bootID": "another-boot"})).await?;
    plan.until("says that it is not Ready", PATIENCE, |status| match report(status, a) {
        Ok(node) if node.message.as_ref().is_some_and(|it| it.contains("condition Ready is False")) => {
            Sight::Found(())
        }
        other => Sight::NotYet(format!("{other:?}")),
    })
    .await?;
    // A changed timeout counts for it.
    plan.change(json!({"timeouts": {"handOff": "1s"}})).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let failed = report(&status, a)?;
    ensure!(failed.reason.as_deref() == Some("HandOffTimedOut"), "{failed:?}");
    let left = format!("{}={}", names::LEFT_CORDONED, plan.name);
    bed.node_rests(a, true, &[left]).await?;
    for about in [a, &plan.name] {
        let event = event(&told, "NodeLeftCordoned", about).await?;
        let note = event.note.unwrap_or_default();
        ensure!(event.type_.as_deref() == Some("Warning") && note.contains("Ready is False"), "{note}");
    }
    let said = ready(&status).2;
    ensure!(said.contains("did not come back from its hand-off"), "{said}");
    bed.node_rests(b, false, &[]).await?;
    ensure!(
        status.node_counts.as_ref().is_some_and(|counts| counts.pending == 1),
        "{:?}",
        status.node_counts
    );

    // When it is well somebody uncordons it, and what said otherwise goes.
    bed.annotate_node(a, "sim.drainplan.dev/kubelet", None).await?;
    bed.set_cordon(a, false).await?;
    bed.node_rests(a, false, &[]).await
}

async fn upgraded_and_deleted(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a", "b"]).await?;
    let [a, b] = nodes.clone();
    let upgrades = bed.plan("upgrades", handing_off(std::slice::from_ref(&a), "Upgraded", "10m")).await?;
    let deletes = bed.plan("deletes", handing_off(std::slice::from_ref(&b), "Deleted", "10m")).await?;
    let before = upgrades.hands_off(&a, PATIENCE).await?.kubelet_version.context("no version")?;
    bed.node_is_announced(&a).await?;
    nodes::tells(bed.client(), &a, json!({"kubeletVersion": "v9.9.9"})).await?;
    let status = upgrades.ends(PlanPhase::Completed, PATIENCE).await?;
    let said = report(&status, &a)?.message.clone().unwrap_or_default();
    ensure!(said == format!("its kubelet was {before} and is v9.9.9, and it is Ready"), "{said}");
    bed.node_rests(&a, false, &[]).await?;

    deletes.hands_off(&b, PATIENCE).await?;
    bed.node_is_announced(&b).await?;
    bed.delete_node(&b).await?;
    let status = deletes.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(report(&status, &b)?.phase == NodePhase::Done, "{:?}", report(&status, &b));
    // What comes under its name is another node.
    let [again] = bed.nodes(["b"], 1).await?;
    bed.node_rests(&again, false, &[]).await
}

async fn plan_deleted_while_nodes_are_handed_off(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["well", "ill"]).await?;
    let [well, ill] = &nodes;
    let told = Recorder::start(Api::<Event>::all(bed.client()), None).await?;
    let mut spec = handing_off(&nodes, "Released", "10m");
    spec["pace"] = json!({"maxConcurrentNodes": 2});
    let plan = bed.plan("plan", spec).await?;
    for node in &nodes {
        plan.hands_off(node, PATIENCE).await?;
        bed.node_is_announced(node).await?;
    }
    falls_ill(&bed, ill).await?;
    plan.delete().await?;
    plan.gone(PATIENCE).await?;
    bed.node_rests(well, false, &[]).await?;
    let left = format!("{}={}", names::LEFT_CORDONED, plan.name);
    bed.node_rests(ill, true, &[left]).await?;
    event(&told, "NodeLeftCordoned", ill).await?;
    bed.annotate_node(ill, "sim.drainplan.dev/kubelet", None).await?;
    bed.set_cordon(ill, false).await?;
    bed.node_rests(ill, false, &[]).await
}

async fn sample_script_releases_nodes(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a", "b"]).await?;
    let plan = bed.plan("plan", handing_off(&nodes, "Released", "10m")).await?;
    // What it does to a node, in order; each while that is handed off.
    let done = bed.installation.testbed.dir().join(format!("{}.done", bed.name));
    let work = format!(
        "kubectl get nodes --selector drainplan.dev/state=drained --output name | grep -qx node/$1 && echo $1 >> {}",
        done.display()
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/samples/hand-off.sh");
    let said = bed.installation.testbed.run(&script, &[&plan.name, "sh", "-c", &work, "work"]).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(status.progress.as_deref() == Some("2/2"), "{status:?}");
    let worked: Vec<String> = std::fs::read_to_string(&done)?.lines().map(str::to_owned).collect();
    ensure!(worked == nodes, "it has worked on {worked:?} and said {said}");
    for node in &nodes {
        bed.node_rests(node, false, &[]).await?;
    }

    // A node that the work fails on is not released; the script ends with its plan.
    let fails = bed.plan("fails", handing_off(&nodes, "Released", "5s")).await?;
    let failed = bed.installation.testbed.run(&script, &[&fails.name, "false"]).await;
    ensure!(failed.is_err(), "the script has succeeded: {failed:?}");
    let status = fails.ends(PlanPhase::Failed, PATIENCE).await?;
    ensure!(report(&status, &nodes[0])?.reason.as_deref() == Some("HandOffTimedOut"), "{status:?}");
    Ok(())
}

async fn sample_daemon_set_finds_its_node(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a"]).await?;
    let [a] = &nodes;
    let sample =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/samples/reboot.yaml"))?;
    let set = sample.split("\n---\n").nth(1).context("no DaemonSet in the sample")?;
    let file = bed.installation.testbed.dir().join(format!("{}.yaml", bed.name));
    std::fs::write(&file, set)?;
    let pods = Recorder::start(Api::<Pod>::namespaced(bed.client(), "kube-system"), None).await?;
    let file = file.display().to_string();
    bed.installation.testbed.kubectl(&["apply", "--server-side", "-f", &file]).await?;

    let plan = bed.plan("plan", handing_off(&nodes, "Rebooted", "10m")).await?;
    plan.hands_off(a, PATIENCE).await?;
    pods.until("a pod of the sample runs on the node", PATIENCE, |record| {
        match record.now.values().find(|pod| node_of(pod) == a) {
            Some(_) => Sight::Found(()),
            None => Sight::NotYet(format!("{} pods", record.now.len())),
        }
    })
    .await?;
    let elsewhere =
        pods.with(|record| record.now.values().filter(|pod| node_of(pod).ends_with("spare")).count());
    ensure!(elsewhere == 0, "{elsewhere} pods of it run on a node that is not handed off");
    // It is what the simulated kubelet cannot do.
    nodes::tells(bed.client(), a, json!({"bootID": "another-boot"})).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    bed.node_rests(a, false, &[]).await?;
    ensure!(marks(&node(&bed, a).await?).is_empty());
    pods.until("its pod has gone", PATIENCE, |record| {
        match record.now.values().find(|pod| node_of(pod) == a) {
            None => Sight::Found(()),
            Some(pod) => Sight::NotYet(format!("{:?}", pod.metadata.deletion_timestamp)),
        }
    })
    .await?;
    bed.installation.testbed.kubectl(&["delete", "-f", &file]).await.map(drop)
}

/// Nobody attaches volumes here: an attachment is what the server is told.
async fn volumes_are_awaited(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a"]).await?;
    let [a] = &nodes;
    let (volume, attachment) = (bed.named("pv"), bed.named("attachment"));
    let volumes: Api<PersistentVolume> = Api::all(bed.client());
    let spec = json!({
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "csi.example", "volumeHandle": volume},
        "claimRef": {"namespace": bed.name, "name": "data"},
    });
    let object = json!({"metadata": {"name": volume}, "spec": spec});
    volumes.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let attachments: Api<VolumeAttachment> = Api::all(bed.client());
    let source = json!({"persistentVolumeName": volume});
    let object = json!({
        "metadata": {"name": attachment},
        "spec": {"attacher": "csi.example", "nodeName": a, "source": source},
    });
    attachments.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let attached = Patch::Merge(json!({"status": {"attached": true}}));
    attachments.patch_status(&attachment, &PatchParams::default(), &attached).await?;

    let plan = bed.plan("plan", handing_off(&nodes, "Released", "10m")).await?;
    let message = plan
        .until("waits for the volume", PATIENCE, |status| match report(status, a) {
            Ok(node) if node.reason.as_deref() == Some("VolumesAttached") => {
                Sight::Found(node.message.clone().unwrap_or_default())
            }
            Ok(node) if node.phase == NodePhase::HandedOff => Sight::Never("it is handed off".to_owned()),
            other => Sight::NotYet(format!("{other:?}")),
        })
        .await?;
    let named = format!("PersistentVolume {volume} (VolumeAttachment {attachment})");
    ensure!(message.contains(&named), "\"{named}\" is missing in: {message}");
    ensure!(bed.accepted()?.len() == 1, "the pod has not gone before: {:#?}", bed.evictions()?);
    ensure!(
        !marks(&node(&bed, a).await?).iter().any(|mark| mark.starts_with(names::STATE)),
        "it is handed off"
    );
    attachments.delete(&attachment, &DeleteParams::default()).await?;
    plan.hands_off(a, PATIENCE).await?;
    release(&bed, &plan, a).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    volumes.delete(&volume, &DeleteParams::default()).await?;
    Ok(())
}

/// As a pipeline waits.
async fn kubectl_waits_for_a_plan(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a", "b"]).await?;
    let [a, b] = nodes.clone();
    let testbed = &bed.installation.testbed;
    let good = bed.plan("good", handing_off(std::slice::from_ref(&a), "Released", "10m")).await?;
    let object = format!("drainplan/{}", good.name);
    let arguments = ["wait", "--for=condition=Ready", &object, "--timeout=100s"];
    let works = async {
        good.hands_off(&a, PATIENCE).await?;
        bed.node_is_announced(&a).await?;
        release(&bed, &good, &a).await
    };
    let (waited, works) = tokio::join!(testbed.kubectl(&arguments), works);
    works?;
    ensure!(waited?.contains("condition met"));
    let status = good.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(status.conditions.iter().all(|it| it.type_ != condition::STALLED), "{:?}", status.conditions);
    bed.node_rests(&a, false, &[]).await?;

    let bad = bed.plan("bad", handing_off(std::slice::from_ref(&b), "Rebooted", "2s")).await?;
    let object = format!("drainplan/{}", bad.name);
    testbed.kubectl(&["wait", "--for=condition=Stalled", &object, "--timeout=100s"]).await?;
    let status = bad.ends(PlanPhase::Failed, PATIENCE).await?;
    ensure!(report(&status, &b)?.reason.as_deref() == Some("HandOffTimedOut"), "{status:?}");
    let running = |it: &DrainPlanStatus| it.phase == Some(PlanPhase::Running);
    let stalled = |it: &DrainPlanStatus| it.conditions.iter().any(|it| it.type_ == condition::STALLED);
    let early = bad.statuses().into_iter().find(|it| running(it) && stalled(it));
    ensure!(early.is_none(), "it was called Stalled while it ran: {early:?}");
    bed.node_rests(&b, false, &[]).await
}

/// Neither has anything to do with who works on the node.
async fn exclusion_and_suspension_while_handed_off(bed: Bed) -> Result<()> {
    let nodes = with_pods(&bed, ["a", "b"]).await?;
    let [a, b] = &nodes;
    let plan = bed.plan("plan", handing_off(&nodes, "Released", "10m")).await?;
    plan.hands_off(a, PATIENCE).await?;
    bed.node_is_announced(a).await?;
    let (start, end) = (from_now(-1), from_now(3600));
    plan.change(json!({"exclusions": [{"start": start, "end": end}]})).await?;
    let shut = |status: &DrainPlanStatus| {
        let open = status.conditions.iter().find(|it| it.type_ == condition::WINDOW_OPEN);
        open.is_some_and(|open| open.status == "False")
    };
    plan.until("runs on although nothing is open", PATIENCE, |status| match status.phase {
        Some(PlanPhase::Running) if shut(status) => Sight::Found(()),
        Some(PlanPhase::Running) => Sight::NotYet("it has not seen the exclusion".to_owned()),
        phase => Sight::Never(format!("it is {phase:?}")),
    })
    .await?;
    bed.node_is_announced(a).await?;
    release(&bed, &plan, a).await?;
    bed.node_rests(a, false, &[]).await?;
    plan.until("waits for the end of the exclusion", PATIENCE, |status| match status.phase {
        Some(PlanPhase::Scheduled) => Sight::Found(()),
        phase => Sight::NotYet(format!("{phase:?}")),
    })
    .await?;
    ensure!(!cordoned(&node(&bed, b).await?), "{b} was taken during the exclusion");

    plan.change(json!({"exclusions": null})).await?;
    plan.hands_off(b, PATIENCE).await?;
    plan.change(json!({"suspend": true})).await?;
    plan.until("is suspended", PATIENCE, |status| match status.phase {
        Some(PlanPhase::Suspended) => Sight::Found(()),
        phase => Sight::NotYet(format!("{phase:?}")),
    })
    .await?;
    bed.node_is_announced(b).await?;
    release(&bed, &plan, b).await?;
    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(status.progress.as_deref() == Some("2/2"), "{status:?}");
    bed.node_rests(b, false, &[]).await
}
