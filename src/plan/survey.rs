//! The pods of one node, judged.

use std::sync::Arc;

use super::Round;
use super::own_pod::{self, is_own};
use crate::api::{Outlook, PodPolicy, Reason};
use crate::cluster::planted::{Planted, planted};
use crate::cluster::{BudgetKey, Node, OwnerRef, Pod};
use crate::explain::{Judgement, Treatment, Wait};

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
    pub fn of(node: &Node, round: &Round<'_>, policy: &PodPolicy) -> Self {
        let judged = round
            .cluster
            .pods_on(&node.name)
            .map(|pod| Surveyed { pod: Arc::clone(pod), judgement: round.explainer.judge(pod, policy) });
        let pods = judged.filter(|surveyed| surveyed.judgement.treatment != Treatment::Ignore).collect();
        let mut survey = Self { pods };
        survey.keep_own(round);
        survey.line_up(round);
        survey
    }

    /// Pods wait until those of a lower order are gone, and the own pod until all are. What would hold them for ever is
    /// still said.
    fn line_up(&mut self, round: &Round<'_>) {
        let own = round.settings.own_pod.as_ref().filter(|_| !planted(Planted::OwnPodFirst));
        let is_own = |pod: &Pod| is_own(own, pod);
        let turn = |surveyed: &Surveyed| (is_own(&surveyed.pod), surveyed.judgement.order);
        let turns = || self.pods.iter().map(turn);
        if turns().min() == turns().max() {
            self.await_replica(round);
            return;
        }
        let mut behind = Vec::new();
        for (number, surveyed) in self.pods.iter().enumerate() {
            let Surveyed { pod, judgement } = surveyed;
            let own = judgement.wait.as_ref();
            let stronger = |wait: &Wait| {
                wait.outlook == Outlook::NeverClears
                    || wait.reason < Reason::AwaitingOrder
                    || wait.reason == Reason::ReturnsToNode
            };
            if pod.terminating() || own.is_some_and(stronger) {
                continue;
            }
            let earlier = self.pods.iter().filter(|other| turn(other) < turn(surveyed));
            let told: Vec<_> = earlier
                .map(|other| {
                    let outlook = other.judgement.wait.as_ref().map(|wait| wait.outlook);
                    (&*other.pod, other.judgement.order, outlook)
                })
                .collect();
            let order = (!is_own(pod)).then_some(judgement.order);
            behind.push((number, round.explainer.behind(pod, order, &told)));
        }
        for (number, wait) in behind {
            if let (Some(surveyed), Some(wait)) = (self.pods.get_mut(number), wait) {
                surveyed.judgement.wait = Some(wait);
            }
        }
    }

    /// The own pod stays where nobody would act any more without it.
    fn keep_own(&mut self, round: &Round<'_>) {
        let own = round.settings.own_pod.as_ref();
        let Some(Surveyed { pod, judgement }) = self.pods.iter_mut().find(|of| is_own(own, &of.pod)) else {
            return;
        };
        let refused = judgement.treatment != Treatment::Evict || pod.terminating();
        if !refused && let Some(outlook) = own_pod::is_indispensable(round, pod) {
            judgement.wait = Some(round.explainer.indispensable(pod, outlook));
        }
    }

    /// The own pod, the last one there, waits for another replica that is on its way.
    fn await_replica(&mut self, round: &Round<'_>) {
        let [Surveyed { pod, judgement }] = self.pods.as_mut_slice() else { return };
        if pod.terminating() || !is_own(round.settings.own_pod.as_ref(), pod) {
            return;
        }
        let coming = own_pod::coming(round, pod);
        if judgement.wait.is_none() && !coming.is_empty() {
            judgement.wait = Some(round.explainer.awaits_replica(pod, &coming));
        }
    }

    /// Whether the server has answered what it is asked about pods that are to be evicted: whether they may be, and how many
    /// pods their owners want.
    pub fn is_answered(&self, round: &Round<'_>) -> bool {
        let cluster = round.cluster;
        let evicts = |surveyed: &&Surveyed| {
            surveyed.judgement.treatment == Treatment::Evict && !surveyed.pod.terminating()
        };
        let read = |key: &BudgetKey| {
            let standing = cluster.budget(key).map(|budget| round.explainer.standing(budget));
            let asked = |owner: &OwnerRef| cluster.scale(&owner.uid).is_some();
            standing.is_none_or(|known| known.attainable.unread.iter().all(|(_, owner)| asked(owner)))
        };
        let answered = |Surveyed { pod, judgement }: &Surveyed| {
            cluster.rights.of(&pod.namespace).is_some() && judgement.spends.iter().all(read)
        };
        self.pods.iter().filter(evicts).all(answered)
    }

    /// The pods that wait for a reason.
    pub fn waiting(&self) -> impl Iterator<Item = &Surveyed> {
        self.pods.iter().filter(|surveyed| surveyed.judgement.wait.is_some())
    }

    /// The pods that wait for more than time, and for what.
    pub fn held(&self) -> impl Iterator<Item = (&Pod, &Wait)> {
        let waits =
            self.pods.iter().filter_map(|surveyed| Some((&*surveyed.pod, surveyed.judgement.wait.as_ref()?)));
        waits.filter(|(_, wait)| wait.outlook != Outlook::WillClear)
    }

    /// The pods that nothing but a change by somebody will let go.
    pub fn never_clear(&self) -> impl Iterator<Item = &Surveyed> {
        let never = |surveyed: &&Surveyed| {
            surveyed.judgement.wait.as_ref().is_some_and(|wait| wait.outlook == Outlook::NeverClears)
        };
        self.pods.iter().filter(never)
    }
}
