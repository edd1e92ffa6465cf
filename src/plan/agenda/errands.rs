//! What is to be done on the server, and what comes of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::{ObjectMeta, Status};

use super::Seen;
use crate::api::{DrainPlan, DrainPlanStatus};
use crate::cluster::{OwnerRef, Raw, Right, Scale, Text, Uncounted};
use crate::plan::{Evict, NodeChange, Notice};

/// One instant on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Of the wall clock: what is written down is in it.
    pub wall: Timestamp,
    /// Since the start of the process, by a clock that nobody sets: waits are counted in it.
    pub steady: Duration,
}

/// Something to be done on the server, now.
#[derive(Debug, Clone)]
pub enum Errand {
    /// Write a plan's status, unless the plan has changed since it was read.
    WriteStatus(Box<StatusWrite>),
    /// Put our finalizer on a plan.
    AddFinalizer(Box<ObjectMeta>),
    /// Take our finalizer off a plan, which may end its object.
    RemoveFinalizer(Box<ObjectMeta>),
    /// Patch a node by a JSON patch that tests its resourceVersion.
    PatchNode { node: Text, change: NodeChange, patch: serde_json::Value },
    /// List the pods of a node from the server itself.
    ListPods { node: Text, since: Timestamp },
    /// List the plans from the server itself.
    ListPlans,
    /// Read the scale of an owner that is not watched.
    ReadScale { namespace: Text, owner: OwnerRef },
    /// Ask the server whether whoever asks may evict pods, in a namespace or in all of them.
    AskRight { namespace: Option<Text> },
    /// Evict exactly this pod; if so, after another look at it.
    Evict { eviction: Evict, look: bool },
    /// Give the lease back for another replica to take: all else that was sent has been answered.
    HandOver,
}

/// A status to be written.
#[derive(Debug, Clone)]
pub struct StatusWrite {
    /// The plan as it was read.
    pub plan: Arc<DrainPlan>,
    pub status: DrainPlanStatus,
    /// The accepted evictions that the status counts.
    pub counted: HashSet<Uncounted>,
    /// To be published once it is written.
    pub notices: Vec<Notice>,
}

/// What came of an errand.
#[derive(Debug)]
pub enum Outcome {
    /// A plan's status was written, or not.
    Status {
        uid: String,
        counted: HashSet<Uncounted>,
        notices: Vec<Notice>,
        result: Result<DrainPlan, Failure>,
    },
    /// Our finalizer was put on a plan or taken off; `None` when the plan is gone by that, or cannot be read.
    Finalizer { uid: String, result: Result<Option<DrainPlan>, Failure> },
    /// A node was patched.
    Node { name: Text, change: NodeChange, result: Result<Raw, Failure> },
    /// The server has listed the pods of a node: their uids.
    Listed { node: Text, since: Timestamp, pods: Result<Vec<String>, Failure> },
    /// The server has listed the plans.
    Plans(Result<Vec<Seen>, Failure>),
    /// The scale of an owner was read.
    Scale { owner: Text, scale: Scale },
    /// The server has said whether pods may be evicted.
    Right { namespace: Option<Text>, answer: Result<Right, Failure> },
    /// An eviction was answered.
    Eviction { eviction: Evict, answer: Answer },
    /// The lease was given back, or will run out: this process does not act any more.
    HandedOver,
}

/// What is worth publishing.
#[derive(Debug)]
pub struct Told {
    /// The plan that it is about, unless that is gone.
    pub plan: Option<Arc<DrainPlan>>,
    pub notices: Vec<Notice>,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code of the server's answer; `None` when there was none, and it may have been carried out all the same.
    pub code: Option<u16>,
    /// A sentence.
    pub message: String,
}

/// What an eviction was answered.
#[derive(Debug)]
pub enum Answer {
    /// 201.
    Accepted,
    /// Nothing was evicted: the pod is gone, going, or another one.
    Withdrawn,
    /// It was refused, with the server's own words.
    Refused(Box<Status>),
    /// No answer that says whether it was carried out.
    Unanswered(Failure),
}
