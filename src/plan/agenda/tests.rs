//! What is begun, what waits, and what is believed of two states of one object.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;
use crate::cluster::{Change as ObjectChange, OwnerRef, Raw, Right, Scale};

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn at(millis: u64) -> Moment {
    let steady = Duration::from_millis(millis);
    Moment { wall: START + SignedDuration::try_from(steady).unwrap(), steady }
}

fn plan(version: u64, suspend: bool) -> DrainPlan {
    serde_json::from_value(json!({
        "apiVersion": "drainplan.dev/v1alpha1",
        "kind": "DrainPlan",
        "metadata": {"name": "p", "uid": "uid-p", "generation": 1, "resourceVersion": version.to_string(),
            "creationTimestamp": "2027-01-15T07:00:00Z"},
        "spec": {"nodes": {"names": ["a"]}, "handOff": {"then": "Uncordon"}, "suspend": suspend},
    }))
    .unwrap()
}

fn node(version: u64) -> Raw {
    let node = json!({"metadata": {"name": "a", "uid": "uid-a", "resourceVersion": version.to_string(),
        "creationTimestamp": "2027-01-15T07:00:00Z"}});
    Raw::decode(ObjectKind::Node, &node.to_string())
}

/// An agenda that has listed everything: one node, one plan.
fn synced() -> Agenda {
    let mut agenda = Agenda::new(Settings::default(), 1);
    agenda.observe(ObjectChange::Listed(node(5)), at(0));
    for kind in ObjectKind::ALL {
        agenda.observe(ObjectChange::Complete(kind), at(0));
    }
    assert!(
        agenda.decide(true, at(0)).is_none() && agenda.take_errands().is_empty(),
        "the plans are not listed yet"
    );
    agenda.observe_plan(PlanChange::Listing, at(0));
    agenda.observe_plan(PlanChange::Listed(Seen::Readable(Box::new(plan(7, false)))), at(0));
    agenda.observe_plan(PlanChange::Complete, at(0));
    agenda
}

/// The same, when it acts already.
fn leading() -> Agenda {
    let mut agenda = synced();
    assert!(agenda.decide(true, at(0)).is_none());
    assert!(matches!(agenda.take_errands().as_slice(), [Errand::ListPlans]));
    agenda.conclude(Outcome::Plans(Ok(vec![Seen::Readable(Box::new(plan(7, false)))])), at(0));
    agenda
}

fn turn(agenda: &mut Agenda, now: Moment) -> Vec<Errand> {
    let decisions = agenda.decide(true, now).unwrap();
    agenda.follow(decisions, Duration::ZERO, now);
    agenda.take_errands()
}

fn write_of(errands: &[Errand]) -> StatusWrite {
    let [Errand::WriteStatus(write)] = errands else { panic!("{errands:?}") };
    StatusWrite::clone(write)
}

fn refused(write: &StatusWrite) -> Outcome {
    let failure = Failure { code: Some(409), message: "the object has been modified (409)".into() };
    let (counted, notices) = (write.counted.clone(), write.notices.clone());
    Outcome::Status { uid: "uid-p".into(), counted, notices, result: Err(failure) }
}

#[test]
fn nothing_is_decided_by_whoever_may_not_act() {
    let mut agenda = synced();
    assert!(agenda.decide(false, at(5)).is_none());
    assert_eq!(agenda.decide_at(), at(5).steady + SAFETY_NET);
}

