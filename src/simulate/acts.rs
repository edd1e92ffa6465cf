//! What people, machines and networks do to a cluster, as data: a fault test is a list of these.

use std::time::Duration;

use super::setup::{After, BudgetSetup, NodeSetup, WorkloadSetup};
use crate::api::{DrainPlan, OnNodeTimeout};
use crate::cluster::ObjectKind;

/// Something that happens to the cluster from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    // --- people ---
    Cordon(String),
    Uncordon(String),
    /// Puts a taint `key:NoSchedule` on a node.
    Taint(String, String),
    Untaint(String, String),
    /// Takes all annotations off a node: claims too.
    StripAnnotations(String),
    /// Ends the hand-off of a node by the annotation, for the plan of that name.
    Release(String, String),
    /// Takes the label of a hand-off off a node.
    StripLabel(String),
    AddNode(NodeSetup),
    DeleteNode(String),
    AddWorkload(Box<WorkloadSetup>),
    /// Sets the scale of a workload, by namespace and name.
    Scale(String, i32),
    /// Deletes the n-th pod of a workload, in order.
    DeletePod(String, usize),
    /// Creates a budget, or changes the spec of the one of that name.
    PutBudget(BudgetSetup),
    /// By namespace and name.
    DeleteBudget(String, String),
    CreatePlan(Box<DrainPlan>),
    EditPlan(String, PlanEdit),
    DeletePlan(String),

    // --- machines ---
    /// The kubelet falls silent, and all that is on its node.
    KubeletDies(String),
    KubeletReturns(String),
    /// The machine is down for a while, and is another boot then; Ready so much later.
    Reboot {
        node: String,
        away: Duration,
        well: After,
    },
    /// The same, with a kubelet of another version.
    Upgrade {
        node: String,
        away: Duration,
        well: After,
    },
    /// A volume is attached to a node for so long.
    Attach(String, String, After),
    /// A node lacks disk, and its kubelet says so.
    NodePressed(String),
    NodeRelieved(String),
    /// The n-th pod of a workload loops in crashes for so long.
    PodFails(String, usize, Duration),
    ManagerStops,
    ManagerStarts,
    SchedulerStops,
    SchedulerStarts,
    /// The controller may not evict pods any more.
    RightTaken,
    RightGiven,

    // --- the controller's processes, by number ---
    /// It dies with all that it knows, and starts again so much later.
    Crash(usize, Duration),
    /// The leader dies right after so many more of its calls were carried out, and before it learns that.
    CrashAfterCalls(u32, Duration),
    /// It reaches the server no more for so long: no call arrives, no event comes, no lease is renewed.
    Partition(usize, Duration),
    /// The leader ends gracefully, and starts again so much later.
    HandOver(Duration),

    // --- watches of a process ---
    /// Events come so much later.
    WatchStalls(usize, Stream, Duration),
    /// Events are lost for so long; then the watch begins anew with a list.
    WatchBreaks(usize, Stream, Duration),
    /// So many of the last events come once more.
    WatchRepeats(usize, Stream, usize),

    /// All that was stopped goes on, silent kubelets return, and no call is disturbed any more.
    FaultsStop,

    // --- calls ---
    /// What befalls the next call of that kind.
    Call(CallKind, CallFault),
}

/// What a person changes in a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanEdit {
    Suspend(bool),
    NodeTimeout(u64),
    HandOffTimeout(u64),
    PlanTimeout(Option<u64>),
    OnNodeTimeout(OnNodeTimeout),
    MaxFailedNodes(i32),
    /// Nodes by name, in this order.
    Names(Vec<String>),
    /// Pods without a controller and with emptyDir data may go.
    AllowAll,
    /// A run in each window, or no more than the present one.
    Repeat(bool),
    /// A plan that only looked may work.
    PreflightIsOver,
}

/// What a watch is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    Plans,
    Objects(ObjectKind),
}

impl Stream {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        ObjectKind::ALL.into_iter().map(Self::Objects).chain([Self::Plans])
    }
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    Status,
    Finalizer,
    Node,
    List,
    Plans,
    Scale,
    /// The question whether pods may be evicted.
    Right,
    /// The look at a pod right before its eviction.
    Look,
    Evict,
}

impl CallKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Status,
        Self::Finalizer,
        Self::Node,
        Self::List,
        Self::Plans,
        Self::Scale,
        Self::Right,
        Self::Look,
        Self::Evict,
    ];
}

/// What befalls a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// It never arrives, and nobody says so.
    Lost,
    /// It is carried out; the answer never comes.
    AnswerLost,
    /// It arrives so much later.
    Slow(Duration),
    /// It is refused with this code and no cause.
    Refused(u16),
    /// It is carried out; the answer says that it failed.
    Misreported(u16),
}
