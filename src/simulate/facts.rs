//! What has happened that somebody may want to judge.

use std::sync::Arc;

use jiff::Timestamp;

use super::acts::Act;
use crate::api::{DrainPlan, DrainPlanStatus};
use crate::cluster::{BudgetKey, Node, Text};
use crate::plan::{Decisions, Evict, Moment, NodeChange};

/// Something that was decided, sent or done.
#[derive(Debug, Clone)]
pub enum Fact {
    /// Somebody or something acted on the cluster from outside.
    Acted(Act),
    /// A process has decided; what it knows is still what it knew then.
    Decided { process: usize, moment: Moment, decisions: Arc<Decisions> },
    /// An eviction has left a process.
    EvictionSent { process: usize, eviction: Evict },
    /// The server has carried out an eviction, or refused it.
    Evicted {
        process: usize,
        eviction: Evict,
        /// When it was decided on.
        sent: Timestamp,
        code: u16,
        /// The budget that was charged.
        charged: Option<BudgetKey>,
        /// The pod was counted as healthy by its budgets.
        healthy: bool,
        /// Another pod had its name by then.
        reborn: bool,
        /// The pod was looked at right before.
        looked: bool,
    },
    /// A process has learnt what has become of its eviction.
    EvictionConcluded { process: usize, eviction: Evict, accepted: bool },
    /// The server has patched a node.
    NodePatched { process: usize, change: NodeChange, before: Arc<Node>, after: Arc<Node> },
    /// The server has listed the pods of a node.
    Listed { node: Text },
    /// The server has written a status.
    StatusWritten { process: usize, before: Option<Box<DrainPlanStatus>>, plan: Arc<DrainPlan> },
    /// A process has begun to act.
    Leads { process: usize },
}
