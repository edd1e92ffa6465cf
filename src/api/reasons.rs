//! Why a pod waits, and why a node is where it is. The strings are the contract; a newer controller may add some.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether waiting will help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Outlook {
    /// Time alone does it.
    WillClear,
    /// Something may recover.
    MayClear,
    /// Someone must change something.
    NeverClears,
}

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them, in the order in which the first match wins.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The reason of that string, if this version knows it.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == text)
            }

            /// The string that users read.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

reasons! {
    /// Why a pod waits; the first match in this order is said.
    Reason {
        /// An annotation asks not to move it, and the plan heeds that.
        Protected,
        /// It has no controller and the plan does not allow evicting it.
        Unmanaged,
        /// It has emptyDir data and the plan does not allow losing it.
        LocalData,
        /// A rule waits for it to finish.
        AwaitingCompletion,
        /// Pods of a lower order leave the node first.
        AwaitingOrder,
        /// Whoever evicts has no right to.
        Forbidden,
        /// Several budgets select it; the server answers 500.
        MultipleBudgets,
        /// The disruption controller cannot compute its budget.
        BudgetSyncFailed,
        /// Arithmetic on configuration: the budget can never allow it.
        BudgetNeverAllows,
        /// No pod of the budget has a controller, so it expects none and allows none.
        BudgetCountsNone,
        /// Its owner wants fewer pods than there are.
        OwnerScalingDown,
        /// The disruption controller has not looked at the budget for a while.
        BudgetStale,
        /// The budget allows an eviction only because an owner of evicted pods has none left and no longer counts.
        BudgetShrunk,
        /// An owner cannot create its pods, and says why.
        ReplacementMissing,
        /// The scheduler finds no node for a replacement.
        ReplacementPending,
        /// Pods of the budget are unready, and not because they have just started.
        BudgetUnhealthy,
        /// No disruption left now; pods are being replaced or are starting.
        BudgetExhausted,
        /// 403 with the cause DisruptionBudget.
        BudgetRefused,
        /// No budget selects it, and another pod of its owner is away.
        AwaitingReplacement,
        /// A cordon does not keep it away, and it may be on no other node.
        ReturnsToNode,
        /// Its object is only kept by finalizers.
        FinalizerHolds,
        /// It was deleted, and the kubelet of its node is silent.
        KubeletUnreachable,
        /// It is going, and may still.
        Terminating,
        /// It should have gone.
        TerminatingOverdue,
        /// 403: its namespace is being deleted.
        NamespaceTerminating,
        /// An admission webhook or policy denied the eviction.
        AdmissionDenied,
        /// An admission webhook could not be asked.
        AdmissionUnavailable,
        /// The server throttles requests.
        ApiThrottled,
        /// Any other refusal, quoted.
        ServerError,
    }
}

impl Reason {
    /// The pod has been deleted, and its object is still there.
    #[must_use]
    pub fn is_going(self) -> bool {
        matches!(
            self,
            Self::FinalizerHolds | Self::KubeletUnreachable | Self::Terminating | Self::TerminatingOverdue
        )
    }
    /// Budgets hold the pod.
    #[must_use]
    pub fn is_about_budgets(self) -> bool {
        matches!(
            self,
            Self::MultipleBudgets
                | Self::BudgetSyncFailed
                | Self::BudgetNeverAllows
                | Self::BudgetCountsNone
                | Self::OwnerScalingDown
                | Self::BudgetStale
                | Self::BudgetShrunk
                | Self::ReplacementMissing
                | Self::ReplacementPending
                | Self::BudgetUnhealthy
                | Self::BudgetExhausted
                | Self::BudgetRefused
        )
    }
}

reasons! {
    /// Why a node is in its phase.
    NodeReason {
        /// The plan only looks, and nothing would keep the node from being drained.
        PreflightOnly,
        /// No window is open.
        AwaitingWindow,
        /// What is left of the window is shorter than timeouts.node.
        WindowTooShort,
        /// More nodes are unhealthy than pace.maxUnhealthyNodes allows.
        AwaitingHealth,
        /// Owners whose pods were moved have fewer Ready pods than before.
        AwaitingReplacements,
        /// The node before has been done for less than pace.soak.
        AwaitingSoak,
        /// A pod on it can never be evicted as things are.
        Blocked,
        /// Another plan, or another tool, holds it.
        ClaimedByOther,
        /// As many nodes are in progress as the plan allows.
        AwaitingSlot,
        /// Nodes with another value of pace.topologyKey are finished first.
        AwaitingDomain,
        /// Another control-plane node is away, or there is no other.
        ControlPlaneAtRisk,
        /// Its pods are gone, and volumes are still attached to it.
        VolumesAttached,
        /// The node object is gone.
        NodeGone,
        /// Somebody uncordoned it while it was being drained.
        UncordonedByHand,
        /// It was not empty at its deadline.
        TimedOut,
        /// Its hand-off had not ended at its deadline: it was not back, released or gone.
        HandOffTimedOut,
        /// The plan ended before it was drained.
        PlanEnded,
    }
}

reasons! {
    /// What is wrong with a budget.
    Finding {
        /// Arithmetic on configuration: it can never allow an eviction.
        NeverAllows,
        /// The disruption controller cannot compute it.
        SyncFailed,
        /// Another budget selects some of its pods.
        Overlaps,
        /// It selects no pod.
        SelectsNothing,
        /// None of its pods has a controller, so it expects none and allows none.
        CountsNone,
        /// Unready pods may not leave, by its unhealthyPodEvictionPolicy.
        BlocksUnhealthy,
        /// The disruption controller has not looked at it for a while.
        Stale,
        /// It selects pods of Jobs, which have no scale and end.
        SelectsJobs,
    }
}