#[test]
fn whoever_begins_to_act_first_reads_what_the_one_before_has_written() {
    let mut agenda = synced();
    assert!(agenda.decide(true, at(5)).is_none());
    assert!(matches!(agenda.take_errands().as_slice(), [Errand::ListPlans]));
    assert!(agenda.decide(true, at(10)).is_none(), "it is under way");
    let failure = Failure { code: None, message: "no answer".into() };
    agenda.conclude(Outcome::Plans(Err(failure)), at(20));
    assert!(agenda.decide(true, at(25)).is_none());
    let again = agenda.decide_at();
    assert!(again > at(100).steady && again < at(200).steady, "{again:?}");
    assert!(agenda.decide(true, at(200)).is_none());
    let other = || DrainPlan {
        metadata: kube::core::ObjectMeta {
            name: Some("q".into()),
            uid: Some("uid-q".into()),
            ..plan(8, false).metadata
        },
        ..plan(8, false)
    };
    // One plan is gone, another one is seen only after the list was asked for.
    agenda.observe_plan(PlanChange::Applied(Seen::Readable(Box::new(other()))), at(205));
    agenda.conclude(Outcome::Plans(Ok(vec![])), at(210));
    assert!(agenda.plans().by_uid("uid-p").is_none() && agenda.plans().by_uid("uid-q").is_some());
    assert!(agenda.decide(true, at(215)).is_some());
    // Leadership was lost and comes again.
    assert!(agenda.decide(false, at(220)).is_none());
    assert!(agenda.decide(true, at(225)).is_none());
}

#[test]
fn what_is_gone_is_not_brought_back_by_the_answer_to_our_own_write() {
    let mut agenda = leading();
    agenda.observe(ObjectChange::Deleted(node(9)), at(10));
    agenda.conclude(
        Outcome::Node { name: "a".into(), change: NodeChange::Release, result: Ok(node(8)) },
        at(20),
    );
    assert!(agenda.cluster().node("a").is_none());
    agenda.observe_plan(PlanChange::Deleted { name: "p".into(), uid: Some("uid-p".into()) }, at(30));
    agenda.conclude(Outcome::Finalizer { uid: "uid-p".into(), result: Ok(Some(plan(10, false))) }, at(40));
    assert!(agenda.plans().by_uid("uid-p").is_none());
}

#[test]
fn an_errand_is_begun_once_and_again_a_while_after_it_failed() {
    let mut agenda = leading();
    assert_eq!(agenda.decide_at(), APART);
    let write = write_of(&turn(&mut agenda, at(5)));
    assert_eq!(turn(&mut agenda, at(10)).len(), 0, "it is under way");
    assert!(agenda.conclude(refused(&write), at(20)).is_none());
    assert_eq!(turn(&mut agenda, at(30)).len(), 0, "it waits");
    let again = agenda.decide_at();
    assert!(again >= Duration::from_millis(120) && again <= Duration::from_millis(140), "{again:?}");
    write_of(&turn(&mut agenda, at(140)));
}

#[test]
fn a_written_status_is_known_and_its_notices_come_back_to_be_published() {
    let mut agenda = leading();
    let write = write_of(&turn(&mut agenda, at(5)));
    let mut written = plan(8, false);
    written.status = Some(write.status.clone());
    let (counted, notices) = (write.counted, write.notices.clone());
    let outcome = Outcome::Status { uid: "uid-p".into(), counted, notices, result: Ok(written) };
    let published = agenda.conclude(outcome, at(20)).unwrap().notices;
    assert_eq!(published, write.notices);
    assert!(!published.is_empty());
    assert_eq!(agenda.plans().by_uid("uid-p").unwrap().status.as_ref(), Some(&write.status));
    // The watch is behind our own write.
    agenda.observe_plan(PlanChange::Applied(Seen::Readable(Box::new(plan(7, true)))), at(30));
    assert!(!agenda.plans().by_uid("uid-p").unwrap().spec.suspend);
    agenda.observe_plan(PlanChange::Applied(Seen::Readable(Box::new(plan(9, true)))), at(30));
    assert!(agenda.plans().by_uid("uid-p").unwrap().spec.suspend);
}

#[test]
fn the_answer_to_a_patch_is_newer_than_the_events_that_come_after_it() {
    let mut agenda = leading();
    let answer = Outcome::Node { name: "a".into(), change: NodeChange::Release, result: Ok(node(9)) };
    agenda.conclude(answer, at(10));
    agenda.observe(ObjectChange::Applied(node(8)), at(20));
    assert_eq!(&*agenda.cluster().node("a").unwrap().resource_version, "9");
}

