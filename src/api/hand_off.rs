//! `handOff`: what happens on the empty node.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DrainPlanSpec, PlanDuration};

/// What happens on the empty node.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandOff {
    /// Whether an empty node is called so only when no volume is attached to it any more, but those of pods that stay.
    /// Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub await_volumes_detached: Option<bool>,
    /// Until when the node is held. Default: Drained, that is no longer than until it is empty. While it waits for
    /// anything else it carries the label drainplan.dev/state=drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// What happens then. Must be written when the node is held no longer than until it is empty; else the default
    /// is Uncordon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
}

/// Until when an empty node is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Until {
    /// Not at all: an empty node is done.
    #[default]
    Drained,
    /// Until somebody annotates it drainplan.dev/release=PLAN.
    Released,
    /// Until its boot ID is another one and it is Ready.
    Rebooted,
    /// Until its kubelet has another version and it is Ready.
    Upgraded,
    /// Until the Node object is gone.
    Deleted,
}

/// What happens to a node that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Then {
    /// It stays cordoned, with an annotation that says by which plan.
    KeepCordoned,
    /// It is uncordoned, unless it was cordoned before.
    Uncordon,
}

impl DrainPlanSpec {
    /// Until when an empty node is held.
    #[must_use]
    pub fn until(&self) -> Until {
        self.hand_off.as_ref().and_then(|hand_off| hand_off.until).unwrap_or_default()
    }

    /// What happens to a node that is done; `None` where the schema asks for it to be written.
    #[must_use]
    pub fn then(&self) -> Option<Then> {
        let written = self.hand_off.as_ref().and_then(|hand_off| hand_off.then);
        written.or_else(|| (self.until() != Until::Drained).then_some(Then::Uncordon))
    }

    /// Whether a node is empty only when no volume is attached to it any more.
    #[must_use]
    pub fn awaits_volumes_detached(&self) -> bool {
        self.hand_off.as_ref().and_then(|hand_off| hand_off.await_volumes_detached).unwrap_or(true)
    }

    /// How long a node may be handed off.
    #[must_use]
    pub fn hand_off_timeout(&self) -> PlanDuration {
        let written = self.timeouts.as_ref().and_then(|timeouts| timeouts.hand_off.clone());
        written.unwrap_or_else(|| PlanDuration::minutes(60))
    }
}
