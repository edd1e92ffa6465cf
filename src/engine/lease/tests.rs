use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::engine::fake::{FakeApi, Line, Mode};

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/drainplan";
const HOUR: Duration = Duration::from_hours(1);

struct Replica {
    leadership: watch::Receiver<Leadership>,
    line: Line,
    metrics: Metrics,
    stop: Option<oneshot::Sender<()>>,
    resign: Resign,
    signature: String,
    task: JoinHandle<Result<(), SameIdentity>>,
}

fn start(api: &FakeApi, name: &str) -> Replica {
    start_as(api, Identity::named(name))
}

fn start_as(api: &FakeApi, identity: Identity) -> Replica {
    let (client, line) = api.client();
    let metrics = Metrics::new();
    let signature = identity.signature().to_owned();
    let (elector, leadership) =
        Elector::new(client, "ns", "drainplan", identity, Timings::default(), metrics.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let resign = elector.resignation();
    let task = tokio::spawn(elector.run(async move {
        let _ = stopped.await;
    }));
    Replica { leadership, line, metrics, stop: Some(stop), resign, signature, task }
}

impl Replica {
    /// Waits, in virtual time, until the state is as asked; returns how long that took.
    async fn until(&mut self, what: &str, state: impl Fn(&Leadership) -> bool) -> Duration {
        let start = Instant::now();
        let in_time = timeout(HOUR, self.leadership.wait_for(|now| state(now))).await.is_ok();
        assert!(in_time, "never {what}: {:?}", self.leadership.borrow());
        start.elapsed()
    }
    async fn leads(&mut self) -> Duration {
        self.until("leads", |now| now.may_act().is_some()).await
    }
    async fn follows(&mut self, leader: &str) -> Duration {
        let of_leader = |holder: &str| holder == leader || holder.starts_with(&format!("{leader}_"));
        self.until("follows", |now| now.holder.as_deref().is_some_and(of_leader) && now.may_act().is_none())
            .await
    }
    async fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.task).await.unwrap().unwrap();
    }
    /// Waits until it ends because another process has its name.
    async fn gives_up(&mut self) -> (Duration, SameIdentity) {
        let start = Instant::now();
        let ended = timeout(HOUR, &mut self.task).await.expect("it never ends");
        (start.elapsed(), ended.unwrap().unwrap_err())
    }
    fn may_act(&self) -> Option<Duration> {
        self.leadership.borrow().may_act()
    }
    fn count(&self, series: &str) -> Option<u64> {
        let text = self.metrics.encode().unwrap();
        text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn spec(api: &FakeApi) -> LeaseSpec {
    serde_json::from_value::<Lease>(api.get(PATH).unwrap()).unwrap().spec.unwrap()
}

#[tokio::test(start_paused = true)]
async fn creates_the_lease_and_renews_it_every_retry() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    assert_eq!(a.leads().await, Duration::ZERO);
    assert_eq!(a.may_act(), Some(Duration::from_secs(10)));
    let first = spec(&api);
    assert_eq!(first.holder_identity.as_ref(), Some(&a.signature));
    assert_eq!((first.lease_duration_seconds, first.lease_transitions), (Some(15), Some(0)));
    let asked = api.take_log();
    assert_eq!(asked.len(), 2, "{asked:?}");

    // A minute of renewals: one request each, and never less left than deadline - retry.
    let end = Instant::now() + Duration::from_mins(1);
    while Instant::now() < end {
        a.leadership.changed().await.unwrap();
        assert_eq!(a.may_act(), Some(Duration::from_secs(10)));
    }
    let asked = api.take_log();
    assert_eq!(asked.len(), 30);
    assert!(asked.iter().all(|request| request.starts_with("PUT ")), "{asked:?}");
    let renewed = spec(&api);
    assert!(renewed.renew_time > first.renew_time);
    assert_eq!((renewed.acquire_time, renewed.lease_transitions), (first.acquire_time, Some(0)));
    assert_eq!(a.count("drainplan_leader_transitions_total"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn of_two_replicas_one_leads() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    let mut b = start(&api, "b");
    b.follows("a").await;
    tokio::time::advance(Duration::from_mins(2)).await;
    a.until("renewed", |now| now.may_act() == Some(Duration::from_secs(10))).await;
    assert!(a.may_act().is_some() && b.may_act().is_none());
}

#[tokio::test(start_paused = true)]
async fn two_that_start_at_once_do_not_both_lead() {
    let api = FakeApi::default();
    let (a, b) = (start(&api, "a"), start(&api, "b"));
    let (mut of_a, mut of_b) = (a.leadership.clone(), b.leadership.clone());
    for _ in 0..50 {
        let changed = async {
            tokio::select! { _ = of_a.changed() => {}, _ = of_b.changed() => {} }
        };
        timeout(HOUR, changed).await.unwrap();
        assert!(a.may_act().is_none() || b.may_act().is_none());
    }
    assert!(a.may_act().is_some() || b.may_act().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_took_is_lost_at_the_next_renewal() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    api.edit(PATH, |lease| lease["spec"]["holderIdentity"] = json!("thief"));
    let took = a.until("stops", |now| now.may_act().is_none()).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
    assert_eq!(a.follows("thief").await, Duration::ZERO);
    assert_eq!(a.count("drainplan_leader"), Some(0));
    assert_eq!(a.count("drainplan_lease_writes_total{result=\"conflict\"}"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_leaves_the_holder_alone_costs_no_leadership_for_long() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    api.edit(PATH, |lease| lease["metadata"]["labels"] = json!({"team": "nodes"}));
    let changed = Instant::now();
    while a.count("drainplan_lease_writes_total{result=\"conflict\"}") == Some(0) {
        timeout(HOUR, a.leadership.changed()).await.unwrap().unwrap();
    }
    a.leads().await;
    assert!(changed.elapsed() <= Duration::from_secs(2));
    assert_eq!(api.get(PATH).unwrap()["metadata"]["labels"], json!({"team": "nodes"}));
    assert_eq!(spec(&api).lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_ends_the_right_to_act_before_anyone_else_gets_it() {
    for fault in [Mode::Silent, Mode::Refusing(500), Mode::Refusing(403)] {
        let api = FakeApi::default();
        let mut a = start(&api, "a");
        a.leads().await;
        let sent = Instant::now();
        let mut b = start(&api, "b");
        b.follows("a").await;
        a.line.set(fault);
        a.until("stops", |now| now.may_act().is_none()).await;
        assert_eq!(sent.elapsed(), Duration::from_secs(10), "{fault:?}");
        assert_eq!(a.count("drainplan_leader"), Some(0));
        b.leads().await;
        let taken = sent.elapsed();
        assert!(taken >= Duration::from_secs(15) && taken <= Duration::from_secs(18), "{fault:?}: {taken:?}");
        assert_eq!(spec(&api).lease_transitions, Some(1));
        a.line.set(Mode::Serving);
        a.follows("b").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_found_by_reading() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    a.line.set(Mode::Deaf);
    let version = |api: &FakeApi| api.get(PATH).unwrap()["metadata"]["resourceVersion"].clone();
    let before = version(&api);
    a.leadership.mark_unchanged();
    let arrived = async {
        while version(&api) == before {
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    };
    timeout(HOUR, arrived).await.unwrap();
    a.line.set(Mode::Serving);
    a.until("renewed", |now| now.may_act() == Some(Duration::from_secs(10))).await;
    assert_eq!(a.count("drainplan_lease_writes_total{result=\"conflict\"}"), Some(0));
    assert_eq!(a.count("drainplan_leader_transitions_total"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_followed_after_the_duration_it_asked_for() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    a.task.abort();
    // Its clock is years ahead, and it asked for longer than we would.
    api.edit(PATH, |lease| {
        lease["spec"]["renewTime"] = json!("2099-01-01T00:00:00.000000Z");
        lease["spec"]["leaseDurationSeconds"] = json!(40);
    });
    let mut b = start(&api, "b");
    let took = b.leads().await;
    assert!(took >= Duration::from_secs(40) && took <= Duration::from_secs(42), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_look() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    let mut b = start(&api, "b");
    b.follows("a").await;
    a.stop().await;
    assert_eq!(a.may_act(), None);
    let took = b.leads().await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
    assert_eq!(spec(&api).lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_stops_leaves_the_lease_alone() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    let mut b = start(&api, "b");
    b.follows("a").await;
    b.stop().await;
    assert_eq!(spec(&api).holder_identity.as_ref(), Some(&a.signature));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_be_written_does_not_hold_up_the_end() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    a.line.set(Mode::Silent);
    let start = Instant::now();
    a.stop().await;
    assert!(start.elapsed() < Duration::from_secs(4));
    assert_eq!(a.may_act(), None);
}

#[test]
fn timings_out_of_order_are_refused() {
    let seconds = Duration::from_secs;
    assert!(Timings::new(seconds(15), seconds(10), seconds(2)).is_ok());
    assert!(Timings::new(seconds(10), seconds(10), seconds(2)).is_err());
    assert!(Timings::new(seconds(15), seconds(2), seconds(2)).is_err());
    assert!(Timings::new(seconds(15), seconds(10), seconds(0)).is_err());
    let error =
        Timings::new(Duration::from_millis(1500), seconds(1), Duration::from_millis(200)).unwrap_err();
    assert!(error.to_string().contains("whole seconds"), "{error}");
}

/// Of two that were given one name, the second sees that the first is alive and ends with an error; the first goes on.
#[tokio::test(start_paused = true)]
async fn of_two_with_one_name_the_second_gives_up() {
    for kind in [Identity::named, Identity::of_pod] {
        let api = FakeApi::default();
        let mut first = start_as(&api, kind("a"));
        first.leads().await;
        let mut second = start_as(&api, kind("a"));
        let acted = second.leadership.clone();
        let (took, error) = second.gives_up().await;
        assert!(took <= Duration::from_secs(8), "{took:?}");
        let told = error.to_string();
        assert!(told.starts_with("another process uses the identity a: ") && told.contains(&first.signature));
        assert_eq!(second.count("drainplan_leader_transitions_total"), Some(0));
        assert!(acted.borrow().may_act().is_none());
        assert!(first.may_act().is_some());
        assert_eq!(spec(&api).holder_identity.as_ref(), Some(&first.signature));
    }
}

/// Two that share a name and cannot see each other alive: the one acts no more when the other begins to.
#[tokio::test(start_paused = true)]
async fn a_name_gives_no_right_to_a_lease_whose_holder_may_still_act() {
    let api = FakeApi::default();
    let mut first = start(&api, "a");
    first.leads().await;
    let sent = Instant::now();
    let mut second = start(&api, "a");
    second.follows("a").await;
    first.line.set(Mode::Silent);
    first.until("stops", |now| now.may_act().is_none()).await;
    assert_eq!(sent.elapsed(), Duration::from_secs(10));
    second.leads().await;
    assert!(sent.elapsed() >= Duration::from_secs(15), "{:?}", sent.elapsed());
    // It comes back and finds its name in use.
    first.line.set(Mode::Serving);
    let (took, _) = first.gives_up().await;
    assert!(took <= Duration::from_secs(4), "{took:?}");
    assert!(second.may_act().is_some());
    assert_eq!(spec(&api).holder_identity.as_ref(), Some(&second.signature));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_started_again_does_not_wait_for_the_lease_to_end() {
    let api = FakeApi::default();
    let mut dead = start_as(&api, Identity::of_pod("a"));
    dead.leads().await;
    dead.task.abort();
    let mut again = start_as(&api, Identity::of_pod("a"));
    let took = again.leads().await;
    // Longer than any request of the dead one may have been under way.
    assert!(took >= Duration::from_millis(3500) && took <= Duration::from_secs(6), "{took:?}");
    assert_eq!(spec(&api).lease_transitions, Some(1));
}

/// The last renewal of a process that was killed may arrive after its successor's first look.
#[tokio::test(start_paused = true)]
async fn a_late_renewal_of_a_dead_predecessor_is_no_sign_of_life() {
    let api = FakeApi::default();
    let mut dead = start_as(&api, Identity::of_pod("a"));
    dead.leads().await;
    dead.task.abort();
    let mut again = start_as(&api, Identity::of_pod("a"));
    again.follows("a").await;
    api.edit(PATH, |lease| lease["spec"]["renewTime"] = json!("2026-01-01T00:00:00.000000Z"));
    let took = again.leads().await;
    assert!(took >= Duration::from_millis(3500) && took <= Duration::from_secs(8), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn two_on_one_host_are_two_replicas() {
    let api = FakeApi::default();
    let mut first = start_as(&api, Identity::of_host("laptop"));
    first.leads().await;
    let mut second = start_as(&api, Identity::of_host("laptop"));
    second.follows("laptop").await;
    tokio::time::advance(Duration::from_mins(1)).await;
    first.stop().await;
    second.leads().await;
}

#[tokio::test(start_paused = true)]
async fn who_resigns_leaves_the_lease_to_another_and_follows_it() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    let mut b = start(&api, "b");
    b.follows("a").await;
    a.resign.resign().await;
    assert_eq!(a.may_act(), None);
    let took = b.leads().await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
    a.follows("b").await;
    assert_eq!(spec(&api).lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_else_takes_comes_back_after_its_duration() {
    let api = FakeApi::default();
    let mut a = start(&api, "a");
    a.leads().await;
    a.resign.resign().await;
    assert_eq!(spec(&api).holder_identity, None);
    let took = a.leads().await;
    assert_eq!(took, Duration::from_secs(15));
    // Who does not act has nothing to give back.
    let mut b = start(&api, "b");
    b.follows("a").await;
    b.resign.resign().await;
    assert_eq!(spec(&api).holder_identity.as_ref(), Some(&a.signature));
}