#[test]
fn of_a_node_that_stays_cordoned_somebody_hears_also_when_its_plan_is_gone() {
    for (plan, there) in [("p", true), ("gone", false)] {
        let mut agenda = leading();
        let change = || NodeChange::LeaveCordoned { plan: plan.to_owned() };
        let failure = Failure { code: Some(409), message: "it has changed".into() };
        let lost = Outcome::Node { name: "a".into(), change: change(), result: Err(failure) };
        assert!(agenda.conclude(lost, at(10)).is_none());
        let answer = Outcome::Node { name: "a".into(), change: change(), result: Ok(node(9)) };
        let told = agenda.conclude(answer, at(20)).unwrap();
        assert_eq!(told.plan.is_some(), there);
        let notes: Vec<&str> = told.notices.iter().map(|notice| notice.note.as_str()).collect();
        let note = format!(
            "node a stays cordoned after its hand-off by plan {plan}, because its condition Ready is Unknown; once it is \
             well: kubectl uncordon a"
        );
        assert_eq!(notes, [note.as_str(); 2], "on the plan and on the node");
    }
}

#[test]
fn a_node_is_confirmed_empty_when_the_list_shows_nothing_that_is_not_known() {
    let mut agenda = leading();
    agenda.cluster.evictions.ask_empty("a".into(), START);
    let listed = |pods: &[&str]| Outcome::Listed {
        node: "a".into(),
        since: START,
        pods: Ok(pods.iter().map(ToString::to_string).collect()),
    };
    agenda.conclude(listed(&["uid-late"]), at(10));
    assert!(!agenda.cluster().evictions.is_confirmed("a", START));
    agenda.conclude(listed(&[]), at(20));
    assert!(agenda.cluster().evictions.is_confirmed("a", START));
}

/// Of a pod on node a.
fn eviction() -> Evict {
    Evict {
        pod: crate::cluster::PodKey { namespace: "shop".into(), name: "web-0".into() },
        uid: "uid-web-0".into(),
        node: "a".into(),
        spends: vec![],
        owner: None,
        grace_period_seconds: None,
    }
}

#[test]
fn a_refusal_waits_at_least_as_long_as_the_server_asks() {
    let mut agenda = leading();
    let eviction = eviction();
    let status: Status = serde_json::from_value(json!({"code": 429, "reason": "TooManyRequests",
        "message": "busy", "details": {"retryAfterSeconds": 10, "causes": [{"reason": "DisruptionBudget"}]}}))
    .unwrap();
    let answer = Answer::Refused(Box::new(status));
    agenda.conclude(Outcome::Eviction { eviction, answer }, at(0));
    let refusal = agenda.cluster().evictions.refusal("uid-web-0").unwrap();
    assert_eq!((refusal.code, refusal.times, &*refusal.causes[0]), (429, 1, "DisruptionBudget"));
    assert_eq!(refusal.retry_at, START + SignedDuration::from_secs(10));
}

#[test]
fn what_admission_denies_is_tried_again_after_half_a_minute_and_seldom_later() {
    let mut agenda = leading();
    let mut refuse = |message: &str, time: u64| {
        let status: Status = serde_json::from_value(json!({"code": 429, "message": message})).unwrap();
        let answer = Answer::Refused(Box::new(status));
        agenda.conclude(Outcome::Eviction { eviction: eviction(), answer }, at(time));
        let refusal = agenda.cluster().evictions.refusal("uid-web-0").unwrap();
        refusal.retry_at.duration_since(at(time).wall).as_millis()
    };
    // Up to a fifth longer each time.
    let denied = "admission webhook \"vm.example.com\" denied the request: it is being moved";
    for (time, least) in [30, 60, 120, 240, 300, 300].into_iter().enumerate() {
        let wait = refuse(denied, time as u64);
        assert!((least * 1000..=least * 1200).contains(&wait), "{least} s: {wait} ms");
    }
    assert!((60_000..=72_000).contains(&refuse("too many requests", 7)), "others wait a minute at most");
}

