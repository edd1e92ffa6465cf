//! What a virtual cluster is made of, as data.

use std::time::Duration;

use crate::cluster::{Amount, UnhealthyPolicy};

/// When something happens after its cause, if ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// So much later.
    Some(Duration),
    /// Not at all.
    Never,
}

impl After {
    /// So many milliseconds later.
    #[must_use]
    pub const fn millis(millis: u64) -> Self {
        Self::Some(Duration::from_millis(millis))
    }
}

/// A node and its kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSetup {
    pub name: String,
    pub labels: Vec<(String, String)>,
    /// What its pods may request together.
    pub capacity: u32,
    /// Somebody has cordoned it.
    pub cordoned: bool,
}

impl NodeSetup {
    /// A node with a label and room for pods.
    #[must_use]
    pub fn new(name: &str, pool: &str, capacity: u32) -> Self {
        let labels = vec![
            ("pool".to_owned(), pool.to_owned()),
            ("kubernetes.io/hostname".to_owned(), name.to_owned()),
        ];
        Self { name: name.to_owned(), labels, capacity, cordoned: false }
    }
}

/// What a pod template says to its owner, the scheduler and the kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub labels: Vec<(String, String)>,
    pub requests: u32,
    /// From being bound until it runs; a pod that never starts stays Pending.
    pub starts: After,
    /// From running until it is Ready.
    pub ready: After,
    /// From running until it has finished.
    pub completes: After,
    /// From its deletion until its end is confirmed.
    pub terminates: After,
    pub grace_seconds: i64,
    /// A finalizer, and how long after its end somebody takes it off.
    pub finalizer: Option<After>,
    pub empty_dir: bool,
    /// It may be scheduled to nodes that are cordoned.
    pub tolerates_cordon: bool,
    /// It runs only on nodes with this label.
    pub node_selector: Option<(String, String)>,
    /// No two of its owner's pods on one node.
    pub spread: bool,
}

impl Template {
    /// An ordinary pod: it runs at once, is Ready a little later, and ends quickly.
    #[must_use]
    pub fn new(app: &str) -> Self {
        Self {
            labels: vec![("app".to_owned(), app.to_owned())],
            requests: 1,
            starts: After::millis(200),
            ready: After::millis(1000),
            completes: After::Never,
            terminates: After::millis(300),
            grace_seconds: 30,
            finalizer: None,
            empty_dir: false,
            tolerates_cordon: false,
            node_selector: None,
            spread: false,
        }
    }
}

/// What creates pods again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    Deployment,
    ReplicaSet,
    /// One after the other, or all at once.
    StatefulSet {
        parallel: bool,
    },
    Job,
    DaemonSet,
    /// A custom resource; only a GET of its scale can tell how many pods it wants, if it has one.
    Custom {
        has_scale: bool,
    },
    /// Nothing: pods without a controller.
    Nobody,
    /// Nothing: mirrors of static pods.
    Kubelet,
}

/// An owner and its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSetup {
    pub namespace: String,
    pub name: String,
    pub kind: OwnerKind,
    pub replicas: i32,
    pub template: Template,
    /// Nodes that its first pods are on, in this order, past the scheduler; all later pods are scheduled.
    pub placed: Vec<String>,
}

impl WorkloadSetup {
    /// A Deployment with ordinary pods, labelled `app: <name>`.
    #[must_use]
    pub fn deployment(namespace: &str, name: &str, replicas: i32) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind: OwnerKind::Deployment,
            replicas,
            template: Template::new(name),
            placed: Vec::new(),
        }
    }

    /// How acts name it.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetSetup {
    pub namespace: String,
    pub name: String,
    /// `app` labels that it selects; none selects every pod of the namespace.
    pub apps: Vec<String>,
    pub min_available: Option<Amount>,
    pub max_unavailable: Option<Amount>,
    pub unhealthy_policy: UnhealthyPolicy,
}

impl BudgetSetup {
    /// A budget of the same name as the workload it is for, which lets so many pods be away.
    #[must_use]
    pub fn max_unavailable(namespace: &str, app: &str, pods: i32) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: app.to_owned(),
            apps: vec![app.to_owned()],
            min_available: None,
            max_unavailable: Some(Amount::Int(pods)),
            unhealthy_policy: UnhealthyPolicy::IfHealthyBudget,
        }
    }
}

/// The least and the most that something takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub least: Duration,
    pub most: Duration,
}

impl Span {
    /// In milliseconds.
    #[must_use]
    pub const fn millis(least: u64, most: u64) -> Self {
        Self { least: Duration::from_millis(least), most: Duration::from_millis(most) }
    }
}

/// How long the parts of the cluster take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// From a change until a watch brings it.
    pub watch: Span,
    /// A request to the API server, or its answer.
    pub request: Span,
    /// From a change until a controller of the controller manager looks at it.
    pub controller: Span,
    /// From what it has seen until its write arrives.
    pub write: Span,
    /// From a change until the scheduler looks at it, and from its choice until the pod is bound.
    pub scheduler: Span,
    /// From the silence of a kubelet until its node is Unknown.
    pub unreachable: Duration,
    /// From there until the pods of the node are deleted.
    pub unreachable_eviction: Duration,
    /// From a node's deletion until its pods are collected.
    pub garbage: Duration,
    /// From the last renewal of a lease until its holder stops acting, and until another may take over.
    pub lease_act: Duration,
    pub lease: Duration,
    /// How long a process that is started again must see its predecessor's lease unchanged.
    pub lease_inherited: Duration,
}

impl Default for Timing {
    /// As measured on the testbed, and the control plane's defaults.
    fn default() -> Self {
        Self {
            watch: Span::millis(1, 6),
            request: Span::millis(1, 4),
            controller: Span::millis(2, 20),
            write: Span::millis(1, 5),
            scheduler: Span::millis(5, 30),
            unreachable: Duration::from_secs(40),
            unreachable_eviction: Duration::from_mins(5),
            garbage: Duration::from_mins(1),
            lease_act: Duration::from_secs(10),
            lease: Duration::from_secs(15),
            lease_inherited: Duration::from_millis(3500),
        }
    }
}
