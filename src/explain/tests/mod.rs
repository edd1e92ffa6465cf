//! Small clusters, and what is said about them word by word.

mod budgets;
mod collected;
mod filters;
mod findings;
mod going;
mod lasting;
mod misconfigured;
mod refused;
mod replacements;
mod rows;
mod rules;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Explainer, Judgement, Patience, RULES, Treatment};
use crate::api::{Eviction, Outlook, PodPolicy, Reason};
use crate::budget;
use crate::cluster::{
    Amount, BudgetKey, Cluster, ContainerTrouble, DaemonSet, Deletion, Job, Labels, Namespace, Node,
    Operator, Ordinals, OwnerRef, Pdb, PdbStatus, Pod, PodKey, PodPhase, Requirement, Scale, Selector, Text,
    UnhealthyPolicy, Workload, WorkloadKind,
};

const NOW: Timestamp = Timestamp::constant(1_796_119_200, 0); // 2026-12-01T10:00:00Z

fn ago(seconds: i64) -> Timestamp {
    NOW - SignedDuration::from_secs(seconds)
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    Labels::new(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())))
}

fn key(name: &str) -> PodKey {
    PodKey { namespace: "shop".into(), name: name.into() }
}

fn owner(api_version: &str, kind: &str, name: &str) -> OwnerRef {
    let uid = format!("{kind}-{name}");
    OwnerRef { api_version: api_version.into(), kind: kind.into(), name: name.into(), uid: uid.into() }
}

/// Namespace `shop` with nodes `node-a` and `node-b`; all pods carry `app: web` and sit on `node-a`.
struct World {
    cluster: Cluster,
    policy: PodPolicy,
}

impl World {
    fn new() -> Self {
        let mut cluster = Cluster::new();
        for name in ["node-a", "node-b"] {
            cluster.apply_node(Node { name: name.into(), ready: "True".into(), ..Node::default() });
        }
        Self { cluster, policy: PodPolicy::default() }
    }

    /// A StatefulSet with that many replicas and all of its pods, Ready for a day.
    fn stateful_set(mut self, name: &str, replicas: i32) -> Self {
        self.cluster.apply_workload(workload(WorkloadKind::StatefulSet, name, replicas, None));
        for number in 0..replicas {
            self = self.pod(&format!("{name}-{number}"), Some(owner("apps/v1", "StatefulSet", name)));
        }
        self
    }

    /// A Deployment whose ReplicaSet is `<name>-7d`, and its pods `<name>-7d-0`, ….
    fn deployment(mut self, name: &str, replicas: i32) -> Self {
        let of = owner("apps/v1", "Deployment", name);
        let set = format!("{name}-7d");
        self.cluster.apply_workload(workload(WorkloadKind::Deployment, name, replicas, None));
        self.cluster.apply_workload(workload(WorkloadKind::ReplicaSet, &set, replicas, Some(of)));
        for number in 0..replicas {
            self = self.pod(&format!("{set}-{number}"), Some(owner("apps/v1", "ReplicaSet", &set)));
        }
        self
    }

    /// A Running and Ready pod of a day's age.
    fn pod(mut self, name: &str, owner: Option<OwnerRef>) -> Self {
        self.cluster.apply_pod(Pod {
            namespace: "shop".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            created: Some(ago(86_400)),
            labels: labels(&[("app", "web")]),
            node: Some("node-a".into()),
            phase: PodPhase::Running,
            ready: true,
            owner: owner.map(Arc::new),
            ..Pod::default()
        });
        self
    }

    fn change(mut self, name: &str, edit: impl FnOnce(&mut Pod)) -> Self {
        let mut pod = Pod::clone(self.cluster.pod(&key(name)).expect("the pod is there"));
        edit(&mut pod);
        self.cluster.apply_pod(pod);
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.cluster.delete_pod(&key(name));
        self
    }

    /// Not Ready, and in a crash loop.
    fn crashing(self, name: &str) -> Self {
        self.change(name, |pod| {
            pod.ready = false;
            pod.trouble = Some(Box::new(ContainerTrouble {
                restarts: 5,
                waiting: Some("CrashLoopBackOff".into()),
                ..ContainerTrouble::default()
            }));
        })
    }