#[test]
fn a_budgets_change_is_no_reason_to_ask_admission_again() {
    for (message, again) in [("guard denied the request: no", false), ("please try again later", true)] {
        let mut agenda = leading();
        let pod = json!({"metadata": {"namespace": "shop", "name": "web-0", "uid": "uid-web-0",
            "labels": {"app": "web"}}, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}});
        let budget = |allowed: i32| {
            let budget = json!({"metadata": {"namespace": "shop", "name": "web", "uid": "b", "generation": 1},
                "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}},
                "status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1,
                    "desiredHealthy": 0, "expectedPods": 1}});
            ObjectChange::Applied(Raw::decode(ObjectKind::PodDisruptionBudget, &budget.to_string()))
        };
        agenda.observe(ObjectChange::Applied(Raw::decode(ObjectKind::Pod, &pod.to_string())), at(0));
        agenda.observe(budget(0), at(0));
        let status: Status = serde_json::from_value(json!({"code": 429, "message": message})).unwrap();
        let answer = Answer::Refused(Box::new(status));
        agenda.conclude(Outcome::Eviction { eviction: eviction(), answer }, at(5));
        agenda.observe(budget(1), at(10));
        let refusal = agenda.cluster().evictions.refusal("uid-web-0").unwrap();
        assert_eq!(refusal.retry_at <= at(10).wall, again, "{message}");
    }
}

#[test]
fn an_eviction_that_is_answered_after_its_pod_has_gone_counts_for_the_owner() {
    let mut agenda = leading();
    let pod = json!({"metadata": {"namespace": "shop", "name": "web-0", "uid": "uid-web-0", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": true}]},
        "spec": {"nodeName": "a"}});
    let pod = || Raw::decode(ObjectKind::Pod, &pod.to_string());
    agenda.observe(ObjectChange::Applied(pod()), at(0));
    agenda.begin(None, Action::Evict(eviction()), at(5));
    agenda.observe(ObjectChange::Deleted(pod()), at(10));
    agenda.conclude(Outcome::Eviction { eviction: eviction(), answer: Answer::Accepted }, at(20));
    assert_eq!(agenda.cluster().evictions.last_moved("uid-web"), Some(at(20).wall));
}

#[test]
fn a_pod_is_looked_at_unless_its_name_was_drawn_and_the_watch_speaks() {
    let raw = |name: &str, prefix: Option<&str>, (version, kind): (&str, &str)| {
        let pod = json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"),
            "generateName": prefix, "ownerReferences": [{"apiVersion": version, "kind": kind, "name": "web",
            "uid": "uid-web", "controller": true}]}, "spec": {"nodeName": "a"}});
        Raw::decode(ObjectKind::Pod, &pod.to_string())
    };
    let set = ("apps/v1", "ReplicaSet");
    let pod = |name: &str, prefix: Option<&str>| ObjectChange::Applied(raw(name, prefix, set));
    let of = |name: &str| Evict {
        pod: crate::cluster::PodKey { namespace: "shop".into(), name: name.into() },
        uid: format!("uid-{name}").into(),
        ..eviction()
    };
    let (drawn, other) = (of("web-x7k2p"), of("web-0"));
    let mut agenda = leading();
    let mut looks = |eviction: &Evict, seen: u64, now: u64| {
        agenda.observe(pod("web-x7k2p", Some("web-")), at(seen));
        agenda.observe(pod("web-0", None), at(seen));
        agenda.looks_at(eviction, at(now))
    };
    assert!(looks(&drawn, 4000, 4999), "it has just begun to act");
    assert!(!looks(&drawn, 4500, 5000));
    assert!(!looks(&drawn, 9001, 10_000) && looks(&other, 9001, 10_000));
    assert!(looks(&drawn, 9000, 10_000), "the watch is silent");
    for (step, owner) in
        [("apps.kruise.io/v1alpha1", "CloneSet"), ("apps/v1", "StatefulSet")].into_iter().enumerate()
    {
        let now = at(11_000 + step as u64);
        agenda.observe(ObjectChange::Applied(raw("own-x7k2p", Some("own-"), owner)), now);
        assert!(agenda.looks_at(&of("own-x7k2p"), now), "{owner:?} chooses names itself");
    }
    agenda.observe(ObjectChange::Listing(ObjectKind::Pod), at(11_100));
    agenda.observe(ObjectChange::Listed(raw("web-x7k2p", Some("web-"), set)), at(11_200));
    assert!(agenda.looks_at(&drawn, at(11_200)), "a page says nothing of the others");
    agenda.observe(ObjectChange::Complete(ObjectKind::Pod), at(11_300));
    assert!(!agenda.looks_at(&drawn, at(11_300)));
    agenda.observe(pod("web-x7k2p", Some("web-")), at(9_500));
    agenda.begin(None, Action::Evict(drawn.clone()), at(9500));
    assert!(matches!(agenda.take_errands().as_slice(), [Errand::Evict { look: false, .. }]));
    agenda.conclude(Outcome::Eviction { eviction: drawn.clone(), answer: Answer::Withdrawn }, at(9600));
    assert!(agenda.looks_at(&drawn, at(9700)), "it was tried before");
}

