//! The pods of one node, judged.

use std::sync::Arc;

use crate::api::{Outlook, PodPolicy};
use crate::cluster::{Cluster, Node, Pod};
use crate::explain::{Explainer, Judgement, Treatment};

/// The pods that must leave a node before it is drained.
#[derive(Debug, Default)]
pub struct Survey {
    /// By namespace and name.
    pub pods: Vec<Surveyed>,
}

/// A pod and what is to be said about it.
#[derive(Debug)]
pub struct Surveyed {
    pub pod: Arc<Pod>,
    pub judgement: Judgement,
}

impl Survey {
    /// Judges the pods of a node; those that may stay are left out.
    pub fn of(node: &Node, cluster: &Cluster, explainer: &Explainer<'_>, policy: &PodPolicy) -> Self {
        let judged = cluster
            .pods_on(&node.name)
            .map(|pod| Surveyed { pod: Arc::clone(pod), judgement: explainer.judge(pod, policy) });
        Self { pods: judged.filter(|surveyed| surveyed.judgement.treatment != Treatment::Ignore).collect() }
    }

    /// Whether it is known of all pods that are to be evicted whether they may be.
    pub fn rights_are_known(&self, cluster: &Cluster) -> bool {
        let evicts = |surveyed: &&Surveyed| {
            surveyed.judgement.treatment == Treatment::Evict && !surveyed.pod.terminating()
        };
        let known = |surveyed: &Surveyed| cluster.rights.of(&surveyed.pod.namespace).is_some();
        self.pods.iter().filter(evicts).all(known)
    }

    /// The pods that wait for a reason.
    pub fn waiting(&self) -> impl Iterator<Item = &Surveyed> {
        self.pods.iter().filter(|surveyed| surveyed.judgement.wait.is_some())
    }

    /// The pods that nothing but a change by somebody will let go.
    pub fn never_clear(&self) -> impl Iterator<Item = &Surveyed> {
        let never = |surveyed: &&Surveyed| {
            surveyed.judgement.wait.as_ref().is_some_and(|wait| wait.outlook == Outlook::NeverClears)
        };
        self.pods.iter().filter(never)
    }
}
