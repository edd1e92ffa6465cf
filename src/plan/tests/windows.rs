//! Plans with windows and exclusions, at instants counted from 08:00 of a Friday.

use super::*;
use crate::plan::notices;

/// Open from 08:05 to 08:15 each day.
fn night() -> Value {
    json!([{"schedule": "5 8 * * *", "duration": "10m"}])
}

/// Two pods of which one may be away; nobody brings them back.
fn slow(changes: &Value) -> World {
    World::new()
        .node("a")
        .node("b")
        .service("web", &["a", "a"], Some(("maxUnavailable", 1)))
        .plan("p", &over(&["a", "b"], changes))
}

fn condition(world: &World, type_: &str) -> Option<(String, String, String)> {
    let found = world.status("p").conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

fn at(seconds: i64) -> Timestamp {
    START + SignedDuration::from_secs(seconds)
}

fn rest(world: &mut World) {
    for _ in 0..8 {
        world.step();
    }
}

#[test]
fn nothing_begins_before_the_window_opens() {
    let mut world = slow(&json!({"windows": night()}));
    rest(&mut world);
    assert_eq!((world.phase("p"), world.changes.len(), world.evicted.len()), (PlanPhase::Scheduled, 0, 0));
    assert_eq!(world.status("p").started_at, None);
    assert_eq!(world.status("p").next_window.as_ref().map(|time| time.0), Some(at(300)));
    assert_eq!(world.decide().wake_at, Some(at(300)));
    let text = "no window is open; the next one opens at 2027-01-15T08:05:00Z";
    assert_eq!(condition(&world, "WindowOpen"), Some(("False".into(), "Shut".into(), text.into())));
    let ready = condition(&world, "Ready").unwrap();
    assert_eq!((ready.0.as_str(), ready.1.as_str()), ("False", "AwaitingWindow"));
    assert!(ready.2.contains(text), "{ready:?}");
    assert_eq!((condition(&world, "Reconciling"), condition(&world, "Stalled")), (None, None));

    world.wait(299);
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Scheduled);
    world.wait(1);
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Running);
    assert_eq!(world.status("p").started_at.as_ref().map(|time| time.0), Some(at(300)));
    assert_eq!(world.evicted, ["web-0"]);
    let open = condition(&world, "WindowOpen").unwrap();
    assert_eq!((open.0.as_str(), open.2.as_str()), ("True", "open until 2027-01-15T08:15:00Z"));
}

#[test]
fn the_end_of_a_window_gives_back_what_is_in_progress_and_the_next_one_takes_it_up() {
    let mut world = slow(&json!({"windows": night(), "timeouts": {"node": "10m"}}));
    world.wait(300);
    rest(&mut world);
    assert!(world.cordoned("a") && world.marked("b"));
    world.wait(599);
    rest(&mut world);
    assert!(world.cordoned("a"), "the window is open to its end");
    world.wait(1);
    // The timeout and the window end at the same instant: the deadline is what was promised.
    let mut shorter =
        slow(&json!({"windows": night(), "timeouts": {"node": "30m"}, "onWindowEnd": "Return"}));
    shorter.wait(300);
    rest(&mut shorter);
    assert!(!shorter.cordoned("a"), "30 minutes do not fit into 10");
    rest(&mut world);
    assert!(!world.cordoned("a"));
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("TimedOut"));
}

#[test]
fn a_node_that_an_exclusion_interrupts_is_pending_again() {
    let freeze = json!([{"start": "2027-01-15T08:01:00Z", "end": "2027-01-15T09:00:00Z"}]);
    let mut world = slow(&json!({"exclusions": freeze}));
    world.edit_plan("p", |plan| plan.spec.timeouts.as_mut().unwrap().node = Some("1m".parse().unwrap()));
    rest(&mut world);
    assert_eq!((world.phase("p"), world.evicted.len()), (PlanPhase::Running, 1));
    world.edit_plan("p", |plan| plan.spec.timeouts.as_mut().unwrap().node = Some("20m".parse().unwrap()));
    let before = world.status("p").clone();
    world.wait(60);
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Scheduled);
    assert_eq!(
        condition(&world, "WindowOpen").unwrap().2,
        "an exclusion is in force until 2027-01-15T09:00:00Z"
    );
    let told: Vec<_> = notices("p", Some(&before), world.status("p"))
        .into_iter()
        .filter(|notice| notice.reason == "NodeReturned")
        .map(|notice| notice.note)
        .collect();
    let text =
        "node a is given back before it was empty: an exclusion is in force until 2027-01-15T09:00:00Z";
    assert_eq!(told, [text; 2], "on the plan and on the node");
    assert!(!world.cordoned("a") && !world.claimed("a") && !world.marked("b"));
    assert_eq!(world.status("p").node_counts.as_ref().unwrap().pending, 2);
    assert_eq!((world.status("p").idle_since.clone(), world.evicted.len()), (None, 1));
    assert_eq!(world.status("p").next_window.as_ref().map(|time| time.0), Some(at(3600)));
    // Whoever sleeps over the end of it notices.
    world.wait(7200);
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
    assert_eq!(world.status("p").started_at.as_ref().map(|time| time.0), Some(START));
    assert_eq!((condition(&world, "WindowOpen"), world.status("p").next_window.clone()), (None, None));
}

