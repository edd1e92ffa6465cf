//! The loop: what was observed is taken in, a decision is made, its errands are begun.
//!
//! One task owns the agenda, so nothing is locked and a decision sees one consistent picture. Errands run beside it
//! and come back as outcomes.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::act::Hands;
use super::events::Publisher;
use super::lease::Leadership;
use super::metrics::Metrics;
use super::report;
use super::serve::Health;
use super::watch::Observation;
use crate::cluster::{ObjectKind, Right, Scale};
use crate::plan::{Agenda, Answer, Errand, Failure, Moment, Outcome, PlanStore, Settings, Unreadable};

/// How long outcomes are awaited when the process ends.
const FAREWELL: Duration = Duration::from_secs(5);
/// So many observations that have come are taken in before a decision, at most.
const BROUGHT: usize = 1000;

/// What readiness waits for, besides the kinds of objects.
pub const PLANS: &str = "DrainPlan";

/// What the loop is given.
pub struct Parts {
    pub hands: Hands,
    pub observations: mpsc::Receiver<Observation>,
    pub leadership: watch::Receiver<Leadership>,
    pub publisher: Publisher,
    pub metrics: Metrics,
    pub health: Health,
    pub settings: Settings,
}

/// How the loop ended.
pub struct Ended {
    /// Whether every request that it sent was answered; one that was not may still be carried out.
    pub answered: bool,
    /// An error when an errand ended without an outcome: what it was about would count as under way for ever.
    pub because: anyhow::Result<()>,
}

/// The loop and what it owns.
pub struct Controller {
    parts: Parts,
    agenda: Agenda,
    running: JoinSet<Outcome>,
    started: Instant,
    /// What was told of plans that cannot be read, by uid.
    told: HashSet<(String, String)>,
    /// How often teams are told of their pods and budgets.
    often: report::Often,
}

impl Controller {
    pub fn new(parts: Parts) -> Self {
        let seed = RandomState::new().build_hasher().finish();
        let agenda = Agenda::new(parts.settings.clone(), seed);
        Self {
            parts,
            agenda,
            running: JoinSet::new(),
            started: Instant::now(),
            told: HashSet::new(),
            often: report::Often::default(),
        }
    }

    /// Runs until `stop`, then lets what is under way come to its end.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Ended {
        let mut stop = std::pin::pin!(stop);
        // Whoever brings observations or the lease is gone; whoever looks after it ends this loop too, and says why.
        let mut bereft = false;
        let because = loop {
            // What is due is not left to the timer, which may come two milliseconds late.
            if self.started + self.agenda.decide_at() <= Instant::now() {
                self.turn();
            }
            self.begin();
            self.parts.health.turned();
            let decide_at = self.started + self.agenda.decide_at();
            tokio::select! {
                () = &mut stop => break Ok(()),
                observation = self.parts.observations.recv(), if !bereft => match observation {
                    Some(observation) => self.observe(observation),
                    None => bereft = true,
                },
                Some(outcome) = self.running.join_next() => match outcome {
                    Ok(outcome) => self.conclude(outcome),
                    Err(error) => break Err(anyhow::anyhow!("an errand ended abnormally: {error}")),
                },
                changed = self.parts.leadership.changed(), if !bereft => match changed {
                    Ok(()) => self.agenda.decide_soon(self.now()),
                    Err(_) => bereft = true,
                },
                () = tokio::time::sleep_until(decide_at) => {}
            }
        };
        let farewell = async { while self.running.join_next().await.is_some() {} };
        let answered = tokio::time::timeout(FAREWELL, farewell).await.is_ok();
        if !answered {
            tracing::warn!("some requests were still unanswered when the controller ended");
        }
        Ended { answered: answered && because.is_ok(), because }
    }

    fn now(&self) -> Moment {
        Moment { wall: Timestamp::now(), steady: self.started.elapsed() }
    }

    fn observe(&mut self, observation: Observation) {
        let now = self.now();
        observation.apply(&mut self.agenda, &self.parts.metrics, now);
        for kind in ObjectKind::ALL.into_iter().filter(|kind| self.agenda.cluster().is_listed(*kind)) {
            self.parts.health.done(kind.name());
        }
        if self.agenda.plans().is_listed() {
            self.parts.health.done(PLANS);
        }
    }

    /// Decides, on all that has been brought.
    fn turn(&mut self) {
        for _ in 0..BROUGHT {
            let Ok(observation) = self.parts.observations.try_recv() else { break };
            self.observe(observation);
        }
        let started = Instant::now();
        let now = self.now();
        let may_act = self.parts.leadership.borrow().may_act().is_some();
        let Some(decisions) = self.agenda.decide(may_act, now) else { return };
        let took = started.elapsed();
        self.parts.metrics.decision(took);
        report::show(&self.parts.metrics, self.agenda.plans().view(), &decisions);
        self.tell_unreadable();
        self.agenda.follow(decisions, took, now);
    }

    /// Tells the owners of plans that cannot be read, once for each thing that cannot.
    fn tell_unreadable(&mut self) {
        let told = |plan: &Unreadable| (plan.uid().to_owned(), plan.told());
        let unreadable: Vec<_> = self.agenda.plans().unreadable().cloned().collect();
        for plan in unreadable.iter().filter(|plan| !self.told.contains(&told(plan))) {
            report::unreadable(&self.parts.publisher, plan);
        }
        self.told = unreadable.iter().map(|plan| told(plan)).collect();
    }

    /// Begins what is to be done.
    fn begin(&mut self) {
        for errand in self.agenda.take_errands() {
            match &errand {
                Errand::PatchNode { node, change, .. } => tracing::info!(%node, ?change, "patching node"),
                Errand::Evict { eviction, .. } => {
                    tracing::info!(pod = %eviction.pod.name, namespace = %eviction.pod.namespace,
                        node = %eviction.node, uid = %eviction.uid, "evicting");
                }
                Errand::HandOver => tracing::info!(
                    "handing over to another replica: of a node that is drained only the pod of this one is left"
                ),
                _ => {}
            }
            self.running.spawn(self.parts.hands.clone().carry_out(errand));
        }
    }

    /// What is asked again and again is logged when the answer is another one.
    fn is_told(&self, outcome: &Outcome) -> bool {
        let Outcome::Scale { owner, scale } = outcome else { return false };
        self.agenda.cluster().scale(owner) == Some(scale)
    }

    /// Takes in what came of an errand.
    fn conclude(&mut self, outcome: Outcome) {
        if !self.is_told(&outcome) {
            log(&outcome, self.agenda.plans());
        }
        let now = self.now();
        if let Some(told) = self.agenda.conclude(outcome, now) {
            report::publish(&self.parts.publisher, self.agenda.cluster(), &mut self.often, told);
        }
    }
}

