//! What happens when the controller may not do what it has to.

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodeReason, PlanPhase};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{PATIENCE, alone, over, report, waiting};
use crate::harness::{Bed, Installation, Template, cordoned};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![alone!(23, no_right_to_evict), alone!(25, right_to_evict_taken_away)]
}

async fn no_right_to_evict(bed: Bed) -> Result<()> {
    take_right(&bed).await?;
    let tried = without_the_right(&bed).await;
    give_right(&bed).await?;
    tried?;

    // With the right back, all is well.
    let plan = bed.plan("after", over(&[bed.named("a")], "2m", "Uncordon")).await?;
    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    ensure!(bed.accepted()?.len() == 2, "evictions: {:#?}", bed.evictions()?);
    Ok(())
}

async fn without_the_right(bed: &Bed) -> Result<()> {
    let nodes = bed.nodes(["a"], 2).await?;
    let [node] = &nodes;
    bed.space.deployment("web", 2, &Template::new()).await?;
    let pods = bed.space.all_ready("web", 2).await?;
    bed.nodes(["spare"], 110).await?;

    let watched = bed.record_nodes().await?;
    // What it has been told before the right was taken away is believed for a while.
    forgotten(bed).await?;
    let plan = bed.plan("without", over(&nodes, "5s", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let report = report(&status, node)?;
    let failed_as = report.reason.as_deref();
    ensure!(failed_as == Some(NodeReason::Blocked.as_str()), "node {node} failed as {failed_as:?}");
    for pod in &pods {
        bed.says("Forbidden/NeverClears", waiting(report, &pod.name_any())?)?;
    }
    ensure!(bed.evictions()?.is_empty(), "evictions: {:#?}", bed.evictions()?);
    bed.ensure_untouched(&watched, node)?;
    bed.node_rests(node, false, &[]).await
}

/// Restarts the controller, which then knows nothing of its rights.
async fn forgotten(bed: &Bed) -> Result<()> {
    bed.installation.controller.kill()?;
    bed.installation.controller.start().await
}

async fn right_to_evict_taken_away(bed: Bed) -> Result<()> {
    let nodes = bed.nodes(["a", "b"], 110).await?;
    let [a, b] = &nodes;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    let template = Template::new().sim("ready-after", "1s").only_on(&[a, &bed.named("spare")]);
    bed.space.deployment("web", 3, &template).await?;
    bed.space.deployment("other", 1, &Template::new().only_on(&[b])).await?;
    bed.space.all_ready("web", 3).await?;
    bed.space.all_ready("other", 1).await?;
    bed.space.budget_allows("web", 3, 1).await?;
    bed.nodes(["spare"], 110).await?;

    let watched = bed.record_nodes().await?;
    let plan = bed.plan("plan", over(&nodes, "8s", "Uncordon")).await?;
    plan.shows_waiting("its first pod evicted", PATIENCE, |it, _| it.pods_evicted > 0).await?;
    take_right(&bed).await?;
    let tried = async {
        let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
        let (first, second) = (report(&status, a)?, report(&status, b)?);
        let reasons = (first.reason.as_deref(), second.reason.as_deref());
        let expected = (Some(NodeReason::TimedOut.as_str()), Some(NodeReason::Blocked.as_str()));
        ensure!(reasons == expected, "the nodes failed as {reasons:?}");
        for node in [first, second] {
            let said = node.waiting.iter().any(|pod| pod.reason == "Forbidden");
            ensure!(said, "no pod of node {} is Forbidden: {:?}", node.name, node.waiting);
        }
        let refused = bed.evictions()?.into_iter().filter(|eviction| eviction.code == 403).count();
        ensure!(refused <= 2, "{refused} evictions were refused before it asked");
        let was_cordoned = watched.with(|record| {
            record.events.iter().any(|seen| seen.object.name_any() == *b && cordoned(&seen.object))
        });
        ensure!(!was_cordoned, "node {b} was cordoned");
        bed.node_rests(a, false, &[]).await?;
        bed.node_rests(b, false, &[]).await
    };
    let tried = tried.await;
    give_right(&bed).await?;
    tried
}

const ROLE: &str = "drainplan-controller";

fn evicts(rule: &PolicyRule) -> bool {
    rule.resources.iter().flatten().any(|resource| resource == "pods/eviction")
}

/// Takes the right to evict away from the controller, and awaits that the server knows.
async fn take_right(bed: &Bed) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(bed.client());
    let mut role = roles.get(ROLE).await?;
    let rules = role.rules.as_mut().context("the role has no rules")?;
    let before = rules.len();
    rules.retain(|rule| !evicts(rule));
    ensure!(rules.len() < before, "no rule of the role is about pods/eviction");
    roles.replace(ROLE, &PostParams::default(), &role).await?;
    may_evict(bed, false).await
}

/// Gives it back.
async fn give_right(bed: &Bed) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(bed.client());
    let mut role = roles.get(ROLE).await?;
    let rules = role.rules.as_mut().context("the role has no rules")?;
    let right = json!({"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]});
    rules.push(serde_json::from_value(right)?);
    roles.replace(ROLE, &PostParams::default(), &role).await?;
    may_evict(bed, true).await
}

/// Awaits that the server's authorizer has learned of a changed role; it can only be asked.
async fn may_evict(bed: &Bed, wanted: bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while asked(bed.client(), &bed.name).await? != wanted {
        ensure!(Instant::now() < deadline, "the role was changed, and the server does not see it");
        sleep(std::time::Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn asked(client: Client, namespace: &str) -> Result<bool> {
    let reviews: Api<SubjectAccessReview> = Api::all(client);
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": Installation::user(),
        "resourceAttributes": {
            "namespace": namespace, "verb": "create", "resource": "pods", "subresource": "eviction",
        },
    }}))?;
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