#[test]
fn nothing_more_is_evicted_from_a_node_whose_end_is_being_written() {
    let mut agenda = leading();
    let status = |phase: &str| -> DrainPlanStatus {
        serde_json::from_value(json!({"nodes": [{"name": "a", "uid": "uid-a", "phase": phase,
            "podsLeft": 1, "podsEvicted": 0}]}))
        .unwrap()
    };
    let known = Arc::clone(agenda.plans().by_uid("uid-p").unwrap());
    let eviction = || Action::Evict(eviction());
    for (phase, goes) in [("Draining", true), ("Done", false)] {
        agenda.writing.insert("uid-p".into(), Ahead::of(&status(phase)));
        assert_eq!(agenda.is_untimely("uid-p", &eviction()), !goes, "{phase}");
    }
    let give_back = Action::PatchNode { node: "a".into(), change: NodeChange::GiveBack, patch: json!([]) };
    assert!(!agenda.is_untimely("uid-p", &give_back));
    // Once the write has failed, the status before it is all there is.
    let write =
        StatusWrite { plan: known.clone(), status: status("Done"), counted: HashSet::new(), notices: vec![] };
    agenda.conclude(refused(&write), at(20));
    assert!(!agenda.is_untimely("uid-p", &eviction()));
}

#[test]
fn no_pod_is_evicted_whose_owner_is_being_forgotten() {
    let mut agenda = leading();
    let status: DrainPlanStatus = serde_json::from_value(json!({
        "nodes": [{"name": "a", "uid": "uid-a", "phase": "Draining", "podsLeft": 1, "podsEvicted": 0}],
        "moved": [{"namespace": "shop", "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web"}],
    }))
    .unwrap();
    agenda.writing.insert("uid-p".into(), Ahead::of(&status));
    let of = |owner: &str| Action::Evict(Evict { owner: Some(owner.into()), ..eviction() });
    assert!(!agenda.is_untimely("uid-p", &of("uid-web")));
    assert!(agenda.is_untimely("uid-p", &of("uid-api")));
    assert!(!agenda.is_untimely("uid-p", &Action::Evict(eviction())), "it has no owner with a scale");
}

#[test]
fn a_scale_that_a_decision_waits_on_is_read_again_but_not_all_the_time() {
    let mut agenda = leading();
    let fleet = OwnerRef {
        api_version: "example.com/v1".into(),
        kind: "Fleet".into(),
        name: "web".into(),
        uid: "uid-fleet".into(),
    };
    let asks = |agenda: &mut Agenda, millis| {
        agenda.read_scales(vec![("shop".into(), fleet.clone())], at(millis));
        agenda.take_errands().len()
    };
    assert_eq!((asks(&mut agenda, 0), asks(&mut agenda, 1)), (1, 0), "it is under way");
    let scale = Scale::Replicas { uid: "uid-fleet".into(), replicas: 3 };
    agenda.conclude(Outcome::Scale { owner: "uid-fleet".into(), scale }, at(10));
    assert_eq!(asks(&mut agenda, 20), 0);
    assert!(agenda.decide_at() <= at(5010).steady);
    assert_eq!(asks(&mut agenda, 5010), 1);
}

