//! `kubectl drainplan explain`.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Serialize;

use super::args::{Explain, Global, Which};
use super::explained;
use super::output::Outcome;
use super::source::{Scope, Source};
use super::table;
use super::verify::{self, Verified};
use crate::api::{Outlook, PodPolicy};
use crate::budget;
use crate::cluster::{BudgetKey, Cluster, Pod, PodKey};
use crate::explain::{Explainer, Judgement, Patience, Treatment};

/// The answer; a contract with scripts.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) pods: Vec<PodAnswer>,
    /// How many of those that would be evicted now would be if all were asked for: they may share a budget.
    #[serde(skip)]
    pub(super) at_once: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct PodAnswer {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) node: Option<String>,
    pub(super) action: &'static str,
    pub(super) eviction: Eviction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verified: Option<Verified>,
    pub(super) reason: Option<&'static str>,
    pub(super) outlook: Option<Outlook>,
    pub(super) message: String,
    pub(super) remedy: String,
}

/// What the server would answer, whatever the action.
#[derive(Debug, Serialize)]
pub(super) struct Eviction {
    pub(super) code: u16,
    pub(super) budgets: Vec<String>,
}

pub(super) async fn run(global: &Global, what: &Explain) -> anyhow::Result<Outcome> {
    let source = Source::open(global).await?;
    let asked = Asked::of(global, what, &source)?;
    let mut cluster = source.read(&asked.scope()).await?;
    let pods = asked.pods(&cluster)?;
    let mut verified = BTreeMap::new();
    if what.verify {
        let Source::Live(live) = &source else {
            anyhow::bail!("--verify needs a cluster to ask, not --from")
        };
        verified = verify::all(live, &pods, &mut cluster).await?;
    }
    let answer = answer(&cluster, &pods, verified, Timestamp::now());
    let blocked =
        answer.pods.iter().any(|pod| pod.outlook.is_some_and(|outlook| outlook != Outlook::WillClear));
    let one = matches!(asked, Asked::Pod(_));
    Outcome::of(global.output, &answer, blocked, || table(&answer, one, table::width()))
}

/// Which pods are asked about.
pub(super) enum Asked {
    All(Scope),
    Node(String, Scope),
    Pod(PodKey),
}

impl Asked {
    fn of(global: &Global, what: &Explain, source: &Source) -> anyhow::Result<Self> {
        let scope = global.namespace.clone().map_or(Scope::All, Scope::One);
        match &what.which {
            Some(Which::Node { name }) => Ok(Self::Node(name.clone(), scope)),
            Some(Which::Pod { name }) => {
                let (namespace, name) = match (name.split_once('/'), source.scope(global)) {
                    (Some((namespace, name)), _) => (namespace.to_owned(), name),
                    (None, Scope::One(namespace)) => (namespace, name.as_str()),
                    (None, Scope::All) => {
                        anyhow::bail!("write the pod as NAMESPACE/NAME, or name its namespace with -n")
                    }
                };
                Ok(Self::Pod(PodKey { namespace: namespace.into(), name: name.into() }))
            }
            None => Ok(Self::All(scope)),
        }
    }

    /// What must be read for it: budgets never reach beyond a namespace.
    fn scope(&self) -> Scope {
        match self {
            Self::All(scope) | Self::Node(_, scope) => scope.clone(),
            Self::Pod(key) => Scope::One(key.namespace.to_string()),
        }
    }

    /// The pods, by namespace and name.
    pub(super) fn pods(&self, cluster: &Cluster) -> anyhow::Result<Vec<Arc<Pod>>> {
        match self {
            Self::All(scope) => {
                let mut pods: Vec<_> =
                    cluster.pods().filter(|pod| scope.contains(&pod.namespace)).cloned().collect();
                pods.sort_by_key(|pod| pod.key());
                Ok(pods)
            }
            Self::Node(name, scope) => {
                let pods: Vec<_> =
                    cluster.pods_on(name).filter(|pod| scope.contains(&pod.namespace)).cloned().collect();
                if pods.is_empty() && cluster.node(name).is_none() {
                    // With a namespace whoever asks may have no right to list nodes.
                    anyhow::bail!(match scope {
                        Scope::All => format!(
                            "there is no node {name} and no pod on it; kubectl get nodes lists the nodes"
                        ),
                        Scope::One(namespace) => format!(
                            "there is no pod of namespace {namespace} on node {name}, and no such node that may be read; \
                             kubectl get pods -n {namespace} -o wide lists the pods with their nodes"
                        ),
                    });
                }
                Ok(pods)
            }
            Self::Pod(key) => {
                let pod = cluster.pod(key).with_context(|| {
                    format!(
                        "there is no pod {}/{}; kubectl get pods -n {} lists them",
                        key.namespace, key.name, key.namespace
                    )
                })?;
                Ok(vec![Arc::clone(pod)])
            }
        }
    }
}

pub(super) fn answer(
    cluster: &Cluster,
    pods: &[Arc<Pod>],
    mut verified: BTreeMap<PodKey, Verified>,
    now: Timestamp,
) -> Answer {
    let (patience, policy) = (Patience::default(), PodPolicy::default());
    let explainer = Explainer::new(cluster, now, &patience);
    let mut at_once = AtOnce::default();
    let describe = |pod: &Arc<Pod>| {
        let judgement = explainer.judge(pod, &policy);
        at_once.count(&judgement);
        let remark = || (None, None, explainer.remark(pod, &judgement), String::new());
        let (reason, outlook, message, remedy) = judgement.wait.as_ref().map_or_else(remark, |wait| {
            (Some(wait.reason.as_str()), Some(wait.outlook), wait.message.clone(), wait.remedy.clone())
        });
        PodAnswer {
            namespace: pod.namespace.to_string(),
            name: pod.name.to_string(),
            node: pod.node.as_ref().map(ToString::to_string),
            action: match judgement.treatment {
                Treatment::Evict => "Evict",
                Treatment::Ignore => "Ignore",
                Treatment::Refuse => "Refuse",
            },
            eviction: Eviction {
                code: judgement.verdict.code,
                budgets: judgement.verdict.budgets.iter().map(ToString::to_string).collect(),
            },
            verified: verified.remove(&pod.key()),
            reason,
            outlook,
            message,
            remedy,
        }
    };
    let pods = pods.iter().map(describe).collect();
    Answer { pods, at_once: at_once.of(cluster, now) }
}

/// Pods that would be evicted now, and what that would take off each budget.
#[derive(Default)]
struct AtOnce {
    pods: usize,
    spent: BTreeMap<BudgetKey, usize>,
}

impl AtOnce {
    fn count(&mut self, judgement: &Judgement) {
        if judgement.wait.is_some() || judgement.treatment == Treatment::Ignore {
            return;
        }
        self.pods += 1;
        for budget in &judgement.spends {
            *self.spent.entry(budget.clone()).or_default() += 1;
        }
    }

    /// Less those that the budgets have no room for after the others.
    fn of(&self, cluster: &Cluster, now: Timestamp) -> usize {
        let beyond = self.spent.iter().map(|(key, spent)| {
            let room = cluster.budget(key).map_or(0, |budget| budget::room(cluster, budget, now));
            spent.saturating_sub(usize::try_from(room).unwrap_or_default())
        });
        self.pods.saturating_sub(beyond.sum())
    }
}

/// As people read it.
pub(super) fn table(answer: &Answer, one: bool, width: usize) -> String {
    match answer.pods.as_slice() {
        [pod] if one => explained::one(pod, width),
        _ => explained::many(answer, width),
    }
}
