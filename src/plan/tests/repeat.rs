//! Plans that run in each window, at instants counted from 08:00 of a Friday.

use super::*;
use crate::plan::{Notice, Subject, notices};

/// Open from 08:05 to 08:15 and from 20:05 to 20:15.
fn weekly(nodes: &[&str], changes: &Value) -> Value {
    let mut spec = over(nodes, changes);
    spec["windows"] = json!([{"schedule": "5 8,20 * * *", "duration": "10m"}]);
    spec["repeat"] = json!("EachWindow");
    spec
}

const OPENS: i64 = 300;
const SECOND: i64 = OPENS + 12 * 3600;

fn two_nodes() -> World {
    World::new().node("a").node("b").node("c").service("web", &["a", "b"], Some(("maxUnavailable", 1)))
}

fn go_to(world: &mut World, seconds: i64) {
    world.now = START + SignedDuration::from_secs(seconds);
}

fn ready(world: &World) -> (String, String, String) {
    let found = world.status("p").conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn stalled(world: &World) -> Option<String> {
    let conditions = &world.status("p").conditions;
    conditions.iter().find(|condition| condition.type_ == "Stalled").map(|condition| condition.reason.clone())
}

fn runs(world: &World) -> (Option<i32>, Option<(i32, PlanPhase)>) {
    let status = world.status("p");
    (status.run, status.last_run.as_ref().map(|last| (last.run, last.phase)))
}

fn about_the_plan(told: Vec<Notice>) -> Vec<&'static str> {
    told.into_iter().filter(|notice| notice.subject == Subject::Plan).map(|notice| notice.reason).collect()
}

#[test]
fn each_window_brings_a_run() {
    let mut world = two_nodes().plan("p", &weekly(&["a", "b"], &json!({})));
    world.run(Some("c"));
    assert_eq!((world.phase("p"), runs(&world)), (PlanPhase::Scheduled, (Some(1), None)));
    go_to(&mut world, OPENS);
    let before = world.status("p").clone();
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Scheduled, "its window is still open, and the run has ended");
    assert_eq!(runs(&world), (Some(1), Some((1, PlanPhase::Completed))));
    let status = world.status("p").clone();
    assert_eq!((status.finished_at, status.progress.as_deref()), (None, Some("2/2")));
    let last = status.last_run.unwrap();
    assert_eq!(
        (last.node_counts.done, last.pods_evicted, last.message.as_str()),
        (2, 2, "2 of 2 nodes done")
    );
    let text = "run 1 completed: 2 of 2 nodes done; the next one begins at 2027-01-15T20:05:00Z";
    assert_eq!(ready(&world), ("True".to_owned(), "Completed".to_owned(), text.to_owned()));
    assert_eq!(stalled(&world), None);
    let told = about_the_plan(notices("p", Some(&before), world.status("p")));
    assert!(told.contains(&"Completed") && !told.contains(&"AwaitingWindow"), "{told:?}");
    assert!(["a", "b"].iter().all(|node| !world.cordoned(node) && !world.claimed(node)));
    assert_eq!(world.plans.readable[0].metadata.finalizers, None, "between runs nothing is held");
    assert_eq!(world.evicted.len(), 2);

    // The window closes and nothing else happens.
    go_to(&mut world, OPENS + 700);
    world.run(Some("c"));
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Scheduled, 2));
    assert_eq!(world.decide().wake_at, Some(START + SignedDuration::from_secs(SECOND)));

    // Someone is back on node a when the next one opens.
    world.cluster.apply_pod(pod("back", "web", Some("a")));
    world.report_budgets();
    go_to(&mut world, SECOND);
    let before = world.status("p").clone();
    world.step();
    assert_eq!(runs(&world), (Some(2), Some((1, PlanPhase::Completed))));
    assert_eq!(world.phase("p"), PlanPhase::Running);
    assert_eq!(world.status("p").started_at.as_ref().map(|at| at.0), Some(world.now));
    assert!(about_the_plan(notices("p", Some(&before), world.status("p"))).contains(&"Running"));
    world.run(Some("c"));
    assert_eq!(runs(&world), (Some(2), Some((2, PlanPhase::Completed))));
    assert_eq!(world.evicted.len(), 3);
    let claim = world.changes.iter().rev().find_map(|(_, change)| match change {
        NodeChange::Claim { claim } => Some(claim.clone()),
        _ => None,
    });
    assert_eq!(claim.unwrap().split('/').nth(2), Some("2"), "the claim says which run");
}

#[test]
fn a_run_that_has_not_ended_goes_on_in_the_next_window() {
    let mut world = two_nodes().plan("p", &weekly(&["a", "b"], &json!({"timeouts": {"node": "5m"}})));
    go_to(&mut world, OPENS);
    // The pod that is evicted does not end before the window does.
    for _ in 0..6 {
        world.step();
    }
    go_to(&mut world, OPENS + 299);
    world.step();
    assert_eq!(world.evicted, ["web-0"]);
    // The node's deadline: it fails, the other one would not fit any more.
    go_to(&mut world, OPENS + 601);
    world.step();
    world.step();
    assert_eq!((world.phase("p"), runs(&world)), (PlanPhase::Scheduled, (Some(1), None)));
    go_to(&mut world, SECOND);
    world.run(Some("c"));
    assert_eq!(runs(&world), (Some(1), Some((1, PlanPhase::Failed))));
    assert_eq!(
        world.status("p").started_at.as_ref().map(|at| at.0),
        Some(START + SignedDuration::from_secs(OPENS))
    );
    let (truth, reason, message) = ready(&world);
    assert_eq!(
        (truth.as_str(), reason.as_str(), stalled(&world).as_deref()),
        ("False", "Failed", Some("Failed"))
    );
    assert!(message.starts_with("run 1 failed: 1 of 2 nodes done, 1 failed; "), "{message}");

    // The next one is another chance.
    go_to(&mut world, SECOND + 12 * 3600);
    world.step();
    assert_eq!((world.phase("p"), runs(&world).0, stalled(&world)), (PlanPhase::Running, Some(2), None));
    world.run(Some("c"));
    assert_eq!(runs(&world), (Some(2), Some((2, PlanPhase::Completed))));
}