#[test]
fn a_plan_does_not_go_while_a_node_is_being_claimed_for_it() {
    let mut agenda = leading();
    let known = Arc::clone(agenda.plans().by_uid("uid-p").unwrap());
    let claim = NodeChange::Claim { claim: "p/uid-p/1/2027-01-15T08:00:00Z".into() };
    let action = Action::PatchNode { node: "a".into(), change: claim, patch: json!([]) };
    agenda.begin(Some(&known.metadata), action, at(5));
    assert!(agenda.is_untimely("uid-p", &Action::RemoveFinalizer));
    agenda.conclude(
        Outcome::Node { name: "a".into(), change: NodeChange::Release, result: Ok(node(9)) },
        at(10),
    );
    assert!(!agenda.is_untimely("uid-p", &Action::RemoveFinalizer));
}

#[test]
fn the_right_is_asked_for_once_at_a_time_again_when_it_is_denied_and_after_a_refusal() {
    let mut agenda = leading();
    let pod = json!({"metadata": {"namespace": "shop", "name": "web-0", "uid": "uid-web-0", "resourceVersion": "5",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web",
            "controller": true}]},
        "spec": {"nodeName": "a"}, "status": {"phase": "Running"}});
    agenda.observe(ObjectChange::Applied(Raw::decode(ObjectKind::Pod, &pod.to_string())), at(0));
    let asks = |errands: &[Errand]| -> Vec<Option<Text>> {
        let asks = errands.iter().filter_map(|errand| match errand {
            Errand::AskRight { namespace } => Some(namespace.clone()),
            _ => None,
        });
        asks.collect()
    };
    let answer = |right| Outcome::Right { namespace: None, answer: right };
    assert_eq!(asks(&turn(&mut agenda, at(5))), [None]);
    assert_eq!(asks(&turn(&mut agenda, at(10))), [], "it is under way");
    agenda.conclude(answer(Ok(Right::Denied { user: "x".into(), why: Text::default() })), at(20));
    assert_eq!(asks(&turn(&mut agenda, at(30))), [Some("shop".into())], "the other question waits");
    assert_eq!(asks(&turn(&mut agenda, at(200))), [None]);
    agenda.conclude(answer(Ok(Right::Granted)), at(210));
    assert_eq!(asks(&turn(&mut agenda, at(220))), []);

    let eviction = eviction();
    let status = |json| serde_json::from_value::<Status>(json).unwrap();
    let by_budget = status(json!({"code": 403, "details": {"causes": [{"reason": "DisruptionBudget"}]}}));
    let without = status(json!({"code": 403, "reason": "Forbidden", "message": "no"}));
    for (status, asked) in [(by_budget, vec![]), (without, vec![None])] {
        let answer = Answer::Refused(Box::new(status));
        agenda.conclude(Outcome::Eviction { eviction: eviction.clone(), answer }, at(230));
        assert_eq!(asks(&turn(&mut agenda, at(240))), asked);
    }
    // Nobody answers: what an eviction is answered has to tell.
    agenda.conclude(answer(Err(Failure { code: None, message: "no answer".into() })), at(250));
    assert_eq!(agenda.cluster().rights.of("shop"), Some(&Right::Unanswered));
}

/// What is decided when only the own pod is left on a node, and something else could be evicted.
fn hand_over() -> Decisions {
    let hand_over = Action::HandOver { pod: "uid-own".into(), to: "other".into() };
    let actions = vec![Action::Evict(eviction()), hand_over];
    let decision = Decision { plan: "p".into(), uid: "uid-p".into(), status: None, actions, waits: None };
    Decisions { plans: vec![decision], ..Decisions::default() }
}

#[test]
fn before_the_lease_is_handed_over_nothing_new_is_begun_and_all_is_answered() {
    let mut agenda = leading();
    let errands = turn(&mut agenda, at(5));
    let write = write_of(&errands);
    agenda.follow(hand_over(), Duration::ZERO, at(10));
    assert!(agenda.take_errands().is_empty(), "an answer is still to come");
    agenda.conclude(refused(&write), at(20));
    agenda.follow(hand_over(), Duration::ZERO, at(30));
    assert!(matches!(agenda.take_errands().as_slice(), [Errand::HandOver]));
    assert!(agenda.cluster().evictions.was_handed_over("uid-own"));
    assert!(agenda.decide(true, at(40)).is_none(), "the lease is as good as gone");
    agenda.conclude(Outcome::HandedOver, at(50));
    assert!(agenda.decide(false, at(60)).is_none());
    // It comes back, and whoever acts reads first what the other has written.
    assert!(agenda.decide(true, at(20_000)).is_none());
    assert!(matches!(agenda.take_errands().as_slice(), [Errand::ListPlans]));
}

