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
use crate::cluster::{Cluster, Pod, PodKey};
use crate::explain::{Explainer, Patience, Treatment};

/// The answer; a contract with scripts.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) pods: Vec<PodAnswer>,
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
enum Asked {
    All(Scope),
    Node(String),
    Pod(PodKey),
}

impl Asked {
    fn of(global: &Global, what: &Explain, source: &Source) -> anyhow::Result<Self> {
        match &what.which {
            Some(Which::Node { name }) => Ok(Self::Node(name.clone())),
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
            None => Ok(Self::All(global.namespace.clone().map_or(Scope::All, Scope::One))),
        }
    }

    /// What must be read for it: budgets never reach beyond a namespace.
    fn scope(&self) -> Scope {
        match self {
            Self::All(scope) => scope.clone(),
            Self::Node(_) => Scope::All,
            Self::Pod(key) => Scope::One(key.namespace.to_string()),
        }
    }

    /// The pods, by namespace and name.
    fn pods(&self, cluster: &Cluster) -> anyhow::Result<Vec<Arc<Pod>>> {
        match self {
            Self::All(scope) => {
                let mut pods: Vec<_> =
                    cluster.pods().filter(|pod| scope.contains(&pod.namespace)).cloned().collect();
                pods.sort_by_key(|pod| pod.key());
                Ok(pods)
            }
            Self::Node(name) => {
                let pods: Vec<_> = cluster.pods_on(name).cloned().collect();
                if pods.is_empty() && cluster.node(name).is_none() {
                    anyhow::bail!(
                        "there is no node {name} and no pod on it; kubectl get nodes lists the nodes"
                    );
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
    let describe = |pod: &Arc<Pod>| {
        let judgement = explainer.judge(pod, &policy);
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
    Answer { pods: pods.iter().map(describe).collect() }
}

/// As people read it.
pub(super) fn table(answer: &Answer, one: bool, width: usize) -> String {
    match answer.pods.as_slice() {
        [pod] if one => explained::one(pod, width),
        _ => explained::many(answer, width),
    }
}
