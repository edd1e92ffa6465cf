//! Who may act: a leader lease whose holder stops before anyone else can take it.
//!
//! Several replicas keep their caches warm and one acts. The holder writes the Lease every `retry`; whoever sees it
//! unchanged for its whole duration takes it. No clock is compared with another machine's: the holder counts from
//! *sending* a renewal, on its own monotonic clock, and stops after `renew_deadline`; the others count `duration`
//! from *seeing* the record change, which is never earlier. `duration - renew_deadline` is what lies between the two.
//!
//! Every write is a replace with the resourceVersion that was read, so two replicas never both succeed. The client
//! must not retry by itself: a renewal that is sent late says nothing about when it was asked for.
//!
//! A name is not enough to know one's own lease by: a process signs with its name and a token of its own
//! ([`Identity`]), so two that were given the same name are two replicas like any others. A lease that is held under
//! our own name was left by the process before us, or there is another one now; the record tells which.
//!
//! What no lease can prevent: a machine that is frozen between the look at the clock and the send. So every write also
//! carries what it was decided on, a pod's uid or an object's resourceVersion.

use std::pin::pin;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tracing::{info, warn};

use super::call::{CallError, result_of, within};
use super::metrics::Metrics;

mod identity;
mod resign;

pub use identity::{Identity, SameIdentity};
pub use resign::Resign;

/// The lease's times. `retry` < `renew_deadline` < `duration`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    duration: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// Timings under which two replicas could act at once, or none for long.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "lease duration {duration:?}, renew deadline {renew_deadline:?}, retry {retry:?}: \
     write whole seconds of duration, a shorter renew deadline and a still shorter retry, such as 15s, 10s and 2s"
)]
pub struct InvalidTimings {
    duration: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl Timings {
    /// `duration`: how long the lease binds the others. `renew_deadline`: how long its holder acts on one renewal.
    /// `retry`: how often it is renewed, or looked at.
    pub fn new(
        duration: Duration,
        renew_deadline: Duration,
        retry: Duration,
    ) -> Result<Self, InvalidTimings> {
        let ordered = Duration::ZERO < retry && retry < renew_deadline && renew_deadline < duration;
        // The Lease carries whole seconds; others would read a shorter duration than was meant.
        let whole = duration.subsec_nanos() == 0 && i32::try_from(duration.as_secs()).is_ok();
        if ordered && whole {
            Ok(Self { duration, renew_deadline, retry })
        } else {
            Err(InvalidTimings { duration, renew_deadline, retry })
        }
    }
    /// Shorter than `retry`, so that an answer which never comes does not cost a renewal.
    fn request_timeout(&self) -> Duration {
        self.retry * 3 / 4
    }
    fn duration_seconds(&self) -> i32 {
        i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX)
    }
}

/// Who holds the lease, as far as this replica knows, and whether it may act.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leadership {
    /// The holder's identity; `None` before the first answer, and after a lost or released lease until the next.
    pub holder: Option<String>,
    /// This replica may act until then; `None` when it may not act at all.
    until: Option<Instant>,
}

impl Leadership {
    /// Leads, and would stop after a minute.
    #[cfg(test)]
    #[must_use]
    pub fn for_a_minute(holder: &str) -> Self {
        Self { holder: Some(holder.to_owned()), until: Some(Instant::now() + Duration::from_mins(1)) }
    }
    /// How long this replica may still act: `None` means not at all. Ask before every request that changes
    /// something, and let no such request outlive the answer.
    #[must_use]
    pub fn may_act(&self) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// Takes, renews and gives back the lease.
pub struct Elector {
    leases: Api<Lease>,
    namespace: String,
    name: String,
    identity: Identity,
    timings: Timings,
    metrics: Metrics,
    leadership: watch::Sender<Leadership>,
    /// What our last successful write left; `None` makes the next attempt read first.
    ours: Option<Lease>,
    /// Whether any write of ours succeeded.
    held: bool,
    /// The record of somebody else that was last read.
    seen: Option<Seen>,
    /// Who asks for the lease to be given back to others; told when it is.
    resign: (Resign, mpsc::Receiver<oneshot::Sender<()>>),
}

/// A record of somebody else.
struct Seen {
    spec: LeaseSpec,
    /// Since when it has not changed, by our own clock.
    since: Instant,
    /// How often its holder was seen to renew it.
    renewals: u32,
}

/// So many renewals tell a living holder from one whose last request arrived after its end.
const ALIVE: u32 = 2;

impl Elector {
    /// An elector for the Lease `namespace/name`, which is created when it is not there. `client` must not retry.
    #[must_use]
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: Identity,
        timings: Timings,
        metrics: Metrics,
    ) -> (Self, watch::Receiver<Leadership>) {
        let (leadership, receiver) = watch::channel(Leadership::default());
        let elector = Self {
            leases: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity,
            timings,
            metrics,
            leadership,
            ours: None,
            held: false,
            seen: None,
            resign: Resign::channel(),
        };
        (elector, receiver)
    }