#[test]
fn with_finish_a_started_node_goes_on_and_no_other_is_started() {
    let windows = json!([{"schedule": "0 8 * * *", "duration": "1m"}]);
    let mut world = slow(&json!({"windows": windows, "onWindowEnd": "Finish", "timeouts": {"node": "10m"}}));
    rest(&mut world);
    world.wait(61);
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Running);
    assert!(world.cordoned("a"));
    world.replace_going(Some("c"));
    world.run(Some("c"));
    assert_eq!(world.evicted, ["web-0", "web-1"]);
    assert_eq!((world.phase("p"), world.cordoned("a")), (PlanPhase::Scheduled, false));
    assert_eq!(world.status("p").progress.as_deref(), Some("1/2"));
    world.wait(86_400 - 61);
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_node_is_not_started_when_its_timeout_does_not_fit_into_what_is_left() {
    let mut world = slow(&json!({"windows": night(), "timeouts": {"node": "4m"}}));
    // Twelve seconds of four minutes may be missing.
    world.wait(300 + 373);
    rest(&mut world);
    assert_eq!((world.phase("p"), world.changes.len()), (PlanPhase::Running, 0));
    let ready = condition(&world, "Ready").unwrap().2;
    let text = "the window closes at 2027-01-15T08:15:00Z and a node may take 4m (timeouts.node); \
                the next one opens at 2027-01-16T08:05:00Z";
    assert!(ready.contains(text), "{ready}");
    world.wait(228);
    rest(&mut world);
    assert_eq!((world.phase("p"), world.status("p").idle_since.clone()), (PlanPhase::Scheduled, None));
    world.wait(86_400 - 601);
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_window_as_long_as_the_timeout_is_used_although_no_decision_falls_on_its_first_instant() {
    let mut world = slow(&json!({"windows": night(), "timeouts": {"node": "10m"}}));
    world.wait(302);
    world.run(Some("c"));
    assert_eq!(world.phase("p"), PlanPhase::Completed);
}

#[test]
fn a_blocked_plan_ends_in_a_window_as_long_as_the_timeout() {
    let mut world = World::new()
        .node("a")
        .service("web", &["a", "b"], Some(("minAvailable", 2)))
        .plan("p", &over(&["a"], &json!({"windows": night(), "timeouts": {"node": "10m"}})));
    world.wait(301);
    rest(&mut world);
    let wake = world.decide().wake_at.unwrap();
    assert!(at(301 + 540) < wake && wake < at(900), "{wake} is before the window's end");
    world.now = wake;
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    assert_eq!(world.node_status("p", "a").reason.as_deref(), Some("Blocked"));
}

#[test]
fn windows_that_cannot_be_read_stall_the_plan_and_touch_nothing() {
    let windows = json!([{"schedule": "0 8 30 2 *", "duration": "1h", "timeZone": "Europe/Berlin"}]);
    let mut world = slow(&json!({"windows": windows}));
    rest(&mut world);
    assert_eq!((world.phase("p"), world.changes.len()), (PlanPhase::Pending, 0));
    let stalled = condition(&world, "Stalled").unwrap();
    assert_eq!(stalled.1, "InvalidSpec");
    assert!(
        stalled.2.contains("windows[0]") && stalled.2.contains("no day is ever like that"),
        "{stalled:?}"
    );
}

#[test]
fn windows_that_are_excluded_for_ever_stall_the_plan() {
    let always = json!([{"start": "2027-01-01T00:00:00Z", "end": "9998-01-01T00:00:00Z"}]);
    let windows = json!([{"schedule": "0 0 29 2 *", "duration": "1h"}]);
    let mut world = slow(&json!({"windows": windows, "exclusions": always}));
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Pending);
    let stalled = condition(&world, "Stalled").unwrap();
    assert!(stalled.2.contains("none will ever be"), "{stalled:?}");
}

#[test]
fn a_plan_that_its_own_time_ends_says_so() {
    let mut world = slow(&json!({"timeouts": {"node": "10m", "plan": "30s"}, "windows": night()}));
    world.wait(300);
    rest(&mut world);
    world.edit_plan("p", |plan| plan.spec.suspend = true);
    world.wait(30);
    rest(&mut world);
    assert_eq!(world.phase("p"), PlanPhase::Failed);
    let ready = condition(&world, "Ready").unwrap().2;
    assert!(ready.contains("b: the plan had not ended 30s after its start"), "{ready}");
}

#[test]
fn a_suspended_plan_stays_so_in_its_window() {
    let mut world = slow(&json!({"windows": night(), "suspend": true}));
    world.wait(400);
    rest(&mut world);
    assert_eq!((world.phase("p"), world.changes.len()), (PlanPhase::Suspended, 0));
}
