//! What happens when the controller may not do what it has to.

use anyhow::{Context as _, Result, ensure};
use drainplan::api::{NodeReason, Outlook, PlanPhase};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{PATIENCE, alone, ensure_said, over, report, waiting};
use crate::harness::{Bed, Installation, Template};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![alone!(23, no_right_to_evict)]
}

async fn no_right_to_evict(bed: Bed) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(bed.client());
    let role = roles.get("drainplan-controller").await?;
    let evicts =
        |rule: &PolicyRule| rule.resources.iter().flatten().any(|resource| resource == "pods/eviction");
    let mut without = role.clone();
    let rules = without.rules.as_mut().context("the role has no rules")?;
    rules.retain(|rule| !evicts(rule));
    ensure!(Some(&*rules) != role.rules.as_ref(), "no rule of the role is about pods/eviction");
    roles.replace(&role.name_any(), &PostParams::default(), &without).await?;

    let tried = async {
        may_evict(&bed, false).await?;
        without_the_right(&bed).await
    };
    let tried = tried.await;
    let mut again = roles.get(&role.name_any()).await?;
    again.rules.clone_from(&role.rules);
    roles.replace(&role.name_any(), &PostParams::default(), &again).await?;
    may_evict(&bed, true).await?;
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

    let plan = bed.plan("without", over(&nodes, "5s", "KeepCordoned")).await?;
    let status = plan.ends(PlanPhase::Failed, PATIENCE).await?;
    let report = report(&status, node)?;
    let failed_as = report.reason.as_deref();
    ensure!(failed_as == Some(NodeReason::TimedOut.as_str()), "node {node} failed as {failed_as:?}");
    for pod in &pods {
        let parts = ["403", "pods/eviction", &Installation::user()];
        ensure_said(waiting(report, &pod.name_any())?, "Forbidden", Outlook::NeverClears, &[], &parts)?;
    }
    let evictions = bed.evictions()?;
    ensure!(evictions.iter().all(|it| it.code == 403) && !evictions.is_empty(), "evictions: {evictions:#?}");
    ensure!(evictions.len() <= 8, "{} evictions in 5 s: it does not wait between them", evictions.len());
    bed.node_rests(node, false, &[]).await
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
