//! Deliberate errors: `make parity MUTATE=n` must find those in the model, `make fuzz-planted` those in the plan and in what
//! is said of pods that wait.
//!
//! Without the feature `planted`, as in every build that is shipped, [`planted`] is a constant `false`.

/// A deliberate error; those from [`Planted::InFlightForgotten`] on are not in the model but in the plan, the last ones in
/// what is said of pods that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Percentages round down.
    RoundDown = 1,
    /// Integer minAvailable counts finished pods out.
    FinishedOut,
    /// Owners are found by name alone.
    AnyUid,
    /// Terminating pods that are still Ready count as healthy.
    TerminatingHealthy,
    /// A Deployment's `ReplicaSets` count one by one.
    EachReplicaSet,
    /// Pods without a controller add one each to what is expected.
    BarePodsExpected,
    /// An empty selector selects nothing.
    EmptySelectsNothing,
    /// `NotIn` wants the key to be there.
    NotInWantsKey,
    /// Pods that the server has let go count as healthy until they terminate.
    DisruptedHealthy,
    /// Budgets hold pending pods.
    PendingHeld,
    /// An unready pod may go under a budget that wants no healthy pod.
    DesiredZeroLetsGo,
    /// A budget that expects no pods may allow a disruption.
    NothingExpectedAllows,

    /// Evictions in flight do not count against a budget's room.
    InFlightForgotten,
    /// A node is cordoned first and claimed afterwards.
    ClaimAfterCordon,
    /// The time of a node in progress counts from the start of the process.
    DeadlineFromStart,
    /// A node that is given back keeps its claim.
    ClaimLeft,
    /// The taint of a node whose turn comes soon is left on it.
    TaintLeft,
    /// Plans work whether a window is open or not.
    WindowIgnored,
    /// A cordon that was there before ours is lifted.
    ForeignCordonLifted,
    /// Whoever starts anew evicts pods again that terminate already.
    EvictedAgain,
    /// The allowance that a budget reports is believed, however old it is.
    StaleAllowance,
    /// What a status only reports, that a node waits and why, is read back as memory.
    ReportRead,
    /// Of two nodes that wait on each other none gives way.
    NeverYields,
    /// The label of a node that was handed off is left on it.
    LabelLeft,
    /// A node that is not Ready after its hand-off is put back into service.
    UncordonedNotReady,
    /// What a node is compared with is read anew, as if it had just been handed off.
    BootForgotten,
    /// A hand-off has no deadline.
    HandOffForEver,
    /// Nodes that are handed off take no slot.
    HandedOffIsFree,
    /// A node is empty although a volume is attached to it.
    VolumesIgnored,
    /// A budget is believed that allows more because an owner of evicted pods has none left.
    ShrunkBelieved,
    /// An owner is written down when the first of its pods has gone.
    OwnerUnrecorded,
    /// An owner is forgotten when its node has ended, whether its pods are back or not.
    OwnerForgotten,
    /// Nodes are started while pods that were moved are not Ready again.
    ReplacementsIgnored,
    /// Nodes are started right after the one before.
    SoakIgnored,
    /// Nodes are started whatever the health of the others.
    HealthIgnored,
    /// Pods that come back to their node are evicted again and again.
    ReturnsIgnored,
    /// Nodes of several values of pace.topologyKey are drained together.
    DomainsMixed,
    /// As many nodes are cordoned as the plans want.
    CordonsUncounted,
    /// Nodes are started although nothing may be evicted.
    RightIgnored,
    /// The controller's own pod waits for no other pod of its node.
    OwnPodFirst,
    /// The controller evicts itself without handing its lease over.
    NotHandedOver,
    /// What may have been reborn under its name is evicted without another look.
    NeverLooks,

    /// An owner can have no more pods than are Ready now.
    AttainableByReady,
    /// A pod without a controller that is not Ready never will be.
    BareMustBeReady,
    /// A budget can have one pod more than it can.
    AttainableByOneMore,
    /// What only time brings back is said of pods that perhaps nobody replaces.
    ReplacedForSure,
}

#[cfg(feature = "planted")]
mod chosen {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Planted;

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    /// Whether this error is the chosen one.
    pub fn planted(error: Planted) -> bool {
        CHOSEN.load(Ordering::Relaxed) == error as u8
    }
    /// Chooses an error by number; 0 chooses none.
    pub fn plant(number: u8) {
        CHOSEN.store(number, Ordering::Relaxed);
    }
}

#[cfg(feature = "planted")]
pub use chosen::{plant, planted};

/// Whether errors can be planted in this build.
#[must_use]
pub const fn possible() -> bool {
    cfg!(feature = "planted")
}

/// Chooses an error where there is one to choose.
#[cfg(not(feature = "planted"))]
pub const fn plant(_: u8) {}

/// Whether this error is the chosen one.
#[cfg(not(feature = "planted"))]
#[must_use]
pub const fn planted(_: Planted) -> bool {
    false
}