    /// A budget over `app: web`, with a status as the controller would write it now.
    fn budget(self, name: &str, field: &str) -> Self {
        let (key, value) = field.split_once(": ").unwrap_or(("", ""));
        let amount = || value.parse().map_or_else(|_| Amount::Text(value.into()), Amount::Int);
        let requirement =
            Requirement { key: "app".into(), operator: Operator::In, values: vec!["web".into()] };
        self.reported(Pdb {
            namespace: "shop".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            generation: 1,
            selector: Some(Selector { requirements: vec![requirement] }),
            min_available: (key == "minAvailable").then(amount),
            max_unavailable: (key == "maxUnavailable").then(amount),
            status: PdbStatus { observed_generation: 1, has_condition: true, ..PdbStatus::default() },
            ..Pdb::default()
        })
    }

    /// Writes the numbers of now into the budget's status.
    fn reported(mut self, mut budget: Pdb) -> Self {
        let computed = budget::recompute(&self.cluster, &budget, NOW);
        budget.status.expected_pods = computed.numbers.expected_pods;
        budget.status.current_healthy = computed.numbers.current_healthy;
        budget.status.desired_healthy = computed.numbers.desired_healthy;
        budget.status.disruptions_allowed = computed.numbers.disruptions_allowed;
        budget.status.sync_failed = computed.sync_error.map(Text::from);
        self.cluster.apply_budget(budget);
        self
    }

    /// Changes the budget `web` as it stands, its status included.
    fn change_budget(mut self, edit: impl FnOnce(&mut Pdb)) -> Self {
        let key = BudgetKey { namespace: "shop".into(), name: "web".into() };
        let mut budget = Pdb::clone(self.cluster.budget(&key).expect("the budget is there"));
        edit(&mut budget);
        self.cluster.apply_budget(budget);
        self
    }

    fn judge(&self, pod: &str) -> Judgement {
        let patience = Patience::default();
        let explainer = Explainer::new(&self.cluster, NOW, &patience);
        explainer.judge(self.cluster.pod(&key(pod)).expect("the pod is there"), &self.policy)
    }

    /// What is odd about the pod's budgets has been seen for so long.
    fn seen_for(mut self, seconds: i64, pod: &str) -> Self {
        let patience = Patience::default();
        let explainer = Explainer::new(&self.cluster, NOW, &patience);
        let _ = explainer.judge(self.cluster.pod(&key(pod)).expect("the pod is there"), &self.policy);
        let oddities = explainer.oddities();
        self.cluster.oddities.seen(oddities, ago(seconds));
        self
    }

    fn reason(&self, pod: &str) -> Option<Reason> {
        self.judge(pod).wait.map(|wait| wait.reason)
    }

    /// Nothing holds the pod.
    #[track_caller]
    fn goes(&self, pod: &str) {
        let judgement = self.judge(pod);
        assert_eq!(judgement.treatment, Treatment::Evict);
        assert_eq!(judgement.wait, None);
    }

    /// The pod waits, and this is what is said.
    #[track_caller]
    fn waits(&self, pod: &str, reason: Reason, outlook: Outlook, message: &str, remedy: &str) {
        let wait = self.judge(pod).wait.expect("the pod waits");
        assert_eq!(wait.message, message);
        assert_eq!(wait.remedy, remedy);
        assert_eq!((wait.reason, wait.outlook), (reason, outlook));
    }
}

fn workload(kind: WorkloadKind, name: &str, replicas: i32, of: Option<OwnerRef>) -> Workload {
    Workload {
        kind,
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("{kind:?}-{name}").into(),
        replicas,
        owner: of.map(Arc::new),
        template_labels: labels(&[("app", "web")]),
        replica_failure: None,
        ordinals: Ordinals::default(),
    }
}

#[test]
fn the_rules_stand_in_the_order_of_the_reasons() {
    let ruled: Vec<Reason> = RULES.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(ruled, Reason::ALL);
}
