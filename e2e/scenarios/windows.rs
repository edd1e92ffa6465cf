//! Plans that may not work at any time, by the real clock.

use anyhow::{Result, ensure};
use drainplan::api::{DrainPlanStatus, PlanPhase, condition};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{PATIENCE, over, shared};
use crate::harness::{Bed, Request, Sight, Template, told, uid};
use crate::runner::Case;

pub fn cases() -> Vec<Case> {
    vec![shared!(70, exclusion_in_the_middle), shared!(71, window_in_a_minute)]
}

/// What was sent before an instant may be received after it.
const ON_THE_WAY: SignedDuration = SignedDuration::from_millis(500);

/// A plan over these nodes with more fields.
fn timed(nodes: &[String], timeout: &str, more: Value) -> Value {
    let mut spec = over(nodes, timeout, "Uncordon");
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    spec
}

/// A service of four pods on one node, of which one at a time may be away for some seconds; room elsewhere.
async fn four_slow_ones(bed: &Bed) -> Result<[String; 1]> {
    let nodes = bed.nodes(["a"], 4).await?;
    bed.space.budget("web", &["web"], json!({"maxUnavailable": 1})).await?;
    bed.space.deployment("web", 4, &Template::new().sim("ready-after", "3s")).await?;
    bed.space.all_ready("web", 4).await?;
    bed.space.budget_allows("web", 4, 1).await?;
    bed.nodes(["spare"], 110).await?;
    Ok(nodes)
}

/// The present, in whole seconds as schedules and exclusions are written, and that much later.
pub fn from_now(seconds: i64) -> Timestamp {
    let now = Timestamp::now().as_second();
    Timestamp::from_second(now.saturating_add(seconds)).unwrap_or(Timestamp::MAX)
}

/// Awaits that the plan waits for that opening.
async fn waits_for(plan: &crate::harness::PlanRun, opens: Timestamp) -> Result<DrainPlanStatus> {
    plan.until("waits for its window", PATIENCE, |status| {
        let next = status.next_window.as_ref().map(|time| time.0);
        if status.phase == Some(PlanPhase::Scheduled) && next == Some(opens) {
            Sight::Found(status.clone())
        } else {
            Sight::NotYet(told(status))
        }
    })
    .await
}

fn said(status: &DrainPlanStatus, type_: &str) -> (String, String, String) {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map_or_else(Default::default, |it| (it.status.clone(), it.reason.clone(), it.message.clone()))
}

async fn exclusion_in_the_middle(bed: Bed) -> Result<()> {
    let nodes = four_slow_ones(&bed).await?;
    let pods: Vec<String> = bed.space.all_ready("web", 4).await?.iter().map(uid).collect();
    let plan = bed.plan("plan", timed(&nodes, "2m", json!({}))).await?;
    plan.drains(&nodes[0], PATIENCE).await?;
    bed.node_is_cordoned(&nodes[0]).await?;
    // Had it been there from the start, two minutes would not have fitted before it.
    let (start, end) = (from_now(2), from_now(9));
    plan.change(timed(&nodes, "2m", json!({"exclusions": [{"start": start, "end": end}]}))).await?;

    let status = waits_for(&plan, end).await?;
    let ready = said(&status, condition::READY);
    ensure!((ready.0.as_str(), ready.1.as_str()) == ("False", "AwaitingWindow"), "Ready is {ready:?}");
    let open = said(&status, condition::WINDOW_OPEN);
    ensure!(open.0 == "False" && open.2.contains(&end.to_string()), "WindowOpen is {open:?}");
    bed.node_rests(&nodes[0], false, &[]).await?;
    // The budget has room again, and nobody uses it.
    bed.space.budget_allows("web", 4, 1).await?;

    plan.ends(PlanPhase::Completed, PATIENCE).await?;
    bed.node_rests(&nodes[0], false, &[]).await?;
    let evictions = bed.evictions()?;
    let refused = |eviction: &&Request| eviction.code != 201;
    ensure!(evictions.iter().find(refused).is_none(), "some were refused: {evictions:#?}");
    let excluded = |at: Timestamp| start + ON_THE_WAY <= at && at < end;
    let meanwhile: Vec<String> =
        evictions.iter().filter(|eviction| excluded(eviction.received)).map(Request::line).collect();
    ensure!(meanwhile.is_empty(), "evicted between {start} and {end}: {meanwhile:#?}");
    let (before, after): (Vec<&Request>, Vec<&Request>) =
        evictions.iter().partition(|eviction| eviction.received < start + ON_THE_WAY);
    ensure!(
        !before.is_empty() && !after.is_empty(),
        "{} were evicted before the exclusion, {} after",
        before.len(),
        after.len()
    );
    let accepted = bed.accepted()?;
    ensure!(pods.iter().all(|pod| accepted.contains(pod)), "of {pods:?} the server evicted {accepted:?}");
    Ok(())
}

async fn window_in_a_minute(bed: Bed) -> Result<()> {
    let nodes = four_slow_ones(&bed).await?;
    // The next full minute, unless it is so near that the plan would not be seen waiting.
    let near = from_now(10).as_second();
    let opens = Timestamp::from_second(near - near.rem_euclid(60) + 60)?;
    let face = TimeZone::UTC.to_datetime(opens);
    let schedule = format!("{} {} {} {} *", face.minute(), face.hour(), face.day(), face.month());
    let window = json!({"schedule": schedule, "duration": "2m", "timeZone": "Etc/UTC"});
    let watched = bed.record_nodes().await?;
    let plan = bed.plan("plan", timed(&nodes, "1m", json!({"windows": [window]}))).await?;
    let status = waits_for(&plan, opens).await?;
    ensure!(status.started_at.is_none(), "it has started before its window");
    bed.ensure_untouched(&watched, &nodes[0])?;

    let status = plan.ends(PlanPhase::Completed, PATIENCE).await?;
    let started = status.started_at.map(|time| time.0);
    ensure!(
        started.is_some_and(|at| at >= opens),
        "it started at {started:?}, and the window opened at {opens}"
    );
    let evictions = bed.evictions()?;
    let early: Vec<String> =
        evictions.iter().filter(|eviction| eviction.received < opens).map(Request::line).collect();
    ensure!(evictions.len() == 4 && early.is_empty(), "before {opens}: {early:#?}; all: {evictions:#?}");
    Ok(())
}