/// Says what has failed.
fn log(outcome: &Outcome, plans: &PlanStore) {
    let plan = |uid: &'_ str| plans.name_of(uid).unwrap_or("that is gone").to_owned();
    match outcome {
        Outcome::Status { uid, result: Err(failure), .. } => {
            log_failure("writing the status of the plan", &plan(uid), failure);
        }
        Outcome::Finalizer { uid, result: Err(failure) } => {
            log_failure("changing the finalizers of the plan", &plan(uid), failure);
        }
        Outcome::Node { name, result: Err(failure), .. } => log_failure("patching the node", name, failure),
        Outcome::Listed { node, pods: Err(failure), .. } => {
            log_failure("listing the pods of the node", node, failure);
        }
        Outcome::Plans(Err(failure)) => log_failure("listing the plans before acting", "all", failure),
        Outcome::Scale { owner, scale: Scale::Unreadable(why) } => {
            tracing::warn!(%owner, %why, "cannot read the scale of an owner; the reported allowance decides");
        }
        Outcome::Right { namespace, answer: Ok(Right::Denied { user, .. }) } => {
            tracing::warn!(%user, namespace = namespace.as_deref(), "may not create pods/eviction there");
        }
        Outcome::Right { namespace, answer: Err(failure) } => {
            let namespace = namespace.as_deref().unwrap_or_default();
            log_failure("asking for the right to evict", namespace, failure);
        }
        Outcome::Eviction { eviction, answer: Answer::Refused(status) } => {
            tracing::warn!(pod = %eviction.pod.name, namespace = %eviction.pod.namespace, code = status.code,
                message = status.message, "eviction refused");
        }
        Outcome::Eviction { eviction, answer: Answer::Unanswered(failure) } => {
            tracing::warn!(pod = %eviction.pod.name, namespace = %eviction.pod.namespace,
                message = failure.message, "eviction not answered");
        }
        _ => {}
    }
}

fn log_failure(what: &str, of: &str, failure: &Failure) {
    if matches!(failure.code, Some(409 | 422)) {
        tracing::debug!(of, message = failure.message, "{what}: it has changed meanwhile; deciding again");
    } else {
        tracing::warn!(of, message = failure.message, "{what} failed; it is tried again");
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;
    use crate::cluster::{Change, Raw};
    use crate::engine::fake::{FakeApi, Mode};

    /// A controller that leads and has listed one node and one plan; what it asks the server for panics.
    #[tokio::test]
    async fn an_errand_that_ends_without_an_outcome_ends_the_loop() {
        let (client, line) = FakeApi::default().client();
        line.set(Mode::Panicking);
        let metrics = Metrics::new();
        let (_lead, leadership) = watch::channel(Leadership::for_a_minute("a"));
        let (observe, observations) = mpsc::channel(100);
        let (publisher, _worker) = Publisher::new(client.clone(), "a", metrics.clone());
        let controller = Controller::new(Parts {
            hands: Hands::new(client, leadership.clone(), metrics.clone()),
            observations,
            leadership,
            publisher,
            metrics,
            health: Health::new(Duration::from_mins(1), []),
            settings: Settings::default(),
        });
        let plan = serde_json::from_value(json!({
            "apiVersion": "drainplan.dev/v1alpha1", "kind": "DrainPlan",
            "metadata": {"name": "p", "uid": "uid-p", "generation": 1, "resourceVersion": "7",
                "creationTimestamp": "2026-01-15T07:00:00Z"},
            "spec": {"nodes": {"names": ["a"]}, "handOff": {"then": "Uncordon"}},
        }));
        let node = json!({"metadata": {"name": "a", "uid": "uid-a", "resourceVersion": "5",
            "creationTimestamp": "2026-01-15T07:00:00Z"}});
        let node = Change::Listed(Raw::decode(ObjectKind::Node, &node.to_string()));
        for change in std::iter::once(node).chain(ObjectKind::ALL.map(Change::Complete)) {
            observe
                .send(Observation::Object { kind: ObjectKind::Node, change: Box::new(change) })
                .await
                .map_err(|_| "closed")
                .unwrap();
        }
        for event in [Event::Init, Event::InitApply(plan.unwrap()), Event::InitDone] {
            observe.send(Observation::Plan(Box::new(event))).await.map_err(|_| "closed").unwrap();
        }
        let ended = tokio::time::timeout(Duration::from_secs(30), controller.run(std::future::pending()));
        let ended = ended.await.expect("the loop goes on");
        assert!(!ended.answered, "what the errand has sent may still be carried out");
        let error = ended.because.unwrap_err().to_string();
        assert!(error.starts_with("an errand ended abnormally: ") && error.contains("panicked"), "{error}");
    }
}