#[test]
fn an_opening_that_nobody_saw_is_noticed_and_one_that_is_over_is_not_made_up_for() {
    let mut world = two_nodes().plan("p", &weekly(&["a", "b"], &json!({})));
    go_to(&mut world, OPENS);
    world.run(Some("c"));
    // Nobody decides until the middle of the next window, or until after it.
    let mut late = SECOND + 120;
    for run in [2, 3] {
        go_to(&mut world, late);
        world.run(Some("c"));
        assert_eq!(runs(&world), (Some(run), Some((run, PlanPhase::Completed))));
        go_to(&mut world, late + 3 * 12 * 3600 + 900);
        world.run(Some("c"));
        assert_eq!(runs(&world).0, Some(run), "no window is open");
        late += 4 * 12 * 3600;
    }
}

#[test]
fn a_run_that_begins_and_ends_in_one_instant_is_one_run() {
    let mut world = two_nodes().plan("p", &weekly(&["nowhere", "nobody"], &json!({})));
    world.plans.readable[0] =
        Arc::new(plan("p", &weekly(&["a"], &json!({"nodes": {"names": ["gone", "a"]}}))));
    go_to(&mut world, OPENS);
    world.run(Some("c"));
    world.cluster.delete_node("a");
    go_to(&mut world, SECOND);
    for _ in 0..5 {
        world.step();
    }
    assert_eq!(runs(&world).0, Some(2));
    assert_eq!(stalled(&world).as_deref(), Some("NoNodes"), "and its nodes are to be corrected");
}

#[test]
fn suspended_between_runs_none_begins() {
    let mut world = two_nodes().plan("p", &weekly(&["a", "b"], &json!({})));
    go_to(&mut world, OPENS);
    world.run(Some("c"));
    world.edit_plan("p", |plan| plan.spec.suspend = true);
    go_to(&mut world, SECOND);
    world.run(Some("c"));
    assert_eq!((world.phase("p"), runs(&world).0), (PlanPhase::Suspended, Some(1)));
    assert_eq!((ready(&world).0.as_str(), ready(&world).1.as_str()), ("False", "Suspended"));
    world.edit_plan("p", |plan| plan.spec.suspend = false);
    go_to(&mut world, SECOND + 60);
    world.run(Some("c"));
    assert_eq!(runs(&world), (Some(2), Some((2, PlanPhase::Completed))));
}

#[test]
fn a_plan_that_is_told_to_run_once_more_or_no_more_ends_as_its_last_run_did() {
    let mut world = two_nodes().plan("p", &weekly(&["a", "b"], &json!({})));
    go_to(&mut world, OPENS);
    world.run(Some("c"));
    let finished = world.status("p").last_run.as_ref().unwrap().finished_at.clone();
    world.edit_plan("p", |plan| plan.spec.repeat = None);
    world.run(Some("c"));
    assert_eq!(
        (world.phase("p"), world.status("p").finished_at.clone()),
        (PlanPhase::Completed, Some(finished))
    );
    assert_eq!(world.status("p").next_window, None);
    go_to(&mut world, SECOND);
    world.run(Some("c"));
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Completed, 2));
}

#[test]
fn a_schedule_that_is_spoilt_between_runs_is_said() {
    let mut world = two_nodes().plan("p", &weekly(&["a", "b"], &json!({})));
    go_to(&mut world, OPENS);
    world.run(Some("c"));
    world.edit_plan("p", |plan| plan.spec.windows[0].time_zone = Some("Mars/Olympus".to_owned()));
    world.run(Some("c"));
    assert_eq!((world.phase("p"), stalled(&world).as_deref()), (PlanPhase::Pending, Some("InvalidSpec")));
    assert_eq!(ready(&world).1, "InvalidSpec");
    world.edit_plan("p", |plan| plan.spec.windows[0].time_zone = None);
    world.run(Some("c"));
    assert_eq!((ready(&world).1.as_str(), stalled(&world)), ("Completed", None));
    assert_eq!(runs(&world).0, Some(1));
}

#[test]
fn windows_that_touch_each_other_without_end_bring_no_run() {
    let mut spec = weekly(&["a", "b"], &json!({}));
    spec["windows"] = json!([{"schedule": "0 0 * * *", "duration": "24h"}]);
    let mut world = two_nodes().plan("p", &spec);
    world.run(Some("c"));
    assert_eq!((world.phase("p"), stalled(&world).as_deref()), (PlanPhase::Pending, Some("InvalidSpec")));
    assert!(ready(&world).2.contains("write windows with time between them"), "{:?}", ready(&world));
    assert!(world.evicted.is_empty());
}