#[test]
fn what_is_not_answered_in_time_is_no_reason_to_stand_still() {
    let mut agenda = leading();
    let errands = turn(&mut agenda, at(5));
    write_of(&errands);
    agenda.follow(hand_over(), Duration::ZERO, at(10));
    assert!(agenda.take_errands().is_empty() && agenda.decide_at() <= at(5010).steady);
    agenda.follow(hand_over(), Duration::ZERO, at(5009));
    assert!(agenda.take_errands().is_empty());
    agenda.follow(hand_over(), Duration::ZERO, at(5010));
    assert!(
        matches!(agenda.take_errands().as_slice(), [Errand::Evict { .. }]),
        "the rest of the decision is followed"
    );
    assert!(agenda.cluster().evictions.was_handed_over("uid-own"), "and the own pod is evicted next");
}

#[test]
fn what_is_not_written_yet_is_written_before_the_lease_is_handed_over() {
    let mut agenda = leading();
    let first = write_of(&turn(&mut agenda, at(5)));
    let mut written = plan(8, false);
    written.status = Some(first.status.clone());
    let (counted, notices) = (first.counted.clone(), vec![]);
    agenda.conclude(Outcome::Status { uid: "uid-p".into(), counted, notices, result: Ok(written) }, at(10));
    let with = |message: &str| {
        let mut status = first.status.clone();
        status.blocked_on = Some(message.to_owned());
        let mut decisions = hand_over();
        decisions.plans[0].status = Some(status);
        decisions
    };
    agenda.follow(
        Decisions {
            plans: vec![Decision { actions: vec![], ..with("x").plans[0].clone() }],
            ..Decisions::default()
        },
        Duration::ZERO,
        at(20),
    );
    assert!(agenda.take_errands().is_empty(), "it is too soon after the last one");
    agenda.follow(with("x"), Duration::ZERO, at(30));
    write_of(&agenda.take_errands());
}

#[test]
fn a_budget_with_room_is_decided_on_at_once_and_other_changes_some_milliseconds_later() {
    let budget = |version: u64, allowed: i32| {
        let json = json!({
            "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web",
                "resourceVersion": version.to_string()},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        });
        ObjectChange::Applied(Raw::decode(ObjectKind::PodDisruptionBudget, &json.to_string()))
    };
    let mut agenda = leading();
    turn(&mut agenda, at(100));
    agenda.observe(budget(1, 0), at(101));
    assert_eq!(agenda.decide_at(), at(105).steady);
    agenda.observe(budget(2, 1), at(102));
    assert_eq!(agenda.decide_at(), at(102).steady);
    // Decisions that take long leave as much time again to others.
    let decisions = agenda.decide(true, at(103)).unwrap();
    agenda.follow(decisions, Duration::from_millis(20), at(103));
    agenda.observe(budget(3, 2), at(124));
    assert_eq!(agenda.decide_at(), at(143).steady);
    // So it is when the budget's change has come before that of its pod.
    let pod = |version: u64, ready: &str| {
        let json = json!({
            "metadata": {"namespace": "shop", "name": "web-0", "uid": "uid-web-0", "labels": {"app": "web"},
                "resourceVersion": version.to_string()},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        ObjectChange::Applied(Raw::decode(ObjectKind::Pod, &json.to_string()))
    };
    turn(&mut agenda, at(150));
    agenda.observe(pod(1, "False"), at(151));
    assert_eq!(agenda.decide_at(), at(155).steady);
    agenda.observe(pod(2, "True"), at(152));
    assert_eq!(agenda.decide_at(), at(152).steady);
    // After a quiet while nothing waits.
    turn(&mut agenda, at(200));
    agenda.observe(budget(4, 0), at(300));
    assert_eq!(agenda.decide_at(), (at(300).steady + COALESCE));
}