    /// Makes this replica leave the lease to the others.
    #[must_use]
    pub fn resignation(&self) -> Resign {
        self.resign.0.clone()
    }

    /// Holds the lease whenever it can be had, until `stop`; then gives it back, so that a successor need not wait.
    /// `stop` must come after the last action: from then on another replica may act.
    ///
    /// # Errors
    /// When another living process has our name. This replica may not act any more then.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), SameIdentity> {
        let mut stop = pin!(stop);
        let mut tick = interval(self.timings.retry);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let until = self.leadership.borrow().until;
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = at(until) => self.lapse(),
                Some(asked) = self.resign.1.recv() => {
                    self.release().await;
                    // Long enough for any other replica to take it, which looks every `retry`.
                    tick.reset_after(self.timings.duration);
                    let _ = asked.send(());
                }
                _ = tick.tick() => {
                    let was_leading = until.is_some();
                    self.attempt().await;
                    if let Some(error) = self.contested() {
                        self.announce(Leadership::default());
                        return Err(error);
                    }
                    if was_leading && self.leadership.borrow().holder.is_none() {
                        tick.reset_immediately();
                    }
                }
            }
        }
        self.release().await;
        Ok(())
    }

    async fn attempt(&mut self) {
        let Err(error) = self.hold().await else { return };
        let (namespace, name) = (&self.namespace, &self.name);
        if error.code() == Some(409) {
            // Somebody wrote in between. Who, the next attempt reads and says; until then nothing is done.
            info!("the lease {namespace}/{name} was changed by somebody else; looking who holds it now");
            self.announce(Leadership::default());
            return;
        }
        let left = self.leadership.borrow().may_act();
        let then = left
            .map_or(String::new(), |left| format!("; this replica stops acting in {left:.1?} without it"));
        warn!(
            "cannot read or renew the lease {namespace}/{name}: {error}; next attempt in {:?}{then}",
            self.timings.retry
        );
    }

    async fn hold(&mut self) -> Result<(), CallError> {
        let lease = match self.ours.take() {
            Some(lease) => lease,
            None => match self.read().await? {
                Some(lease) => lease,
                None => return self.write(None).await,
            },
        };
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
        if holder.is_empty() || holder == self.identity.signature() || self.expired(&holder) {
            self.write(Some(lease)).await
        } else {
            self.follow(holder);
            Ok(())
        }
    }

    fn follow(&self, holder: String) {
        if self.leadership.borrow().holder.as_ref() != Some(&holder) {
            let (namespace, name) = (&self.namespace, &self.name);
            if self.identity.is_namesake(&holder) {
                info!(
                    "the lease {namespace}/{name} is held by {holder}, which has this replica's name: \
                     its predecessor, if it is not renewed any more"
                );
            } else {
                info!("the lease {namespace}/{name} is held by {holder}; this replica waits");
            }
        }
        self.announce(Leadership { holder: Some(holder), until: None });
    }

    /// Reads the record and notes when it last changed, by our own clock.
    async fn read(&mut self) -> Result<Option<Lease>, CallError> {
        let lease = within(self.timings.request_timeout(), self.leases.get_opt(&self.name)).await?;
        let spec = lease.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let renewals = match &self.seen {
            Some(seen) if seen.spec == spec => return Ok(lease),
            Some(seen) if seen.spec.holder_identity == spec.holder_identity => {
                seen.renewals.saturating_add(1)
            }
            _ => 0,
        };
        self.seen = Some(Seen { spec, since: Instant::now(), renewals });
        Ok(lease)
    }

    /// Whether the record has not changed for the duration that its holder asked for. If its holder has ended for
    /// sure, it is enough that no request of its last moments arrives any more.
    fn expired(&self, holder: &str) -> bool {
        let last_request = self.timings.retry + self.timings.request_timeout();
        self.seen.as_ref().is_some_and(|seen| {
            let asked = seen.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            let asked = asked.map_or(self.timings.duration, Duration::from_secs);
            let ended = self.identity.succeeds() && self.identity.is_namesake(holder);
            seen.since.elapsed() >= if ended { last_request.min(asked) } else { asked }
        })
    }

    /// The other process that has our name, if there is one: it renews the lease, or has taken it from us.
    fn contested(&self) -> Option<SameIdentity> {
        let holder = self.leadership.borrow().holder.clone()?;
        let alive = self.held || self.seen.as_ref().is_some_and(|seen| seen.renewals >= ALIVE);
        let lease = || format!("{}/{}", self.namespace, self.name);
        (alive && self.identity.is_namesake(&holder))
            .then(|| SameIdentity::new(&self.identity, lease(), holder))
    }

    /// Takes or renews: the record becomes ours from the moment of sending.
    async fn write(&mut self, lease: Option<Lease>) -> Result<(), CallError> {
        let sent = Instant::now();
        let now = MicroTime(Timestamp::now());
        let mut spec = lease.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(self.identity.signature()) {
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |times| times.saturating_add(1)));
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.identity.signature().to_owned());
        spec.lease_duration_seconds = Some(self.timings.duration_seconds());
        spec.renew_time = Some(now);
        let written = self.put(lease, spec).await?;
        if self.leadership.borrow().until.is_none() {
            info!("holds the lease {}/{} as {}", self.namespace, self.name, self.identity.signature());
        }
        self.ours = Some(written);
        self.held = true;
        let until = sent + self.timings.renew_deadline;
        self.announce(Leadership { holder: Some(self.identity.signature().to_owned()), until: Some(until) });
        Ok(())
    }

    async fn put(&self, lease: Option<Lease>, spec: LeaseSpec) -> Result<Lease, CallError> {
        let limit = self.timings.request_timeout();
        let params = PostParams::default();
        let answer = if let Some(mut lease) = lease {
            lease.spec = Some(spec);
            within(limit, self.leases.replace(&self.name, &params, &lease)).await
        } else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            within(limit, self.leases.create(&params, &Lease { metadata, spec: Some(spec) })).await
        };
        self.metrics.lease_write(result_of(&answer));
        answer
    }

    /// The last renewal is too old to act on.
    fn lapse(&mut self) {
        warn!(
            "stopped acting: the lease {}/{} could not be renewed for {:?}; \
             this replica goes on as soon as it can, unless another takes over",
            self.namespace, self.name, self.timings.renew_deadline
        );
        self.announce(Leadership::default());
    }

    async fn release(&mut self) {
        self.announce(Leadership::default());
        match self.give_back().await {
            Ok(true) => info!("released the lease {}/{}", self.namespace, self.name),
            Ok(false) => {}
            Err(error) => warn!(
                "cannot release the lease {}/{}: {error}; another replica can take it after {:?}",
                self.namespace, self.name, self.timings.duration
            ),
        }
    }

    /// Clears the holder, if it is us.
    async fn give_back(&mut self) -> Result<bool, CallError> {
        let lease = match self.ours.take() {
            Some(lease) => Some(lease),
            // The last renewal may have arrived although its answer did not.
            None => self.read().await?,
        };
        let Some(mut spec) = lease.as_ref().and_then(|lease| lease.spec.clone()) else { return Ok(false) };
        if spec.holder_identity.as_deref() != Some(self.identity.signature()) {
            return Ok(false);
        }
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        // As client-go does, for candidates that look at the duration only.
        spec.lease_duration_seconds = Some(1);
        self.put(lease, spec).await.map(|_| true)
    }

    fn announce(&self, leadership: Leadership) {
        self.metrics.leading(leadership.may_act().is_some());
        self.leadership.send_if_modified(|current| {
            let modified = *current != leadership;
            *current = leadership;
            modified
        });
    }
}

/// Returns at the instant, or never.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
