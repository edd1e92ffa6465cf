//! What other versions, and people, do to the resource and to what is written in it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{DrainPlan, DrainPlanStatus, NodePhase, PlanPhase};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use serde_json::json;

use super::{PATIENCE, alone, over, report};
use crate::harness::{Bed, Installation, Recorder, Sight, Template, cordoned, marks};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![alone!(27, plan_that_cannot_be_read), alone!(26, resource_gone_and_back)]
}

/// As another version of the CRD has it.
const NEWER: &str = r#"[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/nodes/items/properties/phase/enum/-", "value": "Cooling"}]"#;

async fn plan_that_cannot_be_read(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 3).await?;
    let slow = Template::new().sim("terminate-after", "200s");
    bed.space.deployment("web", 1, &slow).await?;
    bed.space.all_ready("web", 1).await?;
    bed.nodes(["spare"], 110).await?;
    // Nothing fits there, so it is drained at once.
    let others = bed.nodes(["b"], 0).await?;
    let plan = bed.plan("plan", over(&nodes, "10m", "KeepCordoned")).await?;
    let draining = |status: &DrainPlanStatus| match report(status, &nodes[0]) {
        Ok(node) if node.phase == NodePhase::Draining && node.started_at.is_some() => Sight::Found(()),
        _ => Sight::NotYet(format!("{:?}", status.nodes)),
    };
    plan.until("is draining", PATIENCE, draining).await?;
    bed.node_is_cordoned(&nodes[0]).await?;

    // A time that the schema allows and nobody can read: its clock begins again.
    forge(
        &bed,
        &plan.name,
        json!({"op": "replace", "path": "/status/nodes/0/startedAt", "value": "9999-12-31T23:59:59Z"}),
    )
    .await?;
    let lost = |status: &DrainPlanStatus| {
        status.nodes.iter().any(|node| node.phase == NodePhase::Draining && node.started_at.is_none())
    };
    plan.shows("no clock of the node", PATIENCE, lost).await?;
    plan.until("has a clock again", PATIENCE, draining).await?;

    // A phase that this version does not know: nothing is done but to say so.
    let events: Api<Event> = Api::all(bed.client());
    let told = Recorder::start(events, None).await?;
    bed.installation.testbed.kubectl(&["patch", "crd", CRD, "--type=json", "-p", NEWER]).await?;
    forge(&bed, &plan.name, json!({"op": "replace", "path": "/status/nodes/0/phase", "value": "Cooling"}))
        .await?;
    let name = plan.name.clone();
    drop(plan);
    let note = told.until("the plan's owner is told", PATIENCE, |record| {
        let ours = record.now.values().find(|event| {
            event.reason.as_deref() == Some("Unreadable")
                && event.regarding.as_ref().and_then(|object| object.name.as_ref()) == Some(&name)
        });
        match ours {
            Some(event) => Sight::Found((event.type_.clone(), event.note.clone().unwrap_or_default())),
            None => Sight::NotYet(format!("{} events", record.now.len())),
        }
    });
    let (kind, note) = note.await?;
    ensure!(kind.as_deref() == Some("Warning"), "the event is {kind:?}");
    for part in [format!("plan {name} cannot be read"), "Cooling".to_owned(), "delete the plan".to_owned()] {
        ensure!(note.contains(&part), "\"{part}\" is missing in: {note}");
    }
    bed.plan("other", over(&others, "2m", "Uncordon")).await?.ends(PlanPhase::Completed, PATIENCE).await?;
    let node = Api::<Node>::all(bed.client()).get(&nodes[0]).await?;
    ensure!(cordoned(&node) && !marks(&node).is_empty(), "node {} was given back", nodes[0]);

    // Deleted, it gives its node back and goes.
    let gone = Recorder::start(plans(bed.client()), Some(&format!("metadata.name={name}"))).await?;
    plans(bed.client()).delete(&name, &DeleteParams::default()).await?;
    bed.node_rests(&nodes[0], false, &[]).await?;
    gone.until("the plan is gone", PATIENCE, |record| {
        if record.now.is_empty() { Sight::Found(()) } else { Sight::NotYet("it is still there".to_owned()) }
    })
    .await?;
    apply_crd(&bed.installation).await
}

const CRD: &str = "drainplans.drainplan.dev";

fn plans(client: Client) -> Api<PartialObjectMeta<DrainPlan>> {
    Api::all(client)
}

/// Changes a plan's status behind the controller's back.
async fn forge(bed: &Bed, name: &str, change: serde_json::Value) -> Result<()> {
    let patch: json_patch::Patch = serde_json::from_value(json!([change]))?;
    let written = plans(bed.client())
        .patch_subresource("status", name, &PatchParams::default(), &Patch::Json::<()>(patch))
        .await;
    written.with_context(|| format!("forging the status of plan {name}")).map(drop)
}

async fn apply_crd(installation: &Installation) -> Result<()> {
    let crd = concat!(env!("CARGO_MANIFEST_DIR"), "/crds/drainplan.yaml");
    let testbed = &installation.testbed;
    testbed.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", crd]).await?;
    testbed.kubectl(&["wait", "--for=condition=Established", &format!("crd/{CRD}")]).await.map(drop)
}

/// The resource is deleted, with all plans, and applied again: the watch comes back by itself, and readiness tells.
async fn resource_gone_and_back(bed: Bed) -> Result<()> {
    let controller = &bed.installation.controller;
    let nodes = bed.nodes(["a"], 10).await?;
    for plan in plans(bed.client()).list(&ListParams::default()).await? {
        plans(bed.client()).delete(&plan.metadata.name.unwrap_or_default(), &DeleteParams::default()).await?;
    }
    bed.installation.testbed.kubectl(&["delete", "crd", CRD]).await?;
    controller.says("/readyz", "not in sync: DrainPlan for ", Duration::from_secs(30)).await?;
    apply_crd(&bed.installation).await?;
    controller.says("/readyz", "HTTP/1.1 200", Duration::from_secs(15)).await?;
    let plan = bed.plan("plan", over(&nodes, "2m", "Uncordon")).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await.map(drop)
}
